#pragma once

#include <complex.h>
#include <stdbool.h>

/* Small n x n complex matrices, row-major. Results do not alias arguments. */

/* out = a b */
void md_matrix_product(int n, const double complex *a, const double complex *b,
                       double complex *out);
/* out = a^H */
void md_matrix_adjoint_of(int n, const double complex *a, double complex *out);
/* A pivot over its diagonal where sums are in double. */
#define MD_MATRIX_LEAST_PIVOT 1e-13
/* Upper triangular u with u^H u = a for a Hermitian and not negative. Columns that depend on those
 * before them (pivot not above `least` of the diagonal) get zero rows. Returns the smallest pivot
 * over its diagonal, 0 when a column is dependent, -1 when an entry is not finite. */
double md_matrix_cholesky(int n, double least, const double complex *a, double complex *u);
/* v with u v = 1 on the rows of u that are not zero; zero rows and columns elsewhere. */
void md_matrix_upper_inverse(int n, const double complex *u, double complex *v);

/* Eigenvalues, rising, and orthonormal eigenvectors of a Hermitian n x n matrix by Householder's
 * reflections and the QL algorithm: component k of eigenvector i is vectors[i * n + k].
 * `a`, row-major, is overwritten. About 3 n^3 complex products, the same bits for the
 * same input; errors are a few roundings of the matrix's norm. False when an entry is not finite,
 * or there is no memory for 8 n numbers. */
bool md_hermitian_eigen(int n, double complex *a, double *values, double complex *vectors);
