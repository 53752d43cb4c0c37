#ifndef MD_DIRAC_SOLVERS_CHOOSE_H
#define MD_DIRAC_SOLVERS_CHOOSE_H

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"

/* Block CG or CG of the right-hand sides in step, whichever is faster, from what is measured on the
 * way. Where CG needs MD_CHOICE_LEAST windows by its bound: MD_CHOICE_STEPS iterations in step are
 * timed first, then block CG goes on from their
 * solution. It may spend a part of the time that CG in step would take, so large that what is lost
 * if it turns out to be the slower one is MD_CHOICE_LOSS of that time; then, and from time to time
 * after, its residual must fall so fast that what is left takes no longer than CG in step would, by
 * the bound of CG. Otherwise CG in step ends the solve.
 *
 * What each did is added to one solution; nothing but the time decides, so that results may differ
 * from run to run within the tolerance. Contract of md_cg_iterate or, with request->inner, of
 * md_mixed_cg_iterate; writes state->choice. Collective. */
md_status md_choose_iterate(md_context *context, md_dirac *dirac, const md_solver_request *request,
                            md_cg_state *state);

enum { MD_CHOICE_WARM = 8, MD_CHOICE_STEPS = 32, MD_CHOICE_WINDOW = 32, MD_CHOICE_LEAST = 10 };
#define MD_CHOICE_LOSS 0.08

/* What is known when block CG is judged; times per iteration, iterations that are left. */
typedef struct md_choice_facts {
  double step_s, block_s; /* an iteration of CG in step, of block CG */
  double steps_left;      /* of CG in step from here, and in all, by its bound */
  double steps_in_all;
  double block_left; /* of block CG from here, as its residual falls now */
  double spent_s;    /* by block CG */
} md_choice_facts;
typedef enum md_verdict { MD_VERDICT_LATER, MD_VERDICT_BLOCK, MD_VERDICT_STEPS } md_verdict;
/* Local, a function of the facts alone. */
md_verdict md_choice_judge(const md_choice_facts *facts);

/* The iterations after which CG has lowered a residual by this factor, at condition number kappa.
 */
double md_choice_bound(double kappa, double factor);

#endif
