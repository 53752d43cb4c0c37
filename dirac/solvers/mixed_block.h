#ifndef MD_DIRAC_SOLVERS_MIXED_BLOCK_H
#define MD_DIRAC_SOLVERS_MIXED_BLOCK_H

#include "dirac/solvers/solver.h"

/* Block CG (dirac/solvers/block_steps.h has its iteration) in an operator of a narrower precision,
 * while the solutions X and the true residuals R = S - A X are kept in double: reliable updates as
 * in mixed CG (dirac/solvers/mixed_cg.h) for a whole block. P and A P are as narrow as the inner
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
 * The pair (Y, A Y) of every update enters a deflation space common to all columns
 * (dirac/solvers/block_deflation.h), on which R is projected: block CG ends as early as it does
 * because it has solved for the lowest modes, which rounding in 32 or 16 bits brings back, time and
 * again.
 *
 * A projection that raises a residual fourfold is taken back, the deflation space emptied and a new
 * Krylov space begun. The same happens where |r| of the iteration outgrows what exact arithmetic
 * allows; twice from one solution, that ends the solve as stalled.
 *
 * Columns that depend on those before them become zero in Q, until an update finds that they no
 * longer do: state->block_rank. The solve ends when the true residual of every right-hand side is
 * small enough; those that are done before remain in the block, as what they add to its Krylov
 * space costs no more than zeros would.
 *
 * The contract is that of md_mixed_cg_iterate. Collective. */
md_status md_mixed_block_iterate(md_context *context, const md_solver_job *job, md_cg_state *state);

#endif
