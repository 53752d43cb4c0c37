#ifndef MD_DIRAC_CUDA_HOP_ONE_CUH
#define MD_DIRAC_CUDA_HOP_ONE_CUH

#include "dirac/cuda/link.cuh"
#include "dirac/cuda/stencil.h"

/* One right-hand side: a thread computes the V sites of a slot from 16-byte pieces of links and
 * V-wide pieces of the source planes. */

template <class S> struct plane_view {
  S *data;
  float *scale;
  int64_t stride;
};
template <class S> static plane_view<S> planes_of(const md_field *f) {
  return f ? plane_view<S>{(S *)f->data, f->scale, f->stride} : plane_view<S>{};
}

template <class S> struct hop_arguments {
  const void *links;
  const md_row *rows;
  const int32_t *slots; /* NULL: all */
  int count;
  md_divisor per_row;
  bool keep_links;
  plane_view<S> out, in, x; /* x.data NULL: plain assignment */
  real_of<S> a, half_b;
};

static __device__ inline int divide(int n, md_divisor d) {
  return (int)(__umulhi((unsigned)n, d.magic) >> d.shift);
}

/* Largest piece of 16, 8 or 4 bytes that divides the links of a slot in a direction pair. */
template <class S, int R, int V>
constexpr int link_piece = 2 * R *V * sizeof(S) % 16 == 0  ? 16
                           : 2 * R *V * sizeof(S) % 8 == 0 ? 8
                                                           : 4;

/* v[site][c] = f values of V neighbouring sites */
template <class S, int V>
static __device__ inline void load_sites(const plane_view<S> &f, int site, real_of<S> v[V][6]) {
#pragma unroll
  for (int c = 0; c < 6; c++) {
    const vector_of<S, V> piece =
        *reinterpret_cast<const vector_of<S, V> *>(f.data + c * f.stride + site);
#pragma unroll
    for (int i = 0; i < V; i++) v[i][c] = load_real(piece.v[i]);
  }
}

/* v *= what the products still lack: the scale, and the sign unless the links hold it. */
template <class S, int R>
static __device__ inline void apply_factor(real_of<S> v[6], float scale, unsigned minus) {
  if constexpr (is_scaled<S> || R != 18) {
    real_of<S> factor = is_scaled<S> ? scale : 1.0f;
    if (R != 18 && minus) factor = -factor;
#pragma unroll
    for (int c = 0; c < 6; c++) v[c] *= factor;
  }
}

template <class S, int V>
static __device__ inline void load_scales(const plane_view<S> &f, int site, float scale[V]) {
  if constexpr (is_scaled<S>) {
    const vector_of<float, V> piece =
        *reinterpret_cast<const vector_of<float, V> *>(f.scale + site);
#pragma unroll
    for (int i = 0; i < V; i++) scale[i] = piece.v[i];
  }
}

/* out = a x + b/2 acc at the V sites */
template <class S, int V>
static __device__ inline void finish_sites(const hop_arguments<S> &h, int site,
                                           real_of<S> acc[V][6]) {
  using T = real_of<S>;
  T x[V][6];
  float scale[V];
  if (h.x.data) {
    load_sites<S, V>(h.x, site, x);
    load_scales<S, V>(h.x, site, scale);
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
#pragma unroll
    for (int c = 0; c < 6; c++) {
      acc[i][c] *= h.half_b;
      if (h.x.data) acc[i][c] += (is_scaled<S> ? h.a * (T)scale[i] : h.a) * x[i][c];
    }
  }
  if constexpr (is_scaled<S>) {
    vector_of<float, V> scales;
#pragma unroll
    for (int i = 0; i < V; i++) {
      float largest = 0.0f;
#pragma unroll
      for (int c = 0; c < 6; c++) largest = fmaxf(largest, fabsf(acc[i][c]));
      scales.v[i] = scale_of(largest);
      const float inverse = inverse_of_scale(scales.v[i]);
#pragma unroll
      for (int c = 0; c < 6; c++) acc[i][c] *= inverse;
    }
    *reinterpret_cast<vector_of<float, V> *>(h.out.scale + site) = scales;
  }
#pragma unroll
  for (int c = 0; c < 6; c++) {
    vector_of<S, V> piece;
#pragma unroll
    for (int i = 0; i < V; i++) piece.v[i] = store_real<S>(acc[i][c]);
    *reinterpret_cast<vector_of<S, V> *>(h.out.data + c * h.out.stride + site) = piece;
  }
}

/* acc += U v for one direction of the pair and all V sites */
template <class S, int R, int V>
static __device__ inline void add_direction(const S raw[2 * R * V], int side, unsigned bits,
                                            int direction, const float scale[V], real_of<S> v[V][6],
                                            real_of<S> acc[V][6]) {
  using T = real_of<S>;
#pragma unroll
  for (int i = 0; i < V; i++) {
    T u[R];
#pragma unroll
    for (int r = 0; r < R; r++) u[r] = load_real(raw[(side * R + r) * V + i]);
    apply_factor<S, R>(v[i], scale[i], bits >> (1 + direction) & 1u);
    add_link_product<R>(u, v[i], acc[i]);
  }
}

