/* Mixed-precision conjugate gradients on the device, with its iterations fused and not: the
 * solution of the double solver on the host, for every inner precision and operator; each
 * right-hand side ends by itself; NaN and the end of iterations are said. */
#include "gpu_tests.h"
#include "solver_problem.h"

#include <math.h>
#include <string.h>

typedef struct setting {
  const char *backend;
  md_precision inner;
  md_reconstruct reconstruct;
  md_packing packing;
  int n_rhs;
} setting;

static md_status solve(md_context *context, problem *p, const setting *s, bool fused,
                       md_solver_request solver, md_solver_result *result) {
  const md_backend_request wide = {.packing = s->packing, .n_rhs = s->n_rhs, .antiperiodic = true};
  const md_backend_request narrow = {.precision = s->inner,
                                     .reconstruct = s->reconstruct,
                                     .packing = s->packing,
                                     .n_rhs = s->n_rhs,
                                     .antiperiodic = true};
  md_dirac dirac, inner;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, s->backend, &wide, &dirac));
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, s->backend, &narrow, &inner));
  md_backend copy = *inner.backend;
  if (!fused) copy.fuses = NULL;
  inner.backend = &copy;
  solver.inner = &inner;
  const md_status status = md_solve_cg(context, &dirac, &dirac, &solver, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&inner);
  return status;
}

/* In double alone. */
static void solve_in_double(md_context *context, problem *p, const char *backend,
                            md_packing packing, int n_rhs, const md_solver_request *solver,
                            md_solver_result *result) {
  const md_backend_request request = {.packing = packing, .n_rhs = n_rhs, .antiperiodic = true};
  md_dirac dirac;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &request, &dirac));
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, solver, p->x, p->b, result));
  md_dirac_destroy(&dirac);
}

static const double tolerance = 1e-11;

/* Fused and unfused iterations and the host agree in the solution; the two ways of the device
 * differ by the rounding of their sums and by one iteration an update. */
static void compare(md_context *context, const int extent[4], const setting *s, bool halo) {
  const md_solver_request solver = {.mass = 0.3, .tolerance = tolerance, .max_iterations = 400};
  problem device, oracle;
  problem_make(context, extent, s->n_rhs, halo, &device);
  problem_make(context, extent, s->n_rhs, halo, &oracle);
  md_solver_result want;
  solve_in_double(context, &oracle, "cpu_simd", MD_PACKING_NONE, s->n_rhs, &solver, &want);
  for (int fused = 0; fused < 2; fused++) {
    md_solver_result got;
    MD_REQUIRE(context, solve(context, &device, s, fused == 1, solver, &got));
    assert_true(got.converged);
    assert_true(got.updates > 0);
    md_require_at_most(got.relative_residual, tolerance, "true residual");
    md_require_at_most((double)got.iterations, 1.5 * want.iterations + got.updates, "iterations");
    for (int q = 0; q < MD_PARITIES; q++)
      md_require_at_most(md_test_distance(context, &device.x[q], &oracle.x[q]), 40.0 * tolerance,
                         "solution");
    md_solver_result_free(&got);
  }
  md_solver_result_free(&want);
  problem_drop(&device);
  problem_drop(&oracle);
}

static void solves_as_double(void **state) {
  md_context *context = *state;
  static const int extent[4] = {8, 4, 4, 8};
  static const md_reconstruct reals[] = {MD_RECONSTRUCT_18, MD_RECONSTRUCT_12, MD_RECONSTRUCT_8};
  for (int p = MD_SINGLE; p < MD_PRECISIONS; p++)
    for (int n_rhs = 1; n_rhs <= 6; n_rhs += 5)
      for (int halo = 0; halo < 2; halo++)
        compare(context, extent,
                &(setting){"cuda", (md_precision)p, reals[p % 3], MD_PACKING_NONE, n_rhs},
                halo == 1);
}

/* Solution of `s` on the device against that of the cuda backend in double. */
static void compare_stacked(md_context *context, problem *p, const setting *s,
                            const md_field want[MD_PARITIES]) {
  const md_solver_request solver = {.mass = 0.3, .tolerance = tolerance, .max_iterations = 400};
  md_solver_result got;
  if (s->inner == MD_DOUBLE)
    solve_in_double(context, p, s->backend, s->packing, s->n_rhs, &solver, &got);
  else
    MD_REQUIRE(context, solve(context, p, s, true, solver, &got));
  assert_true(got.converged);
  for (int q = 0; q < MD_PARITIES; q++)
    md_require_at_most(md_test_distance(context, &p->x[q], &want[q]), 40.0 * tolerance, "solution");
  md_solver_result_free(&got);
}

/* A lattice that the marching kernel of `stacked` takes in every precision, so that it fuses. */
static void solves_stacked(void **state) {
  md_context *context = *state;
  static const int extent[4] = {16, 16, 16, 64};
  const md_solver_request solver = {.mass = 0.3, .tolerance = tolerance, .max_iterations = 400};
  if (context->ranks > 1) return; /* with a halo it gathers and does not fuse */
  for (int n_rhs = 8; n_rhs <= 16; n_rhs += 8) {
    problem device, oracle;
    md_solver_result want;
    problem_make(context, extent, n_rhs, false, &device);
    problem_make(context, extent, n_rhs, false, &oracle);
    solve_in_double(context, &oracle, "cuda", MD_PACKING_NONE, n_rhs, &solver, &want);
    assert_true(want.converged);
    static const md_precision inner[] = {MD_DOUBLE, MD_HALF, MD_BF16};
    for (int k = 0; k < 3; k++)
      compare_stacked(context, &device,
                      &(setting){"tensor", inner[k], MD_RECONSTRUCT_18, MD_PACKING_STACKED, n_rhs},
                      oracle.x);
    md_solver_result_free(&want);
    problem_drop(&device);
    problem_drop(&oracle);
  }
}

