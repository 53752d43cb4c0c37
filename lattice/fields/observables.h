#pragma once

#include "lattice/fields/field.h"

/* correlator[t], t < global[MD_T]: sum over space, colours and right-hand sides of |x|^2 on the
 * time slice t. With x the solution for the three colours of a point source this is the pion
 * correlator. Host fields, any precision; the same to the last bit on every rank grid. Collective.
 */
md_status md_pion_correlator(md_context *context, const md_field x[MD_PARITIES],
                             double *correlator);

/* Momenta of a correlator: p_d = 2 pi n_d / L_d along x, y, z. */
typedef struct md_momenta {
  int count;
  const int (*n)[3];
} md_momenta;

/* Of every right-hand side r, from its own origin y_r:
 *   correlators[(r count + k) T + t] = sum over space and colours of cos(p_k (x - y_r)) |x_r|^2 on
 * the time slice t after the origin's, T = global[MD_T]: the mean of those with p and -p. Summed
 * over the colours of a point source at y this is the correlator of the pion with momentum p. Host
 * fields, any precision; the same to the last bit on every rank grid and whatever other right-hand
 * sides there are. Collective. */
md_status md_pion_correlators(md_context *context, const md_field x[MD_PARITIES],
                              const int (*origin)[MD_DIMS], const md_momenta *momenta,
                              double *correlators);

/* Whether time slice t from the source, of `times`, is free of contact terms: m_res is the
 * correlator of the quark in the middle of the fifth dimension over the pion's, each summed over
 * these. */
static inline bool md_in_window(int t, int times) {
  return t >= 2 && t <= times - 2;
}
/* m_res of correlators whose source is on slice `first`; NaN where the window has no slice. Local.
 */
double md_residual_mass(const double *midpoint, const double *pion, int times, int first);

/* Estimates of tr M^-1 / V (V all sites, trace over colours) from noise sources: estimates[r] =
 * Re <b_r, x_r> / V with M x = b. Host fields, MD_DOUBLE. Collective. */
md_status md_chiral_condensate(md_context *context, const md_field b[MD_PARITIES],
                               const md_field x[MD_PARITIES], double *estimates);
