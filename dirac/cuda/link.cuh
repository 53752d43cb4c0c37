#pragma once

#include <math_constants.h>

#include "lattice/fields/cuda/storage.cuh"
#include "lattice/gauge/su3.h"

/* clang-format off */
/* Products of a stored link U in SU(3) with a colour vector v. A link is stored in R = 18, 12 or 8
 * reals, one in U(3) in R = 13 or 9; complex numbers stand as real and imaginary part in turn.
 * z* is the conjugate of z, rows and components count from 0.
 *
 * R = 18: all nine elements, row by row.
 *
 * R = 12: rows 0 and 1. Row 2 is (row 0 x row 1)*, the conjugate of their cross product:
 *
 *     U_2j = (U_0k U_1l - U_0l U_1k)*,   (j, k, l) = (0, 1, 2), (1, 2, 0), (2, 0, 1).
 *
 * R = 8: stereographic coordinates p, q (complex), t (real) and g (three reals), which need neither
 * a root nor an angle function to read and have no singular point. Write the first row of U as
 * (c e^{i theta}, y, z) with c >= 0, and theta = 2 phi. Then
 *
 *     U = diag(1, S) H diag(e^{i theta}, 1, 1)
 *
 * with a 3x3 matrix H that makes the first row, and a 2x2 matrix S that turns the other two:
 *
 *     p = y / (1 + c)
 *     q = z / (1 + c)                      so that |p|^2 + |q|^2 <= 1,
 *     k = 2 / (1 + |p|^2 + |q|^2)          which is 1 + c;
 *     s = k (v_0 + p v_1 + q v_2)
 *     H v = (s - v_0, v_1 - p* s, v_2 - q* s)
 *
 *     S = e^{-i phi} (  a   b  )           with |a|^2 + |b|^2 = 1 and Re a >= 0.
 *                    ( -b*  a* )
 *
 * phi and phi + pi give the same theta and opposite S: that is how Re a >= 0 is had. Stored are
 *
 *     t = tan(phi / 2)                     cos phi = 2 / (1 + t^2) - 1
 *                                          sin phi = 2 t / (1 + t^2)
 *     g = (Im a, Re b, Im b) / (1 + Re a)  so that |g| <= 1,
 *                                          1 + Re a = 2 / (1 + |g|^2).
 *
 * H is unitary with determinant 1 (it is the reflection 1 - k w w^dag, w = (1, p*, q*), with its
 * first row negated), S has determinant e^{-i theta}: so U has determinant 1. An error of a
 * coordinate in the order of its rounding changes U by as much, whatever U is, so that a unit link
 * and a link with U_00 = 0 are as accurate as any other.
 *
 * R = 13 and 9: a link in U(3) is e^{i phi} V with phi = arg(det) / 3, |phi| <= pi/3, and V in
 * SU(3). Stored are V in 12 or 8 reals and, last, t = tan(phi/2), which is at most 0.58. */
/* clang-format on */

static __device__ inline float reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
static __device__ inline double reciprocal(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  r = fma(fma(-x, r, 1.0), r, r);
  return fma(fma(-x, r, 1.0), r, r);
}

template <class T> struct complex_of { T re, im; };
/* c += a b and c += a* b */
template <class T>
static __device__ inline void add_product(complex_of<T> &c, complex_of<T> a, complex_of<T> b) {
  c.re += a.re * b.re;
  c.re -= a.im * b.im;
  c.im += a.re * b.im;
  c.im += a.im * b.re;
}
template <class T>
static __device__ inline void add_conjugate_product(complex_of<T> &c, complex_of<T> a,
                                                    complex_of<T> b) {
  c.re += a.re * b.re;
  c.re += a.im * b.im;
  c.im += a.re * b.im;
  c.im -= a.im * b.re;
}

/* Whether a link has a phase behind the reals of SU(3). */
template <int R> constexpr bool has_phase = R == 13 || R == 9;

/* e^{i phi} for t = tan(phi/2) */
template <class T> static __device__ inline complex_of<T> phase_of(T t) {
  const T k = T(2) * reciprocal(T(1) + t * t);
  return {k - T(1), t * k};
}

/* v = z v */
template <class T> static __device__ inline void turn_vector(complex_of<T> z, T v[6]) {
#pragma unroll
  for (int c = 0; c < 6; c += 2) {
    const complex_of<T> old = {v[c], v[c + 1]};
    complex_of<T> turned = {T(0), T(0)};
    add_product(turned, z, old);
    v[c] = turned.re, v[c + 1] = turned.im;
  }
}

/* Coordinates of R = 8 as they enter the product. */
template <class T> struct eight {
  complex_of<T> p, q, first, a, b; /* first = e^{i theta}; a, b with e^{-i phi} multiplied in */
  complex_of<T> turn;              /* e^{-2 i phi}: second row of S is turn (-b*, a*) of those */
  T k;
};

