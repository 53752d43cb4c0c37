#ifndef MD_LATTICE_FIELDS_OBSERVABLES_H
#define MD_LATTICE_FIELDS_OBSERVABLES_H

#include "lattice/fields/field.h"

/* correlator[t], t < global[MD_T]: sum over space, colours and right-hand sides of |x|^2 on the
 * time slice t. With x the solution for the three colours of a point source this is the pion
 * correlator. Host fields, any precision; the same to the last bit on every rank grid. Collective.
 */
md_status md_pion_correlator(md_context *context, const md_field x[MD_PARITIES],
                             double *correlator);

/* Estimates of tr M^-1 / V (V all sites, trace over colours) from noise sources: estimates[r] =
 * Re <b_r, x_r> / V with M x = b. Host fields, MD_DOUBLE. Collective. */
md_status md_chiral_condensate(md_context *context, const md_field b[MD_PARITIES],
                               const md_field x[MD_PARITIES], double *estimates);

#endif
