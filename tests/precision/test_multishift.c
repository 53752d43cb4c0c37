/* Multi-shift CG: every shift solves its own system by an independent residual, shifts that are
 * done stop, refinement reaches double-precision answers from narrower iterations, and the same
 * numbers come out on every rank grid. */
#include "../dirac/backend_cases.h"
#include "dirac/solvers/multishift.h"
#include "lattice/fields/linear.h"
#include "problem.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { SHIFTS = 5 };
static const double shifts[SHIFTS] = {0.5, 0.0, 0.003, 20.0, 0.05};
static const md_multishift_request request = {
    .mass = 0.4, .shifts = shifts, .n_shifts = SHIFTS, .tolerance = 1e-11, .max_iterations = 2000};

static md_status solve(md_context *context, problem *p, const backend_case *c,
                       const md_multishift_request *how, md_field x[SHIFTS],
                       md_multishift_result *result) {
  md_dirac dirac, exact;
  for (int k = 0; k < SHIFTS; k++) host_copy(context, &p->x[MD_EVEN], &x[k]);
  case_dirac(context, c, p->field, &dirac);
  problem_dirac(context, p, "auto", MD_DOUBLE, &exact);
  const md_status status =
      md_solve_multishift(context, &dirac, &exact, how, x, &p->b[MD_EVEN], result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&exact);
  return status;
}

/* |b - (M^dag M + shift) x| / |b| by cpu_ref, largest of the right-hand sides. */
static double residual_of(md_context *context, problem *p, double shift, md_field *x) {
  double minus[MD_MAX_RHS], r2[MD_MAX_RHS], b2[MD_MAX_RHS], factor[MD_MAX_RHS], worst = 0.0;
  md_field a_x, work;
  md_dirac dirac;
  problem_dirac(context, p, "cpu_ref", MD_DOUBLE, &dirac);
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, &a_x));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_ODD, &work));
  MD_REQUIRE(context, md_dirac_mdag_m(context, &dirac, request.mass, &a_x, x, &work));
  for (int r = 0; r < MD_MAX_RHS; r++) minus[r] = -1.0, factor[r] = shift;
  md_linear_axpy(factor, x, &a_x);
  md_linear_axpy(minus, &p->b[MD_EVEN], &a_x);
  MD_REQUIRE(context, md_linear_norm2(context, &a_x, NULL, r2));
  MD_REQUIRE(context, md_linear_norm2(context, &p->b[MD_EVEN], NULL, b2));
  for (int r = 0; r < x->n_rhs; r++) worst = fmax(worst, sqrt(r2[r] / b2[r]));
  md_field_destroy(&a_x);
  md_field_destroy(&work);
  md_dirac_destroy(&dirac);
  return worst;
}

static void check_case(md_context *context, const backend_case *c) {
  problem p;
  md_field x[SHIFTS];
  md_multishift_result result;
  md_multishift_request how = request;
  if (case_is_spared(c)) return;
  how.refine = c->request.precision != MD_DOUBLE || c->request.reconstruct != MD_RECONSTRUCT_18;
  problem_make_of(context, &c->request, &p);
  MD_REQUIRE(context, solve(context, &p, c, &how, x, &result));
  assert_true(result.converged);
  for (int k = 0; k < SHIFTS; k++) {
    const md_shift_result *s = &result.shifts[k];
    const double own = residual_of(context, &p, shifts[k], &x[k]);
    md_require_at_most(own, 1.1 * request.tolerance, "residual of a shift");
    md_require_at_most(fabs(own - s->relative_residual), 0.01 * request.tolerance, "reported");
    if (!how.refine) assert_int_equal(s->refine_iterations, 0);
    md_field_destroy(&x[k]);
  }
  /* In the order of the shifts 20, 0.5, 0.05, 0.003, 0: the larger, the earlier. The last two
   * differ by 2 % of the smallest eigenvalue and may end in one iteration. */
  const int order[SHIFTS] = {3, 0, 4, 2, 1};
  for (int i = 1; i < SHIFTS; i++) {
    const int larger = result.shifts[order[i - 1]].iterations;
    assert_true(larger <= result.shifts[order[i]].iterations - (i < SHIFTS - 1 ? 1 : 0));
  }
  assert_int_equal(result.shifts[1].iterations, result.iterations);
  md_multishift_result_free(&result);
  problem_drop(&p);
}

/* Emulated Tensor Cores take longer than all the others together; they have the naive action. */
static void check_improved(md_context *context, const backend_case *c) {
  if (c->request.packing == MD_PACKING_NONE || c->backend->space == MD_DEVICE)
    check_case(context, c);
}

static void every_shift_is_solved(void **state) {
  static const int n_rhs[] = {1, 2};
  each_backend_case(*state, n_rhs, 2, check_case);
  each_improved_case(*state, &n_rhs[1], 1, check_improved);
}

static void results_do_not_depend_on_the_cut(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1};
  const backend_case c = {NULL, {.n_rhs = 2, .antiperiodic = true}};
  md_multishift_result results[2];
  md_context *const contexts[2] = {&alone, context};
  for (int i = 0; i < 2; i++) {
    problem p;
    md_field x[SHIFTS];
    backend_case mine = c;
    MD_REQUIRE(contexts[i], md_backend_find(contexts[i], "cpu_simd", &c.request, &mine.backend));
    omp_set_num_threads(i + 1);
    problem_make(contexts[i], 2, &p);
    MD_REQUIRE(contexts[i], solve(contexts[i], &p, &mine, &request, x, &results[i]));
    for (int k = 0; k < SHIFTS; k++) md_field_destroy(&x[k]);
    problem_drop(&p);
  }
  for (int k = 0; k < SHIFTS; k++) {
    assert_int_equal(results[0].shifts[k].iterations, results[1].shifts[k].iterations);
    assert_true(results[0].shifts[k].estimate == results[1].shifts[k].estimate);
    assert_true(results[0].shifts[k].relative_residual == results[1].shifts[k].relative_residual);
  }
  md_multishift_result_free(&results[0]);
  md_multishift_result_free(&results[1]);
}

