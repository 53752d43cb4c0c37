#ifndef MD_DIRAC_SOLVERS_CG_H
#define MD_DIRAC_SOLVERS_CG_H

#include "dirac/solvers/solver.h"

/* What every solver makes of its state (contract of all: md_solver.iterate), and the step that all
 * iterations of conjugate gradients on the host's side share. */

/* Fields and arrays for `most` iterations, all zero; x, r and p are fields of a. Local. */
md_status md_cg_state_create(md_context *context, const md_operator *a, int most,
                             md_cg_state *state);
/* Whether iterations make the next residual from the last two, on a device in double or single, so
 * that a state to go on from needs both; and the room for it. Local. */
bool md_cg_carries(const md_solver_job *job);
md_status md_cg_state_carry(md_context *context, const md_operator *a, md_cg_state *state);
void md_cg_state_destroy(md_cg_state *state);

/* Whether a state to go on from will be read or put in. Local. */
bool md_cg_keeps_states(const md_solver_request *request);
/* Puts a saved state in the place of the fresh one where the request has one. Collective. */
md_status md_cg_resume(md_context *context, const md_solver_request *request, md_cg_state *state);
/* Whether the observer reads the state's fields after this iteration. Local. */
bool md_cg_is_read(const md_solver_request *request, int iteration);
/* Hands the state of an interrupted solve to request->leave. Collective. */
md_status md_cg_leave(md_context *context, const md_solver_request *request,
                      const md_cg_state *state);

/* The |r| at which a right-hand side is done; whether it is by r_norm2. Local. */
double md_cg_limit(const md_solver_request *request, const md_cg_state *state, int rhs);
bool md_cg_done(const md_solver_request *request, const md_cg_state *state, int rhs);
/* The history entry of the state's iteration, true when all are done. Local. */
bool md_cg_record(const md_solver_request *request, md_cg_state *state);
/* Takes |r|^2 of the right-hand sides whose alpha is not 0, counts the iteration, records it, tells
 * the observer and asks for an interrupt; *ends: no iteration is to follow. Collective. */
md_status md_cg_conclude(md_context *context, const md_solver_request *request, const double *alpha,
                         const double *norm2, md_cg_state *state, bool *ends);

/* A step along p, one number per right-hand side. */
typedef struct md_cg_step {
  double p_ap[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS], norm2[MD_MAX_RHS];
  int broken; /* right-hand side that goes on, whose <p, A p> is not finite and positive or beta not
                 finite; -1: none */
} md_cg_step;
/* a_p = A p, alpha = before / <p, A p>, r -= alpha a_p, norm2 = |r|^2, beta = norm2 / before; alpha
 * = beta = 0 for those that rest. `flexible`: beta by Polak and Ribiere, -<alpha A p, r> / before.
 * r stays as it is where a <p, A p> is broken. What becomes of x and p is the caller's. Collective.
 */
md_status md_cg_step_take(md_context *context, md_operator *a, const bool *rests,
                          const double *before, bool flexible, md_field *r, md_field *p,
                          md_field *a_p, md_cg_step *step);
/* MD_UNREACHED with the reason of a step, or of any sum over p, that is broken. Local. */
md_status md_cg_step_fail(md_context *context, const md_cg_step *step, int iteration);

/* iterate of CG for a backend that fuses; only in builds with CUDA. Collective. */
md_status md_cg_iterate_fused(md_context *context, const md_solver_job *job, md_cg_state *state);

#endif