/* On a small lattice at a small mass, where CG ends because its directions are conjugate, the
 * device deflates as the host does: about as many iterations, which without are twice as many. */
static void deflates_as_the_host(void **state) {
  md_context *context = *state;
  static const int extent[4] = {4, 4, 4, 8};
  const md_solver_request solver = {.mass = 0.05, .tolerance = tolerance, .max_iterations = 4000};
  for (int p = MD_SINGLE; p < MD_PRECISIONS; p++) {
    const int n_rhs = p % 2 ? 1 : 3;
    setting s = {"cpu_simd", (md_precision)p, MD_RECONSTRUCT_18, MD_PACKING_NONE, n_rhs};
    problem device, oracle;
    md_solver_result want, got;
    problem_make(context, extent, n_rhs, false, &device);
    problem_make(context, extent, n_rhs, false, &oracle);
    MD_REQUIRE(context, solve(context, &oracle, &s, false, solver, &want));
    s.backend = "cuda";
    for (int fused = 0; fused < 2; fused++) {
      MD_REQUIRE(context, solve(context, &device, &s, fused == 1, solver, &got));
      assert_true(got.converged);
      md_require_at_most((double)got.iterations, 1.15 * want.iterations + got.updates,
                         "iterations");
      for (int q = 0; q < MD_PARITIES; q++)
        md_require_at_most(md_test_distance(context, &device.x[q], &oracle.x[q]),
                           40.0 * tolerance / solver.mass, "solution");
      md_solver_result_free(&got);
    }
    md_solver_result_free(&want);
    problem_drop(&device);
    problem_drop(&oracle);
  }
}

static const setting half_of_three = {"cuda", MD_HALF, MD_RECONSTRUCT_18, MD_PACKING_NONE, 3};
static const int small[4] = {8, 4, 4, 4};

/* A source of zeros takes no iteration and does not disturb the others; sizes of sources do not
 * matter. */
static void each_ends_by_itself(void **state) {
  md_context *context = *state;
  const md_solver_request solver = {.mass = 0.3, .tolerance = tolerance, .max_iterations = 400};
  static const double size[3] = {0.0, 1e-8, 1e6};
  problem p;
  md_solver_result result;
  problem_make(context, small, 3, false, &p);
  for (int q = 0; q < MD_PARITIES; q++)
    for (int64_t i = 0; i < p.geometry->sites; i++) {
      double v[3 * MD_FERMION_REALS];
      for (int r = 0; r < 3; r++) {
        md_field_get(&p.b[q], i, r, v + r * MD_FERMION_REALS);
        for (int c = 0; c < MD_FERMION_REALS; c++) v[r * MD_FERMION_REALS + c] *= size[r];
      }
      md_field_set(&p.b[q], i, v);
    }
  MD_REQUIRE(context, solve(context, &p, &half_of_three, true, solver, &result));
  assert_true(result.converged);
  assert_int_equal(result.rhs_iterations[0], 0);
  assert_true(result.rhs_iterations[1] > 0 && result.rhs_iterations[2] > 0);
  for (int r = 0; r < 3; r++) md_require_at_most(result.residuals[r], tolerance, "one residual");
  md_solver_result_free(&result);
  problem_drop(&p);
}

static void ends_with_its_iterations(void **state) {
  md_context *context = *state;
  problem p;
  problem_make(context, small, 3, false, &p);
  for (int most = 1; most <= 4; most++) {
    md_solver_result result;
    const md_solver_request solver = {.mass = 0.3, .tolerance = tolerance, .max_iterations = most};
    MD_REQUIRE(context, solve(context, &p, &half_of_three, true, solver, &result));
    assert_false(result.converged);
    assert_int_equal(result.iterations, most);
    assert_true(result.relative_residual > tolerance && result.relative_residual < 10.0);
    md_solver_result_free(&result);
  }
  problem_drop(&p);
}

static void not_a_number_ends_it(void **state) {
  md_context *context = *state;
  const md_solver_request solver = {.mass = 0.3, .tolerance = tolerance, .max_iterations = 400};
  problem p;
  md_solver_result result;
  problem_make(context, small, 3, false, &p);
  double u[MD_LINK_REALS] = {NAN};
  md_gauge_set(&p.gauge, MD_EVEN, MD_X, 3, u);
  MD_REQUIRE(context, md_gauge_exchange(context, &p.gauge));
  assert_int_equal(solve(context, &p, &half_of_three, true, solver, &result), MD_UNREACHED);
  assert_non_null(strstr(context->message, "finite"));
  md_solver_result_free(&result);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(solves_as_double),         cmocka_unit_test(solves_stacked),
    cmocka_unit_test(deflates_as_the_host),     cmocka_unit_test(each_ends_by_itself),
    cmocka_unit_test(ends_with_its_iterations), cmocka_unit_test(not_a_number_ends_it)};
MD_RUN_GPU_TESTS(tests)
