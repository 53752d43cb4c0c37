#include "base/number.h"
#include "lattice/fields/source.h"
#include "lattice/halo/halo_options.h"
#include "solve/solve.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of md_source_kind: point:x,y,z,t  wall:t  random:SEED */
static const char KINDS[] = "point|wall|random";

static md_status read_source(md_context *context, const char *label, const char *text,
                             void *target) {
  md_solve_source *source = target;
  const size_t length = strcspn(text, ":");
  const char *numbers = text + length + (text[length] == ':');
  char kind[16];
  long long n[MD_DIMS] = {0};
  md_number found = MD_NUMBER_MALFORMED;
  snprintf(kind, sizeof kind, "%.*s", (int)length, text);
  *source = (md_solve_source){.kind = (md_source_kind)md_choice_of(KINDS, kind)};
  switch (md_choice_of(KINDS, kind)) {
  case MD_SOURCE_POINT:
    found = md_number_integers(numbers, ',', MD_DIMS, INT_MIN, INT_MAX, n);
    break;
  case MD_SOURCE_WALL:
    found = md_number_integer(numbers, INT_MIN, INT_MAX, &n[MD_T]);
    break;
  case MD_SOURCE_RANDOM:
    found = md_number_integer(numbers, 0, LLONG_MAX, &n[0]);
    source->seed = (uint64_t)n[0];
    break;
  default:
    return md_fail_choice(context, label, KINDS, kind);
  }
  if (found != MD_NUMBER_OK)
    return md_fail(context, MD_INPUT,
                   "%s must be point:x,y,z,t, wall:t or random:SEED with integers below 2^31, a "
                   "seed below 2^63, got '%.200s'",
                   label, text);
  for (int d = 0; d < MD_DIMS && source->kind != MD_SOURCE_RANDOM; d++)
    source->point[d] = (int)n[d];
  source->text = strdup(text);
  return source->text ? MD_OK : md_fail_memory(context, strlen(text), "source");
}

md_status md_solve_source_check(md_context *context, const md_solve_options *options,
                                const int dims[MD_DIMS]) {
  const md_solve_source *s = &options->parsed_source;
  for (int d = 0; d < MD_DIMS && s->kind != MD_SOURCE_RANDOM; d++)
    if (s->point[d] < 0 || s->point[d] >= dims[d])
      return md_fail(context, MD_INPUT,
                     "the source must lie on the lattice, 0 to %d in direction %c, got %d in '%s'",
                     dims[d] - 1, "xyzt"[d], s -> point[d], s -> text);
  return MD_OK;
}

void md_solve_source_fill(const md_solve_source *source, md_field b[MD_PARITIES]) {
  switch (source->kind) {
  case MD_SOURCE_POINT:
    md_source_point(b, source->point);
    break;
  case MD_SOURCE_WALL:
    md_source_wall(b, source->point[MD_T]);
    break;
  case MD_SOURCE_RANDOM:
    md_source_random(b, source->seed);
    break;
  }
}

static md_status check_shifts(md_context *context, md_solve_options *o) {
  const bool multishift = strcmp(o->solver, "multishift") == 0;
  const int *p = o->parsed_source.point;
  if (multishift != (o->shifts.count > 0) || (o->refine && !multishift))
    return md_fail(context, MD_INPUT,
                   "--shifts A,B,... and --solver multishift need each other, --refine needs both");
  if (!multishift) return MD_OK;
  if (o->deflate || o->guess)
    return md_fail(context, MD_INPUT,
                   "--solver multishift begins from zero for all shifts: it goes without --deflate "
                   "and --guess");
  if (strcmp(o->inner, "none") != 0 || o->output || o->checkpoint)
    return md_fail(context, MD_INPUT,
                   "--solver multishift goes without --inner, --output and --checkpoint; mixed "
                   "precision is --precision single --refine");
  if (o->parsed_source.kind == MD_SOURCE_POINT && md_parity(p))
    return md_fail(context, MD_INPUT,
                   "multishift solves on even sites: x+y+z+t of the point must be even, got '%s'",
                   o->parsed_source.text);
  for (int k = 0; k < o->shifts.count; k++)
    if (!(o->mass * o->mass + o->shifts.value[k] > 0.0))
      return md_fail(context, MD_INPUT,
                     "--shifts must be numbers with mass^2 + shift > 0, got %g for mass %g",
                     o->shifts.value[k], o->mass);
  return MD_OK;
}

