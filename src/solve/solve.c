#include "solve/solve.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/text.h"
#include "commands.h"
#include "io/attribute.h"
#include "io/lattice_file.h"
#include "io/propagator.h"
#include "io/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct observer {
  md_context *context;
  md_solve_run *run;
  md_progress progress;
  int from;        /* the iteration that this run, or a part of it, begins at */
  int begin, part; /* first right-hand sides: of the part that this run begins with, and of that
                      which iterates, -1 before the first iteration */
} observer;

/* A state that cannot be written ends no solve: the first one of a row is a warning, and what
 * became of them is told at the end. */
static md_status save(void *user, const md_cg_state *state) {
  observer *o = user;
  md_solve_run *run = o->run;
  const md_status status = md_solve_checkpoint_save(o->context, run, state);
  const bool before = run->checkpoint_message[0] != 0;
  run->checkpoint_message[0] = 0;
  run->states++;
  if (status != MD_ENVIRONMENT) return status;
  run->checkpoint_failures++;
  snprintf(run->checkpoint_message, sizeof run->checkpoint_message, "%s", o->context->message);
  if (!before)
    md_warn(o->context, "the checkpoint of iteration %d is not written, the solve goes on: %s",
            state->iteration, run->checkpoint_message);
  return MD_OK;
}

static md_status observe(void *user, const md_cg_state *state) {
  observer *o = user;
  const md_solve_options *options = &o->run->options;
  const double *history = state->result.history;
  if (state->parts && state->parts->first != o->part) {
    const int done = state->parts->first - o->begin;
    const double all = (double)(options->rhs - o->begin);
    if (o->part >= 0) o->from = 0;
    o->part = state->parts->first;
    md_progress_piece(o->context, done / all, state->n_rhs / all, "right-hand side %d of %lld",
                      o->part + 1, options->rhs);
  }
  md_run_progress(&o->progress, "", o->from, state->iteration, history[o->from],
                  history[state->iteration], options->tolerance);
  if (options->checkpoint_every > 0 && state->iteration % options->checkpoint_every == 0 &&
      state->iteration < state->most && /* `leave` has the last */
      (!state->parts || state->parts->keeps))
    return save(o, state);
  return MD_OK;
}

static md_status resume(void *user, md_cg_state *state) {
  observer *o = user;
  const md_status status = md_solve_checkpoint_load(o->context, o->run, state);
  if (status == MD_OK) o->from = state->iteration;
  return status;
}

static md_status resume_parts(void *user, md_solver_parts *parts) {
  observer *o = user;
  const md_status status = md_solve_checkpoint_load_parts(o->context, o->run, parts);
  if (status == MD_OK) o->begin = parts->first;
  return status;
}

const md_dirac *md_solve_operator(const md_solve_run *run) {
  return run->options.run.mixed ? &run->of.inner : &run->of.dirac;
}

/* MD_INPUT for a file that says that it holds the solution of a shift. Collective. */
static md_status refuse_shift(md_context *context, const char *path) {
  md_lattice_info info;
  md_status status = md_lattice_describe(context, path, &info);
  const char *shift = status == MD_OK ? md_file_texts_find(&info.notes.texts, "shift") : NULL;
  if (shift)
    status = md_fail(context, MD_INPUT,
                     "a guess must solve M x = b, %s has shift %.32s and solves %s; give a "
                     "solution without --shifts",
                     path, shift, MD_SOLVE_SHIFTED);
  md_lattice_info_destroy(&info);
  return status;
}

/* MD_INPUT for a guess of another lattice, action or boundary, of another number of right-hand
 * sides or with a shift. Collective. */
static md_status read_guess(md_context *context, md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const bool thin = o->run.lattice != NULL;
  const double here = thin ? run->links.plaquette : run->links.fat_plaquette;
  char action[MD_PHYSICS_WORDS_BYTES], boundary[32], words[MD_PHYSICS_WORDS_BYTES];
  double plaquette = NAN;
  const md_attribute wanted[] = {
      {thin ? "plaquette" : "fat_plaquette", MD_ATTRIBUTE_REAL, 1, &plaquette},
      {"action", MD_ATTRIBUTE_TEXT, sizeof action, action},
      {"boundary", MD_ATTRIBUTE_TEXT, sizeof boundary, boundary}};
  MD_TRY(md_host_fields(context, run->links.geometry, &o->run.request, run->guess));
  if (md_counts(context)) return MD_OK;
  MD_TRY(md_propagator_read(context, o->guess, run->guess, wanted, 3));
  if (!(fabs(plaquette - here) <= 1e-12))
    return md_fail(context, MD_INPUT,
                   "the guess %s must be of this lattice, plaquette %.12f, got one of %.12f",
                   o->guess, here, plaquette);
  md_physics_words(&o->run.physics, &o->run.request, words, sizeof words);
  if (strcmp(action, words) != 0 || strcmp(boundary, o->run.boundary) != 0)
    return md_fail(context, MD_INPUT,
                   "the guess %s must be of action '%s' and boundary '%s', got '%s' and '%s'",
                   o->guess, words, o->run.boundary, action, boundary);
  return refuse_shift(context, o->guess);
}

