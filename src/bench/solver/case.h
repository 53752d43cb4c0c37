#pragma once

#include "base/memory_need.h"
#include "base/options.h"
#include "base/report.h"
#include "base/sensors.h"
#include "base/statistics.h"
#include "dirac/eigen/eigen.h"
#include "dirac/solvers/multishift.h"
#include "dirac/solvers/solver_options.h"
#include "links/run.h"

/* One run of bench solver: what its solves share. */
typedef struct md_solver_bench {
  md_context *context;
  const char *command; /* "bench solver" or whose part it is */
  const md_action_links *links;
  const md_halo_request *halo;
  md_solver_options how; /* the preconditioner of solvers that take one */
  double tolerance;      /* on the true residual */
  long long max_iterations, repetitions;
  double seconds;  /* repetitions go on until those of a line took so long */
  md_reals shifts; /* of M^dag M, for the solvers that take them */
  cJSON *rows, *skipped, *choices;
  md_memory_need least; /* of a dry run: what the smallest solve takes; 0 before the first */
  /* Of the deflated solves: */
  md_modes modes; /* count 0: there are none */
  double modes_s; /* that it took to find them */
  md_eigen_density density;
  md_integers n_sources; /* for which the set-up is shared out */
  cJSON *sources, *break_even;
  double cg_s[MD_PRECISIONS]; /* a solve by CG with the same right-hand sides and operator, by its
                                 inner precision; 0: none */
  int missed;                 /* solves that did not reach the tolerance */
  bool unrefined_missed;      /* one of them was multishift without refinement */
  bool ran_out;               /* one of them, of iterations */
  double reference_s; /* seconds per right-hand side of the mass's first solve that did; 0: none */
} md_solver_bench;

/* The ways to solve, X(id, name): the solvers of the table, and beside them */
#define MD_BENCH_WAYS(X)                                                                           \
  MD_SOLVER_TABLE(X)                                                                               \
  X(DEFLATED, deflated)     /* CG with the modes of the run */                                     \
  X(MULTISHIFT, multishift) /* all shifts in one Krylov space, no refinement */                    \
  X(REFINED, refined)       /* and refinement of what misses the tolerance */                      \
  X(SEPARATE, separate)     /* every shift by CG of its own */
#define MD_ROW(id, name) MD_BENCH_##id,
typedef enum md_solver_kind { MD_BENCH_WAYS(MD_ROW) MD_BENCH_SOLVERS } md_solver_kind;
#undef MD_ROW
#define MD_BENCH_WORDS MD_BENCH_WAYS(MD_SOLVER_WORD) /* of a choice */
const char *md_solver_kind_name(md_solver_kind kind);

typedef struct md_solver_case {
  md_solver_kind kind;
  const char *backend; /* "auto" or a name of the table */
  /* Of the iterations: its precision is the inner one, double, or MD_INNER_AUTO. */
  md_backend_request request;
  double mass;
} md_solver_case;

/* --inner A,B: md_precision, where MD_DOUBLE stands for none, or MD_INNER_AUTO, that of
 * md_inner_choose, which is not one of `all`. */
enum { MD_INNER_AUTO = MD_PRECISIONS };
#define MD_BENCH_INNER_WORDS "none" MD_NARROW_PRECISION_WORDS "|auto"

enum { MD_WARM_ITERATIONS = 3 };
/* Solves for random sources `repetitions` times and for `seconds`, after MD_WARM_ITERATIONS of a
 * solve that are not timed, and adds the median as a row; adds to `skipped` with the reason what
 * this build, machine or solver does not serve, or the memory does not hold. MD_OK also when the
 * tolerance was missed; MD_ENVIRONMENT where a solve ended so. In a dry run it lowers bench->least
 * alone. Collective. */
md_status md_solver_bench_case(md_solver_bench *bench, const md_solver_case *c);

/* The modes that deflated solves take. */
typedef struct md_solver_modes {
  double mass; /* of S S^dag; 0 for staggered quarks */
  int count;
  double tolerance;
  md_precision store;
  const char *backend; /* that the search runs on, with a block of vectors at once */
  md_packing packing;
  int block;
  const md_physics_options *physics;
} md_solver_modes;
/* Finds them: bench->modes, to be destroyed also after a failure, and their time. Collective. */
md_status md_solver_bench_modes(md_solver_bench *bench, const md_solver_modes *wanted);

/* What a solve came to. */
typedef struct md_solver_figures {
  const md_backend *backend, *outer; /* of the iterations; of the residual that decides */
  const char *transport;             /* of the halos of the iterations */
  const char *packing_reason;        /* why the iterations have their packing */
  const char *inner_reason;          /* why their precision was chosen; "": it was given */
  int rhs_block;                     /* right-hand sides that are solved at once */
  int iterations, refine_iterations; /* of the right-hand side that took longest; over the shifts */
  int double_iterations;             /* of refined multi-shift: the first ones, in double */
  bool ran_out;                      /* of iterations, and missed the tolerance so */
  double residual;                   /* largest true one */
  md_statistics seconds;             /* of a solve */
  int repetitions;
  double timed_s;     /* of all repetitions */
  double flops;       /* of the hops of a solve */
  double iteration_s; /* between reported iterations; NaN for fewer than two */
  double condensate;  /* Re <b, x> / V of the first right-hand side; NaN: DEFLATED and behind it */
  double joules;      /* of a solve, as far as processors and GPUs tell (base/energy.h); else NaN */
  md_readings sensors;     /* while the repetitions ran */
  double operator_share;   /* hops times the time of a plain one over the seconds */
  double norm;             /* bound on |D| */
  double projection_s;     /* of one on the modes; 0 without modes */
  md_solver_choice choice; /* of `auto`; reason "" else */
} md_solver_figures;

/* An object with the keys that say what is solved and how; the caller's. Local. */
cJSON *md_solver_bench_request(const md_solver_case *c, const char *backend);
/* Seconds per source and break-even number of a solve by CG, with or without modes. Local. */
md_status md_solver_bench_sources(md_solver_bench *bench, const md_solver_case *c,
                                  const md_solver_figures *f);
/* The head of the table whose lines md_solver_bench_case prints. */
void md_solver_bench_head(const md_solver_bench *bench);
