#pragma once

#include <complex.h>

#include "lattice/fields/block.h"

/* A few directions w with A w of a Hermitian positive A, <w_i, A w_j> = delta_ij, that a solver
 * meets on its way and projects its residual on: what rounding brings back of eigenvectors it has
 * already solved for is taken out at once instead of being iterated for again. Once full, every
 * new direction costs the one in the span with the largest <w, A w> / <w, w> (Rayleigh and Ritz),
 * so that the low modes gather (thick restart: A. Stathopoulos and K. Orginos, SIAM J. Sci. Comput.
 * 32 (2010) 439, arXiv:0707.0131, with solutions in place of their window of residuals).
 * Every right-hand side has directions of its own. */
enum { MD_DEFLATION_KEPT = 16, MD_DEFLATION_MOST = MD_DEFLATION_KEPT + 1 };

typedef struct md_deflation {
  double most;                                           /* about the largest eigenvalue of A */
  md_field w[MD_DEFLATION_MOST], a_w[MD_DEFLATION_MOST]; /* MD_SINGLE */
  int kept, count; /* directions: most of them, those that it has */
  int n_rhs;
  /* <w_i, w_j> of each right-hand side. */
  double complex (*gram)[MD_DEFLATION_MOST][MD_DEFLATION_MOST];
} md_deflation;

/* Empty; even fields of `shape`, which must be MD_SINGLE, for `kept` directions, at most
 * MD_DEFLATION_KEPT, and one more. most: about the largest eigenvalue of A, for guesses of sums.
 * Destroy also after a failure. Local. */
md_status md_deflation_create(md_context *context, const md_geometry *geometry,
                              const md_field_shape *shape, int kept, double most,
                              md_deflation *deflation);
void md_deflation_destroy(md_deflation *deflation);

/* Takes in the direction that the caller has put into w[count] and A times it into a_w[count], of
 * any size; one of zeros (of a right-hand side that is done) has no effect. Collective. */
md_status md_deflation_insert(md_context *context, md_deflation *deflation);

/* For r = s - A x: x += sum_i w_i <w_i, r>, r -= sum_i A w_i <w_i, r>, so that <w_i, r> = 0.
 * r and x: MD_SINGLE, |r| about 1. Collective. */
md_status md_deflation_project(md_context *context, const md_deflation *deflation, md_field *r,
                               md_field *x);

/* A projection that raises |r| of some right-hand side by more than this is none any more: its
 * directions are combinations of single-precision vectors that nearly cancel, as where they have
 * spanned the whole space. What it adds to the solution would grow from update to update. */
#define MD_DEFLATION_RAISES 4.0
/* Forgets the directions of some right-hand sides; whether they had any. Local. */
bool md_deflation_forget(md_deflation *deflation, const bool *of);

/* Blocks W_k of directions with A W_k of a Hermitian positive A, W_k^H A W_k = 1: the partial
 * solutions that mixed block CG meets on its way. It projects all columns of its residual on them:
 * what rounding brings back of the eigenvectors that they have solved for is taken out at once
 * instead of being iterated for again. (Right-hand sides in step have directions of their own
 * above; in a block they must be the same for all columns, which are no longer one Krylov space
 * otherwise.) Blocks of one Krylov space are conjugate to each other but for rounding, which is
 * enough; once full, a new block replaces the oldest one. */
enum { MD_BLOCK_DEFLATION_MOST = 24 };

typedef struct md_block_deflation {
  md_field w[MD_BLOCK_DEFLATION_MOST], a_w[MD_BLOCK_DEFLATION_MOST];
  int most;        /* such that they span no more than half of the space: what is left is noise */
  int count, next; /* blocks that it has, and where the next one goes */
  md_block *block; /* borrowed */
  int n;
  double complex *product;                /* n x n for each block */
  double complex *factor, *inverse, *one; /* n x n */
} md_block_deflation;

/* Whether the blocks, and r, are as narrow as iterations in this space and precision, which saves
 * bytes; else they are MD_SINGLE. 11 bits are as good as 24, the 8 of bf16 are not
 * (docs/solvers.md). */
static inline bool md_block_deflation_narrows(md_space space, md_precision precision) {
  return space == MD_DEVICE && md_precision_roundoff(precision) <= 0x1p-11;
}

/* Empty, of even fields of `shape`. `block` outlives it. Destroy also after a failure. Local. */
md_status md_block_deflation_create(md_context *context, const md_geometry *geometry,
                                    const md_field_shape *shape, md_block *block,
                                    md_block_deflation *d);
void md_block_deflation_destroy(md_block_deflation *d);

/* Takes in a block w of any size, with a_w = A w, both MD_SINGLE, which it overwrites; columns of
 * zeros, or that depend on others, have no effect. Sums on their way in the work space are lost.
 * Collective. */
md_status md_block_deflation_insert(md_context *context, md_block_deflation *d, md_field *w,
                                    md_field *a_w);

/* Becomes empty. Local. */
void md_block_deflation_forget(md_block_deflation *d);

/* For r = s - A x: x += W_k W_k^H r, r -= A W_k W_k^H r, one block after the other: all at once it
 * misses by what they lack in conjugacy, which takes three times the iterations. r: MD_SINGLE or
 * of the blocks' shape; x: MD_SINGLE. Collective. */
md_status md_block_deflation_project(md_context *context, const md_block_deflation *d, md_field *r,
                                     md_field *x);
