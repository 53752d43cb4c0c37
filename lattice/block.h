#ifndef MD_LATTICE_BLOCK_H
#define MD_LATTICE_BLOCK_H

#include "lattice/field.h"

/* The right-hand sides of a field as the n = n_rhs columns of a tall matrix: products with small
 * complex matrices, row-major [i][j] of (re, im) pairs. Host fields of MD_DOUBLE with n >= 2, on
 * their local sites. */
enum { MD_MAX_BLOCK = 64 };

/* gram[i][j] = <x_i, y_j>, the sum of conj(x_i) y_j over the lattice, for a product that is
 * Hermitian (y = x, or y = A x with Hermitian A): i <= j is summed, the rest is its conjugate. The
 * same to the last bit for every rank grid and thread count. Collective. */
md_status md_block_gram(md_context *context, const md_field *x, const md_field *y, double *gram);
/* y_j = sum_i (x_i a[i][j] + y_i b[i][j]); a NULL: x is added as it is; b NULL: y is kept as it is;
 * x NULL: nothing is added. x is not y. Local. */
void md_block_combine(const double *a, const md_field *x, const double *b, md_field *y);

#endif
