/* What CG in one precision attains on the host: the true residual and the solution are as near as
 * the rounding of its storage allows (tests/cuda/solver_problem.h), by the measure that the
 * backends of a GPU are held to as well. */
#include "../cuda/solver_problem.h"
#include "lattice/fields/linear.h"

#include <math.h>

static const int extent[4] = {8, 4, 4, 8};

static md_solver_result solve(md_context *context, problem *p, const char *backend,
                              md_backend_request request, const md_solver_request *solver) {
  md_dirac dirac, exact;
  md_solver_result result;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &request, &dirac));
  request.precision = MD_DOUBLE;
  request.reconstruct = MD_RECONSTRUCT_18;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &request, &exact));
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &exact, solver, p->x, p->b, &result));
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&exact);
  return result;
}

static void every_precision(void **state) {
  md_context *context = *state;
  for (int n_rhs = 1; n_rhs <= 6; n_rhs += 5) {
    md_solver_request solver = {.mass = 0.3, .tolerance = 1e-12, .max_iterations = 400};
    md_backend_request request = {.precision = MD_DOUBLE,
                                  .reconstruct = MD_RECONSTRUCT_18,
                                  .n_rhs = n_rhs,
                                  .antiperiodic = true};
    problem exact, p;
    problem_make(context, extent, n_rhs, false, &exact);
    problem_make(context, extent, n_rhs, false, &p);
    md_solver_result want = solve(context, &exact, "cpu_simd", request, &solver);
    for (int k = 0; k < MD_PRECISIONS; k++)
      for (int reals = MD_RECONSTRUCT_18; reals <= MD_RECONSTRUCT_12; reals++) {
        request.precision = (md_precision)k;
        request.reconstruct = (md_reconstruct)reals;
        solver.tolerance = problem_tolerance(request.precision);
        md_solver_result got = solve(context, &p, "cpu_simd", request, &solver);
        print_message("%s: %.2e, ", md_precision_name(request.precision), got.relative_residual);
        problem_check(context, &p, &exact, request.precision, &solver, &got);
        md_solver_result_free(&got);
      }
    md_solver_result_free(&want);
    problem_drop(&exact);
    problem_drop(&p);
  }
}

/* The history shows the largest residual of all right-hand sides. The even system of the second
 * one, m b_e - Deo b_o, has a right-hand side of rounding errors alone. */
static void history_is_of_the_worst(void **state) {
  md_context *context = *state;
  const md_solver_request solver = {.mass = 0.3, .tolerance = 1e-8, .max_iterations = 400};
  const md_backend_request request = {
      .precision = MD_DOUBLE, .reconstruct = MD_RECONSTRUCT_18, .n_rhs = 2, .antiperiodic = true};
  const double second[2] = {0.0, 1.0 / solver.mass}, first[2] = {1.0, 0.0};
  problem p;
  md_dirac dirac;
  problem_make(context, extent, 2, false, &p);
  MD_REQUIRE(context, md_dirac_create(context, &p.gauge, "cpu_simd", &request, &dirac));
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &p.x[MD_EVEN], &p.b[MD_ODD], NULL));
  md_linear_axpby(second, &p.x[MD_EVEN], first, &p.b[MD_EVEN]);
  md_dirac_destroy(&dirac);
  md_solver_result result = solve(context, &p, "cpu_simd", request, &solver);
  assert_int_equal(result.rhs_iterations[1], 0);
  assert_true(result.history[0] > 1.0 && result.iterations > 10);
  for (int k = 0; k < result.iterations; k++) assert_true(result.history[k] > solver.tolerance);
  assert_true(result.history[result.iterations] <= solver.tolerance);
  md_solver_result_free(&result);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(every_precision),
                                    cmocka_unit_test(history_is_of_the_worst)};
MD_RUN_TESTS(tests)
