#include "dirac/solvers/cg_steps.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/device/cg_device.h"
#include "lattice/fields/linear.h"

#include <stdlib.h>

typedef struct device_steps {
  md_cg_steps base; /* first */
  md_dirac *dirac;
  md_cg_device *device;
  md_cg_state state; /* borrowed fields */
  md_field work;
  double norm2[MD_MAX_RHS];
  int rhs_iterations[MD_MAX_RHS];
  int queued, reported; /* since the beginning */
} device_steps;

static void destroy(md_cg_steps *steps) {
  device_steps *s = (device_steps *)steps;
  md_cg_device_destroy(s->device);
  md_field_destroy(&s->work);
  md_field_destroy(&s->state.before);
  free(s->state.carried);
  free(s);
}

static bool under_way(const device_steps *s) {
  return s->queued > s->reported;
}

static md_status begin(md_context *context, md_cg_steps *steps, const double *norm2,
                       const bool *done) {
  device_steps *s = (device_steps *)steps;
  double limit[MD_MAX_RHS];
  md_cg_report dropped[MD_MAX_RHS];
  for (; under_way(s); s->reported++) MD_TRY(md_cg_device_wait(context, s->device, dropped));
  s->queued = s->reported = 0;
  for (int r = 0; r < s->state.n_rhs; r++) {
    s->norm2[r] = done[r] ? 0.0 : norm2[r];
    limit[r] = 0.0;
  }
  return md_cg_device_start(context, s->device, &s->state, limit);
}

static md_status queue(md_context *context, device_steps *s) {
  if (s->queued++ > 0)
    return md_cg_device_queue(context, s->device, s->dirac, &s->state, &s->work, true);
  return md_cg_device_queue_step(context, s->device, s->dirac, &s->state, &s->work);
}

static md_status next(md_context *context, md_cg_steps *steps, md_cg_next then, double *alpha,
                      double *norm2, bool *sound) {
  device_steps *s = (device_steps *)steps;
  md_cg_report reports[MD_MAX_RHS];
  if (!under_way(s)) MD_TRY(queue(context, s));
  if (then == MD_NEXT_GOES_ON) MD_TRY(queue(context, s));
  if (then == MD_NEXT_IS_WHOLE) md_cg_device_update(s->device, &s->state);
  if (then != MD_NEXT_GOES_ON) md_cg_device_complete(s->device, &s->state);
  MD_TRY(md_cg_device_wait(context, s->device, reports));
  s->reported++;
  *sound = true;
  for (int r = 0; r < s->state.n_rhs; r++) {
    if (reports[r].failure) *sound = false;
    if (s->state.carried) {
      const int n = s->state.n_rhs;
      s->state.carried[r] = reports[r].alpha;
      s->state.carried[n + r] = reports[r].alpha != 0.0 ? reports[r].r_norm2 / s->norm2[r] : 0.0;
      s->state.carried[2 * n + r] = reports[r].value;
      s->norm2[r] = reports[r].r_norm2;
    }
    alpha[r] = reports[r].alpha;
    norm2[r] = reports[r].r_norm2;
  }
  return MD_OK;
}

md_status md_cg_steps_create(md_context *context, md_dirac *dirac, double mass, const md_field *x,
                             const md_field *r, const md_field *p, bool reads,
                             md_cg_steps **steps) {
  device_steps *s = calloc(1, sizeof *s);
  *steps = NULL;
  if (!s) return md_fail_memory(context, sizeof *s, "steps of the solver");
  s->base = (md_cg_steps){.begin = begin, .next = next, .destroy = destroy};
  s->dirac = dirac;
  s->state = (md_cg_state){.x = *x,
                           .r = *r,
                           .p = *p,
                           .r_norm2 = s->norm2,
                           .rhs_iterations = s->rhs_iterations,
                           .n_rhs = p->n_rhs};
  s->base.state = &s->state;
  *steps = &s->base;
  if (reads && md_precision_bytes(p->precision) > 2) {
    MD_TRY(md_cg_state_carry(context, dirac, &s->state));
    md_linear_zero(&s->state.before);
  }
  MD_TRY(md_dirac_field(context, dirac, MD_ODD, &s->work));
  return md_cg_device_create(context, dirac, p, mass, &s->device);
}
