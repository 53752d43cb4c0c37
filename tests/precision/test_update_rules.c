/* When mixed-precision CG updates, and what it keeps: the bound on the condition number is reached,
 * the factor is the one of docs/solvers.md, updates are as many as it says, and the direction
 * that is kept over them costs hardly an iteration more than CG in double. */
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"
#include "problem.h"

#include <math.h>

/* Links diag(eta, eta, 1) undo the staggered phases for the first two colours, and
 * i^(x+y+z+t) is then an eigenvector of D with eigenvalue 4i. */
static void make_extreme(md_context *context, md_geometry **g, md_gauge *gauge, md_field *v) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true, false};
  *g = md_test_geometry(context, 8, 4, 4, 4, false);
  MD_REQUIRE(context, md_gauge_create(context, *g, gauge));
  MD_REQUIRE(context, md_field_create(context, *g, &shape, MD_EVEN, v));
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < (*g)->sites; i++) {
      int x[MD_DIMS];
      md_global_coordinates(*g, p, i, x);
      for (int mu = 0; mu < MD_DIMS; mu++) {
        double u[MD_LINK_REALS] = {0};
        u[0] = u[8] = md_eta(mu, x);
        u[16] = 1.0;
        md_gauge_set(gauge, p, mu, i, u);
      }
      const double sign = (x[0] + x[1] + x[2] + x[3]) % 4 == 0 ? 1.0 : -1.0;
      if (p == MD_EVEN) md_field_set(v, i, (double[MD_FERMION_REALS]){sign, 0.0, -sign});
    }
  MD_REQUIRE(context, md_gauge_exchange(context, gauge));
}

static void condition_bound_is_reached(void **state) {
  md_context *context = *state;
  const md_backend_request request = {
      .precision = MD_DOUBLE, .reconstruct = MD_RECONSTRUCT_18, .n_rhs = 1, .antiperiodic = false};
  const double mass = 0.3;
  double norm2[2], product;
  md_geometry *g;
  md_gauge gauge;
  md_dirac dirac;
  md_field v, a_v, work;
  make_extreme(context, &g, &gauge, &v);
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "auto", &request, &dirac));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, &a_v));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_ODD, &work));
  MD_REQUIRE(context, md_dirac_mdag_m(context, &dirac, mass, &a_v, &v, &work));
  MD_REQUIRE(context, md_linear_norm2(context, &v, NULL, &norm2[0]));
  MD_REQUIRE(context, md_linear_norm2(context, &a_v, NULL, &norm2[1]));
  MD_REQUIRE(context, md_linear_dot(context, &v, &a_v, NULL, &product));
  const double largest = product / norm2[0];
  md_require_at_most(fabs(norm2[1] - largest * product), 1e-12 * norm2[1], "an eigenvector");
  md_require_at_most(fabs(largest / (mass * mass) / md_update_kappa(mass * mass, 16.0) - 1.0),
                     1e-14, "kappa");
  md_field *fields[] = {&v, &a_v, &work};
  for (int i = 0; i < 3; i++) md_field_destroy(fields[i]);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

/* The columns of docs/solvers.md that hold what the rule takes. */
static void factors_are_those_of_the_table(void **state) {
  (void)state;
  static const struct {
    md_precision precision;
    double mass, low, high;
  } rows[] = {{MD_HALF, 0.05, 0.175, 0.25},  {MD_HALF, 0.03, 0.25, 0.3},
              {MD_HALF, 0.1, 0.075, 0.125},  {MD_FIXED, 0.05, 0.05, 0.075},
              {MD_SINGLE, 0.05, 0.05, 0.05}, {MD_SINGLE, 0.001, 0.05, 0.2},
              {MD_HALF, 0.02, 0.6, 0.6},     {MD_BF16, 0.05, 0.6, 0.6}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const double noise = md_update_noise(md_update_kappa(rows[i].mass * rows[i].mass, 16.0),
                                         md_precision_roundoff(rows[i].precision));
    const double factor = md_update_factor(false, noise);
    md_require_at_most(factor, rows[i].high, "factor");
    md_require_at_most(rows[i].low, factor, "smallest factor");
    assert_true(md_update_factor(true, noise) == 0.4);
    /* The residual is narrow where that costs no iterations: not in the last two rows. */
    assert_true(md_update_narrows(noise) == (rows[i].high < 0.6));
    /* of |r|, not of |r|^2 */
    assert_true(md_update_due(0.99 * factor * factor * 7.0, 7.0, factor));
    assert_false(md_update_due(1.01 * factor * factor * 7.0, 7.0, factor));
  }
  assert_true(md_update_is_vain(0.91, 1.0) && !md_update_is_vain(0.89, 1.0));
  assert_true(md_update_is_vain(NAN, 1.0));
  const double unknowns = 1e7; /* above any bound below; a device deflates later than a host */
  assert_true(md_update_deflates(true, 11.0, 1e5, 1e-10, unknowns));
  assert_false(md_update_deflates(true, 9.0, 1e5, 1e-10, unknowns));
  assert_true(md_update_deflates(false, 51.0, 1e5, 1e-10, unknowns));
  assert_false(md_update_deflates(false, 49.0, 1e5, 1e-10, unknowns));
  assert_true(md_update_deflates(false, 1.0, 1e5, 1e-10, 1e4));
}

