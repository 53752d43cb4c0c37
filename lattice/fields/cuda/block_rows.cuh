#pragma once

#include "base/device.cuh"
#include "lattice/fields/cuda/block_mma.cuh"

extern "C" {
#include "lattice/fields/block.h"
}

/* Block operations on fp64 Tensor Cores. A field is a tall matrix with a row of n complex numbers
 * for each site and pair of components; a warp works on eight rows at a time by mma.m16n8k8.
 *
 * The products are formed transposed, (small matrix)^T (rows)^T, so that what a lane gets is what
 * it needs next without an exchange. Lane l = 4 g + t loads of row g the complex numbers 4 s + t:
 * the columns of the right operand, k = t the real and k = t + 4 the imaginary part. The result's m
 * = g and g + 8 are the real and imaginary part of number 8 q + g of rows 2 t and 2 t + 1: whole
 * lines when stored, and for the Gram matrix an operand whose k, the rows, lies in t as it must.
 * The small matrix a lane needs for (q, s) is one complex number, entry (4 s + t, 8 q + g).
 *
 * A pass is bound by memory as long as it does: n^2 multiply-adds of complex numbers a row and
 * matrix. Sums: each warp adds its rows, each block its warps, a second kernel the blocks, in an
 * order that does not change from run to run. */

namespace md_block_rows {

constexpr int THREADS = 256, WARPS = THREADS / 32, ROWS = 8;
constexpr int COLOURS = 3;            /* of narrow fields */
constexpr int SIDE = 16;              /* of a tile of the Gram matrix */
constexpr int TILE = 2 * SIDE * SIDE; /* its reals */
constexpr int ADDERS = 16;            /* blocks that add up one tile */
constexpr int BLOCKS_EACH = 2;        /* on a multiprocessor */

struct view {
  double2 *data;
  int64_t rows;
  int of_row;
  __device__ int n() const { return of_row; }
  __device__ double2 get(int64_t row, int i) const { return data[row * n() + i]; }
};

static inline view view_of(const md_field *f) {
  return {(double2 *)f->data, f->sites * (f->components / 2), f->n_rhs};
}

/* A lane's part of a Gram tile: entries (g, j), (g, j + 1), (g + 8, j), (g + 8, j + 1) with
 * j = 8 q + 2 t. */
struct gram_part {
  double re[2][4], im[2][4];
};

/* Adds conj(x_i) y_j over eight rows. x[q][c] is number 8 q + g of the rows 2 t (c = 0 its real, 2
 * its imaginary part) and 2 t + 1 (c = 1, 3). */
static __device__ inline void add_rows(gram_part &sum, const double (&x)[2][4],
                                       const double (&y)[2][4]) {
  const double re[4] = {x[0][0], x[1][0], x[0][1], x[1][1]};
  const double im[4] = {x[0][2], x[1][2], x[0][3], x[1][3]};
#pragma unroll
  for (int q = 0; q < 2; q++) {
    mma(sum.re[q], re, y[q][0], y[q][1]);
    mma(sum.im[q], re, y[q][2], y[q][3]);
    mma(sum.re[q], im, y[q][2], y[q][3]);
    mma(sum.im[q], im, -y[q][0], -y[q][1]);
  }
}

/* The block's sum of a tile to `to`; `shared` holds WARPS x TILE doubles, which all threads are
 * done with otherwise. PAIRS: the sums are of numbers 2 g + q, not 8 q + g. */
template <bool PAIRS>
static __device__ void add_warps(const gram_part &sum, double *shared, double *to) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  __syncthreads();
#pragma unroll
  for (int q = 0; q < 2; q++)
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const int n = 2 * t + c % 2, i = PAIRS ? 2 * g + c / 2 : 8 * (c / 2) + g;
      const int j = PAIRS ? 2 * n + q : 8 * q + n;
      *(double2 *)(shared + warp * TILE + (i * SIDE + j) * 2) =
          make_double2(sum.re[q][c], sum.im[q][c]);
    }
  __syncthreads();
  for (int e = threadIdx.x; e < TILE; e += THREADS) {
    double value = 0.0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) value += shared[w * TILE + e];
    to[e] = value;
  }
}

/* Numbers first + 8 q + g of the rows 2 t and 2 t + 1 of eight; zeros beyond n. */
template <class View>
static __device__ inline void load_columns(double (&v)[2][4], const View &f, int64_t row, int first,
                                           bool active) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int q = 0; q < 2; q++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int i = first + 8 * q + g;
      const double2 z = active && i < f.n() ? f.get(row + 2 * t + h, i) : make_double2(0.0, 0.0);
      v[q][h] = z.x;
      v[q][2 + h] = z.y;
    }
}

