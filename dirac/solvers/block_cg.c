#include "base/interrupt.h"
#include "base/memory_need.h"
#include "dirac/solvers/block_steps.h"
#include "dirac/solvers/cg.h"

typedef struct block_cg {
  const md_solver_request *request;
  md_cg_state *state;
  md_block_steps steps;
} block_cg;

static md_status check(md_context *context, const md_solver_job *job) {
  const md_operator *a = job->inner ? job->inner : job->a;
  if (!job->inner && a->shape.precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT, "block CG works with fields in double, got %s of operator %s",
                   md_precision_name(a->shape.precision), a->kind->name);
  return md_block_steps_check(context, a);
}

/* Writes the history; true when all are done. */
static bool record(block_cg *b) {
  md_cg_state *s = b->state;
  for (int j = 0; j < s->n_rhs; j++) {
    const bool was_done = s->iteration > 0 && md_cg_done(b->request, s, j);
    s->r_norm2[j] = md_block_steps_norm2(&b->steps, j);
    if (s->iteration > 0 && !was_done) s->result.rhs_iterations[j] = s->iteration;
  }
  md_block_steps_least_rank(&b->steps, &s->result.block_rank);
  return md_cg_record(b->request, s);
}

static md_status check_sound(const block_cg *b) {
  if (b->steps.sound) return MD_OK;
  return md_fail(b->steps.context, MD_UNREACHED,
                 "sums of the block solver must be finite, which failed in iteration %d; check "
                 "the links for NaN",
                 b->state->iteration + 1);
}

static md_status iterate_in_double(block_cg *b) {
  md_cg_state *s = b->state;
  MD_TRY(md_block_steps_begin(&b->steps));
  MD_TRY(check_sound(b));
  bool all = record(b);
  while (!all && s->iteration < s->most) {
    MD_TRY(md_block_steps_residual(&b->steps));
    MD_TRY(check_sound(b));
    MD_TRY(md_block_steps_direction(&b->steps));
    s->iteration++;
    all = record(b);
    if (b->request->observe) MD_TRY(b->request->observe(b->request->user, s));
    if ((s->result.interrupted = md_interrupted(b->steps.context))) break;
  }
  return md_block_steps_end(&b->steps);
}

static md_status iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  block_cg b = {
      .request = job->request,
      .state = state,
      .steps = {.context = context, .a = job->a, .r = &state->r, .p = &state->p, .x = &state->x}};
  if (job->inner) return md_mixed_block_iterate(context, job, state);
  md_status status = md_agree(context, md_block_steps_create(&b.steps));
  if (status == MD_OK && !md_counts(context)) status = iterate_in_double(&b);
  md_block_steps_destroy(&b.steps);
  return status;
}

/* The iteration of dirac/solvers/block_steps.h; state->p is the residual after it. */
const md_solver md_solver_block = {.name = "block",
                                   .help = "block CG, one Krylov space for all right-hand sides",
                                   .takes = MD_TAKES_INNER,
                                   .check = check,
                                   .iterate = iterate};
