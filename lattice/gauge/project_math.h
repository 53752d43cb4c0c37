#pragma once

#include "lattice/gauge/project.h"
#include "lattice/gauge/su3.h"

/* The arithmetic of project.h and of stout links for one matrix, for host and device. Matrices as
 * in su3.h. All local. */

/* Eigenvalues of a Hermitian positive q, the largest first, by the cosine solution of the
 * characteristic equation of q - tr q / 3, whose coefficients do not cancel. Errors are those of
 * rounding times the largest; symmetric functions of the three keep that also where two or three
 * eigenvalues meet. */
MD_SU3_INLINE void md_hermitian_eigenvalues(const double q[18], double g[3]) {
  const double mean = (q[0] + q[8] + q[16]) / 3.0;
  const double a = q[0] - mean, b = q[8] - mean, c = q[16] - mean;
  const double *x = q + 2, *y = q + 4, *z = q + 10; /* q_01, q_02, q_12 */
  const double x2 = x[0] * x[0] + x[1] * x[1], y2 = y[0] * y[0] + y[1] * y[1];
  const double z2 = z[0] * z[0] + z[1] * z[1];
  const double s = (a * a + b * b + c * c + 2.0 * (x2 + y2 + z2)) / 6.0;
  const double xz[2] = {x[0] * z[0] - x[1] * z[1], x[0] * z[1] + x[1] * z[0]};
  const double det = a * b * c + 2.0 * (xz[0] * y[0] + xz[1] * y[1]) - a * z2 - b * y2 - c * x2;
  const double root = sqrt(s), cube = s * root;
  double cosine = cube > 0.0 ? 0.5 * det / cube : 1.0;
  cosine = cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine;
  const double angle = acos(cosine) / 3.0, third = 2.0943951023931954923;
  g[0] = mean + 2.0 * root * cos(angle);
  g[2] = mean + 2.0 * root * cos(angle + third);
  g[1] = 3.0 * mean - g[0] - g[2];
}

/* By Cayley and Hamilton; false, and w not assigned, where that is ill-conditioned. w may be v. */
MD_SU3_INLINE bool md_project_analytic(const double v[18], double w[18]) {
  double q[18], g[3], p[18], product[18];
  md_su3_adjoint_multiply(q, v, v);
  const double mean = (q[0] + q[8] + q[16]) / 3.0, size = 1.0 / sqrt(mean);
  for (int k = 0; k < 18; k++) q[k] /= mean; /* of order 1 whatever the size of v */
  md_hermitian_eigenvalues(q, g);
  if (!(g[2] > MD_PROJECT_RATIO * g[0])) return false;
  const double r0 = sqrt(g[0]), r1 = sqrt(g[1]), r2 = sqrt(g[2]);
  const double a = r0 + r1 + r2, b = r0 * r1 + r1 * r2 + r2 * r0, c = r0 * r1 * r2;
  const double scale = 1.0 / (c * (a * b - c));
  const double f0 = (a * b * b - c * (a * a + b)) * scale;
  const double f1 = (2.0 * a * b - c - a * a * a) * scale, f2 = a * scale;
  for (int k = 0; k < 18; k++) p[k] = f2 * q[k]; /* p = f1 + f2 q, then f0 + p q */
  for (int k = 0; k < 18; k += 8) p[k] += f1;
  md_su3_multiply(product, p, q);
  for (int k = 0; k < 18; k += 8) product[k] += f0;
  md_su3_multiply(p, v, product);
  for (int k = 0; k < 18; k++) w[k] = size * p[k];
  return true;
}

/* Turns columns p < q of a, and those of r alike, so that those of a become orthogonal. False when
 * they are so to rounding already. */