template <class T> static __device__ inline eight<T> decode_eight(const T u[8]) {
  eight<T> e;
  e.p = {u[0], u[1]};
  e.q = {u[2], u[3]};
  e.k = T(2) * reciprocal(T(1) + u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + u[3] * u[3]);
  const T kt = T(2) * reciprocal(T(1) + u[4] * u[4]);
  const complex_of<T> phase = {kt - T(1), u[4] * kt}; /* e^{i phi} */
  e.first = {phase.re * phase.re - phase.im * phase.im, T(2) * phase.re * phase.im};
  e.turn = {e.first.re, -e.first.im};
  const T kg = T(2) * reciprocal(T(1) + u[5] * u[5] + u[6] * u[6] + u[7] * u[7]);
  const complex_of<T> a = {kg - T(1), u[5] * kg}, b = {u[6] * kg, u[7] * kg};
  e.a = e.b = {T(0), T(0)};
  add_conjugate_product(e.a, phase, a);
  add_conjugate_product(e.b, phase, b);
  return e;
}

/* acc += U v; without the phase of R = 13 and 9, which the vector gets first (turn_vector). */
template <int R, class T>
static __device__ inline void add_link_product(const T u[R], const T v[6], T acc[6]) {
  if constexpr (has_phase<R>) {
    add_link_product<R - 1>(u, v, acc);
  } else if constexpr (R == 8) {
    const eight<T> e = decode_eight(u);
    const complex_of<T> v1 = {v[2], v[3]}, v2 = {v[4], v[5]};
    complex_of<T> v0 = {T(0), T(0)};
    add_product(v0, e.first, {v[0], v[1]});
    complex_of<T> s = v0;
    add_product(s, e.p, v1);
    add_product(s, e.q, v2);
    s = {e.k * s.re, e.k * s.im};
    acc[0] += s.re - v0.re;
    acc[1] += s.im - v0.im;
    const complex_of<T> minus = {-s.re, -s.im};
    complex_of<T> y1 = v1, y2 = v2;
    add_conjugate_product(y1, e.p, minus);
    add_conjugate_product(y2, e.q, minus);
    complex_of<T> w1 = {acc[2], acc[3]}, w2 = {T(0), T(0)}, w3 = {acc[4], acc[5]};
    add_product(w1, e.a, y1);
    add_product(w1, e.b, y2);
    add_conjugate_product(w2, e.a, y2);
    add_conjugate_product(w2, e.b, {-y1.re, -y1.im});
    add_product(w3, e.turn, w2);
    acc[2] = w1.re, acc[3] = w1.im, acc[4] = w3.re, acc[5] = w3.im;
  } else {
    T third[6];
    if constexpr (R == 12) {
#pragma unroll
      for (int j = 0; j < 3; j++) {
        const int k = (j + 1) % 3, l = (j + 2) % 3;
        const T *x = u + 2 * k, *y = u + 6 + 2 * l, *z = u + 2 * l, *w = u + 6 + 2 * k;
        third[2 * j] = x[0] * y[0] - x[1] * y[1] - z[0] * w[0] + z[1] * w[1];
        third[2 * j + 1] = z[0] * w[1] + z[1] * w[0] - x[0] * y[1] - x[1] * y[0];
      }
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
#pragma unroll
      for (int j = 0; j < 3; j++) {
        const T re = i == 2 && R == 12 ? third[2 * j] : u[(6 * i + 2 * j) % R];
        const T im = i == 2 && R == 12 ? third[2 * j + 1] : u[(6 * i + 2 * j + 1) % R];
        acc[2 * i] += re * v[2 * j];
        acc[2 * i] -= im * v[2 * j + 1];
        acc[2 * i + 1] += re * v[2 * j + 1];
        acc[2 * i + 1] += im * v[2 * j];
      }
    }
  }
}

/* full = the matrix itself, for products with many vectors; without a phase, as the product. */
template <int R, class T> static __device__ inline void full_link(const T u[R], T full[18]) {
  if constexpr (R == 18) {
#pragma unroll
    for (int k = 0; k < 18; k++) full[k] = u[k];
  } else {
#pragma unroll
    for (int j = 0; j < 3; j++) { /* column j = U e_j */
      T unit[6] = {}, column[6] = {};
      unit[2 * j] = T(1);
      add_link_product<R>(u, unit, column);
#pragma unroll
      for (int i = 0; i < 3; i++) {
        full[6 * i + 2 * j] = column[2 * i];
        full[6 * i + 2 * j + 1] = column[2 * i + 1];
      }
    }
  }
}

/* Reals of a link as loaded -> as they enter the product. Whole links of fixed stay in steps:
 * their unit goes into the other factor. R = 8 in fixed holds tan(phi/4), which is at most 1, in
 * place of t = tan(phi/2), and so does R = 9, whose own phase is small. */
template <class S, int R> static __device__ inline void unpack_link(real_of<S> u[R]) {
  if constexpr (is_fixed<S> && R != 18) {
#pragma unroll
    for (int r = 0; r < R; r++) u[r] *= link_unit<S>;
    if constexpr (R == 8 || R == 9) u[4] = 2.0f * u[4] * reciprocal(1.0f - u[4] * u[4]);
  }
}

