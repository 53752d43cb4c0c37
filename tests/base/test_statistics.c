/* The median of timings. (The blocked mean of a chain: tests/generate/test_statistics.c.) */
#include "base/timer.h"
#include "support.h"

static void median_is_in_the_middle(void **state) {
  (void)state;
  double one[] = {7.0}, two[] = {4.0, 1.0}, three[] = {9.0, -1.0, 2.0};
  double four[] = {8.0, 1.0, 2.0, 4.0}, ties[] = {5.0, 5.0, 1.0, 5.0, 9.0};
  assert_true(md_median(one, 1) == 7.0);
  assert_true(md_median(two, 2) == 2.5);
  assert_true(md_median(three, 3) == 2.0);
  assert_true(md_median(four, 4) == 3.0);
  assert_true(md_median(ties, 5) == 5.0);
  for (int i = 1; i < 4; i++) assert_true(four[i - 1] <= four[i]);
}

static void time_runs_forward(void **state) {
  (void)state;
  double before = md_time_s();
  for (int i = 0; i < 1000; i++) {
    const double now = md_time_s();
    assert_true(now >= before);
    before = now;
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(median_is_in_the_middle),
                                    cmocka_unit_test(time_runs_forward)};
MD_RUN_TESTS(tests)