/* The far x-neighbours: the near vector moved by one, filled up with one more site. */
template <class S, int V>
static __device__ inline void load_far(const plane_view<S> &in, const md_row &row, int site, int h,
                                       int row_sites, const real_of<S> near[V][6],
                                       const float near_scale[V], real_of<S> far[V][6],
                                       float far_scale[V]) {
  using T = real_of<S>;
  const bool up = row.bits & 1u;
  const int step = up ? site + V : site - 1;
  const int extra = h == (up ? row_sites - V : 0) ? row.edge : step;
  T last[1][6];
  float last_scale[1] = {};
  load_sites<S, 1>(in, extra, last);
  load_scales<S, 1>(in, extra, last_scale);
#pragma unroll
  for (int i = 0; i < V; i++) {
#pragma unroll
    for (int c = 0; c < 6; c++)
      far[i][c] = up ? (i + 1 < V ? near[(i + 1) % V][c] : last[0][c])
                     : (i > 0 ? near[(i + V - 1) % V][c] : last[0][c]);
    far_scale[i] = up ? (i + 1 < V ? near_scale[(i + 1) % V] : last_scale[0])
                      : (i > 0 ? near_scale[(i + V - 1) % V] : last_scale[0]);
  }
}

template <class S, int R, int V>
__global__ void __launch_bounds__(128) hop_one(hop_arguments<S> a) {
  using T = real_of<S>;
  constexpr int piece = link_piece<S, R, V>, chunks = 2 * R * V * (int)sizeof(S) / piece;
  using chunk =
      typename std::conditional<piece == 16, uint4,
                                typename std::conditional<piece == 8, uint2, uint32_t>::type>::type;
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= a.count) return;
  const int slot = a.slots ? a.slots[index] : index;
  const int site = slot * V, row_number = divide(slot, a.per_row);
  const int h = (slot - row_number * (int)a.per_row.divisor) * V;
  const md_row row = a.rows[row_number];
  const uint64_t policy = link_policy(a.keep_links);
  const chunk *links =
      (const chunk *)a.links + (int64_t)(slot >> 5) * (4 * chunks * 32) + (slot & 31);
  T acc[V][6] = {};
#pragma unroll
  for (int mu = 0; mu < 4; mu++) {
    alignas(16) S raw[2 * R * V];
#pragma unroll
    for (int c = 0; c < chunks; c++)
      reinterpret_cast<chunk *>(raw)[c] = load_once(links + (mu * chunks + c) * 32, policy);
    T v[V][6], w[V][6];
    float v_scale[V] = {}, w_scale[V] = {};
    const int here = mu == 0 ? site : row.base[(mu + 2) % 3] + h;
    load_sites<S, V>(a.in, here, v);
    load_scales<S, V>(a.in, here, v_scale);
    if (mu == 0) {
      load_far<S, V>(a.in, row, site, h, (int)a.per_row.divisor * V, v, v_scale, w, w_scale);
    } else {
      load_sites<S, V>(a.in, row.base[mu + 2] + h, w);
      load_scales<S, V>(a.in, row.base[mu + 2] + h, w_scale);
    }
    add_direction<S, R, V>(raw, 0, row.bits, 2 * mu, v_scale, v, acc);
    add_direction<S, R, V>(raw, 1, row.bits, 2 * mu + 1, w_scale, w, acc);
  }
  finish_sites<S, V>(a, site, acc);
}

template <class S, int R, int V> static void launch_one(const hop_arguments<S> &a) {
  if (a.count > 0) hop_one<S, R, V><<<(a.count + 127) / 128, 128, 0, cudaStreamPerThread>>>(a);
}

template <class S, int R> static int hop_one_reals(const md_hop_call *call) {
  const md_stencil *s = call->stencil;
  const bool all = call->range == MD_RANGE_ALL;
  const int part = call->range == MD_RANGE_BOUNDARY;
  const hop_arguments<S> a = {s->links,
                              s->rows,
                              all ? NULL : s->range[part],
                              all ? (int)s->slots : s->range_count[part],
                              s->slots_per_row,
                              s->keep_links,
                              planes_of<S>(call->out),
                              planes_of<S>(call->in),
                              planes_of<S>(call->x),
                              (real_of<S>)call->a,
                              (real_of<S>)call->half_b};
  if (s->sites_per_slot == 1) launch_one<S, R, 1>(a);
  if constexpr (sizeof(S) <= 4)
    if (s->sites_per_slot == 2) launch_one<S, R, 2>(a);
  if constexpr (sizeof(S) == 2)
    if (s->sites_per_slot == 4) launch_one<S, R, 4>(a);
  return (int)cudaGetLastError();
}

template <class S> static int hop_one_any(const md_hop_call *call, int reals) {
  return reals == 18   ? hop_one_reals<S, 18>(call)
         : reals == 12 ? hop_one_reals<S, 12>(call)
                       : hop_one_reals<S, 8>(call);
}

#endif
