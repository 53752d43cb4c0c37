#ifndef MD_DIRAC_SOLVERS_MIXED_CG_H
#define MD_DIRAC_SOLVERS_MIXED_CG_H

#include "dirac/solvers/solver.h"

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
 * Where the inner operator fuses (md_dirac_fuses) and the first beta serves, iterations run on the
 * device without waiting for the host (dirac/solvers/cg_steps.h): it learns of one while the next
 * is under way, so that an update comes one iteration later.
 *
 * Deflation (dirac/solvers/deflation.h) takes the lowest modes of A out of the residual. It is for
 * small lattices, on which CG ends because its directions are all conjugate, and for small masses
 * in 16 bits, where rounding brings the lowest modes back, time and again. The partial solutions y
 * hold these modes, so that a space of eight of them, a by-product of the updates, removes them.
 *
 * With modes of the request (dirac/solvers/low_modes.h) the rules of updates are those of the
 * spectrum above them, and an update takes out of r what has come back of them.
 *
 * The contract is that of md_solver.iterate, with job->inner not NULL. Between iterations state->p
 * keeps the residual of the start and state->r the true residual of the last update; state->more
 * has y, r, p and the deflation space, so that a saved state goes on with the same bits. A signal
 * or the most iterations end the solve by an update that a saved state knows nothing of. A sum that
 * is NaN or infinite, or a <p, A p> that is not positive, discards the partial solution and starts
 * again from the last update; MD_UNREACHED with a message when that happens twice from one
 * solution. MD_OK with state->stalled when updates no longer lower the true residual. Collective.
 */
md_status md_mixed_cg_iterate(md_context *context, const md_solver_job *job, md_cg_state *state);

#endif
