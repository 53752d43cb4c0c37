#pragma once

#include "dirac/solvers/multishift.h"
#include "dirac/system.h"
#include "lattice/fields/linear.h"

/* Inside multi-shift CG. */

/* One shift. Its direction is kept as p / zeta, so that its two updates are those of CG with other
 * coefficients: x += alpha zeta' (p / zeta), p' / zeta' = r + beta (zeta' / zeta) (p / zeta). */
enum {
  MD_SHIFT_STEPS = MD_LINEAR_MOST_STEPS, /* iterations for which updates may wait */
  MD_SHIFT_KEPT = 8                      /* the same on a device that fuses, for all shifts */
};

typedef struct md_shifted {
  md_field x, p;
  md_field found; /* what iterations in double have found before x, in their space; or nothing */
  double delta;   /* shift - smallest shift */
  double zeta[MD_MAX_RHS], before[MD_MAX_RHS]; /* r_shift = zeta r; now and one iteration ago */
  double residual[MD_MAX_RHS];                 /* |r_shift|, kept from where it was small enough */
  bool done;                                   /* all right-hand sides */
  /* Updates that wait: their coefficients. */
  double for_x[MD_SHIFT_STEPS][MD_MAX_RHS], for_p[MD_SHIFT_STEPS][MD_MAX_RHS];
  bool moves; /* there are some */
} md_shifted;

typedef struct md_multishift_state {
  md_context *context;
  md_operator narrow, exact; /* A of the smallest shift by those of the request */
  md_operator whole[2];      /* of quarks with spin: S S^dag, exact and narrow */
  bool has_spin;
  md_operator *by; /* of the two, the one that iterates now */
  double aim;      /* |r| over |b| at which a shift is done */
  double until;    /* |r| over |b| at which `dirac` takes over from `exact`; 0: it has */
  const md_multishift_request *request;
  md_multishift_result *result;
  md_shifted *shifts;
  int smallest;
  md_field r, a_p;                    /* in the space of by */
  md_field behind[MD_SHIFT_KEPT - 1]; /* residuals of the iterations whose updates wait */
  int waiting;                        /* their number */
  md_system system;                   /* b, a solution and its residual, by `exact` */
  /* Powers of two near |b|, in which x, p, r and their norms are: numbers of narrow fields are not
   * too small then, not even where right-hand sides of a site share one scale. */
  double unit[MD_MAX_RHS];
  double b_norm[MD_MAX_RHS]; /* |b| in them */
  double r_norm2[MD_MAX_RHS];
  double alpha[MD_MAX_RHS], beta[MD_MAX_RHS]; /* of the last iteration */
} md_multishift_state;

/* Iterations of multi-shift CG on a device whose backend fuses, in MD_DOUBLE or MD_SINGLE, of one
 * rank or of GPUs that share memory: in residuals alone (three_term.cuh), four kernels whatever the
 * number of shifts, the scalars of all of them on the device, the host one iteration behind. A
 * right-hand side of a shift that is done is left alone. The vectors of all shifts take
 * MD_SHIFT_KEPT iterations at once. */
typedef struct md_shift_device md_shift_device;

/* For the iterations by m->by from the present state on; the fields outlive them. Collective. */
md_status md_shift_device_create(md_context *context, const md_multishift_state *m,
                                 md_shift_device **shifts);
void md_shift_device_destroy(md_shift_device *shifts);

/* Queues one iteration; at most two may be under way. */
md_status md_shift_device_queue(md_context *context, md_shift_device *shifts);
/* Waits for the next iteration: |r|^2 of the right-hand sides and zeta of the shifts into m.
 * MD_UNREACHED when a sum was not finite or <p, A p> not positive. Collective. */
md_status md_shift_device_wait(md_context *context, md_shift_device *shifts,
                               md_multishift_state *m);

/* After the last iteration that was queued: the updates that wait, and the scalars into m. */
md_status md_shift_device_end(md_context *context, md_shift_device *shifts, md_multishift_state *m);