MD_SU3_INLINE bool md_jacobi_turn(double a[18], double r[18], int p, int q) {
  double pp = 0.0, qq = 0.0, re = 0.0, im = 0.0; /* <p, q> = re + i im */
  for (int i = 0; i < 3; i++) {
    const double *x = a + 6 * i + 2 * p, *y = a + 6 * i + 2 * q;
    pp += x[0] * x[0] + x[1] * x[1];
    qq += y[0] * y[0] + y[1] * y[1];
    re += x[0] * y[0] + x[1] * y[1];
    im += x[0] * y[1] - x[1] * y[0];
  }
  const double size = sqrt(re * re + im * im);
  if (!(size > 4.4e-16 * sqrt(pp) * sqrt(qq))) return false;
  const double zeta = (qq - pp) / (2.0 * size);
  const double t = (zeta < 0.0 ? -1.0 : 1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
  const double c = 1.0 / sqrt(1.0 + t * t), s = c * t;
  re /= size;
  im /= size;
  for (int k = 0; k < 6; k++) { /* column q times re - i im, then a real rotation */
    double *x = (k < 3 ? a : r) + 6 * (k % 3) + 2 * p;
    double *y = (k < 3 ? a : r) + 6 * (k % 3) + 2 * q;
    const double yr = re * y[0] + im * y[1], yi = re * y[1] - im * y[0];
    const double xr = x[0], xi = x[1];
    x[0] = c * xr - s * yr;
    x[1] = c * xi - s * yi;
    y[0] = s * xr + c * yr;
    y[1] = s * xi + c * yi;
  }
  return true;
}

/* From v r = u diag(s), one-sided Jacobi (M. R. Hestenes, J. SIAM 6, 51 (1958)): w = u r^dag.
 * False, and w not assigned, when the smallest singular value is zero to rounding or v is not
 * finite. w may be v. */
MD_SU3_INLINE bool md_project_singular_values(const double v[18], double w[18]) {
  double a[18], r[18], most = 0.0;
  for (int k = 0; k < 18; k++) {
    a[k] = v[k];
    most = most > fabs(v[k]) ? most : fabs(v[k]);
  }
  if (!(most > 0.0)) return false;
  for (int k = 0; k < 18; k++) a[k] /= most; /* squares neither overflow nor vanish */
  md_su3_one(r);
  for (int sweep = 0; sweep < 40; sweep++) {
    const bool first = md_jacobi_turn(a, r, 0, 1), second = md_jacobi_turn(a, r, 0, 2);
    const bool third = md_jacobi_turn(a, r, 1, 2);
    if (!first && !second && !third) break;
  }
  for (int j = 0; j < 3; j++) {
    double norm = 0.0;
    for (int i = 0; i < 3; i++) {
      const double *x = a + 6 * i + 2 * j;
      norm += x[0] * x[0] + x[1] * x[1];
    }
    norm = sqrt(norm);
    if (!(norm > 1e-15)) return false;
    for (int i = 0; i < 3; i++) {
      a[6 * i + 2 * j] /= norm;
      a[6 * i + 2 * j + 1] /= norm;
    }
  }
  md_su3_multiply_adjoint(w, a, r);
  return true;
}

/* w = projection of v; says which way it went. w may be v. */
MD_SU3_INLINE md_projection_way md_project(const double v[18], double w[18]) {
  if (md_project_analytic(v, w)) return MD_PROJECT_ANALYTIC;
  return md_project_singular_values(v, w) ? MD_PROJECT_SINGULAR_VALUES : MD_PROJECT_SINGULAR;
}

/* w = exp(a) for an anti-Hermitian a: Taylor series of a / 2^n, squared n times. */
MD_SU3_INLINE void md_exponentiate(const double a[18], double w[18]) {
  enum { TERMS = 14 }; /* 0.5^15 / 15! is below the rounding of 1 */
  double x[18], product[18], norm2 = 0.0, scale = 1.0;
  int squarings = 0;
  for (int k = 0; k < 18; k++) norm2 += a[k] * a[k];
  while (norm2 * scale * scale > 0.25 && squarings < 64) {
    scale *= 0.5;
    squarings++;
  }
  for (int k = 0; k < 18; k++) x[k] = scale * a[k];
  md_su3_one(w);
  for (int n = TERMS; n > 0; n--) { /* w = 1 + x w / n */
    md_su3_multiply(product, x, w);
    md_su3_one(w);
    for (int k = 0; k < 18; k++) w[k] += product[k] / n;
  }
  for (; squarings > 0; squarings--) {
    md_su3_multiply(product, w, w);
    for (int k = 0; k < 18; k++) w[k] = product[k];
  }
}

/* out = exp(i Q) u; i Q = (omega - omega^dag) / 2 less a third of its trace, omega = sum u^dag
 * (Morningstar and Peardon, eqs. 1 to 3). */
MD_SU3_INLINE void md_stout_link(const double sum[18], const double u[18], double out[18]) {
  double omega[18], adjoint[18], turn[18];
  md_su3_multiply_adjoint(omega, sum, u);
  md_su3_adjoint(adjoint, omega);
  for (int k = 0; k < 18; k++) omega[k] = 0.5 * (omega[k] - adjoint[k]);
  const double trace = (omega[1] + omega[9] + omega[17]) / 3.0;
  for (int k = 1; k < 18; k += 8) omega[k] -= trace;
  md_exponentiate(omega, turn);
  md_su3_multiply(out, turn, u);
}

/* w in U(3) divided by the cube root of its determinant that is nearest to 1. */
MD_SU3_INLINE void md_remove_determinant(double w[18]) {
  double det[2];
  md_su3_determinant(w, det);
  const double angle = -atan2(det[1], det[0]) / 3.0, c = cos(angle), s = sin(angle);
  for (int k = 0; k < 18; k += 2) {
    const double re = w[k], im = w[k + 1];
    w[k] = c * re - s * im;
    w[k + 1] = c * im + s * re;
  }
}
