#ifndef MD_DIRAC_SOLVERS_SOLVER_H
#define MD_DIRAC_SOLVERS_SOLVER_H

#include "dirac/operator.h"
#include "lattice/fields/modes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a solve that chooses between block CG and CG in step came to, and why. */
typedef struct md_solver_choice {
  bool block;       /* the last word */
  char reason[320]; /* "": nothing was to be chosen */
  /* Seconds of an iteration in step and of block CG, as timed or, where block CG was not, as it may
   * be at most; iterations that each was expected to take. 0: it did not come to that. */
  double step_s, block_s, steps_expected, block_expected;
  int changed_at; /* iteration at which the other one took over; 0: none did */
} md_solver_choice;

/* What a solver keeps from one iteration to the next beside the state's own fields and numbers, of
 * which it alone knows the meaning: fields of any precision and space, parity even. A saved state
 * has them all. */
enum { MD_CG_MORE_FIELDS = 20 };
typedef struct md_cg_more {
  md_field *field[MD_CG_MORE_FIELDS]; /* borrowed, `most` of them */
  double *number;
  int fields, most; /* fields in use now: where a state is put in, as many as that has */
  int numbers;
} md_cg_more;

/* The state of conjugate gradients on the even sites between two iterations: enough to go on with
 * the same bits. Fields have the operator's shape and parity even. */
typedef struct md_cg_state {
  md_field x, r, p;
  md_cg_more more;
  double *r_norm2;     /* |r|^2 of each right-hand side, recursive */
  double *b_norm;      /* |b| of each right-hand side, both parities */
  int *rhs_iterations; /* iterations that each right-hand side has had */
  int iteration;
  /* history[i] is the largest norm(s - A x_e) / (m norm(b)) over right-hand sides after iteration
   * i, by the recursion; [0] is that of the start. With odd sites reconstructed from the even ones
   * it is norm(b - M x) / norm(b). */
  double *history;
  /* Where iterations make the next residual from the last two (md_cg_carries): the one before r,
   * and alpha, beta and <p, A p> of its step, [3][n_rhs]; NULL and no data elsewhere. */
  md_field before;
  double *carried;
  bool carries; /* they belong to r; else iterations go on from p */
  /* A solve goes on from its true residual in a further round, see md_solve_cg: the number of this
   * one, its tolerance where that is not the request's yet, the largest true residual before it,
   * |r|^2 of each right-hand side at the beginning of the first, and what the rounds before have
   * found (borrowed; double, in the space of the exact operator). */
  int round;
  double tolerance, round_before;
  double *start_norm2;
  md_field *solved;
  int n_rhs, most;       /* entries of the arrays; history has most + 1 */
  int updates, restarts; /* of mixed-precision CG, see dirac/solvers/mixed_cg.h */
  int projections;       /* on the modes of the request */
  int block_rank;        /* of block CG: fewest independent columns that its residual has had */
  bool stalled;          /* mixed-precision CG: its updates no longer lower the true residual */
  bool interrupted;      /* a signal ended the iterations early, see base/interrupt.h */
  md_solver_choice choice;
} md_cg_state;