/* Narrow iterations that double ones precede leave next to nothing to refine, and are most of the
 * way where the tolerance allows. */
static void narrow_iterations_begin_in_double(void **state) {
  md_context *context = *state;
  static const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE, MD_HALF};
  static const double tolerances[] = {1e-11, 1e-9};
  int in_double[2][3];
  for (int t = 0; t < 2; t++)
    for (int i = 0; i < 3; i++) {
      backend_case c = {NULL, {.precision = precisions[i], .n_rhs = 2, .antiperiodic = true}};
      md_multishift_request how = request;
      md_multishift_result result;
      problem p;
      md_field x[SHIFTS];
      int refine = 0;
      how.refine = true;
      how.mass = 0.1;
      how.tolerance = tolerances[t];
      MD_REQUIRE(context, md_backend_find(context, "cpu_simd", &c.request, &c.backend));
      problem_make(context, 2, &p);
      MD_REQUIRE(context, solve(context, &p, &c, &how, x, &result));
      assert_true(result.converged);
      in_double[t][i] = i == 0 ? result.iterations : result.double_iterations;
      for (int k = 0; k < SHIFTS; k++) {
        refine += result.shifts[k].refine_iterations;
        md_field_destroy(&x[k]);
      }
      if (i == 0) assert_int_equal(result.double_iterations, 0);
      md_require_at_most(fabs(result.iterations / (double)in_double[t][0] - 1.0), 0.03, "common");
      md_require_at_most(refine, 0.2 * in_double[t][0], "refinement");
      md_multishift_result_free(&result);
      problem_drop(&p);
    }
  for (int i = 1; i < 3; i++) {
    assert_true(in_double[0][i] < in_double[0][0]);
    assert_true(in_double[1][i] < in_double[0][i]);
  }
  assert_true(in_double[0][1] < in_double[0][2]);
}

/* Neither right-hand sides that share the scales of sites with larger ones nor those that are small
 * altogether are lost in narrow iterations. */
static void sources_of_any_norm(void **state) {
  enum { N = 3, CASES = 2 };
  static const double norms[CASES][N] = {{1.0, 1e-5, 1.0}, {1e-60, 1e-60, 1e-60}}, none[N];
  static const md_precision precisions[CASES] = {MD_FIXED, MD_SINGLE};
  md_context *context = *state;
  for (int i = 0; i < CASES; i++) {
    backend_case c = {NULL, {.precision = precisions[i], .n_rhs = N, .antiperiodic = true}};
    md_multishift_request how = request;
    md_multishift_result result;
    problem p;
    md_field x[SHIFTS];
    how.refine = true;
    MD_REQUIRE(context, md_backend_find(context, "cpu_simd", &c.request, &c.backend));
    problem_make(context, N, &p);
    for (int k = 0; k < MD_PARITIES; k++) md_linear_axpby(none, &p.b[k], norms[i], &p.b[k]);
    MD_REQUIRE(context, solve(context, &p, &c, &how, x, &result));
    assert_true(result.converged && result.iterations > result.double_iterations);
    for (int k = 0; k < SHIFTS; k++) {
      md_require_at_most(residual_of(context, &p, shifts[k], &x[k]), 1.1 * request.tolerance,
                         "residual of small sources");
      md_field_destroy(&x[k]);
    }
    md_multishift_result_free(&result);
    problem_drop(&p);
  }
}

static void bad_requests_are_refused(void **state) {
  md_context *context = *state;
  const double negative[1] = {-0.02};
  const md_multishift_request cases[] = {{.mass = 0.1, .shifts = negative, .n_shifts = 1},
                                         {.mass = 0.1, .shifts = negative, .n_shifts = 0}};
  const char *const messages[] = {"shifts must be above -mass^2, got -0.02",
                                  "1 to 64 shifts, got 0"};
  problem p;
  md_dirac dirac;
  md_multishift_result result;
  problem_make(context, 1, &p);
  problem_dirac(context, &p, "auto", MD_DOUBLE, &dirac);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(md_solve_multishift(context, &dirac, &dirac, &cases[i], p.x, p.b, &result),
                     MD_INPUT);
    assert_non_null(strstr(context->message, messages[i]));
  }
  const double none = 0.0, times[] = {1e151, 1e-296, 1.0}; /* too large, too small, NaN */
  const char *const refused[] = {"finite and at most 1e+150", "scale the source",
                                 "source must be finite"};
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 2; k++) md_linear_axpby(&none, &p.b[k], &times[i], &p.b[k]);
    if (i == 2 && context->rank == 0) ((double *)p.b[MD_EVEN].data)[3] = NAN;
    assert_int_equal(md_solve_multishift(context, &dirac, &dirac, &request, p.x, p.b, &result),
                     MD_INPUT);
    assert_non_null(strstr(context->message, refused[i]));
    md_multishift_result_free(&result);
  }
  md_dirac_destroy(&dirac);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shift_is_solved),
    cmocka_unit_test(results_do_not_depend_on_the_cut),
    cmocka_unit_test(narrow_iterations_begin_in_double),
    cmocka_unit_test(sources_of_any_norm),
    cmocka_unit_test(bad_requests_are_refused),
};
MD_RUN_TESTS(tests)
