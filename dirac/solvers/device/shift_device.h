#ifndef MD_DIRAC_SOLVERS_DEVICE_SHIFT_DEVICE_H
#define MD_DIRAC_SOLVERS_DEVICE_SHIFT_DEVICE_H

#include "dirac/solvers/multishift_state.h"

/* Iterations of multi-shift CG on a device whose backend fuses, for one rank and MD_DOUBLE or
 * MD_SINGLE: in residuals alone (three_term.cuh), four kernels whatever the number of shifts, the
 * scalars of all of them on the device, the host one iteration behind. A right-hand side of a shift
 * that is done is left alone. The vectors of all shifts take MD_SHIFT_KEPT iterations at once. */
typedef struct md_shift_device md_shift_device;

/* For the iterations by m->by from the present state on; the fields outlive them. Collective. */
md_status md_shift_device_create(md_context *context, const md_multishift_state *m,
                                 md_shift_device **shifts);
void md_shift_device_destroy(md_shift_device *shifts);

/* Queues one iteration; at most two may be under way. */
md_status md_shift_device_queue(md_context *context, md_shift_device *shifts);
/* Waits for the next iteration: |r|^2 of the right-hand sides, zeta[k * n_rhs + rhs] with r_k =
 * zeta r. MD_UNREACHED when a sum was not finite or <p, A p> not positive. */
md_status md_shift_device_wait(md_context *context, md_shift_device *shifts, double *r_norm2,
                               double *zeta);

/* After the last iteration that was queued: the updates that wait, and the scalars into m. */
md_status md_shift_device_end(md_context *context, md_shift_device *shifts, md_multishift_state *m);

#endif
