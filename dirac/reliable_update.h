#ifndef MD_DIRAC_RELIABLE_UPDATE_H
#define MD_DIRAC_RELIABLE_UPDATE_H

#include <math.h>
#include <stdbool.h>

#ifdef __CUDACC__
#define MD_UPDATE_RULE static __host__ __device__ inline
#else
#define MD_UPDATE_RULE static inline
#endif

/* When mixed-precision CG recomputes its residual, the same on host and device. `norm2` is the
 * recursive |r|^2 of a right-hand side, `largest` the largest since its last update. */

/* |r| has fallen by this factor: smaller costs iterations on small masses in 16 bits, larger costs
 * stencils in double; docs/precision.md has the counts. */
MD_UPDATE_RULE double md_update_factor(bool deflates) {
  return deflates ? 0.4 : 0.3;
}
MD_UPDATE_RULE bool md_update_due(double norm2, double largest, double factor) {
  return norm2 < factor * factor * largest;
}

/* The bound of CG on the iterations that lower |r| by `factor` (A = m^2 + D^dag D, |D| <= 4): an
 * inner solver that takes longer has lost its way and is updated as it is. */
MD_UPDATE_RULE int md_update_latest(double mass, double factor) {
  const double root_kappa = sqrt(1.0 + 16.0 / (mass * mass));
  return 1 + (int)fmin(0.5 * root_kappa * log(2.0 * root_kappa / factor), 1e9);
}

/* Where iterations may be no fewer than a quarter of the unknowns (complex, all ranks), CG ends
 * early as its directions are conjugate, which rounding in 16 or 32 bits undoes; there the solver
 * deflates. On larger lattices that gains nothing. */
MD_UPDATE_RULE bool md_update_deflates(double mass, double tolerance, double unknowns) {
  return unknowns <
         4.0 * 0.5 * sqrt(1.0 + 16.0 / (mass * mass)) * log(2.0 / fmax(tolerance, 1e-17));
}

/* Updates in a row that did not lower the smallest true residual by a tenth: after a few the
 * search direction is dropped, after most the right-hand side has stalled. */
MD_UPDATE_RULE bool md_update_is_vain(double now, double best) {
  return !(now < 0.9 * best);
}
enum { MD_UPDATES_FEW_IN_VAIN = 3, MD_UPDATES_MOST_IN_VAIN = 10 };

#endif
