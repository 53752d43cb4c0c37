/* The choice between block CG and CG in step: the rule for given facts, and a solve that reaches
 * its tolerance whichever way it goes and says which. */
#include "dirac/solvers/choose.h"
#include "problem.h"

#include <math.h>
#include <string.h>

static const md_choice_facts even = {.step_s = 1.0,
                                     .block_s = 1.25,
                                     .steps_left = 900.0,
                                     .steps_in_all = 1000.0,
                                     .block_left = 900.0,
                                     .spent_s = 100.0};

static void the_rule(void **state) {
  (void)state;
  md_choice_facts f = even;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_LATER); /* a fifth is lost: 350 may be spent */
  f.spent_s = 351.0;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_STEPS);
  f.block_left = 719.0;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_BLOCK);
  f = even;
  f.block_s = 3.0; /* two thirds are lost: 120 */
  f.spent_s = 119.0;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_LATER);
  f.spent_s = 121.0;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_STEPS);
  f.block_left = INFINITY;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_STEPS);
  f = even;
  f.block_s = 0.9; /* no dearer than in step, but slower to the end */
  f.block_left = 2000.0;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_LATER);
  f.spent_s = 351.0;
  assert_int_equal(md_choice_judge(&f), MD_VERDICT_STEPS);
  md_require_at_most(fabs(md_choice_bound(1e4, 1e-10) - 50.0 * log(2e10)), 1e-9, "bound");
  assert_true(md_choice_bound(1e4, 1.5) == 0.0);
}

static md_status solve(md_context *context, problem *p, double mass, bool mixed,
                       md_solver_result *result) {
  const md_solver_request request = {
      .mass = mass, .tolerance = 1e-10, .max_iterations = 4000, .choose = true};
  md_dirac dirac, narrow = {0};
  md_solver_request how = request;
  problem_dirac(context, p, "cpu_simd", MD_DOUBLE, &dirac);
  if (mixed) problem_dirac(context, p, "cpu_simd", MD_HALF, &narrow);
  if (mixed) how.inner = &narrow;
  const md_status status = md_solve_cg(context, &dirac, &dirac, &how, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&narrow);
  return status;
}

static void check(md_context *context, int n_rhs, double mass, bool mixed, const char *reason) {
  double residuals[MD_MAX_RHS];
  md_solver_result result;
  problem p;
  problem_make(context, n_rhs, &p);
  MD_REQUIRE(context, solve(context, &p, mass, mixed, &result));
  problem_residuals(context, &p, mass, residuals);
  for (int r = 0; r < n_rhs; r++) md_require_at_most(residuals[r], 1.1e-10, "the chosen solver");
  assert_true(result.converged);
  assert_non_null(strstr(result.choice.reason, reason));
  if (n_rhs == 1 || mass > 0.3) assert_false(result.choice.block);
  if (mass < 0.3 && n_rhs > 1) assert_int_equal(result.block_rank, n_rhs);
  md_solver_result_free(&result);
  problem_drop(&p);
}

static void solves_either_way(void **state) {
  md_context *context = *state;
  check(context, 1, 0.1, false, "one right-hand side");
  check(context, 3, 0.5, true, "too short");
  check(context, 4, 0.05, true, "in step");
  check(context, 4, 0.05, false, "in step");
}

static struct CMUnitTest tests[] = {cmocka_unit_test(the_rule),
                                    cmocka_unit_test(solves_either_way)};
MD_RUN_TESTS(tests)
