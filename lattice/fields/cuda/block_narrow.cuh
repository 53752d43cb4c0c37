#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_NARROW_CUH
#define MD_LATTICE_FIELDS_CUDA_BLOCK_NARROW_CUH

#include "lattice/fields/cuda/block_single.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* Block operations on fields in 32 or 16 bits, on Tensor Cores in tf32 (block_single.cuh) with the
 * index maps of block_rows.cuh. Eight rows are one colour of eight sites, because the scale of a
 * site belongs to all of its colours: a warp has the results of all three before it stores them. */

namespace md_block_rows {

template <class S> struct narrow_view {
  S *data;
  float *scale; /* of each site, where S has them */
  int64_t sites, rows;
  int n;
  __device__ float unit(int64_t site) const { return is_scaled<S> ? scale[site] : 1.0f; }
  /* In double: the scales of fixed are no powers of two. */
  __device__ double2 get(int64_t row, int i) const {
    const vector_of<S, 2> z = ((const vector_of<S, 2> *)data)[row * n + i];
    const double u = unit(is_scaled<S> ? row / COLOURS : 0);
    return make_double2(u * load_real(z.v[0]), u * load_real(z.v[1]));
  }
};

template <class S> static inline narrow_view<S> narrow_view_of(const md_field *f) {
  return {(S *)f->data, f->scale, f->sites, f->sites * COLOURS, f->n_rhs};
}

/* <x_i, y_j> in double: tile blockIdx.y of all, row by row. */
template <class X, class Y>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    multiply_pair(X x, Y y, int side, double *partial) {
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

/* Numbers first + 2 g + q, neighbours, of the rows 2 t + h of eight: v[q][h] the real and
 * v[q][2 + h] the imaginary part; zeros beyond n. */
template <class S>
static __device__ inline void load_pairs(float (&v)[2][4], const narrow_view<S> &f, int64_t row,
                                         int first) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, i = first + 2 * g;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int64_t at = row + 2 * t + h;
    vector_of<S, 4> z = {
        {store_real<S>(0.0f), store_real<S>(0.0f), store_real<S>(0.0f), store_real<S>(0.0f)}};
    if (f.n % 2 == 0 && i < f.n)
      z = *(const vector_of<S, 4> *)(f.data + 2 * (at * f.n + i));
    else
      for (int e = 0; e < 4; e++)
        if (i + e / 2 < f.n) z.v[e] = f.data[2 * (at * f.n + i) + e];
    const float unit = f.unit(is_scaled<S> ? at / COLOURS : 0);
#pragma unroll
    for (int e = 0; e < 4; e++) v[e / 2][2 * (e % 2) + h] = unit * load_real(z.v[e]);
  }
}

/* The sums of multiply_self: Gram tile blockIdx.y of the upper triangle, counted by columns. */
template <class S>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    multiply_narrow(narrow_view<S> x, double *partial) {
  constexpr int AT_ONCE = 4;
  extern __shared__ double shared[];
  int row_tile = blockIdx.y, column_tile = 0;
  while (row_tile > column_tile) row_tile -= ++column_tile;
  const int64_t pieces = x.rows / ROWS, stride = (int64_t)gridDim.x * WARPS;
  single_part sum = {};
  for (int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; k < pieces;
       k += AT_ONCE * stride) {
    float u[AT_ONCE][2][4] = {}, v[2][4];
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++)
      if (k + a * stride < pieces) load_pairs(u[a], x, (k + a * stride) * ROWS, row_tile * SIDE);
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++) {
      if (row_tile == column_tile) {
        add_rows<is_short<S>, false>(sum, u[a], u[a]);
      } else if (k + a * stride < pieces) {
        load_pairs(v, x, (k + a * stride) * ROWS, column_tile * SIDE);
        add_rows<is_short<S>, false>(sum, u[a], v);
      }
    }
  }
  add_warps<true>(in_double(sum), shared,
                  partial + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * TILE);
}

