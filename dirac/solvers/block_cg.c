#include "dirac/solvers/block_cg.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "dirac/solvers/block_steps.h"

#include <math.h>

typedef struct block_cg {
  const md_solver_request *request;
  md_cg_state *state;
  md_block_steps steps;
} block_cg;

md_status md_block_cg_check(md_context *context, const md_dirac *dirac) {
  if (dirac->shape.precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT, "block CG works with fields in double, got %s of backend %s",
                   md_precision_name(dirac->shape.precision), dirac->backend->name);
  return md_block_steps_check(context, dirac);
}

/* Writes the history; true when all are done. */
static bool record(block_cg *b) {
  md_cg_state *s = b->state;
  bool all = true;
  double worst = 0.0;
  for (int j = 0; j < s->n_rhs; j++) {
    const double scale = b->request->mass * s->b_norm[j];
    s->r_norm2[j] = md_block_steps_norm2(&b->steps, j);
    if (scale > 0.0) worst = fmax(worst, sqrt(s->r_norm2[j]) / scale);
    const bool done = sqrt(s->r_norm2[j]) <= b->request->tolerance * scale;
    if (!done) s->rhs_iterations[j] = s->iteration;
    all = all && done;
  }
  s->history[s->iteration] = worst;
  if (s->block_rank == 0 || b->steps.rank < s->block_rank) s->block_rank = b->steps.rank;
  return all;
}

static md_status check(const block_cg *b) {
  if (b->steps.sound) return MD_OK;
  return md_fail(b->steps.context, MD_UNREACHED,
                 "sums of the block solver must be finite, which failed in iteration %d; check "
                 "the links for NaN",
                 b->state->iteration + 1);
}

static md_status iterate(block_cg *b) {
  md_cg_state *s = b->state;
  MD_TRY(md_block_steps_begin(&b->steps));
  MD_TRY(check(b));
  bool all = record(b);
  while (!all && s->iteration < s->most) {
    MD_TRY(md_block_steps_residual(&b->steps));
    MD_TRY(check(b));
    MD_TRY(md_block_steps_direction(&b->steps));
    s->iteration++;
    all = record(b);
    if (b->request->observe) MD_TRY(b->request->observe(b->request->user, s));
    if ((s->interrupted = md_interrupted(b->steps.context))) break;
  }
  return md_block_steps_end(&b->steps);
}

md_status md_block_cg_iterate(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state) {
  block_cg b = {.request = request,
                .state = state,
                .steps = {.context = context,
                          .dirac = dirac,
                          .mass = request->mass,
                          .r = &state->r,
                          .p = &state->p,
                          .x = &state->x}};
  MD_TRY(md_agree(context, md_block_cg_check(context, dirac)));
  md_status status = md_agree(context, md_block_steps_create(&b.steps));
  if (status == MD_OK && !md_counts(context)) status = iterate(&b);
  md_block_steps_destroy(&b.steps);
  return status;
}
