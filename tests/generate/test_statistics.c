/* md_blocked_mean on chains of known autocorrelation: x' = a x + sqrt(1 - a^2) normal deviate has
 * variance 1 and the standard error sqrt((1 + a) / (1 - a) / n) of the mean of n. */
#include "base/random_math.h"
#include "base/statistics.h"
#include "support.h"

#include <math.h>

enum { COUNT = 16384 };

static void error_sees_autocorrelation(void **state) {
  md_context *context = *state;
  static const double memory[] = {0.0, 0.5, 0.9};
  for (int k = 0; k < 3; k++) {
    const double a = memory[k], expected = sqrt((1.0 + a) / (1.0 - a) / COUNT);
    double values[COUNT], mean, error, x = 0.0, normal[2];
    md_random random = md_random_begin(1, 0, (uint64_t)k);
    for (int i = 0; i < COUNT; i++) {
      md_random_normal(&random, normal);
      x = a * x + sqrt(1.0 - a * a) * normal[0];
      values[i] = 3.0 + x;
    }
    MD_REQUIRE(context, md_blocked_mean(context, values, COUNT, &mean, &error));
    md_require_at_most(fabs(mean - 3.0), 5.0 * expected, "distance from the mean");
    /* an error from 16 blocks is itself known to 1 / sqrt(30); the largest of ten is taken */
    md_require_at_most(error, 1.8 * expected, "error");
    md_require_at_most(0.9 * expected, error, "expected error");
  }
}

static void one_value_has_no_error(void **state) {
  md_context *context = *state;
  double mean, error;
  MD_REQUIRE(context, md_blocked_mean(context, (double[]){0.25}, 1, &mean, &error));
  assert_true(mean == 0.25 && isinf(error));
  MD_REQUIRE(context, md_blocked_mean(context, (double[]){1.0, 3.0}, 2, &mean, &error));
  assert_true(mean == 2.0 && fabs(error - 1.0) < 1e-15);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(error_sees_autocorrelation),
    cmocka_unit_test(one_value_has_no_error),
};
MD_RUN_TESTS(tests)
