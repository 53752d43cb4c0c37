#pragma once

#include "dirac/solvers/multishift.h"
#include "dirac/solvers/solver_options.h"
#include "links/run.h"
#include "sources/sources.h"

/* The parts of `minidirac solve`. */

typedef struct md_solve_options {
  md_run_options run;
  const char *output, *format, *checkpoint, *deflate, *guess;
  double mass, tolerance;
  long long rhs, max_iterations, checkpoint_every;
  md_reals shifts; /* none: not a multishift solve */
  bool resume, refine, force;
  md_solver_options how;
  md_source source;
  md_momentum_list momenta;
} md_solve_options;

/* What the source gives. t of a source on one time slice counts from the first slice of the
 * lattice, of several points from each of them; of correlators with momenta always from the source.
 */
typedef struct md_solve_observables {
  double *pion, *pion_error;         /* [global[MD_T]] of points and walls, else NULL */
  double *momentum, *momentum_error; /* [momenta][global[MD_T]] with --momenta, else NULL */
  double *condensate;                /* of noise: one estimate a right-hand side, else NULL */
  /* Of domain walls with an even number of slices beside the pion, else NULL: the same of the quark
   * in the middle of the fifth dimension, m_res from both, and (m sum C + sum C_midpoint) / Re <b,
   * q> - 1, which is zero. */
  double *midpoint, *midpoint_error;
  double residual_mass, ward;
  double *all; /* memory of all of them */
} md_solve_observables;

/* Everything of one run; what main's caller sees of it is the report. */
typedef struct md_solve_run {
  md_solve_options options;
  md_action_links links;
  md_equation of;
  md_modes modes; /* of --deflate */
  md_modes_info modes_info;
  md_field guess[MD_PARITIES];    /* of --guess: host, double */
  md_field midpoint[MD_PARITIES]; /* of domain walls, like of.x */
  md_solver_result result;
  int states;                    /* that were to be written */
  int checkpoint_failures;       /* those that could not be */
  char checkpoint_message[1024]; /* why the last of them could not */
  md_solve_observables observed;
} md_solve_run;

/* True when a signal ended the solve before it converged. */
bool md_solve_cut_short(const md_solve_run *run);
/* The operator that does the iterations. */
const md_dirac *md_solve_operator(const md_solve_run *run);

/* Reads and checks the options. Collective. */
md_status md_solve_options_read(md_context *context, md_solve_options *options, int argc,
                                char **argv);

/* What the source gives, from run->of.x for run->of.b; run->observed.all is to be freed, which it
 * does before it begins. Collective. */
md_status md_solve_observe(md_context *context, md_solve_run *run);
/* Their keys and lines. */
void md_solve_report_observables(cJSON *object, const md_solve_run *run);
void md_solve_print_observables(const md_context *context, const md_solve_run *run);
/* What a shift of four spins solves, which is no M x = b. */
#define MD_SOLVE_SHIFTED "(S S^dag + shift) x = b on even sites"
/* Writes run->of.x, the solution for `mass`, as a propagator file; of four spins and a shift
 * (NULL: none) with the attributes `shift` and `equation`, as it is no solution of M. Collective.
 */
md_status md_solve_write(md_context *context, md_solve_run *run, const char *path, double mass,
                         double *shift, double *residuals);

/* MD_INPUT where --checkpoint names a file that is there and no state, which it would replace.
 * Collective. */
md_status md_solve_checkpoint_place(md_context *context, const md_solve_options *o);
/* The state of CG to and from the checkpoint file; it belongs to one set of links, action,
 * boundary, mass, source, precision, backend, right-hand sides at once, modes and guess, which are
 * compared on reading: MD_INPUT names the one that differs. Of a solve in parts it is that of the
 * part that iterates, and beside it what the parts before came to, which load_parts reads: their
 * numbers, run->of.x and the midpoint. Collective. */
md_status md_solve_checkpoint_save(md_context *context, const md_solve_run *run,
                                   const md_cg_state *state);
md_status md_solve_checkpoint_load(md_context *context, const md_solve_run *run,
                                   md_cg_state *state);
md_status md_solve_checkpoint_load_parts(md_context *context, const md_solve_run *run,
                                         md_solver_parts *parts);

enum { MD_SOLVE_PATH_BYTES = 4096 };
/* The file of shift k: --output OUT.h5 makes OUT-k.h5. */
const char *md_solve_shift_path(const char *output, int k, char path[MD_SOLVE_PATH_BYTES]);
/* The multishift solve of the run, its table, files and report. MD_UNREACHED when a shift did not
 * converge. Collective. */
md_status md_solve_shifts(md_context *context, md_solve_run *run);

/* The keys that reports of all solvers have. */
void md_solve_report_common(md_report *report, const md_solve_run *run);
/* On the terminal: what is known before the solve, and what it found. */
void md_solve_print_head(const md_context *context, const md_solve_run *run);
void md_solve_print(const md_context *context, const md_solve_run *run);
/* JSON where asked. Collective. `written`: how writing the solution ended; its message stands
 * before one of the report. */
md_status md_solve_report(md_context *context, const md_solve_run *run, md_status written);
