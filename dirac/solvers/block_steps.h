#pragma once

#include <complex.h>

#include "dirac/operators.h"
#include "lattice/fields/block.h"

/* Iterations of block conjugate gradients BCGrQ (A. Dubrulle, Electron. Trans. Numer. Anal. 12
 * (2001) 216; the form of M. Clark et al., arXiv:1710.09745) for A = m^2 + D^dag D or F F^dag on
 * even sites, the n right-hand sides as columns. The residual is R = Q C with orthonormal Q:
 *
 *   alpha = (P^H A P)^-1,  Q' S = Q - A P alpha,  X += P alpha C,  C' = S C,  P' = Q' + P S^H
 *
 * Q' S is a Cholesky QR, repeated where its pivots are small; columns that depend on those before
 * them become zero, so that the block shrinks. Q is not stored: it is r times the matrix `pending`,
 * which the passes over r apply. */
enum {
  MD_BLOCK_GRAM,
  MD_BLOCK_OTHER,
  MD_BLOCK_FACTOR,
  MD_BLOCK_INVERSE,
  MD_BLOCK_ADJOINT,
  MD_BLOCK_ALPHA, /* -(P^H A P)^-1 */
  MD_BLOCK_STEP,  /* (P^H A P)^-1 C */
  MD_BLOCK_C,
  MD_BLOCK_S,
  MD_BLOCK_PENDING,
  MD_BLOCK_MATRICES
};

/* Directions that are kept where x has a pass of its own: each iteration adds the last ones to one
 * of as many parts of x, which is read and written once for all of them. */
enum { MD_BLOCK_KEPT = 4 };

typedef struct md_block_steps {
  md_context *context;
  md_operator *a;
  int n;
  md_field *r, *p, *x; /* the caller's; p, of the operator's shape, is the present direction */
  md_field a_p;        /* A p of the last step */
  md_field others[MD_BLOCK_KEPT - 1], *kept[MD_BLOCK_KEPT]; /* iteration k's direction: k % KEPT */
  int count, added[MD_BLOCK_KEPT]; /* iterations; those that each part of x has */
  md_block *block;
  double complex *matrix[MD_BLOCK_MATRICES]; /* n x n each */
  double complex *steps, *late;              /* STEP of kept directions; of those to be added */
  int rank;                                  /* columns of Q that are not zero */
  bool sound;                                /* false: a sum was not finite, the fields are lost */
  bool apart; /* x has a pass of its own: narrow iterations on a device, where the host's work on
               * the sums of r takes as long */
  /* Of a QR of r over its diagonal. At less a column depends on those before it; at less than
   * enough the QR is repeated: columns are orthonormal to the rounding of the sums over it, and
   * what is missing there costs the search directions as much of their conjugacy. */
  double least_pivot, enough_pivot;
} md_block_steps;

/* MD_INPUT with the reason where the operator has too few or too many right-hand sides, or is not
 * of either form. Local. */
md_status md_block_steps_check(md_context *context, const md_operator *a);
/* For context, a, r, p and x, which are set. Destroy also after a failure. Local. */
md_status md_block_steps_create(md_block_steps *b);
void md_block_steps_destroy(md_block_steps *b);

/* r = Q C; p = Q. Collective, as all that follow. */
md_status md_block_steps_begin(md_block_steps *b);
/* The first half of an iteration, after which C is that of the new residual, */
md_status md_block_steps_residual(md_block_steps *b);
/* and the second: x and the next p. Or: x alone, while p stays the direction of this iteration, */
md_status md_block_steps_direction(md_block_steps *b);
md_status md_block_steps_solution(md_block_steps *b);
/* after which r may be replaced by another residual: r = Q C, and the next direction is the one of
 * Q that is conjugate to the last, P' = Q - P (P^H A P)^-1 (A P)^H Q. That is the P' of the
 * iteration if r is its residual. */
md_status md_block_steps_replaced(md_block_steps *b);

/* r = Q C, the residual, and p = r: iterations of another kind may go on from there. */
md_status md_block_steps_end(md_block_steps *b);

/* |r_j|^2, the norm of column j of C. */
double md_block_steps_norm2(const md_block_steps *b, int j);
/* Lowers *least, 0 at first, to the rank; not to 0, that of a residual which has nothing left. */
void md_block_steps_least_rank(const md_block_steps *b, int *least);
