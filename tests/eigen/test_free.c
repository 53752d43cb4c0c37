/* Unit links: eigenvalues of -Deo Doe are sum_mu sin^2 p_mu, each as often as it is degenerate, 24
 * times and more on any lattice; p_t = (2 n + 1) pi / L with antiperiodic boundary. */
#include "dirac/eigen/eigen.h"
#include "lattice/gauge/gauge.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of both parities, rising: every momentum once. The caller frees it. */
static double *spectrum(const int extents[MD_DIMS], bool antiperiodic) {
  const int volume = extents[0] * extents[1] * extents[2] * extents[3];
  double *values = calloc((size_t)volume, sizeof *values);
  for (int i = 0; i < volume; i++) {
    int rest = i;
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const int twice = 2 * (rest % extents[mu]) + (mu == MD_T && antiperiodic ? 1 : 0);
      const double s = sin(twice * M_PI / extents[mu]);
      values[i] += s * s;
      rest /= extents[mu];
    }
  }
  qsort(values, (size_t)volume, sizeof *values, compare);
  return values;
}

static void check(md_context *context, const int d[MD_DIMS], bool antiperiodic, int modes,
                  int block) {
  const md_backend_request request = {.precision = MD_DOUBLE,
                                      .reconstruct = MD_RECONSTRUCT_18,
                                      .n_rhs = block,
                                      .antiperiodic = antiperiodic};
  const md_eigen_request wanted = {
      .modes = modes, .tolerance = 1e-9, .max_restarts = 500, .seed = 5};
  md_geometry *g = md_test_geometry(context, d[0], d[1], d[2], d[3], false);
  md_gauge gauge;
  md_dirac dirac;
  md_eigen_result found;
  MD_REQUIRE(context, md_gauge_create(context, g, &gauge));
  MD_REQUIRE(context, md_gauge_start_cold(context, &gauge));
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cpu_simd", &request, &dirac));
  MD_REQUIRE(context, md_eigen_lowest(context, &dirac, &wanted, &found));
  assert_true(found.converged);
  double *exact = spectrum(d, antiperiodic);
  /* Three colours; p and p + (pi, pi, pi, pi) are one mode of the even sites. */
  for (int i = 0; i < modes; i++)
    md_require_at_most(fabs(found.values[i] - exact[2 * (i / 3)]), 1e-12, "eigenvalue");
  free(exact);
  md_eigen_result_free(&found);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

/* All 48 of the lowest eigenvalue, and two of the next. */
static void test_whole_degeneracy(void **state) {
  check(*state, (int[MD_DIMS]){4, 2, 2, 4}, true, 50, 1);
  check(*state, (int[MD_DIMS]){4, 2, 2, 4}, true, 50, 16);
}

/* Copies of one eigenvalue where a search from one vector meets many others. */
static void test_copies(void **state) {
  check(*state, (int[MD_DIMS]){4, 6, 4, 8}, true, 3, 1);
  check(*state, (int[MD_DIMS]){4, 6, 4, 8}, true, 3, 16);
}

static void test_zero_modes(void **state) {
  check(*state, (int[MD_DIMS]){4, 2, 4, 4}, false, 26, 1);
  check(*state, (int[MD_DIMS]){4, 2, 4, 4}, false, 26, 16);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(test_whole_degeneracy),
                                    cmocka_unit_test(test_copies),
                                    cmocka_unit_test(test_zero_modes)};
MD_RUN_TESTS(tests)
