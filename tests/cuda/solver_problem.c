#include "solver_problem.h"
#include "lattice/fields/linear.h"

#include <math.h>

void problem_make(md_context *context, const int extent[4], int n_rhs, bool halo, problem *p) {
  p->geometry = md_test_geometry(context, extent[0], extent[1], extent[2], extent[3], halo);
  md_test_random_gauge(context, p->geometry, 7, &p->gauge);
  for (int q = 0; q < MD_PARITIES; q++) {
    md_test_random_field(context, p->geometry, MD_DOUBLE, n_rhs, q, 21, &p->b[q]);
    md_test_random_field(context, p->geometry, MD_DOUBLE, n_rhs, q, 22, &p->x[q]);
  }
}

void problem_drop(problem *p) {
  for (int q = 0; q < MD_PARITIES; q++) {
    md_field_destroy(&p->b[q]);
    md_field_destroy(&p->x[q]);
  }
  md_gauge_destroy(&p->gauge);
  md_geometry_destroy(p->geometry);
}

double problem_tolerance(md_precision precision) {
  switch (precision) {
  case MD_DOUBLE:
    return 1e-11;
  case MD_SINGLE:
    return 1e-5;
  case MD_FIXED:
    return 3e-3;
  default:
    return 3e-2;
  }
}

/* The largest over right-hand sides of |a - b| / |c|, all over both parities. */
static double largest_ratio(md_context *context, const md_field a[2], const md_field b[2],
                            const md_field c[2]) {
  double difference[MD_MAX_RHS] = {0}, size[MD_MAX_RHS] = {0}, largest = 0.0;
  for (int q = 0; q < MD_PARITIES; q++) {
    double d2[MD_MAX_RHS], s2[MD_MAX_RHS], minus[MD_MAX_RHS];
    md_field copy;
    const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, a[q].n_rhs, true, false};
    MD_REQUIRE(context, md_field_create(context, a[q].geometry, &shape, q, &copy));
    MD_REQUIRE(context, md_field_convert(context, &copy, &a[q]));
    for (int r = 0; r < a[q].n_rhs; r++) minus[r] = -1.0;
    md_linear_axpy(minus, &b[q], &copy);
    MD_REQUIRE(context, md_linear_norm2(context, &copy, NULL, d2));
    MD_REQUIRE(context, md_linear_norm2(context, &c[q], NULL, s2));
    for (int r = 0; r < a[q].n_rhs; r++) difference[r] += d2[r], size[r] += s2[r];
    md_field_destroy(&copy);
  }
  for (int r = 0; r < a[0].n_rhs; r++) largest = fmax(largest, sqrt(difference[r] / size[r]));
  return largest;
}

void problem_check(md_context *context, const problem *p, const problem *exact,
                   md_precision precision, const md_solver_request *solver,
                   const md_solver_result *result) {
  const double roundoff = md_precision_roundoff(precision);
  const double distance = largest_ratio(context, p->x, exact->x, p->b);
  md_require_at_most(result->relative_residual, solver->tolerance + 26.0 * roundoff,
                     "true residual");
  md_require_at_most(distance, (result->relative_residual + 1e-11) / solver->mass, "solution");
}
