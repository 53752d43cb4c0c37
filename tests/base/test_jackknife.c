/* Jackknife and autocorrelation on series of known error: x' = a x + sqrt(1 - a^2) normal deviate
 * has variance 1, autocorrelation time (1 + a) / (1 - a) / 2 and the error sqrt(2 tau / n) of the
 * mean of n. */
#include "base/random_math.h"
#include "base/statistics.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

enum { COUNT = 8192 };

static void make_series(double a, uint64_t key, double *values) {
  md_random random = md_random_begin(11, 0, key);
  double x = 0.0, normal[2];
  for (int k = -500; k < COUNT; k++) {
    md_random_normal(&random, normal);
    x = a * x + sqrt(1.0 - a * a) * normal[0];
    if (k >= 0) values[k] = 2.0 + x;
  }
}

static void error_of_a_mean(void **state) {
  (void)state;
  static const double memory[] = {0.0, 0.5, 0.8};
  for (int k = 0; k < 3; k++) {
    const double tau = 0.5 * (1.0 + memory[k]) / (1.0 - memory[k]);
    const double expected = sqrt(2.0 * tau / COUNT);
    double values[COUNT], mean, found, found_error;
    double *samples = malloc(COUNT * sizeof *samples);
    make_series(memory[k], (uint64_t)k, values);
    for (int width = 1; width <= 64; width *= 64) {
      const int bins = md_jackknife_bins(COUNT, width);
      assert_int_equal(bins, COUNT / width);
      md_jackknife_means(values, COUNT, 1, bins, &mean, samples);
      md_require_at_most(fabs(mean - 2.0), 5.0 * expected, "mean");
      /* An error from B bins is known to 1 / sqrt(2 B); single measurements see no memory, bins of
       * 64 lack about tau / 64 of the variance. */
      const double want = width == 1 ? sqrt(1.0 / COUNT) : expected;
      const double room = 5.0 * sqrt(0.5 / bins * (width == 1 ? 2.0 * tau : 1.0)) + 0.07;
      md_require_at_most(fabs(md_jackknife_error(samples, 1, bins) / want - 1.0), room, "error");
    }
    md_autocorrelation_time(values, COUNT, &found, &found_error);
    md_require_at_most(fabs(found - tau), 5.0 * found_error, "autocorrelation time");
    md_require_at_most(found_error, 0.15 * tau, "its error");
    free(samples);
  }
}

/* By hand: leaving one out of {1, 2, 4, 7} means 13/3, 4, 10/3, 7/3; the error of a mean of single
 * measurements is sqrt(sum (x - mean)^2 / (n (n - 1))). Bins of unequal length keep all values. */
static void small_numbers(void **state) {
  (void)state;
  const double values[] = {1, 10, 2, 20, 4, 40, 7, 70};
  double means[2], samples[8];
  md_jackknife_means(values, 4, 2, 4, means, samples);
  assert_true(means[0] == 3.5 && means[1] == 35.0);
  assert_true(fabs(samples[0] - 13.0 / 3.0) < 1e-15 && fabs(samples[7] - 70.0 / 3.0) < 1e-14);
  assert_true(fabs(md_jackknife_error(samples, 2, 4) - sqrt(21.0 / 12.0)) < 1e-14);
  assert_true(fabs(md_jackknife_error(samples + 1, 2, 4) - 10.0 * sqrt(21.0 / 12.0)) < 1e-13);
  md_jackknife_means(values, 8, 1, 3, means, samples);
  assert_true(fabs(samples[0] - (20 + 4 + 40 + 7 + 70 + 2) / 6.0) < 1e-14);
  assert_true(isnan(md_jackknife_error(samples, 1, 1)));
  assert_int_equal(md_jackknife_bins(3, 5), 1);
  double tau, error;
  md_autocorrelation_time((double[]){1, 1, 1, 1, 1}, 5, &tau, &error);
  assert_true(isnan(tau) && isnan(error));
  for (int count = 6; count <= 7; count++) { /* whose mean, as rounded, is not 0.1 */
    md_autocorrelation_time((double[]){0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, count, &tau, &error);
    assert_true(isnan(tau) && isnan(error));
  }
}

/* cosh has one mass everywhere; what cannot fall as cosh has none. */
static void mass_of_a_cosh(void **state) {
  (void)state;
  enum { T = 12 };
  double correlator[T], mass[T];
  for (int t = 0; t < T; t++) correlator[t] = 3.0 * cosh(0.7 * (t - T / 2));
  md_effective_mass(correlator, T, mass);
  assert_true(isnan(mass[0]));
  for (int t = 1; t < T; t++) md_require_at_most(fabs(mass[t] - 0.7), 1e-13, "mass");
  correlator[5] = 100.0;
  md_effective_mass(correlator, T, mass);
  assert_true(isnan(mass[5]) && mass[4] > 0.7);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(error_of_a_mean),
    cmocka_unit_test(small_numbers),
    cmocka_unit_test(mass_of_a_cosh),
};
MD_RUN_TESTS(tests)
