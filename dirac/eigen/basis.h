#pragma once

#include "dirac/eigen/eigen.h"
#include "dirac/operators.h"

#include <complex.h>

/* The polynomial f(A) = T_d(x(A)) / T_d(x(0)) of A, T_d Chebyshev's polynomial and x the
 * linear map of [low, high] to [-1, 1]: 1 at 0, falling and positive up to `low`, and from there to
 * `high`, a bound on A, as small as a polynomial of degree d can be. Degree 1 falls everywhere. */
typedef struct md_eigen_filter {
  int degree;
  double low, high;
} md_eigen_filter;

/* The filter whose window begins at `low`, with a degree that grows as the root of high / low:
 * f(0) is then about 27 times the largest |f| in the window. Where `low` lies so high that there
 * is little to damp: degree 1, low = 0. The degree is 1000 at most, and `low` accordingly. */
md_eigen_filter md_eigen_filter_for(double low, double high);

/* f(lambda). */
double md_eigen_filter_value(const md_eigen_filter *filter, double lambda);

/* Even fields of the operator's shape to work in. */
typedef struct md_eigen_scratch {
  md_field before, now;
  md_field next; /* where the operator does not fuse (md_normal_fuses) */
  double *ones;  /* where it does, in its space: one for each right-hand side */
} md_eigen_scratch;
/* Destroy also after a failure. Local. */
md_status md_eigen_scratch_create(md_context *context, const md_operator *a,
                                  md_eigen_scratch *scratch);
void md_eigen_scratch_destroy(md_eigen_scratch *scratch);

/* out = f(A) in for every right-hand side, fields of md_operator_field in MD_DOUBLE; out may
 * be in, else in's sites stay as they are; in's halo is overwritten. T_d(x(0))
 * must be a number that doubles hold with some to spare. A fused A has mass 0; `degree` applies.
 * Collective. */
md_status md_eigen_filter_apply(md_context *context, md_operator *a, const md_eigen_filter *filter,
                                md_eigen_scratch *scratch, md_field *out, md_field *in);

/* Orthonormal vectors v[0 .. count), `waiting` more behind them that wait for their turn, and the
 * projection h[i][j] = <v_i, f(A) v_j>, i <= j, of the filtered operator on the first `count`. The
 * filter takes as many vectors at once as the operator has right-hand sides: a block. */
typedef struct md_eigen_basis {
  md_context *context;
  md_operator *a;
  md_eigen_filter filter;
  md_eigen_scratch scratch;
  md_field *v;      /* most + block, of one right-hand side */
  md_field *turned; /* kept: room for Ritz vectors */
  md_field columns; /* vectors side by side; block 1: there is none */
  int block, most, kept, count, waiting;
  int64_t unknowns; /* dimension of the space, at least `most` */
  uint64_t seed, drawn;
  double complex *h, *rotation; /* most x most, rows of `most` entries, and rows of Ritz vectors */
  double *values, *dots;
  int applied; /* filters of a vector so far */
} md_eigen_basis;

/* Room for `most` vectors of which `kept` survive a restart; the block is the operator's n_rhs.
 * Destroy also after a failure. Collective. */
md_status md_eigen_basis_create(md_context *context, md_operator *a, int most, int kept,
                                uint64_t seed, md_eigen_basis *basis);
void md_eigen_basis_destroy(md_eigen_basis *basis);

/* `wanted` random unit vectors, orthogonal to those before them and to each other, wait instead of
 * those that did: a block at most, and no more than the space has room for. Collective. */
md_status md_eigen_basis_draw(md_eigen_basis *basis, int wanted);
/* v[count] becomes the part of `vector`, an even field of any precision and space, that is
 * orthogonal to those before it, as a unit vector, and counts; one that has no such part is left
 * out. Nothing waits then. Collective. */
md_status md_eigen_basis_take(md_eigen_basis *basis, const md_field *vector);
/* One step of Lanczos: those that wait count, with their columns of h, and what f(A) makes of them
 * waits, as far as it is new; random vectors stand in for what is not. There is room for those that
 * wait. Collective. */
md_status md_eigen_basis_step(md_eigen_basis *basis);
/* Ritz values of f(A), falling, into values, and the rows of `rotation`; h is lost. Collective. */
md_status md_eigen_basis_solve(md_eigen_basis *basis);
/* h becomes the diagonal matrix of values[0 .. count): those of f(A) of vectors that are its
 * eigenvectors. Local. */
void md_eigen_basis_settle(md_eigen_basis *basis);
/* v[0 .. keep) become the first Ritz vectors, those that wait follow them, and h is the diagonal
 * matrix of their values. One pass over the basis. Collective. */
md_status md_eigen_basis_restart(md_eigen_basis *basis, int keep);
/* Keeps v[0 .. keep) and h of them, and forgets of the others all but a block of sums, each over
 * every block-th of them, which waits. Collective. */
md_status md_eigen_basis_gather(md_eigen_basis *basis, int keep);
/* values[i] = <v_i, A v_i> / <v_i, v_i> and the residuals of them for i < count, by A itself.
 * Collective. */
md_status md_eigen_basis_pairs(md_eigen_basis *basis, int count, double *values, double *residuals);

/* Where A is S S^dag of Wilson quarks (dirac/wilson/wilson.h), gamma_5 S in the space of its modes
 * v[0 .. count), by Rayleigh and Ritz: signs[0 .. count) by rising |value|. What the modes of one
 * |value| have left out of them shows in the residual. count is `kept` at most; h, rotation and
 * values are lost. Collective. */
md_status md_eigen_basis_signs(md_eigen_basis *basis, int count, md_eigen_sign *signs);