/* The stored form of a real of size 1 at most, and what it reads back as. */
template <class S> static __device__ inline S store_link_real(double x) {
  return store_real<S>((real_of<S>)(is_fixed<S> ? x * fixed_steps : x));
}
template <class S> static __device__ inline double load_link_real(S x) {
  return (double)load_real(x) / (is_fixed<S> ? fixed_steps : 1);
}

/* t = tan(phi/2), stored; r receives what reads back. Bounded, as +-pi may come out. */
template <class S> static __device__ inline S store_tangent(double phi, double &r) {
  if constexpr (is_fixed<S>) {
    const double most = (fixed_steps - 1.0) / fixed_steps;
    const S stored = store_link_real<S>(fmin(fmax(tan(0.25 * phi), -most), most));
    const double s = load_link_real(stored);
    r = 2.0 * s / (1.0 - s * s);
    return stored;
  }
  const double most = sizeof(S) == 2 && is_scaled<S> ? 6e4 : 1e18;
  const S stored = store_real<S>((real_of<S>)fmin(fmax(tan(0.5 * phi), -most), most));
  r = (double)load_real(stored);
  return stored;
}

/* stored[R] of the link u in SU(3), for R = 13 and 9 in U(3), rounded to S. The later coordinates
 * of R = 8 are found for the earlier ones as rounded, so that rounding errors do not pile up. */
template <class S, int R>
static __device__ inline void encode_link(const double u[18], S stored[R]) {
  if constexpr (has_phase<R>) {
    double det[2], v[18];
    md_su3_determinant(u, det);
    const double phi = atan2(det[1], det[0]) / 3.0;
    const complex_of<double> back = {cos(phi), -sin(phi)};
    for (int k = 0; k < 18; k++) v[k] = u[k];
    for (int row = 0; row < 3; row++) turn_vector(back, v + 6 * row);
    encode_link<S, R - 1>(v, stored);
    stored[R - 1] = store_link_real<S>(tan(0.5 * phi));
  } else if constexpr (R != 8) {
    for (int k = 0; k < R; k++) stored[k] = store_link_real<S>(u[k]);
  } else {
    const double c = hypot(u[0], u[1]), theta = atan2(u[1], u[0]);
    double r[8] = {}, phi = 0.5 * theta;
    for (int k = 0; k < 4; k++) stored[k] = store_link_real<S>(u[2 + k] / (1.0 + c));
    for (int k = 0; k < 4; k++) r[k] = load_link_real(stored[k]);
    for (int round = 0; round < 2; round++) {
      /* S is the product of the last two rows of U with the adjoint of the last two rows of
       * H diag(e^{i theta}, 1, 1), which are those of U for S = 1. */
      stored[4] = store_tangent<S>(phi, r[4]);
      eight<double> e = decode_eight(r);
      const double kt = 2.0 / (1.0 + r[4] * r[4]);
      const complex_of<double> phase = {kt - 1.0, r[4] * kt};
      e.a = e.turn = {1.0, 0.0};
      e.b = {0.0, 0.0};
      complex_of<double> s[2][2] = {};
      for (int j = 0; j < 3; j++) { /* column j of H diag */
        complex_of<double> v0 = j == 0 ? e.first : complex_of<double>{0.0, 0.0}, t = v0;
        if (j == 1) t = e.p;
        if (j == 2) t = e.q;
        t = {e.k * t.re, e.k * t.im};
        complex_of<double> y[2] = {{j == 1 ? 1.0 : 0.0, 0.0}, {j == 2 ? 1.0 : 0.0, 0.0}};
        add_conjugate_product(y[0], e.p, {-t.re, -t.im});
        add_conjugate_product(y[1], e.q, {-t.re, -t.im});
        for (int i = 0; i < 2; i++)
          for (int l = 0; l < 2; l++)
            add_conjugate_product(s[i][l], y[l],
                                  {u[6 * (i + 1) + 2 * j], u[6 * (i + 1) + 2 * j + 1]});
      }
      /* Q = e^{i phi} S = (a, b; -b*, a*); a and b are averaged over its two rows. */
      complex_of<double> q[2][2] = {};
      for (int i = 0; i < 2; i++)
        for (int l = 0; l < 2; l++) add_product(q[i][l], phase, s[i][l]);
      double a[4] = {q[0][0].re + q[1][1].re, q[0][0].im - q[1][1].im, q[0][1].re - q[1][0].re,
                     q[0][1].im + q[1][0].im};
      const double norm = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]);
      if (round == 0) {
        if (a[0] < 0.0) phi += phi > 0.0 ? -CUDART_PI : CUDART_PI;
        continue;
      }
      for (int k = 1; k < 4; k++) stored[4 + k] = store_link_real<S>(a[k] / (norm + a[0]));
    }
  }
}
