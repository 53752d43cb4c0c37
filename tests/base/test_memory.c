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

/* Memory that malloc hands out again belongs to a child process too, whatever was freed there:
 * malloc serves a large array out of what it kept of smaller ones. */
static void freed_arrays_leave_no_hole(void **state) {
  enum { KEPT = 3, SMALL = 24 * MEBI, FIRST = 28 * MEBI, LARGE = 40 * MEBI };
  md_context *context = *state;
  void *kept[KEPT], *first, *large;
  MD_REQUIRE(context, md_allocate(context, FIRST, "", &first));
  free(first); /* from now on malloc keeps smaller ones than this */
  for (int k = 0; k < KEPT; k++) MD_REQUIRE(context, md_allocate(context, SMALL, "", &kept[k]));
  void *guard = malloc(4 * MEBI); /* behind them: they are not given back to the system */
  for (int k = 0; k < KEPT; k++) free(kept[k]);
  MD_REQUIRE(context, md_allocate(context, LARGE, "", &large));
  free(large);
  for (int k = 0; k < KEPT; k++) {
    kept[k] = malloc(SMALL);
    assert_non_null(kept[k]);
    memset(kept[k], 1, SMALL);
    assert_int_equal(read_in_child(kept[k], SMALL), 0);
  }
  for (int k = 0; k < KEPT; k++) free(kept[k]);
  free(guard);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(freed_arrays_leave_no_hole)};
MD_RUN_TESTS(tests)
