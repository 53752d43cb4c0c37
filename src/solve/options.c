#include "lattice/fields/source.h"
#include "lattice/halo/halo_options.h"
#include "solve/solve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* point:x,y,z,t  wall:t  random:SEED */
static md_status read_source(md_context *context, const char *text, md_solve_source *source) {
  int used = 0;
  *source = (md_solve_source){0};
  int *p = source->point;
  if (sscanf(text, "point:%d,%d,%d,%d%n", &p[0], &p[1], &p[2], &p[3], &used) == 4 && !text[used]) {
    source->kind = MD_SOURCE_POINT;
    return MD_OK;
  }
  used = 0;
  if (sscanf(text, "wall:%d%n", &p[MD_T], &used) == 1 && !text[used]) {
    source->kind = MD_SOURCE_WALL;
    return MD_OK;
  }
  if (strncmp(text, "random:", 7) == 0 && text[7] >= '0' && text[7] <= '9') {
    char *end;
    errno = 0;
    source->kind = MD_SOURCE_RANDOM;
    source->seed = strtoull(text + 7, &end, 10);
    if (errno == 0 && !*end) return MD_OK;
  }
  return md_fail(context, MD_INPUT,
                 "--source must be point:x,y,z,t, wall:t or random:SEED, got '%s'", text);
}

md_status md_solve_source_check(md_context *context, const md_solve_options *options,
                                const int dims[MD_DIMS]) {
  const md_solve_source *s = &options->parsed_source;
  for (int d = 0; d < MD_DIMS && s->kind != MD_SOURCE_RANDOM; d++)
    if (s->point[d] < 0 || s->point[d] >= dims[d])
      return md_fail(context, MD_INPUT,
                     "the source must lie on the lattice, 0 to %d in direction %c, got %d in '%s'",
                     dims[d] - 1, "xyzt"[d], s -> point[d], options -> source);
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

static md_status read_shifts(md_context *context, md_solve_options *o) {
  char copy[2048];
  const char *words[MD_MAX_SHIFTS];
  o->n_shifts = md_words(o->shifts_text, copy, sizeof copy, words, MD_MAX_SHIFTS);
  for (int k = 0; k < o->n_shifts; k++) {
    char *end;
    o->shifts[k] = strtod(words[k], &end);
    if (*end || !(o->mass * o->mass + o->shifts[k] > 0.0) || isinf(o->shifts[k])) o->n_shifts = -1;
  }
  if (o->n_shifts > 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "--shifts must be 1 to %d numbers A,B,... with mass^2 + shift > 0, got '%s'",
                 MD_MAX_SHIFTS, o->shifts_text);
}

static md_status check_shifts(md_context *context, md_solve_options *o) {
  const bool multishift = strcmp(o->solver, "multishift") == 0;
  const int *p = o->parsed_source.point;
  if (multishift != (o->shifts_text != NULL) || (o->refine && !multishift))
    return md_fail(context, MD_INPUT,
                   "--shifts A,B,... and --solver multishift need each other, --refine needs both");
  if (!multishift) return MD_OK;
  if (strcmp(o->inner, "none") != 0 || o->output || o->checkpoint)
    return md_fail(context, MD_INPUT,
                   "--solver multishift goes without --inner, --output and --checkpoint; mixed "
                   "precision is --precision single --refine");
  if (o->parsed_source.kind == MD_SOURCE_POINT && md_parity(p))
    return md_fail(context, MD_INPUT,
                   "multishift solves on even sites: x+y+z+t of the point must be even, got '%s'",
                   o->source);
  return read_shifts(context, o);
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
    return md_fail(context, MD_INPUT, "--resume needs --checkpoint FILE to read from");
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
                          .source = "point:0,0,0,0",
                          .boundary = "antiperiodic",
                          .halo = {.transport = "auto"},
                          .tolerance = 1e-10,
                          .max_iterations = 10000};
  md_option options[] = {{.name = "lattice",
                          .type = MD_OPTION_TEXT,
                          .target = &o->lattice,
                          .argument = "FILE",
                          .help = "lattice file of any format (required)"},
                         {.name = "mass",
                          .type = MD_OPTION_REAL,
                          .target = &o->mass,
                          .argument = "M",
                          .help = "quark mass in M = m + D (required)",
                          .low = 1e-6,
                          .high = 100},
                         {.name = "backend",
                          .type = MD_OPTION_TEXT,
                          .target = &o->backend,
                          .argument = "NAME",
                          .help = "auto, or a name of the README's table [auto]"},
                         {.name = "packing",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->packing,
                          .choices = "none|single|diagonal|block8|stacked",
                          .help = "of Tensor Core backends [none]"},
                         {.name = "precision",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->precision,
                          .choices = "double|single|half|bf16|fixed",
                          .help = "storage of links and fermions [double]"},
                         {.name = "inner",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->inner,
                          .choices = "none|single|half|bf16|fixed",
                          .help = "of the iterations under --precision double [none]"},
                         {.name = "reconstruct",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->reconstruct,
                          .choices = "18|12|8",
                          .help = "reals a link is stored in [18]"},
                         {.name = "solver",
                          .type = MD_OPTION_CHOICE,
                          .target = &o->solver,
                          .choices = "cg|block|multishift",
                          .help = "CG, block CG; multishift: M^dag M + shifts, even sites [cg]"},
                         {.name = "shifts",
                          .type = MD_OPTION_TEXT,
                          .target = &o->shifts_text,
                          .argument = "A,B,...",
                          .help = "of --solver multishift"},
                         {.name = "refine",
                          .type = MD_OPTION_FLAG,
                          .target = &o->refine,
                          .help = "shifts that miss --tol go on by CG in double"},
                         {.name = "source",
                          .type = MD_OPTION_TEXT,
                          .target = &o->source,
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
                         {.name = "output",
                          .type = MD_OPTION_TEXT,
                          .target = &o->output,
                          .argument = "FILE.h5",
                          .help = "the solution, HDF5"},
                         {.name = "checkpoint",
                          .type = MD_OPTION_TEXT,
                          .target = &o->checkpoint,
                          .argument = "FILE",
                          .help = "state of the solver, HDF5"},
                         {.name = "checkpoint-every",
                          .type = MD_OPTION_INTEGER,
                          .target = &o->checkpoint_every,
                          .argument = "N",
                          .help = "write it every N iterations",
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
  if (!o->lattice) return md_fail(context, MD_INPUT, "solve needs --lattice FILE");
  if (!md_option_seen(options, COUNT, "mass"))
    return md_fail(context, MD_INPUT, "solve needs --mass M");
  MD_TRY(read_source(context, o->source, &o->parsed_source));
  MD_TRY(check_combinations(context, o));
  o->request = (md_backend_request){
      (md_precision)md_precision_of(o->mixed ? o->inner : o->precision),
      (md_reconstruct)md_reconstruct_of(o->reconstruct), (md_packing)md_packing_of(o->packing),
      (int)o->rhs, strcmp(o->boundary, "antiperiodic") == 0};
  return MD_OK;
}
