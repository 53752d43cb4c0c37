#ifndef MD_DIRAC_SOLVERS_DEVICE_SHIFT_UPDATE_CUH
#define MD_DIRAC_SOLVERS_DEVICE_SHIFT_UPDATE_CUH

extern "C" {
#include "dirac/solvers/multishift_state.h"
}
#include "dirac/solvers/device/sums.cuh"
#include "lattice/fields/cuda/pieces.cuh"

/* The vectors of multi-shift CG on a device, and the scalars that they are updated by. */
namespace {

constexpr int MOST_SHIFTS = MD_MAX_SHIFTS, STEPS = MD_SHIFT_STEPS;

/* On the device, an entry for each right-hand side, or [shift][rhs]. `step` is what the stencil
 * reads; alpha and beta are those of the iteration before. Updates wait in turns of STEPS
 * iterations; `turn` is the last iteration's place in its own. */
struct scalars {
  double step[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS];
  sum_units of_hop[MD_MAX_RHS], of_p[MD_MAX_RHS]; /* for the sums of the next kernels */
  double r_norm2[MD_MAX_RHS], p_ap[MD_MAX_RHS], limit[MD_MAX_RHS], mass2;
  double delta[MOST_SHIFTS];
  double zeta[MOST_SHIFTS][MD_MAX_RHS], before[MOST_SHIFTS][MD_MAX_RHS];
  double for_x[STEPS][MOST_SHIFTS][MD_MAX_RHS], for_p[STEPS][MOST_SHIFTS][MD_MAX_RHS];
  bool done[MOST_SHIFTS][MD_MAX_RHS];           /* before this iteration's update */
  bool resting[STEPS][MOST_SHIFTS][MD_MAX_RHS]; /* in the iteration's update */
  int turn[MD_MAX_RHS];
  int failure[MD_MAX_RHS];      /* 1: <p, A p>, 2: |r|^2 */
  long long serial[MD_MAX_RHS]; /* of the last iteration */
};

template <class S> struct pairs { S *behind[STEPS - 1], *x[MOST_SHIFTS], *p[MOST_SHIFTS]; };

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

/* The larger shifts, from the residuals of the turn: those that were kept, and `residual` as the
 * last one of a turn that is complete. */
template <class S, bool ONE>
__device__ inline void update_larger(const scalars *s, const linear_view<S> &residual,
                                     const pairs<S> &of, int n_shifts, int smallest,
                                     const piece_place &at, int count) {
  real_of<S> r[STEPS][1][6] = {};
#pragma unroll
  for (int j = 0; j < STEPS - 1; j++)
    if (j < count) load_piece<ONE>(linear_view<S>{of.behind[j], NULL, residual.stride}, at, r[j]);
  if (count == STEPS) load_piece<ONE>(residual, at, r[STEPS - 1]);
  for (int k = 0; k < n_shifts; k++)
    if (k != smallest) update_shift<S, ONE>(s, of, residual.stride, k, at, count, r);
}

/* Whether a larger shift began the turn with something left to do. */
__device__ inline bool some_move(const scalars *s, int n_shifts, int smallest, int rhs) {
  for (int k = 0; k < n_shifts; k++)
    if (k != smallest && !s->resting[0][k][rhs]) return true;
  return false;
}

/* x += for_x p, p = r + for_p p of the smallest shift, unless `start`; leaves the blocks' sums of
 * its |p|^2. The residual is kept for the larger ones until their turn is complete. */
template <class S, bool ONE>
__global__ void update_fields(const scalars *s, linear_view<S> residual, pairs<S> of, int n_shifts,
                              int smallest, int64_t sites, int n_rhs, bool start,
                              block_sums norm2) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  double term[1] = {};
  real_of<S> r[1][6], p[1][6];
  md_release_successor();
  md_wait_for_predecessor();
  const int turn = s->turn[at.rhs];
  const linear_view<S> ps = {of.p[smallest], NULL, residual.stride};
  load_piece<ONE>(ps, at, p);
  if (!start) {
    load_piece<ONE>(residual, at, r);
    if (!s->resting[turn][smallest][at.rhs]) {
      real_of<S> x[1][6], old_p[1][6];
      const linear_view<S> xs = {of.x[smallest], NULL, residual.stride};
      load_piece<ONE>(xs, at, x);
      add_times<ONE>(x, s->for_x[turn][smallest], at, p);
#pragma unroll
      for (int c = 0; c < 6; c++) {
        old_p[0][c] = p[0][c];
        p[0][c] = r[0][c];
      }
      add_times<ONE>(p, s->for_p[turn][smallest], at, old_p);
      store_piece<ONE>(xs, at, x);
      store_piece<ONE>(ps, at, p);
    }
    if (turn < STEPS - 1 && some_move(s, n_shifts, smallest, at.rhs))
      store_piece<ONE>(linear_view<S>{of.behind[turn], NULL, residual.stride}, at, r);
  }
  products_of(term, at, p, p);
  add_block_terms<ONE, one_word<S>>(term, at, norm2, blockIdx.x);
  if (!start && turn == STEPS - 1)
    update_larger<S, ONE>(s, residual, of, n_shifts, smallest, at, STEPS);
}

/* What waits of a turn that is not complete. */
template <class S, bool ONE>
__global__ void end_turn(const scalars *s, linear_view<S> residual, pairs<S> of, int n_shifts,
                         int smallest, int64_t sites, int n_rhs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  const int turn = s->turn[at.rhs];
  if (turn < STEPS - 1) update_larger<S, ONE>(s, residual, of, n_shifts, smallest, at, turn + 1);
}

} // namespace

#endif
