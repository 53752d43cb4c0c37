/* The choice between block CG and CG in step: the laws and rules for given facts, and solves whose
 * clock says what an iteration costs, which reach their tolerance whichever way they go. */
#include "dirac/solvers/choose.h"
#include "problem.h"

#include <math.h>
#include <string.h>

/* 16 right-hand sides at beta 6.0, largest eigenvalue 4.4, and what was measured on an H200 in
 * seconds of the whole solve (bench/): the choice must be the faster one by the times of single
 * iterations, wherever the two differ by more than a twentieth. */
typedef struct record {
  double sites, mass, roundoff, tolerance, dearer; /* block_s / step_s */
  double steps, block;                             /* iterations */
} record;
static const record records[] = {
    {24 * 24 * 24 * 32, 0.01, 0x1p-11, 1e-10, 1.30, 3044, 1547},
    {24 * 24 * 24 * 32, 0.005, 0x1p-11, 1e-10, 1.37, 13199, 2031},
    {24 * 24 * 24 * 48, 0.05, 0.0, 1e-12, 1.20, 602, 597},
    {24 * 24 * 24 * 48, 0.01, 0.0, 1e-12, 1.26, 2931, 1496},
    {16 * 16 * 16 * 32, 0.05, 0.0, 1e-12, 1.33, 604, 534},
    {16 * 16 * 16 * 32, 0.02, 0.0, 1e-12, 1.45, 1490, 753},
    {16 * 16 * 16 * 32, 0.01, 0.0, 1e-12, 1.42, 2924, 819},
};

static md_choice_facts facts_of(const record *r) {
  const double kappa = 1.0 + 4.4 / (r->mass * r->mass);
  return (md_choice_facts){.kappa = kappa,
                           .noise = r->roundoff * kappa,
                           .sites_per_rhs = r->sites / 16.0,
                           .left = 1.0 / r->tolerance,
                           .step_s = 1.0,
                           .block_s = r->dearer};
}

static void the_laws(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof records / sizeof *records; k++) {
    const record *r = &records[k];
    const md_choice_facts f = facts_of(r);
    md_require_at_most(fabs(md_choice_steps(&f) / r->steps - 1.0), 0.15, "iterations in step");
    md_require_at_most(fabs(md_choice_block(&f) / r->block - 1.0), 0.2, "iterations of block CG");
    assert_int_equal(md_choice_begin_block(&f), r->block * r->dearer < r->steps);
  }
  md_require_at_most(fabs(md_choice_bound(1e4, 1e-10) - 50.0 * log(2e10)), 1e-9, "bound");
  assert_true(md_choice_bound(1e4, 1.5) == 0.0);
  md_choice_facts f = facts_of(&records[0]);
  f.deflates = true;
  md_require_at_most(fabs(md_choice_steps(&f) / 3199 - 1.0), 0.17, "with deflation");
}

static void the_watch(void **state) {
  (void)state;
  md_choice_facts f = facts_of(&records[1]);
  const double block = md_choice_block(&f) * f.block_s, all = log(f.left);
  assert_false(md_choice_leave_steps(&f, all / (1.4 * block)));
  assert_true(md_choice_leave_steps(&f, all / (1.6 * block)));
  assert_true(md_choice_leave_steps(&f, -1e-3));
  f = facts_of(&records[3]);
  const double steps = md_choice_steps(&f), slow = 0.9 * log(f.left) * f.block_s / steps;
  assert_false(md_choice_leave_block(&f, slow, 399.0, 1000.0, 0.0));
  assert_true(md_choice_leave_block(&f, slow, 401.0, 1000.0, 0.0));
  assert_false(md_choice_leave_block(&f, slow, 749.0, 1000.0, 1000.0));
  assert_true(md_choice_leave_block(&f, slow, 751.0, 1000.0, 1000.0));
  assert_false(md_choice_leave_block(&f, 1.2 * slow, 1e9, 1000.0, 0.0));
}

