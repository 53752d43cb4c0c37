#ifndef MD_LATTICE_GAUGE_PROJECT_H
#define MD_LATTICE_GAUGE_PROJECT_H

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

/* w = projection of v ([row][column][re, im]); says which way it went. w may be v. Local. */
md_projection_way md_project_u3(const double v[MD_LINK_REALS], double w[MD_LINK_REALS]);
/* The singular-value way, whatever the condition. */
md_projection_way md_project_u3_svd(const double v[MD_LINK_REALS], double w[MD_LINK_REALS]);
/* w in U(3) divided by the cube root of its determinant nearest to 1: in SU(3). In place. Local. */
void md_project_su3_phase(double w[MD_LINK_REALS]);

#endif
