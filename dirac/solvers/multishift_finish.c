#include "base/memory_need.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/mixed_cg.h"
#include "dirac/solvers/multishift_state.h"
#include "lattice/fields/linear.h"

#include <math.h>

double md_shift_mass(const md_multishift_state *m, int k) {
  return sqrt(m->request->mass * m->request->mass + m->request->shifts[k]);
}

/* residual = b - (A + shift) x and its norms over |b|, by m->x. */
static md_status true_residual(md_multishift_state *m, int k, double *norm2) {
  const int n = m->x.n_rhs;
  double minus[MD_MAX_RHS], worst = 0.0;
  MD_TRY(md_dirac_mdag_m(m->context, m->exact, md_shift_mass(m, k), &m->residual, &m->x,
                         &m->work_exact));
  for (int r = 0; r < n; r++) minus[r] = -1.0;
  md_linear_xpby(&m->source, minus, &m->residual);
  MD_TRY(md_linear_norm2(m->context, &m->residual, NULL, norm2));
  for (int r = 0; r < n; r++) {
    if (!isfinite(norm2[r]))
      return md_fail(m->context, MD_UNREACHED,
                     "the true residual must be finite, got norm^2 %g for shift %g", norm2[r],
                     m->request->shifts[k]);
    if (m->b_norm[r] > 0.0) worst = fmax(worst, sqrt(norm2[r]) / m->b_norm[r]);
  }
  m->result->shifts[k].relative_residual = worst;
  m->result->shifts[k].converged = worst <= m->request->tolerance;
  return MD_OK;
}

/* The right-hand side of CG for the rest of a solution. */
static void hand_over(const md_multishift_state *m, double mass, const double *norm2,
                      md_cg_state *state) {
  md_linear_copy(&state->r, &m->residual);
  md_linear_copy(&state->p, &m->residual);
  for (int r = 0; r < state->n_rhs; r++) {
    state->r_norm2[r] = norm2[r];
    state->b_norm[r] = m->b_norm[r] / mass; /* its tolerance is on tolerance mass b_norm */
  }
}

/* CG in double, or mixed, for the rest of the solution of one shift. */
static md_status refine(md_multishift_state *m, int k, const double *norm2) {
  md_cg_state state = {0};
  double one[MD_MAX_RHS], again[MD_MAX_RHS];
  const bool narrow = m->dirac->request.precision != MD_DOUBLE;
  const md_solver_request how = {.mass = md_shift_mass(m, k),
                                 .tolerance = m->request->tolerance,
                                 .max_iterations = m->request->max_iterations,
                                 .inner = narrow ? m->dirac : NULL,
                                 .modes = m->request->modes};
  md_status status = md_cg_state_create(m->context, m->exact, how.max_iterations, &state);
  status = md_agree(m->context, status);
  const bool solves = !md_counts(m->context);
  if (status == MD_OK && solves) hand_over(m, how.mass, norm2, &state);
  if (status == MD_OK)
    status = how.inner ? md_mixed_cg_iterate(m->context, m->exact, &how, &state)
                       : md_cg_iterate(m->context, m->exact, &how, &state);
  if (status == MD_OK && solves) {
    for (int r = 0; r < state.n_rhs; r++) one[r] = 1.0;
    md_linear_axpy(one, &state.x, &m->x);
    m->result->shifts[k].refine_iterations += state.iteration;
    m->result->interrupted = state.interrupted;
    status = true_residual(m, k, again);
  }
  md_cg_state_destroy(&state);
  return status;
}

/* m->x += the modes' part of the solution of a shift, with which it began. */
static md_status add_modes(md_multishift_state *m, int k) {
  const md_modes *modes = m->request->modes;
  double part2[MD_MAX_RHS];
  bool added;
  if (!modes || modes->count == 0) return MD_OK;
  return md_low_modes_project(m->context, modes, md_shift_mass(m, k), &m->source, NULL, &m->x,
                              part2, &added);
}

/* m->x = what the iterations have found in both precisions. */
static md_status take_solution(md_multishift_state *m, const md_shifted *s) {
  double one[MD_MAX_RHS];
  if (!s->found.data) return md_field_convert(m->context, &m->x, &s->x);
  for (int r = 0; r < m->x.n_rhs; r++) one[r] = 1.0;
  MD_TRY(md_field_convert(m->context, &m->x, &s->found));
  if (!s->x.data) return MD_OK;
  MD_TRY(md_field_convert(m->context, &m->residual, &s->x));
  md_linear_axpy(one, &m->residual, &m->x);
  return MD_OK;
}

/* True residuals, refinements, solutions to the caller. */
md_status md_multishift_finish(md_multishift_state *m, md_field *x) {
  m->result->converged = true;
  if (md_counts(m->context)) /* the smallest is the hardest to refine */
    return m->request->refine ? refine(m, m->smallest, m->r_norm2) : MD_OK;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shift_result *result = &m->result->shifts[k];
    double norm2[MD_MAX_RHS];
    result->shift = m->request->shifts[k];
    MD_TRY(md_agree(m->context, take_solution(m, &m->shifts[k])));
    MD_TRY(add_modes(m, k));
    MD_TRY(true_residual(m, k, norm2));
    if (m->request->refine && !result->converged && !m->result->interrupted)
      MD_TRY(refine(m, k, norm2));
    m->result->converged = m->result->converged && result->converged;
    MD_TRY(md_agree(m->context, md_field_convert(m->context, &x[k], &m->x)));
  }
  return MD_OK;
}
