/* The filter on all eigenvectors of a small lattice: f(A) v = T_d(x(lambda)) / T_d(x(0)) v, inside
 * the window and below it. */
#include "dirac/eigen/basis.h"
#include "dirac/eigen/eigen.h"
#include "lattice/fields/linear.h"
#include "support.h"

#include <math.h>

/* Chebyshev's polynomial at any x. */
static double chebyshev(int degree, double x) {
  if (fabs(x) <= 1.0) return cos(degree * acos(x));
  return (x < 0.0 && degree % 2 ? -1.0 : 1.0) * cosh(degree * acosh(fabs(x)));
}

static double expected(const md_eigen_filter *f, double value) {
  const double centre = 0.5 * (f->high + f->low), half = 0.5 * (f->high - f->low);
  return chebyshev(f->degree, (value - centre) / half) / chebyshev(f->degree, -centre / half);
}

static void check(md_context *context, md_operator *a, md_eigen_result *modes,
                  const md_eigen_filter *filter) {
  md_eigen_scratch scratch;
  md_field out;
  double norm2, largest = 0.0;
  MD_REQUIRE(context, md_eigen_scratch_create(context, a, &scratch));
  MD_REQUIRE(context, md_operator_field(context, a, &out));
  for (int i = 0; i < modes->modes; i++) {
    const double minus = -expected(filter, modes->values[i]);
    MD_REQUIRE(context,
               md_eigen_filter_apply(context, a, filter, &scratch, &out, &modes->vectors[i]));
    md_linear_axpy(&minus, &modes->vectors[i], &out);
    MD_REQUIRE(context, md_linear_norm2(context, &out, NULL, &norm2));
    largest = fmax(largest, sqrt(norm2));
  }
  md_require_at_most(largest, 1e-11, "filtered vector");
  md_field_destroy(&out);
  md_eigen_scratch_destroy(&scratch);
}

static void test_filter(void **state) {
  md_context *context = *state;
  const md_backend_request request = {.precision = MD_DOUBLE, .n_rhs = 1, .antiperiodic = true};
  const md_eigen_request all = {.modes = 48, .tolerance = 1e-8, .max_restarts = 100};
  md_geometry *g = md_test_geometry(context, 2, 2, 2, 4, false);
  md_gauge gauge;
  md_dirac dirac;
  md_operator a;
  md_eigen_result modes;
  md_test_random_gauge(context, g, 3, &gauge);
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cpu_ref", &request, &dirac));
  MD_REQUIRE(context, md_eigen_lowest(context, &dirac, &all, &modes));
  assert_true(modes.converged);
  const md_eigen_filter filters[] = {
      {1, 0.0, 16.0}, {2, 1.0, 16.0}, {7, 2.0, 16.0}, {30, 0.5, 16.0}};
  MD_REQUIRE(context, md_normal_create(context, &dirac, 0.0, &a));
  for (int f = 0; f < 4; f++) check(context, &a, &modes, &filters[f]);
  md_operator_destroy(&a);
  const md_eigen_filter chosen = md_eigen_filter_for(0.16, 16.0);
  assert_int_equal(chosen.degree, 20);
  assert_int_equal(md_eigen_filter_for(5.0, 16.0).degree, 1);
  md_eigen_result_free(&modes);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(test_filter)};
MD_RUN_TESTS(tests)
