#pragma once

#include "dirac/system.h"

MD_C_BEGIN

/* Quarks with four spins. One operator serves Wilson's and the domain-wall actions,
 *
 *   M = A - (H/2) B,   H the hop of dirac/action.h, the same in every slice,
 *
 * with matrices A and B of the fifth dimension. Wilson: one slice, A = 4 + m, B = 1. Domain wall:
 * the operator of R. Brower, H. Neff, K. Orginos, Comput. Phys. Commun. 220, 1 (2017) with
 * D_W = M(-M5), A = alpha + beta X, B = b5 + c5 X, alpha = b5 (4 - M5) + 1, beta = c5 (4 - M5) - 1,
 * where X takes spins 2 and 3 from the next slice, spins 0 and 1 from the one before, and across
 * the walls with a factor -m. Shamir's is b5 = 1, c5 = 0. Gamma matrices are those of DeGrand and
 * Rossi, gamma_5 = diag(1, 1, -1, -1).
 *
 * The equation is solved on even sites, for z = B x, of which M x = (K^-1 - H/2) z, K = B A^-1:
 *
 *   S = K^-1 - 1/4 Heo K Hoe,   S S^dag u = c = b_e + 1/2 Heo K b_o,
 *   x_e = B^-1 S^dag u,   x_o = A^-1 (b_o + 1/2 Hoe B x_e),
 *
 * or, where B is 1, S x_e = c itself. c - S B x_e is the residual of M x = b: that on odd sites is
 * zero. Where B is nearly singular (b5 near c5), S is A - 1/4 Heo K Hoe B and x_e = S^dag u, which
 * takes two fields more and for other walls up to half as many iterations more. */

enum { MD_SPINOR_REALS = 24 };

/* A real matrix of the fifth dimension: m[to * slices + from] acts on spins 2 and 3, its transpose
 * on spins 0 and 1. Those of one operator are functions of X, which commute:
 * (unit + hop X) (over_unit + over_hop X)^-1. */
typedef struct md_wall_matrix {
  int slices;
  double unit, hop, over_unit, over_hop;
  double mass; /* X crosses the walls with -mass */
  bool dense;  /* applied by m, slices^2 products; else slice by slice, to rounding the same */
  double m[MD_MOST_SLICES * MD_MOST_SLICES];
} md_wall_matrix;

/* What an apply of one is beside the matrix. */
typedef struct md_wall_way {
  bool adjoint; /* the transpose in place of the matrix */
  bool gamma5;  /* times gamma_5 */
  bool add;     /* to what `out` holds */
  double factor;
} md_wall_way;

/* out = factor m in on the local sites of fields of one shape, 24 reals for each slice; out is not
 * in. Of 16-bit fields the arithmetic is in single. On a device it is queued. m NULL: the unit
 * matrix. Local. */
void md_wall_apply(const md_wall_matrix *m, const md_wall_way *way, const md_field *in,
                   md_field *out);
/* That of fields on a device, in builds with CUDA. m: one of md_wall_matrices. */
void md_wall_apply_device(const md_wall_matrix *m, const md_wall_way *way, const md_field *in,
                          md_field *out);
/* Half a spinor, spins 2 and 3 where `lower`, of a slice of one field to a slice of another, both
 * in MD_DOUBLE on a device, together and with as many right-hand sides. */
void md_wall_copy_half_device(const md_field *from, int from_slice, bool lower, md_field *to,
                              int to_slice);
/* A bound on its norm. */
double md_wall_norm(const md_wall_matrix *m);

/* The matrices of M for a request and a mass. */
typedef struct md_wall_matrices {
  md_wall_matrix a, b, k, a_inverse; /* k = b a^-1 */
  bool plain;                        /* b is 1 */
  bool of_x;                         /* S is of x, not of z, and there is no */
  md_wall_matrix b_inverse;
  md_wall_matrix site; /* of S: k^-1, or a where it is of x */
} md_wall_matrices;
/* MD_INPUT where A has no inverse. Local. */
md_status md_wall_matrices_make(md_context *context, const md_backend_request *request, double mass,
                                md_wall_matrices *matrices);

/* md_full_create, md_normal_create and md_schur_create call these for actions of H; with the same
 * contracts. `least` of all is an estimate, which only paces reliable updates. */
md_status md_wilson_full_create(md_context *context, md_dirac *dirac, double mass, md_operator *a);
md_status md_wilson_normal_create(md_context *context, md_dirac *dirac, double mass,
                                  md_operator *a);

md_status md_wilson_schur_create(md_context *context, md_dirac *dirac, double mass, md_operator *a);

/* out = M in, or M^dag in, on both parities, by the operator of md_wilson_full_create. Collective.
 */
md_status md_wilson_apply(md_context *context, md_operator *full, bool adjoint,
                          md_field out[MD_PARITIES], md_field in[MD_PARITIES]);
/* out = S in, or S^dag in, on even sites, by the same. Collective. */
md_status md_wilson_schur(md_context *context, md_operator *full, bool adjoint, md_field *out,
                          md_field *in);

/* With walls, between quarks of the four-dimensional world and fields of all slices; MD_DOUBLE, in
 * one space, on a device with as many right-hand sides; quarks of 24 reals, one parity. Local. */
/* eta: P_+ b in the first slice, P_- b in the last one; zero elsewhere. */
void md_walls_source(const md_field *b, md_field *eta);
/* q = P_- psi of slice `lower` + P_+ psi of slice `upper`. */
void md_walls_quark(const md_field *psi, int lower, int upper, md_field *q);

MD_C_END
