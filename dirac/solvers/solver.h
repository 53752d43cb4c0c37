#pragma once

#include "dirac/precondition/precondition.h"
#include "dirac/system.h"

MD_C_BEGIN

/* What a solve by md_solver_auto came to, and why. */
typedef struct md_solver_choice {
  bool block;       /* the last word: block CG, or CG in step */
  char reason[320]; /* "": nothing was to be chosen */
  /* Iterations that each can be expected to take at most; 0: it did not come to that. */
  double steps_expected, block_expected;
  int changed_at; /* iteration at which the other one took over; 0: none did */
} md_solver_choice;

/* What a solve has come to. */
typedef struct md_solver_result {
  int iterations;           /* of the right-hand side that took longest */
  bool converged;           /* every right-hand side: its true residual meets the tolerance */
  double relative_residual; /* largest true one, norm(b - M x) / norm(b) in double */
  double *residuals;        /* true one of each right-hand side */
  int *rhs_iterations;
  /* history[i] is the largest norm(s - A x_e) / scale over right-hand sides after iteration i, by
   * the recursion; [0] is that of the start. With odd sites reconstructed from the even ones it is
   * norm(b - M x) / norm(b). iterations + 1 entries. */
  double *history;
  int n_rhs;
  int updates;      /* reliable updates of mixed-precision CG, see dirac/solvers/cg.h; else 0 */
  int projections;  /* on the modes of the request */
  int restarts;     /* times that its inner solver met NaN or Inf and began again */
  int block_rank;   /* of block CG: fewest independent columns of a residual, 0 aside; else 0 */
  bool stalled;     /* ended because updates no longer lowered the true residual */
  bool at_rounding; /* stalled where double can no more, so that no wider precision helps */
  bool interrupted; /* ended early by a signal */
  md_solver_choice choice;
  double seconds; /* in the solver, set-up of the source and residual included */
  double gflops;  /* of the action's flops per hop, site and right-hand side, all ranks */
} md_solver_result;

/* What a solver keeps from one iteration to the next beside the state's own fields and numbers, of
 * which it alone knows the meaning: fields of any precision and space, parity even. A saved state
 * has them all. */
enum { MD_CG_MORE_FIELDS = 36 };
typedef struct md_cg_more {
  md_field *field[MD_CG_MORE_FIELDS]; /* borrowed, `most` of them */
  double *number;
  int fields, most; /* fields in use now: where a state is put in, as many as that has */
  int numbers;
} md_cg_more;

/* Right-hand sides that are solved in parts, see md_solve_cg. */
typedef struct md_solver_parts {
  int first;                /* right-hand side of the part that iterates */
  md_solver_result *before; /* what the parts before it came to, of all right-hand sides */
  bool keeps;               /* all of them converged, so that states of this part are to be kept */
} md_solver_parts;

/* The state of conjugate gradients on the even sites between two iterations: enough to go on with
 * the same bits. Fields have the operator's shape and parity even. */
