#ifndef MD_DIRAC_SOLVERS_DEVICE_CG_UPDATE_CUH
#define MD_DIRAC_SOLVERS_DEVICE_CG_UPDATE_CUH

#include "lattice/fields/cuda/pieces.cuh"

/* The pass of conjugate gradients over its vectors. The last few directions p are kept, so that x
 * is read and written once for all of them: 204 bytes a site and iteration in double, not 240. */
enum { CG_DIRECTIONS = 4 };

/* S: type of the directions, R: of r, W: of x. */
template <class S, class R, class W> struct cg_pass {
  linear_view<S> direction[CG_DIRECTIONS], p; /* p: the last of them */
  linear_view<S> next;                        /* = r + beta p; no data: none */
  linear_view<R> r;
  linear_view<W> x; /* x += alpha[k] direction[k], k < count */
  int count;
  const double *alpha, *beta; /* alpha[k * MD_MAX_RHS + rhs] */
  int64_t sites;
  int n_rhs;
  bool backwards;
  block_sums norm2; /* of next, else of p; no sum: none */
};

template <bool ONE, int V, class S, class R, class W>
static __global__ void __launch_bounds__(256) cg_vectors(cg_pass<S, R, W> a) {
  const int block = a.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const piece_place at = place_of<V, ONE>(a.sites, a.n_rhs, block);
  double term[V];
  real_of<S> p[V][6], v[V][6];
  md_release_successor();
  md_wait_for_predecessor();
  load_piece<ONE>(a.p, at, p);
  if (a.count > 0) {
    load_piece<ONE>(a.x, at, v);
#pragma unroll
    for (int k = 0; k < CG_DIRECTIONS; k++) {
      if (k >= a.count) break;
      real_of<S> u[V][6];
      load_piece<ONE>(a.direction[k], at, u);
      add_times<ONE>(v, a.alpha + k * MD_MAX_RHS, at, u);
    }
    store_piece<ONE>(a.x, at, v);
  }
  if (a.next.data) {
    load_piece<ONE>(a.r, at, v);
    add_times<ONE>(v, a.beta, at, p);
    store_piece<ONE>(a.next, at, v);
    products_of(term, at, v, v);
  } else {
    products_of(term, at, p, p);
  }
  if (a.norm2.sum) add_block_terms<ONE, one_word<S>>(term, at, a.norm2, block);
}

/* Launches it for x's lattice. */
template <bool ONE, int V, class S, class R, class W>
static void launch_pieces(const cg_pass<S, R, W> &a, const md_field *x) {
  const dim3 block = block_of(x, V);
  md_launch_early(cg_vectors<ONE, V, S, R, W>, dim3(all_blocks(x, block, V)), block,
                  shared_of(block, V), a);
}

/* Pieces of 16 bytes, of 8 for 16-bit directions of one right-hand side; lattices of even extents
 * have a multiple of eight sites of a parity. */
template <class S, class R, class W>
static void launch_vectors(const cg_pass<S, R, W> &a, const md_field *x) {
  constexpr int sites = sizeof(S) == 8 ? 2 : 4, rhs = 8 / sizeof(S);
  if (a.n_rhs == 1)
    launch_pieces<true, sites>(a, x);
  else if (a.n_rhs % rhs == 0)
    launch_pieces<false, rhs>(a, x);
  else
    launch_pieces<false, 1>(a, x);
}

#endif
