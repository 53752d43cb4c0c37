#ifndef MD_DIRAC_EIGEN_HERMITIAN_H
#define MD_DIRAC_EIGEN_HERMITIAN_H

#include <complex.h>
#include <stdbool.h>

/* Eigenvalues, rising, and orthonormal eigenvectors of a Hermitian n x n matrix by Jacobi's
 * rotations (Golub and Van Loan, Matrix Computations, 8.5): component k of eigenvector i is
 * vectors[i * n + k]; NULL: values alone. `a`, row-major, is overwritten; what is left off its
 * diagonal is below n 1e-17 of its norm. About 10 n^3 complex products, the same bits for the same
 * input. False when an entry is not finite. */
bool md_hermitian_eigen(int n, double complex *a, double *values, double complex *vectors);

#endif
