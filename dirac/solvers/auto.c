#include "dirac/solvers/auto.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/reliable_update.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double md_auto_bound(double kappa, double tolerance) {
  return tolerance < 1.0 ? 0.5 * sqrt(kappa) * log(2.0 / tolerance) : 0.0;
}

bool md_auto_takes_block(const md_auto_facts *f, double *steps, double *resolved) {
  *steps = fmin(md_auto_bound(f->kappa, f->tolerance), f->unknowns);
  *resolved = MD_AUTO_RESOLVED * sqrt(f->sites / f->n_rhs);
  return f->n_rhs >= MD_AUTO_LEAST_RHS &&
         *steps > (f->on_host ? MD_AUTO_GAIN_HOST : MD_AUTO_GAIN_DEVICE) * *resolved;
}

bool md_auto_inner_fits(const md_auto_inner *f, md_precision precision, double *noise,
                        double *most) {
  const double kappa = md_update_kappa(f->mass * f->mass + f->above, MD_AUTO_MOST);
  const md_auto_facts facts = {f->n_rhs, kappa, f->tolerance, f->sites, 1.5 * f->sites, f->on_host};
  double steps, resolved;
  const bool block =
      f->solver == &md_solver_block ||
      (f->solver == &md_solver_auto && md_auto_takes_block(&facts, &steps, &resolved));
  *noise = md_precision_roundoff(precision) * kappa;
  *most = precision != MD_HALF   ? MD_AUTO_ROUNDING_SINGLE
          : f->on_host && !block ? MD_AUTO_ROUNDING_HALF_HOST
                                 : MD_AUTO_ROUNDING_HALF;
  return *noise <= *most;
}

static md_status iterate_by(md_context *context, const md_solver_job *job, bool block,
                            md_cg_state *state) {
  state->result.choice.block = block;
  return (block ? &md_solver_block : &md_solver_cg)->iterate(context, job, state);
}

static bool all_done(const md_solver_job *job, const md_cg_state *state) {
  for (int r = 0; r < state->n_rhs; r++)
    if (!md_cg_done(job->request, state, r)) return false;
  return true;
}

/* The way by the rule, block CG within its patience. *left: why the other one is to go on, or NULL.
 */
static md_status iterate_first(md_context *context, const md_solver_job *job, bool block,
                               md_cg_state *state, const char **left) {
  const int all = state->most;
  const double patience = MD_AUTO_PATIENCE * state->result.choice.steps_expected;
  if (block) state->most = (int)fmin(all, state->iteration + 1.0 + patience);
  const md_status status = iterate_by(context, job, block, state);
  const bool spent = state->iteration >= state->most && !all_done(job, state);
  const bool ends = state->result.interrupted || state->iteration >= all;
  state->most = all;
  *left = ends ? NULL : state->result.stalled ? "stalled" : spent ? "was not done" : NULL;
  return status;
}

/* The way by the rule; where it stalls, or block CG takes too long, the other one goes on from
 * there, once: each deflates, or loses what rounding spoils, in its own way. (A dry run counts the
 * first: the other one says itself where it finds no memory.) */
static md_status iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  md_solver_choice *choice = &state->result.choice;
  const md_operator *a = job->a;
  const md_auto_facts facts = {.n_rhs = state->n_rhs,
                               .kappa = md_low_modes_kappa(job->request->modes, a->least, a->most),
                               .tolerance = job->request->tolerance,
                               .sites = (double)a->geometry->volume,
                               .unknowns = 0.25 * a->shape.components * (double)a->geometry->volume,
                               .on_host = a->shape.space == MD_HOST};
  double steps, resolved;
  const char *left;
  if (choice->reason[0])
    return iterate_by(context, job, choice->block, state); /* a further round */
  const char *against = a->factor ? "the lowest eigenvalue is not known, nor what a block gains"
                        : md_solver_block.check(context, job) != MD_OK ? context->message
                                                                       : NULL;
  if (against) {
    snprintf(choice->reason, sizeof choice->reason, "%.300s", against);
    return iterate_by(context, job, false, state);
  }
  const bool block = md_auto_takes_block(&facts, &steps, &resolved);
  choice->steps_expected = steps;
  choice->block_expected = steps / hypot(1.0, steps / resolved);
  snprintf(
      choice->reason, sizeof choice->reason,
      "%d right-hand sides, at most %.0f iterations in step, and about %.0f until block CG has "
      "resolved the lowest modes",
      facts.n_rhs, steps, resolved);
  MD_TRY(iterate_first(context, job, block, state, &left));
  if (!left) return MD_OK;
  const size_t said = strlen(choice->reason);
  snprintf(choice->reason + said, sizeof choice->reason - said, "; at iteration %d %s %s",
           state->iteration, block ? "block" : "in step", left);
  choice->changed_at = state->iteration;
  return iterate_by(context, job, !block, state);
}

const md_solver md_solver_auto = {.name = "auto",
                                  .help = "block or cg, by the rule of docs/solvers.md",
                                  .takes = MD_TAKES_INNER,
                                  .iterate = iterate};