/* A clock by which an iteration takes what the case says; other ranks have no say. */
typedef struct costs {
  double step_s, block_s, later; /* both ways become so many times as dear */
  int when;                      /* after so many iterations of one way */
} costs;
typedef struct clock_state {
  costs of;
  bool astray; /* of a rank that is not 0 */
  double now_s;
  int done;
  bool block;
} clock_state;

static double clock_s(void *user, bool block) {
  clock_state *c = user;
  c->done = block == c->block ? c->done + 1 : 0;
  c->block = block;
  const double iteration_s = block != c->astray ? c->of.block_s : c->of.step_s;
  c->now_s += iteration_s * (c->done > c->of.when ? c->of.later : 1.0);
  return c->now_s;
}

static md_status solve(md_context *context, problem *p, double mass, bool mixed, clock_state *watch,
                       md_solver_result *result) {
  md_solver_request how = {.mass = mass,
                           .tolerance = 1e-10,
                           .max_iterations = 4000,
                           .choose = true,
                           .clock_s = clock_s,
                           .user = watch};
  md_dirac dirac, narrow = {0};
  problem_dirac(context, p, "cpu_simd", MD_DOUBLE, &dirac);
  if (mixed) problem_dirac(context, p, "cpu_simd", MD_HALF, &narrow);
  if (mixed) how.inner = &narrow;
  watch->astray = context->rank != 0;
  const md_status status = md_solve_cg(context, &dirac, &dirac, &how, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&narrow);
  return status;
}

typedef struct way {
  int n_rhs;
  double mass;
  bool mixed;
  costs costs;
  bool block, changes; /* what it must come to */
  const char *reason;
} way;
static const way ways[] = {
    {1, 0.1, false, {1.0, 1.0, 1.0, 0}, false, false, "one right-hand side"},
    {3, 0.5, true, {1.0, 1.0, 1.0, 0}, false, false, "too short"},
    {12, 0.05, false, {1.0, 1.25, 1.0, 0}, true, false, "in step, about"},
    {12, 0.05, true, {1.0, 1.5, 1.0, 0}, true, false, "in step, about"},
    {4, 0.05, false, {1.0, 30.0, 1.0, 0}, false, false, "in step, about"},
    {4, 0.05, true, {1.0, 30.0, 1.0, 0}, false, false, "in step, about"},
    {4, 0.05, true, {1.0, 3.0, 50.0, 40}, false, true, "block fell too slowly"},
    {4, 0.05, true, {1.0, 15.0, 90.0, 40}, true, true, "in step fell too slowly"},
};

static void solves_either_way(void **state) {
  md_context *context = *state;
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    const way *w = &ways[k];
    double residuals[MD_MAX_RHS];
    clock_state watch = {.of = w->costs};
    md_solver_result result;
    problem p;
    problem_make(context, w->n_rhs, &p);
    MD_REQUIRE(context, solve(context, &p, w->mass, w->mixed, &watch, &result));
    problem_residuals(context, &p, w->mass, residuals);
    for (int r = 0; r < w->n_rhs; r++) md_require_at_most(residuals[r], 1.1e-10, "the way chosen");
    print_message("%d: %d iterations, %s\n", (int)k, result.iterations, result.choice.reason);
    assert_true(result.converged);
    assert_non_null(strstr(result.choice.reason, w->reason));
    assert_int_equal(result.choice.block, w->block);
    assert_int_equal(result.choice.changed_at > 0, w->changes);
    if (!w->changes && result.choice.step_s > 0.0) { /* by rank 0's clock */
      assert_true(result.choice.step_s == w->costs.step_s);
      assert_true(result.choice.block_s == w->costs.block_s);
    }
    md_solver_result_free(&result);
    problem_drop(&p);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(the_laws), cmocka_unit_test(the_watch),
                                    cmocka_unit_test(solves_either_way)};
MD_RUN_TESTS(tests)
