/* Block CG: the solutions of independent CG in fewer iterations, sources that depend on each other
 * or are zero, the same history on every rank grid, refusals. */
#include "../dirac/backend_cases.h"
#include "lattice/fields/linear.h"
#include "problem.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static const md_solver_request single = {.mass = 0.1, .tolerance = 1e-11, .max_iterations = 2000};
static const md_solver_request block = {
    .mass = 0.1, .tolerance = 1e-11, .max_iterations = 2000, .block = true};

static md_status solve(md_context *context, problem *p, const char *backend,
                       const md_solver_request *request, md_solver_result *result) {
  md_dirac dirac;
  problem_dirac(context, p, backend, MD_DOUBLE, &dirac);
  const md_status status = md_solve_cg(context, &dirac, &dirac, request, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  return status;
}

static void fewer_iterations(void **state) {
  md_context *context = *state;
  const char *const backends[] = {"cpu_ref", "cpu_simd"}, *only = getenv("MINIDIRAC_TEST_BACKEND");
  for (int i = 0; i < 2; i++) {
    if (only && strcmp(only, backends[i]) != 0) continue;
    for (int n_rhs = 2; n_rhs <= 8; n_rhs *= 4) {
      problem p;
      md_solver_result alone, together;
      double residuals[MD_MAX_RHS];
      problem_make(context, n_rhs, &p);
      MD_REQUIRE(context, solve(context, &p, backends[i], &single, &alone));
      MD_REQUIRE(context, solve(context, &p, backends[i], &block, &together));
      problem_residuals(context, &p, block.mass, residuals);
      for (int r = 0; r < n_rhs; r++)
        md_require_at_most(residuals[r], 1.1 * block.tolerance, "block CG");
      assert_true(together.converged);
      md_require_at_most(together.iterations, (n_rhs == 2 ? 1.0 : 0.6) * alone.iterations,
                         "iterations");
      md_solver_result_free(&alone);
      md_solver_result_free(&together);
      problem_drop(&p);
    }
  }
}

/* Of an action with two link fields. Emulated Tensor Cores take longer than all others together;
 * what their hop of six right-hand sides gives is for test_conformance. */
static void check_improved(md_context *context, const backend_case *c) {
  problem p;
  md_dirac dirac;
  md_solver_result alone, together;
  double residuals[MD_MAX_RHS];
  if (c->request.precision != MD_DOUBLE) return;
  if (c->request.packing != MD_PACKING_NONE && c->backend->space == MD_HOST) return;
  problem_make_of(context, &c->request, &p);
  case_dirac(context, c, p.field, &dirac);
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &single, p.x, p.b, &alone));
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &block, p.x, p.b, &together));
  problem_residuals(context, &p, block.mass, residuals);
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(residuals[r], 1.1 * block.tolerance, "block CG");
  assert_true(alone.converged && together.converged);
  md_require_at_most(together.iterations, 0.8 * alone.iterations, "iterations");
  md_solver_result_free(&alone);
  md_solver_result_free(&together);
  md_dirac_destroy(&dirac);
  problem_drop(&p);
}

static void improved_action(void **state) {
  const int n_rhs[] = {6};
  each_improved_case(*state, n_rhs, 1, check_improved);
}

static void dependent_sources(void **state) {
  md_context *context = *state;
  problem p;
  md_solver_result result;
  problem_make_dependent(context, &p);
  MD_REQUIRE(context, solve(context, &p, "cpu_simd", &block, &result));
  assert_true(result.converged);
  problem_check_dependent(context, &p, block.mass, block.tolerance);
  md_solver_result_free(&result);
  problem_drop(&p);
}

static void history_does_not_depend_on_the_cut(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1};
  md_context *const contexts[] = {&alone, context};
  md_solver_result results[2];
  for (int i = 0; i < 2; i++) {
    problem p;
    omp_set_num_threads(1 + i);
    problem_make(contexts[i], 3, &p);
    MD_REQUIRE(contexts[i], solve(contexts[i], &p, "cpu_simd", &block, &results[i]));
    problem_drop(&p);
  }
  assert_int_equal(results[0].iterations, results[1].iterations);
  assert_memory_equal(results[0].history, results[1].history,
                      ((size_t)results[0].iterations + 1) * sizeof(double));
  md_solver_result_free(&results[0]);
  md_solver_result_free(&results[1]);
}

static void refusals(void **state) {
  md_context *context = *state;
  problem p;
  md_solver_result result;
  problem_make(context, 1, &p);
  assert_int_equal(solve(context, &p, "cpu_simd", &block, &result), MD_INPUT);
  assert_non_null(strstr(context->message, "2 to 64 right-hand sides, got 1"));
  md_solver_result_free(&result);
  problem_drop(&p);
  problem_make(context, 2, &p);
  if (context->rank == 0) ((double *)p.field[0].links[0][2].data)[7] = NAN;
  assert_int_equal(solve(context, &p, "cpu_simd", &block, &result), MD_UNREACHED);
  assert_non_null(strstr(context->message, "must be finite"));
  md_solver_result_free(&result);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(fewer_iterations),  cmocka_unit_test(improved_action),
    cmocka_unit_test(dependent_sources), cmocka_unit_test(history_does_not_depend_on_the_cut),
    cmocka_unit_test(refusals),
};
MD_RUN_TESTS(tests)