/* On a plateau of |r| an update comes as often as is asked for, and is none in vain. */
static void plateaus_are_updated(void **state) {
  double history[16] = {0}, scale = 1.0, r_norm2 = 1.0;
  int iterations = 0;
  const md_solver_request request = {.tolerance = 1e-10};
  md_cg_state s = {.scale = &scale, .r_norm2 = &r_norm2, .n_rhs = 1, .most = 15};
  s.result.history = history;
  s.result.rhs_iterations = &iterations;
  md_outer o = {.context = *state, .request = &request, .state = &s, .factor = 0.4, .latest = 9};
  o.unit[0] = o.norm2[0] = o.largest[0] = 1.0;
  o.often = 3;
  for (int k = 1; k <= 3; k++) assert_true(md_outer_count(&o) == (k == 3));
  assert_true(o.early);
  o.since = 8;
  assert_true(md_outer_count(&o) && !o.early);
  o.since = 0;
  o.norm2[0] = 0.1;
  assert_true(md_outer_count(&o) && !o.early);
  o.often = 0;
  o.norm2[0] = 1.0;
  for (int k = 1; k < 8; k++) assert_false(md_outer_count(&o));
}

/* Random links on 8^4, where nothing deflates. An update falls due each time that |r| has come down
 * by the factor, and it comes down by 1 / (m tolerance) in all. Sources of one norm: |r| starts
 * near |b|. */
static void updates_are_few_and_cheap(void **state) {
  md_context *context = *state;
  static const md_precision precisions[] = {MD_SINGLE, MD_HALF, MD_FIXED};
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true, false};
  md_solver_request request = {.mass = 0.05, .tolerance = 1e-11, .max_iterations = 4000};
  problem p = {.physics = {.antiperiodic = true}};
  md_dirac outer;
  md_solver_result alone;
  p.g = md_test_geometry(context, 8, 8, 8, 8, false);
  md_test_random_gauge(context, p.g, 31, p.field);
  for (int k = 0; k < MD_PARITIES; k++) {
    MD_REQUIRE(context, md_field_create(context, p.g, &shape, k, &p.b[k]));
    MD_REQUIRE(context, md_field_create(context, p.g, &shape, k, &p.x[k]));
  }
  md_source_gaussian(p.b, 8);
  problem_dirac(context, &p, "auto", MD_DOUBLE, &outer);
  MD_REQUIRE(context, md_solve_cg(context, &outer, &outer, &request, p.x, p.b, &alone));
  for (int i = 0; i < 3; i++) {
    md_dirac inner;
    md_solver_result mixed;
    problem_dirac(context, &p, "auto", precisions[i], &inner);
    request.inner = &inner;
    MD_REQUIRE(context, md_solve_cg(context, &outer, &outer, &request, p.x, p.b, &mixed));
    const double noise = md_update_noise(md_update_kappa(request.mass * request.mass, 16.0),
                                         md_precision_roundoff(precisions[i]));
    const double decades = log(request.tolerance * request.mass);
    const double expected = decades / log(md_update_factor(false, noise));
    print_message("%s: %d iterations of %d, %d updates, %.1f expected\n",
                  md_precision_name(precisions[i]), mixed.iterations, alone.iterations,
                  mixed.updates, expected);
    assert_true(mixed.converged);
    md_require_at_most(mixed.iterations, 1.05 * alone.iterations, "iterations");
    md_require_at_most(mixed.updates, 1.2 * expected, "updates");
    md_require_at_most(0.9 * expected, mixed.updates, "fewest updates");
    md_solver_result_free(&mixed);
    md_dirac_destroy(&inner);
  }
  md_solver_result_free(&alone);
  md_dirac_destroy(&outer);
  problem_drop(&p);
}

/* Where CG ends because its directions are conjugate (768 unknowns), rounding in 16 or 32 bits
 * costs up to three times the iterations unless the updates deflate (docs/solvers.md). */
static void deflation_saves_iterations(void **state) {
  md_context *context = *state;
  static const md_precision precisions[] = {MD_SINGLE, MD_HALF, MD_BF16};
  static const double ratios[] = {1.25, 1.35, 1.55};
  md_solver_request request = {.mass = 0.02, .tolerance = 1e-12, .max_iterations = 4000};
  problem p;
  md_dirac outer;
  md_solver_result alone;
  problem_make(context, 1, &p);
  problem_dirac(context, &p, "auto", MD_DOUBLE, &outer);
  MD_REQUIRE(context, md_solve_cg(context, &outer, &outer, &request, p.x, p.b, &alone));
  for (int i = 0; i < 3; i++) {
    md_dirac inner;
    md_solver_result mixed;
    problem_dirac(context, &p, "auto", precisions[i], &inner);
    request.inner = &inner;
    MD_REQUIRE(context, md_solve_cg(context, &outer, &outer, &request, p.x, p.b, &mixed));
    print_message("%s: %d iterations of %d\n", md_precision_name(precisions[i]), mixed.iterations,
                  alone.iterations);
    assert_true(mixed.converged);
    md_require_at_most(mixed.iterations, ratios[i] * alone.iterations, "iterations");
    md_solver_result_free(&mixed);
    md_dirac_destroy(&inner);
  }
  md_solver_result_free(&alone);
  md_dirac_destroy(&outer);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(condition_bound_is_reached), cmocka_unit_test(factors_are_those_of_the_table),
    cmocka_unit_test(plateaus_are_updated), cmocka_unit_test(updates_are_few_and_cheap),
    cmocka_unit_test(deflation_saves_iterations)};
MD_RUN_TESTS(tests)
