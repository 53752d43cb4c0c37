#ifndef MD_DIRAC_SOLVERS_DEFLATION_H
#define MD_DIRAC_SOLVERS_DEFLATION_H

#include <complex.h>

#include "lattice/fields/field.h"

/* A few directions w with A w of a Hermitian positive A, <w_i, A w_j> = delta_ij, that a solver
 * meets on its way and projects its residual on: what rounding brings back of eigenvectors it has
 * already solved for is taken out at once instead of being iterated for again. Once full, every
 * new direction costs the one in the span with the largest <w, A w> / <w, w> (Rayleigh and Ritz),
 * so that the low modes gather (thick restart: A. Stathopoulos and K. Orginos, SIAM J. Sci. Comput.
 * 32 (2010) 439, arXiv:0707.0131, with solutions in place of their window of residuals).
 * Every right-hand side has directions of its own. */
enum { MD_DEFLATION_KEPT = 8, MD_DEFLATION_MOST = MD_DEFLATION_KEPT + 1 };

typedef struct md_deflation {
  md_field w[MD_DEFLATION_MOST], a_w[MD_DEFLATION_MOST]; /* MD_SINGLE */
  int count;                                             /* kept directions */
  int n_rhs;
  /* <w_i, w_j> of each right-hand side. */
  double complex (*gram)[MD_DEFLATION_MOST][MD_DEFLATION_MOST];
} md_deflation;

/* Empty; even fields of `shape`, which must be MD_SINGLE. Destroy also after a failure. Local. */
md_status md_deflation_create(md_context *context, const md_geometry *geometry,
                              const md_field_shape *shape, md_deflation *deflation);
void md_deflation_destroy(md_deflation *deflation);

/* Takes in the direction that the caller has put into w[count] and A times it into a_w[count], of
 * any size; one of zeros (of a right-hand side that is done) has no effect. Collective. */
md_status md_deflation_insert(md_context *context, md_deflation *deflation);

/* For r = s - A x: x += sum_i w_i <w_i, r>, r -= sum_i A w_i <w_i, r>, so that <w_i, r> = 0.
 * r and x: MD_SINGLE. Collective. */
md_status md_deflation_project(md_context *context, const md_deflation *deflation, md_field *r,
                               md_field *x);

#endif
