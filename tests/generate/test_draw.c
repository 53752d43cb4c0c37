/* md_subgroup_draw_first against the moments of sqrt(1 - x^2) exp(z x):
 *   <x> = I_2(z) / I_1(z),   <1 - x^2> = 3 I_2(z) / (z I_1(z)). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "lattice/gauge/heatbath_math.h"

/* (2/z)^n I_n(z) n!, by its power series. */
static double bessel_scaled(int n, double z) {
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 400; k++) sum += term *= 0.25 * z * z / k / (k + n);
  return sum;
}

static void moments_are_analytic(void **state) {
  (void)state;
  enum { DRAWS = 200000 };
  static const double values[] = {0.0, 1e-9, 0.3, 0.999, 1.0, 2.5, 8.0, 30.0, 200.0};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    const double z = values[i], ratio = bessel_scaled(2, z) / bessel_scaled(1, z);
    const double mean = 0.25 * z * ratio, rest = 0.75 * ratio; /* <1 - x^2> */
    const double variance = fmax(1.0 - rest - mean * mean, 0.0);
    double x_sum = 0.0, rest_sum = 0.0, rest_square = 0.0;
    md_random random = md_random_begin(3, 0, i);
    for (int k = 0; k < DRAWS; k++) {
      const double x = md_subgroup_draw_first(&random, z);
      assert_true(x >= -1.0 && x <= 1.0);
      x_sum += x / DRAWS;
      rest_sum += (1.0 - x * x) / DRAWS;
      rest_square += (1.0 - x * x) * (1.0 - x * x) / DRAWS;
    }
    const double rest_variance = rest_square - rest_sum * rest_sum;
    assert_true(fabs(x_sum - mean) <= 5.0 * sqrt(variance / DRAWS));
    assert_true(fabs(rest_sum - rest) <= 5.0 * sqrt(rest_variance / DRAWS));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(moments_are_analytic)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
