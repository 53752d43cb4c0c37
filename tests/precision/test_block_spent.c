/* Block CG in half at a small mass, where the directions of the block come to be more than the
 * whole space: what it deflates with is rounding then, which must not grow in the solution. */
#include "problem.h"

static void converges(void **state) {
  md_context *context = *state;
  static const int widths[] = {8, 9, 10, 12, 16};
  for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
    const double mass = 0.002, tolerance = 1e-10;
    double residuals[MD_MAX_RHS];
    md_dirac dirac, narrow;
    md_solver_result result;
    problem p;
    problem_make(context, widths[k], &p);
    problem_dirac(context, &p, "cpu_simd", MD_DOUBLE, &dirac);
    problem_dirac(context, &p, "cpu_simd", MD_HALF, &narrow);
    const md_solver_request how = {.mass = mass,
                                   .tolerance = tolerance,
                                   .max_iterations = 4000,
                                   .inner = &narrow,
                                   .solver = &md_solver_block};
    MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &how, p.x, p.b, &result));
    print_message("%d right-hand sides: %d iterations, %d begun anew\n", widths[k],
                  result.iterations, result.restarts);
    assert_true(result.converged);
    problem_residuals(context, &p, mass, residuals);
    for (int r = 0; r < widths[k]; r++)
      md_require_at_most(residuals[r], 1.1 * tolerance, "a block that is spent");
    md_solver_result_free(&result);
    md_dirac_destroy(&dirac);
    md_dirac_destroy(&narrow);
    problem_drop(&p);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(converges)};
MD_RUN_TESTS(tests)