typedef struct md_cg_state {
  md_field x, r, p;
  md_cg_more more;
  double *r_norm2; /* |r|^2 of each right-hand side, recursive */
  double *b_norm;  /* |b| of each right-hand side, both parities */
  double *scale;   /* md_system.scale: a residual r is done at tolerance * scale */
  int iteration;
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
  const md_solver_parts *parts; /* one of which this is; NULL: it has all right-hand sides */
  int n_rhs, most;              /* entries of the arrays; result.history has most + 1 */
  /* As far as it is known: what was counted, history and iterations of each right-hand side. */
  md_solver_result result;
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
   * its place, all of it: iterations go on with the same bits then. NULL: not called. Solvers that
   * keep no such state (md_solver.takes) take no save_every, resume and leave: MD_INPUT. */
  md_status (*resume)(void *user, md_cg_state *state);
  /* Called once on every rank when a signal or max_iterations has ended the iterations, with the
   * state as between two of them; may save it. NULL: not called. */
  md_status (*leave)(void *user, const md_cg_state *state);
  /* Called before `resume` where right-hand sides are solved in parts: may put in what a saved
   * state has of the parts before its own, whose solutions go to x and the midpoint. NULL: not
   * called, and resume is of the first part. */
  md_status (*resume_parts)(void *user, md_solver_parts *parts);
  void *user;
  /* An operator of the same links in a narrower precision for mixed-precision CG; NULL: CG in the
   * precision of the operator itself. */
  md_dirac *inner;
  /* The lowest modes of -Deo Doe, or of S S^dag of this mass, in the space of the exact operator
   * (dirac/solvers/reliable_update.h): the solve begins with their part of the solution, and what
   * rounding brings back of it is taken out at reliable updates and restarts. NULL: none. */
  const md_modes *modes;
  /* Even sites of a solution to begin with: on the host, MD_DOUBLE, with n_rhs of b; not of domain
   * walls. NULL: zero. */
  const md_field *guess;
  /* Of domain walls: assigned the quark field in the middle of the fifth dimension, fields like x;
   * NULL: not wanted. */
  md_field *midpoint;
  /* How to iterate; NULL: md_solver_cg. */
  const struct md_solver *solver;
  /* Of solvers that take one (dirac/precondition/precondition.h), of this degree. */
  md_precondition precondition;
  int degree;
} md_solver_request;

/* What a solver iterates on. */
typedef struct md_solver_job {
  md_operator *a;     /* of its system; MD_DOUBLE beside an inner one */
  md_operator *inner; /* the same in a narrower precision, by which it iterates; NULL: a does */
  md_operator *precondition; /* approximates the inverse of a, on its fields; NULL: none */
  const md_solver_request *request;
  const md_solver_parts *parts; /* of which the system's right-hand sides are one; or NULL */
} md_solver_job;

/* A way to iterate: a constant md_solver_NAME in a file of its own and a line here, X(id, name). */
#define MD_SOLVER_TABLE(X)                                                                         \
  X(CG, cg)                                                                                        \
  X(BLOCK, block)                                                                                  \
  X(AUTO, auto)                                                                                    \
  X(FCG, fcg)                                                                                      \
  X(GCR, gcr)                                                                                      \
  X(BICGSTAB, bicgstab)
enum { /* what it takes */
       MD_TAKES_INNER = 1,
       MD_TAKES_STATES = 2, /* save_every, resume and leave */
       MD_TAKES_PRECONDITION = 4,
       MD_TAKES_PARTS = 8 /* right-hand sides have nothing to do with each other */
};
typedef struct md_solver {
  const char *name; /* of --solver */
  const char *help; /* a line */
  unsigned takes;
  bool any_operator; /* else it needs a Hermitian and positive one */
  bool direct;       /* md_solve_cg gives it S of md_schur_create, y being x_e */
  /* What else it needs of the job: MD_INPUT with the reason. NULL: nothing. Local. */
  md_status (*check)(md_context *context, const md_solver_job *job);
  /* Iterates A y = r0, from state->r = state->p = r0 and r_norm2 set, until every right-hand side
   * has |r| <= tolerance * scale or state->iteration reaches the most. The solution is added to
   * state->x. Keeps to request->observe and the interrupt; in a dry run (base/memory_need.h) it
   * takes its memory and leaves the rest. Collective. */
  md_status (*iterate)(md_context *context, const md_solver_job *job, md_cg_state *state);
} md_solver;
#define MD_SOLVER_ROW(id, name) extern const md_solver md_solver_##name;
MD_SOLVER_TABLE(MD_SOLVER_ROW)
#undef MD_SOLVER_ROW
/* All of them in this order; NULL-terminated. By name: NULL where there is none. */
const md_solver *const *md_solvers(void);
const md_solver *md_solver_find(const char *name);
/* MD_INPUT with the reason where a solver cannot do a job. Local. */
md_status md_solver_check(md_context *context, const md_solver *solver, const md_solver_job *job);

