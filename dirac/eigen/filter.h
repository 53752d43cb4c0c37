#ifndef MD_DIRAC_EIGEN_FILTER_H
#define MD_DIRAC_EIGEN_FILTER_H

#include "dirac/operator.h"

/* The polynomial f(A) = T_d(x(A)) / T_d(x(0)) of A = -Deo Doe, T_d Chebyshev's polynomial and x the
 * linear map of [low, high] to [-1, 1]: 1 at 0, falling and positive up to `low`, and from there to
 * `high`, a bound on A, as small as a polynomial of degree d can be. Degree 1 falls everywhere. */
typedef struct md_eigen_filter {
  int degree;
  double low, high;
} md_eigen_filter;

/* The filter whose window begins at `low`, with a degree that grows as the root of high / low:
 * f(0) is then about 27 times the largest |f| in the window. Where `low` lies so high that there
 * is little to damp: degree 1, low = 0. The degree is 1000 at most, and `low` accordingly. */
md_eigen_filter md_eigen_filter_for(double low, double high);

/* f(lambda). */
double md_eigen_filter_value(const md_eigen_filter *filter, double lambda);

/* Even fields of the operator's shape, and an odd one, to work in. */
typedef struct md_eigen_scratch {
  md_field before, now, odd;
  md_field next; /* where the operator does not fuse (md_dirac_fuses) */
  double *ones;  /* where it does, in its space: one for each right-hand side */
} md_eigen_scratch;
/* Destroy also after a failure. Local. */
md_status md_eigen_scratch_create(md_context *context, const md_dirac *dirac,
                                  md_eigen_scratch *scratch);
void md_eigen_scratch_destroy(md_eigen_scratch *scratch);

/* out = f(A) in for every right-hand side, even fields made by md_dirac_field in MD_DOUBLE; out may
 * be in, else in's sites stay as they are; in's halo is overwritten. T_d(x(0))
 * must be a number that doubles hold with some to spare. 2 degree stencil calls. Collective. */
md_status md_eigen_filter_apply(md_context *context, md_dirac *dirac, const md_eigen_filter *filter,
                                md_eigen_scratch *scratch, md_field *out, md_field *in);

#endif