typedef struct md_solver_request {
  double mass;
  double tolerance; /* on norm(b - M x) / norm(b) of every right-hand side */
  int max_iterations;
  /* Called after each iteration on every rank; a failure, agreed over ranks, ends the solve. May
   * show progress or save the state. NULL: not called. */
  md_status (*observe)(void *user, const md_cg_state *state);
  /* `observe` reads the state's fields and `more` only in iterations that are multiples of this
   * number, with 0 in none: in all others the fields may be ahead of the state's numbers. */
  int save_every;
  /* Called once before the first iteration with the state of a fresh start; may put a saved one in
   * its place, all of it: iterations go on with the same bits then. NULL: not called. Block CG and
   * a choice keep no such state: save_every, resume and leave are MD_INPUT with them. */
  md_status (*resume)(void *user, md_cg_state *state);
  /* Called once on every rank when a signal has ended the iterations early, with the state as
   * between two of them; may save it. NULL: not called. */
  md_status (*leave)(void *user, const md_cg_state *state);
  void *user;
  /* An operator of the same links in a narrower precision for mixed-precision CG; NULL: CG in the
   * precision of the operator itself. */
  md_dirac *inner;
  /* The lowest modes of -Deo Doe in the space of the exact operator (dirac/solvers/low_modes.h):
   * the solve begins with their part of the solution, and what rounding brings back of it is taken
   * out at reliable updates and restarts. NULL: none. */
  const md_modes *modes;
  /* Even sites of a solution to begin with: on the host, MD_DOUBLE, with n_rhs of the operator.
   * NULL: zero. */
  const md_field *guess;
  /* Block CG over all right-hand sides: dirac/solvers/block_cg.h, with `inner` mixed_block.h. */
  bool block;
  /* Block CG or not, by what the solve measures: dirac/solvers/choose.h. `block` is not read. */
  bool choose;
  /* In place of the wall clock by which `choose` decides, for tests: called once when a way to
   * solve begins and after each of its iterations. NULL: the wall clock. */
  double (*clock_s)(void *user, bool block);
} md_solver_request;

typedef struct md_solver_result {
  int iterations;           /* of the right-hand side that took longest */
  bool converged;           /* every right-hand side: its true residual meets the tolerance */
  double relative_residual; /* largest true one, norm(b - M x) / norm(b) in double */
  double *residuals;        /* true one of each right-hand side */
  int *rhs_iterations;
  double *history; /* as in md_cg_state, iterations + 1 entries */
  int n_rhs;
  int updates;      /* reliable updates of mixed-precision CG, else 0 */
  int projections;  /* on the modes of the request */
  int restarts;     /* times that its inner solver met NaN or Inf and began again */
  int block_rank;   /* of block CG, as in md_cg_state; else 0 */
  bool stalled;     /* ended because updates no longer lowered the true residual */
  bool interrupted; /* ended early by a signal */
  md_solver_choice choice;
  double seconds; /* in the solver, set-up of the source and residual included */
  double gflops;  /* of the action's flops per hop, site and right-hand side, all ranks */
} md_solver_result;

/* Solves M x = b for all right-hand sides at once by conjugate gradients on the even sites
 * (Hestenes and Stiefel, J. Res. NBS 49, 409, 1952):
 *   A x_e = (m^2 - Deo Doe) x_e = s = m b_e - Deo b_o,   x_o = (b_o - Doe x_e) / m.
 * Right-hand sides advance in step; one that has converged is left alone.
 * b and x are [even, odd], on the host, MD_DOUBLE, with n_rhs of the operator; x is assigned, and
 * the iterations start from the guess.
 * The iteration runs in the operator's precision, or in that of request->inner, which needs a
 * MD_DOUBLE operator and gives double-precision answers (dirac/solvers/mixed_cg.h); the residual
 * that decides is recomputed in double with `exact`, a MD_DOUBLE operator of the same links (may be
 * `dirac` itself). In double, an iteration that drifted from it goes on from the true residual.
 * A signal that base/interrupt.h catches ends the solve after the iteration that is under way.
 * MD_OK also when not converged or interrupted (see result); MD_UNREACHED with a message when a sum
 * is NaN or infinite or the operator is not positive: then the result says how far it came, its
 * residuals are NaN and x is as it was. Free the result with md_solver_result_free,
 * also after a failure. Collective. */
md_status md_solve_cg(md_context *context, md_dirac *dirac, md_dirac *exact,
                      const md_solver_request *request, md_field x[MD_PARITIES],
                      md_field b[MD_PARITIES], md_solver_result *result);
void md_solver_result_free(md_solver_result *result);

/* Hops that the operators of a solve have applied so far, where one operator that stands there
 * twice counts once; inner may be NULL. */
int64_t md_solver_hops(const md_dirac *dirac, const md_dirac *exact, const md_dirac *inner);
/* The action's flops per hop, site and right-hand side over the seconds, all ranks. */
double md_solver_gflops(const md_dirac *dirac, int64_t hops, double seconds);

#ifdef __cplusplus
}
#endif

#endif
