#ifndef MD_MEASURE_MASSES_H
#define MD_MEASURE_MASSES_H

#include "measure/measure.h"

/* M x = b for the masses of a study: one after the other by CG, or together by multi-shift. */

typedef struct md_propagator {
  const md_study *s;
  md_dirac dirac, exact, inner;            /* as in a solve; exact and inner where needed */
  md_field b[MD_PARITIES], x[MD_PARITIES]; /* host, double */
  const md_modes *modes;                   /* to deflate with, one mass at a time; NULL: none */
  int first, used; /* the caller's: the batch's first right-hand side, and how many count */
  /* Called with the solution for each mass in x, with true residuals and iterations of each
   * right-hand side. Not called in a dry run; then it may be NULL. */
  md_status (*observe)(void *user, int mass, const double *residuals, const int *iterations);
  void *user;
} md_propagator;

/* Sets dirac, exact, inner, b and x for `width` right-hand sides; destroy it also after a failure.
 * Collective. */
md_status md_propagator_create(md_context *context, const md_study_links *links, int width,
                               md_propagator *p);
void md_propagator_destroy(md_propagator *p);

/* By CG or block CG, mass by mass. MD_UNREACHED where it does not converge, MD_ENVIRONMENT where a
 * signal ended it. Collective. */
md_status md_propagate_apart(md_context *context, md_propagator *p);
/* By multi-shift on even sites: y = A^-1 b_e and z = A^-1 Deo b_o, A = m^2 - Deo Doe, are solved
 * for all masses at once, and x_e = m y - z, x_o = (b_o - Doe x_e) / m. A family whose source is
 * zero is left out. Its tolerance is so small that that of x is met; the residual that decides is
 * that of M x = b in double. Errors as above. Collective. */
md_status md_propagate_together(md_context *context, md_propagator *p);

#endif
