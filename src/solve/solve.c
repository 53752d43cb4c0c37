#include "solve/solve.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/timer.h"
#include "commands.h"
#include "io/propagator.h"
#include "io/provenance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct observer {
  md_context *context;
  md_solve_run *run;
  md_progress progress;
} observer;

/* A state that cannot be written ends no solve: the first one of a row is a warning, and what
 * became of them is told at the end. */
static md_status save(observer *o, const md_cg_state *state) {
  md_solve_run *run = o->run;
  const md_status status = md_solve_checkpoint_save(o->context, run, state);
  const bool before = run->checkpoint_message[0] != 0;
  run->checkpoint_message[0] = 0;
  if (status != MD_ENVIRONMENT) return status;
  run->checkpoint_failures++;
  snprintf(run->checkpoint_message, sizeof run->checkpoint_message, "%s", o->context->message);
  if (!before)
    md_warn(o->context, "the checkpoint of iteration %d is not written, the solve goes on: %s",
            state->iteration, run->checkpoint_message);
  return MD_OK;
}

/* The residual falls about exponentially, so its logarithm measures the way done. */
static md_status observe(void *user, const md_cg_state *state) {
  observer *o = user;
  const md_solve_options *options = &o->run->options;
  const double residual = state->result.history[state->iteration], first = state->result.history[0];
  const double fraction = log(residual / first) / log(options->tolerance / first);
  md_progress_update(&o->progress, fraction, "iteration %d, residual %.2e", state->iteration,
                     residual);
  if (options->checkpoint_every > 0 && state->iteration % options->checkpoint_every == 0)
    return save(o, state);
  return MD_OK;
}

/* A signal has ended the solve. */
static md_status leave(void *user, const md_cg_state *state) {
  return save(user, state);
}

static md_status resume(void *user, md_cg_state *state) {
  observer *o = user;
  return md_solve_checkpoint_load(o->context, o->run, state);
}

md_dirac *md_solve_exact(md_solve_run *run) {
  return run->exact.backend ? &run->exact : &run->dirac;
}

const md_dirac *md_solve_operator(const md_solve_run *run) {
  return run->options.mixed ? &run->inner : &run->dirac;
}

/* Lattice, operators, fields: all but what the solver has for itself. */
static md_status set_up(md_context *context, md_solve_run *run) {
  md_solve_options *o = &run->options;
  const md_backend *backend;
  MD_TRY(md_backend_find(context, o->backend, &o->request, &backend));
  const md_action_links_request from = {.physics = &o->physics,
                                        .lattice = o->lattice,
                                        .grid = o->common.grid,
                                        .ignore_checksum = o->ignore_checksum,
                                        .space = backend->space,
                                        .identify = o->deflate || o->checkpoint};
  MD_TRY(md_action_links_load(context, &from, &run->links));
  md_physics_advise(context, &o->physics, &o->request, run->links.unitarity);
  MD_TRY(md_source_check(context, &o->source, run->links.geometry->global));
  MD_TRY(md_solve_start_load(context, run, backend->space));
  MD_TRY(md_solver_operators(context, run->links.field, o->backend, &o->request, &o->halo, o->mixed,
                             &run->dirac, &run->exact, &run->inner));
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, o->request.n_rhs, true};
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = md_field_create(context, run->links.geometry, &shape, p, &run->b[p]);
    if (status == MD_OK)
      status = md_field_create(context, run->links.geometry, &shape, p, &run->x[p]);
  }
  MD_TRY(md_agree(context, status));
  if (!md_counts(context)) md_solve_source_fill(o, run->b);
  return MD_OK;
}

static md_status solve(md_context *context, md_solve_run *run) {
  md_solve_options *o = &run->options;
  observer watch = {context, run, md_progress_start(context, "solve")};
  md_solver_request request = {.mass = o->mass,
                               .tolerance = o->tolerance,
                               .max_iterations = (int)o->max_iterations,
                               .observe = observe,
                               .save_every = (int)o->checkpoint_every,
                               .leave = o->checkpoint ? leave : NULL,
                               .resume = o->resume ? resume : NULL,
                               .user = &watch,
                               .inner = o->mixed ? &run->inner : NULL,
                               .modes = o->deflate ? &run->modes : NULL,
                               .guess = o->guess ? &run->guess[MD_EVEN] : NULL};
  md_solver_options_apply(&o->how, &request);
  const md_status status = md_solve_cg(context, &run->dirac, md_solve_exact(run), &request, run->x,
                                       run->b, &run->result);
  md_progress_stop(&watch.progress);
  return status;
}

bool md_solve_cut_short(const md_solve_run *run) {
  return run->result.interrupted && !run->result.converged;
}

md_status md_solve_write(md_context *context, md_solve_run *run, const char *path, double mass,
                         double *residuals) {
  md_solve_options *o = &run->options;
  char words[MD_PHYSICS_WORDS_BYTES];
  md_provenance from;
  const bool thin = o->lattice != NULL;
  enum { OWN = 4 };
  md_attribute attributes[OWN + MD_PROVENANCE_ATTRIBUTES] = {
      {"residuals", MD_ATTRIBUTE_REAL, o->request.n_rhs, residuals},
      {thin ? "plaquette" : "fat_plaquette", MD_ATTRIBUTE_REAL, 1,
       thin ? &run->links.plaquette : &run->links.fat_plaquette},
      {"source", MD_ATTRIBUTE_TEXT, 0, (char *)o->source.text},
      {"boundary", MD_ATTRIBUTE_TEXT, 0, (char *)o->boundary}};
  md_provenance_of_run(context, &from);
  from.lattice = thin ? o->lattice : o->physics.fat_file;
  from.lattice_checksum = run->links.lattice_checksum;
  from.action = md_physics_words(&o->physics, &o->request, words, sizeof words);
  from.mass = mass;
  from.tolerance = o->tolerance;
  return md_propagator_write_as(context, path, !o->force, run->x, attributes,
                                md_provenance_append(&from, attributes, OWN));
}