/* MD_INPUT when no mode has converged, or they belong to another lattice, action or boundary.
 * Collective. */
static md_status read_modes(md_context *context, md_solve_run *run, md_space space) {
  const md_solve_options *o = &run->options;
  MD_TRY(md_deflation_describe(context, o->deflate, &run->modes_info));
  const md_modes_label wanted = md_deflation_label(&o->run.physics, o->mass, &o->run.request,
                                                   o->run.boundary, run->links.checksum);
  return md_modes_read(context, o->deflate, run->links.geometry, &wanted, &run->modes_info,
                       run->modes_info.converged, space, &run->modes);
}

/* Lattice, operators, fields: all but what the solver has for itself. */
static md_status set_up(md_context *context, md_solve_run *run) {
  md_solve_options *o = &run->options;
  const md_backend_request *request = &o->run.request;
  md_source_vector vectors[MD_MAX_RHS];
  const md_backend *backend;
  MD_TRY(md_backend_find(context, o->run.backend, request, &backend));
  MD_TRY(md_solve_checkpoint_place(context, o));
  MD_TRY(md_run_load(context, &o->run, backend->space, o->deflate || o->checkpoint, &run->links));
  const md_geometry *geometry = run->links.geometry;
  MD_TRY(md_physics_check_unitarity(context, &o->run.physics, request, run->links.unitarity, true));
  MD_TRY(md_source_check(context, &o->source, geometry->global));
  if (o->shifts.count) MD_TRY(md_source_require_even(context, &o->source, geometry->global));
  if (o->guess) MD_TRY(read_guess(context, run));
  if (o->deflate) MD_TRY(read_modes(context, run, backend->space));
  const md_auto_inner facts = {.mass = o->mass,
                               .tolerance = o->tolerance,
                               .above = md_modes_last(&run->modes),
                               .solver = o->how.by,
                               .n_rhs = request->n_rhs,
                               .sites = (double)geometry->volume};
  MD_TRY(md_run_choose_inner(context, &o->run, &facts, &o->run.request));
  MD_TRY(md_equation_create(context, &o->run, request, run->links.field, &run->of));
  if (md_request_slices(request) % 2 == 0) /* walls with a middle */
    MD_TRY(md_host_fields(context, geometry, request, run->midpoint));
  if (md_counts(context)) return MD_OK;
  if (o->source.word == MD_WORD_FILE) return md_source_read(context, &o->source, run->of.b);
  md_source_expand(&o->source, geometry->global, (int)o->rhs, vectors);
  md_source_fill(run->of.b, vectors);
  return MD_OK;
}

static md_status solve(md_context *context, md_solve_run *run) {
  md_solve_options *o = &run->options;
  md_equation *e = &run->of;
  observer watch = {context, run, md_progress_start(context, "solve"), 0, 0, -1};
  md_solver_request request = {.mass = o->mass,
                               .tolerance = o->tolerance,
                               .max_iterations = (int)o->max_iterations,
                               .observe = observe,
                               .save_every = (int)o->checkpoint_every,
                               .leave = o->checkpoint ? save : NULL,
                               .resume = o->resume ? resume : NULL,
                               .resume_parts = resume_parts,
                               .user = &watch,
                               .inner = o->run.mixed ? &e->inner : NULL,
                               .modes = o->deflate ? &run->modes : NULL,
                               .guess = o->guess ? &run->guess[MD_EVEN] : NULL,
                               .midpoint = run->midpoint[0].components ? run->midpoint : NULL};
  md_solver_options_apply(&o->how, &request);
  const md_status status =
      md_solve_cg(context, &e->dirac, md_equation_exact(e), &request, e->x, e->b, &run->result);
  md_progress_pieces_end(context);
  md_progress_stop(&watch.progress);
  return status;
}

bool md_solve_cut_short(const md_solve_run *run) {
  return run->result.interrupted && !run->result.converged;
}

md_status md_solve_write(md_context *context, md_solve_run *run, const char *path, double mass,
                         double *shift, double *residuals) {
  md_solve_options *o = &run->options;
  char words[MD_PHYSICS_WORDS_BYTES];
  md_provenance from;
  const bool thin = o->run.lattice != NULL;
  enum { OWN = 4, SHIFTED = 2 };
  md_attribute attributes[OWN + SHIFTED + MD_PROVENANCE_ATTRIBUTES] = {
      {"residuals", MD_ATTRIBUTE_REAL, o->run.request.n_rhs, residuals},
      {thin ? "plaquette" : "fat_plaquette", MD_ATTRIBUTE_REAL, 1,
       thin ? &run->links.plaquette : &run->links.fat_plaquette},
      {"source", MD_ATTRIBUTE_TEXT, 0, (char *)o->source.text},
      {"boundary", MD_ATTRIBUTE_TEXT, 0, (char *)o->run.boundary},
      {"shift", MD_ATTRIBUTE_REAL, 1, shift},
      {"equation", MD_ATTRIBUTE_TEXT, 0, (char *)MD_SOLVE_SHIFTED}};
  md_provenance_of_run(context, &from);
  from.lattice = thin ? o->run.lattice : o->run.physics.fat_file;
  from.lattice_checksum = run->links.lattice_checksum;
  from.action = md_physics_words(&o->run.physics, &o->run.request, words, sizeof words);
  from.mass = mass;
  from.tolerance = o->tolerance;
  const md_lattice_format *format = md_vectors_format_of(o->output, o->format);
  return md_solution_write(context, path, format, md_vectors_precision(format), !o->force,
                           run->of.x, run->of.b, attributes,
                           md_provenance_append(&from, attributes, shift ? OWN + SHIFTED : OWN));
}

