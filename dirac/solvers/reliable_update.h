#pragma once

#include "dirac/solvers/solver.h"

#include <math.h>

/* When mixed-precision CG recomputes its residual. `norm2` is the recursive
 * |r|^2 of a right-hand side, `largest` the largest since its last update. */

/* Bound on the condition number of an A whose spectrum begins at `least` and ends `spread` later at
 * most. */
static inline double md_update_kappa(double least, double spread) {
  return 1.0 + spread / least;
}
/* Roundoff of the inner precision times that: above ten an update finds little of what the inner
 * iterations claim in the lowest modes. */
static inline double md_update_noise(double kappa, double roundoff) {
  return roundoff * kappa;
}
/* Of an A = F F^dag (four spins) `least` is an estimate: kappa is this at most until the iterations
 * show a larger one. |r| may fall by 0.12 in half and by 0.3 in bf16 then, and costs none. */
static const double MD_UPDATE_KAPPA = 2048.0;
/* The kappa of which CG's bound says that so many iterations lower |r| by `factor` < 1. */
static inline double md_update_measured(int iterations, double factor) {
  const double root_kappa = 2.0 * iterations / -log(fmin(factor, 0.99));
  return root_kappa * root_kappa;
}
static inline bool md_update_is_coarse(double noise) {
  return noise > 10.0;
}

/* |r| has fallen by this factor: smaller costs iterations where the noise is large, larger costs
 * stencils in double; docs/solvers.md says why. */
static inline double md_update_factor(bool deflates, double noise) {
  if (deflates) return 0.4;
  return md_update_is_coarse(noise) ? 0.6 : fmin(fmax(0.12 * sqrt(noise), 0.05), 0.3);
}
static inline bool md_update_due(double norm2, double largest, double factor) {
  return norm2 < factor * factor * largest;
}

/* Whether the recursive residual may be stored as narrow as the direction where nothing deflates,
 * which rounds it once in every iteration: costs none as long as this holds, a sixth of them at
 * twice the noise; docs/solvers.md says why. */
static inline bool md_update_narrows(double noise) {
  return !md_update_is_coarse(noise);
}

/* The bound of CG on the iterations that lower |r| by `factor`: an inner solver that takes longer
 * has lost its way and is updated as it is. */
static inline int md_update_latest(double kappa, double factor) {
  const double root_kappa = sqrt(kappa);
  return 1 + (int)fmin(0.5 * root_kappa * log(2.0 * root_kappa / factor), 1e9);
}

/* True where CG may take more iterations than a quarter of the unknowns (complex, all ranks): it
 * ends as its directions are conjugate, which rounding in 16 or 32 bits undoes. */
static inline bool md_update_is_small(double kappa, double tolerance, double unknowns) {
  return unknowns < 2.0 * sqrt(kappa) * log(2.0 / fmax(tolerance, 1e-17));
}

/* Whether mixed CG deflates: on a small lattice, and where the inner precision is coarse; on a
 * device, where an update's vector operations cost more iterations, where it is five times as
 * coarse. noise and kappa are those above the modes that it is given. */
#define MD_UPDATE_DEVICE_NOISE 50.0
static inline bool md_update_deflates(bool on_host, double noise, double kappa, double tolerance,
                                      double unknowns) {
  const bool coarse = on_host ? md_update_is_coarse(noise) : noise > MD_UPDATE_DEVICE_NOISE;
  return coarse || md_update_is_small(kappa, tolerance, unknowns);
}

/* Directions that a solve without spin deflates with, and with four spins, which take as many as
 * there are, the iterations until an update at the latest: on a plateau of |r| each update shows
 * more of the low modes. Without spin neither gains anything (bench/tried.md). */
enum { MD_UPDATE_DIRECTIONS = 8, MD_UPDATE_OFTEN = 128 };

/* Updates in a row that did not lower the smallest true residual by a tenth: after a few the
 * search direction is dropped, after most the right-hand side has stalled. */
static inline bool md_update_is_vain(double now, double best) {
  return !(now < 0.9 * best);
}
enum { MD_UPDATES_FEW_IN_VAIN = 3, MD_UPDATES_MOST_IN_VAIN = 10 };

/* Whether |r| = |s - A x| in double may be rounding alone, which is 0.06 to 0.33 of this bound in
 * all actions, as measured. After a few updates in vain such a right-hand side counts as one of
 * MD_UPDATES_AT_ROUNDING. */
static inline bool md_update_is_rounding(double r, double most, double x) {
  return r <= 0x1p-53 * most * x;
}
#define MD_UPDATES_AT_ROUNDING 1e9

/* Deflation with eigenvectors v_i of -Deo Doe that were found before: what CG needs most iterations
 * for, the lowest modes of A = m^2 - Deo Doe, is solved by a projection. */