/* Numbers 2 Q t + s of the row, s < 2 Q: neighbours, so that a row of 8 Q is read by vectors. */
template <int Q, class S>
static __device__ inline void load_numbers(float2 (&v)[2 * Q], const narrow_view<S> &f,
                                           int64_t site, int colour) {
  constexpr int REALS = 4 * Q, MOST = 16 / sizeof(S), EACH = REALS < MOST ? REALS : MOST;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, first = 2 * Q * t;
  const int64_t row = (site + g) * COLOURS + colour;
  const S *from = f.data + 2 * (row * f.n + first);
  const float unit = f.unit(site + g);
  alignas(16) S real[REALS];
  if (f.n == 8 * Q) {
#pragma unroll
    for (int e = 0; e < REALS; e += EACH)
      *(vector_of<S, EACH> *)(real + e) = *(const vector_of<S, EACH> *)(from + e);
  } else {
#pragma unroll
    for (int s = 0; s < 2 * Q; s++) {
      const bool inside = first + s < f.n;
      real[2 * s] = inside ? from[2 * s] : store_real<S>(0.0f);
      real[2 * s + 1] = inside ? from[2 * s + 1] : store_real<S>(0.0f);
    }
  }
#pragma unroll
  for (int s = 0; s < 2 * Q; s++)
    v[s] = make_float2(unit * load_real(real[2 * s]), unit * load_real(real[2 * s + 1]));
}

/* sum += (rows times matrix) for eight sites and AT_ONCE colours from `first` on: the numbers 8 q +
 * g of the sites 2 t and 2 t + 1. Sums of all colours, or of these. */
template <int Q, int AT_ONCE, int COUNT, class S>
static __device__ inline void add_products(float (&sum)[COUNT][Q][4], const narrow_view<S> &x,
                                           int64_t site, int first, const float2 *matrix) {
  float2 v[AT_ONCE][2 * Q];
#pragma unroll
  for (int a = 0; a < AT_ONCE; a++) load_numbers<Q>(v[a], x, site, first + a);
#pragma unroll
  for (int q = 0; q < Q; q++) {
    float product[AT_ONCE][4] = {};
    multiply<Q, AT_ONCE, is_short<S>>(product, v, matrix, q);
#pragma unroll
    for (int e = 0; e < 4 * AT_ONCE; e++)
      sum[(COUNT == AT_ONCE ? 0 : first) + e / 4][q][e % 4] += product[e / 4][e % 4];
  }
}

/* The pair of a row that a lane has results of: number 8 q + g of site 2 t + h. */
template <class S>
static __device__ inline vector_of<S, 2> *pair_at(const narrow_view<S> &f, int64_t site, int colour,
                                                  int q, int h) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  return (vector_of<S, 2> *)f.data + ((site + 2 * t + h) * COLOURS + colour) * f.n + 8 * q + g;
}

/* The scales of a lane's two sites for what it is going to store, [colour][q][re of h = 0, 1, im of
 * h = 0, 1], which it stores as well. */
template <int Q, class S>
static __device__ inline void find_scales(const narrow_view<S> &f, int64_t site,
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
template <int Q, bool GRAM, class S>
static __device__ inline void store_colour(const narrow_view<S> &f, int64_t site, int colour,
                                           const float (&fresh)[Q][4], const float (&scale)[2],
                                           bool summed, single_part &sum) {
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
      if (8 * q + g < f.n) *pair_at(f, site, colour, q, h) = z;
      if constexpr (GRAM) {
        rows[q][h] = scale[h] * load_real(z.v[0]);
        rows[q][2 + h] = scale[h] * load_real(z.v[1]);
      }
    }
  if constexpr (GRAM)
    if (summed) add_rows<is_short<S>, true>(sum, rows, rows);
}

/* y = y b + x a and the sums of y as it is stored, as update_rows of block_rows.cuh; the matrices
 * stand in lanes as load_numbers has the numbers. A warp reads three colours of one field at once,
 * or one where it has more than 16 right-hand sides, and is done with them before it reads on
 * (__syncwarp holds back the compiler): what all fields have does not fit the registers, and
 * spilled it costs several times their traffic. */
