#ifndef MD_DIRAC_SOLVERS_MULTISHIFT_STATE_H
#define MD_DIRAC_SOLVERS_MULTISHIFT_STATE_H

#include "dirac/solvers/multishift.h"
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
  md_dirac *dirac, *exact; /* of the request */
  md_dirac *by;            /* of the two, the one that iterates now */
  double aim;              /* |r| over |b| at which a shift is done */
  double until;            /* |r| over |b| at which `dirac` takes over from `exact`; 0: it has */
  const md_multishift_request *request;
  md_multishift_result *result;
  md_shifted *shifts;
  int smallest;
  md_field r, a_p, work;                    /* in the space of by */
  md_field behind[MD_SHIFT_KEPT - 1];       /* residuals of the iterations whose updates wait */
  int waiting;                              /* their number */
  md_field source, x, residual, work_exact; /* in the space of exact, double */
  double b_norm[MD_MAX_RHS], r_norm2[MD_MAX_RHS];
  double alpha[MD_MAX_RHS], beta[MD_MAX_RHS]; /* of the last iteration */
} md_multishift_state;

/* M^dag M + shift k is M^dag M of this mass. */
double md_shift_mass(const md_multishift_state *m, int k);
/* |r| over |b| from which on an operator of this precision does as well as a double one; 0: from
 * the beginning on, or what rounding leaves behind is not to be refined. That is a few times the
 * roundoff of the |r| with which the rounding begins (docs/solvers.md says why), and of
 * another direction in each shift, so that it would have to be iterated for shift by shift: an
 * iteration in double instead costs all of them less. */
double md_multishift_narrow_from(const md_backend_request *request, double tolerance, bool refine);
/* Whether iterations by m->by are those of device/shift_device.h. */
bool md_multishift_fuses(const md_multishift_state *m);
/* Common iterations by m->by, until all shifts are done, the residual is at m->until, or they end
 * for another reason. Collective. */
md_status md_multishift_iterate(md_multishift_state *m);
/* After the iteration: true residuals, refinements where they are asked for, solutions to the
 * caller. Collective. */
md_status md_multishift_finish(md_multishift_state *m, md_field *x);

#endif
