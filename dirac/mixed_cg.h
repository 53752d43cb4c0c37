#ifndef MD_DIRAC_MIXED_CG_H
#define MD_DIRAC_MIXED_CG_H

#include "dirac/solver.h"

/* Conjugate gradients whose iterations run in `inner`, an operator of the same links in a narrower
 * precision, while the solution and the true residual are kept in `dirac` (MD_DOUBLE): reliable
 * updates (G. Sleijpen and H. van der Vorst, Computing 56 (1996) 141; M. Clark et al., Comput.
 * Phys. Commun. 181 (2010) 1517, arXiv:0911.3191).
 *
 * When the recursive residual of a right-hand side has fallen by a factor, the partial solution is
 * added to state->x in double and r = s - A x recomputed there. The Krylov space goes on: p is
 * kept, made orthogonal to the new r. Vectors of the inner space are in units of the true residual
 * of their right-hand side at the last update, so that 16-bit fields see numbers of order one; its
 * r and x are MD_SINGLE at least, only what the operator reads and writes is narrower.
 *
 * Same contract as md_cg_iterate; state->p keeps r0, state->r is the true residual at the last
 * update, so that a saved state goes on from there; request->inner is not NULL. A sum that is NaN
 * or infinite, or a <p, A p> that is not positive, discards the partial solution and starts again
 * from the last update; MD_UNREACHED with a message when that happens twice from one solution.
 * Collective. */
md_status md_mixed_cg_iterate(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state);

#endif
