#pragma once

extern "C" {
#include "lattice/fields/field.h"
}

/* Conjugate gradients in residuals alone. With ' for the iteration before,
 *   r = p - beta' p',  <p', A p> = 0,  alpha' A p' = r' - r
 * leave of an iteration's sums and vectors
 *   <p, A p> = <r, A r> - beta'^2 <p', A p'>,  alpha = |r|^2 / <p, A p>,
 *   r - alpha A p = (1 + c - alpha m^2) r + alpha Deo Doe r - c r',  c = alpha beta' / alpha',
 * so that the stencil takes r and no direction is stored (H. Rutishauser 1959; M. Gutknecht and
 * Z. Strakos, SIAM J. Matrix Anal. Appl. 22 (2000) 213). An iteration that begins anew takes p. */
struct three_term {
  double alpha, beta, p_ap; /* of the iteration before; beta 0: begins anew */
};

/* From |v|^2 and |D v|^2 of what the stencil took. */
static __device__ inline double p_ap_of(const three_term &before, double mass2, double norm2,
                                        double hop_norm2) {
  return mass2 * norm2 + hop_norm2 - before.beta * before.beta * before.p_ap;
}

/* The rows of md_hop_step.by for a right-hand side: x is what the stencil took, and `before` r'
 * or, anew, r. With alpha = 0 r stays. */
static __device__ inline void set_step(double step[3][MD_MAX_RHS], int r, bool anew,
                                       const three_term &before, double alpha, double mass2) {
  const double carried =
      alpha != 0.0 && before.beta != 0.0 ? alpha * before.beta / before.alpha : 0.0;
  step[0][r] = alpha;
  step[1][r] = anew ? -alpha * mass2 : 1.0 + carried - alpha * mass2;
  step[2][r] = anew ? 1.0 : -carried;
}
