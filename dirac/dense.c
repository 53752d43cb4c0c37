#include "dirac/dense.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* y -= a x, in real arithmetic: the complex product of C looks for infinities in every one. */
static void subtract(int n, double complex a, const double complex *x, double complex *y) {
  const double ar = creal(a), ai = cimag(a), *u = (const double *)x;
  double *v = (double *)y;
  for (int k = 0; k < 2 * n; k += 2) {
    v[k] -= ar * u[k] - ai * u[k + 1];
    v[k + 1] -= ar * u[k + 1] + ai * u[k];
  }
}

void md_matrix_product(int n, const double complex *a, const double complex *b,
                       double complex *out) {
  memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) subtract(n, -a[i * n + k], b + k * n, out + i * n);
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
    for (int i = 0; i < j; i++)
      subtract(n - j - 1, conj(u[i * n + j]), u + i * n + j + 1, u + j * n + j + 1);
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
    const double inverse = 1.0 / creal(u[i * n + i]);
    for (int k = i + 1; k < n; k++)
      subtract(n - k, inverse * u[i * n + k], v + k * n + k, v + i * n + k);
  }
}

enum { MOST_STEPS = 60, LANES = 4 }; /* for one eigenvalue; partial sums, side by side */

/* What the steps hand on: Q D T (Q D)^H = A with T real, tridiagonal, Q a product of reflectors. */
typedef struct tridiagonal {
  int n;
  double *diagonal, *beside; /* of T; beside[k] couples k and k + 1 */
  double *tau;               /* reflector k is 1 - tau v v^H, v in row k of A from k + 1 on */
  double complex *phase;     /* D */
  double complex *work[2];   /* n each */
} tridiagonal;

/* sum x y, with `sign` -1: sum conj(x) y */
static double complex sum_of(int n, double sign, const double complex *x, const double complex *y) {
  const double *u = (const double *)x, *v = (const double *)y;
  double re[LANES] = {0.0}, im[LANES] = {0.0};
  int k = 0;
  for (; k + LANES <= n; k += LANES)
    for (int l = 0; l < LANES; l++) {
      const double ur = u[2 * (k + l)], ui = sign * u[2 * (k + l) + 1];
      const double vr = v[2 * (k + l)], vi = v[2 * (k + l) + 1];
      re[l] += ur * vr - ui * vi;
      im[l] += ur * vi + ui * vr;
    }
  for (; k < n; k++) {
    re[0] += u[2 * k] * v[2 * k] - sign * u[2 * k + 1] * v[2 * k + 1];
    im[0] += u[2 * k] * v[2 * k + 1] + sign * u[2 * k + 1] * v[2 * k];
  }
  return re[0] + re[1] + re[2] + re[3] + I * (im[0] + im[1] + im[2] + im[3]);
}

/* x becomes the v of 1 - tau v v^H, which maps what x was to the returned number times the first
 * unit vector (Golub and Van Loan, Matrix Computations, 5.1). */
static double complex make_reflector(int n, double complex *x, double *tau) {
  const double norm = sqrt(creal(sum_of(n, -1.0, x, x))), first = cabs(x[0]);
  const double complex kept = x[0], image = first > 0.0 ? -norm / first * kept : -norm;
  *tau = 0.0;
  if (n == 1 || !(norm > 0.0)) return kept;
  x[0] -= image;
  *tau = 1.0 / (norm * (norm + first)); /* 2 / |v|^2 */
  return image;
}

/* A = (1 - tau v v^H) A (1 - tau v v^H) for n rows of A, `width` apart: with p = tau A v and
 * w = p - tau / 2 v^H p v it loses v w^H + w v^H. */
static void reflect(int n, int width, double complex *a, const double complex *v, double tau,
                    double complex *const work[2]) {
  double complex *w = work[0], *conjugate = work[1];
  for (int i = 0; i < n; i++) w[i] = tau * sum_of(n, 1.0, a + (size_t)i * (size_t)width, v);
  subtract(n, 0.5 * tau * sum_of(n, -1.0, v, w), v, w);
  for (int j = 0; j < n; j++) conjugate[j] = conj(w[j]);
  for (int i = 0; i < n; i++) subtract(n, v[i], conjugate, a + (size_t)i * (size_t)width);
  for (int j = 0; j < n; j++) conjugate[j] = conj(v[j]);
  for (int i = 0; i < n; i++) subtract(n, w[i], conjugate, a + (size_t)i * (size_t)width);
}

