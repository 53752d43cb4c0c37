/* The options of a solve. */
#include "io/lattice_format.h"
#include "io/vectors.h"
#include "solve/solve.h"

#include <string.h>

/* The files of the solutions, where they are to be. */
static md_status check_shift_files(md_context *context, const md_solve_options *o) {
  md_made_files made = {0};
  md_status status = MD_OK;
  char path[MD_SOLVE_PATH_BYTES];
  for (int k = 0; k < o->shifts.count && status == MD_OK; k++)
    status = md_made_files_add(context, &made, "--output", md_solve_shift_path(o->output, k, path),
                               MD_FILE_RESULT);
  return md_options_check_made(context, &o->run.common, &made, status);
}

/* The file of the source: an input, and what is in it. */
static md_status read_source_file(md_context *context, md_solve_options *o) {
  md_made_files made = {0};
  if (o->source.word != MD_WORD_FILE) return MD_OK;
  const md_status status =
      md_made_files_add(context, &made, "--source", md_source_path(&o->source), MD_FILE_INPUT);
  MD_TRY(md_options_check_made(context, &o->run.common, &made, status));
  return md_source_describe(context, &o->source);
}

static md_status check_shifts(md_context *context, md_solve_options *o) {
  const bool multishift = !o->how.by;
  if (multishift != (o->shifts.count > 0) || (o->refine && !multishift))
    return md_fail(context, MD_INPUT,
                   "--shifts A,B,... and --solver multishift need each other, --refine needs both");
  if (!multishift) return MD_OK;
  if (o->guess)
    return md_fail(
        context, MD_INPUT,
        "--solver multishift needs one residual for all shifts, which no guess gives: it "
        "goes without --guess");
  if (o->run.mixed || o->checkpoint)
    return md_fail(context, MD_INPUT,
                   "--solver multishift goes without --inner and --checkpoint; mixed "
                   "precision is --precision single --refine");
  if (o->source.word != MD_WORD_SEEDED) /* drawn where the lattice is known */
    MD_TRY(md_source_require_even(context, &o->source, NULL));
  if (md_action_get(o->run.request.action)->walls)
    return md_fail(context, MD_INPUT,
                   "--solver multishift is not for --action %s, whose sources on even sites have "
                   "all slices; a mass is no shift of S S^dag, solve mass by mass",
                   o->run.physics.action);
  if (o->source.spins == 4 && o->momenta.count)
    return md_fail(
        context, MD_INPUT,
        "--momenta needs correlators, which shifts of S S^dag have none of; leave it out");
  for (int k = 0; k < o->shifts.count; k++)
    if (o->source.spins == 4 && o->shifts.value[k] < 0.0)
      return md_fail(context, MD_INPUT, "--shifts of S S^dag must be 0 or more, got %g",
                     o->shifts.value[k]);
  for (int k = 0; k < o->shifts.count && o->source.spins == 1; k++) {
    const double mass2 = o->mass * o->mass + o->shifts.value[k]; /* below, nothing but rounding */
    if (!(mass2 >= MD_LEAST_MASS * MD_LEAST_MASS && mass2 <= MD_MOST_MASS * MD_MOST_MASS))
      return md_fail(
          context, MD_INPUT,
          "--shifts must be numbers with mass^2 + shift > 0, got %g for mass %g; the square "
          "root is a mass, from %g to %g",
          o->shifts.value[k], o->mass, MD_LEAST_MASS, MD_MOST_MASS);
  }
  return o->output ? check_shift_files(context, o) : MD_OK;
}

static md_status check_format(md_context *context, const md_solve_options *o) {
  if (!o->output) return MD_OK;
  if (!o->format) MD_TRY(md_vectors_check_suffix(context, o->output));
  const md_lattice_format *format = md_vectors_format_of(o->output, o->format);
  return md_vectors_check(context, format, md_vectors_precision(format), (int)o->rhs, false);
}

