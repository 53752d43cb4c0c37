#ifndef MD_DIRAC_SOLVERS_DEVICE_CG_DEVICE_H
#define MD_DIRAC_SOLVERS_DEVICE_CG_DEVICE_H

#include "dirac/backend.h"
#include "dirac/solvers/solver.h"

/* The scalars of conjugate gradients on the device, one of each per right-hand side, so that an
 * iteration needs nothing from the host. The host reads reports one iteration behind. Functions
 * without a status queue work; its failure is met when a report is awaited. */
typedef struct md_cg_device md_cg_device;

/* What the host learns of an iteration. failure: 0, or 1: <p, A p> not finite, 2: not positive,
 * 3: |r|^2 not finite; then `value` is what was found. */
typedef struct md_cg_report {
  double r_norm2, alpha, value;
  int iterations, failure;
} md_cg_report;

/* In 16 bits an iteration makes the next direction p from r, and so many directions are kept until
 * x takes them all. In double and single it makes the next residual from the last two
 * (three_term.cuh), and so many residuals are kept until x and p take them all: most iterations
 * have no pass over vectors. */
enum { MD_CG_DIRECTIONS = 8 };

/* For search directions of p's shape, a few of which it keeps. Local. */
md_status md_cg_device_create(md_context *context, const md_dirac *dirac, const md_field *p,
                              double mass, md_cg_device **cg);
void md_cg_device_destroy(md_cg_device *cg);

/* Before the first iteration and wherever the host has changed the fields: scalars from the
 * state's r_norm2 and rhs_iterations, and |p|^2 as md_cg_device_update sums it; limit[r]: |r| at
 * which a right-hand side is done. x or both x and r of the state may be MD_SINGLE beside a 16-bit
 * p.
 * Collective. */
md_status md_cg_device_start(md_context *context, md_cg_device *cg, md_cg_state *state,
                             const double *limit);
/* The first four kernels of an iteration: D p or D r with its |.|^2; alpha = |r|^2 / <p, A p>, 0
 * for right-hand sides that are done; r -= alpha A p with |r|^2; beta = |r|^2 / the one before, and
 * the iteration's report. Collective. */
md_status md_cg_device_queue_step(md_context *context, md_cg_device *cg, md_dirac *dirac,
                                  md_cg_state *state, md_field *work);
/* The last one: p = r + beta p with |p|^2; and every few iterations x takes what it lacks, in
 * double and single p too. Until md_cg_device_complete the state's x lags behind and its p and r
 * may be older ones. */
void md_cg_device_update(md_cg_device *cg, md_cg_state *state);
/* Both, the last one of the iteration before first or that of this one last: recorded where
 * recorded_step.h says, always with the same operator, state and work. Collective. */
md_status md_cg_device_queue(md_context *context, md_cg_device *cg, md_dirac *dirac,
                             md_cg_state *state, md_field *work, bool update_first);
void md_cg_device_complete(md_cg_device *cg, md_cg_state *state);
/* Waits for the next report that was not waited for yet; at most two may be under way. Agrees.
 * Collective. */
md_status md_cg_device_wait(md_context *context, md_cg_device *cg, md_cg_report *reports);

#endif
