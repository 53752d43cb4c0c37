#pragma once

#include "lattice/fields/cuda/pieces.cuh"

extern "C" {
#include "dirac/solvers/device/cg_device.h"
}

/* The pass of conjugate gradients over its vectors. The last few directions p are kept, so that x
 * is read and written once for all of them: 204 bytes a site and iteration in double, not 240. S:
 * type of the directions, R: of r, W: of x. */
template <class S, class R, class W> struct cg_pass {
  linear_view<S> direction[MD_CG_DIRECTIONS], p; /* p: the last of them */
  linear_view<S> next;                           /* = r + beta p; no data: none */
  linear_view<R> r;
  linear_view<W> x;           /* x += alpha[k] direction[k], k < count */
  int count;                  /* 0; all if there is a next one, else any */
  const double *alpha, *beta; /* alpha[k * MD_MAX_RHS + rhs] */
  int64_t sites, pieces;      /* pieces: of a block's size */
  int n_rhs;
  bool backwards;
  block_sums norm2; /* of next, else of p; no sum: none */
};

/* Blocks of a multiprocessor, with many right-hand sides: as many as the registers allow. */
template <bool TAKES> constexpr int cg_blocks = TAKES ? 4 : 5;

/* TAKES: x takes directions. */
template <bool ONE, bool TAKES, int V, class S, class R, class W>
static __global__ void __launch_bounds__(256, ONE ? 1 : cg_blocks<TAKES>)
    cg_vectors(cg_pass<S, R, W> a) {
  using real = real_of<S>;
  unit_adder<one_word<S>> norm2[V];
  md_release_successor();
  md_wait_for_predecessor();
  const int first = ONE ? 0 : (int)threadIdx.x * V;
  if (a.norm2.sum)
#pragma unroll
    for (int i = 0; i < V; i++) norm2[i].begin(a.norm2.units[ONE ? 0 : first + i]);
  for (int64_t n = blockIdx.x; n < a.pieces; n += gridDim.x) {
    const piece_place at = place_of<V, ONE>(a.sites, a.n_rhs, a.backwards ? a.pieces - 1 - n : n);
    real p[V][6], v[V][6];
    if constexpr (TAKES) {
      load_piece<ONE>(a.x, at, v);
#pragma unroll
      for (int k = 0; k < MD_CG_DIRECTIONS; k++) {
        if (k >= a.count) break;
        load_piece<ONE>(a.direction[k], at, p);
        add_times<ONE>(v, a.alpha + k * MD_MAX_RHS, at, p);
      }
      store_piece<ONE>(a.x, at, v);
    } else {
      load_piece<ONE>(a.p, at, p);
    }
    if (a.next.data) {
      load_piece<ONE>(a.r, at, v);
      add_times<ONE>(v, a.beta, at, p);
      store_piece<ONE>(a.next, at, v);
    }
    if (a.norm2.sum) {
      double term[V];
      if (a.next.data)
        products_of(term, at, v, v);
      else
        products_of(term, at, p, p);
#pragma unroll
      for (int i = 0; i < V; i++) norm2[i].add(term[i]);
    }
  }
  if (!a.norm2.sum) return;
  unit_sum value[V];
#pragma unroll
  for (int i = 0; i < V; i++) value[i] = norm2[i].sum(a.norm2.units[ONE ? 0 : first + i]);
  const piece_place any = place_of<V, ONE>(a.sites, a.n_rhs, 0);
  add_block<ONE, one_word<S>>(value, any, a.norm2, blockIdx.x);
}

/* Launches it for x's lattice, a block for each piece. But where only the next direction of 16 bits
 * is made, of many right-hand sides, a block takes one piece after the other, so that its threads
 * meet only once, for the sums; elsewhere these take less time than memory does. */
template <bool ONE, int V, class S, class R, class W>
static void launch_pieces(cg_pass<S, R, W> a, const md_field *x, int multiprocessors) {
  const dim3 block = block_of(x, V);
  const auto kernel =
      a.count > 0 ? cg_vectors<ONE, true, V, S, R, W> : cg_vectors<ONE, false, V, S, R, W>;
  const int64_t at_once = multiprocessors * cg_blocks<false>;
  a.pieces = all_blocks(x, block, V);
  const bool in_turn = !ONE && sizeof(S) == 2 && a.count == 0 && a.pieces > at_once;
  md_launch_early(kernel, dim3((unsigned)(in_turn ? at_once : a.pieces)), block,
                  shared_of(block, V), a);
}

/* Pieces of 16 bytes, of 8 for 16-bit directions of one right-hand side; lattices of even extents
 * have a multiple of eight sites of a parity. */
template <class S, class R, class W>
static void launch_vectors(const cg_pass<S, R, W> &a, const md_field *x, int multiprocessors) {
  constexpr int sites = sizeof(S) == 8 ? 2 : 4, rhs = sizeof(S) == 8 ? 1 : 2;
  if (a.n_rhs == 1)
    launch_pieces<true, sites>(a, x, multiprocessors);
  else if (a.n_rhs % rhs == 0)
    launch_pieces<false, rhs>(a, x, multiprocessors);
  else
    launch_pieces<false, 1>(a, x, multiprocessors);
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
