#pragma once

#include "base/device.cuh"
#include "lattice/fields/cuda/storage.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

#include <type_traits>

extern "C" {
#include "lattice/fields/field.h"
}

/* What kernels over vectors share. A thread has a piece of a field: C reals of V neighbours, which
 * are sites of the only right-hand side (ONE), V dividing their number, or right-hand sides of a
 * site, V dividing theirs. C is all that a staggered site has, MD_WHOLE, or one pair of components
 * at a time of a site with any number of them. Thread (j, i) of a block of block_of has the j-th
 * piece of the block's i-th site. */
enum { MD_WHOLE = 6, MD_PAIR = 2 };

template <class S> struct linear_view {
  S *data;
  float *scale;
  int64_t stride; /* from component to component, of many the pairs of a site */
};
template <class S> static linear_view<S> linear_view_of(const md_field *f) {
  return {(S *)f->data, f->scale, md_field_planar(f) ? f->stride : f->components / 2};
}

/* f(ONE, C) by a field's layout, as types; C is MD_WHOLE or MD_PAIR. */
template <class F> static void with_layout(const md_field *x, F f) {
  const std::integral_constant<int, MD_WHOLE> whole;
  const std::integral_constant<int, MD_PAIR> pair;
  if (x->components == MD_WHOLE)
    md_field_planar(x) ? f(std::true_type(), whole) : f(std::false_type(), whole);
  else
    md_field_planar(x) ? f(std::true_type(), pair) : f(std::false_type(), pair);
}

/* The descriptor of a field's numbers as if some of its pairs were right-hand sides too, up to 32
 * of which its own R are the fastest: number r is of right-hand side r % R. So neighbouring threads
 * of a site with many pairs read neighbouring numbers. Planes, and sites with an odd number of
 * pairs, stay. */
static inline md_field md_widened(const md_field *f) {
  md_field wide = *f;
  while (!md_field_planar(f) && wide.components % 4 == 0 && wide.n_rhs <= 16)
    wide.components /= 2, wide.n_rhs *= 2;
  return wide;
}

/* One for each right-hand side of `wide`; ones for NULL. a: of the n_rhs that it was made from. */
struct coefficients {
  double of[MD_MAX_RHS];
};
static inline coefficients coefficients_of(const double *a, int n_rhs, const md_field &wide) {
  coefficients c;
  for (int r = 0; r < wide.n_rhs; r++) c.of[r] = a ? a[r % n_rhs] : 1.0;
  return c;
}

/* A thread's piece; one beyond the last site repeats the last piece and stores nothing. */
struct piece_place {
  int64_t site;
  int n_rhs, rhs;
  bool active;
};
template <int V, bool ONE>
static __device__ inline piece_place place_of(int64_t sites, int n_rhs, int64_t block) {
  const int64_t site = (block * blockDim.y + threadIdx.y) * (ONE ? V : 1);
  const bool active = site < sites;
  return {active ? site : sites - (ONE ? V : 1), n_rhs, ONE ? 0 : (int)threadIdx.x * V, active};
}

static inline dim3 block_of(const md_field *f, int v = 1) {
  const int pieces = md_field_planar(f) ? 1 : f->n_rhs / v;
  return dim3((unsigned)pieces, (unsigned)(256 / pieces));
}
static inline unsigned all_blocks(const md_field *f, dim3 block, int v = 1) {
  const int64_t sites = (int64_t)block.y * (md_field_planar(f) ? v : 1);
  return (unsigned)((f->sites + sites - 1) / sites);
}
/* Shared memory of add_block. */
static inline size_t shared_of(dim3 block, int v = 1) {
  return (size_t)block.x * block.y * v * sizeof(unit_sum);
}

/* Neighbouring reals of a piece, `piece_reals` of them, lie together for each of its parts:
 * components of ONE, colours of many. Real i of part c is v[neighbour][component]. */
template <int V, bool ONE> constexpr int piece_reals = ONE ? V : 2 * V;
template <bool ONE, int C> constexpr int piece_parts = ONE ? C : C / 2;
template <bool ONE, class T, int V, int C>
static __device__ inline T &real_at(T (&v)[V][C], int c, int i) {
  if constexpr (ONE)
    return v[i][c];
  else
    return v[i / 2][2 * c + i % 2];
}
template <bool ONE, int C>
static __device__ inline int64_t part_at(int64_t stride, const piece_place &at, int c) {
  if constexpr (ONE) return c * stride + at.site;
  return ((at.site * (C == MD_WHOLE ? C / 2 : stride) + c) * at.n_rhs + at.rhs) * 2;
}
/* The view whose first pair of components is f's pair g. */
template <bool ONE, int C, class S>
static __device__ inline linear_view<S> from_pair(const linear_view<S> &f, const piece_place &at,
                                                  int g) {
  if constexpr (C == MD_WHOLE) return f;
  return {f.data + 2 * g * (ONE ? f.stride : (int64_t)at.n_rhs), f.scale, f.stride};
}

