#include "base/waiting.h"
#include "support.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads by default, and when cores count as shared. */

static bool every_second;

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set) {
  const long filled = every_second ? 0 : syscall(SYS_sched_getaffinity, process, bytes, set);
  if (filled < 0) return -1;
  memset((char *)set + filled, every_second ? 0x55 : 0, bytes - (size_t)filled);
  return 0;
}

static void expect(md_cores cores, int asked, int threads, bool shared) {
  assert_int_equal(md_cores_threads(&cores), threads);
  assert_int_equal(md_cores_shared(&cores, asked), shared);
}

static void threads_and_sharing(void **state) {
  (void)state;
  /* affinity, quota, online, ranks, others; threads asked for */
  expect((md_cores){16, INT_MAX, 16, 1, 0}, 0, 16, false);
  expect((md_cores){16, INT_MAX, 16, 1, 1}, 0, 16, true);  /* somebody else runs */
  expect((md_cores){16, INT_MAX, 16, 1, 1}, 8, 16, false); /* and there is room for both */
  expect((md_cores){16, INT_MAX, 16, 1, 0}, 17, 16, true); /* more threads than cores */
  expect((md_cores){16, INT_MAX, 16, 4, 0}, 0, 4, false);  /* four ranks share them */
  expect((md_cores){16, INT_MAX, 16, 4, 0}, 16, 4, true);
  expect((md_cores){4, INT_MAX, 16, 4, 0}, 0, 4, false); /* four ranks bound apart */
  expect((md_cores){1, INT_MAX, 16, 16, 0}, 2, 1, true);
  expect((md_cores){2, INT_MAX, 2, 8, 0}, 0, 1, true); /* more ranks than cores */
  expect((md_cores){128, 4, 128, 1, 0}, 0, 4, false);  /* a container's quota */
  expect((md_cores){128, 4, 128, 2, 0}, 0, 2, false);
  expect((md_cores){128, 4, 128, 2, 0}, 4, 2, true);
  expect((md_cores){16, INT_MAX, 128, 1, 100}, 0, 16, false); /* others have cores of their own */
}

static void this_machine(void **state) {
  md_cores cores;
  (void)state;
  md_cores_look("", &cores);
  assert_in_range(cores.affinity, 1, cores.online);
  assert_true(cores.quota >= 1 && cores.ranks >= 1);
}

/* Every second core of all, beside those of OpenMP's places: more than the text holds, which ends
 * with a whole number. */
static void long_lists_end_with_a_core(void **state) {
  char text[MD_CORES_BYTES];
  (void)state;
  every_second = true;
  md_cores_list(text);
  every_second = false;
  assert_in_range(strlen(text), MD_CORES_BYTES - 5, MD_CORES_BYTES - 1);
  char *last = strrchr(text, ',');
  *last = '\0';
  assert_int_equal(atoi(last + 1), atoi(strrchr(text, ',') + 1) + 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_and_sharing),
                                     cmocka_unit_test(this_machine),
                                     cmocka_unit_test(long_lists_end_with_a_core)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
