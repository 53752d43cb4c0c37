#ifndef MD_DIRAC_SOLVERS_MULTISHIFT_STATE_H
#define MD_DIRAC_SOLVERS_MULTISHIFT_STATE_H

#include "dirac/solvers/multishift.h"

/* Inside multi-shift CG. */

/* One shift. Its direction is kept as p / zeta, so that its two updates are those of CG with other
 * coefficients: x += alpha zeta' (p / zeta), p' / zeta' = r + beta (zeta' / zeta) (p / zeta). */
typedef struct md_shifted {
  md_field x, p;
  double delta;                                /* shift - smallest shift */
  double zeta[MD_MAX_RHS], before[MD_MAX_RHS]; /* r_shift = zeta r; now and one iteration ago */
  double residual[MD_MAX_RHS];                 /* |r_shift|, kept from where it was small enough */
  double for_x[MD_MAX_RHS], for_p[MD_MAX_RHS]; /* coefficients of this iteration's updates */
  bool done;                                   /* all right-hand sides */
} md_shifted;

typedef struct md_multishift_state {
  md_context *context;
  md_dirac *dirac, *exact;
  const md_multishift_request *request;
  md_multishift_result *result;
  md_shifted *shifts;
  int smallest;
  md_field r, a_p, work;                    /* in the space of dirac */
  md_field source, x, residual, work_exact; /* in the space of exact, double */
  double b_norm[MD_MAX_RHS], r_norm2[MD_MAX_RHS];
  double alpha[MD_MAX_RHS], beta[MD_MAX_RHS]; /* of the last iteration */
} md_multishift_state;

/* M^dag M + shift k is M^dag M of this mass. */
double md_shift_mass(const md_multishift_state *m, int k);
/* After the iteration: true residuals, refinements where they are asked for, solutions to the
 * caller. Collective. */
md_status md_multishift_finish(md_multishift_state *m, md_field *x);

#endif
