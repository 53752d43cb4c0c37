#pragma once

#include "dirac/backend.h"
#include <stdbool.h>

/* What storing changes of a link: docs/precision.md, section 2. Links are 18 reals in double,
 * [row][column][re, im]. All functions are local. */

/* Storing changes a real r by at most unit |r| + floor, the floor of a fermion relative to the
 * largest component near it; and a link takes what is beyond `most`. */
typedef struct md_rounding {
  double unit, link_floor, field_floor, most;
} md_rounding;
md_rounding md_rounding_of(md_precision precision);

/* Relative error of a component of D v, a sum of 6 products for each term of the action, in the
 * arithmetic of the request, whatever its order. */
double md_bound_gamma(const md_backend_request *request);

/* error[c] <- what may change of component c of the link u, which enters a hop as U or, `adjoint`,
 * as U^dag: a backend may keep either, and where not all 18 reals are kept it matters which.
 * largest: of md_links for the field of u: what fixed stores as MD_FIXED_STEPS, 1 for links in
 * SU(3); for 13 and 9 reals the number s of which u is a multiple. The reconstruct of the request
 * is that of the field (md_reconstruct_of_field). */
void md_bound_link(const md_backend_request *request, double largest, const double u[18],
                   bool adjoint, double error[18]);

/* The coordinates of a link of 8 reals. U = (1 + S) H diag(e^{i theta}, 1, 1), where the first row
 * is (c e^{i theta}, y, z) with c >= 0, theta = 2 phi; p = y / (1 + c), q = z / (1 + c); H is the
 * reflection along the first row with that row negated,
 *   H v = (s - v0, v1 - p* s, v2 - q* s),  s = k (v0 + p v1 + q v2),  k = 2 / (1 + |p|^2 + |q|^2);
 * S = e^{-i phi} (a b; -b* a*) in rows 2 and 3 with g = (Im a, Re b, Im b) / (1 + Re a).
 * phi and phi + pi make the same link: the one with Re a >= 0 is kept. */
typedef struct md_eight {
  double pq[4]; /* re, im of p and of q */
  double phi;
  double g[3];
} md_eight;

/* The coordinates of u; other_branch: those of the other phi, |g| > 1. Returns Re a. */
double md_eight_of(const double u[18], bool other_branch, md_eight *e);
/* Finds g anew, so that the link of e is as near to u as pq and phi allow. Returns Re a. */
double md_eight_settle(const double u[18], md_eight *e);
/* The link of the coordinates. */
void md_link_of_eight(const md_eight *e, double u[18]);
/* What rounding changes of phi: tan(phi/2) is stored, in fixed point tan(phi/4). */
double md_eight_angle_error(md_precision precision, double phi);
