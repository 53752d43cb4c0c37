/* What CG in one precision attains on the host: the true residual and the solution are as near as
 * the rounding of its storage allows (tests/cuda/solver_problem.h), by the measure that the
 * backends of a GPU are held to as well. */
#include "../cuda/solver_problem.h"

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
    md_backend_request request = {MD_DOUBLE, MD_RECONSTRUCT_18, MD_PACKING_NONE, n_rhs, true};
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

static struct CMUnitTest tests[] = {cmocka_unit_test(every_precision)};
MD_RUN_TESTS(tests)
