/* Algebra of lattice/gauge/su3.h: identities between its functions on general and on SU(3)
 * matrices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random_math.h"
#include "lattice/gauge/su3.h"

static const double rounding = 0x1p-53;

static void draw(md_random *random, double a[18]) {
  for (int k = 0; k < 18; k++) a[k] = 2.0 * md_random_next_uniform(random) - 1.0;
}

static double distance(const double a[18], const double b[18]) {
  double largest = 0.0;
  for (int k = 0; k < 18; k++)
    if (!(fabs(a[k] - b[k]) <= largest)) largest = fabs(a[k] - b[k]);
  return largest;
}

static void products_agree_with_adjoint(void **state) {
  (void)state;
  md_random random = md_random_begin(1, 1, 0);
  double a[18], b[18], c[18], d[18], e[18];
  draw(&random, a);
  draw(&random, b);
  md_su3_multiply_adjoint(c, a, b);
  md_su3_adjoint(d, b);
  md_su3_multiply(e, a, d);
  assert_true(distance(c, e) <= 8 * rounding);
  assert_true(fabs(md_su3_trace(c) - md_su3_trace_adjoint(a, b)) <= 40 * rounding);
  md_su3_adjoint_multiply(c, a, b);
  md_su3_adjoint(d, a);
  md_su3_multiply(e, d, b);
  assert_true(distance(c, e) <= 8 * rounding);
}

/* (i, -i, 1) on the diagonal after a cyclic permutation: the element that an index or sign slip
 * would move. */
static void product_of_known_matrices(void **state) {
  (void)state;
  double phases[18] = {0}, cycle[18] = {0}, product[18], expected[18] = {0};
  phases[1] = 1.0, phases[9] = -1.0, phases[16] = 1.0;
  cycle[2] = cycle[10] = cycle[12] = 1.0; /* row i has its 1 in column i + 1 */
  expected[3] = 1.0, expected[11] = -1.0, expected[12] = 1.0;
  md_su3_multiply(product, phases, cycle);
  assert_true(distance(product, expected) == 0.0);
}

static void determinant_is_multiplicative(void **state) {
  (void)state;
  md_random random = md_random_begin(1, 2, 0);
  double a[18], b[18], c[18], x[2], y[2], z[2];
  draw(&random, a);
  draw(&random, b);
  md_su3_multiply(c, a, b);
  md_su3_determinant(a, x);
  md_su3_determinant(b, y);
  md_su3_determinant(c, z);
  assert_true(fabs(z[0] - (x[0] * y[0] - x[1] * y[1])) <= 500 * rounding);
  assert_true(fabs(z[1] - (x[0] * y[1] + x[1] * y[0])) <= 500 * rounding);
}

static void assert_special_unitary(const double u[18], double tolerance) {
  double one[18], product[18], det[2];
  md_su3_one(one);
  md_su3_multiply_adjoint(product, u, u);
  assert_true(distance(product, one) <= tolerance);
  md_su3_adjoint_multiply(product, u, u);
  assert_true(distance(product, one) <= tolerance);
  md_su3_determinant(u, det);
  assert_true(fabs(det[0] - 1.0) <= tolerance && fabs(det[1]) <= tolerance);
}

static void reunitarised_is_special_unitary_and_near(void **state) {
  (void)state;
  md_random random = md_random_begin(1, 3, 0);
  for (int i = 0; i < 100; i++) {
    double u[18], v[18], noise[18];
    md_su3_random(&random, u);
    assert_special_unitary(u, 16 * rounding);
    draw(&random, noise);
    for (int k = 0; k < 18; k++) v[k] = u[k] + 1e-6 * noise[k];
    md_su3_reunitarise(v);
    assert_special_unitary(v, 16 * rounding);
    assert_true(distance(u, v) <= 1e-5);
    for (int k = 12; k < 18; k++) v[k] = 0.0;
    md_su3_third_row(v);
    assert_special_unitary(v, 16 * rounding);
  }
}

/* Moments of the Haar measure: <|tr u|^2> = 1, <|tr u|^4> = 2, <(tr u)^3> = 1, and <|u_ij|^2> =
 * 1/3 for each element. */
static void random_is_uniform(void **state) {
  (void)state;
  enum { DRAWS = 100000 };
  double square = 0.0, fourth = 0.0, cube = 0.0, element[9] = {0};
  for (int i = 0; i < DRAWS; i++) {
    md_random random = md_random_begin(7, 4, (uint64_t)i);
    double u[18];
    md_su3_random(&random, u);
    const double re = u[0] + u[8] + u[16], im = u[1] + u[9] + u[17], norm = re * re + im * im;
    square += norm / DRAWS;
    fourth += norm * norm / DRAWS;
    cube += (re * re * re - 3.0 * re * im * im) / DRAWS;
    for (int k = 0; k < 9; k++)
      element[k] += (u[2 * k] * u[2 * k] + u[2 * k + 1] * u[2 * k + 1]) / DRAWS;
  }
  /* five standard errors; the variances are at most 1, 20, 6 and 1/18 */
  const double error = 5.0 / sqrt(DRAWS);
  assert_true(fabs(square - 1.0) <= error);
  assert_true(fabs(fourth - 2.0) <= sqrt(20.0) * error);
  assert_true(fabs(cube - 1.0) <= sqrt(6.0) * error);
  for (int k = 0; k < 9; k++) assert_true(fabs(element[k] - 1.0 / 3.0) <= 0.24 * error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_agree_with_adjoint),
      cmocka_unit_test(product_of_known_matrices),
      cmocka_unit_test(determinant_is_multiplicative),
      cmocka_unit_test(reunitarised_is_special_unitary_and_near),
      cmocka_unit_test(random_is_uniform),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
