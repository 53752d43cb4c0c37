#ifndef MD_DIRAC_CUDA_CG_DEVICE_H
#define MD_DIRAC_CUDA_CG_DEVICE_H

#include "dirac/solver.h"

/* The scalars of conjugate gradients on the device, one of each per right-hand side, so that an
 * iteration needs nothing from the host. The host reads reports one iteration behind. Functions
 * without a status queue work; its failure is met when a report is awaited. */
typedef struct md_cg_device md_cg_device;

/* What the host learns of an iteration. failure: 0, or 1: <p, A p> not finite, 2: not positive,
 * 3: |r|^2 not finite; then `value` is what was found. */
typedef struct md_cg_report {
  double r_norm2, value;
  int iterations, failure;
} md_cg_report;

/* From state's r_norm2 and rhs_iterations; limit[r]: |r| at which a right-hand side is done. */
md_status md_cg_device_create(md_context *context, const md_cg_state *state, double mass,
                              const double *limit, md_cg_device **cg);
void md_cg_device_destroy(md_cg_device *cg);

/* Sums of |D p|^2, then of |r|^2, as the stencils leave them. */
md_partial_sums *md_cg_device_sums(md_cg_device *cg);
/* The order of sites of the next stencil, for md_epilogue.backwards: each pass over the fields
 * begins where the one before ended, with what it left in the cache. */
bool md_cg_device_turn(md_cg_device *cg);
/* alpha of each right-hand side, for md_epilogue.step. */
const double *md_cg_device_alpha(const md_cg_device *cg);

/* |p|^2 of the start, summed as in md_cg_device_update. */
void md_cg_device_start(md_cg_device *cg, md_cg_state *state);
/* alpha = |r|^2 / (m^2 |p|^2 + |D p|^2), 0 for those that are done. Collective. */
void md_cg_device_find_alpha(md_context *context, md_cg_device *cg);
/* beta = |r|^2 / the one before; reports the iteration. Collective. */
void md_cg_device_find_beta(md_context *context, md_cg_device *cg);
/* x = x + alpha p, p = r + beta p, and |p|^2. */
void md_cg_device_update(md_cg_device *cg, md_cg_state *state);
/* Waits for the report of the iteration-th call of find_beta, counted from 1; at most two calls
 * may be behind. */
md_status md_cg_device_wait(md_context *context, md_cg_device *cg, long long iteration,
                            md_cg_report *reports);

#endif
