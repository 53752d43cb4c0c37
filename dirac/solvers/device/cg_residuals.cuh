#ifndef MD_DIRAC_SOLVERS_DEVICE_CG_RESIDUALS_CUH
#define MD_DIRAC_SOLVERS_DEVICE_CG_RESIDUALS_CUH

#include "lattice/fields/cuda/pieces.cuh"

extern "C" {
#include "dirac/solvers/device/cg_device.h"
}

/* The pass of conjugate gradients in residuals alone (cg_device.h): x and p take `count` steps at
 * once, x += alpha[k] p and p = r_k + beta[k] p, r_k the residual after step k. */
template <class S> struct residual_pass {
  linear_view<S> residual[MD_CG_DIRECTIONS], x, p;
  int count;
  const double *alpha, *beta; /* [k * MD_MAX_RHS + rhs] */
  int64_t sites;
  int n_rhs;
  bool backwards;
  block_sums norm2; /* of p, after the steps; no sum: none */
};

/* WHOLE: all of them, so that they are asked for together. */
template <bool ONE, bool WHOLE, int V, class S>
static __global__ void __launch_bounds__(256) cg_take_residuals(residual_pass<S> a) {
  using real = real_of<S>;
  md_release_successor();
  md_wait_for_predecessor();
  const piece_place at =
      place_of<V, ONE>(a.sites, a.n_rhs, a.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  real p[V][6];
  load_piece<ONE>(a.p, at, p);
  if (WHOLE || a.count > 0) {
    real x[V][6];
    load_piece<ONE>(a.x, at, x);
#pragma unroll
    for (int k = 0; k < MD_CG_DIRECTIONS; k++) {
      if (!WHOLE && k >= a.count) break;
      real next[V][6];
      load_piece<ONE>(a.residual[k], at, next);
      add_times<ONE>(x, a.alpha + k * MD_MAX_RHS, at, p);
      add_times<ONE>(next, a.beta + k * MD_MAX_RHS, at, p);
#pragma unroll
      for (int i = 0; i < V; i++)
#pragma unroll
        for (int c = 0; c < 6; c++) p[i][c] = next[i][c];
    }
    store_piece<ONE>(a.x, at, x);
    store_piece<ONE>(a.p, at, p);
  }
  if (!a.norm2.sum) return;
  double term[V];
  products_of(term, at, p, p);
  add_block_terms<ONE, one_word<S>>(term, at, a.norm2, (int)blockIdx.x);
}

template <bool ONE, int V, class S>
static void launch_residual_pieces(const residual_pass<S> &a, const md_field *x) {
  const dim3 block = block_of(x, V);
  const auto kernel = a.count == MD_CG_DIRECTIONS ? cg_take_residuals<ONE, true, V, S>
                                                  : cg_take_residuals<ONE, false, V, S>;
  md_launch_early(kernel, dim3(all_blocks(x, block, V)), block, shared_of(block, V), a);
}

/* Pieces of 16 bytes for x's lattice. */
template <class S> static void launch_residual_pass(const residual_pass<S> &a, const md_field *x) {
  constexpr int sites = sizeof(S) == 8 ? 2 : 4, rhs = sizeof(S) == 8 ? 1 : 2;
  if (a.n_rhs == 1)
    launch_residual_pieces<true, sites>(a, x);
  else if (a.n_rhs % rhs == 0)
    launch_residual_pieces<false, rhs>(a, x);
  else
    launch_residual_pieces<false, 1>(a, x);
}

#endif
