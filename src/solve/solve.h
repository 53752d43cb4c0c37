#ifndef MD_SOLVE_SOLVE_H
#define MD_SOLVE_SOLVE_H

#include "base/options.h"
#include "base/report.h"
#include "dirac/solvers/multishift.h"
#include "dirac/solvers/solver.h"
#include "links/action_links.h"

/* The parts of `minidirac solve`. */

typedef enum md_source_kind { MD_SOURCE_POINT, MD_SOURCE_WALL, MD_SOURCE_RANDOM } md_source_kind;

typedef struct md_solve_source {
  md_source_kind kind;
  int point[MD_DIMS]; /* point: x,y,z,t; wall: t in the last entry */
  uint64_t seed;      /* random */
  const char *text;   /* as given */
} md_solve_source;

typedef struct md_solve_options {
  md_common_options common;
  const char *lattice, *backend, *packing, *precision, *inner, *reconstruct, *solver, *boundary;
  const char *output, *checkpoint, *deflate, *guess;
  double mass, tolerance;
  long long rhs, max_iterations, checkpoint_every;
  md_reals shifts; /* none: not a multishift solve */
  bool resume, ignore_checksum, refine, force;
  md_backend_request request; /* of the iterations, from the words above */
  md_halo_request halo;
  md_physics_options physics;
  bool mixed; /* request is the inner operator's, the outer one is double */
  md_solve_source parsed_source;
} md_solve_options;

/* Everything of one run; what main's caller sees of it is the report. */
typedef struct md_solve_run {
  md_solve_options options;
  double start_s; /* of the run, for the report */
  md_action_links links;
  md_dirac dirac, exact, inner;            /* exact and inner where the solve needs them */
  md_field b[MD_PARITIES], x[MD_PARITIES]; /* host, double */
  md_modes modes;                          /* of --deflate */
  md_modes_info modes_info;
  md_field guess[MD_PARITIES]; /* of --guess: host, double */
  md_solver_result result;
  double *pion_correlator; /* point source: global[MD_T] entries, else NULL */
  double *condensate;      /* random source: one estimate a right-hand side, else NULL */
} md_solve_run;

/* True when a signal ended the solve before it converged. */
bool md_solve_cut_short(const md_solve_run *run);
/* The operator that does the iterations. */
const md_dirac *md_solve_operator(const md_solve_run *run);

/* Reads and checks the options; sets request and parsed_source. Collective. */
md_status md_solve_options_read(md_context *context, md_solve_options *options, int argc,
                                char **argv);
/* MD_INPUT when the source lies outside the lattice. Local, same on all ranks. */
md_status md_solve_source_check(md_context *context, const md_solve_options *options,
                                const int dims[MD_DIMS]);
/* Assigns b. Local. */
void md_solve_source_fill(const md_solve_source *source, md_field b[MD_PARITIES]);

/* Adds what the modes and the guess of the options take, which lies in `space`; describes the
 * modes. MD_INPUT when none has converged. Collective. */
md_status md_solve_start_need(md_context *context, md_solve_run *run, md_space space,
                              const md_geometry *geometry, md_memory_need *need);
/* Reads them, the modes into `space`. MD_INPUT when they belong to another lattice, action or
 * boundary, or have another number of right-hand sides. Collective. */
md_status md_solve_start_load(md_context *context, md_solve_run *run, md_space space);

/* The state of CG to and from the checkpoint file; it belongs to one lattice, mass, source,
 * boundary, precision and backend, which are compared on reading. Collective. */
md_status md_solve_checkpoint_save(md_context *context, const md_solve_run *run,
                                   const md_cg_state *state);
md_status md_solve_checkpoint_load(md_context *context, const md_solve_run *run,
                                   md_cg_state *state);

/* The multishift solve of the run, its table and report. MD_UNREACHED when a shift did not
 * converge. Collective. */
md_status md_solve_shifts(md_context *context, md_solve_run *run);

/* The keys that reports of all solvers have. */
void md_solve_report_common(md_report *report, const md_solve_run *run);
/* The lines about the action and its links. */
void md_solve_print_action(const md_context *context, const md_solve_run *run);
/* Table on the terminal, JSON where asked. Collective. */
void md_solve_print(const md_context *context, const md_solve_run *run);
/* `written`: how writing the solution ended; its message stands before one of the report. */
md_status md_solve_report(md_context *context, const md_solve_run *run, md_status written);

#endif
