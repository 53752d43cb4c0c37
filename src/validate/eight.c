#include "validate/link_bound.h"

#include <complex.h>
#include <math.h>

/* The coordinates of 8 reals, in double and in plain complex algebra: shares no code with the
 * backends that store them. */

static double complex at(const double u[18], int row, int column) {
  return u[2 * (3 * row + column)] + I * u[2 * (3 * row + column) + 1];
}

/* H diag(e^{i theta}, 1, 1) */
static void reflection(const md_eight *e, double complex h[3][3]) {
  const double complex p = e->pq[0] + I * e->pq[1], q = e->pq[2] + I * e->pq[3];
  const double complex first = cexp(2.0 * I * e->phi);
  const double k = 2.0 / (1.0 + creal(p * conj(p)) + creal(q * conj(q)));
  for (int j = 0; j < 3; j++) {
    const double complex v[3] = {j == 0 ? first : 0.0, j == 1, j == 2};
    const double complex s = k * (v[0] + p * v[1] + q * v[2]);
    h[0][j] = s - v[0];
    h[1][j] = v[1] - conj(p) * s;
    h[2][j] = v[2] - conj(q) * s;
  }
}

/* S h^dag = rows 2 and 3 of u, as far as it goes; (a, b) is the part in SU(2) of e^{i phi} S. */
double md_eight_settle(const double u[18], md_eight *e) {
  double complex h[3][3], s[2][2] = {{0.0}};
  reflection(e, h);
  for (int i = 0; i < 2; i++)
    for (int l = 0; l < 2; l++)
      for (int j = 0; j < 3; j++) s[i][l] += cexp(I * e->phi) * at(u, i + 1, j) * conj(h[l + 1][j]);
  const double complex a = s[0][0] + conj(s[1][1]), b = s[0][1] - conj(s[1][0]);
  const double norm = sqrt(creal(a * conj(a)) + creal(b * conj(b)));
  e->g[0] = cimag(a) / (norm + creal(a));
  e->g[1] = creal(b) / (norm + creal(a));
  e->g[2] = cimag(b) / (norm + creal(a));
  return creal(a) / norm;
}

double md_eight_of(const double u[18], bool other_branch, md_eight *e) {
  const double c = hypot(u[0], u[1]), pi = acos(-1.0);
  for (int k = 0; k < 4; k++) e->pq[k] = u[2 + k] / (1.0 + c);
  e->phi = 0.5 * atan2(u[1], u[0]);
  if ((md_eight_settle(u, e) < 0.0) == other_branch) return md_eight_settle(u, e);
  e->phi += e->phi > 0.0 ? -pi : pi;
  return md_eight_settle(u, e);
}

void md_link_of_eight(const md_eight *e, double u[18]) {
  double complex h[3][3];
  const double k = 2.0 / (1.0 + e->g[0] * e->g[0] + e->g[1] * e->g[1] + e->g[2] * e->g[2]);
  const double complex turn = cexp(-I * e->phi);
  const double complex a = (k - 1.0) + I * k * e->g[0], b = k * (e->g[1] + I * e->g[2]);
  const double complex s[2][2] = {{turn * a, turn * b}, {-turn * conj(b), turn * conj(a)}};
  reflection(e, h);
  for (int row = 0; row < 3; row++)
    for (int j = 0; j < 3; j++) {
      const double complex element =
          row == 0 ? h[0][j] : s[row - 1][0] * h[1][j] + s[row - 1][1] * h[2][j];
      u[2 * (3 * row + j)] = creal(element);
      u[2 * (3 * row + j) + 1] = cimag(element);
    }
}

/* t = tan(phi/2) is stored to unit |t| + floor and is held within 1e18, in half 6e4, beyond which
 * phi is off by 2/most; d phi = 2 dt / (1 + t^2). In fixed point tan(phi/4), at most 1, is stored
 * to half a step and kept one step below 1; d phi = 4 ds / (1 + s^2). The finite difference is
 * taken to the side where it is larger. */
double md_eight_angle_error(md_precision precision, double phi) {
  const md_rounding of = md_rounding_of(precision);
  if (precision == MD_FIXED) {
    const double s = fabs(tan(0.25 * phi)), step = 2.0 * of.link_floor;
    const double change = of.unit * s + (s > 1.0 - step ? 2.0 : 1.0) * of.link_floor;
    return 4.0 * (atan(s) - atan(s - change));
  }
  const double t = fabs(tan(0.5 * phi)), most = precision == MD_HALF ? 6e4 : 1e18;
  const double change = of.unit * t + of.link_floor;
  return t > most ? 2.0 / most * (1.0 + of.unit) : 2.0 * (atan(t) - atan(t - change));
}
