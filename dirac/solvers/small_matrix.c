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

double md_matrix_cholesky(int n, double least, const double complex *a, double complex *u) {
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
    if (!(pivot > least * diagonal)) {
      smallest = 0.0;
      continue;
    }
    smallest = fmin(smallest, pivot / diagonal);
    u[j * n + j] = sqrt(pivot);
    double *row = (double *)(u + j * n);
    const double inverse = 1.0 / sqrt(pivot);
    for (int k = j + 1; k < n; k++) u[j * n + k] = a[j * n + k];
    for (int i = 0; i < j; i++) {
      const double re = creal(u[i * n + j]), im = cimag(u[i * n + j]);
      const double *of = (const double *)(u + i * n);
      for (int k = j + 1; k < n; k++) {
        row[2 * k] -= re * of[2 * k] + im * of[2 * k + 1];
        row[2 * k + 1] -= re * of[2 * k + 1] - im * of[2 * k];
      }
    }
    for (int e = 2 * (j + 1); e < 2 * n; e++) row[e] *= inverse;
  }
  return smallest;
}

void md_matrix_upper_inverse(int n, const double complex *u, double complex *v) {
  memset(v, 0, (size_t)n * (size_t)n * sizeof *v);
  for (int j = 0; j < n; j++) {
    if (u[j * n + j] == 0.0) continue;
    v[j * n + j] = 1.0 / creal(u[j * n + j]);
  }
  /* Row i from the rows below it: -u_ii v_ij = sum over k > i of u_ik v_kj. */
  for (int i = n - 2; i >= 0; i--) {
    if (u[i * n + i] == 0.0) continue;
    double *row = (double *)(v + i * n);
    const double inverse = -1.0 / creal(u[i * n + i]);
    for (int k = i + 1; k < n; k++) {
      const double re = inverse * creal(u[i * n + k]), im = inverse * cimag(u[i * n + k]);
      const double *of = (const double *)(v + k * n);
      for (int j = k; j < n; j++) {
        row[2 * j] += re * of[2 * j] - im * of[2 * j + 1];
        row[2 * j + 1] += re * of[2 * j + 1] + im * of[2 * j];
      }
    }
  }
}
