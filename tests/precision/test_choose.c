/* --solver auto: its rule takes the way that was the faster one, wherever that was measured, and a
 * solve goes the way of the rule, reaches its tolerance and has the same bits each time. */
#include "dirac/solvers/auto.h"
#include "problem.h"

#include <math.h>
#include <string.h>

/* 16 right-hand sides at beta 6.0, and what was measured on an H200 in whole solves (bench/): the
 * rule must take the faster way by the iterations and the times of single ones. */
typedef struct record {
  double sites, mass, tolerance, dearer; /* seconds of an iteration of block CG over one in step */
  double steps, block;                   /* iterations */
} record;
static const record records[] = {
    {24 * 24 * 24 * 32, 0.01, 1e-10, 1.30, 3044, 1547},
    {24 * 24 * 24 * 32, 0.005, 1e-10, 1.37, 13199, 2031},
    {24 * 24 * 24 * 48, 0.05, 1e-12, 1.20, 602, 597},
    {24 * 24 * 24 * 48, 0.01, 1e-12, 1.26, 2931, 1496},
    {16 * 16 * 16 * 32, 0.05, 1e-12, 1.33, 604, 534},
    {16 * 16 * 16 * 32, 0.02, 1e-12, 1.45, 1490, 753},
    {16 * 16 * 16 * 32, 0.01, 1e-12, 1.42, 2924, 819},
};

static md_auto_facts facts_of(const record *r) {
  return (md_auto_facts){.n_rhs = 16,
                         .kappa = 1.0 + 16.0 / (r->mass * r->mass),
                         .tolerance = r->tolerance,
                         .sites = r->sites,
                         .unknowns = 1.5 * r->sites};
}

static void the_rule(void **state) {
  double steps, resolved;
  (void)state;
  for (size_t k = 0; k < sizeof records / sizeof *records; k++) {
    const record *r = &records[k];
    md_auto_facts f = facts_of(r);
    assert_int_equal(md_auto_takes_block(&f, &steps, &resolved), r->block * r->dearer < r->steps);
    const double block = steps / hypot(1.0, steps / resolved);
    md_require_at_most(r->block, 1.5 * block, "iterations of block CG");
    f.n_rhs = 7;
    assert_false(md_auto_takes_block(&f, &steps, &resolved)); /* too few for one Krylov space */
    f.n_rhs = 16;
    f.on_host = true; /* there an iteration of block CG costs 2 to 3 */
    const bool block_there = md_auto_takes_block(&f, &steps, &resolved);
    assert_int_equal(block_there, r->block * 3.0 < r->steps);
  }
  md_auto_facts tiny = facts_of(&records[1]);
  tiny.sites = 512.0;
  tiny.unknowns = 768.0;
  md_auto_takes_block(&tiny, &steps, &resolved);
  assert_true(steps == 768.0); /* no Krylov space is larger */
  md_require_at_most(fabs(md_auto_bound(1e4, 1e-10) - 50.0 * log(2e10)), 1e-9, "bound");
  assert_true(md_auto_bound(1e4, 1.5) == 0.0);
}

/* Seconds a right-hand side of whole solves by CG in step with 16 of them on an H200, 24^3 x 48 at
 * beta 6.0, without modes and with 256: the rule takes the precision that was the fastest. */
static void the_precision(void **state) {
  enum { MEASURED = 5 };
  static const struct {
    double mass, above, none, single, half;
  } of[MEASURED] = {{0.01, 0.0, 0.156, INFINITY, 0.0665},
                    {0.005, 0.0, 0.2385, 0.1888, 0.1334},
                    {0.002, 0.0, 0.5906, 0.3856, 0.2942},
                    {0.005, 1.2e-3, 0.0443, 0.0304, 0.0284},
                    {0.001, 1.2e-3, 0.0491, 0.0326, 0.0303}};
  double noise, most;
  (void)state;
  for (int k = 0; k < MEASURED; k++) {
    md_auto_inner f = {of[k].mass, 1e-10, of[k].above, &md_solver_cg, 16, 663552.0, false};
    const bool half = md_auto_inner_fits(&f, MD_HALF, &noise, &most);
    const bool single = md_auto_inner_fits(&f, MD_SINGLE, &noise, &most);
    const double taken = half ? of[k].half : single ? of[k].single : of[k].none;
    assert_true(taken == fmin(of[k].none, fmin(of[k].single, of[k].half)));
    f.mass = 0.05; /* where rounding costs nothing */
    assert_true(md_auto_inner_fits(&f, MD_HALF, &noise, &most));
    f.mass = 1e-5;
    assert_int_equal(md_auto_inner_fits(&f, MD_SINGLE, &noise, &most), of[k].above > 0.0);
    f.mass = 0.003; /* block CG goes on, where it is taken */
    f.solver = &md_solver_auto;
    assert_true(md_auto_inner_fits(&f, MD_HALF, &noise, &most));
  }
}

static void solve(md_context *context, problem *p, double mass, bool mixed,
                  md_solver_result *result) {
  md_solver_request how = {
      .mass = mass, .tolerance = 1e-10, .max_iterations = 4000, .solver = &md_solver_auto};
  md_dirac dirac, narrow = {0};
  problem_dirac(context, p, "cpu_simd", MD_DOUBLE, &dirac);
  if (mixed) problem_dirac(context, p, "cpu_simd", MD_HALF, &narrow);
  if (mixed) how.inner = &narrow;
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &how, p->x, p->b, result));
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&narrow);
}

typedef struct way {
  int n_rhs;
  double mass;
  bool mixed;
  bool block; /* what it must come to */
  const char *reason;
} way;
static const way ways[] = {
    {1, 0.1, false, false, "takes 2 to"},   {3, 0.5, true, false, "3 right-hand sides, at most"},
    {12, 0.05, false, true, "at most 768"}, {12, 0.05, true, true, "at most 768"},
    {12, 1.0, false, false, "at most 49 "},
};

static void solves_by_the_rule(void **state) {
  md_context *context = *state;
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    const way *w = &ways[k];
    double residuals[MD_MAX_RHS];
    md_solver_result result, again;
    problem p;
    problem_make(context, w->n_rhs, &p);
    solve(context, &p, w->mass, w->mixed, &result);
    problem_residuals(context, &p, w->mass, residuals);
    for (int r = 0; r < w->n_rhs; r++) md_require_at_most(residuals[r], 1.1e-10, "the way chosen");
    print_message("%d: %d iterations, %s\n", (int)k, result.iterations, result.choice.reason);
    assert_true(result.converged);
    assert_non_null(strstr(result.choice.reason, w->reason));
    assert_int_equal(result.choice.block, w->block);
    assert_int_equal(result.choice.changed_at, 0);
    solve(context, &p, w->mass, w->mixed, &again);
    assert_int_equal(again.iterations, result.iterations);
    assert_memory_equal(again.history, result.history,
                        (size_t)(result.iterations + 1) * sizeof *result.history);
    md_solver_result_free(&result);
    md_solver_result_free(&again);
    problem_drop(&p);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(the_rule), cmocka_unit_test(the_precision),
                                    cmocka_unit_test(solves_by_the_rule)};
MD_RUN_TESTS(tests)