/* Gram tile blockIdx.y of the upper triangle, counted by columns. */
template <class View>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    multiply_self(View x, double *partial) {
  extern __shared__ double shared[];
  int row_tile = blockIdx.y, column_tile = 0;
  while (row_tile > column_tile) row_tile -= ++column_tile;
  const int64_t pieces = x.rows / ROWS, stride = (int64_t)gridDim.x * WARPS;
  gram_part sum = {};
  for (int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; k < pieces; k += 2 * stride) {
    /* From the last row to the first: what was written last is still in the cache. */
    const int64_t row = (pieces - 1 - k) * ROWS, next = row - stride * ROWS;
    double u[2][4], v[2][4];
    load_columns(u, x, row, row_tile * SIDE, true);
    load_columns(v, x, next, row_tile * SIDE, next >= 0);
    if (row_tile == column_tile) {
      add_rows(sum, u, u);
      add_rows(sum, v, v);
    } else {
      double w[2][4];
      load_columns(w, x, row, column_tile * SIDE, true);
      add_rows(sum, u, w);
      load_columns(w, x, next, column_tile * SIDE, next >= 0);
      add_rows(sum, v, w);
    }
  }
  add_warps<false>(sum, shared, partial + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * TILE);
}

/* Where the sums of a slot go: page-locked memory, a serial number for the host behind each. */
struct sums {
  const double *partial; /* [tile][block][TILE]; NULL: nothing to add */
  double *values;        /* [tile][TILE] */
  long long *serials;    /* [tile][ADDERS] */
  long long serial;
};
struct all_sums {
  sums of_slot[MD_BLOCK_SLOTS];
};

/* Adds up the blocks: tile blockIdx.y of slot blockIdx.z. */
static __global__ void __launch_bounds__(1024)
    add_blocks(const __grid_constant__ all_sums all, int blocks) {
  constexpr int SLICES = 1024 / 32;
  __shared__ double shared[SLICES][32];
  md_wait_for_predecessor();
  const sums &to = all.of_slot[blockIdx.z];
  if (!to.partial) return;
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32, e = blockIdx.x * 32 + lane;
  const double *from = to.partial + (int64_t)blockIdx.y * blocks * TILE + e;
  double value = 0.0;
#pragma unroll 16
  for (int k = slice; k < blocks; k += SLICES) value += from[(int64_t)k * TILE];
  shared[slice][lane] = value;
  __syncthreads();
  if (slice != 0) return;
#pragma unroll
  for (int s = 1; s < SLICES; s++) value += shared[s][lane];
  to.values[blockIdx.y * TILE + e] = value;
  __threadfence_system();
  __syncwarp();
  if (lane == 0) *(volatile long long *)&to.serials[blockIdx.y * ADDERS + blockIdx.x] = to.serial;
}
static_assert(TILE == ADDERS * 32, "a thread each");

/* A small matrix on its way to kernels of narrow fields: lane 4 g + t has entries (2 Q t + s, 8 q +
 * g) at [q][s][lane]; columns in units of powers of two, the largest part in [2^14, 2^15). */
template <int Q> struct staged_matrix {
  double2 of[64 * Q * Q];
  double unit[8 * Q];
};

/* Numbers 4 s + t of row g of eight; zeros beyond n. */
template <int Q> __device__ inline void load_row(double2 (&v)[2 * Q], const view &f, int64_t row) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const double2 *from = f.data + (row + g) * f.n() + t;
#pragma unroll
  for (int s = 0; s < 2 * Q; s++) v[s] = 4 * s + t < f.n() ? from[4 * s] : make_double2(0.0, 0.0);
}

/* sum += the numbers 8 q + g of (rows times matrix), for the rows 2 t and 2 t + 1. */
template <int Q>
static __device__ inline void multiply(double (&sum)[4], const double2 (&v)[2 * Q],
                                       const double2 *matrix, int q) {
#pragma unroll
  for (int s = 0; s < 2 * Q; s++) {
    const double2 m = matrix[(q * 2 * Q + s) * 32 + threadIdx.x % 32];
    const double a[4] = {m.x, m.y, -m.y, m.x};
    mma(sum, a, v[s].x, v[s].y);
  }
}

/* Where a lane's results of eight rows stand; h: row 2 t + h. */
static __device__ inline double2 *place(const view &f, int64_t row, int q, int h) {
  return f.data + (row + 2 * (threadIdx.x % 4) + h) * f.n() + 8 * q + threadIdx.x % 32 / 4;
}

/* y = y b + x a, z += y c before that, Gram matrix of the new y for Q <= 2; n <= 8 Q. The
 * matrices stand behind each other in the order b, a, c, in lanes as `multiply` reads them. */
