/* Random numbers: the known answers of Philox4x64-10, streams that depend on seed, purpose and key,
 * and the moments of uniform and normal deviates. */
#include "base/random_math.h"
#include "support.h"

#include <math.h>

enum { DRAWS = 1 << 16 };

/* Counter and key zero: the first entry of philox4x64-10 in kat_vectors of Random123. Words are
 * handed out from the last of a block to the first. */
static void first_block_is_the_known_answer(void **state) {
  (void)state;
  static const uint64_t known[4] = {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b,
                                    0x7e68b68aec7ba23b};
  md_random random = md_random_begin(0, 0, 0);
  for (int i = 3; i >= 0; i--) assert_true(md_random_next_bits(&random) == known[i]);
}

static void every_argument_makes_another_stream(void **state) {
  (void)state;
  const uint64_t arguments[4][3] = {{1, 2, 3}, {4, 2, 3}, {1, 4, 3}, {1, 2, 4}};
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < a; b++) {
      md_random one = md_random_begin(arguments[a][0], arguments[a][1], arguments[a][2]);
      md_random other = md_random_begin(arguments[b][0], arguments[b][1], arguments[b][2]);
      for (int i = 0; i < 8; i++)
        assert_true(md_random_next_bits(&one) != md_random_next_bits(&other));
    }
}

/* |mean of f - expected| <= 5 standard errors, the variance of f given. */
static void check_mean(double sum, int count, double expected, double variance, const char *what) {
  md_require_at_most(fabs(sum / count - expected), 5.0 * sqrt(variance / count), what);
}

static void uniform_moments(void **state) {
  (void)state;
  md_random random = md_random_begin(9, 8, 7);
  double first = 0.0, second = 0.0, product = 0.0, before = 0.5;
  for (int i = 0; i < DRAWS; i++) {
    const double x = md_random_next_uniform(&random);
    assert_true(x > 0.0 && x < 1.0);
    first += x;
    second += x * x;
    product += (x - 0.5) * (before - 0.5);
    before = x;
  }
  check_mean(first, DRAWS, 0.5, 1.0 / 12.0, "<x>");
  check_mean(second, DRAWS, 1.0 / 3.0, 4.0 / 45.0, "<x^2>");
  check_mean(product, DRAWS, 0.0, 1.0 / 144.0, "neighbours");
}

/* <x> = 0, <x^2> = 1, <x^4> = 3, and the two of a pair are independent. */
static void normal_moments(void **state) {
  (void)state;
  md_random random = md_random_begin(6, 5, 4);
  double first = 0.0, second = 0.0, fourth = 0.0, product = 0.0, squares = 0.0;
  for (int i = 0; i < DRAWS; i++) {
    double x[2];
    md_random_normal(&random, x);
    for (int k = 0; k < 2; k++) {
      first += x[k];
      second += x[k] * x[k];
      fourth += x[k] * x[k] * x[k] * x[k];
    }
    product += x[0] * x[1];
    squares += x[0] * x[0] * x[1] * x[1];
  }
  check_mean(first, 2 * DRAWS, 0.0, 1.0, "<x>");
  check_mean(second, 2 * DRAWS, 1.0, 2.0, "<x^2>");
  check_mean(fourth, 2 * DRAWS, 3.0, 96.0, "<x^4>");
  check_mean(product, DRAWS, 0.0, 1.0, "<x y>");
  check_mean(squares, DRAWS, 1.0, 8.0, "<x^2 y^2>");
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(first_block_is_the_known_answer),
    cmocka_unit_test(every_argument_makes_another_stream),
    cmocka_unit_test(uniform_moments),
    cmocka_unit_test(normal_moments),
};
MD_RUN_TESTS(tests)
