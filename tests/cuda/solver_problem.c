#include "solver_problem.h"

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