static md_status write_solution(md_context *context, md_solve_run *run) {
  const char *path = run->options.output;
  if (!path) return MD_OK;
  return md_solve_write(context, run, path, run->options.mass, run->result.residuals);
}

/* Exit 3 after a signal, 1 otherwise, with what to do. */
static md_status unreached(md_context *context, const md_solve_run *run) {
  const md_solver_result *r = &run->result;
  const md_solve_options *o = &run->options;
  if (r->interrupted && o->checkpoint && !run->checkpoint_message[0])
    return md_fail(context, MD_ENVIRONMENT,
                   "%s ended the solve after %d iteration%s at a true residual of %.3e; %s has its "
                   "state, go on with --resume",
                   md_interrupt_name(context), r->iterations, md_plural(r->iterations),
                   r->relative_residual, o->checkpoint);
  if (r->interrupted && o->checkpoint)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s ended the solve after %d iteration%s at a true residual of %.3e; its state "
                   "is not in %.200s: %.400s",
                   md_interrupt_name(context), r->iterations, md_plural(r->iterations),
                   r->relative_residual, o->checkpoint, run->checkpoint_message);
  if (r->interrupted)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s ended the solve after %d iteration%s at a true residual of %.3e; with "
                   "--checkpoint FILE --checkpoint-every N a solve can be resumed",
                   md_interrupt_name(context), r->iterations, md_plural(r->iterations),
                   r->relative_residual);
  const bool ran_out = !r->stalled && r->iterations >= o->max_iterations;
  return md_fail(
      context, MD_UNREACHED,
      "the true residual must be at most %g, %s %.3e after %d iteration%s; raise %s--tol%s",
      o->tolerance, ran_out ? "got" : "stalled at", r->relative_residual, r->iterations,
      md_plural(r->iterations), ran_out ? "--max-iter or " : "",
      o->request.precision == MD_DOUBLE ? ""
      : o->mixed                        ? ", or use a wider --inner"
                                        : ", or use --precision double with --inner");
}

/* All is done, but for states that could not be written. */
static md_status check_states(md_context *context, const md_solve_run *run) {
  if (run->checkpoint_failures == 0) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "the solve is done, but its state could not be written to %.200s %d times%s%.600s",
                 run->options.checkpoint, run->checkpoint_failures,
                 run->checkpoint_message[0] ? ", last: " : "; the last one is there",
                 run->checkpoint_message);
}

static void tear_down(md_solve_run *run) {
  md_solver_result_free(&run->result);
  md_solve_observables_free(&run->observed);
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field_destroy(&run->b[p]);
    md_field_destroy(&run->x[p]);
    md_field_destroy(&run->guess[p]);
  }
  md_modes_destroy(&run->modes);
  md_dirac_destroy(&run->dirac);
  md_dirac_destroy(&run->exact);
  md_dirac_destroy(&run->inner);
  md_action_links_destroy(&run->links);
}

/* The run without a number: see base/memory_need.h. */
static md_status dry_run(md_context *context, void *user) {
  md_solve_run run = *(const md_solve_run *)user;
  md_status status = set_up(context, &run);
  if (status == MD_OK)
    status = run.options.shifts.count > 0 ? md_solve_shifts(context, &run) : solve(context, &run);
  tear_down(&run);
  return status;
}

md_status md_command_solve(md_context *context, int argc, char **argv) {
  md_solve_run run = {.start_s = md_time_s()};
  md_memory_need need;
  md_interrupt_catch(context);
  MD_TRY(md_solve_options_read(context, &run.options, argc, argv));
  if (run.options.common.help) return MD_OK;
  MD_TRY(md_memory_foresee(context, dry_run, &run, &need));
  MD_TRY(md_memory_require(context, &need, "solve"));
  md_status status = set_up(context, &run);
  if (run.options.shifts.count > 0) {
    if (status == MD_OK) status = md_solve_shifts(context, &run);
    tear_down(&run);
    return status;
  }
  if (status == MD_OK) status = solve(context, &run);
  if (status == MD_UNREACHED) { /* with a number that is none: what is known is told */
    md_solve_print(context, &run);
    status = md_solve_report(context, &run, status);
  }
  if (status == MD_OK && !md_solve_cut_short(&run)) status = md_solve_observe(context, &run);
  if (status == MD_OK) md_solve_print(context, &run);
  if (status == MD_OK) {
    const bool whole = !md_solve_cut_short(&run);
    status = md_solve_report(context, &run, whole ? write_solution(context, &run) : MD_OK);
  }
  if (status == MD_OK && !run.result.converged) status = unreached(context, &run);
  if (status == MD_OK) status = check_states(context, &run);
  tear_down(&run);
  return status;
}
