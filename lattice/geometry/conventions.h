#pragma once

#include "base/status.h"

MD_C_BEGIN

/* The conventions of docs/conventions.md, as code: the one place that knows them. For one link
 * field (dirac/action.h has the others):
 *
 *   (D v)(x) = 1/2 sum_mu eta_mu(x) [ U_mu(x) v(x+mu) - U_mu(x-mu)^dag v(x-mu) ],  M = m + D
 *
 * Directions mu = x,y,z,t; x fastest in memory. A neighbour direction is mu (forward, x+mu) or
 * 4+mu (backward, x-mu). Parity is (x+y+z+t) mod 2 of global coordinates; a hop is named by the
 * parity that it writes: Deo reads odd sites and assigns even ones. */
enum { MD_X, MD_Y, MD_Z, MD_T, MD_DIMS };
enum { MD_EVEN = 0, MD_ODD = 1, MD_PARITIES = 2 };
enum { MD_DIRECTIONS = 8 };

enum {
  MD_FERMION_REALS = 6, /* 3 colours x (re, im) */
  MD_LINK_REALS = 18,   /* 3 rows x 3 columns x (re, im), in this order */
  MD_LINK_12_REALS = 12 /* rows 1 and 2; row 3 = conj(row 1 x row 2) */
};

/* Staggered phase eta_mu of the site with global coordinates x: eta_x = 1, eta_y = (-1)^x,
 * eta_z = (-1)^(x+y), eta_t = (-1)^(x+y+z). */
static inline int md_eta(int mu, const int x[MD_DIMS]) {
  const int sum = (mu > 0 ? x[0] : 0) + (mu > 1 ? x[1] : 0) + (mu > 2 ? x[2] : 0);
  return sum & 1 ? -1 : 1;
}

MD_C_END
