/* Projection to U(3) of matrices whose singular values are known, and the exponential of stout
 * links. */
#include "base/random_math.h"
#include "lattice/gauge/project_math.h"
#include "support.h"

#include <float.h>

enum { MATRICES = 200 };

static double distance(const double a[18], const double b[18]) {
  double sum = 0.0;
  for (int k = 0; k < 18; k++) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sqrt(sum);
}

static double deviation_from_unitary(const double u[18]) {
  double product[18], one[18];
  md_su3_multiply_adjoint(product, u, u);
  md_su3_one(one);
  return distance(product, one);
}

/* v = a diag(s) b times `size`, w = a b, for random unitary a and b: not in SU(3). */
static void draw(uint64_t seed, const double s[3], double size, double v[18], double w[18]) {
  md_random random = md_random_begin(seed, 7, 0);
  double a[18], b[18], scaled[18];
  md_su3_random(&random, a);
  md_su3_random(&random, b);
  for (int i = 0; i < 18; i += 6) { /* a phase on the first column of a */
    const double re = a[i], im = a[i + 1];
    a[i] = 0.6 * re - 0.8 * im;
    a[i + 1] = 0.6 * im + 0.8 * re;
  }
  for (int k = 0; k < 18; k++) scaled[k] = size * s[k % 6 / 2] * a[k];
  md_su3_multiply(v, scaled, b);
  md_su3_multiply(w, a, b);
}

/* The projection moves by eps * s1 / s3 when v is rounded, s1 >= s2 >= s3 (the phase of its
 * determinant is that of v's); the analytic way loses eps * (s1 / s3)^2. */
static void hold(const double s[3], double size, md_projection_way expected) {
  const double bound = 80.0 * DBL_EPSILON * s[0] / s[2];
  const double loss = bound * s[0] / s[2];
  const bool analytic = expected == MD_PROJECT_ANALYTIC;
  for (uint64_t seed = 1; seed <= MATRICES; seed++) {
    double v[18], expected_w[18], w[18];
    draw(seed, s, size, v, expected_w);
    assert_int_equal(md_project(v, w), expected);
    md_require_at_most(distance(w, expected_w), analytic ? loss : bound, "projection, known");
    md_require_at_most(deviation_from_unitary(w), analytic ? loss : 40.0 * DBL_EPSILON,
                       "projection is unitary");
    assert_int_equal(md_project_singular_values(v, w), true);
    md_require_at_most(distance(w, expected_w), bound, "singular values against known");
    md_require_at_most(deviation_from_unitary(w), 40.0 * DBL_EPSILON, "unitary by them");
  }
}

static void well_conditioned(void **state) {
  (void)state;
  hold((double[]){1.0, 0.8, 0.7}, 1.0, MD_PROJECT_ANALYTIC);
  hold((double[]){1.3, 0.9, 0.3}, 0.1, MD_PROJECT_ANALYTIC);
}

static void degenerate(void **state) {
  (void)state;
  hold((double[]){1.0, 1.0, 1.0}, 1.0, MD_PROJECT_ANALYTIC);
  hold((double[]){1.0, 1.0, 0.5}, 1.0, MD_PROJECT_ANALYTIC);
  hold((double[]){1.0, 0.5, 0.5}, 1.0, MD_PROJECT_ANALYTIC);
  hold((double[]){1.0, 1.0 - 1e-9, 0.5 + 1e-12}, 1.0, MD_PROJECT_ANALYTIC);
  hold((double[]){1.0, 1e-6, 1e-6}, 1.0, MD_PROJECT_SINGULAR_VALUES);
}

static void ill_conditioned(void **state) {
  (void)state;
  hold((double[]){1.0, 0.5, 1e-3}, 1.0, MD_PROJECT_SINGULAR_VALUES);
  hold((double[]){1.0, 0.5, 1e-8}, 1.0, MD_PROJECT_SINGULAR_VALUES);
  hold((double[]){1.0, 1e-4, 1e-8}, 1.0, MD_PROJECT_SINGULAR_VALUES);
  hold((double[]){1.0, 1e-8, 1e-8}, 1.0, MD_PROJECT_SINGULAR_VALUES);
}

