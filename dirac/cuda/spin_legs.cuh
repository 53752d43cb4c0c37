#pragma once

#include "dirac/cuda/hop_many.cuh"
#include "dirac/cuda/spin_slices.cuh"

/* What a thread is told of H of quarks with four spins, and its legs: a neighbour is projected to
 * half a spinor, which the link multiplies. */
enum { SPINOR = MD_SPINOR_REALS, HALF_SPINOR = SPINOR / 2 };

template <class S> struct spin_arguments {
  const S *links;
  const md_row *rows;
  const int32_t *order;
  int first, count;           /* slots first .. first + count - 1 */
  int n_rhs, columns, shares; /* columns of a site, which so many blocks share */
  md_divisor per_row;
  bool keep_links, backwards;
  const S *in, *x; /* x NULL: plain assignment */
  S *out;
  const float *in_scale, *x_scale;
  float *out_scale;
  real_of<S> a, half_b; /* half_b is b */
  real_of<S> unit[2];
  bool adjoint;                  /* H^dag */
  wall_steps<real_of<S>> matrix; /* of x, where there is none of the sum */
  const double *step;            /* not served, nor are sums */
  unit_sum *norm2;
  const sum_units *units;
};

/* y += factor i^Q x of one spin. */
template <int Q, class T> static __device__ inline void add_turned(T factor, const T *x, T *y) {
#pragma unroll
  for (int c = 0; c < 6; c += 2) {
    const T re = Q == 0 ? x[c] : Q == 1 ? -x[c + 1] : Q == 2 ? -x[c] : x[c + 1];
    const T im = Q == 0 ? x[c + 1] : Q == 1 ? x[c] : Q == 2 ? -x[c + 1] : -x[c];
    y[c] += factor * re;
    y[c + 1] += factor * im;
  }
}

/* Spin K of the half spinor of a leg: sum += factor (1 -+ gamma_mu) u psi. sign i^Q is the entry of
 * -+S_mu (dirac/wilson: gamma_mu = [[0, S], [S^dag, 0]]) in row K, which stands in column LOWER. */
template <int K, int LOWER, int Q, class T>
static __device__ inline void add_half(const T psi[SPINOR], const T u[18], T factor, T sign,
                                       T sum[SPINOR]) {
  T h[6], g[6] = {};
#pragma unroll
  for (int c = 0; c < 6; c++) h[c] = psi[6 * K + c];
  add_turned<Q>(sign, psi + HALF_SPINOR + 6 * LOWER, h);
  add_link_product<18>(u, h, g);
  add_turned<0>(factor, g, sum + 6 * K);
  add_turned<(4 - Q) % 4>(factor * sign, g, sum + HALF_SPINOR + 6 * LOWER);
}

/* S_x, S_y have their entries beside the diagonal. sign -1: of (1 +- gamma_mu). */
template <int SWAP, int Q0, int Q1, class T>
static __device__ inline void add_leg(const T psi[SPINOR], const T u[18], T factor, T sign,
                                      T sum[SPINOR]) {
  add_half<0, SWAP, Q0>(psi, u, factor, sign, sum);
  add_half<1, 1 - SWAP, Q1>(psi, u, factor, sign, sum);
}

/* The leg of stored direction D: near and far of x, which of them is forward being told by `up`,
 * then forward and backward of y, z and t. sign -1: of H^dag, where gamma_mu is -gamma_mu. */
template <int D, class T>
static __device__ inline void add_direction_leg(const T psi[SPINOR], const T u[18], T factor,
                                                T sign, bool up, T sum[SPINOR]) {
  if constexpr (D < 2) add_leg<1, 3, 3>(psi, u, factor, (D == 1) == up ? sign : -sign, sum);
  if constexpr (D == 2) add_leg<1, 0, 2>(psi, u, factor, sign, sum);
  if constexpr (D == 3) add_leg<1, 2, 0>(psi, u, factor, sign, sum);
  if constexpr (D == 4) add_leg<0, 3, 1>(psi, u, factor, sign, sum);
  if constexpr (D == 5) add_leg<0, 1, 3>(psi, u, factor, sign, sum);
  if constexpr (D == 6) add_leg<0, 2, 2>(psi, u, factor, sign, sum);
  if constexpr (D == 7) add_leg<0, 0, 0>(psi, u, factor, sign, sum);
}
