#ifndef MD_DIRAC_SOLVERS_BLOCK_CG_H
#define MD_DIRAC_SOLVERS_BLOCK_CG_H

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"

/* Block conjugate gradients BCGrQ (A. Dubrulle, Electron. Trans. Numer. Anal. 12 (2001) 216; the
 * form of M. Clark et al., arXiv:1710.09745): all right-hand sides search in the sum of their
 * Krylov spaces, so that iterations fall as their number grows. The residuals are kept as Q C with
 * orthonormal columns Q, which the recursion never divides by; columns that become dependent are
 * set to zero and drop out.
 *
 * Same contract as md_cg_iterate, for MD_DOUBLE fields with 2 .. MD_MAX_BLOCK right-hand sides, on
 * host or device; state->p is the residual after it. Collective. */
md_status md_block_cg_iterate(md_context *context, md_dirac *dirac,
                              const md_solver_request *request, md_cg_state *state);
/* MD_INPUT with the reason where block CG cannot work with the operator. Local. */
md_status md_block_cg_check(md_context *context, const md_dirac *dirac);

#endif
