/* Lowest modes on random links, one vector at a time and in blocks, against the whole spectrum of
 * the matrix that cpu_ref's operator makes of unit vectors, for actions; vectors are orthonormal;
 * requests that cannot be met are refused. */
#include "dirac/dense.h"
#include "dirac/eigen/eigen.h"
#include "lattice/fields/linear.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The spectrum of A = -Deo Doe; the caller frees it. */
static double *spectrum(md_context *context, md_dirac *dirac, int n) {
  double complex *a = calloc((size_t)n * (size_t)n, sizeof *a);
  double complex *vectors = calloc((size_t)n * (size_t)n, sizeof *vectors);
  double *values = calloc((size_t)n, sizeof *values);
  md_field in, out, work;
  MD_REQUIRE(context, md_dirac_field(context, dirac, MD_EVEN, &in));
  MD_REQUIRE(context, md_dirac_field(context, dirac, MD_EVEN, &out));
  MD_REQUIRE(context, md_dirac_field(context, dirac, MD_ODD, &work));
  for (int j = 0; j < n; j++) {
    double unit[MD_FERMION_REALS] = {0}, column[MD_FERMION_REALS];
    unit[2 * (j % 3)] = 1.0;
    md_linear_zero(&in);
    md_field_set(&in, j / 3, unit);
    MD_REQUIRE(context, md_dirac_mdag_m(context, dirac, 0.0, &out, &in, &work));
    for (int i = 0; i < n; i++) {
      md_field_get(&out, i / 3, 0, column);
      a[i * n + j] = column[2 * (i % 3)] + I * column[2 * (i % 3) + 1];
    }
  }
  assert_true(md_hermitian_eigen(n, a, values, vectors));
  md_field_destroy(&in);
  md_field_destroy(&out);
  md_field_destroy(&work);
  free(a);
  free(vectors);
  return values;
}

static void check_vectors(md_context *context, const md_eigen_result *result) {
  double *dots = calloc(2 * (size_t)result->modes, sizeof *dots), largest = 0.0;
  for (int i = 0; i < result->modes; i++) {
    MD_REQUIRE(context, md_linear_dots(context, result->modes, result->vectors, &result->vectors[i],
                                       NULL, dots));
    for (int k = 0; k < result->modes; k++)
      largest = fmax(largest, hypot(dots[2 * k] - (k == i), dots[2 * k + 1]));
  }
  md_require_at_most(largest, 1e-12, "vectors are not orthonormal");
  free(dots);
}

typedef struct problem {
  md_geometry *geometry;
  md_gauge links[MD_MOST_LINK_FIELDS];
  md_backend_request request;
} problem;

static problem set_up(md_context *context, md_action action, const int dims[MD_DIMS]) {
  problem p = {.request = {.precision = MD_DOUBLE,
                           .reconstruct = MD_RECONSTRUCT_18,
                           .n_rhs = 1,
                           .antiperiodic = true,
                           .action = action}};
  p.geometry = md_test_action_geometry(context, action, dims, false);
  md_test_random_links(context, p.geometry, action, 11, p.links);
  return p;
}

static void tear_down(problem *p) {
  md_test_destroy_links(p->request.action, p->links);
  md_geometry_destroy(p->geometry);
}

static void check(md_context *context, md_action action, const int dims[MD_DIMS], int modes,
                  int block) {
  problem p = set_up(context, action, dims);
  const int n = (int)md_eigen_unknowns(p.geometry, MD_FERMION_REALS);
  md_dirac reference, dirac;
  md_eigen_result result;
  MD_REQUIRE(context, md_dirac_create(context, p.links, "cpu_ref", &p.request, &reference));
  p.request.n_rhs = block;
  MD_REQUIRE(context, md_dirac_create(context, p.links, "cpu_simd", &p.request, &dirac));
  double *values = spectrum(context, &reference, n);
  const md_eigen_request request = {
      .modes = modes < 0 ? n : modes, .tolerance = 1e-8, .max_restarts = 200, .seed = 1};
  MD_REQUIRE(context, md_eigen_lowest(context, &dirac, &request, &result));
  assert_true(result.converged && !result.interrupted);
  assert_int_equal(result.modes, request.modes);
  assert_int_equal(result.below, request.modes);
  for (int i = 0; i < result.modes; i++) {
    md_require_at_most(fabs(result.values[i] - values[i]), 1e-11, "eigenvalue");
    md_require_at_most(result.residuals[i], request.tolerance, "residual");
    if (i > 0) assert_true(result.values[i] >= result.values[i - 1]);
  }
  check_vectors(context, &result);
  free(values);
  md_eigen_result_free(&result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&reference);
  tear_down(&p);
}

static void test_lowest(void **state) {
  check(*state, MD_ACTION_NAIVE, (int[MD_DIMS]){4, 4, 4, 4}, 12, 1);
  check(*state, MD_ACTION_NAIVE, (int[MD_DIMS]){4, 4, 4, 4}, 12, 16);
}

static void test_lowest_of_long_links(void **state) {
  check(*state, MD_ACTION_ASQTAD, (int[MD_DIMS]){4, 4, 4, 2}, 12, 1);
  check(*state, MD_ACTION_ASQTAD, (int[MD_DIMS]){4, 4, 4, 2}, 12, 3);
}

static void test_all(void **state) {
  check(*state, MD_ACTION_NAIVE, (int[MD_DIMS]){2, 2, 2, 4}, -1, 1);
  check(*state, MD_ACTION_NAIVE, (int[MD_DIMS]){2, 2, 2, 4}, -1, 16);
}

static void refused(md_context *context, md_dirac *dirac, int modes, const char *message) {
  const md_eigen_request request = {.modes = modes, .tolerance = 1e-8, .max_restarts = 1};
  md_eigen_result result;
  assert_int_equal(md_eigen_lowest(context, dirac, &request, &result), MD_INPUT);
  assert_string_equal(context->message, message);
  md_eigen_result_free(&result);
}

static void test_refusals(void **state) {
  md_context *context = *state;
  problem p = set_up(context, MD_ACTION_NAIVE, (int[MD_DIMS]){2, 2, 2, 4});
  md_dirac dirac;
  MD_REQUIRE(context, md_dirac_create(context, p.links, "cpu_ref", &p.request, &dirac));
  refused(context, &dirac, 0,
          "modes must lie in 1 to 48, three for each even site of the lattice, got 0");
  refused(context, &dirac, 49,
          "modes must lie in 1 to 48, three for each even site of the lattice, got 49");
  refused(context, &dirac, 10001, "one search finds 10000 modes at most, got 10001; ask for fewer");
  md_dirac_destroy(&dirac);
  p.request.precision = MD_SINGLE;
  MD_REQUIRE(context, md_dirac_create(context, p.links, "cpu_simd", &p.request, &dirac));
  refused(context, &dirac, 1, "modes are found in double, got an operator in single");
  md_dirac_destroy(&dirac);
  tear_down(&p);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(test_lowest),
                                    cmocka_unit_test(test_lowest_of_long_links),
                                    cmocka_unit_test(test_all), cmocka_unit_test(test_refusals)};
MD_RUN_TESTS(tests)
