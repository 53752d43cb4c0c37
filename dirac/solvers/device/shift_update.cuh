#ifndef MD_DIRAC_SOLVERS_DEVICE_SHIFT_UPDATE_CUH
#define MD_DIRAC_SOLVERS_DEVICE_SHIFT_UPDATE_CUH

extern "C" {
#include "dirac/solvers/multishift_state.h"
}
#include "dirac/solvers/device/sums.cuh"
#include "dirac/solvers/device/three_term.cuh"
#include "lattice/fields/cuda/pieces.cuh"

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
  bool done[MOST_SHIFTS][MD_MAX_RHS];           /* before this iteration's update */
  bool resting[STEPS][MOST_SHIFTS][MD_MAX_RHS]; /* in the iteration's update */
  int turn[MD_MAX_RHS];
  int failure[MD_MAX_RHS];      /* 1: <p, A p>, 2: |r|^2 */
  long long serial[MD_MAX_RHS]; /* of the last iteration */
};

/* residual[j]: after the iteration at j of a turn. */
template <class S> struct pairs { S *residual[STEPS], *x[MOST_SHIFTS], *p[MOST_SHIFTS]; };

/* x_k += for_x p_k, p_k = r + for_p p_k of a shift for the first `count` iterations of the turn. */
template <class S, bool ONE>
__device__ inline void update_shift(const scalars *s, const pairs<S> &of, int64_t stride, int k,
                                    const piece_place &at, int count,
                                    const real_of<S> (&r)[STEPS][1][6]) {
  if (s->resting[0][k][at.rhs]) return; /* and from then on */
  real_of<S> x[1][6], p[1][6], old_p[1][6];
  const linear_view<S> ps = {of.p[k], NULL, stride}, xs = {of.x[k], NULL, stride};
  load_piece<ONE>(ps, at, p);
  load_piece<ONE>(xs, at, x);
#pragma unroll
  for (int j = 0; j < STEPS; j++) {
    if (j >= count || s->resting[j][k][at.rhs]) continue;
    add_times<ONE>(x, s->for_x[j][k], at, p);
#pragma unroll
    for (int c = 0; c < 6; c++) {
      old_p[0][c] = p[0][c];
      p[0][c] = r[j][0][c];
    }
    add_times<ONE>(p, s->for_p[j][k], at, old_p);
  }
  store_piece<ONE>(xs, at, x);
  store_piece<ONE>(ps, at, p);
}

/* All shifts, from the residuals of the turn. */
template <class S, bool ONE>
__global__ void __launch_bounds__(256)
    take_turn(const scalars *s, pairs<S> of, int64_t stride, int n_shifts, int64_t sites, int n_rhs,
              int count) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  real_of<S> r[STEPS][1][6] = {};
  md_release_successor();
  md_wait_for_predecessor();
#pragma unroll
  for (int j = 0; j < STEPS; j++)
    if (j < count) load_piece<ONE>(linear_view<S>{of.residual[j], NULL, stride}, at, r[j]);
  for (int k = 0; k < n_shifts; k++) update_shift<S, ONE>(s, of, stride, k, at, count, r);
}

} // namespace

#endif
