/* Mixed-precision CG: double-precision answers from every backend and inner precision in little
 * more iterations than CG in double, one history on every rank grid, right-hand sides that stop on
 * their own, sources far below the range of fp16, links that are not unitary, and recovery from
 * NaN in the inner operator. */
#include "../dirac/backend_cases.h"
#include "lattice/fields/linear.h"
#include "problem.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static const md_solver_request request = {.mass = 0.1, .tolerance = 1e-12, .max_iterations = 2000};

static md_status solve_at(md_context *context, double mass, problem *p, md_dirac *inner,
                          md_solver_result *result) {
  md_dirac outer;
  md_solver_request how = request;
  how.mass = mass;
  how.inner = inner;
  problem_dirac(context, p, "auto", MD_DOUBLE, &outer);
  const md_status status = md_solve_cg(context, &outer, &outer, &how, p->x, p->b, result);
  md_dirac_destroy(&outer);
  return status;
}

static md_status solve(md_context *context, problem *p, md_dirac *inner, md_solver_result *result) {
  return solve_at(context, request.mass, p, inner, result);
}

/* At a larger mass, as emulated backends are slow. */
static void check_case(md_context *context, const backend_case *c) {
  problem p;
  md_dirac inner;
  md_solver_result alone, mixed;
  double residuals[MD_MAX_RHS];
  if (c->request.precision == MD_DOUBLE || case_is_spared(c)) return;
  problem_make_of(context, &c->request, &p);
  case_dirac(context, c, p.field, &inner);
  MD_REQUIRE(context, solve_at(context, 0.5, &p, NULL, &alone));
  MD_REQUIRE(context, solve_at(context, 0.5, &p, &inner, &mixed));
  problem_residuals(context, &p, 0.5, residuals);
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(residuals[r], 1.1 * request.tolerance, c->backend->name);
  assert_true(mixed.converged);
  assert_int_equal(mixed.restarts, 0);
  assert_true(mixed.updates > 0);
  const double ratio = c->request.precision == MD_SINGLE ? 1.1 : 1.5;
  md_require_at_most(mixed.iterations, ratio * alone.iterations, "iterations");
  md_solver_result_free(&alone);
  md_solver_result_free(&mixed);
  md_dirac_destroy(&inner);
  problem_drop(&p);
}

static void every_backend_reaches_double(void **state) {
  static const int n_rhs[] = {1, 3};
  each_backend_case(*state, n_rhs, 2, check_case);
  each_improved_case(*state, &n_rhs[1], 1, check_case);
}

static void history_does_not_depend_on_the_cut(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1};
  problem p;
  md_dirac inner;
  md_solver_result expected, result;
  omp_set_num_threads(1);
  problem_make(&alone, 2, &p);
  problem_dirac(&alone, &p, "cpu_simd", MD_HALF, &inner);
  MD_REQUIRE(&alone, solve(&alone, &p, &inner, &expected));
  md_dirac_destroy(&inner);
  problem_drop(&p);
  omp_set_num_threads(2);
  problem_make(context, 2, &p);
  problem_dirac(context, &p, "cpu_simd", MD_HALF, &inner);
  MD_REQUIRE(context, solve(context, &p, &inner, &result));
  assert_int_equal(result.iterations, expected.iterations);
  assert_memory_equal(result.history, expected.history,
                      ((size_t)expected.iterations + 1) * sizeof(double));
  assert_memory_equal(result.residuals, expected.residuals, 2 * sizeof(double));
  md_solver_result_free(&expected);
  md_solver_result_free(&result);
  md_dirac_destroy(&inner);
  problem_drop(&p);
}

/* Sources of norm 1, 0 and 1e-25: what fp16 without scales holds as zero. */
static void sizes_of_sources_do_not_matter(void **state) {
  md_context *context = *state;
  const double factor[3] = {1.0, 0.0, 1e-25}, none[3] = {0.0};
  const md_precision precisions[] = {MD_HALF, MD_BF16, MD_FIXED};
  for (int i = 0; i < 3; i++) {
    problem p;
    md_dirac inner;
    md_solver_result result;
    double residuals[MD_MAX_RHS];
    problem_make(context, 3, &p);
    for (int k = 0; k < MD_PARITIES; k++) md_linear_axpby(factor, &p.b[k], none, &p.b[k]);
    problem_dirac(context, &p, "auto", precisions[i], &inner);
    MD_REQUIRE(context, solve(context, &p, &inner, &result));
    problem_residuals(context, &p, request.mass, residuals);
    assert_true(result.converged);
    assert_int_equal(result.rhs_iterations[1], 0);
    md_require_at_most(residuals[0], 1.1 * request.tolerance, "source of norm one");
    md_require_at_most(residuals[2], 1.1 * request.tolerance, "tiny source");
    md_require_at_most(result.rhs_iterations[2], 1.2 * result.rhs_iterations[0], "tiny source");
    md_solver_result_free(&result);
    md_dirac_destroy(&inner);
    problem_drop(&p);
  }
}

/* Third rows that reconstruct-12 does not see: those off by 1e-4 are mended by the updates, which
 * read whole links; the answer is that of the links as they are. */