/* Exit 3 after a signal, 1 otherwise, with what to do. */
static md_status unreached(md_context *context, const md_solve_run *run) {
  const md_solver_result *r = &run->result;
  const md_solve_options *o = &run->options;
  const bool ran_out = !r->stalled && r->iterations >= o->max_iterations;
  char state[700] = "with --checkpoint FILE --checkpoint-every N a solve by cg can be resumed";
  if (!r->interrupted)
    return md_fail(
        context, MD_UNREACHED,
        "the true residual must be at most %g, %s %.3e after %d iteration%s; raise %s--tol%s%s",
        o->tolerance, ran_out ? "got" : "stalled at", r->relative_residual, r->iterations,
        md_plural(r->iterations), ran_out ? "--max-iter or " : "",
        ran_out && run->states > 0 && !run->checkpoint_message[0] ? " and add --resume" : "",
        r->at_rounding                          ? ""
        : o->how.by->direct                     ? ", or take --solver cg"
        : o->run.request.precision == MD_DOUBLE ? ""
        : !o->run.mixed                         ? ", or use --precision double with --inner"
        : o->run.request.precision == MD_SINGLE ? ", or leave out --inner"
                                                : ", or use a wider --inner");
  if (o->checkpoint && run->checkpoint_message[0])
    snprintf(state, sizeof state, "its state is not in %.200s: %.400s", o->checkpoint,
             run->checkpoint_message);
  else if (o->checkpoint && run->states == 0 && !o->resume)
    snprintf(state, sizeof state,
             "no state is in %.500s, as a right-hand side stalled before one was due; raise --tol",
             o->checkpoint);
  else if (o->checkpoint)
    snprintf(state, sizeof state, "%.600s has its state, go on with --resume", o->checkpoint);
  return md_fail(context, MD_ENVIRONMENT,
                 "%s ended the solve after %d iteration%s at a true residual of %.3e; %s",
                 md_interrupt_name(context), r->iterations, md_plural(r->iterations),
                 r->relative_residual, state);
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

/* Of the given mass alone. */
static md_status solve_and_report(md_context *context, md_solve_run *run) {
  const md_solve_options *o = &run->options;
  if (!md_counts(context)) md_solve_print_head(context, run);
  md_status status = solve(context, run), written = status;
  if (md_counts(context) || (status != MD_OK && status != MD_UNREACHED)) return status;
  const bool whole = status == MD_OK && !md_solve_cut_short(run);
  if (whole) MD_TRY(md_solve_observe(context, run));
  md_solve_print(context, run); /* what is known, also with a number that is none */
  if (whole && o->output)
    written = md_solve_write(context, run, o->output, o->mass, NULL, run->result.residuals);
  status = md_solve_report(context, run, written);
  if (status == MD_OK && !run->result.converged) status = unreached(context, run);
  return status == MD_OK ? check_states(context, run) : status;
}

/* All but the options. As a dry run without a number: see base/memory_need.h. */
static md_status run_solve(md_context *context, void *user) {
  md_solve_run run = *(const md_solve_run *)user;
  md_status status = set_up(context, &run);
  if (status == MD_OK)
    status = run.options.shifts.count > 0 ? md_solve_shifts(context, &run)
                                          : solve_and_report(context, &run);
  md_solver_result_free(&run.result);
  free(run.observed.all);
  for (int p = 0; p < MD_PARITIES; p++) MD_FIELDS_DESTROY(&run.guess[p], &run.midpoint[p]);
  md_modes_destroy(&run.modes);
  md_equation_destroy(&run.of);
  md_action_links_destroy(&run.links);
  return status;
}

md_status md_command_solve(md_context *context, int argc, char **argv) {
  md_solve_run run = {0};
  md_memory_need need;
  md_interrupt_catch(context);
  MD_TRY(md_solve_options_read(context, &run.options, argc, argv));
  if (run.options.run.common.help) return MD_OK;
  MD_TRY(md_memory_foresee(context, run_solve, &run, &need));
  MD_TRY(md_memory_require(context, &need, "solve"));
  return run_solve(context, &run);
}
