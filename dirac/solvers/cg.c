#include "dirac/solvers/cg.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>

md_status md_cg_state_create(md_context *context, const md_dirac *dirac, int most,
                             md_cg_state *state) {
  const size_t n = (size_t)dirac->request.n_rhs;
  *state = (md_cg_state){.n_rhs = (int)n, .most = most};
  state->r_norm2 = calloc(n, sizeof *state->r_norm2);
  state->b_norm = calloc(n, sizeof *state->b_norm);
  state->start_norm2 = calloc(n, sizeof *state->start_norm2);
  state->rhs_iterations = calloc(n, sizeof *state->rhs_iterations);
  state->history = calloc((size_t)most + 1, sizeof *state->history);
  if (!state->r_norm2 || !state->b_norm || !state->start_norm2 || !state->rhs_iterations ||
      !state->history)
    return md_fail_memory(context, ((size_t)most + 1) * sizeof(double), "residual history");
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &state->x));
  MD_TRY(md_dirac_field(context, dirac, MD_EVEN, &state->r));
  return md_dirac_field(context, dirac, MD_EVEN, &state->p);
}

bool md_cg_carries(const md_dirac *dirac, const md_solver_request *request) {
  const md_precision precision = dirac->request.precision;
  return !request->inner && !request->block && !request->choose &&
         md_precision_bytes(precision) > 2 && md_dirac_fuses(dirac, precision);
}

md_status md_cg_state_carry(md_context *context, const md_dirac *dirac, md_cg_state *state) {
  state->carried = calloc(3 * (size_t)state->n_rhs, sizeof *state->carried);
  if (!state->carried)
    return md_fail_memory(context, 3 * (size_t)state->n_rhs * sizeof *state->carried,
                          "state of the solver");
  return md_dirac_field(context, dirac, MD_EVEN, &state->before);
}

void md_cg_state_destroy(md_cg_state *state) {
  md_field_destroy(&state->x);
  md_field_destroy(&state->r);
  md_field_destroy(&state->p);
  md_field_destroy(&state->before);
  free(state->carried);
  free(state->r_norm2);
  free(state->b_norm);
  free(state->start_norm2);
  free(state->rhs_iterations);
  free(state->history);
  *state = (md_cg_state){0};
}

md_status md_cg_resume(md_context *context, const md_solver_request *request, md_cg_state *state) {
  if (!request->resume || md_counts(context)) return MD_OK; /* it takes no more than `leave` */
  return md_agree(context, request->resume(request->user, state));
}

bool md_cg_is_read(const md_solver_request *request, int iteration) {
  return request->observe && request->save_every > 0 && iteration % request->save_every == 0;
}

md_status md_cg_leave(md_context *context, const md_solver_request *request,
                      const md_cg_state *state) {
  if (!state->interrupted || !request->leave) return MD_OK;
  return md_agree(context, request->leave(request->user, state));
}

double md_cg_limit(const md_solver_request *request, const md_cg_state *state, int rhs) {
  return fmax(request->tolerance, state->tolerance) * request->mass * state->b_norm[rhs];
}

static bool done(const md_solver_request *request, const md_cg_state *state, int rhs) {
  return sqrt(state->r_norm2[rhs]) <= md_cg_limit(request, state, rhs);
}

/* Writes the history entry of this iteration; true when no right-hand side is left. */
bool md_cg_record(const md_solver_request *request, md_cg_state *state) {
  double largest = 0.0;
  bool all = true;
  for (int r = 0; r < state->n_rhs; r++) {
    const double scale = request->mass * state->b_norm[r];
    if (scale > 0.0) largest = fmax(largest, sqrt(state->r_norm2[r]) / scale);
    all = all && done(request, state, r);
  }
  state->history[state->iteration] = largest;
  return all;
}

/* alpha = |r|^2 / <p, A p> of the right-hand sides that go on, 0 for the others. */
static md_status step_lengths(md_context *context, const md_solver_request *request,
                              const md_cg_state *state, const double *p_ap, double *alpha) {
  for (int r = 0; r < state->n_rhs; r++) {
    alpha[r] = 0.0;
    if (done(request, state, r)) continue;
    if (!isfinite(p_ap[r]))
      return md_fail(context, MD_UNREACHED,
                     "sums of the solver must be finite, got %g in iteration %d of right-hand side "
                     "%d; check the links for NaN, or use a wider precision",
                     p_ap[r], state->iteration + 1, r);
    if (!(p_ap[r] > 0.0))
      return md_fail(context, MD_UNREACHED,
                     "<p, A p> must be positive, got %g in iteration %d of right-hand side %d; the "
                     "precision is too narrow for this mass, use a wider one",
                     p_ap[r], state->iteration + 1, r);
    alpha[r] = state->r_norm2[r] / p_ap[r];
  }
  return MD_OK;
}

/* One iteration in this order: A p and <p, A p>; r -= alpha A p and |r|^2; x and p together. */
static md_status iterate_once(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state, md_field *a_p,
                              md_field *work) {
  double p_ap[MD_MAX_RHS], alpha[MD_MAX_RHS], minus[MD_MAX_RHS], beta[MD_MAX_RHS];
  double norm2[MD_MAX_RHS];
  MD_TRY(md_dirac_mdag_m(context, dirac, request->mass, a_p, &state->p, work));
  MD_TRY(md_linear_dot(context, &state->p, a_p, p_ap));
  MD_TRY(step_lengths(context, request, state, p_ap, alpha));
  for (int r = 0; r < state->n_rhs; r++) minus[r] = -alpha[r];
  MD_TRY(md_linear_axpy_norm2(context, minus, a_p, &state->r, norm2));
  for (int r = 0; r < state->n_rhs; r++) {
    const bool going = alpha[r] != 0.0;
    beta[r] = going ? norm2[r] / state->r_norm2[r] : 0.0;
    if (!going) continue;
    if (!isfinite(norm2[r]))
      return md_fail(context, MD_UNREACHED,
                     "the residual must be finite, got %g in iteration %d of right-hand side %d",
                     norm2[r], state->iteration + 1, r);
    state->r_norm2[r] = norm2[r];
    state->rhs_iterations[r]++;
  }
  md_linear_cg_update(alpha, beta, &state->r, &state->p, &state->x);
  state->iteration++;
  return MD_OK;
}

md_status md_cg_iterate(md_context *context, md_dirac *dirac, const md_solver_request *request,
                        md_cg_state *state) {
  MD_TRY(md_cg_resume(context, request, state));
  if (MINIDIRAC_HAVE_CUDA && md_dirac_fuses(dirac, dirac->request.precision))
    return md_cg_iterate_fused(context, dirac, request, state);
  md_field a_p = {0}, work = {0};
  md_status status = md_dirac_field(context, dirac, MD_EVEN, &a_p);
  if (status == MD_OK) status = md_dirac_field(context, dirac, MD_ODD, &work);
  status = md_agree(context, status);
  bool all = md_counts(context) || (status == MD_OK && md_cg_record(request, state));
  while (status == MD_OK && !all && state->iteration < state->most) {
    status = iterate_once(context, dirac, request, state, &a_p, &work);
    if (status != MD_OK) break;
    all = md_cg_record(request, state);
    if (request->observe) status = request->observe(request->user, state);
    if (status == MD_OK && (state->interrupted = md_interrupted(context))) break;
  }
  md_field_destroy(&a_p);
  md_field_destroy(&work);
  return status == MD_OK ? md_cg_leave(context, request, state) : status;
}
