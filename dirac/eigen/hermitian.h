#ifndef MD_DIRAC_EIGEN_HERMITIAN_H
#define MD_DIRAC_EIGEN_HERMITIAN_H

#include <complex.h>
#include <stdbool.h>

/* Eigenvalues, rising, and orthonormal eigenvectors of a Hermitian n x n matrix by Householder's
 * reflections and the QL algorithm: component k of eigenvector i is vectors[i * n + k]; NULL:
 * values alone. `a`, row-major, is overwritten. About 3 n^3 complex products, the same bits for the
 * same input; errors are a few roundings of the matrix's norm. False when an entry is not finite,
 * or there is no memory for 8 n numbers. */
bool md_hermitian_eigen(int n, double complex *a, double *values, double complex *vectors);

#endif
