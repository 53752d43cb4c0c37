#include "dirac/solvers/cg.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>

md_status md_cg_state_create(md_context *context, const md_operator *a, int most,
                             md_cg_state *state) {
  const size_t n = (size_t)a->shape.n_rhs;
  *state = (md_cg_state){.n_rhs = (int)n,
                         .most = most,
                         .r_norm2 = calloc(4 * n, sizeof(double)),
                         .result = {.n_rhs = (int)n,
                                    .residuals = calloc(n, sizeof(double)),
                                    .rhs_iterations = calloc(n, sizeof(int)),
                                    .history = calloc((size_t)most + 1, sizeof(double))}};
  const md_solver_result *result = &state->result;
  if (!state->r_norm2 || !result->residuals || !result->rhs_iterations || !result->history)
    return md_fail_memory(context, ((size_t)most + 1) * sizeof(double), "residual history");
  state->b_norm = state->r_norm2 + n;
  state->scale = state->b_norm + n;
  state->start_norm2 = state->scale + n;
  MD_TRY(md_operator_field(context, a, &state->x));
  MD_TRY(md_operator_field(context, a, &state->r));
  return md_operator_field(context, a, &state->p);
}

bool md_cg_carries(const md_solver_job *job) {
  const md_precision precision = job->a->precision;
  return !job->inner && md_precision_bytes(precision) > 2 && md_normal_fuses(job->a, precision);
}

md_status md_cg_state_carry(md_context *context, const md_operator *a, md_cg_state *state) {
  state->carried = calloc(3 * (size_t)state->n_rhs, sizeof *state->carried);
  if (!state->carried)
    return md_fail_memory(context, 3 * (size_t)state->n_rhs * sizeof *state->carried,
                          "state of the solver");
  return md_operator_field(context, a, &state->before);
}

void md_cg_state_destroy(md_cg_state *state) {
  MD_FIELDS_DESTROY(&state->x, &state->r, &state->p, &state->before);
  MD_FREE(state->carried, state->r_norm2);
  md_solver_result_free(&state->result);
  *state = (md_cg_state){0};
}

bool md_cg_keeps_states(const md_solver_request *request) {
  return request->save_every > 0 || request->resume || request->leave;
}

md_status md_cg_resume(md_context *context, const md_solver_request *request, md_cg_state *state) {
  if (!request->resume || md_counts(context)) return MD_OK; /* it takes no more than `leave` */
  MD_TRY(md_agree(context, request->resume(request->user, state)));
  /* No round of a tighter one follows there. */
  if (state->x.precision != MD_DOUBLE) state->tolerance = request->tolerance;
  return MD_OK;
}

bool md_cg_is_read(const md_solver_request *request, int iteration) {
  return request->observe && request->save_every > 0 && iteration % request->save_every == 0;
}

md_status md_cg_leave(md_context *context, const md_solver_request *request,
                      const md_cg_state *state) {
  const bool early = state->result.interrupted || state->iteration >= state->most;
  if (!early || !request->leave) return MD_OK;
  return md_agree(context, request->leave(request->user, state));
}

double md_cg_limit(const md_solver_request *request, const md_cg_state *state, int rhs) {
  return fmax(request->tolerance, state->tolerance) * state->scale[rhs];
}

bool md_cg_done(const md_solver_request *request, const md_cg_state *state, int rhs) {
  return sqrt(state->r_norm2[rhs]) <= md_cg_limit(request, state, rhs);
}

double md_cg_largest(const md_cg_state *state) {
  double largest = 0.0;
  for (int r = 0; r < state->n_rhs; r++)
    if (state->scale[r] > 0.0) largest = fmax(largest, sqrt(state->r_norm2[r]) / state->scale[r]);
  return largest;
}

bool md_cg_record(const md_solver_request *request, md_cg_state *state) {
  bool all = true;
  for (int r = 0; r < state->n_rhs; r++) all = all && md_cg_done(request, state, r);
  state->result.history[state->iteration] = md_cg_largest(state);
  return all;
}

md_status md_cg_conclude(md_context *context, const md_solver_request *request, const double *alpha,
                         const double *norm2, md_cg_state *state, bool *ends) {
  state->iteration++;
  for (int r = 0; r < state->n_rhs; r++) {
    if (alpha[r] == 0.0) continue;
    if (!isfinite(norm2[r]))
      return md_fail(context, MD_UNREACHED,
                     "the residual must be finite, got %g in iteration %d of right-hand side %d",
                     norm2[r], state->iteration, r);
    state->r_norm2[r] = norm2[r];
    state->result.rhs_iterations[r]++;
  }
  *ends = md_cg_record(request, state) || state->iteration >= state->most;
  if (request->observe) MD_TRY(request->observe(request->user, state));
  state->result.interrupted = md_interrupted(context);
  *ends = *ends || state->result.interrupted;
  return MD_OK;
}

bool md_cg_takes_factors(const md_operator *a, const md_field *r, bool flexible) {
  return a->factors && r->precision == a->precision && !flexible;
}

