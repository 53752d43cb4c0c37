/* Links that a file rounded, back onto SU(3): how far they move, that nothing else is done, and
 * that links which are no rounded ones are refused. */
#include "lattice/gauge/project.h"
#include "lattice/gauge/su3.h"
#include "smear_support.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void round_links(md_gauge *gauge) {
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < gauge->geometry->sites; i++) {
      double u[MD_LINK_REALS];
      md_gauge_get(gauge, k % 2, k / 2, i, u);
      for (int c = 0; c < MD_LINK_REALS; c++) u[c] = (float)u[c];
      md_gauge_set(gauge, k % 2, k / 2, i, u);
    }
}

static void rounded(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 8, true);
  md_gauge exact, gauge;
  md_gauge_observables observed;
  double change, again;
  md_test_random_gauge(context, geometry, 3, &exact);
  md_test_random_gauge(context, geometry, 3, &gauge);
  round_links(&gauge);
  MD_REQUIRE(context, md_gauge_exchange(context, &gauge));
  MD_REQUIRE(context, md_gauge_observe(context, &gauge, &observed));
  assert_true(observed.unitarity_deviation > 1e-8);
  MD_REQUIRE(context, md_gauge_reunitarize(context, "links", &gauge, &change));
  assert_true(change > 1e-9 && change < 3 * FLT_EPSILON);
  MD_REQUIRE(context, md_gauge_observe(context, &gauge, &observed));
  md_require_at_most(observed.unitarity_deviation, 100 * DBL_EPSILON, "deviation from SU(3)");
  md_require_at_most(md_test_gauge_difference(context, &gauge, &exact), 3 * FLT_EPSILON,
                     "distance from the links that were rounded, halos included");
  MD_REQUIRE(context, md_gauge_reunitarize(context, "links", &gauge, &again));
  md_require_at_most(again, 100 * DBL_EPSILON, "change by a second projection");
  md_gauge_destroy(&exact);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

/* factor: of one link on one rank. */
static void refused(md_context *context, double re, double im) {
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 8, false);
  md_gauge gauge;
  double u[MD_LINK_REALS], change;
  md_test_random_gauge(context, geometry, 5, &gauge);
  md_gauge_get(&gauge, 1, 2, 3, u);
  for (int c = 0; c < MD_LINK_REALS; c += 2) {
    const double x = u[c], y = u[c + 1];
    u[c] = x * re - y * im;
    u[c + 1] = x * im + y * re;
  }
  if (context->rank == context->ranks - 1) md_gauge_set(&gauge, 1, 2, 3, u);
  assert_int_equal(md_gauge_reunitarize(context, "links.h5", &gauge, &change), MD_INPUT);
  assert_non_null(strstr(context->message, "links.h5: --reunitarize is for SU(3) links"));
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

static void others_are_refused(void **state) {
  refused(*state, 1.001, 0.0);           /* longer */
  refused(*state, cos(1e-3), sin(1e-3)); /* in U(3) alone */
  refused(*state, 0.0, 0.0);             /* singular */
  refused(*state, -1.0, 0.0);            /* a phase in it */
}

/* Finite links with products that are not. */
static void infinite_products_are_seen(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 8, false);
  md_gauge gauge;
  md_gauge_observables observed;
  double u[MD_LINK_REALS];
  md_test_random_gauge(context, geometry, 5, &gauge);
  md_su3_one(u);
  u[0] = u[1] = 1e200;
  if (context->rank == context->ranks - 1) md_gauge_set(&gauge, 1, 2, 3, u);
  MD_REQUIRE(context, md_gauge_exchange(context, &gauge));
  MD_REQUIRE(context, md_gauge_observe(context, &gauge, &observed));
  assert_true(isinf(observed.unitarity_deviation));
  assert_int_equal(md_gauge_check_thin(context, &gauge), MD_INPUT);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(rounded, context),
      cmocka_unit_test_prestate(others_are_refused, context),
      cmocka_unit_test_prestate(infinite_products_are_seen, context)};
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