/* Formats of other codes have colour vectors. */
static bool is_other_format(const md_solve_options *o) {
  return o->output && strcmp(md_vectors_format_of(o->output, o->format)->name, "hdf5") != 0;
}

/* What quarks with four spins go without, and what only they allow. */
static md_status check_spins(md_context *context, md_solve_options *o) {
  const char *without = o->source.word == MD_WORD_FILE ? "source file"
                        : is_other_format(o)           ? "output in another format than hdf5"
                                                       : NULL;
  o->source.spins = md_action_get(o->run.request.action)->spins;
  MD_TRY(md_physics_check_mass(context, "mass", o->run.request.action, o->mass));
  if (o->source.spins == 1) return MD_OK;
  if (without)
    return md_fail(context, MD_INPUT,
                   "--%s is for staggered actions, got --action %s; leave it out", without,
                   o->run.physics.action);
  if (o->guess && md_action_get(o->run.request.action)->walls)
    return md_fail(context, MD_INPUT,
                   "--guess is not for --action %s: solutions have the quark, of all slices; leave "
                   "it out",
                   o->run.physics.action);
  return MD_OK;
}

static md_status check_combinations(md_context *context, md_solve_options *o) {
  const int count = md_source_count(&o->source, o->rhs ? (int)o->rhs : 1);
  if (o->source.word == MD_WORD_FILE && o->rhs != 0 && o->rhs != count)
    return md_fail(context, MD_INPUT,
                   "the source %.200s has %d right-hand sides, got --rhs %lld; leave it out",
                   o->source.text, count, o->rhs);
  if (o->rhs != 0 && o->rhs != count)
    return md_fail(
        context, MD_INPUT,
        "point and wall sources have %d right-hand sides, one a colour%s, for each point, "
        "got --rhs %lld; leave it out or use --source random:SEED",
        md_source_width(&o->source), o->source.spins == 4 ? " and spin" : "", o->rhs);
  if (count > MD_MAX_RHS)
    return md_fail(context, MD_INPUT,
                   "a source has at most %d right-hand sides, %s for each point, got %d; use "
                   "minidirac measure, which takes them in parts",
                   MD_MAX_RHS, o->source.spins == 4 ? "twelve" : "three", count);
  o->rhs = count;
  MD_TRY(check_format(context, o));
  if (o->momenta.count && !md_source_is_points(&o->source))
    return md_fail(context, MD_INPUT,
                   "--momenta needs a source of points, whose correlators have them, got '%s'",
                   o->source.text);
  o->run.request.n_rhs = count;
  MD_TRY(md_solver_options_read(context, &o->how, o->run.mixed, o->checkpoint, o->deflate));
  MD_TRY(check_shifts(context, o));
  o->run.parts = o->how.by && md_solver_takes_parts(o->how.by, o->run.request.action);
  if (o->resume && !o->checkpoint)
    return md_fail(context, MD_INPUT,
                   "--resume needs --checkpoint FILE, the state that an earlier solve wrote "
                   "with --checkpoint FILE --checkpoint-every N");
  if (o->checkpoint_every > 0 && !o->checkpoint)
    return md_fail(context, MD_INPUT, "--checkpoint-every needs --checkpoint FILE to write to");
  return MD_OK;
}

