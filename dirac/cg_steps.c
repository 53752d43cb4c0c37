#include "dirac/cg_steps.h"
#include "dirac/cuda/cg_device.h"

#include <stdlib.h>
#include <string.h>

struct md_cg_steps {
  md_dirac *dirac;
  md_cg_device *device;
  md_cg_state state; /* borrowed fields */
  md_field work;
  double norm2[MD_MAX_RHS];
  int rhs_iterations[MD_MAX_RHS];
  int queued, reported; /* since the beginning */
};

md_status md_cg_steps_create(md_context *context, md_dirac *dirac, double mass, const md_field *x,
                             const md_field *r, const md_field *p, md_cg_steps **steps) {
  md_cg_steps *s = calloc(1, sizeof *s);
  *steps = s;
  if (!s) return md_fail_memory(context, sizeof *s, "steps of the solver");
  s->dirac = dirac;
  s->state = (md_cg_state){.x = *x,
                           .r = *r,
                           .p = *p,
                           .r_norm2 = s->norm2,
                           .rhs_iterations = s->rhs_iterations,
                           .n_rhs = p->n_rhs};
  MD_TRY(md_dirac_field(context, dirac, MD_ODD, &s->work));
  return md_cg_device_create(context, p, mass, &s->device);
}

void md_cg_steps_destroy(md_cg_steps *steps) {
  if (!steps) return;
  md_cg_device_destroy(steps->device);
  md_field_destroy(&steps->work);
  free(steps);
}

bool md_cg_steps_under_way(const md_cg_steps *steps) {
  return steps->queued > steps->reported;
}

md_status md_cg_steps_begin(md_context *context, md_cg_steps *steps, const double *norm2,
                            const bool *done) {
  double limit[MD_MAX_RHS];
  md_cg_report dropped[MD_MAX_RHS];
  for (; md_cg_steps_under_way(steps); steps->reported++)
    MD_TRY(md_cg_device_wait(context, steps->device, dropped));
  steps->queued = steps->reported = 0;
  for (int r = 0; r < steps->state.n_rhs; r++) {
    steps->norm2[r] = done[r] ? 0.0 : norm2[r];
    limit[r] = 0.0;
  }
  return md_cg_device_start(context, steps->device, &steps->state, limit);
}

static md_status queue(md_context *context, md_cg_steps *steps) {
  if (steps->queued > 0) md_cg_device_update(steps->device, &steps->state);
  steps->queued++;
  return md_cg_device_queue_step(context, steps->device, steps->dirac, &steps->state, &steps->work);
}

md_status md_cg_steps_next(md_context *context, md_cg_steps *steps, bool last, double *alpha,
                           double *norm2, bool *sound) {
  md_cg_report reports[MD_MAX_RHS];
  if (!md_cg_steps_under_way(steps)) MD_TRY(queue(context, steps));
  if (last)
    md_cg_device_complete(steps->device, &steps->state);
  else
    MD_TRY(queue(context, steps));
  MD_TRY(md_cg_device_wait(context, steps->device, reports));
  steps->reported++;
  *sound = true;
  for (int r = 0; r < steps->state.n_rhs; r++) {
    if (reports[r].failure) *sound = false;
    alpha[r] = reports[r].alpha;
    norm2[r] = reports[r].r_norm2;
  }
  return MD_OK;
}
