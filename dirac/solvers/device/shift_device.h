#ifndef MD_DIRAC_SOLVERS_DEVICE_SHIFT_DEVICE_H
#define MD_DIRAC_SOLVERS_DEVICE_SHIFT_DEVICE_H

#include "dirac/backend.h"
#include "dirac/operator.h"

/* Iterations of multi-shift CG on a device whose backend fuses, for one rank and MD_DOUBLE or
 * MD_SINGLE: five kernels whatever the number of shifts, the scalars of all of them on the device,
 * the host one iteration behind. A right-hand side of a shift that is done is left alone. */
typedef struct md_shift_device md_shift_device;

/* Where a solve starts. x[k], p[k]: even fields of the operator's shape, p[k] = r; entries
 * `smallest` are the iterated shift's. The arrays are copied, the fields outlive the solve. */
typedef struct md_shift_setup {
  int n_shifts, smallest;
  const double *deltas;  /* shift - smallest shift */
  double mass2;          /* mass^2 + smallest shift */
  const double *r_norm2; /* |r|^2 of each right-hand side */
  const double *limit;   /* |r| at which a right-hand side is done */
  md_field *const *x, *const *p;
  md_field *r;
} md_shift_setup;

md_status md_shift_device_create(md_context *context, md_dirac *dirac, const md_shift_setup *setup,
                                 md_shift_device **shifts);
void md_shift_device_destroy(md_shift_device *shifts);

/* Queues one iteration; at most two may be under way. */
md_status md_shift_device_queue(md_context *context, md_shift_device *shifts);
/* Waits for the next iteration: |r|^2 of the right-hand sides, zeta[k * n_rhs + rhs] with r_k =
 * zeta r. MD_UNREACHED when a sum was not finite or <p, A p> not positive. */
md_status md_shift_device_wait(md_context *context, md_shift_device *shifts, double *r_norm2,
                               double *zeta);

#endif
