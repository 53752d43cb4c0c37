#ifndef MD_DIRAC_SOLVERS_OUTER_H
#define MD_DIRAC_SOLVERS_OUTER_H

#include "dirac/solvers/solver.h"

/* The double-precision side of solvers whose iterations run in a narrower precision: the solution
 * state->x, the true residual state->r = s - A x of the last update, the source s in state->p. What
 * the iterations have found since, y, and their residual are in units of that residual's norm. */
typedef struct md_outer {
  md_context *context;
  md_operator *a; /* MD_DOUBLE */
  const md_solver_request *request;
  md_cg_state *state;
  md_field scratch;
  bool projected;         /* the last update took the request's modes out of the residual */
  double low_noise;       /* what the inner precision brings back of the modes, over |r| */
  double low[MD_MAX_RHS]; /* bound on what |r| of the last update has in the modes */
  double factor;          /* by which |r| of a right-hand side falls until an update */
  int since, latest;      /* iterations since the last update; most of them */
  bool restarted;         /* from the present solution */
  /* One entry per right-hand side: */
  double norm2[MD_MAX_RHS];   /* recursive |r|^2 in units */
  double largest[MD_MAX_RHS]; /* its largest value since the last update */
  double unit[MD_MAX_RHS];    /* true |r| at the last update: the inner vectors' unit */
  bool done[MD_MAX_RHS];      /* by the true residual */
  double best[MD_MAX_RHS];    /* smallest true |r| so far */
  int in_vain[MD_MAX_RHS];    /* updates in a row that did not lower it by a tenth */
} md_outer;

/* For context, a, request and state, which are set; roundoff of the inner precision. Destroy
 * also after a failure. Local. */
md_status md_outer_create(md_outer *o, double roundoff);
void md_outer_destroy(md_outer *o);

/* unit and done from state->r_norm2. Local. */
void md_outer_take_units(md_outer *o);
/* The same, and r = r of the system / |r|; zero where there is nothing
 * left to do if `rest`, else only where |r| is. The factor is applied in double: right-hand sides
 * of one 16-bit field then share their sites' scales fairly. Collective. */
md_status md_outer_hand_down(md_outer *o, bool rest, md_field *r);

/* An update in three steps, between which a solver may look at the old residual in state->r and the
 * new one in scratch: x += y and the new residual; */
md_status md_outer_add(md_outer *o, const md_field *y);
/* between them the change from the old residual, which is lost, to the new one, in the old units: A
 * times what was found; zero where there was nothing left to do if `rest`; */
md_status md_outer_change(md_outer *o, bool rest, md_field *a_y);
/* what has come back of the modes into x, where it is more than a tenth of a residual; */
md_status md_outer_project(md_outer *o);
/* state->r becomes the new one; counts. MD_UNREACHED when it is not finite. Collective, all three.
 */
md_status md_outer_take(md_outer *o);

/* Every right-hand side is done or has stalled, no iteration is left, or the solve was interrupted
 * and nothing was found since the last update. Local. */
bool md_outer_at_end(const md_outer *o);
/* Iterations go on after an update, from norm2. Local. */
void md_outer_go_on(md_outer *o);
/* Counts an iteration by norm2, history and those of the right-hand sides; true when an update is
 * due: a right-hand side has come far enough, all may be done or it takes too long. Agrees on an
 * interrupt. Collective. */
bool md_outer_count(md_outer *o);

#endif
