/* Eigenvalues and vectors of Hermitian matrices: H v = lambda v, v orthonormal, values rising, also
 * where they are degenerate; NaN is refused. */
#include "base/random_math.h"
#include "dirac/dense.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40 };

static void random_hermitian(int n, double complex *a) {
  md_random random = md_random_begin(7, 1, (uint64_t)n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double pair[2];
      md_random_normal(&random, pair);
      a[i * n + j] = pair[0] + (i == j ? 0.0 : I * pair[1]);
      a[j * n + i] = conj(a[i * n + j]);
    }
}

/* Largest entry of H v_i - lambda_i v_i and of <v_i, v_j> - delta_ij. */
static double defect(int n, const double complex *h, const double *values,
                     const double complex *v) {
  double largest = 0.0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double complex image = -values[i] * v[i * n + j], product = i == j ? -1.0 : 0.0;
      for (int k = 0; k < n; k++) {
        image += h[j * n + k] * v[i * n + k];
        product += conj(v[i * n + k]) * v[j * n + k];
      }
      largest = fmax(largest, fmax(cabs(image), cabs(product)));
    }
  return largest;
}

static void check(int n, const double complex *h) {
  double complex a[MOST * MOST], v[MOST * MOST];
  double values[MOST];
  memcpy(a, h, (size_t)(n * n) * sizeof *a);
  assert_true(md_hermitian_eigen(n, a, values, v));
  md_require_at_most(defect(n, h, values, v), 2e-13, "defect of eigenvectors");
  for (int i = 1; i < n; i++) assert_true(values[i] >= values[i - 1]);
}

static void test_random(void **state) {
  (void)state;
  const int sizes[] = {1, 2, 3, 17, MOST};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    double complex h[MOST * MOST];
    random_hermitian(sizes[s], h);
    check(sizes[s], h);
  }
}

/* 1 - 2 u u^H: the eigenvalue -1 once, 1 in all other directions. */
static void test_degenerate(void **state) {
  (void)state;
  enum { N = 12 };
  double complex h[N * N], v[N * N];
  double values[N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      h[i * N + j] = (i == j ? 1.0 : 0.0) - 2.0 / N * cexp(I * 0.7 * (i * i - j * j));
  check(N, h);
  assert_true(md_hermitian_eigen(N, h, values, v));
  md_require_at_most(fabs(values[0] + 1.0), 1e-14, "reflected direction");
  for (int i = 1; i < N; i++) md_require_at_most(fabs(values[i] - 1.0), 1e-14, "the others");
}

static void test_not_finite(void **state) {
  (void)state;
  double complex h[4] = {1.0, NAN, NAN, 1.0}, v[4];
  double values[2];
  assert_false(md_hermitian_eigen(2, h, values, v));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),
                                     cmocka_unit_test(test_degenerate),
                                     cmocka_unit_test(test_not_finite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
