#include "problem.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"

#include <math.h>

void problem_make(md_context *context, int n_rhs, problem *p) {
  const md_backend_request naive = {.n_rhs = n_rhs, .antiperiodic = true};
  problem_make_of(context, &naive, p);
}

void problem_make_of(md_context *context, const md_backend_request *request, problem *p) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, request->n_rhs, true, false};
  const int dims[MD_DIMS] = {4, 4, 4, 8};
  p->physics = *request;
  p->g = md_test_action_geometry(context, request->action, dims, false);
  md_test_random_links(context, p->g, request->action, 31, p->field);
  for (int k = 0; k < MD_PARITIES; k++) {
    MD_REQUIRE(context, md_field_create(context, p->g, &shape, k, &p->b[k]));
    MD_REQUIRE(context, md_field_create(context, p->g, &shape, k, &p->x[k]));
  }
  md_source_gaussian(p->b, 8);
}

void problem_drop(problem *p) {
  for (int k = 0; k < MD_PARITIES; k++) {
    md_field_destroy(&p->b[k]);
    md_field_destroy(&p->x[k]);
  }
  md_test_destroy_links(p->physics.action, p->field);
  md_geometry_destroy(p->g);
}

void problem_dirac(md_context *context, const problem *p, const char *backend,
                   md_precision precision, md_dirac *dirac) {
  const md_backend_request request = {.precision = precision,
                                      .n_rhs = p->b[0].n_rhs,
                                      .antiperiodic = p->physics.antiperiodic,
                                      .action = p->physics.action,
                                      .twist = p->physics.twist};
  MD_REQUIRE(context, md_dirac_create(context, p->field, backend, &request, dirac));
}

void problem_residuals(md_context *context, problem *p, double mass, double *residuals) {
  double minus[MD_MAX_RHS], r2[MD_PARITIES][MD_MAX_RHS], b2[MD_PARITIES][MD_MAX_RHS];
  md_field m_x[MD_PARITIES];
  md_dirac dirac;
  problem_dirac(context, p, "cpu_ref", MD_DOUBLE, &dirac);
  for (int k = 0; k < MD_PARITIES; k++)
    MD_REQUIRE(context, md_dirac_field(context, &dirac, k, &m_x[k]));
  for (int r = 0; r < MD_MAX_RHS; r++) minus[r] = -1.0;
  MD_REQUIRE(context, md_dirac_m(context, &dirac, mass, 1.0, m_x, p->x));
  for (int k = 0; k < MD_PARITIES; k++) {
    md_linear_axpy(minus, &p->b[k], &m_x[k]);
    MD_REQUIRE(context, md_linear_norm2(context, &m_x[k], NULL, r2[k]));
    MD_REQUIRE(context, md_linear_norm2(context, &p->b[k], NULL, b2[k]));
    md_field_destroy(&m_x[k]);
  }
  for (int r = 0; r < p->b[0].n_rhs; r++)
    residuals[r] = sqrt((r2[0][r] + r2[1][r]) / (b2[0][r] + b2[1][r]));
  md_dirac_destroy(&dirac);
}

void problem_make_dependent(md_context *context, problem *p) {
  problem other;
  problem_make(context, 5, p);
  problem_make(context, 5, &other);
  for (int k = 0; k < MD_PARITIES; k++) {
    const double twice[5] = {0.0, 0.0, 2.0, 0.0, 1.0}, keep[5] = {1.0, 0.0, 0.0, 1.0, 0.0};
    const double little[5] = {0.0, 0.0, 0.0, 0.0, 1e-9};
    for (int r = 0; r < 5; r++) md_field_copy_rhs(&other.b[k], r, &p->b[k], 0);
    md_linear_axpby(twice, &other.b[k], keep, &p->b[k]);
    for (int r = 0; r < 5; r++) md_field_copy_rhs(&other.b[k], r, &p->b[k], 3);
    md_linear_axpy(little, &other.b[k], &p->b[k]);
  }
  problem_drop(&other);
}

void problem_check_dependent(md_context *context, problem *p, double mass, double tolerance) {
  double residuals[MD_MAX_RHS];
  problem_residuals(context, p, mass, residuals);
  for (int r = 0; r < 5; r++)
    if (r != 1) md_require_at_most(residuals[r], 1.1 * tolerance, "dependent sources");
  MD_REQUIRE(context, md_linear_norm2(context, &p->x[MD_EVEN], NULL, residuals));
  assert_true(residuals[1] == 0.0);
}
