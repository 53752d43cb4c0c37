#pragma once

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
/* Hands the state of a solve that a signal or its most iterations ended to request->leave.
 * Collective. */
md_status md_cg_leave(md_context *context, const md_solver_request *request,
                      const md_cg_state *state);

/* The |r| at which a right-hand side is done; whether it is by r_norm2. Local. */
double md_cg_limit(const md_solver_request *request, const md_cg_state *state, int rhs);
bool md_cg_done(const md_solver_request *request, const md_cg_state *state, int rhs);
/* Largest |r| / scale of the right-hand sides, by r_norm2. Local. */
double md_cg_largest(const md_cg_state *state);
/* It becomes the history entry of the state's iteration; true when all are done. Local. */
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
/* Whether steps take A in its factors, so that A p is not made. Local. */
bool md_cg_takes_factors(const md_operator *a, const md_field *r, bool flexible);
/* a_p = A p, alpha = before / <p, A p>, r -= alpha a_p, norm2 = |r|^2, beta = norm2 / before; alpha
 * = beta = 0 for those that rest. `flexible`: beta by Polak and Ribiere, -<alpha A p, r> / before.
 * r stays as it is where a <p, A p> is broken. What becomes of x and p is the caller's. a_p is not
 * read, nor written, by steps that take factors. Collective. */
md_status md_cg_step_take(md_context *context, md_operator *a, const bool *rests,
                          const double *before, bool flexible, md_field *r, md_field *p,
                          md_field *a_p, md_cg_step *step);
/* MD_UNREACHED with the reason of a step, or of any sum over p, that is broken. Local. */
md_status md_cg_step_fail(md_context *context, const md_cg_step *step, int iteration);

/* iterate of CG for a backend that fuses; only in builds with CUDA. Collective. */
md_status md_cg_iterate_fused(md_context *context, const md_solver_job *job, md_cg_state *state);

/* Conjugate gradients whose iterations run in `inner`, the same operator in a narrower
 * precision, while the solution x and the true residual s - A x are kept in `a` (MD_DOUBLE).
 * From time to time the residual is recomputed in double, a reliable update (G. Sleijpen and
 * H. van der Vorst, Computing 56 (1996) 141; M. Clark et al., Comput. Phys. Commun. 181 (2010)
 * 1517, arXiv:0911.3191). A x = s is the system on the even sites, r the residual, p the search
 * direction, and y what the iterations have found since the last update. y is MD_SINGLE, p
 * and A p as narrow as the inner operator, r one or the other (md_update_narrows), and the true |r|
 * of the last update is the unit of all four:
 *
 *   repeat   alpha = |r|^2 / <p, A p>,  r -= alpha A p,  beta = |r|^2 / |r before|^2
 *            (16 bits with fewer than ten of mantissa: beta = -<alpha A p, r> / |r before|^2)
 *            y += alpha p,  p = r + beta p
 *   until    a rule of dirac/solvers/reliable_update.h asks for an update
 *   update   x += y in double, r = s - A x there, r / |r| handed down, y = 0
 *            where it pays: (y, A y) enters a deflation space on which r is projected
 *            p = r + beta p, not p = r: the Krylov space goes on
 *
 * The contract is that of md_solver.iterate, with job->inner not NULL. Between iterations state->p
 * keeps the residual of the start and state->r the true residual of the last update; state->more
 * has y, r, p and the deflation space, so that a saved state goes on with the same bits. A signal
 * or the most iterations end the solve by an update that a saved state knows nothing of. A sum that
 * is NaN or infinite, or a <p, A p> that is not positive, discards the partial solution and starts
 * again from the last update; MD_UNREACHED with a message when that happens twice from one
 * solution. MD_OK with state->result.stalled when updates no longer lower the true residual.
 * Collective.
 */
md_status md_mixed_cg_iterate(md_context *context, const md_solver_job *job, md_cg_state *state);

/* Block CG (dirac/solvers/block_steps.h has its iteration) in an operator of a narrower precision,
 * while the solutions X and the true residuals R = S - A X are kept in double: reliable updates as
 * in mixed CG (above) for a whole block. P and A P are as narrow as the inner
 * operator, on a device r as well, the partial solutions Y MD_SINGLE like r on the host, products
 * of columns summed as lattice/fields/block.h says.
 *
 *   update   X += Y in double, R = S - A X there, each column of R in units of its norm handed down
 *            R = Q C anew: the QR of the true residual, not of the recursion's
 *            P = Q - P (P^H A P)^-1 (A P)^H Q
 *
 * The last line is the direction that the iteration would take next, P = Q + P S^H, where R is the
 * recursion's residual, because (A P)^H Q = -(P^H A P) S^H there. With another residual, other
 * units and another basis Q it is still conjugate to the last direction, so that the Krylov space
 * goes on. A direction that was followed in vain a few times is dropped.
 *
 * The contract is that of md_mixed_cg_iterate. Collective. */
md_status md_mixed_block_iterate(md_context *context, const md_solver_job *job, md_cg_state *state);
