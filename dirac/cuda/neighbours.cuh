#ifndef MD_DIRAC_CUDA_NEIGHBOURS_CUH
#define MD_DIRAC_CUDA_NEIGHBOURS_CUH

#include "dirac/cuda/stencil.h"
#include "lattice/fields/cuda/storage.cuh"

/* The source vectors of a slot's neighbours, for one right-hand side: V-wide pieces of the planes
 * of a field. In y, z and t the neighbours of V sites are V neighbouring sites; along x they are
 * moved by one site or two. */

template <class S> struct plane_view {
  S *data;
  float *scale;
  int64_t stride;
};
template <class S> static plane_view<S> planes_of(const md_field *f) {
  return f ? plane_view<S>{(S *)f->data, f->scale, f->stride} : plane_view<S>{};
}

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

template <class S, int V>
static __device__ inline void load_scales(const plane_view<S> &f, int site, float scale[V]) {
  if constexpr (is_scaled<S>) {
    const vector_of<float, V> piece =
        *reinterpret_cast<const vector_of<float, V> *>(f.scale + site);
#pragma unroll
    for (int i = 0; i < V; i++) scale[i] = piece.v[i];
  }
}

/* The vectors of V neighbouring sites. */
template <class S, int V> struct vectors {
  real_of<S> v[V][6];
  float scale[V] = {};
  __device__ void load(const plane_view<S> &f, int site) {
    load_sites<S, V>(f, site, v);
    load_scales<S, V>(f, site, scale);
  }
  /* Sites that need not be neighbours. */
  __device__ void load_each(const plane_view<S> &f, const int site[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      load_sites<S, 1>(f, site[i], v + i);
      load_scales<S, 1>(f, site[i], scale + i);
    }
  }
  /* This one moved by one site, up: towards lower places, filled up with `last`. */
  __device__ void moved(bool up, const vectors<S, 1> &last, vectors &out) const {
#pragma unroll
    for (int i = 0; i < V; i++) {
#pragma unroll
      for (int c = 0; c < 6; c++)
        out.v[i][c] = up ? (i + 1 < V ? v[(i + 1) % V][c] : last.v[0][c])
                         : (i > 0 ? v[(i + V - 1) % V][c] : last.v[0][c]);
      out.scale[i] = up ? (i + 1 < V ? scale[(i + 1) % V] : last.scale[0])
                        : (i > 0 ? scale[(i + V - 1) % V] : last.scale[0]);
    }
  }
};

/* The far x-neighbours: the near vector moved by one, filled up with one more site. */
template <class S, int V>
static __device__ inline void load_far(const plane_view<S> &in, const md_row &row, int site, int h,
                                       int row_sites, const vectors<S, V> &near,
                                       vectors<S, V> &far) {
  const bool up = row.bits & 1u;
  const int step = up ? site + V : site - 1;
  vectors<S, 1> last;
  last.load(in, h == (up ? row_sites - V : 0) ? row.edge : step);
  near.moved(up, last, far);
}

/* Of the hops along x: the far neighbours, and those of the long links on both sides. Between them
 * lie the near ones; one side lacks two sites, the other one. */
template <class S, int V>
static __device__ inline void
load_far_and_long(const plane_view<S> &in, const md_row &row, const md_long_row &long_row, int site,
                  int h, int row_sites, const vectors<S, V> &near, vectors<S, V> &far,
                  vectors<S, V> &long_near, vectors<S, V> &long_far) {
  const bool up = row.bits & 1u;
  const int left = up ? row_sites - V - h : h; /* sites between the slot and the row's far end */
  const int first = left > 0 ? (up ? site + V : site - 1) : row.edge;
  const int second = left > 1   ? (up ? site + V + 1 : site - 2)
                     : left > 0 ? row.edge
                                : long_row.beyond;
  const bool at_near_end = h == (up ? 0 : row_sites - V);
  vectors<S, 1> last;
  last.load(in, at_near_end ? long_row.behind : up ? site - 1 : site + V);
  near.moved(!up, last, long_near);
  if constexpr (V == 1) {
    far.load(in, first);
    long_far.load(in, second);
  } else {
    const int pair[2] = {up ? first : second, up ? second : first};
    if (pair[1] == pair[0] + 1 && pair[0] % 2 == 0)
      long_far.load(in, pair[0]);
    else
      long_far.load_each(in, pair);
#pragma unroll
    for (int c = 0; c < 6; c++) last.v[0][c] = up ? long_far.v[0][c] : long_far.v[1][c];
    last.scale[0] = up ? long_far.scale[0] : long_far.scale[1];
    near.moved(up, last, far);
  }
}

#endif
