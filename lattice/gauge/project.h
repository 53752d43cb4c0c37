#pragma once

#include "lattice/gauge/gauge.h"

/* Projection of 3x3 complex matrices to U(3): W = V (V^dag V)^(-1/2), the unitary matrix nearest
 * to V. By Cayley and Hamilton Q^(-1/2) = f0 + f1 Q + f2 Q^2 for Q = V^dag V, the f from Q's
 * eigenvalues (A. Hasenfratz, R. Hoffmann, S. Schaefer, JHEP 0705, 029 (2007)). Its error grows
 * with the square of V's condition number, so where the smallest eigenvalue of Q is below
 * MD_PROJECT_RATIO times the largest, W comes from the singular value decomposition of V
 * (one-sided Jacobi), whose error grows with the condition number itself, as W does when V is
 * rounded. */
#define MD_PROJECT_RATIO 1e-4

typedef struct md_projection_counts {
  long long links;     /* projected */
  long long fallbacks; /* of them by singular values */
  long long singular;  /* of them with a singular value of zero: W is not defined */
} md_projection_counts;

typedef enum md_projection_way {
  MD_PROJECT_ANALYTIC,
  MD_PROJECT_SINGULAR_VALUES,
  MD_PROJECT_SINGULAR /* V has no inverse to rounding, or is not finite; w is not assigned */
} md_projection_way;

/* Thin links that were rounded in a file, back onto SU(3) in double: each becomes the matrix of
 * U(3) nearest to it over the cube root of its determinant. *change: the largest |W - U|_ij of all
 * links. MD_INPUT, naming the file, where that is above MD_THIN_TOLERANCE (smear.h): such links are
 * damaged, or fat, not rounded; they are then of no use. Exchanges halos. Collective. */
md_status md_gauge_reunitarize(md_context *context, const char *path, md_gauge *gauge,
                               double *change);
