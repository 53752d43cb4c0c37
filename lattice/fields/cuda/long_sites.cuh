#pragma once

#include "lattice/fields/cuda/pieces.cuh"
#include "lattice/fields/linear.h"

/* Vectors of one right-hand side whose sites have many reals side by side, as quarks with four
 * spins have. A group of G neighbouring lanes takes a site, four reals a lane at a time, in R
 * rounds: a site's scale is found without shared memory, and each real is read once. */

enum { LONG_REALS = 4, LONG_THREADS = 256, LONG_ROUNDS = 6 };

static inline bool is_long(const md_field *f) {
  return !md_field_planar(f) && f->n_rhs == 1 && f->components != MD_WHOLE &&
         f->components % LONG_REALS == 0 && f->components <= LONG_ROUNDS * 32 * LONG_REALS;
}

/* f(G, R) as types. */
template <class F> static void with_groups(const md_field *x, F f) {
  const int lanes = x->components / LONG_REALS;
  const std::integral_constant<int, 32> warp;
  if (lanes <= 8)
    f(std::integral_constant<int, 8>(), std::integral_constant<int, 1>());
  else if (lanes <= 32)
    f(warp, std::integral_constant<int, 1>());
  else if (lanes <= 64)
    f(warp, std::integral_constant<int, 2>());
  else if (lanes <= 96)
    f(warp, std::integral_constant<int, 3>());
  else
    f(warp, std::integral_constant<int, LONG_ROUNDS>());
}
template <int G> static unsigned long_blocks(const md_field *x) {
  return (unsigned)((x->sites + LONG_THREADS / G - 1) / (LONG_THREADS / G));
}

template <class S> struct long_view {
  using number = S;
  S *data;
  float *scale;
};
template <class S> static long_view<S> long_view_of(const md_field *f) {
  return {(S *)f->data, f->scale};
}

