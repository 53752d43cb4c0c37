#pragma once

extern "C" {
#include "dirac/solvers/multishift_state.h"
}
#include "dirac/solvers/device/sums.cuh"
#include "dirac/solvers/device/three_term.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* The vectors of multi-shift CG on a device, and the scalars that they are updated by. */
namespace {

constexpr int MOST_SHIFTS = MD_MAX_SHIFTS, STEPS = MD_SHIFT_KEPT;

/* On the device, an entry for each right-hand side, or [shift][rhs]. alpha and beta are those of
 * the iteration before, p_ap too until the next stencil is done. Updates wait in turns of STEPS
 * iterations; `turn` is the last iteration's place in its own. */
struct scalars {
  double step[3][MD_MAX_RHS]; /* what the stencil reads; the first row is alpha */
  double alpha[MD_MAX_RHS], beta[MD_MAX_RHS];
  sum_units of_hop[MD_MAX_RHS]; /* for the sums of the next kernels */
  double r_norm2[MD_MAX_RHS], p_ap[MD_MAX_RHS], limit[MD_MAX_RHS], mass2;
  bool anew[MD_MAX_RHS];      /* the next stencil takes p, */
  double p_norm2[MD_MAX_RHS]; /* with this |p|^2 */
  double delta[MOST_SHIFTS];
  double zeta[MOST_SHIFTS][MD_MAX_RHS], before[MOST_SHIFTS][MD_MAX_RHS];
  double for_x[STEPS][MOST_SHIFTS][MD_MAX_RHS], for_p[STEPS][MOST_SHIFTS][MD_MAX_RHS];
  bool done[MOST_SHIFTS][MD_MAX_RHS]; /* before this iteration's update */
  int steps[MOST_SHIFTS][MD_MAX_RHS]; /* of the turn, until it rests */
  int turn[MD_MAX_RHS];
  int failure[MD_MAX_RHS];      /* 1: <p, A p>, 2: |r|^2 */
  long long serial[MD_MAX_RHS]; /* of the last iteration */
};

/* residual[j]: after the iteration at j of a turn. */
template <class S> struct pairs { S *residual[STEPS], *x[MOST_SHIFTS], *p[MOST_SHIFTS]; };

/* A thread's piece: WIDTH neighbouring reals of a plane (ONE) or of complex numbers whose
 * right-hand sides lie side by side. */
struct place {
  int64_t offset;
  int rhs;
};
template <bool ONE, int WIDTH>
__device__ inline place place_in(int64_t piece, int64_t sites, int64_t stride, int n_rhs) {
  if (ONE) {
    const int64_t plane = piece / (sites / WIDTH);
    return {plane * stride + (piece - plane * (sites / WIDTH)) * WIDTH, 0};
  }
  return {piece * WIDTH, (int)((uint64_t)(piece * (WIDTH / 2)) % (uint32_t)n_rhs)};
}

/* x_k += for_x p_k, p_k = r + for_p p_k of a piece of a shift, for the iterations of the turn. */
template <class S, bool ONE, int WIDTH>
__device__ inline void update_shift(const scalars *s, S *x_data, S *p_data, int k, const place &at,
                                    const S (&r)[STEPS][WIDTH]) {
  using vector = vector_of<S, WIDTH>;
  constexpr int SIDES = ONE ? 1 : WIDTH / 2; /* right-hand sides */
  int steps[SIDES], most = 0;
#pragma unroll
  for (int i = 0; i < SIDES; i++) {
    steps[i] = s->steps[k][at.rhs + i];
    most = max(most, steps[i]);
  }
  if (most == 0) return;
  vector *const xs = reinterpret_cast<vector *>(x_data + at.offset);
  vector *const ps = reinterpret_cast<vector *>(p_data + at.offset);
  vector x = *xs, p = *ps;
#pragma unroll
  for (int j = 0; j < STEPS; j++) {
#pragma unroll
    for (int i = 0; i < SIDES; i++) {
      const S for_x = (S)s->for_x[j][k][at.rhs + i], for_p = (S)s->for_p[j][k][at.rhs + i];
      const bool moves = j < steps[i];
#pragma unroll
      for (int c = i * (WIDTH / SIDES); c < (i + 1) * (WIDTH / SIDES); c++) {
        x.v[c] = moves ? x.v[c] + for_x * p.v[c] : x.v[c];
        p.v[c] = moves ? r[j][c] + for_p * p.v[c] : p.v[c];
      }
    }
  }
  *xs = x;
  *ps = p;
}

/* All shifts take the first `count` iterations of the turn. */
template <class S, bool ONE, int WIDTH>
__global__ void __launch_bounds__(256)
    take_turn(const scalars *s, pairs<S> of, int64_t stride, int n_shifts, int64_t sites, int n_rhs,
              int64_t pieces, int count) {
  const int64_t piece = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  S r[STEPS][WIDTH] = {};
  md_release_successor();
  md_wait_for_predecessor();
  if (piece >= pieces) return;
  const place at = place_in<ONE, WIDTH>(piece, sites, stride, n_rhs);
#pragma unroll
  for (int j = 0; j < STEPS; j++)
    if (j < count) {
      const auto read = *reinterpret_cast<const vector_of<S, WIDTH> *>(of.residual[j] + at.offset);
#pragma unroll
      for (int c = 0; c < WIDTH; c++) r[j][c] = read.v[c];
    }
  for (int k = 0; k < n_shifts; k++) update_shift<S, ONE, WIDTH>(s, of.x[k], of.p[k], k, at, r);
}

} // namespace
