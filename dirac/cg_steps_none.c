/* In builds without CUDA no backend fuses, so that steps are never asked for. */
#include "dirac/cg_steps.h"

md_status md_cg_steps_create(md_context *context, md_dirac *dirac, double mass, const md_field *x,
                             const md_field *r, const md_field *p, md_cg_steps **steps) {
  (void)mass, (void)x, (void)r, (void)p;
  *steps = NULL;
  return md_fail(context, MD_ENVIRONMENT, "backend %s fuses, but this build has no device solver",
                 dirac->backend->name);
}

void md_cg_steps_destroy(md_cg_steps *steps) {
  (void)steps;
}

md_status md_cg_steps_begin(md_context *context, md_cg_steps *steps, const double *norm2,
                            const bool *done) {
  (void)context, (void)steps, (void)norm2, (void)done;
  return MD_OK;
}

md_status md_cg_steps_next(md_context *context, md_cg_steps *steps, bool last, double *alpha,
                           double *norm2, bool *sound) {
  (void)context, (void)steps, (void)last, (void)alpha, (void)norm2;
  *sound = true;
  return MD_OK;
}

bool md_cg_steps_under_way(const md_cg_steps *steps) {
  (void)steps;
  return false;
}
