/* Where one way to solve stalls, --solver auto goes on with the other one, says so, and ends with
 * the solution; any number of ranks takes the same iterations to it as one does. The linker puts
 * the functions __wrap_ below in place of the two mixed solvers, so that a way stalls when a case
 * says so, whatever a machine's rounding. */
#include "dirac/solvers/cg.h"
#include "problem.h"

#include <string.h>

typedef md_status iterate(md_context *, const md_solver_job *, md_cg_state *);
iterate __real_md_mixed_cg_iterate, __real_md_mixed_block_iterate;
iterate __wrap_md_mixed_cg_iterate, __wrap_md_mixed_block_iterate;

/* Iterations after which each way stalls, of the solve under way; NOWHERE: it counts iterations,
 * as many as it may, and finds nothing. */
typedef struct stalls {
  int in_step, block;
} stalls;
static stalls now;
enum { NEVER = 1000000, NOWHERE = -1, FEW = 6, MANY = 8 }; /* few: in step first; many: block */

static md_status get_nowhere(md_cg_state *state) {
  double *history = state->result.history;
  for (; state->iteration < state->most; state->iteration++)
    history[state->iteration + 1] = history[state->iteration];
  return MD_OK;
}

static md_status until_it_stalls(iterate *real, int at, md_context *context,
                                 const md_solver_job *job, md_cg_state *state) {
  const int most = state->most;
  if (at == NOWHERE) return get_nowhere(state);
  if (at < most) state->most = at > state->iteration ? at : state->iteration;
  const md_status status = real(context, job, state);
  state->result.stalled = state->result.stalled || state->iteration == at;
  state->most = most;
  return status;
}

md_status __wrap_md_mixed_cg_iterate(md_context *context, const md_solver_job *job,
                                     md_cg_state *state) {
  return until_it_stalls(__real_md_mixed_cg_iterate, now.in_step, context, job, state);
}

md_status __wrap_md_mixed_block_iterate(md_context *context, const md_solver_job *job,
                                        md_cg_state *state) {
  return until_it_stalls(__real_md_mixed_block_iterate, now.block, context, job, state);
}

static const double tolerance = 1e-10;

static void solve(md_context *context, problem *p, double mass, const stalls *s,
                  md_solver_result *result) {
  md_solver_request how = {
      .mass = mass, .tolerance = tolerance, .max_iterations = 4000, .solver = &md_solver_auto};
  md_dirac dirac, narrow;
  problem_dirac(context, p, "cpu_simd", MD_DOUBLE, &dirac);
  problem_dirac(context, p, "cpu_simd", MD_HALF, &narrow);
  how.inner = &narrow;
  now = *s;
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &how, p->x, p->b, result));
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&narrow);
}

typedef struct stall_case {
  int n_rhs;
  stalls of;
  bool converges, block; /* what it must come to */
  int at;                /* where the other way took over; 0: nowhere */
  const char *reason;
} stall_case;
static const stall_case cases[] = {
    {FEW, {NEVER, NEVER}, true, false, 0, "6 right-hand sides, at most"},
    {FEW, {100, NEVER}, true, true, 100, "; at iteration 100 in step stalled"},
    {MANY, {NEVER, NEVER}, true, true, 0, "8 right-hand sides, at most"},
    {MANY, {NEVER, 40}, true, false, 40, "; at iteration 40 block stalled"},
    {MANY, {NEVER, NOWHERE}, true, false, 1537, "; at iteration 1537 block was not done"},
    {FEW, {100, 150}, false, true, 100, "; at iteration 100 in step stalled"},
};

static void solves_after_a_stall(void **state) {
  md_context *context = *state;
  problem p;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const stall_case *c = &cases[k];
    double residuals[MD_MAX_RHS];
    md_solver_result result;
    problem_make(context, c->n_rhs, &p);
    solve(context, &p, 0.05, &c->of, &result);
    print_message("%d: %d iterations, %s\n", (int)k, result.iterations, result.choice.reason);
    assert_non_null(strstr(result.choice.reason, c->reason));
    assert_int_equal(result.choice.changed_at, c->at);
    assert_int_equal(result.choice.block, c->block);
    assert_int_equal(result.converged, c->converges);
    assert_int_equal(result.stalled, !c->converges);
    problem_residuals(context, &p, 0.05, residuals);
    for (int r = 0; r < c->n_rhs && c->converges; r++)
      md_require_at_most(residuals[r], 1.1 * tolerance, "after a stall");
    md_solver_result_free(&result);
    problem_drop(&p);
  }
}

/* One rank and all of them: the same history to the last bit, and so the same choice. */
static void ranks_agree(void **state) {
  md_context *context = *state, alone = {.ranks = 1, .threads = 1};
  md_context *const contexts[2] = {&alone, context};
  for (size_t k = 1; k < 4; k += 2) { /* a change each way */
    md_solver_result results[2];
    for (int c = 0; c < 2; c++) {
      problem p;
      problem_make(contexts[c], cases[k].n_rhs, &p);
      solve(contexts[c], &p, 0.05, &cases[k].of, &results[c]);
      problem_drop(&p);
    }
    assert_string_equal(results[0].choice.reason, results[1].choice.reason);
    assert_int_equal(results[0].iterations, results[1].iterations);
    assert_memory_equal(results[0].history, results[1].history,
                        (size_t)(results[0].iterations + 1) * sizeof(double));
    for (int c = 0; c < 2; c++) md_solver_result_free(&results[c]);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(solves_after_a_stall),
                                    cmocka_unit_test(ranks_agree)};
MD_RUN_TESTS(tests)