template <int Q, bool X, bool Z, bool GRAM>
static __global__ void __launch_bounds__(THREADS, Q <= 2 ? BLOCKS_EACH : 1)
    update_rows(view y, view x, view z, const double2 *matrices, bool backwards, double *partial) {
  extern __shared__ double shared[];
  constexpr int ENTRIES = 64 * Q * Q;
  double2 *b = (double2 *)shared, *a = b + ENTRIES, *c = b + (X ? 2 : 1) * ENTRIES;
  for (int e = threadIdx.x; e < (1 + X + Z) * ENTRIES; e += THREADS) b[e] = matrices[e];
  __syncthreads();
  const int64_t pieces = y.rows / ROWS, stride = (int64_t)gridDim.x * WARPS;
  const bool inside =
      threadIdx.x % 32 / 4 < y.n() % 8 || y.n() % 8 == 0; /* of the last eight numbers */
  gram_part sum = {};
  for (int64_t k = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; k < pieces; k += stride) {
    const int64_t row = (backwards ? pieces - 1 - k : k) * ROWS;
    double2 u[2 * Q], v[2 * Q];
    double fresh[GRAM ? 2 : 1][4] = {};
    load_row<Q>(v, y, row);
    if (X) load_row<Q>(u, x, row);
#pragma unroll
    for (int q = 0; q < Q; q++) {
      double(&to)[4] = fresh[GRAM ? q : 0];
      const bool stored = 8 * q + 8 <= y.n() || (8 * q < y.n() && inside);
      if (Z) {
        const double2 zero = make_double2(0.0, 0.0);
        const double2 first = stored ? *place(z, row, q, 0) : zero;
        const double2 second = stored ? *place(z, row, q, 1) : zero;
        double total[4] = {first.x, second.x, first.y, second.y};
        multiply<Q>(total, v, c, q);
        if (stored) *place(z, row, q, 0) = make_double2(total[0], total[2]);
        if (stored) *place(z, row, q, 1) = make_double2(total[1], total[3]);
      }
      to[0] = to[1] = to[2] = to[3] = 0.0;
      multiply<Q>(to, v, b, q);
      if (X) multiply<Q>(to, u, a, q);
      if (stored) *place(y, row, q, 0) = make_double2(to[0], to[2]);
      if (stored) *place(y, row, q, 1) = make_double2(to[1], to[3]);
    }
    if constexpr (GRAM) add_rows(sum, fresh, fresh);
  }
  if constexpr (GRAM) add_warps<false>(sum, shared, partial + (int64_t)blockIdx.x * TILE);
}

} // namespace md_block_rows

/* Fields that one pass adds at most. */
constexpr int MD_BLOCK_ADDED = 8;

/* The work space of block operations on a device. */
struct device_block {
  int n, blocks, tiles; /* tiles of a triangle */
  double *partial;      /* [slot][tile][block][TILE] */
  double2 *matrices;    /* MD_BLOCK_ADDED of staged_matrix, on the device */
  double2 *staging;     /* the same on the host */
  double *one;          /* that of ones, where z takes a pass of its own; else NULL */
  double *values;       /* [slot][tile][TILE], page-locked */
  long long *serials;   /* [slot][tile][ADDERS], page-locked */
  long long serial, of_slot[MD_BLOCK_SLOTS];
  bool pending[MD_BLOCK_SLOTS]; /* the blocks have left their sums, nothing has added them yet */
};

/* Bytes of shared memory that adding up warps takes. */
constexpr size_t MD_BLOCK_GRAM_BYTES = sizeof(double) * md_block_rows::WARPS * md_block_rows::TILE;

/* Groups of eight right-hand sides, Q of the kernels, and of the narrow ones at most. */
static inline int md_block_groups(int n) {
  return n <= 8 ? 1 : n <= 16 ? 2 : n <= 32 ? 4 : 8;
}

/* And with so many groups: no more than 97 KiB of matrices, which the shared memory of every GPU
 * holds. */
static inline int md_block_added(int groups) {
  return groups > 2 ? MD_BLOCK_ADDED / 2 : MD_BLOCK_ADDED;
}

/* Before a launch: the shared memory that the kernel takes, and the staged matrices on their way.
 */
template <class Kernel>
static md_status md_block_prepare(md_context *context, const device_block *d, Kernel kernel,
                                  size_t shared_bytes, size_t matrix_bytes) {
  if (shared_bytes > 48 * 1024) /* more than a kernel gets unasked */
    MD_TRY(md_cuda_allow_shared(context, kernel, shared_bytes, "shared memory of a block update"));
  return md_cuda_status(
      context,
      cudaMemcpyAsync(d->matrices, d->staging, matrix_bytes, cudaMemcpyHostToDevice, md_stream()),
      "copy of block matrices");
}

/* For fields that are not MD_DOUBLE, of up to MD_MAX_NARROW_BLOCK right-hand sides; queued only.
 * The sums of x, or of the new y, to `partial`, where an update with up to 16 right-hand sides
 * leaves them and one with more does not (`partial` NULL: nowhere). `with` not NULL: the products
 * of `with` and the new y instead, for fields in 16 bits, up to 16 right-hand sides and a step with
 * x. */
void md_block_narrow_gram(const device_block *d, const md_field *x, double *partial);
md_status md_block_narrow_update(md_context *context, device_block *d, md_field *y,
                                 const md_block_step *step, const md_field *with, double *partial);
/* z += x[k] c[k], k < count <= md_block_added, in the part of the sites; queued only. */
md_status md_block_narrow_add(md_context *context, device_block *d, md_field *z, int count,
                              const md_field *x, const double *c, const md_block_part *part);
/* All tiles of <x_i, y_j>, of one precision. */
void md_block_pairs(const device_block *d, const md_field *x, const md_field *y, double *partial);
