/* Block CG: the solutions of independent CG in fewer iterations, in double and with narrow
 * iterations under it, sources that depend on each other or are zero, guesses, the same history on
 * every rank grid, refusals. */
#include "../dirac/backend_cases.h"
#include "dirac/solvers/block_steps.h"
#include "lattice/fields/linear.h"
#include "problem.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static const md_solver_request single = {.mass = 0.1, .tolerance = 1e-11, .max_iterations = 2000};
static const md_solver_request block = {
    .mass = 0.1, .tolerance = 1e-11, .max_iterations = 2000, .solver = &md_solver_block};

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

/* Sources of any norms take the iterations of sources of one. */
static void uneven_sources(void **state) {
  static const double norms[] = {1e10, 1e-9, 1.0, 1e4};
  const double nothing[4] = {0.0};
  md_context *context = *state;
  md_solver_result even, uneven;
  double residuals[MD_MAX_RHS];
  int last = 0;
  problem p;
  problem_make(context, 4, &p);
  MD_REQUIRE(context, solve(context, &p, "cpu_simd", &block, &even));
  for (int k = 0; k < MD_PARITIES; k++) md_linear_axpby(nothing, &p.x[k], norms, &p.b[k]);
  MD_REQUIRE(context, solve(context, &p, "cpu_simd", &block, &uneven));
  problem_residuals(context, &p, block.mass, residuals);
  for (int r = 0; r < 4; r++) {
    md_require_at_most(residuals[r], 1.1 * block.tolerance, "uneven sources");
    md_require_at_most(abs(uneven.rhs_iterations[r] - even.rhs_iterations[r]),
                       0.02 * even.iterations, "iterations of a right-hand side");
    if (uneven.rhs_iterations[r] > last) last = uneven.rhs_iterations[r];
  }
  assert_int_equal(last, uneven.iterations);
  md_require_at_most(abs(uneven.iterations - even.iterations), 0.02 * even.iterations,
                     "iterations");
  md_solver_result_free(&even);
  md_solver_result_free(&uneven);
  problem_drop(&p);
}

/* The same with iterations in `inner` under double. */
static md_status solve_mixed(md_context *context, problem *p, md_precision inner,
                             const md_solver_request *request, md_solver_result *result) {
  md_dirac dirac, narrow;
  md_solver_request mixed = *request;
  problem_dirac(context, p, "cpu_simd", MD_DOUBLE, &dirac);
  problem_dirac(context, p, "cpu_simd", inner, &narrow);
  mixed.inner = &narrow;
  const md_status status = md_solve_cg(context, &dirac, &dirac, &mixed, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&narrow);
  return status;
}

/* Rounding of the iterations costs few of them: the Krylov space goes on over updates. */
static void narrow_iterations(void **state) {
  static const md_precision inner[] = {MD_SINGLE, MD_HALF, MD_BF16, MD_FIXED};
  md_context *context = *state;
  md_solver_result whole, mixed;
  double residuals[MD_MAX_RHS];
  problem p;
  problem_make(context, 4, &p);
  MD_REQUIRE(context, solve(context, &p, "cpu_simd", &block, &whole));
  for (int i = context->ranks > 1 ? 3 : 0; i < 4; i++) { /* one is enough on several ranks */
    MD_REQUIRE(context, solve_mixed(context, &p, inner[i], &block, &mixed));
    assert_true(mixed.converged && !mixed.stalled);
    problem_residuals(context, &p, block.mass, residuals);
    for (int r = 0; r < 4; r++) {
      md_require_at_most(residuals[r], 1.1 * block.tolerance, "mixed block CG");
      md_require_at_most(fabs(residuals[r] - mixed.residuals[r]), 0.1 * block.tolerance,
                         "reported");
      assert_true(mixed.rhs_iterations[r] <= mixed.iterations);
    }
    assert_int_equal(mixed.block_rank, 4);
    md_require_at_most(mixed.iterations, 1.3 * whole.iterations, "iterations");
    assert_in_range(mixed.updates, 15, 40);
    md_solver_result_free(&mixed);
  }
  md_solver_result_free(&whole);
  problem_drop(&p);
}

static void dependent_sources_of_narrow_iterations(void **state) {
  md_context *context = *state;
  md_solver_result result;
  problem p;
  problem_make_dependent(context, &p);
  MD_REQUIRE(context, solve_mixed(context, &p, MD_HALF, &block, &result));
  assert_true(result.converged);
  assert_int_equal(result.block_rank, 2);
  problem_check_dependent(context, &p, block.mass, block.tolerance);
  md_solver_result_free(&result);
  problem_drop(&p);
}