md_status md_solve_options_read(md_context *context, md_solve_options *o, int argc, char **argv) {
  *o = (md_solve_options){.run = MD_RUN_DEFAULTS,
                          .how = {.solver = "cg", .precondition = "none"},
                          .tolerance = 1e-10,
                          .max_iterations = 10000};
  char backends[MD_BACKEND_WORDS_BYTES];
  md_option options[] = {
      MD_LATTICE_OR_FAT_OPTION(o->run.lattice),
      MD_OPTION(REAL, "mass", &o->mass, "M", "quark mass in M = m + D (required)", .required = true,
                .group = MD_GROUP_PHYSICS),
      MD_OPERATOR_OPTIONS(o->run, backends),
      MD_OPTION(CHOICE, "solver", &o->how.solver, NULL,
                "auto: cg or block; multishift: A + shifts [cg]",
                .choices = &(MD_SOLVER_WORDS "|multishift")[1], .group = MD_GROUP_SOLVER),
      MD_PRECONDITION_OPTIONS(o->how),
      MD_OPTION(REALS, "shifts", &o->shifts, "A,B,...", "of --solver multishift"),
      MD_OPTION(FLAG, "refine", &o->refine, NULL,
                "begin in double, finish shifts that miss --tol by CG"),
      MD_OPTION(PARSED, "source", &o->source, "SOURCE", MD_SOURCE_HELP, .parse = md_source_parse,
                .initial = "point:0,0,0,0", .group = MD_GROUP_PHYSICS),
      MD_OPTION(PARSED, "momenta", &o->momenta, "X,Y,Z;...", MD_MOMENTA_HELP,
                .parse = md_momenta_parse),
      MD_OPTION(INTEGER, "rhs", &o->rhs, "N",
                "right-hand sides [3 for each point, 12 with four spins; noise: 1]", .low = 1,
                .high = MD_MAX_RHS),
      MD_LIMIT_OPTIONS(*o),
      MD_BOUNDARY_OPTION(o->run.boundary),
      MD_HALO_OPTIONS(o->run.halo, o->run.common),
      MD_PHYSICS_OPTIONS(o->run.physics),
      MD_REUNITARIZE_OPTION(o->run.physics.reunitarize),
      MD_OPTION(TEXT, "deflate", &o->deflate, "MODES.h5",
                "lowest modes that eigen wrote: solved for by a projection", .file = MD_FILE_INPUT,
                .group = MD_GROUP_SOLVER),
      MD_OPTION(TEXT, "guess", &o->guess, "FILE",
                "begin from this solution, of any mass, that --output wrote",
                .file = MD_FILE_INPUT),
      MD_OPTION(TEXT, "output", &o->output, "FILE", "the solution", .file = MD_FILE_RESULT,
                .group = MD_GROUP_OUTPUT),
      MD_VECTORS_FORMAT_OPTION(o->format),
      MD_FORCE_OPTION(o->force),
      MD_OPTION(TEXT, "checkpoint", &o->checkpoint, "FILE",
                "state of the solver, HDF5, left by a signal or --max-iter", .file = MD_FILE_STATE),
      MD_OPTION(INTEGER, "checkpoint-every", &o->checkpoint_every, "N",
                "write it every N iterations too", .low = 1, .high = 10000000),
      MD_OPTION(FLAG, "resume", &o->resume, NULL, "go on from the checkpoint, with the same bits"),
      MD_IGNORE_CHECKSUM_OPTION(o->run.ignore_checksum),
      MD_COMMON_OPTIONS(o->run.common)};
  enum { COUNT = sizeof options / sizeof *options };
  char help[MD_SOLVER_HELP_BYTES];
  const md_command_text text = {
      "solve", "Solve M x = b on a lattice and report.",
      md_solver_help(MD_SOURCE_DETAILS MD_SOURCE_FILE_DETAILS "Solvers:\n",
                     "Points and walls report the pion correlator, noise the chiral "
                     "condensate.\nMulti-shift solves on even sites, for the masses "
                     "sqrt(mass^2 + shift), or S S^dag + shift\nof wilson; --output OUT.h5 then "
                     "makes OUT-0.h5, OUT-1.h5, ... in the order of the shifts.",
                     help),
      "minidirac solve inputs/beta6.0_8x8x8x8.h5 --mass 0.05 --inner single --json solve.json"};
  MD_TRY(md_options_read(context, &text, options, COUNT, &o->run.common, argc, argv));
  if (o->run.common.help) return MD_OK;
  MD_TRY(md_options_need(context, options, COUNT, "force|format", o->output, "--output FILE"));
  MD_TRY(md_run_check(context, "solve", &o->run));
  MD_TRY(check_spins(context, o));
  MD_TRY(read_source_file(context, o));
  return check_combinations(context, o);
}