template <int Q, class S, bool HAS_X, bool GRAM>
static __global__ void __launch_bounds__(THREADS, Q <= 2 ? BLOCKS_EACH : 1)
    update_sites(narrow_view<S> y, narrow_view<S> x, const double2 *matrices, bool backwards,
                 double *partial) {
  extern __shared__ double shared[];
  constexpr int AT_ONCE = Q <= 2 ? COLOURS : 1, ENTRIES = 64 * Q * Q;
  float2 *b = (float2 *)shared, *a = b + 2 * ENTRIES;
  split_matrices<ENTRIES>(b, matrices, 1 + HAS_X);
  const int64_t pieces = y.sites / ROWS, stride = (int64_t)gridDim.x * WARPS;
  const bool summed = partial != NULL;
  single_part sum = {};
  for (int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; k < pieces; k += stride) {
    const int64_t site = (backwards ? pieces - 1 - k : k) * ROWS;
    float fresh[COLOURS][Q][4] = {}, scale[2] = {1.0f, 1.0f};
#pragma unroll
    for (int first = 0; first < COLOURS; first += AT_ONCE) {
      add_products<Q, AT_ONCE>(fresh, y, site, first, b);
      __syncwarp();
      if constexpr (HAS_X) add_products<Q, AT_ONCE>(fresh, x, site, first, a);
      __syncwarp();
    }
    if constexpr (is_scaled<S>) find_scales<Q>(y, site, fresh, scale);
#pragma unroll
    for (int colour = 0; colour < COLOURS; colour++)
      store_colour<Q, GRAM>(y, site, colour, fresh[colour], scale, summed, sum);
  }
  if constexpr (GRAM)
    if (partial) add_warps<false>(in_double(sum), shared, partial + (int64_t)blockIdx.x * TILE);
}

/* z += sum over k < count of x[k] c[k], the matrices in lanes behind each other. */
template <class S> struct narrow_views { narrow_view<S> of[MD_BLOCK_ADDED]; };
template <int Q, class S>
static __global__ void __launch_bounds__(THREADS, Q <= 2 ? BLOCKS_EACH : 1)
    add_sites(narrow_view<float> z, const __grid_constant__ narrow_views<S> x, int count,
              const double2 *matrices) {
  extern __shared__ double shared[];
  constexpr int AT_ONCE = Q <= 2 ? COLOURS : 1, ENTRIES = 64 * Q * Q;
  float2 *c = (float2 *)shared;
  split_matrices<ENTRIES>(c, matrices, count);
  const int64_t pieces = z.sites / ROWS, stride = (int64_t)gridDim.x * WARPS;
  const int g = threadIdx.x % 32 / 4;
  for (int64_t p = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; p < pieces; p += stride)
#pragma unroll
    for (int first = 0; first < COLOURS; first += AT_ONCE) {
      float total[AT_ONCE][Q][4];
#pragma unroll
      for (int e = 0; e < 2 * AT_ONCE * Q; e++) {
        const int a = e / (2 * Q), q = e / 2 % Q, h = e % 2;
        vector_of<float, 2> old = {};
        if (8 * q + g < z.n) old = *pair_at(z, p * ROWS, first + a, q, h);
        total[a][q][h] = old.v[0], total[a][q][2 + h] = old.v[1];
      }
      for (int k = 0; k < count; k++)
        add_products<Q, AT_ONCE>(total, x.of[k], p * ROWS, first, c + k * 2 * ENTRIES);
#pragma unroll
      for (int e = 0; e < 2 * AT_ONCE * Q; e++) {
        const int a = e / (2 * Q), q = e / 2 % Q, h = e % 2;
        if (8 * q + g < z.n)
          *pair_at(z, p * ROWS, first + a, q, h) = {{total[a][q][h], total[a][q][2 + h]}};
      }
    }
}

} // namespace md_block_rows

#endif
