/* The exact accumulator: results that plain summation gets wrong, and independence of the order. */
#include "base/random_math.h"
#include "lattice/fields/sum.h"
#include "support.h"

#include <float.h>
#include <math.h>

static double sum_of(md_context *context, const double *values, int count) {
  md_sum sum = {0};
  double result;
  for (int i = 0; i < count; i++)
    if (i % context->ranks == context->rank) md_sum_add(&sum, values[i]);
  MD_REQUIRE(context, md_sum_finish(context, &sum, 1, &result));
  return result;
}

static void cancellation_is_exact(void **state) {
  const double a[] = {1e300, 1.0, -1e300}, b[] = {0x1p-1074, 1e308, -1e308}, c[] = {-3.5, 1.25};
  const double d[] = {-1e-300, -2.0, 1e-300}, e[] = {0.0};
  assert_true(sum_of(*state, a, 3) == 1.0);
  assert_true(sum_of(*state, b, 3) == 0x1p-1074);
  assert_true(sum_of(*state, c, 2) == -2.25);
  assert_true(sum_of(*state, d, 3) == -2.0);
  assert_true(sum_of(*state, e, 1) == 0.0);
}

/* Of either sign, a little or far apart, or nothing: as sums over ranks round. */
static void two_round_alike(void **state) {
  md_random random = md_random_begin(9, 0, 0);
  for (int i = 0; i < 4000; i++) {
    const double high = ldexp(md_random_next_uniform(&random) - 0.5, i % 90 - 45);
    const double low =
        i % 10 ? ldexp(high * (md_random_next_uniform(&random) - 0.5), -(i % 130)) : 0.0;
    const double both[] = {high, low}, sum = sum_of(*state, both, 2);
    assert_true(md_sum_of_two(high, low) == sum && md_sum_of_two(low, high) == sum);
    assert_true(md_sum_of_two(high, -high) == 0.0);
  }
  assert_true(isnan(md_sum_of_two(NAN, 1.0)) && isnan(md_sum_of_two(1.0, NAN)));
}

static void one_value_comes_back(void **state) {
  const double values[] = {
      DBL_MAX, -DBL_MAX, DBL_MIN, -0x1p-1074, 0.1, -1.0 / 3.0, 0x1.fffffffffffffp52};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    assert_true(sum_of(*state, &values[i], 1) == values[i]);
}

static void order_does_not_matter(void **state) {
  enum { COUNT = 4000 };
  static double values[COUNT], turned[COUNT];
  md_random random = md_random_begin(7, 0, 0);
  for (int i = 0; i < COUNT; i++)
    values[i] = ldexp(md_random_next_uniform(&random) - 0.5,
                      (int)(200 * md_random_next_uniform(&random)) - 100);
  for (int i = 0; i < COUNT; i++) turned[i] = values[(i * 1789 + 13) % COUNT];
  const double a = sum_of(*state, values, COUNT), b = sum_of(*state, turned, COUNT);
  assert_true(a == b);
  long double plain = 0.0L;
  for (int i = 0; i < COUNT; i++) plain += values[i];
  assert_true(fabs(a - (double)plain) <= 1e-13 * fabs(a));
}

static void not_a_number_is_seen(void **state) {
  const double a[] = {1.0, NAN, 2.0}, b[] = {INFINITY, -INFINITY};
  assert_true(isnan(sum_of(*state, a, 3)));
  assert_true(isnan(sum_of(*state, b, 2)));
}

/* Limbs that are nearly full on every rank do not overflow in the sum over ranks. */
static void full_limbs_are_carried(void **state) {
  enum { LIMB = 40 };
  const md_context *context = *state;
  md_sum sum = {.limb = {[LIMB] = INT64_C(7) << 59}};
  double result;
  sum.terms = 1 << 29;
  MD_REQUIRE(*state, md_sum_finish(*state, &sum, 1, &result));
  assert_true(result == ldexp(7.0 * context->ranks, 59 + 32 * LIMB - 1074));
}

static void merging_keeps_all(void **state) {
  md_sum one = {0}, other = {0};
  double result;
  md_sum_add(&one, 1e300);
  md_sum_add(&other, 1.0);
  md_sum_add(&other, -1e300);
  md_sum_merge(&one, &other);
  MD_REQUIRE(*state, md_sum_finish(*state, &one, 1, &result));
  assert_true(result == ((const md_context *)*state)->ranks);
  one = other = (md_sum){0};
  md_sum_add(&one, 1.0);
  md_sum_add(&other, INFINITY);
  md_sum_merge(&one, &other);
  MD_REQUIRE(*state, md_sum_finish(*state, &one, 1, &result));
  assert_true(isnan(result));
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(cancellation_is_exact), cmocka_unit_test(one_value_comes_back),
    cmocka_unit_test(order_does_not_matter), cmocka_unit_test(not_a_number_is_seen),
    cmocka_unit_test(two_round_alike),       cmocka_unit_test(full_limbs_are_carried),
    cmocka_unit_test(merging_keeps_all),
};
MD_RUN_TESTS(tests)
