#pragma once

#include "base/random_math.h"
#include "lattice/gauge/su3.h"
#include <stdbool.h>

/* The arithmetic of heatbath.h for one link, for host and device: from the same link, staples and
 * random numbers both make the same link to rounding. Matrices as in su3.h. To be included outside
 * of extern "C", as base/random_math.h. All local. */

/* What is done with a link, and the random numbers for it. */
typedef struct md_link_update {
  bool overrelax;
  double beta;
  uint64_t seed, purpose; /* with mu in the low bits that `purpose` leaves free */
} md_link_update;

/* a[0] + i a . sigma; in SU(2) when of length 1. */
typedef struct md_quaternion {
  double a[4];
} md_quaternion;

MD_SU3_INLINE md_quaternion md_quaternion_multiply(md_quaternion x, md_quaternion y) {
  const double *a = x.a, *b = y.a;
  const md_quaternion product = {{a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
                                  a[0] * b[1] + a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
                                  a[0] * b[2] + a[2] * b[0] - a[3] * b[1] + a[1] * b[3],
                                  a[0] * b[3] + a[3] * b[0] - a[1] * b[2] + a[2] * b[1]}};
  return product;
}

/* The quaternion r with Re tr(s w) = Re tr(s r) for every s in SU(2), w being rows and columns
 * i, j of `matrix`. Returns its length and assigns the adjoint of r / length (1 when r = 0). */
MD_SU3_INLINE double md_subgroup_project(const double *matrix, int i, int j,
                                         md_quaternion *adjoint) {
  const double *ii = matrix + 8 * i, *jj = matrix + 8 * j;
  const double *ij = matrix + 6 * i + 2 * j, *ji = matrix + 6 * j + 2 * i;
  const double r[4] = {0.5 * (ii[0] + jj[0]), 0.5 * (ij[1] + ji[1]), 0.5 * (ij[0] - ji[0]),
                       0.5 * (ii[1] - jj[1])};
  const double length = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
  const double scale = length > 0.0 ? 1.0 / length : 0.0;
  adjoint->a[0] = length > 0.0 ? r[0] * scale : 1.0;
  for (int k = 1; k < 4; k++) adjoint->a[k] = -r[k] * scale;
  return length;
}

/* matrix = s matrix, s acting on rows i and j. */
MD_SU3_INLINE void md_subgroup_rotate(double *matrix, int i, int j, md_quaternion s) {
  const double *a = s.a;
  double *u = matrix + 6 * i, *v = matrix + 6 * j;
  for (int c = 0; c < 6; c += 2) {
    const double ur = u[c], ui = u[c + 1], vr = v[c], vi = v[c + 1];
    u[c] = a[0] * ur - a[3] * ui + a[2] * vr - a[1] * vi;
    u[c + 1] = a[0] * ui + a[3] * ur + a[2] * vi + a[1] * vr;
    v[c] = -a[2] * ur - a[1] * ui + a[0] * vr + a[3] * vi;
    v[c + 1] = -a[2] * ui + a[1] * ur + a[0] * vi - a[3] * vr;
  }
}

/* Draws x in [-1, 1] with density proportional to sqrt(1 - x^2) exp(z x), z >= 0: the first
 * component of an SU(2) heatbath. Its mean is I_2(z) / I_1(z). */
MD_SU3_INLINE double md_subgroup_draw_first(md_random *random, double z) {
  double x = 0.0, accept = 0.0;
  if (z < 1.0) { /* Kennedy and Pendleton would reject nearly all: draw uniformly instead */
    do {
      x = 2.0 * md_random_next_uniform(random) - 1.0;
      accept = sqrt(1.0 - x * x) * exp(z * (x - 1.0));
    } while (md_random_next_uniform(random) > accept);
    return x;
  }
  double square, last; /* x = 1 - 2 square */
  do {
    const double cosine = cos(6.283185307179586 * md_random_next_uniform(random));
    square = log(md_random_next_uniform(random));
    square += cosine * cosine * log(md_random_next_uniform(random));
    square *= -0.5 / z;
    last = md_random_next_uniform(random);
  } while (last * last > 1.0 - square);
  return 1.0 - 2.0 * square;
}

/* A random element of SU(2) with the weight exp(z/2 tr s). */
MD_SU3_INLINE md_quaternion md_subgroup_draw(md_random *random, double z) {
  const double x = md_subgroup_draw_first(random, z);
  const double length = sqrt(fmax(0.0, 1.0 - x * x));
  const double cosine = 2.0 * md_random_next_uniform(random) - 1.0;
  const double sine = sqrt(fmax(0.0, 1.0 - cosine * cosine));
  const double angle = 6.283185307179586 * md_random_next_uniform(random);
  const md_quaternion s = {
      {x, length * sine * cos(angle), length * sine * sin(angle), length * cosine}};
  return s;
}

/* u = s u for an s of each SU(2) subgroup in turn, then back onto SU(3). The action of the link is
 * -beta/3 Re tr(u staples^dag). */
MD_SU3_INLINE void md_link_renew(double u[18], const double staples[18], const md_link_update *how,
                                 md_random *random) {
  double product[18];
  md_su3_multiply_adjoint(product, u, staples);
  for (int k = 0; k < 3; k++) {
    const int i = k < 2 ? 0 : 1, j = k < 1 ? 1 : 2;
    md_quaternion adjoint, target;
    const double length = md_subgroup_project(product, i, j, &adjoint);
    target = adjoint;
    if (!how->overrelax) target = md_subgroup_draw(random, 2.0 / 3.0 * how->beta * length);
    const md_quaternion s = md_quaternion_multiply(target, adjoint); /* s r/|r| = target */
    md_subgroup_rotate(product, i, j, s);
    md_subgroup_rotate(u, i, j, s);
  }
  md_su3_reunitarise(u);
}