/* A guess that solves the system leaves nothing to do, one that nearly does little. */
static void begins_from_a_guess(void **state) {
  md_context *context = *state;
  md_solver_request from = block;
  md_solver_result first, again;
  problem p;
  if (context->ranks > 1) return; /* one is enough */
  problem_make(context, 3, &p);
  MD_REQUIRE(context, solve_mixed(context, &p, MD_SINGLE, &block, &first));
  from.guess = &p.x[MD_EVEN];
  MD_REQUIRE(context, solve_mixed(context, &p, MD_SINGLE, &from, &again));
  assert_true(again.converged && again.iterations == 0);
  md_solver_result_free(&again);
  from.mass = 1.05 * block.mass;
  MD_REQUIRE(context, solve_mixed(context, &p, MD_SINGLE, &from, &again));
  assert_true(again.converged && again.iterations > 0);
  md_require_at_most(again.history[0], 0.5, "residual of the guess");
  md_solver_result_free(&again);
  const double none[] = {0, 0, 0}, kept[] = {0, 1, 1}; /* no source: a solution that is known */
  double norm2[3];
  for (int parity = 0; parity < MD_PARITIES; parity++)
    md_linear_axpby(none, &p.b[parity], kept, &p.b[parity]);
  md_dirac dirac;
  from.mass = block.mass;
  problem_dirac(context, &p, "cpu_simd", MD_DOUBLE, &dirac);
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &from, p.x, p.b, &again));
  md_dirac_destroy(&dirac);
  assert_true(again.converged && again.rhs_iterations[0] == 0 && again.rhs_iterations[1] > 0);
  MD_REQUIRE(context, md_linear_norm2(context, &p.x[MD_EVEN], NULL, norm2));
  assert_true(norm2[0] == 0.0 && norm2[1] > 0.0);
  md_solver_result_free(&first);
  md_solver_result_free(&again);
  problem_drop(&p);
}

/* With a residual in the place of the recursion's that is another one, in other units, the next
 * directions are still conjugate to the last: (A P)^H P' = 0. */
static void new_directions_are_conjugate(void **state) {
  enum { N = 3, ENTRIES = N * N };
  md_context *context = *state;
  md_dirac dirac;
  md_field r, p, x, other;
  double complex product[ENTRIES], size[ENTRIES];
  double one[MD_MAX_RHS], times[MD_MAX_RHS];
  problem q;
  problem_make(context, N, &q);
  problem_dirac(context, &q, "cpu_simd", MD_DOUBLE, &dirac);
  md_field *const fields[] = {&r, &p, &x, &other};
  for (int k = 0; k < 3; k++)
    MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, fields[k]));
  md_test_random_field(context, q.g, MD_DOUBLE, N, MD_EVEN, 17, &other);
  MD_REQUIRE(context, md_field_convert(context, &r, &q.b[MD_EVEN]));
  for (int j = 0; j < N; j++) one[j] = 0.01, times[j] = 2.0 + j;
  md_operator a;
  MD_REQUIRE(context, md_normal_create(context, &dirac, 0.1, &a));
  md_block_steps b = {.context = context, .a = &a, .r = &r, .p = &p, .x = &x};
  MD_REQUIRE(context, md_block_steps_create(&b));
  MD_REQUIRE(context, md_block_steps_begin(&b));
  MD_REQUIRE(context, md_block_steps_residual(&b));
  MD_REQUIRE(context, md_block_steps_solution(&b));
  MD_REQUIRE(context, md_block_cross(context, b.block, &b.a_p, &p, (double *)size));
  md_linear_axpby(one, &other, times, &r);
  MD_REQUIRE(context, md_block_steps_replaced(&b));
  MD_REQUIRE(context, md_block_cross(context, b.block, &b.a_p, &p, (double *)product));
  for (int e = 0; e < ENTRIES; e++)
    md_require_at_most(cabs(product[e]), 1e-13 * cabs(size[0]), "product of directions");
  md_block_steps_destroy(&b);
  md_operator_destroy(&a);
  for (int k = 0; k < 4; k++) md_field_destroy(fields[k]);
  md_dirac_destroy(&dirac);
  problem_drop(&q);
}

/* Alone on one thread and with all ranks, in double (`inner` MD_DOUBLE) or with narrow iterations:
 * the same history and residuals. */
static void compare_cuts(md_context *context, md_precision inner) {
  md_context alone = {.ranks = 1, .threads = 1};
  md_context *const contexts[] = {&alone, context};
  md_solver_result results[2];
  for (int i = 0; i < 2; i++) {
    problem p;
    omp_set_num_threads(1 + i);
    problem_make(contexts[i], 3, &p);
    MD_REQUIRE(contexts[i], inner == MD_DOUBLE
                                ? solve(contexts[i], &p, "cpu_simd", &block, &results[i])
                                : solve_mixed(contexts[i], &p, inner, &block, &results[i]));
    problem_drop(&p);
  }
  assert_int_equal(results[0].iterations, results[1].iterations);
  assert_memory_equal(results[0].history, results[1].history,
                      ((size_t)results[0].iterations + 1) * sizeof(double));
  assert_memory_equal(results[0].residuals, results[1].residuals, 3 * sizeof(double));
  md_solver_result_free(&results[0]);
  md_solver_result_free(&results[1]);
}

static void history_does_not_depend_on_the_cut(void **state) {
  compare_cuts(*state, MD_DOUBLE);
}

static void narrow_history_does_not_depend_on_the_cut(void **state) {
  compare_cuts(*state, MD_HALF);
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
  assert_int_equal(solve_mixed(context, &p, MD_HALF, &block, &result), MD_UNREACHED);
  assert_non_null(strstr(context->message, "must be finite"));
  md_solver_result_free(&result);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(fewer_iterations),
    cmocka_unit_test(improved_action),
    cmocka_unit_test(dependent_sources),
    cmocka_unit_test(uneven_sources),
    cmocka_unit_test(history_does_not_depend_on_the_cut),
    cmocka_unit_test(narrow_iterations),
    cmocka_unit_test(dependent_sources_of_narrow_iterations),
    cmocka_unit_test(begins_from_a_guess),
    cmocka_unit_test(new_directions_are_conjugate),
    cmocka_unit_test(narrow_history_does_not_depend_on_the_cut),
    cmocka_unit_test(refusals),
};
MD_RUN_TESTS(tests)