md_status md_cg_step_take(md_context *context, md_operator *a, const bool *rests,
                          const double *before, bool flexible, md_field *r, md_field *p,
                          md_field *a_p, md_cg_step *step) {
  const int n = r->n_rhs;
  const bool factors = md_cg_takes_factors(a, r, flexible);
  double minus[MD_MAX_RHS], r_ap[MD_MAX_RHS], guess[MD_MAX_RHS];
  /* <p, A p> / |r|^2 lies within the spectrum. */
  for (int k = 0; k < n; k++) guess[k] = 0x1p-10 * a->most * before[k];
  if (!factors) MD_TRY(md_operator_apply(context, a, a_p, p, NULL));
  /* <p, A p> of A = F F^dag is |F^dag p|^2. */
  MD_TRY(factors     ? a->factors->first(context, a, p, guess, step->p_ap)
         : a->factor ? md_linear_norm2(context, a->factor, guess, step->p_ap)
                     : md_linear_dot(context, p, a_p, guess, step->p_ap));
  step->broken = -1;
  for (int k = n - 1; k >= 0; k--) {
    if (!rests[k] && !(step->p_ap[k] > 0.0 && isfinite(step->p_ap[k]))) step->broken = k;
    step->alpha[k] = rests[k] ? 0.0 : before[k] / step->p_ap[k];
    minus[k] = -step->alpha[k];
  }
  if (step->broken >= 0) return MD_OK;
  MD_TRY(factors ? a->factors->second(context, a, minus, r, before, step->norm2)
                 : md_linear_axpby_norm2(context, minus, a_p, NULL, r, before, step->norm2));
  if (flexible) MD_TRY(md_linear_dot(context, a_p, r, NULL, r_ap));
  for (int k = 0; k < n; k++) {
    step->beta[k] = (flexible ? minus[k] * r_ap[k] : step->norm2[k]) / before[k];
    if (rests[k]) step->beta[k] = 0.0;
    if (!isfinite(step->beta[k])) step->broken = k;
  }
  return MD_OK;
}

md_status md_cg_step_fail(md_context *context, const md_cg_step *step, int iteration) {
  const int r = step->broken;
  const double p_ap = step->p_ap[r];
  if (p_ap > 0.0 && isfinite(p_ap))
    return md_fail(context, MD_UNREACHED,
                   "the residual must be finite, got %g in iteration %d of right-hand side %d",
                   step->norm2[r], iteration, r);
  return isfinite(p_ap)
             ? md_fail(context, MD_UNREACHED,
                       "<p, A p> must be positive, got %g in iteration %d of right-hand side %d; "
                       "the precision is too narrow for this mass, use a wider one",
                       p_ap, iteration, r)
             : md_fail(context, MD_UNREACHED,
                       "sums of the solver must be finite, got %g in iteration %d of right-hand "
                       "side %d; check the links for NaN, or use a wider precision",
                       p_ap, iteration, r);
}

/* One iteration in this order: A p and <p, A p>; r -= alpha A p and |r|^2; x and p together. */
static md_status iterate_once(md_context *context, const md_solver_job *job, md_cg_state *state,
                              md_field *a_p, bool *ends) {
  bool rests[MD_MAX_RHS];
  md_cg_step step;
  for (int r = 0; r < state->n_rhs; r++) rests[r] = md_cg_done(job->request, state, r);
  MD_TRY(md_cg_step_take(context, job->a, rests, state->r_norm2, false, &state->r, &state->p, a_p,
                         &step));
  if (step.broken >= 0) return md_cg_step_fail(context, &step, state->iteration + 1);
  md_linear_cg_update(step.alpha, step.beta, &state->r, &state->p, &state->x);
  return md_cg_conclude(context, job->request, step.alpha, step.norm2, state, ends);
}

static md_status iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  if (job->inner) return md_mixed_cg_iterate(context, job, state);
  MD_TRY(md_cg_resume(context, job->request, state));
  if (MINIDIRAC_HAVE_CUDA && md_normal_fuses(job->a, job->a->precision))
    return md_cg_iterate_fused(context, job, state);
  md_field a_p = {0};
  md_status status = MD_OK;
  if (!md_cg_takes_factors(job->a, &state->r, false))
    status = md_agree(context, md_operator_field(context, job->a, &a_p));
  bool ends =
      md_counts(context) ||
      (status == MD_OK && (md_cg_record(job->request, state) || state->iteration >= state->most));
  while (status == MD_OK && !ends) status = iterate_once(context, job, state, &a_p, &ends);
  md_field_destroy(&a_p);
  return status == MD_OK ? md_cg_leave(context, job->request, state) : status;
}

const md_solver md_solver_cg = {.name = "cg",
                                .help = "conjugate gradients, right-hand sides in step",
                                .takes = MD_TAKES_INNER | MD_TAKES_STATES | MD_TAKES_PARTS,
                                .iterate = iterate};