static md_status check_combinations(md_context *context, md_solve_options *o) {
  const bool colours = o->parsed_source.kind != MD_SOURCE_RANDOM;
  if (colours && o->rhs != 0 && o->rhs != 3)
    return md_fail(context, MD_INPUT,
                   "point and wall sources have 3 right-hand sides, one a colour, got --rhs %lld; "
                   "leave it out or use --source random:SEED",
                   o->rhs);
  if (o->rhs == 0) o->rhs = colours ? 3 : 1;
  MD_TRY(check_shifts(context, o));
  o->mixed = strcmp(o->inner, "none") != 0;
  if (strcmp(o->solver, "block") == 0 && (o->mixed || o->checkpoint))
    return md_fail(context, MD_INPUT, "--solver block goes without --inner and --checkpoint");
  if (o->mixed && strcmp(o->precision, "double") != 0)
    return md_fail(context, MD_INPUT,
                   "--inner needs --precision double, in which the residual is kept, got %s",
                   o->precision);
  if (o->resume && !o->checkpoint)
    return md_fail(context, MD_INPUT,
                   "--resume needs --checkpoint FILE, the state that an earlier solve wrote "
                   "with --checkpoint FILE --checkpoint-every N");
  if (o->checkpoint_every > 0 && !o->checkpoint)
    return md_fail(context, MD_INPUT, "--checkpoint-every needs --checkpoint FILE to write to");
  if (o->checkpoint && !o->resume && o->checkpoint_every == 0)
    return md_fail(context, MD_INPUT,
                   "--checkpoint needs --checkpoint-every N to write it or --resume to read it");
  return MD_OK;
}