static void reduce(double complex *a, tridiagonal *t) {
  const int n = t->n;
  t->phase[0] = 1.0;
  for (int k = 0; k < n; k++) {
    double complex *x = a + (size_t)k * (size_t)n + k + 1; /* the column, conjugated */
    t->diagonal[k] = creal(x[-1]);
    t->beside[k] = 0.0;
    if (k + 1 == n) return;
    for (int i = 0; i < n - k - 1; i++) x[i] = conj(x[i]);
    const double complex image = make_reflector(n - k - 1, x, &t->tau[k]);
    t->beside[k] = cabs(image);
    t->phase[k + 1] = t->beside[k] > 0.0 ? t->phase[k] * image / t->beside[k] : t->phase[k];
    if (t->tau[k] > 0.0) reflect(n - k - 1, n, x + n, x, t->tau[k], t->work);
  }
}

/* Rows p and q of eigenvectors of T, as n reals. */
static void turn(int n, double c, double s, double *p, double *q) {
  for (int k = 0; k < n; k++) {
    const double below = q[k];
    q[k] = s * p[k] + c * below;
    p[k] = c * p[k] - s * below;
  }
}

/* A step of the implicit QL algorithm on rows l to m (Golub and Van Loan, 8.3; Bowdler, Martin,
 * Reinsch and Wilkinson, Numer. Math. 11 (1968) 293). */
static void step(tridiagonal *t, int l, int m, double complex *vectors) {
  double *d = t->diagonal, *e = t->beside;
  const double ahead = (d[l + 1] - d[l]) / (2.0 * e[l]);
  double g = d[m] - d[l] + e[l] / (ahead + copysign(hypot(ahead, 1.0), ahead));
  double s = 1.0, c = 1.0, p = 0.0;
  for (int i = m - 1; i >= l; i--) {
    const double f = s * e[i], b = c * e[i], r = hypot(f, g);
    e[i + 1] = r;
    if (!(r > 0.0)) {
      d[i + 1] -= p;
      e[m] = 0.0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    const double change = (d[i] - g) * s + 2.0 * c * b;
    p = s * change;
    d[i + 1] = g + p;
    g = c * change - b;
    turn(t->n, c, s, (double *)(vectors + (size_t)i * (size_t)t->n),
         (double *)(vectors + (size_t)(i + 1) * (size_t)t->n));
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0.0;
}

static bool diagonalise(tridiagonal *t, double norm, double complex *vectors) {
  const double *d = t->diagonal, *e = t->beside;
  for (int l = 0; l < t->n; l++)
    for (int steps = 0;; steps++) {
      int m = l;
      while (m + 1 < t->n &&
             fabs(e[m]) > DBL_EPSILON * (fabs(d[m]) + fabs(d[m + 1])) + 1e-18 * norm)
        m++;
      if (m == l) break;
      if (steps == MOST_STEPS) return false;
      step(t, l, m, vectors);
    }
  return true;
}

/* Row i of reals becomes Q D times it. */
static void transform_back(const tridiagonal *t, const double complex *a, double complex *row) {
  const int n = t->n;
  const double *reals = (const double *)row;
  for (int k = n - 1; k >= 0; k--) row[k] = t->phase[k] * reals[k];
  for (int k = n - 2; k >= 0; k--) {
    const double complex *v = a + (size_t)k * (size_t)n + k + 1;
    if (t->tau[k] > 0.0)
      subtract(n - k - 1, t->tau[k] * sum_of(n - k - 1, -1.0, v, row + k + 1), v, row + k + 1);
  }
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
    for (int k = 0; least != i && k < n; k++) {
      double complex *p = vectors + (size_t)i * (size_t)n + k;
      double complex *q = vectors + (size_t)least * (size_t)n + k;
      const double complex component = *p;
      *p = *q;
      *q = component;
    }
  }
}

bool md_hermitian_eigen(int n, double complex *a, double *values, double complex *vectors) {
  const size_t size = (size_t)n;
  double complex *memory = malloc(3 * size * sizeof *memory);
  double *reals = malloc(2 * size * sizeof *reals);
  const double norm = sqrt(creal(sum_of(n * n, -1.0, a, a)));
  bool sound = memory && reals && isfinite(norm);
  if (sound) {
    tridiagonal t = {n, values, reals, reals + n, memory, {memory + n, memory + 2 * size}};
    reduce(a, &t);
    memset(vectors, 0, size * size * sizeof *vectors);
    for (size_t i = 0; i < size; i++) ((double *)(vectors + i * size))[i] = 1.0;
    sound = diagonalise(&t, norm, vectors);
    for (size_t i = 0; sound && i < size; i++) transform_back(&t, a, vectors + i * size);
    if (sound) sort(n, values, vectors);
  }
  free(memory);
  free(reals);
  return sound;
}
