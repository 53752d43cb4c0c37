#include "dirac/solvers/small_matrix.h"

#include <math.h>
#include <string.h>

/* In real arithmetic: the complex product of C looks for infinities in every one. */
void md_matrix_product(int n, const double complex *a, const double complex *b,
                       double complex *out) {
  memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      const double re = creal(a[i * n + k]), im = cimag(a[i * n + k]);
      const double *from = (const double *)(b + k * n);
      double *to = (double *)(out + i * n);
      for (int j = 0; j < n; j++) {
        to[2 * j] += re * from[2 * j] - im * from[2 * j + 1];
        to[2 * j + 1] += re * from[2 * j + 1] + im * from[2 * j];
      }
    }
}

void md_matrix_adjoint_of(int n, const double complex *a, double complex *out) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) out[i * n + j] = conj(a[j * n + i]);
}

double md_matrix_cholesky(int n, const double complex *a, double complex *u) {
  double smallest = 1.0;
  memset(u, 0, (size_t)n * (size_t)n * sizeof *u);
  for (int j = 0; j < n; j++) {
    const double diagonal = creal(a[j * n + j]);
    double pivot = diagonal;
    for (int k = 0; k < j; k++) {
      const double complex e = u[k * n + j];
      pivot -= creal(e) * creal(e) + cimag(e) * cimag(e);
    }
    if (!isfinite(pivot)) return -1;
    if (!(pivot > 1e-13 * diagonal)) {
      smallest = 0.0;
      continue;
    }
    smallest = fmin(smallest, pivot / diagonal);
    u[j * n + j] = sqrt(pivot);
    for (int k = j + 1; k < n; k++) {
      double complex sum = a[j * n + k];
      for (int i = 0; i < j; i++) sum -= conj(u[i * n + j]) * u[i * n + k];
      u[j * n + k] = sum / sqrt(pivot);
    }
  }
  return smallest;
}

void md_matrix_upper_inverse(int n, const double complex *u, double complex *v) {
  memset(v, 0, (size_t)n * (size_t)n * sizeof *v);
  for (int j = 0; j < n; j++) {
    if (u[j * n + j] == 0.0) continue;
    v[j * n + j] = 1.0 / u[j * n + j];
    for (int i = j - 1; i >= 0; i--) {
      double complex sum = 0.0;
      if (u[i * n + i] == 0.0) continue;
      for (int k = i + 1; k <= j; k++) sum += u[i * n + k] * v[k * n + j];
      v[i * n + j] = -sum / u[i * n + i];
    }
  }
}