/* Solves a system for all right-hand sides at once by request->solver. The operators and the
 * preconditioner are those of the job: mass, inner, precondition and degree of its request are not
 * read. Modes of the request are those of a less its `modes_from`. The contract is that of
 * md_solve_cg; the solution is s->x, and seconds and gflops are not set. Collective. */
md_status md_solve(md_context *context, const md_solver_job *job, md_system *s,
                   md_solver_result *result);

/* Solves M x = b for all right-hand sides at once on the even sites by request->solver, if that is
 * none by conjugate gradients (Hestenes and Stiefel, J. Res. NBS 49, 409, 1952):
 *   A x_e = (m^2 - Deo Doe) x_e = s = m b_e - Deo b_o,   x_o = (b_o - Doe x_e) / m,
 * or, with spin, as dirac/wilson/wilson.h says.
 * Right-hand sides advance in step; one that has converged is left alone.
 * b and x are [even, odd], on the host, MD_DOUBLE, with n_rhs of the operator or fewer (a request
 * that pads): the operator's others are zero. Or with more: they are solved in even parts, one
 * after the other, as md_solver_at_once says, by a solver that takes parts; the result is that of
 * all, but what it counts beside iterations is that of the part with most. A state is that of one
 * part, state->parts says of which, and none is kept behind a part that did not converge. Where a
 * part fails, residuals of it and of the parts behind it are NaN; after a signal the parts that are
 * left take no iteration. x is assigned, also if the guess is of it, and the iterations start from
 * the guess. The iteration runs in the operator's precision, or in that of request->inner, which
 * needs a MD_DOUBLE operator and gives double-precision answers (dirac/solvers/cg.h); the residual
 * that decides is recomputed in double with `exact`, a MD_DOUBLE operator of the same links (may be
 * `dirac` itself). In double, an iteration that drifted from it goes on from the true residual. A
 * signal that base/interrupt.h catches ends the solve after the iteration that is under way. MD_OK
 * also when not converged or interrupted (see result); MD_UNREACHED with a message when a sum is
 * NaN or infinite or the operator is not positive: then the result says how far it came, its
 * residuals are NaN and x is as it was. Free the result with md_solver_result_free, also after a
 * failure. Collective. */
md_status md_solve_cg(md_context *context, md_dirac *dirac, md_dirac *exact,
                      const md_solver_request *request, md_field x[MD_PARITIES],
                      md_field b[MD_PARITIES], md_solver_result *result);
void md_solver_result_free(md_solver_result *result);

/* The operators of a solve by `request`, which is that of the iterations: `dirac` alone where they
 * are exact; with `mixed`, inner in their precision below a double `dirac`; else `exact` beside it.
 * All three are to be destroyed, also after a failure. Collective. */
md_status md_solver_operators(md_context *context, const md_gauge *gauge, const char *backend,
                              const md_backend_request *request, const md_halo_request *how,
                              bool mixed, md_dirac *dirac, md_dirac *exact, md_dirac *inner);

/* Whether a solver, NULL: CG, takes right-hand sides in parts: `auto` too of quarks with four
 * spins, for which it is CG. */
bool md_solver_takes_parts(const struct md_solver *solver, md_action action);
/* How many right-hand sides such an operator solves at once of so many. */
int md_solver_at_once(const md_dirac *dirac, int n_rhs);
/* Lowers n_rhs of a request that may be padded to 1 where a backend on a CPU solves right-hand
 * sides faster one by one; with an open packing to that of an even part, where a packing serves
 * parts that it does not serve as a whole; a rule, as that of md_backend_choose, whose `local` it
 * takes. Collective. */
void md_solver_part_request(md_context *context, const char *backend, const int *local,
                            md_backend_request *request);

/* Hops that the operators of a solve have applied so far, where one operator that stands there
 * twice counts once; inner may be NULL. */
int64_t md_solver_hops(const md_dirac *dirac, const md_dirac *exact, const md_dirac *inner);
/* The action's flops per hop, site and right-hand side over the seconds, all ranks. */
double md_solver_gflops(const md_dirac *dirac, int n_rhs, int64_t hops, double seconds);

MD_C_END
