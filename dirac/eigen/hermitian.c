#include "dirac/eigen/hermitian.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 60 };

/* The rotation of unit vectors p and q: p' = c p - s conj(phase) q, q' = s p + c conj(phase) q. */
typedef struct rotation {
  double c, s;
  double complex phase; /* of a_pq */
  double shift;         /* that a_pp loses and a_qq gains */
} rotation;

static rotation rotation_of(double pp, double qq, double complex pq) {
  const double size = cabs(pq), theta = (qq - pp) / (2.0 * size);
  const double t = (theta < 0.0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(1.0 + theta * theta));
  const double c = 1.0 / sqrt(1.0 + t * t);
  return (rotation){c, t * c, pq / size, t * size};
}

/* p = c p + x q, q = s p + y q, over n entries. */
static void turn(int n, double c, double s, double complex x, double complex y, double *p,
                 double *q) {
  const double xr = creal(x), xi = cimag(x), yr = creal(y), yi = cimag(y);
  for (int k = 0; k < 2 * n; k += 2) {
    const double pr = p[k], pi = p[k + 1], qr = q[k], qi = q[k + 1];
    p[k] = c * pr + xr * qr - xi * qi;
    p[k + 1] = c * pi + xr * qi + xi * qr;
    q[k] = s * pr + yr * qr - yi * qi;
    q[k + 1] = s * pi + yr * qi + yi * qr;
  }
}

static void rotate(int n, double complex *a, double complex *vectors, int p, int q) {
  const double pp = creal(a[p * n + p]), qq = creal(a[q * n + q]);
  const rotation r = rotation_of(pp, qq, a[p * n + q]);
  turn(n, r.c, r.s, -r.s * r.phase, r.c * r.phase, (double *)(a + p * n), (double *)(a + q * n));
  for (int k = 0; k < n; k++) {
    a[k * n + p] = conj(a[p * n + k]);
    a[k * n + q] = conj(a[q * n + k]);
  }
  a[p * n + p] = pp - r.shift;
  a[q * n + q] = qq + r.shift;
  a[p * n + q] = a[q * n + p] = 0.0;
  if (vectors)
    turn(n, r.c, r.s, -r.s * conj(r.phase), r.c * conj(r.phase), (double *)(vectors + p * n),
         (double *)(vectors + q * n));
}

/* Rising order; vectors move with their values. */
static void sort(int n, double *values, double complex *vectors) {
  for (int i = 0; i < n; i++) {
    int least = i;
    for (int j = i + 1; j < n; j++)
      if (values[j] < values[least]) least = j;
    const double value = values[i];
    values[i] = values[least];
    values[least] = value;
    for (int k = 0; vectors && least != i && k < n; k++) {
      const double complex component = vectors[i * n + k];
      vectors[i * n + k] = vectors[least * n + k];
      vectors[least * n + k] = component;
    }
  }
}

bool md_hermitian_eigen(int n, double complex *a, double *values, double complex *vectors) {
  double norm2 = 0.0;
  bool turned = true;
  for (int e = 0; e < n * n; e++) norm2 += creal(a[e]) * creal(a[e]) + cimag(a[e]) * cimag(a[e]);
  if (!isfinite(norm2)) return false;
  if (vectors) memset(vectors, 0, (size_t)n * (size_t)n * sizeof *vectors);
  for (int i = 0; vectors && i < n; i++) vectors[i * n + i] = 1.0;
  const double nothing = 1e-17 * sqrt(norm2) + DBL_MIN;
  for (int sweep = 0; turned && sweep < MOST_SWEEPS; sweep++) {
    turned = false;
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) {
        if (cabs(a[p * n + q]) <= nothing) continue;
        rotate(n, a, vectors, p, q);
        turned = true;
      }
  }
  for (int i = 0; i < n; i++) values[i] = creal(a[i * n + i]);
  sort(n, values, vectors);
  return !turned;
}
