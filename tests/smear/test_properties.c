/* What fat and long links must be whatever the lattice: known on a cold one, gauge covariant. */
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/su3.h"
#include "lattice/halo/halo.h"
#include "smear_support.h"

#include <float.h>

static const double epsilons[] = {0.0, -0.3, 0.7};
enum { EPSILONS = sizeof epsilons / sizeof *epsilons };

/* Largest distance of a component from factor * 1. */
static double from_unit(md_context *context, const md_gauge *gauge, double factor) {
  double most = 0.0;
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < gauge->geometry->sites; i++) {
      double u[18];
      md_gauge_get(gauge, k % 2, k / 2, i, u);
      for (int c = 0; c < 18; c++) {
        const double distance = fabs(u[c] - (c % 8 == 0 ? factor : 0.0));
        if (!(distance <= most)) most = distance;
      }
    }
  md_maximum(context, &most, 1);
  return most;
}

static void cold(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 4, false);
  md_gauge thin;
  MD_REQUIRE(context, md_gauge_create(context, geometry, &thin));
  md_smear_request request = smear_request("hisq");
  for (int e = 0; e < EPSILONS; e++) {
    request.naik_epsilon = epsilons[e];
    smear_links made = smear_make(context, &thin, &request);
    md_require_at_most(from_unit(context, &made.fat, (9.0 + epsilons[e]) / 8.0), 8 * DBL_EPSILON,
                       "X of a cold lattice");
    md_require_at_most(from_unit(context, &made.long_links, -(1.0 + epsilons[e]) / 24.0),
                       DBL_EPSILON, "L of a cold lattice");
    smear_free(&made);
  }
  static const char *const unit[] = {"fat7", "ape", "stout"};
  for (int a = 0; a < 3; a++) {
    request = smear_request(unit[a]);
    smear_links links = smear_make(context, &thin, &request);
    md_require_at_most(from_unit(context, &links.fat, 1.0), 8 * DBL_EPSILON, unit[a]);
    smear_free(&links);
  }
  request = smear_request("asqtad");
  smear_links links = smear_make(context, &thin, &request); /* 5/8 + 6/16 + 24/64 + 48/384 - 6/16 */
  md_require_at_most(from_unit(context, &links.fat, 9.0 / 8.0), 8 * DBL_EPSILON, "asqtad X");
  md_require_at_most(from_unit(context, &links.long_links, -1.0 / 24.0), DBL_EPSILON, "asqtad L");
  smear_free(&links);
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
}

/* Every matrix of direction mu becomes that of the site one step along mu. */
static void step_forward(md_context *context, md_gauge *g) {
  md_gauge from;
  MD_REQUIRE(context, md_gauge_create(context, g->geometry, &from));
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < g->geometry->sites; i++) {
      double u[18];
      md_gauge_get(g, k % 2, k / 2, i, u);
      md_gauge_set(&from, k % 2, k / 2, i, u);
    }
  MD_REQUIRE(context, md_gauge_exchange(context, &from));
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < g->geometry->sites; i++) {
      double u[18];
      md_gauge_get(&from, 1 - k % 2, k / 2, g->geometry->neighbour[k % 2][k / 2][i], u);
      md_gauge_set(g, k % 2, k / 2, i, u);
    }
  md_gauge_destroy(&from);
}

/* links(x) = g(x) links(x) end(x)^dag */
static void turn(md_gauge *links, const md_gauge *g, const md_gauge *end) {
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < links->geometry->sites; i++) {
      double u[18], left[18], right[18], product[18];
      md_gauge_get(links, k % 2, k / 2, i, u);
      md_gauge_get(g, k % 2, k / 2, i, left);
      md_gauge_get(end, k % 2, k / 2, i, right);
      md_su3_multiply(product, left, u);
      md_su3_multiply_adjoint(u, product, right);
      md_gauge_set(links, k % 2, k / 2, i, u);
    }
}

static void covariant(md_context *context, const char *action, double tolerance) {
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 8, false);
  md_gauge thin, g, end;
  md_field rotation[MD_PARITIES];
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_LINK_REALS, 1, false, false};
  md_test_random_gauge(context, geometry, 17, &thin);
  MD_REQUIRE(context, md_gauge_create(context, geometry, &g));
  MD_REQUIRE(context, md_gauge_create(context, geometry, &end));
  for (int p = 0; p < MD_PARITIES; p++)
    MD_REQUIRE(context, md_field_create(context, geometry, &shape, p, &rotation[p]));
  const md_smear_request request = smear_request(action);
  smear_links before = smear_make(context, &thin, &request);
  md_test_transform(context, &thin, 99, rotation);
  smear_links after = smear_make(context, &thin, &request);
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < geometry->sites; i++) {
      double u[18];
      md_field_get(&rotation[k % 2], i, 0, u);
      md_gauge_set(&g, k % 2, k / 2, i, u);
      md_gauge_set(&end, k % 2, k / 2, i, u);
    }
  step_forward(context, &end);
  turn(&before.fat, &g, &end);
  md_require_at_most(md_test_local_difference(context, &before.fat, &after.fat), tolerance, action);
  if (before.has_long) {
    step_forward(context, &end);
    step_forward(context, &end);
    turn(&before.long_links, &g, &end);
    md_require_at_most(md_test_local_difference(context, &before.long_links, &after.long_links),
                       tolerance, action);
  }
  smear_free(&before);
  smear_free(&after);
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&rotation[p]);
  md_gauge_destroy(&thin);
  md_gauge_destroy(&g);
  md_gauge_destroy(&end);
  md_geometry_destroy(geometry);
}

/* A hot lattice has the worst sums to project: the analytic way may lose eps / ratio. */
static void covariance(void **state) {
  covariant(*state, "asqtad", 100 * DBL_EPSILON);
  covariant(*state, "fat7", 100 * DBL_EPSILON); /* V of hisq */
  covariant(*state, "hisq", DBL_EPSILON / MD_PROJECT_RATIO);
  covariant(*state, "ape", DBL_EPSILON / MD_PROJECT_RATIO);
  covariant(*state, "stout", 100 * DBL_EPSILON);
}

static void smeared_are_unitary(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 8, false);
  md_gauge thin;
  md_test_random_gauge(context, geometry, 21, &thin);
  static const char *const unitary[] = {"ape", "stout"};
  for (int a = 0; a < 2; a++) {
    md_smear_request request = smear_request(unitary[a]);
    request.steps = 3;
    smear_links links = smear_make(context, &thin, &request);
    md_gauge_observables observed;
    MD_REQUIRE(context, md_gauge_observe(context, &links.fat, &observed));
    md_require_at_most(observed.unitarity_deviation, DBL_EPSILON / MD_PROJECT_RATIO, unitary[a]);
    smear_free(&links);
  }
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(cold, context),
                                     cmocka_unit_test_prestate(covariance, context),
                                     cmocka_unit_test_prestate(smeared_are_unitary, context)};
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