/* x += sum_i v_i <v_i, r> / (from + lambda_i), from = m^2 or 0 of A: so that r = s - A x, which is
 * to be computed anew, has nothing left in the modes as far as they are exact. part2[rhs] = sum_i
 * |<v_i, r>|^2, what r had in them. Where part2[rhs] <= least[rhs] for every right-hand side x
 * stays as it is and *added is false; least NULL: never. r and x: even, MD_DOUBLE, in the space of
 * the modes. The same bits on every rank grid. Collective. */
md_status md_low_modes_project(md_context *context, const md_modes *modes, double from,
                               const md_field *r, const double *least, md_field *x, double *part2,
                               bool *added);

/* The condition number of A with a spectrum in [least, most] above the modes; modes NULL or empty:
 * of all of A. */
double md_low_modes_kappa(const md_modes *modes, double least, double most);
/* What |r| can have in the modes after a projection and iterations of this roundoff, over |r|: the
 * vectors are rounded, and eigenvectors up to their residuals only; spread = most - least. Until an
 * update it becomes MD_UPDATE_LOW_NOISE times that, as measured. */
double md_low_modes_noise(const md_modes *modes, double kappa, double spread, double roundoff);
#define MD_UPDATE_LOW_NOISE 32.0
/* Modes are taken out of a residual that may have this part in them at the next update, since the
 * direction that is kept gathers them: iterations are those of double for 1/10 to 1/30, and up to
 * seven times as many where nobody looks ahead. */
#define MD_UPDATE_LOW 0x1p-4

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
  double roundoff;        /* of iterations whose kappa is measured, which raises it; else 0 */
  int since, latest;      /* iterations since the last update; most of them */
  int often;              /* an update comes after so many whatever |r| is; 0: it does not */
  bool early;             /* the update that is due comes for that alone: not in vain */
  bool restarted;         /* from the present solution */
  /* One entry per right-hand side: */
  double norm2[MD_MAX_RHS];   /* recursive |r|^2 in units */
  double largest[MD_MAX_RHS]; /* its largest value since the last update */
  double unit[MD_MAX_RHS];    /* true |r| at the last update: the inner vectors' unit */
  bool done[MD_MAX_RHS];      /* by the true residual, or at rounding where such ones rest */
  double best[MD_MAX_RHS];    /* smallest true |r| so far */
  double in_vain[MD_MAX_RHS]; /* updates in a row that did not lower it by a tenth */
} md_outer;

/* For context, a, request and state, which are set; roundoff of the inner precision. Destroy
 * also after a failure. Local. */
md_status md_outer_create(md_outer *o, double roundoff);
void md_outer_destroy(md_outer *o);

/* unit and done from state->r_norm2; right-hand sides at rounding are done if `rest`. Local. */
void md_outer_take_units(md_outer *o, bool rest);
/* The same, and r = r of the system / |r|; zero where it is done if `rest`, else only where |r| is.
 * The factor is applied in double: right-hand sides of one 16-bit field then share their sites'
 * scales fairly. Collective. */
md_status md_outer_hand_down(md_outer *o, bool rest, md_field *r);

/* Notes a restart from the present solution, MD_UNREACHED for the second one in a row. `rule`: what
 * sums of the inner solver broke. Local. */
md_status md_outer_restart(md_outer *o, const char *rule, md_precision inner);

/* An update: x += y and the new residual; `deflate`, unless NULL, which may look at the old
 * residual in state->r and the new one in scratch; what has come back of the modes into x, by
 * MD_UPDATE_LOW; state->r becomes the new one, counts. MD_UNREACHED when it is not finite.
 * Collective. */
md_status md_outer_update(md_outer *o, const md_field *y, md_status (*deflate)(void *user),
                          void *user);
/* For deflate: the change from the old residual, which is lost, to the new one, in the old units: A
 * times what was found; zero where there was nothing left to do if `rest`. Collective. */
md_status md_outer_change(md_outer *o, bool rest, md_field *a_y);

/* The noise of this roundoff by the kappa that the iterations since the last update show: least of
 * the right-hand sides that are to go on, one of which has asked for the update; 0: none is. Local.
 */
double md_outer_noise(const md_outer *o, double roundoff);
/* Every right-hand side is done or has stalled, no iteration is left, or the solve was interrupted
 * and nothing was found since the last update. Local. */
bool md_outer_at_end(const md_outer *o);
/* Iterations go on after an update, from norm2. Local. */
void md_outer_go_on(md_outer *o);
/* Counts an iteration by norm2, history and those of the right-hand sides; true when an update is
 * due: a right-hand side has come far enough, all may be done or it takes too long. Agrees on an
 * interrupt. Collective. */
bool md_outer_count(md_outer *o);
