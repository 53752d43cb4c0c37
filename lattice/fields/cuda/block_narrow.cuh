#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_NARROW_CUH
#define MD_LATTICE_FIELDS_CUDA_BLOCK_NARROW_CUH

#include "lattice/fields/cuda/block_single.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* Block operations on fields in 32 or 16 bits, on Tensor Cores in tf32 (block_single.cuh) with the
 * index maps of block_rows.cuh. Eight rows are one colour of eight sites, because the scale of a
 * site belongs to all of its colours: a warp has the results of all three before it stores them. */

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
  /* In double: the scales of fixed are no powers of two. */
  __device__ double2 get(int64_t row, int i) const {
    const vector_of<S, 2> z = ((const vector_of<S, 2> *)data)[row * n() + i];
    const double u = unit(is_scaled<S> ? row / COLOURS : 0);
    return make_double2(u * load_real(z.v[0]), u * load_real(z.v[1]));
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

/* The sums of multiply_self: Gram tile blockIdx.y of the upper triangle, counted by columns. */
template <class S, int N>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    multiply_narrow(narrow_view<S, N> x, double *partial) {
  extern __shared__ double shared[];
  int row_tile = blockIdx.y, column_tile = 0;
  while (row_tile > column_tile) row_tile -= ++column_tile;
  const bool diagonal = N == SIDE || row_tile == column_tile;
  const int64_t pieces = x.sites / ROWS, stride = (int64_t)gridDim.x * WARPS;
  int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  single_part sum = {};
  lane_pairs<S> now, next, other;
  if (k < pieces) load_pairs(next, x, k * ROWS, row_tile * SIDE);
  for (; k < pieces; k += stride) {
    rows_part part = {};
    now = next;
    if (k + stride < pieces) load_pairs(next, x, (k + stride) * ROWS, row_tile * SIDE);
    if (!diagonal) load_pairs(other, x, k * ROWS, column_tile * SIDE);
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

/* What a lane reads of AT_ONCE colours of site g of eight for products: numbers 2 Q t + s, s < 2 Q,
 * neighbours, so that a row of 8 Q is read by vectors; zeros beyond n. */
template <int Q, int AT_ONCE, class S> struct lane_numbers {
  lane_words<S, 4 * Q> of[AT_ONCE];
  float unit;
};
template <int Q, int AT_ONCE, class S, int N>
static __device__ inline void load_numbers(lane_numbers<Q, AT_ONCE, S> &to,
                                           const narrow_view<S, N> &f, int64_t site, int colour) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, first = 2 * Q * t;
  const S *from = f.data + 2 * (((site + g) * COLOURS + colour) * f.n() + first);
  to.unit = f.unit(site + g);
#pragma unroll
  for (int a = 0; a < AT_ONCE; a++, from += 2 * f.n()) {
    if constexpr (N != 0)
      to.of[a].load(from);
    else
      to.of[a].load_some(from, 2 * (f.n() - first));
  }
}

/* Their values. */
template <int Q, int AT_ONCE, class S>
static __device__ inline void take_numbers(float2 (&v)[AT_ONCE][2 * Q],
                                           const lane_numbers<Q, AT_ONCE, S> &x) {
#pragma unroll
  for (int e = 0; e < AT_ONCE * 2 * Q; e++) {
    const int a = e / (2 * Q), s = e % (2 * Q);
    v[a][s] = make_float2(x.unit * x.of[a].get(2 * s), x.unit * x.of[a].get(2 * s + 1));
  }
}

/* sum += (rows times matrix) for eight sites and AT_ONCE colours from `first` on: the numbers 8 q +
 * g of the sites 2 t and 2 t + 1. */
template <int Q, int AT_ONCE, bool SHORT, int COUNT>
static __device__ inline void add_products(float (&sum)[COUNT][Q][4], int first,
                                           const float2 (&v)[AT_ONCE][2 * Q],
                                           const float2 *matrix) {
#pragma unroll
  for (int q = 0; q < Q; q++) {
    float product[AT_ONCE][4] = {};
    multiply<Q, AT_ONCE, SHORT>(product, v, matrix, q);
#pragma unroll
    for (int e = 0; e < 4 * AT_ONCE; e++) sum[first + e / 4][q][e % 4] += product[e / 4][e % 4];
  }
}

/* The pair of a row that a lane has results of: number 8 q + g of site 2 t + h. */
template <class S, int N>
static __device__ inline vector_of<S, 2> *pair_at(const narrow_view<S, N> &f, int64_t site,
                                                  int colour, int q, int h) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  return (vector_of<S, 2> *)f.data + ((site + 2 * t + h) * COLOURS + colour) * f.n() + 8 * q + g;
}

/* The scales of a lane's two sites for what it is going to store, [colour][q][re of h = 0, 1, im of
 * h = 0, 1], which it stores as well. */
template <int Q, class S, int N>
static __device__ inline void find_scales(const narrow_view<S, N> &f, int64_t site,
                                          const float (&fresh)[COLOURS][Q][4], float (&scale)[2]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float largest = 0.0f;
#pragma unroll
    for (int e = 0; e < COLOURS * Q; e++) {
      largest = larger(largest, fresh[e / Q][e % Q][h]);
      largest = larger(largest, fresh[e / Q][e % Q][2 + h]);
    }
#pragma unroll
    for (int lanes = 4; lanes < 32; lanes *= 2)
      largest = larger(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    scale[h] = scale_of<S>(largest);
    if (g == 0) f.scale[site + 2 * t + h] = scale[h];
  }
}

/* Stores one colour in units of the scales and, if `summed`, adds what was stored to the sums. */
template <int Q, bool GRAM, class S, int N>
static __device__ inline void store_colour(const narrow_view<S, N> &f, int64_t site, int colour,
                                           const float (&fresh)[Q][4], const float (&scale)[2],
                                           bool summed, rows_part &part) {
  const int g = threadIdx.x % 32 / 4;
  float rows[2][4] = {};
#pragma unroll
  for (int q = 0; q < Q; q++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float inverse = 1.0f;
      if constexpr (is_scaled<S>) inverse = inverse_of_scale<S>(scale[h]);
      const vector_of<S, 2> z = {
          {store_real<S>(inverse * fresh[q][h]), store_real<S>(inverse * fresh[q][2 + h])}};
      if (N == 8 * Q || 8 * q + g < f.n()) *pair_at(f, site, colour, q, h) = z;
      if constexpr (GRAM) {
        rows[q][h] = scale[h] * load_real(z.v[0]);
        rows[q][2 + h] = scale[h] * load_real(z.v[1]);
      }
    }
  if constexpr (GRAM)
    if (summed) add_rows<is_short<S>, true>(part, rows, rows);
}

/* Colours that a warp reads at once: all of them with up to 16 right-hand sides, of which numbers
 * in 16 bits are read one piece of eight sites ahead. More does not fit the registers, and spilled
 * it costs several times the traffic of the fields. */
template <int Q> constexpr int at_once = Q <= 2 ? COLOURS : 1;
template <int Q, class S, int N>
constexpr bool reads_ahead = Q <= 2 && N == 8 * Q && sizeof(S) == 2;

/* y = y b + x a and the sums of y as it is stored, as update_rows of block_rows.cuh; the matrices
 * stand in lanes as load_numbers has the numbers. __syncwarp holds back the compiler, which would
 * read x too early. */
template <int Q, class S, int N, bool HAS_X, bool GRAM>
static __global__ void __launch_bounds__(THREADS, Q <= 2 ? BLOCKS_EACH : 1)
    update_sites(narrow_view<S, N> y, narrow_view<S, N> x, const double2 *matrices, bool backwards,
                 double *partial) {
  extern __shared__ double shared[];
  constexpr int AT_ONCE = at_once<Q>, ENTRIES = 64 * Q * Q;
  constexpr bool AHEAD = reads_ahead<Q, S, N>;
  float2 *b = (float2 *)shared, *a = b + 2 * ENTRIES;
  const int64_t pieces = y.sites / ROWS, stride = (int64_t)gridDim.x * WARPS;
  const bool summed = partial != NULL;
  const auto site_of = [&](int64_t k) { return (backwards ? pieces - 1 - k : k) * ROWS; };
  int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  lane_numbers<Q, AT_ONCE, S> of_y, of_x;
  single_part sum = {};
  if (AHEAD && k < pieces) {
    load_numbers(of_y, y, site_of(k), 0);
    if (HAS_X) load_numbers(of_x, x, site_of(k), 0);
  }
  split_matrices<ENTRIES>(b, matrices, 1 + HAS_X);
  for (; k < pieces; k += stride) {
    const int64_t site = site_of(k), next = site_of(k + stride);
    const bool more = AHEAD && k + stride < pieces;
    float fresh[COLOURS][Q][4] = {}, scale[2] = {1.0f, 1.0f};
    rows_part part = {};
#pragma unroll
    for (int first = 0; first < COLOURS; first += AT_ONCE) {
      float2 v[AT_ONCE][2 * Q];
      if (!AHEAD) load_numbers(of_y, y, site, first);
      take_numbers(v, of_y);
      if (more) load_numbers(of_y, y, next, 0);
      add_products<Q, AT_ONCE, is_short<S>>(fresh, first, v, b);
      __syncwarp();
      if (HAS_X) {
        if (!AHEAD) load_numbers(of_x, x, site, first);
        take_numbers(v, of_x);
        if (more) load_numbers(of_x, x, next, 0);
        add_products<Q, AT_ONCE, is_short<S>>(fresh, first, v, a);
      }
      __syncwarp();
    }
    if constexpr (is_scaled<S>) find_scales<Q>(y, site, fresh, scale);
#pragma unroll
    for (int colour = 0; colour < COLOURS; colour++)
      store_colour<Q, GRAM>(y, site, colour, fresh[colour], scale, summed, part);
    if (GRAM && summed) add_part<true>(sum, part);
  }
  if constexpr (GRAM)
    if (partial) add_warps<false>(in_double(sum), shared, partial + (int64_t)blockIdx.x * TILE);
}

/* Where a lane's results of eight sites stand in single, for AT_ONCE colours from `first` on. */
template <int Q, int AT_ONCE, int N>
static __device__ inline void
load_results(float (&to)[AT_ONCE][Q][4], const narrow_view<float, N> &z, int64_t site, int first) {
#pragma unroll
  for (int e = 0; e < 2 * AT_ONCE * Q; e++) {
    const int a = e / (2 * Q), q = e / 2 % Q, h = e % 2;
    vector_of<float, 2> old = {};
    if (N == 8 * Q || 8 * q + (int)(threadIdx.x % 32 / 4) < z.n())
      old = *pair_at(z, site, first + a, q, h);
    to[a][q][h] = old.v[0], to[a][q][2 + h] = old.v[1];
  }
}
template <int Q, int AT_ONCE, int N>
static __device__ inline void store_results(const narrow_view<float, N> &z, int64_t site, int first,
                                            const float (&from)[AT_ONCE][Q][4]) {
#pragma unroll
  for (int e = 0; e < 2 * AT_ONCE * Q; e++) {
    const int a = e / (2 * Q), q = e / 2 % Q, h = e % 2;
    if (N == 8 * Q || 8 * q + (int)(threadIdx.x % 32 / 4) < z.n())
      *pair_at(z, site, first + a, q, h) = {{from[a][q][h], from[a][q][2 + h]}};
  }
}

/* z += sum over k < count of x[k] c[k], the matrices in lanes behind each other. The first x and z
 * are read a piece ahead where x is. */
template <class S, int N> struct narrow_views { narrow_view<S, N> of[MD_BLOCK_ADDED]; };
template <int Q, class S, int N>
static __global__ void __launch_bounds__(THREADS, Q <= 2 ? BLOCKS_EACH : 1)
    add_sites(narrow_view<float, N> z, const __grid_constant__ narrow_views<S, N> x, int count,
              const double2 *matrices) {
  extern __shared__ double shared[];
  constexpr int AT_ONCE = at_once<Q>, ENTRIES = 64 * Q * Q, PARTS = COLOURS / AT_ONCE;
  constexpr bool AHEAD = reads_ahead<Q, S, N>;
  float2 *c = (float2 *)shared;
  const int64_t pieces = z.sites / ROWS * PARTS, stride = (int64_t)gridDim.x * WARPS;
  int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  const auto site_of = [](int64_t piece) { return piece / PARTS * ROWS; };
  const auto first_of = [](int64_t piece) { return (int)(piece % PARTS) * AT_ONCE; };
  float total[AT_ONCE][Q][4], next_total[AT_ONCE][Q][4];
  lane_numbers<Q, AT_ONCE, S> of_x;
  if (AHEAD && k < pieces) {
    load_results(next_total, z, site_of(k), first_of(k));
    load_numbers(of_x, x.of[0], site_of(k), first_of(k));
  }
  split_matrices<ENTRIES>(c, matrices, count);
  for (; k < pieces; k += stride) {
    const int64_t next = k + stride;
    if (AHEAD)
      memcpy(total, next_total, sizeof total);
    else
      load_results(total, z, site_of(k), first_of(k));
    if (AHEAD && next < pieces) load_results(next_total, z, site_of(next), first_of(next));
    for (int i = 0; i < count; i++) {
      const bool last = i + 1 == count;
      float2 v[AT_ONCE][2 * Q];
      if (!AHEAD) load_numbers(of_x, x.of[i], site_of(k), first_of(k));
      take_numbers(v, of_x);
      if (AHEAD && (!last || next < pieces))
        load_numbers(of_x, x.of[last ? 0 : i + 1], site_of(last ? next : k),
                     first_of(last ? next : k));
      add_products<Q, AT_ONCE, is_short<S>>(total, 0, v, c + i * 2 * ENTRIES);
    }
    store_results(z, site_of(k), first_of(k), total);
  }
}

} // namespace md_block_rows

#endif