template <bool ONE, class S, int V, int C>
static __device__ inline void load_piece(const linear_view<S> &f, const piece_place &at,
                                         real_of<S> (&v)[V][C]) {
  constexpr int reals = piece_reals<V, ONE>;
  using read_as = typename std::conditional<ONE, typename by_mantissa<S>::type, S>::type;
#pragma unroll
  for (int c = 0; c < piece_parts<ONE, C>; c++) {
    const auto part = *reinterpret_cast<const vector_of<read_as, reals> *>(
        f.data + part_at<ONE, C>(f.stride, at, c));
#pragma unroll
    for (int i = 0; i < reals; i++) real_at<ONE>(v, c, i) = load_real(part.v[i]);
  }
  if constexpr (is_scaled<S>)
#pragma unroll
    for (int i = 0; i < V; i++) {
      const float scale = f.scale[at.site + (ONE ? i : 0)];
#pragma unroll
      for (int c = 0; c < C; c++) v[i][c] *= scale;
    }
}

/* Whether the threads of a site are neighbouring lanes of one warp, a power of two of them. */
static __device__ inline bool sites_share_warps() {
  return 32 % blockDim.x == 0;
}

/* New scales of the piece's sites, from all right-hand sides of each; `before`: the largest of
 * components that are not in v. keep: they are stored at once, where all of a site has been read.
 */
template <bool ONE, class S, int V, int C>
static __device__ inline void choose_scales(const linear_view<S> &f, const piece_place &at,
                                            const float (&v)[V][C], float (&scale)[V],
                                            float before = 0.0f, bool keep = true) {
  __shared__ float shared[256];
  float largest = before;
#pragma unroll
  for (int i = 0; i < V; i++) {
    if (ONE) largest = before;
#pragma unroll
    for (int c = 0; c < C; c++) largest = larger_component<S>(largest, v[i][c]);
    scale[i] = scale_of<S>(largest);
    if (ONE && keep && at.active) f.scale[at.site + i] = scale[i];
  }
  if (ONE) return;
  if (sites_share_warps()) {
    for (int distance = 1; distance < (int)blockDim.x; distance *= 2)
      largest = larger_component<S>(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  } else {
    float *row = shared + threadIdx.y * blockDim.x;
    __syncthreads();
    row[threadIdx.x] = largest;
    __syncthreads();
    for (int j = 0; j < (int)blockDim.x; j++) largest = larger_component<S>(largest, row[j]);
  }
#pragma unroll
  for (int i = 0; i < V; i++) scale[i] = scale_of<S>(largest);
  if (keep && at.active && at.rhs == 0) f.scale[at.site] = scale[0];
}

/* Stores them in units of the scales, v as they then read back. */
template <bool ONE, class S, int V, int C>
static __device__ inline void store_scaled(const linear_view<S> &f, const piece_place &at,
                                           real_of<S> (&v)[V][C], const float (&scale)[V]) {
  constexpr int reals = piece_reals<V, ONE>;
  float inverse[V];
  if constexpr (is_scaled<S>)
#pragma unroll
    for (int i = 0; i < V; i++) inverse[i] = inverse_of_scale<S>(scale[i]);
#pragma unroll
  for (int c = 0; c < piece_parts<ONE, C>; c++) {
    vector_of<S, reals> part;
#pragma unroll
    for (int i = 0; i < reals; i++) {
      real_of<S> &value = real_at<ONE>(v, c, i);
      if constexpr (is_scaled<S>) value *= inverse[ONE ? i : i / 2];
      part.v[i] = store_real<S>(value);
      value = load_real(part.v[i]);
      if constexpr (is_scaled<S>) value *= scale[ONE ? i : i / 2];
    }
    if (at.active)
      *reinterpret_cast<vector_of<S, reals> *>(f.data + part_at<ONE, C>(f.stride, at, c)) = part;
  }
}

/* With new scales; the threads of the block go through it together. */
template <bool ONE, class S, int V, int C>
static __device__ inline void store_piece(const linear_view<S> &f, const piece_place &at,
                                          real_of<S> (&v)[V][C]) {
  float scale[V];
  if constexpr (is_scaled<S>) choose_scales<ONE>(f, at, v, scale);
  store_scaled<ONE>(f, at, v, scale);
}

/* Stores all components of a site, `pairs` of them: result(v, g) sets v to those of pair g, or to
 * all where C is MD_WHOLE, from what is stored, and is asked twice where scales depend on all. */
template <bool ONE, int C, class S, class F>
static __device__ inline void store_site(const linear_view<S> &f, const piece_place &at, int pairs,
                                         F result) {
  real_of<S> v[1][C];
  if constexpr (C == MD_WHOLE) {
    result(v, 0);
    store_piece<ONE>(f, at, v);
    return;
  }
  float scale[1], largest = 0.0f;
  if constexpr (is_scaled<S>) {
    for (int g = 0; g < pairs; g++) {
      result(v, g);
      for (int c = 0; c < C; c++) largest = larger_component<S>(largest, v[0][c]);
    }
    choose_scales<ONE>(f, at, v, scale, largest, false);
  }
  for (int g = 0; g < pairs; g++) {
    result(v, g);
    store_scaled<ONE>(from_pair<ONE, C>(f, at, g), at, v, scale);
  }
  if constexpr (is_scaled<S>) {
    if (!ONE) __syncthreads(); /* until then the other threads of the site read by the old scale */
    if (at.active && (ONE || at.rhs == 0)) f.scale[at.site] = scale[0];
  }
}

/* y += a[right-hand side] x */
template <bool ONE, class T, int V, int C>
static __device__ inline void add_times(T (&y)[V][C], const double *a, const piece_place &at,
                                        const T (&x)[V][C]) {
#pragma unroll
  for (int i = 0; i < V; i++) {
    const T factor = (T)a[at.rhs + (ONE ? 0 : i)];
#pragma unroll
    for (int c = 0; c < C; c++) y[i][c] += factor * x[i][c];
  }
}

/* term[i] = <u, v> of neighbour i, 0 where the place is not active */
template <class T, int V, int C>
static __device__ inline void products_of(double (&term)[V], const piece_place &at,
                                          const T (&u)[V][C], const T (&v)[V][C]) {
#pragma unroll
  for (int i = 0; i < V; i++) {
    term[i] = 0.0;
#pragma unroll
    for (int c = 0; c < C; c++) term[i] += at.active ? (double)u[i][c] * (double)v[i][c] : 0.0;
  }
}

/* Where the blocks of a kernel add their sums: [rhs][MD_SUM_SLOTS], in the units of their
 * right-hand side. */
struct block_sums {
  unit_sum *sum;
  const sum_units *units;
};

/* Adds the threads of a block, where a site's share a warp: by warps, and then those. */
template <bool ONE_WORD, int V>
static __device__ inline void add_warps(unit_sum (&value)[V], const block_sums &to, int block) {
  extern __shared__ unit_sum sums[]; /* [warp][neighbour][piece] */
  const int width = (int)blockDim.x, thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int i = 0; i < V; i++) {
    for (int distance = width; distance < 32; distance *= 2) {
      value[i].high += __shfl_xor_sync(0xffffffffu, value[i].high, distance);
      if (!ONE_WORD) value[i].low += __shfl_xor_sync(0xffffffffu, value[i].low, distance);
    }
    if (thread % 32 < width) sums[(thread / 32 * V + i) * width + thread % 32] = value[i];
  }
  __syncthreads();
  if (thread >= V * width) return;
  unit_sum all = sums[thread];
  for (int warp = 1; warp < width * (int)blockDim.y / 32; warp++) {
    const unit_sum other = sums[warp * V * width + thread];
    all.high += other.high;
    if (!ONE_WORD) all.low += other.low;
  }
  add_to_slot<ONE_WORD>(to.sum, thread % width * V + thread / width, block, all);
}