md_status md_solve_options_read(md_context *context, md_solve_options *o, int argc, char **argv) {
  *o = (md_solve_options){.backend = "auto",
                          .packing = "none",
                          .precision = "double",
                          .inner = "none",
                          .reconstruct = "18",
                          .solver = "cg",
                          .boundary = "antiperiodic",
                          .halo = {.transport = "auto"},
                          .physics = MD_PHYSICS_DEFAULTS,
                          .tolerance = 1e-10,
                          .max_iterations = 10000};
  char backends[MD_BACKEND_WORDS_BYTES];
  md_option options[] = {{.name = "lattice",
                          .type = MD_OPTION_TEXT,
                          .target = &o->lattice,
                          .argument = "LATTICE",
                          .help = "lattice file of any format (required without --fat)",
                          .positional = true,
                          .file = MD_FILE_INPUT},
                         {.name = "mass",
                          .type = MD_OPTION_REAL,
                          .target = &o->mass,
                          .argument = "M",
                          .help = "quark mass in M = m + D (required)",
                          .low = 1e-6,
                          .high = 100,
                          .required = true},
                         {.name = "backend",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->backend,
                          .choices = md_backend_words("auto", backends),
                          .help = "see the README's table [auto]"},
                         {.name = "packing",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->packing,
                          .choices = &(MD_PACKING_WORDS)[1],
                          .help = "of Tensor Core backends [none]"},
                         {.name = "precision",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->precision,
                          .choices = &(MD_PRECISION_WORDS)[1],
                          .help = "storage of links and fermions [double]"},
                         {.name = "inner",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->inner,
                          .choices = "none" MD_NARROW_PRECISION_WORDS,
                          .help = "of the iterations under --precision double [none]"},
                         {.name = "reconstruct",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->reconstruct,
                          .choices = &(MD_RECONSTRUCT_WORDS)[1],
                          .help = "reals a link is stored in [18]"},
                         {.name = "solver",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->solver,
                          .choices = "cg|block|multishift",
                          .help = "CG, block CG; multishift: M^dag M + shifts, even sites [cg]"},
                         {.name = "shifts",
                          .type = MD_OPTION_REALS,
                          .target = &o->shifts,
                          .argument = "A,B,...",
                          .help = "of --solver multishift"},
                         {.name = "refine",
                          .type = MD_OPTION_FLAG,
                          .target = &o->refine,
                          .help = "shifts that miss --tol go on by CG in double"},
                         {.name = "source",
                          .type = MD_OPTION_PARSED,
                          .target = &o->parsed_source,
                          .parse = read_source,
                          .initial = "point:0,0,0,0",
                          .argument = "SOURCE",
                          .help = "point:x,y,z,t | wall:t | random:SEED [point:0,0,0,0]"},
                         {.name = "rhs",
                          .type = MD_OPTION_INTEGER,
                          .target = &o->rhs,
                          .argument = "N",
                          .help = "right-hand sides, solved in step [3 colours; random: 1]",
                          .low = 1,
                          .high = MD_MAX_RHS},
                         {.name = "tol",
                          .type = MD_OPTION_REAL,
                          .target = &o->tolerance,
                          .argument = "T",
                          .help = "on norm(b - M x) / norm(b) [1e-10]",
                          .low = 1e-20,
                          .high = 0.1},
                         {.name = "max-iter",
                          .type = MD_OPTION_INTEGER,
                          .target = &o->max_iterations,
                          .argument = "N",
                          .help = "iterations at most [10000]",
                          .low = 1,
                          .high = 10000000},
                         {.name = "boundary",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->boundary,
                          .choices = "antiperiodic|periodic",
                          .help = "in t [antiperiodic]"},
                         MD_HALO_OPTIONS(o->halo),
                         MD_PHYSICS_OPTIONS(o->physics),
                         {.name = "deflate",
                          .type = MD_OPTION_TEXT,
                          .target = &o->deflate,
                          .argument = "MODES.h5",
                          .help = "lowest modes that eigen wrote: solved for by a projection",
                          .file = MD_FILE_INPUT},
                         {.name = "guess",
                          .type = MD_OPTION_TEXT,
                          .target = &o->guess,
                          .argument = "FILE.h5",
                          .help = "begin from this solution, of any mass, that --output wrote",
                          .file = MD_FILE_INPUT},
                         {.name = "output",
                          .type = MD_OPTION_TEXT,
                          .target = &o->output,
                          .argument = "FILE.h5",
                          .help = "the solution, HDF5",
                          .file = MD_FILE_RESULT},
                         {.name = "force",
                          .type = MD_OPTION_FLAG,
                          .target = &o->force,
                          .help = "replace the file of --output where it is there"},
                         {.name = "checkpoint",
                          .type = MD_OPTION_TEXT,
                          .target = &o->checkpoint,
                          .argument = "FILE",
                          .help = "state of the solver, HDF5",
                          .file = MD_FILE_STATE},
                         {.name = "checkpoint-every",
                          .type = MD_OPTION_INTEGER,
                          .target = &o->checkpoint_every,
                          .argument = "N",
                          .help = "write it every N iterations, and when a signal ends the solve",
                          .low = 1,
                          .high = 10000000},
                         {.name = "resume",
                          .type = MD_OPTION_FLAG,
                          .target = &o->resume,
                          .help = "go on from the checkpoint"},
                         {.name = "ignore-checksum",
                          .type = MD_OPTION_FLAG,
                          .target = &o->ignore_checksum,
                          .help = "a checksum that does not fit is a warning"},
                         MD_COMMON_OPTIONS(o->common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"solve", "Solve M x = b on a lattice and report.",
                                "point and wall sources solve the three colours; point reports the "
                                "pion correlator,\nrandom the chiral condensate."};
  MD_TRY(md_options_read(context, &text, options, COUNT, &o->common, argc, argv));
  if (o->common.help) return MD_OK;
  MD_TRY(md_action_links_check(context, "solve", o->lattice, &o->physics));
  MD_TRY(md_physics_check(context, &o->physics));
  MD_TRY(check_combinations(context, o));
  o->request = (md_backend_request){
      .precision = (md_precision)md_precision_of(o->mixed ? o->inner : o->precision),
      .reconstruct = (md_reconstruct)md_reconstruct_of(o->reconstruct),
      .packing = (md_packing)md_packing_of(o->packing),
      .n_rhs = (int)o->rhs,
      .antiperiodic = strcmp(o->boundary, "antiperiodic") == 0};
  md_physics_apply(&o->physics, &o->request);
  return MD_OK;
}
