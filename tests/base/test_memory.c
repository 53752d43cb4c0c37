#include "base/memory.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEBI = 1 << 20 };

/* 0: a child process reads the bytes; else how it ended. */
static int read_in_child(const volatile char *bytes, size_t count) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < count; i += 4096)
      if (bytes[i] != 1) _exit(1);
    _exit(0);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

/* A host program that forks has all of its arrays in the child, the large ones too. */
static void arrays_belong_to_a_child(void **state) {
  enum { BYTES = 40 * MEBI };
  md_context *context = *state;
  void *array;
  MD_REQUIRE(context, md_allocate(context, BYTES, "", &array));
  memset(array, 1, BYTES);
  assert_int_equal(read_in_child(array, BYTES), 0);
  free(array);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(arrays_belong_to_a_child)};
MD_RUN_TESTS(tests)
