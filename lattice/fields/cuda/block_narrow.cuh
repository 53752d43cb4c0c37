#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_NARROW_CUH
#define MD_LATTICE_FIELDS_CUDA_BLOCK_NARROW_CUH

#include "lattice/fields/cuda/block_rows.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* Block operations on fields in 32 or 16 bits, whose numbers become doubles when they are read:
 * products and sums run on fp64 Tensor Cores as in block_rows.cuh. Eight rows are one colour of
 * eight sites, because the scale of a site belongs to all of its colours: a warp has the results of
 * all three before it stores them. */

namespace md_block_rows {

template <class S> struct narrow_view {
  S *data;
  float *scale; /* of each site, where S has them */
  int64_t sites, rows;
  int n;
  /* A double: the scales of fixed are no powers of two. */
  __device__ double unit(int64_t site) const { return is_scaled<S> ? scale[site] : 1.0f; }
  __device__ double2 get(int64_t row, int i) const {
    const vector_of<S, 2> z = ((const vector_of<S, 2> *)data)[row * n + i];
    const double u = unit(is_scaled<S> ? row / COLOURS : 0);
    return make_double2(u * load_real(z.v[0]), u * load_real(z.v[1]));
  }
};

template <class S> static inline narrow_view<S> narrow_view_of(const md_field *f) {
  return {(S *)f->data, f->scale, f->sites, f->sites * COLOURS, f->n_rhs};
}

/* <x_i, y_j>: tile blockIdx.y of all, row by row. */
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
  add_warps(sum, shared, partial + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * TILE);
}

/* Numbers 2 Q t + s of the row, s < 2 Q: neighbours, so that a row of 8 Q is read by vectors. */
template <int Q, class S>
static __device__ inline void load_numbers(double2 (&v)[2 * Q], const narrow_view<S> &f,
                                           int64_t site, int colour) {
  constexpr int REALS = 4 * Q, MOST = 16 / sizeof(S), EACH = REALS < MOST ? REALS : MOST;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, first = 2 * Q * t;
  const int64_t row = (site + g) * COLOURS + colour;
  const S *from = f.data + 2 * (row * f.n + first);
  const double unit = f.unit(site + g);
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
    v[s] = make_double2(unit * load_real(real[2 * s]), unit * load_real(real[2 * s + 1]));
}

/* The pair of a row that a lane has results of: number 8 q + g of site 2 t + h. */
template <class S>
static __device__ inline vector_of<S, 2> *pair_at(const narrow_view<S> &f, int64_t site, int colour,
                                                  int q, int h) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  return (vector_of<S, 2> *)f.data + ((site + 2 * t + h) * COLOURS + colour) * f.n + 8 * q + g;
}

/* z += y c for one colour and eight right-hand sides. */
template <int Q>
static __device__ inline void add_product(const narrow_view<float> &z, int64_t site, int colour,
                                          int q, bool stored, const double2 (&v)[2 * Q],
                                          const double2 *matrix) {
  double total[4] = {};
  multiply<Q>(total, v, matrix, q);
  if (!stored) return;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    vector_of<float, 2> *to = pair_at(z, site, colour, q, h), old = *to;
    *to = {{(float)(old.v[0] + total[h]), (float)(old.v[1] + total[2 + h])}};
  }
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
                                           bool summed, gram_part &sum) {
  const int g = threadIdx.x % 32 / 4;
  double rows[2][4] = {};
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
        rows[q][h] = static_cast<double>(scale[h]) * load_real(z.v[0]);
        rows[q][2 + h] = static_cast<double>(scale[h]) * load_real(z.v[1]);
      }
    }
  if constexpr (GRAM)
    if (summed) add_rows(sum, rows, rows);
}

/* Nothing is read for the next colour before this one is done with: what three colours read does
 * not fit the registers, and spilled it costs several times the traffic of the fields. */
static __device__ inline void end_colour() {
  __syncwarp();
}

/* As update_rows of block_rows.cuh, for 16-bit or single y; the matrices stand in lanes as
 * load_numbers has the numbers. */
template <int Q, class Y, class X, bool HAS_X, bool HAS_Z, bool GRAM>
static __global__ void __launch_bounds__(THREADS, Q <= 2 ? BLOCKS_EACH : 1)
    update_sites(narrow_view<Y> y, narrow_view<X> x, narrow_view<float> z, const double2 *matrices,
                 bool backwards, double *partial) {
  extern __shared__ double shared[];
  constexpr int ENTRIES = 64 * Q * Q, KEPT = is_scaled<Y> ? COLOURS : 1;
  double2 *b = (double2 *)shared, *a = b + ENTRIES, *c = b + (HAS_X ? 2 : 1) * ENTRIES;
  for (int e = threadIdx.x; e < (1 + HAS_X + HAS_Z) * ENTRIES; e += THREADS) b[e] = matrices[e];
  __syncthreads();
  const int64_t pieces = y.sites / ROWS, stride = (int64_t)gridDim.x * WARPS;
  const int g = threadIdx.x % 32 / 4;
  const bool summed = partial != NULL;
  gram_part sum = {};
  for (int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; k < pieces; k += stride) {
    const int64_t site = (backwards ? pieces - 1 - k : k) * ROWS;
    float fresh[KEPT][Q][4], scale[2] = {1.0f, 1.0f};
#pragma unroll(is_scaled <Y> ? COLOURS : 1)
    for (int colour = 0; colour < COLOURS; colour++) {
      double2 u[2 * Q], v[2 * Q];
      load_numbers<Q>(v, y, site, colour);
      if (HAS_X) load_numbers<Q>(u, x, site, colour);
#pragma unroll
      for (int q = 0; q < Q; q++) {
        double to[4] = {};
        if (HAS_Z) add_product<Q>(z, site, colour, q, 8 * q + g < y.n, v, c);
        multiply<Q>(to, v, b, q);
        if (HAS_X) multiply<Q>(to, u, a, q);
#pragma unroll
        for (int e = 0; e < 4; e++) fresh[colour % KEPT][q][e] = (float)to[e];
      }
      if constexpr (!is_scaled<Y>)
        store_colour<Q, GRAM>(y, site, colour, fresh[0], scale, summed, sum);
      end_colour();
    }
    if constexpr (is_scaled<Y>) {
      find_scales<Q>(y, site, fresh, scale);
#pragma unroll
      for (int colour = 0; colour < COLOURS; colour++)
        store_colour<Q, GRAM>(y, site, colour, fresh[colour], scale, summed, sum);
    }
  }
  if constexpr (GRAM)
    if (partial) add_warps(sum, shared, partial + (int64_t)blockIdx.x * TILE);
}

} // namespace md_block_rows

#endif