static void reconstruction_does_not_change_the_answer(void **state) {
  md_context *context = *state;
  md_backend_request how = {
      .precision = MD_SINGLE, .reconstruct = MD_RECONSTRUCT_12, .n_rhs = 1, .antiperiodic = true};
  for (int damaged = 0; damaged < 2; damaged++) {
    problem p;
    md_dirac inner;
    md_solver_result result;
    double residuals[MD_MAX_RHS];
    problem_make(context, 1, &p);
    for (int64_t i = 0; damaged && i < p.g->sites; i++) {
      double u[MD_LINK_REALS];
      md_gauge_get(p.field, MD_ODD, MD_Z, i, u);
      for (int c = 12; c < MD_LINK_REALS; c++) u[c] *= 1.0 + 1e-4;
      md_gauge_set(p.field, MD_ODD, MD_Z, i, u);
    }
    MD_REQUIRE(context, md_gauge_exchange(context, p.field));
    MD_REQUIRE(context, md_dirac_create(context, p.field, "auto", &how, &inner));
    MD_REQUIRE(context, solve(context, &p, &inner, &result));
    problem_residuals(context, &p, request.mass, residuals);
    md_require_at_most(residuals[0], 1.1 * request.tolerance, damaged ? "damaged" : "exact");
    md_solver_result_free(&result);
    md_dirac_destroy(&inner);
    problem_drop(&p);
  }
}

/* A backend that spoils the result of some calls of another one. */
typedef struct spoiled {
  const md_backend *backend;
  void *state;
  int call, first, count; /* calls first .. first+count-1 put NaN into a site of rank 0; two, as
                              the boundary call may write what the interior one spoiled */
} spoiled;

static md_status spoiled_hop(md_context *context, void *state, const md_hop_call *hop) {
  spoiled *s = state;
  const int call = s->call++;
  MD_TRY(s->backend->hop(context, s->state, hop));
  if (context->rank == 0 && call >= s->first && call < s->first + s->count)
    ((float *)hop->out->data)[0] = NAN;
  return MD_OK;
}

static void not_a_number_in_the_inner_operator(void **state) {
  md_context *context = *state;
  for (int forever = 0; forever < 2; forever++) {
    problem p;
    md_dirac inner;
    md_solver_result result;
    problem_make(context, 1, &p);
    problem_dirac(context, &p, "cpu_simd", MD_SINGLE, &inner);
    const md_backend *real = inner.backend;
    spoiled s = {real, inner.state, 0, 100, forever ? 1000000 : 2};
    md_backend fake = *real;
    fake.hop = spoiled_hop;
    inner.backend = &fake;
    inner.state = &s;
    const md_status status = solve(context, &p, &inner, &result);
    assert_int_equal(status, forever ? MD_UNREACHED : MD_OK);
    if (forever) {
      assert_non_null(strstr(context->message, "failed twice from one solution"));
    } else {
      double residuals[MD_MAX_RHS];
      problem_residuals(context, &p, request.mass, residuals);
      md_require_at_most(residuals[0], 1.1 * request.tolerance, "after NaN");
      assert_int_equal(result.restarts, 1);
    }
    md_solver_result_free(&result);
    inner.backend = real;
    inner.state = s.state;
    md_dirac_destroy(&inner);
    problem_drop(&p);
  }
}

/* A tolerance that double cannot hold: the solve ends by itself and says that it stalled. */
static void a_stalled_solve_says_so(void **state) {
  md_context *context = *state;
  const md_precision precisions[] = {MD_SINGLE, MD_HALF, MD_BF16, MD_FIXED};
  for (int i = 0; i < 4; i++) {
    problem p;
    md_dirac inner, outer;
    md_solver_result result;
    md_solver_request how = {.mass = 0.5, .tolerance = 1e-17, .max_iterations = 10000};
    problem_make(context, 1, &p);
    problem_dirac(context, &p, "auto", precisions[i], &inner);
    problem_dirac(context, &p, "auto", MD_DOUBLE, &outer);
    how.inner = &inner;
    MD_REQUIRE(context, md_solve_cg(context, &outer, &outer, &how, p.x, p.b, &result));
    assert_true(result.stalled);
    assert_false(result.converged);
    assert_true(result.iterations < 2000);
    md_require_at_most(result.relative_residual, 1e-14, md_precision_name(precisions[i]));
    md_solver_result_free(&result);
    md_dirac_destroy(&inner);
    md_dirac_destroy(&outer);
    problem_drop(&p);
  }
}

static void operators_must_fit(void **state) {
  md_context *context = *state;
  problem p;
  md_dirac inner;
  md_solver_result result;
  problem_make(context, 1, &p);
  problem_dirac(context, &p, "auto", MD_DOUBLE, &inner);
  assert_int_equal(solve(context, &p, &inner, &result), MD_INPUT);
  assert_non_null(strstr(context->message, "narrower inner one, got double and double"));
  md_dirac_destroy(&inner);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(every_backend_reaches_double),
    cmocka_unit_test(history_does_not_depend_on_the_cut),
    cmocka_unit_test(sizes_of_sources_do_not_matter),
    cmocka_unit_test(reconstruction_does_not_change_the_answer),
    cmocka_unit_test(not_a_number_in_the_inner_operator),
    cmocka_unit_test(a_stalled_solve_says_so),
    cmocka_unit_test(operators_must_fit),
};
MD_RUN_TESTS(tests)