/* Adds the threads of a block for each right-hand side. */
template <bool ONE, bool ONE_WORD, int V>
static __device__ inline void add_block(unit_sum (&value)[V], const piece_place &at,
                                        const block_sums &to, int block) {
  if constexpr (ONE) {
    unit_sum all = value[0];
#pragma unroll
    for (int i = 1; i < V; i++) all.high += value[i].high, all.low += value[i].low;
    all = add_threads<ONE_WORD>(all);
    if (threadIdx.y == 0) add_to_slot<ONE_WORD>(to.sum, 0, block, all);
  } else if (sites_share_warps()) {
    add_warps<ONE_WORD>(value, to, block);
  } else {
    extern __shared__ unit_sum sums[]; /* [neighbour][site of the block][piece] */
    const int plane = (int)(blockDim.x * blockDim.y), width = (int)blockDim.x;
    unit_sum *mine = sums + threadIdx.y * width + threadIdx.x;
#pragma unroll
    for (int i = 0; i < V; i++) mine[i * plane] = value[i];
    for (int left = (int)blockDim.y; left > 1; left = (left + 1) / 2) {
      const int distance = (left + 1) / 2;
      __syncthreads();
      if ((int)threadIdx.y + distance < left)
#pragma unroll
        for (int i = 0; i < V; i++) {
          const unit_sum other = mine[i * plane + distance * width];
          mine[i * plane].high += other.high;
          if (!ONE_WORD) mine[i * plane].low += other.low;
        }
    }
    if (threadIdx.y == 0)
#pragma unroll
      for (int i = 0; i < V; i++) add_to_slot<ONE_WORD>(to.sum, at.rhs + i, block, mine[i * plane]);
  }
}

/* The same of one term for each neighbour. */
template <bool ONE, bool ONE_WORD, int V>
static __device__ inline void add_block_terms(const double (&term)[V], const piece_place &at,
                                              const block_sums &to, int block) {
  unit_sum value[V];
#pragma unroll
  for (int i = 0; i < V; i++)
    value[i] = unit_sum_of<ONE_WORD>(term[i], to.units[at.rhs + (ONE ? 0 : i)]);
  add_block<ONE, ONE_WORD>(value, at, to, block);
}
