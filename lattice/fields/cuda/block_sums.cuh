#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_SUMS_CUH
#define MD_LATTICE_FIELDS_CUDA_BLOCK_SUMS_CUH

#include "lattice/fields/cuda/block_single.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* Sums over fields in 32 or 16 bits, with the index maps of block_rows.cuh. Eight rows are one
 * colour of eight sites, because the scale of a site belongs to all of its colours. */

namespace md_block_rows {

/* N: the number of right-hand sides where the compiler knows it, or 0. Only then is a row read by
 * vectors, without a branch: one that chooses how to read waits for what it has read. */
template <class S, int N = 0> struct narrow_view {
  S *data;
  float *scale; /* of each site, where S has them */
  int64_t sites, rows;
  int of_row;
  __device__ int n() const { return N ? N : of_row; }
  __device__ float unit(int64_t site) const { return is_scaled<S> ? scale[site] : 1.0f; }
  /* For sums in double, which fields in single have. */
  __device__ double2 get(int64_t row, int i) const {
    static_assert(!is_scaled<S>, "without the scale of the site");
    const vector_of<S, 2> z = ((const vector_of<S, 2> *)data)[row * n() + i];
    return make_double2(load_real(z.v[0]), load_real(z.v[1]));
  }
};

template <class S, int N = 0> static inline narrow_view<S, N> narrow_view_of(const md_field *f) {
  return {(S *)f->data, f->scale, f->sites, f->sites * COLOURS, f->n_rhs};
}

/* <x_i, y_j> in double: tile blockIdx.y of all, row by row. */
template <class View>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    multiply_pair(View x, View y, int side, double *partial) {
  extern __shared__ double shared[];
  const int row_tile = blockIdx.y / side, column_tile = blockIdx.y % side;
  const int64_t pieces = x.rows / ROWS, stride = (int64_t)gridDim.x * WARPS;
  gram_part sum = {};
  for (int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; k < pieces; k += stride) {
    double u[2][4], v[2][4];
    load_columns(u, x, k * ROWS, row_tile * SIDE, true);
    load_columns(v, y, k * ROWS, column_tile * SIDE, true);
    add_rows(sum, u, v);
  }
  add_warps<false>(sum, shared, partial + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * TILE);
}

/* Neighbouring numbers as they are stored, in whole registers: as halves of them the compiler would
 * take them apart where they are read, and so wait for them there. */
template <class S, int REALS> struct lane_words {
  static constexpr int WORDS = REALS * sizeof(S) / 4, EACH = WORDS < 4 ? WORDS : 4;
  static constexpr int IN_WORD = 4 / sizeof(S), BITS = 8 * sizeof(S) % 32;
  vector_of<uint32_t, EACH> of[WORDS / EACH];
  __device__ uint32_t &word(int i) { return of[i / EACH].v[i % EACH]; }
  __device__ void load(const S *from) {
#pragma unroll
    for (int e = 0; e < WORDS / EACH; e++) of[e] = ((const vector_of<uint32_t, EACH> *)from)[e];
  }
  /* The first `count` of them, zeros beyond. */
  __device__ void load_some(const S *from, int count) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) word(i) = 0;
#pragma unroll
    for (int e = 0; e < REALS; e++) {
      uint32_t bits = 0;
      if (e < count) memcpy(&bits, from + e, sizeof(S));
      word(e / IN_WORD) |= bits << e % IN_WORD * BITS;
    }
  }
  __device__ float get(int e) const {
    const uint32_t bits = of[e / IN_WORD / EACH].v[e / IN_WORD % EACH] >> e % IN_WORD * BITS;
    S value;
    memcpy((void *)&value, &bits, sizeof(S));
    return load_real(value);
  }
};

/* What a lane reads of eight sites for their sums: numbers first + 2 g + q, q < 2, neighbours, of
 * the sites 2 t + h, h < 2; zeros beyond n. */
template <class S> struct lane_pairs {
  lane_words<S, 4> of[COLOURS][2];
  float unit[2];
};
template <class S, int N>
static __device__ inline void load_pairs(lane_pairs<S> &to, const narrow_view<S, N> &f,
                                         int64_t site, int first) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, i = first + 2 * g;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const S *from = f.data + 2 * ((site + 2 * t + h) * COLOURS * f.n() + i);
    to.unit[h] = f.unit(site + 2 * t + h);
#pragma unroll
    for (int colour = 0; colour < COLOURS; colour++, from += 2 * f.n()) {
      if constexpr (N != 0)
        to.of[colour][h].load(from);
      else
        to.of[colour][h].load_some(from, 2 * (f.n() - i));
    }
  }
}

/* One colour of them as add_rows takes it. */
template <class S>
static __device__ inline void take_pairs(float (&v)[2][4], const lane_pairs<S> &from, int colour) {
#pragma unroll
  for (int e = 0; e < 8; e++) {
    const int h = e / 4, q = e % 4 / 2, part = e % 2;
    v[q][2 * part + h] = from.unit[h] * from.of[colour][h].get(e % 4);
  }
}

/* The sums of multiply_self, Gram tile blockIdx.y of the upper triangle, counted by columns; or
 * those of multiply_pair, of all tiles. */
template <bool SELF, class S, int N>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    multiply_narrow(narrow_view<S, N> x, narrow_view<S, N> y, int side, double *partial) {
  extern __shared__ double shared[];
  int row_tile = SELF ? blockIdx.y : blockIdx.y / side;
  int column_tile = SELF ? 0 : blockIdx.y % side;
  while (SELF && row_tile > column_tile) row_tile -= ++column_tile;
  const bool diagonal = SELF && (N == SIDE || row_tile == column_tile);
  const int64_t pieces = x.sites / ROWS, stride = (int64_t)gridDim.x * WARPS;
  int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  single_part sum = {};
  lane_pairs<S> now, next, other, next_other;
  const auto load_next = [&](int64_t piece) {
    load_pairs(next, x, piece * ROWS, row_tile * SIDE);
    if (!diagonal) load_pairs(next_other, y, piece * ROWS, column_tile * SIDE);
  };
  if (k < pieces) load_next(k);
  for (; k < pieces; k += stride) {
    rows_part part = {};
    now = next, other = next_other;
    if (k + stride < pieces) load_next(k + stride);
#pragma unroll
    for (int colour = 0; colour < COLOURS; colour++) {
      float u[2][4], v[2][4];
      take_pairs(u, now, colour);
      if (diagonal) {
        add_rows<is_short<S>, false>(part, u, u);
      } else {
        take_pairs(v, other, colour);
        add_rows<is_short<S>, false>(part, u, v);
      }
    }
    add_part<false>(sum, part);
  }
  add_warps<true>(in_double(sum), shared,
                  partial + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * TILE);
}

} // namespace md_block_rows

#endif
