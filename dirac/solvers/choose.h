#ifndef MD_DIRAC_SOLVERS_CHOOSE_H
#define MD_DIRAC_SOLVERS_CHOOSE_H

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"

/* Block CG or CG of the right-hand sides in step, whichever is faster. A few iterations of each are
 * timed; how many each will take is expected by the laws below, from the largest eigenvalue, which
 * is measured, the mass, the rounding and the lattice. The one that is expected to end first goes
 * on. It is watched: the other one takes over, once, if its residual falls so slowly that this will
 * pay, or if updates in a narrower precision stall. Where the law expects next to no fewer
 * iterations of block CG, it is not even timed.
 *
 * A restart keeps the solution but not the Krylov space, so that the timing is short and happens at
 * the beginning, and the watch changes over only for a clear gain. Rank 0's clock decides for all.
 * What each did is added to one solution: bits may differ from run to run within the tolerance.
 * Contract of md_cg_iterate or, with request->inner, of md_mixed_cg_iterate; writes state->choice.
 * Collective. */
md_status md_choose_iterate(md_context *context, md_dirac *dirac, const md_solver_request *request,
                            md_cg_state *state);

/* Solves whose bound is below MD_CHOICE_LEAST iterations stay in step unasked. */
enum { MD_CHOICE_LEAST = 320 };

/* What is known at an iteration; the same on all ranks. */
typedef struct md_choice_facts {
  double kappa;           /* condition number of A: its largest eigenvalue is measured */
  double noise;           /* roundoff of the iterations times kappa; 0 in double */
  bool deflates;          /* CG in step takes the lowest modes out of the rounding by itself */
  double sites_per_rhs;   /* of the whole lattice, both parities */
  double left;            /* largest |r| over what is asked for */
  double step_s, block_s; /* an iteration of CG in step, of block CG */
} md_choice_facts;

/* The bound of CG on the iterations that lower a residual by this factor. */
double md_choice_bound(double kappa, double factor);
/* Iterations that are left, as expected: the bound for CG in step, which thermalised lattices keep
 * to, times what rounding costs it. */
double md_choice_steps(const md_choice_facts *facts);
/* Block CG ends when its space has resolved the lowest modes, after about 9 sqrt(V / n) iterations
 * however small the mass, or as CG does if that is earlier. bench/tried.md has the records. */
double md_choice_block(const md_choice_facts *facts);

/* Whether to begin with block CG. Local, as both that follow. */
bool md_choice_begin_block(const md_choice_facts *facts);
/* Whether to leave CG in step, whose |r| falls by exp(-pace) an iteration: block CG is expected to
 * take less than 2/3 of the time that is left then. */
bool md_choice_leave_steps(const md_choice_facts *facts, double pace);
/* Whether to leave block CG: it has spent 0.4 of what CG in step was expected to take in all and
 * three quarters of what it was expected to take itself, so that its residual should fall fast by
 * now, and CG in step is expected to end earlier. */
bool md_choice_leave_block(const md_choice_facts *facts, double pace, double spent_s,
                           double steps_in_all_s, double block_in_all_s);

#endif