/* A lane's reals of a site; a site beyond the last repeats it and stores nothing. */
template <int G, int R> struct long_place {
  int64_t site, first;
  int reals; /* of a site, from the lane's first on */
  bool active;
  __device__ long_place(int64_t block, int64_t sites, int components) {
    const int64_t at = block * (LONG_THREADS / G) + threadIdx.x / G;
    active = at < sites;
    site = active ? at : sites - 1;
    const int lane = (int)threadIdx.x % G * LONG_REALS;
    first = site * components + lane;
    reals = components - lane;
  }
  __device__ bool has(int round) const { return round * (G * LONG_REALS) < reals; }

  /* Returns the site's scale. */
  template <class S, class T>
  __device__ T load(const long_view<S> &f, T (&v)[R][LONG_REALS]) const {
    const T scale = is_scaled<S> ? f.scale[site] : 1.0f;
#pragma unroll
    for (int n = 0; n < R; n++) {
      vector_of<S, LONG_REALS> part = {};
      if (has(n))
        part = *reinterpret_cast<const vector_of<S, LONG_REALS> *>(f.data + first +
                                                                   n * (G * LONG_REALS));
#pragma unroll
      for (int i = 0; i < LONG_REALS; i++) v[n][i] = load_real(part.v[i]) * scale;
    }
    return scale;
  }
  /* v as it then reads back; returns the site's scale. */
  template <class S, class T>
  __device__ T store(const long_view<S> &f, T (&v)[R][LONG_REALS]) const {
    T scale = 1.0f, inverse = 1.0f;
    if constexpr (is_scaled<S>) {
      float largest = 0.0f;
#pragma unroll
      for (int n = 0; n < R; n++)
#pragma unroll
        for (int i = 0; i < LONG_REALS; i++) largest = larger_component<S>(largest, v[n][i]);
#pragma unroll
      for (int distance = 1; distance < G; distance *= 2)
        largest = larger_component<S>(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
      scale = scale_of<S>(largest);
      inverse = inverse_of_scale<S>(scale);
      if (active && threadIdx.x % G == 0) f.scale[site] = scale;
    }
#pragma unroll
    for (int n = 0; n < R; n++) {
      vector_of<S, LONG_REALS> part;
#pragma unroll
      for (int i = 0; i < LONG_REALS; i++) {
        part.v[i] = store_real<S>(is_scaled<S> ? v[n][i] * inverse : v[n][i]);
        v[n][i] = load_real(part.v[i]) * scale;
      }
      if (active && has(n))
        *reinterpret_cast<vector_of<S, LONG_REALS> *>(f.data + first + n * (G * LONG_REALS)) = part;
    }
    return scale;
  }
};

/* Re <u, v> of a lane's reals. */
template <class T, int R>
static __device__ inline double product_of(bool active, const T (&u)[R][LONG_REALS],
                                           const T (&v)[R][LONG_REALS]) {
  double sum = 0.0;
#pragma unroll
  for (int n = 0; n < R; n++)
#pragma unroll
    for (int i = 0; i < LONG_REALS; i++) sum += (double)u[n][i] * (double)v[n][i];
  return active ? sum : 0.0;
}

/* |v|^2. Squares of what half stores are exact in single, which takes half of the conversions. */
template <class S, class T, int R>
static __device__ inline double norm_of(bool active, const T (&v)[R][LONG_REALS], T scale) {
  if constexpr (is_scaled<S>) {
    const T inverse = inverse_of_scale<S>(scale);
    double sum = 0.0;
#pragma unroll
    for (int n = 0; n < R; n++)
#pragma unroll
      for (int i = 0; i < LONG_REALS; i++)
        sum += (double)((v[n][i] * inverse) * (v[n][i] * inverse));
    return active ? sum * (double)scale * (double)scale : 0.0;
  } else {
    return product_of(active, v, v);
  }
}

/* out = a x + b y, out may be y; with SUMS |out|^2 too, in the terms of multiply_long. */
template <class X, class Y, int G, int R, bool SUMS>
static __global__ void combine_long(real_of<X> a, real_of<X> b, long_view<X> x, long_view<Y> y,
                                    long_view<Y> out, int64_t sites, int components,
                                    block_sums to) {
  using T = real_of<X>;
  unit_adder<> sum;
  if (SUMS) sum.begin(to.units[0]);
  for (int64_t block = blockIdx.x; block * (LONG_THREADS / G) < sites; block += gridDim.x) {
    const long_place<G, R> at(block, sites, components);
    T u[R][LONG_REALS], v[R][LONG_REALS];
    at.load(x, u);
    at.load(y, v);
#pragma unroll
    for (int n = 0; n < R; n++)
#pragma unroll
      for (int i = 0; i < LONG_REALS; i++) v[n][i] = a * u[n][i] + b * v[n][i];
    const T scale = at.store(out, v);
    if (SUMS) sum.add(norm_of<Y>(at.active, v, scale));
  }
  if constexpr (SUMS) {
    const unit_sum all = add_threads(sum.sum(to.units[0]));
    if (threadIdx.x == 0) add_to_slot(to.sum, 0, (int)blockIdx.x, all);
  }
}

/* Re <x, y>, a term the reals of a lane; as `multiply` of linear_device.cu. */
template <class X, class Y, int G, int R>
static __global__ void multiply_long(long_view<X> x, long_view<Y> y, int64_t sites, int components,
                                     unsigned long long *largest, block_sums to) {
  using T = real_of<X>;
  unsigned long long most = 0;
  unit_adder<> sum;
  if (!largest) sum.begin(to.units[0]);
  for (int64_t block = blockIdx.x; block * (LONG_THREADS / G) < sites; block += gridDim.x) {
    const long_place<G, R> at(block, sites, components);
    T u[R][LONG_REALS], v[R][LONG_REALS];
    const T scale = at.load(x, u);
    double term;
    if ((const void *)x.data == (const void *)y.data) {
      term = norm_of<X>(at.active, u, scale);
    } else {
      at.load(y, v);
      term = product_of(at.active, u, v);
    }
    if (largest)
      most = max(most, (unsigned long long)__double_as_longlong(fabs(term)));
    else
      sum.add(term);
  }
  if (largest) {
    for (int left = 16; left > 0; left /= 2)
      most = max(most, __shfl_down_sync(0xffffffffu, most, left));
    if (threadIdx.x % 32 == 0) atomicMax(largest, most);
  } else {
    const unit_sum all = add_threads(sum.sum(to.units[0]));
    if (threadIdx.x == 0) add_to_slot(to.sum, 0, (int)blockIdx.x, all);
  }
}

/* x += a[0] p[0] + a[1] p[1] + ... */
template <class S> struct long_directions {
  int count;
  real_of<S> a[MD_LINEAR_MOST_DIRECTIONS];
  long_view<S> p[MD_LINEAR_MOST_DIRECTIONS];
};
template <class S, class W, int G, int R>
static __global__ void add_long(long_directions<S> d, long_view<W> x, int64_t sites,
                                int components) {
  const long_place<G, R> at(blockIdx.x, sites, components);
  real_of<S> v[R][LONG_REALS], w[R][LONG_REALS];
  at.load(x, w);
#pragma unroll
  for (int k = 0; k < MD_LINEAR_MOST_DIRECTIONS; k++) {
    if (k >= d.count) break;
    at.load(d.p[k], v);
#pragma unroll
    for (int n = 0; n < R; n++)
#pragma unroll
      for (int i = 0; i < LONG_REALS; i++) w[n][i] += d.a[k] * v[n][i];
  }
  at.store(x, w);
}

/* x += a p; p = r + b p. */
template <class S, class W, class Z, int G, int R>
static __global__ void cg_step_long(real_of<S> a, real_of<S> b, long_view<Z> residual,
                                    long_view<S> p, long_view<W> x, int64_t sites, int components) {
  const long_place<G, R> at(blockIdx.x, sites, components);
  real_of<S> u[R][LONG_REALS], v[R][LONG_REALS], w[R][LONG_REALS];
  at.load(p, v);
  at.load(x, w);
  at.load(residual, u);
#pragma unroll
  for (int n = 0; n < R; n++)
#pragma unroll
    for (int i = 0; i < LONG_REALS; i++) {
      w[n][i] += a * v[n][i];
      v[n][i] = u[n][i] + b * v[n][i];
    }
  at.store(x, w);
  at.store(p, v);
}
