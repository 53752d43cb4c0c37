/* Conjugate gradients on a device, for backends that fuse: <p, A p> = m^2 |p|^2 + |D p|^2 is known
 * after the first stencil, so the second one updates the residual and sums its norm as it goes,
 * and A p is never stored. Four kernels an iteration, and one more for directions in 16 bits or in
 * every eighth iteration (cg_device.h); the coefficients stay on the device, and the host looks at
 * the residual of one iteration while the device works on the next. Steps for solvers that decide
 * between them, and below the iterations of CG as in cg.c. */
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/device/cg_device.h"

#include <stdlib.h>

void md_cg_steps_destroy(md_cg_steps *s) {
  if (!s) return;
  md_cg_device_destroy(s->device);
  md_field_destroy(&s->state.before);
  MD_FREE(s->state.carried, s);
}

static bool under_way(const md_cg_steps *s) {
  return s->queued > s->reported;
}

md_status md_cg_steps_begin(md_context *context, md_cg_steps *s, const double *norm2,
                            const bool *done) {
  double limit[MD_MAX_RHS] = {0.0};
  md_cg_report dropped[MD_MAX_RHS];
  for (; under_way(s); s->reported++) MD_TRY(md_cg_device_wait(context, s->device, dropped));
  s->queued = s->reported = 0;
  for (int r = 0; r < s->state.n_rhs; r++) s->norm2[r] = done[r] ? 0.0 : norm2[r];
  return md_cg_device_start(context, s->device, &s->state, limit);
}

static md_status queue(md_context *context, md_cg_steps *s) {
  if (s->queued++ > 0) return md_cg_device_queue(context, s->device, &s->state, true);
  return md_cg_device_queue_step(context, s->device, &s->state);
}

/* The scalars of the step that a further residual needs; before r_norm2 takes that of the report.
 */
static void carry(md_cg_state *state, const md_cg_report *reports) {
  const int n = state->n_rhs;
  for (int r = 0; state->carried && r < n; r++) {
    const double alpha = reports[r].alpha;
    state->carried[r] = alpha;
    state->carried[n + r] = alpha != 0.0 ? reports[r].r_norm2 / state->r_norm2[r] : 0.0;
    state->carried[2 * n + r] = reports[r].value;
  }
}

md_status md_cg_steps_next(md_context *context, md_cg_steps *s, md_cg_next then, double *alpha,
                           double *norm2, bool *sound) {
  md_cg_report reports[MD_MAX_RHS];
  if (!under_way(s)) MD_TRY(queue(context, s));
  if (then == MD_NEXT_GOES_ON) MD_TRY(queue(context, s));
  if (then == MD_NEXT_IS_WHOLE) md_cg_device_update(s->device, &s->state);
  if (then != MD_NEXT_GOES_ON) md_cg_device_complete(s->device, &s->state);
  MD_TRY(md_cg_device_wait(context, s->device, reports));
  s->reported++;
  *sound = true;
  carry(&s->state, reports);
  for (int r = 0; r < s->state.n_rhs; r++) {
    if (reports[r].failure) *sound = false;
    alpha[r] = reports[r].alpha;
    s->norm2[r] = norm2[r] = reports[r].r_norm2;
  }
  return MD_OK;
}

md_status md_cg_steps_create(md_context *context, md_operator *a, const md_field *x,
                             const md_field *r, const md_field *p, bool reads,
                             md_cg_steps **steps) {
  md_cg_steps *s = *steps = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "steps of the solver");
  s->state = (md_cg_state){.x = *x,
                           .r = *r,
                           .p = *p,
                           .r_norm2 = s->norm2,
                           .result.rhs_iterations = s->rhs_iterations,
                           .n_rhs = p->n_rhs};
  if (reads && md_precision_bytes(p->precision) > 2)
    MD_TRY(md_cg_state_carry(context, a, &s->state));
  return md_cg_device_create(context, a, &s->device);
}

/* Takes over the report of an iteration as the state's. */
static md_status take_report(md_context *context, md_cg_device *cg, md_cg_state *state) {
  md_cg_report reports[MD_MAX_RHS];
  MD_TRY(md_cg_device_wait(context, cg, reports));
  state->iteration++;
  carry(state, reports);
  for (int r = 0; r < state->n_rhs; r++) {
    if (reports[r].failure)
      return md_fail(context, MD_UNREACHED,
                     "%s must be finite and positive, got %g in iteration %d of right-hand side "
                     "%d; check the links for NaN, or use a wider precision",
                     reports[r].failure == 3 ? "the residual" : "<p, A p>", reports[r].value,
                     state->iteration, r);
    state->r_norm2[r] = reports[r].r_norm2;
    state->result.rhs_iterations[r] = reports[r].iterations;
  }
  return MD_OK;
}

/* True when iteration `queued` must end before more is queued: the observer will read its fields,
 * or the host would fall behind by two. */
static bool must_wait(const md_solver_request *request, int queued, int reported) {
  return queued > reported + 1 || (md_cg_is_read(request, queued) && queued > reported);
}

static md_status iterate(md_context *context, const md_solver_job *job, md_cg_device *cg,
                         md_cg_state *state) {
  const md_solver_request *request = job->request;
  int queued = state->iteration;
  double limit[MD_MAX_RHS];
  for (int r = 0; r < state->n_rhs; r++) limit[r] = md_cg_limit(request, state, r);
  MD_TRY(md_cg_device_start(context, cg, state, limit));
  for (bool all = md_cg_record(request, state); !all;) {
    if (!state->result.interrupted && queued < state->most &&
        !must_wait(request, queued, state->iteration)) {
      MD_TRY(md_cg_device_queue(context, cg, state, false));
      if (md_cg_is_read(request, ++queued)) md_cg_device_complete(cg, state);
      continue;
    }
    if (state->iteration == queued) break;
    MD_TRY(take_report(context, cg, state));
    all = md_cg_record(request, state);
    if (request->observe) MD_TRY(request->observe(request->user, state));
    state->result.interrupted = md_interrupted(context);
  }
  md_cg_device_complete(cg, state);
  return md_cg_leave(context, request, state);
}

md_status md_cg_iterate_fused(md_context *context, const md_solver_job *job, md_cg_state *state) {
  md_cg_device *cg = NULL;
  md_status status = md_agree(context, md_cg_device_create(context, job->a, &cg));
  if (status == MD_OK && !md_counts(context)) status = iterate(context, job, cg, state);
  md_cg_device_destroy(cg);
  return status;
}
