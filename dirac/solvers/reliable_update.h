#ifndef MD_DIRAC_SOLVERS_RELIABLE_UPDATE_H
#define MD_DIRAC_SOLVERS_RELIABLE_UPDATE_H

#include <math.h>
#include <stdbool.h>

/* When mixed-precision CG recomputes its residual. `norm2` is the recursive
 * |r|^2 of a right-hand side, `largest` the largest since its last update. */

/* Bound on the condition number of A = m^2 + D^dag D, |D| <= norm (4 for links in SU(3) with one
 * hop; md_dirac.norm). */
static inline double md_update_kappa(double mass, double norm) {
  return 1.0 + norm * norm / (mass * mass);
}
/* Roundoff of the inner precision times that: above ten an update finds little of what the inner
 * iterations claim in the lowest modes. */
static inline double md_update_noise(double kappa, double roundoff) {
  return roundoff * kappa;
}
static inline bool md_update_is_coarse(double noise) {
  return noise > 10.0;
}

/* |r| has fallen by this factor: smaller costs iterations where the noise is large, larger costs
 * stencils in double; docs/solvers.md says why. */
static inline double md_update_factor(bool deflates, double noise) {
  if (deflates) return 0.4;
  return md_update_is_coarse(noise) ? 0.6 : fmin(fmax(0.12 * sqrt(noise), 0.05), 0.3);
}
static inline bool md_update_due(double norm2, double largest, double factor) {
  return norm2 < factor * factor * largest;
}

/* Whether the recursive residual may be stored as narrow as the direction, which rounds it once in
 * every iteration: costs none as long as this holds, a sixth of them at twice the noise;
 * docs/solvers.md says why. */
static inline bool md_update_narrows(double noise) {
  return !md_update_is_coarse(noise);
}

/* The bound of CG on the iterations that lower |r| by `factor`: an inner solver that takes longer
 * has lost its way and is updated as it is. */
static inline int md_update_latest(double kappa, double factor) {
  const double root_kappa = sqrt(kappa);
  return 1 + (int)fmin(0.5 * root_kappa * log(2.0 * root_kappa / factor), 1e9);
}

/* True where CG may take more iterations than a quarter of the unknowns (complex, all ranks): it
 * ends as its directions are conjugate, which rounding in 16 or 32 bits undoes. Deflation helps
 * there, and where the inner precision is coarse; in the second case the host alone deflates:
 * docs/solvers.md says what an update costs beside them. */
static inline bool md_update_is_small(double kappa, double tolerance, double unknowns) {
  return unknowns < 2.0 * sqrt(kappa) * log(2.0 / fmax(tolerance, 1e-17));
}

/* Whether mixed CG deflates: `noise` above the modes that it is given, kappa of the whole matrix.
 */
static inline bool md_update_deflates(bool on_host, double noise, double kappa, double tolerance,
                                      double unknowns) {
  return (md_update_is_coarse(noise) && on_host) || md_update_is_small(kappa, tolerance, unknowns);
}

/* Updates in a row that did not lower the smallest true residual by a tenth: after a few the
 * search direction is dropped, after most the right-hand side has stalled. */
static inline bool md_update_is_vain(double now, double best) {
  return !(now < 0.9 * best);
}
enum { MD_UPDATES_FEW_IN_VAIN = 3, MD_UPDATES_MOST_IN_VAIN = 10 };

#endif
