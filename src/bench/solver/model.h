#ifndef MD_BENCH_SOLVER_MODEL_H
#define MD_BENCH_SOLVER_MODEL_H

#include "dirac/eigen/eigen.h"

/* What a spectrum says of CG before a solve: its recursion on a diagonal matrix whose numbers are
 * those of A = m^2 - Deo Doe as far as they are known. The bound by the condition number does not
 * do: CG finds the lowest modes by itself as it goes on, and modes that are taken out spare it
 * less than that bound says. */
typedef struct md_cg_spectrum {
  const double *low; /* the lowest eigenvalues of -Deo Doe, rising */
  int count;
  md_eigen_density density; /* of all of them */
  double unknowns;          /* their number */
} md_cg_spectrum;

typedef struct md_cg_estimate {
  int iterations; /* `most` where the tolerance is not reached before */
  double first;   /* the residual that they begin with, as norm(b - M x) / norm(b) */
} md_cg_estimate;

/* For a random source on all sites, of which the `removed` lowest modes have been solved for, to
 * norm(b - M x) <= tolerance norm(b). The same on all ranks. Local. */
md_status md_cg_estimate_of(md_context *context, const md_cg_spectrum *spectrum, int removed,
                            double mass, double tolerance, int most, md_cg_estimate *estimate);

#endif
