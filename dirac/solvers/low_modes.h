#ifndef MD_DIRAC_SOLVERS_LOW_MODES_H
#define MD_DIRAC_SOLVERS_LOW_MODES_H

#include "lattice/fields/modes.h"

/* Deflation with eigenvectors v_i of -Deo Doe that were found before: what CG needs most iterations
 * for, the lowest modes of A = m^2 - Deo Doe, is solved by a projection. */

/* x += sum_i v_i <v_i, r> / (least + lambda_i), least = m^2 of A: so that r = s - A x, which is to
 * be computed anew, has nothing left in the modes as far as they are exact. part2[rhs] = sum_i
 * |<v_i, r>|^2, what r had in them. Where part2[rhs] <= least[rhs] for every right-hand side x
 * stays as it is and *added is false; least NULL: never. r and x: even, MD_DOUBLE, in the space of
 * the modes. The same bits on every rank grid. Collective. */
md_status md_low_modes_project(md_context *context, const md_modes *modes, double least_of_a,
                               const md_field *r, const double *least, md_field *x, double *part2,
                               bool *added);

/* The condition number of A with a spectrum in [least, most] above the modes; modes NULL or empty:
 * of all of A. */
double md_low_modes_kappa(const md_modes *modes, double least, double most);
/* What |r| can have in the modes after a projection and iterations of this roundoff, over |r|: the
 * vectors are rounded, and eigenvectors up to their residuals only; spread = most - least. */
double md_low_modes_noise(const md_modes *modes, double kappa, double spread, double roundoff);

#endif
