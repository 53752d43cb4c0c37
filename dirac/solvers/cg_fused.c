/* Conjugate gradients as in cg.c for backends that fuse: <p, A p> = m^2 |p|^2 + |D p|^2 is known
 * after the first stencil, so the second one updates the residual and sums its norm as it goes,
 * and A p is never stored. Four kernels an iteration, and one more for directions in 16 bits or in
 * every eighth iteration (device/cg_device.h); the coefficients stay on the device, and the host
 * looks at the residual of one iteration while the device works on the next. */
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "dirac/solvers/cg.h"

#include "dirac/solvers/device/cg_device.h"

#include <math.h>

/* Takes over the report of an iteration as the state's. */
static md_status take_report(md_context *context, md_cg_device *cg, md_cg_state *state) {
  md_cg_report reports[MD_MAX_RHS];
  MD_TRY(md_cg_device_wait(context, cg, reports));
  state->iteration++;
  for (int r = 0; r < state->n_rhs; r++) {
    if (reports[r].failure)
      return md_fail(context, MD_UNREACHED,
                     "%s must be finite and positive, got %g in iteration %d of right-hand side "
                     "%d; check the links for NaN, or use a wider precision",
                     reports[r].failure == 3 ? "the residual" : "<p, A p>", reports[r].value,
                     state->iteration, r);
    if (state->carried) {
      const double alpha = reports[r].alpha;
      state->carried[r] = alpha;
      state->carried[state->n_rhs + r] =
          alpha != 0.0 ? reports[r].r_norm2 / state->r_norm2[r] : 0.0;
      state->carried[2 * state->n_rhs + r] = reports[r].value;
    }
    state->r_norm2[r] = reports[r].r_norm2;
    state->rhs_iterations[r] = reports[r].iterations;
  }
  return MD_OK;
}

/* True when iteration `queued` must end before more is queued: the observer will read its fields,
 * or the host would fall behind by two. */
static bool must_wait(const md_solver_request *request, int queued, int reported) {
  return queued > reported + 1 || (md_cg_is_read(request, queued) && queued > reported);
}

static md_status iterate(md_context *context, md_dirac *dirac, const md_solver_request *request,
                         md_cg_device *cg, md_cg_state *state, md_field *work) {
  int queued = state->iteration;
  double limit[MD_MAX_RHS];
  for (int r = 0; r < state->n_rhs; r++) limit[r] = md_cg_limit(request, state, r);
  MD_TRY(md_cg_device_start(context, cg, state, limit));
  for (bool all = md_cg_record(request, state); !all;) {
    if (!state->interrupted && queued < state->most &&
        !must_wait(request, queued, state->iteration)) {
      MD_TRY(md_cg_device_queue(context, cg, dirac, state, work, false));
      if (md_cg_is_read(request, ++queued)) md_cg_device_complete(cg, state);
      continue;
    }
    if (state->iteration == queued) break;
    MD_TRY(take_report(context, cg, state));
    all = md_cg_record(request, state);
    if (request->observe) MD_TRY(request->observe(request->user, state));
    state->interrupted = md_interrupted(context);
  }
  md_cg_device_complete(cg, state);
  return md_cg_leave(context, request, state);
}

md_status md_cg_iterate_fused(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state) {
  md_field work = {0};
  md_cg_device *cg = NULL;
  md_status status = md_dirac_field(context, dirac, MD_ODD, &work);
  if (status == MD_OK) status = md_cg_device_create(context, dirac, &state->p, request->mass, &cg);
  status = md_agree(context, status);
  if (status == MD_OK && !md_counts(context))
    status = iterate(context, dirac, request, cg, state, &work);
  md_cg_device_destroy(cg);
  md_field_destroy(&work);
  return status;
}
