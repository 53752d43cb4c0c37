#pragma once

#include "base/random.h"
#include <math.h>

#ifdef __CUDACC__
#define MD_SU3_INLINE static __host__ __device__ inline
#else
#define MD_SU3_INLINE static inline
#endif

/* Algebra of 3x3 complex matrices as double u[18], [row][column][re, im]: the order of a link's
 * planes. Real and imaginary parts are spelled out: the complex product of C checks for NaN and
 * calls the runtime, which no loop over sites can afford. Outputs are assigned and never alias
 * inputs, unless a function says otherwise. All local. */

/* out = 1 */
MD_SU3_INLINE void md_su3_one(double out[18]) {
  for (int k = 0; k < 18; k++) out[k] = k % 8 == 0 ? 1.0 : 0.0;
}

/* out = a b */
MD_SU3_INLINE void md_su3_multiply(double out[18], const double a[18], const double b[18]) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      double re = 0.0, im = 0.0;
      for (int k = 0; k < 3; k++) {
        const double *x = a + 2 * (3 * i + k), *y = b + 2 * (3 * k + j);
        re += x[0] * y[0] - x[1] * y[1];
        im += x[0] * y[1] + x[1] * y[0];
      }
      out[2 * (3 * i + j)] = re;
      out[2 * (3 * i + j) + 1] = im;
    }
  }
}

/* out = a b^dag */
MD_SU3_INLINE void md_su3_multiply_adjoint(double out[18], const double a[18], const double b[18]) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      double re = 0.0, im = 0.0;
      for (int k = 0; k < 3; k++) {
        const double *x = a + 2 * (3 * i + k), *y = b + 2 * (3 * j + k);
        re += x[0] * y[0] + x[1] * y[1];
        im += x[1] * y[0] - x[0] * y[1];
      }
      out[2 * (3 * i + j)] = re;
      out[2 * (3 * i + j) + 1] = im;
    }
  }
}

/* out = a^dag b */
MD_SU3_INLINE void md_su3_adjoint_multiply(double out[18], const double a[18], const double b[18]) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      double re = 0.0, im = 0.0;
      for (int k = 0; k < 3; k++) {
        const double *x = a + 2 * (3 * k + i), *y = b + 2 * (3 * k + j);
        re += x[0] * y[0] + x[1] * y[1];
        im += x[0] * y[1] - x[1] * y[0];
      }
      out[2 * (3 * i + j)] = re;
      out[2 * (3 * i + j) + 1] = im;
    }
  }
}

/* out = a^dag */
MD_SU3_INLINE void md_su3_adjoint(double out[18], const double a[18]) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      out[2 * (3 * i + j)] = a[2 * (3 * j + i)];
      out[2 * (3 * i + j) + 1] = -a[2 * (3 * j + i) + 1];
    }
  }
}

/* Re tr a, and Re tr(a b^dag) */
MD_SU3_INLINE double md_su3_trace(const double a[18]) {
  return a[0] + a[8] + a[16];
}
MD_SU3_INLINE double md_su3_trace_adjoint(const double a[18], const double b[18]) {
  double sum = 0.0;
  for (int k = 0; k < 18; k++) sum += a[k] * b[k];
  return sum;
}

/* Third row = conj(row 1 x row 2), in place; for a unitary u of determinant 1 it changes nothing.
 */
MD_SU3_INLINE void md_su3_third_row(double u[18]) {
  for (int j = 0; j < 3; j++) {
    const int k = (j + 1) % 3, l = (j + 2) % 3;
    const double *a = u + 2 * k, *b = u + 6 + 2 * l, *c = u + 2 * l, *d = u + 6 + 2 * k;
    u[12 + 2 * j] = (a[0] * b[0] - a[1] * b[1]) - (c[0] * d[0] - c[1] * d[1]);
    u[13 + 2 * j] = (c[0] * d[1] + c[1] * d[0]) - (a[0] * b[1] + a[1] * b[0]);
  }
}

/* det = (re, im) of the determinant: row 3 times (row 1 x row 2). */
MD_SU3_INLINE void md_su3_determinant(const double u[18], double det[2]) {
  double v[18];
  for (int k = 0; k < 12; k++) v[k] = u[k];
  md_su3_third_row(v);
  det[0] = det[1] = 0.0;
  for (int k = 12; k < 18; k += 2) {
    det[0] += u[k] * v[k] + u[k + 1] * v[k + 1];
    det[1] += u[k + 1] * v[k] - u[k] * v[k + 1];
  }
}

/* Scales row v (three complex numbers) to unit length. */
MD_SU3_INLINE void md_su3_normalise_row(double v[6]) {
  double norm = 0.0;
  for (int k = 0; k < 6; k++) norm += v[k] * v[k];
  const double scale = 1.0 / sqrt(norm);
  for (int k = 0; k < 6; k++) v[k] *= scale;
}

/* Back onto SU(3), in place: Gram-Schmidt on rows 1 and 2, then the third row. The first two rows
 * must be linearly independent. */
MD_SU3_INLINE void md_su3_reunitarise(double u[18]) {
  md_su3_normalise_row(u);
  double re = 0.0, im = 0.0; /* <row 1, row 2> */
  for (int k = 0; k < 6; k += 2) {
    re += u[k] * u[6 + k] + u[k + 1] * u[7 + k];
    im += u[k] * u[7 + k] - u[k + 1] * u[6 + k];
  }
  for (int k = 0; k < 6; k += 2) {
    u[6 + k] -= re * u[k] - im * u[k + 1];
    u[7 + k] -= re * u[k + 1] + im * u[k];
  }
  md_su3_normalise_row(u + 6);
  md_su3_third_row(u);
}

/* Uniform over the group (Haar): Gram-Schmidt makes rows 1 and 2 of normal deviates a uniform
 * orthonormal pair, which SU(3) completes in one way. */
static inline void md_su3_random(md_random *random, double u[18]) {
  for (int k = 0; k < 12; k += 2) md_random_normal(random, u + k);
  md_su3_reunitarise(u);
}