/* Close to where the way changes, the analytic one is still good to its square of conditions. */
static void at_the_border(void **state) {
  (void)state;
  const double s[3] = {1.0, 0.5, 1.05 * sqrt(MD_PROJECT_RATIO)};
  for (uint64_t seed = 1; seed <= MATRICES; seed++) {
    double v[18], expected[18], w[18];
    draw(seed, s, 1.0, v, expected);
    assert_int_equal(md_project(v, w), MD_PROJECT_ANALYTIC);
    md_require_at_most(distance(w, expected), 20.0 * DBL_EPSILON / MD_PROJECT_RATIO, "border");
  }
}

static void any_size(void **state) {
  (void)state;
  hold((double[]){1.0, 0.8, 0.7}, 1e-70, MD_PROJECT_ANALYTIC);
  hold((double[]){1.0, 0.8, 0.7}, 1e70, MD_PROJECT_ANALYTIC);
  hold((double[]){1.0, 0.8, 0.7}, 1e-200, MD_PROJECT_SINGULAR_VALUES); /* squares are lost */
  hold((double[]){1.0, 0.8, 0.7}, 1e200, MD_PROJECT_SINGULAR_VALUES);
}

static void singular(void **state) {
  (void)state;
  double v[18] = {0}, w[18];
  assert_int_equal(md_project(v, w), MD_PROJECT_SINGULAR);
  v[0] = v[8] = 1.0;
  assert_int_equal(md_project(v, w), MD_PROJECT_SINGULAR);
  for (int k = 0; k < 18; k++) {
    md_su3_one(v);
    v[k] = NAN;
    assert_int_equal(md_project(v, w), MD_PROJECT_SINGULAR);
    v[k] = INFINITY;
    assert_int_equal(md_project(v, w), MD_PROJECT_SINGULAR);
  }
}

static void determinant_goes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= MATRICES; seed++) {
    double v[18], w[18], det[2];
    draw(seed, (double[]){1.0, 1.0, 1.0}, 1.0, v, w);
    md_remove_determinant(w);
    md_su3_determinant(w, det);
    md_require_at_most(fabs(det[0] - 1.0) + fabs(det[1]), 20.0 * DBL_EPSILON, "determinant");
  }
}

/* exp(i g diag(p) g^dag) = g diag(exp(i p)) g^dag */
static void exponential(void **state) {
  (void)state;
  static const double phases[][3] = {
      {0.1, 0.2, -0.3}, {0.0, 0.0, 0.0}, {1e-9, -1e-9, 0.0}, {3.0, -1.0, -2.0}, {40, 1, -41}};
  for (size_t n = 0; n < sizeof phases / sizeof *phases; n++)
    for (uint64_t seed = 1; seed <= MATRICES; seed++) {
      md_random random = md_random_begin(seed, 8, 0);
      double g[18], left[18], a[18], expected[18], w[18], largest = 1.0;
      md_su3_random(&random, g);
      for (int k = 0; k < 18; k += 2) { /* g i p */
        const double p = phases[n][k % 6 / 2];
        left[k] = -p * g[k + 1];
        left[k + 1] = p * g[k];
        largest = fmax(largest, fabs(p));
      }
      md_su3_multiply_adjoint(a, left, g);
      for (int k = 0; k < 18; k += 2) {
        const double c = cos(phases[n][k % 6 / 2]), s = sin(phases[n][k % 6 / 2]);
        left[k] = c * g[k] - s * g[k + 1];
        left[k + 1] = c * g[k + 1] + s * g[k];
      }
      md_su3_multiply_adjoint(expected, left, g);
      md_exponentiate(a, w);
      md_require_at_most(distance(w, expected), 100.0 * DBL_EPSILON * largest, "exponential");
    }
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(well_conditioned), cmocka_unit_test(degenerate),
      cmocka_unit_test(ill_conditioned),  cmocka_unit_test(at_the_border),
      cmocka_unit_test(any_size),         cmocka_unit_test(singular),
      cmocka_unit_test(determinant_goes), cmocka_unit_test(exponential),
  };
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
