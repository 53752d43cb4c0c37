#pragma once

#include "base/load.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "bench/bench.h"
#include "dirac/action.h"
#include "lattice/geometry/conventions.h"
#include "lattice/halo/halo.h"
#include "links/action_links.h"

/* The problems of bench suite, fixed for good: a figure of merit is comparable within one class.
 *
 * Links: MD_SUITE_SWEEPS heatbath sweeps at MD_SUITE_BETA from unit links, each link drawn by
 * (seed, sweep, direction, global site). Without overrelaxation a heatbath forgets rounding: two
 * chains that differ by 1e-14 agree again to 1e-15 a few sweeps later, so that the plaquette is the
 * same to 1e-10 on machines whose logarithms differ in the last bit. */
enum { MD_SUITE_SWEEPS = 40, MD_SUITE_SEED = 11, MD_SUITE_SLICES = 8 /* of domain walls */ };
#define MD_SUITE_BETA 6.0
#define MD_SUITE_TOLERANCE 1e-10 /* of the true residual */

typedef struct md_suite_class {
  const char *name, *machine;
  int dims[MD_DIMS];
  double mass;
  int gemm_host, gemm_device; /* extent of the square products */
  /* The condensate is Re <b, x> / V of the first right-hand side, by action; NaN: not computed. */
  double plaquette, condensate[MD_ACTIONS];
} md_suite_class;

#define MD_SUITE_CLASS_WORDS "XS|S|M|L|XL" /* in the order of the table */

/* One run of bench suite: what its parts share. */
typedef struct md_suite {
  md_context *context;
  const md_suite_class *class;
  md_physics_options physics;
  md_halo_request halo;
  md_bench_operators operators; /* of the solves */
  md_choices inner;             /* of the solves; as MD_BENCH_INNER_WORDS says */
  int repetitions;
  double seconds;      /* that repetitions of a solve take at least */
  const char *scratch; /* folder for files that are written and read */
  long long owner;     /* process of rank 0, which is in their names */
  const int *grid;
  md_space space; /* where the first operator keeps its fields */
  md_action_links links;
  cJSON *rows, *skipped, *checks;
  md_memory_need least; /* of a dry run, as that of md_solver_bench */
  bool failed;          /* one of the checks */
  bool unsolved;        /* parts with solves, of which none ran and passed */
  double merit;         /* right-hand sides per second of the best solve; 0: none */
  cJSON *merit_row;     /* borrowed from rows */
  md_load load;         /* when the parts began */
  char absent[512];     /* what the machine does not have, told in one line at the end */
} md_suite;

/* Adds to it; arguments as of printf. */
#define MD_SUITE_LACKS(suite, ...)                                                                 \
  (md_append((suite)->absent, sizeof(suite)->absent, "%s", *(suite)->absent ? "; " : ""),          \
   md_append((suite)->absent, sizeof(suite)->absent, __VA_ARGS__))

/* Adds a check to the report and says it: |value - expected| <= tolerance. Where 0 is expected the
 * tolerance is a bound, and is said as one. */
void md_suite_check(md_suite *suite, const char *name, double value, double expected,
                    double tolerance);

/* The parts. Each adds its rows and checks; a wrong result is a failed check, and MD_OK. A status
 * that is not MD_OK ends the run. Collective. */
md_status md_suite_copy(md_suite *suite);
md_status md_suite_hop(md_suite *suite);
md_status md_suite_solve(md_suite *suite, int n_rhs);
md_status md_suite_halo(md_suite *suite);
md_status md_suite_gemm(md_suite *suite);
md_status md_suite_files(md_suite *suite);

/* A number of a row; NaN: the row is NULL, or has none there. Local. */
double md_suite_real(const cJSON *row, const char *key);
/* The end of a run: energy, verdict, figure of merit with what is beside it, and what speaks
 * against it; only a `whole` run has a figure. A run with `solves` fails where none passed.
 * Collective. */
void md_suite_report_figure(md_suite *suite, md_report *report, bool whole, bool solves);

/* Appends the files that md_suite_files makes, none of which may be there. Local. */
md_status md_suite_files_list(const md_suite *suite, md_made_files *files);
