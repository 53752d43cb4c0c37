/* Transpose, shifted sum and matrix times vector of integers and floats. */
#include "gemm/cuda/launch.cuh"
#include "gemm/small.h"

using namespace md;

namespace {

/* What a launch gets: T is the type of the elements. */
template <class T> struct Call {
  md_context *context;
  const md_small_problem *p;
  cudaStream_t stream;
  T *scratch;
  const T *in, *x;
  T *out;
};

/* md_small_kernel.run of a Launch, whose start takes a Call of either type. */
template <class Launch, class T> md_status start(md_context *context, const md_small_call *c) {
  return Launch::start(Call<T>{context, c->problem, (cudaStream_t)c->stream, (T *)c->state,
                               (const T *)c->in, (const T *)c->x, (T *)c->out});
}
template <class Launch> md_status by_type(md_context *context, const md_small_call *c) {
  return c->problem->type == MD_SMALL_INTEGER ? start<Launch, int>(context, c)
                                              : start<Launch, float>(context, c);
}

/* Blocks of block_x x height that cover rows x columns, and how many stand side by side. */
md_status cover(md_context *context, const md_small_problem *p, int height, int64_t *across,
                unsigned *blocks) {
  *across = (p->columns + p->block_x - 1) / p->block_x;
  const int64_t all = *across * ((p->rows + height - 1) / height);
  *blocks = (unsigned)all;
  if (all <= INT_MAX) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "a grid has at most 2^31 - 1 blocks, %lld x %lld in blocks of %d x %d takes %lld; "
                 "take larger blocks",
                 (long long)p->rows, (long long)p->columns, p->block_x, p->block_y, (long long)all);
}

/* Transposition. The direct kernel reads along rows and writes down columns, every store of a warp
 * to another cache line. The others pass a tile through shared memory, so that both sides are
 * contiguous; the tile is block_x wide and max(block_x, block_y) high, a thread takes several of
 * its rows when the block is flat. Read down a column, an unpadded tile of 32 columns is one bank:
 * 32-way conflicts; one element of padding per row removes them. */
template <class T>
__global__ void transpose_direct(const T *in, T *out, int64_t rows, int64_t columns,
                                 int64_t across) {
  const int64_t x = blockIdx.x % across * blockDim.x + threadIdx.x;
  const int64_t y = blockIdx.x / across * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}

template <int PADDING, class T>
__global__ void transpose_tiled(const T *in, T *out, int64_t rows, int64_t columns, int64_t across,
                                int height) {
  __shared__ T tile[32 * (32 + PADDING)];
  const int width = blockDim.x, ld = width + PADDING;
  const int64_t x0 = blockIdx.x % across * width, y0 = blockIdx.x / across * height;
#pragma unroll 4
  for (int y = threadIdx.y; y < height; y += blockDim.y)
    if (x0 + threadIdx.x < columns && y0 + y < rows)
      tile[y * ld + threadIdx.x] = in[(y0 + y) * columns + x0 + threadIdx.x];
  __syncthreads();
  for (int y = threadIdx.x; y < height; y += width)
#pragma unroll 4
    for (int x = threadIdx.y; x < width; x += blockDim.y)
      if (x0 + x < columns && y0 + y < rows) out[(x0 + x) * rows + y0 + y] = tile[y * ld + x];
}

template <bool TILE, int PADDING> struct Transpose {
  template <class T> static md_status start(const Call<T> &c) {
    const md_small_problem *p = c.p;
    const int height = TILE && p->block_x > p->block_y ? p->block_x : p->block_y;
    const dim3 block(p->block_x, p->block_y);
    int64_t across;
    unsigned blocks;
    MD_TRY(cover(c.context, p, height, &across, &blocks));
    if constexpr (TILE)
      transpose_tiled<PADDING>
          <<<blocks, block, 0, c.stream>>>(c.in, c.out, p->rows, p->columns, across, height);
    else
      transpose_direct<<<blocks, block, 0, c.stream>>>(c.in, c.out, p->rows, p->columns, across);
    return md_cuda_launched(c.context, "transpose");
  }
};

/* out[x, y] = in[x, y] + in[x + 4, y]. Direct: two loads per thread; a warp's shifted load starts
 * 16 bytes into a 32-byte sector and takes one sector more, most of which the caches hold already.
 * Shared: the block reads each element of its rows once, and four more. */
template <class T>
__global__ void shift_direct(md_small_problem p, const T *in, T *out, int64_t across) {
  const int64_t x = blockIdx.x % across * blockDim.x + threadIdx.x;
  const int64_t y = blockIdx.x / across * blockDim.y + threadIdx.y;
  if (x >= p.columns || y >= p.rows) return;
  const T *from = in + y * p.in_ld + x;
  out[y * p.out_ld + x] = from[0] + from[MD_SHIFT];
}

template <class T>
__global__ void shift_shared(md_small_problem p, const T *in, T *out, int64_t across) {
  extern __shared__ __align__(16) char memory[]; /* one declaration for both types */
  const int ld = blockDim.x + MD_SHIFT;
  T *row = (T *)memory + threadIdx.y * ld;
  const int64_t x0 = blockIdx.x % across * blockDim.x;
  const int64_t y = blockIdx.x / across * blockDim.y + threadIdx.y;
  if (y < p.rows)
    for (int x = threadIdx.x; x < ld; x += blockDim.x)
      if (x0 + x < p.columns + MD_SHIFT) row[x] = in[y * p.in_ld + x0 + x];
  __syncthreads();
  if (y < p.rows && x0 + threadIdx.x < p.columns)
    out[y * p.out_ld + x0 + threadIdx.x] = row[threadIdx.x] + row[threadIdx.x + MD_SHIFT];
}

template <bool SHARED> struct Shift {
  template <class T> static md_status start(const Call<T> &c) {
    const md_small_problem *p = c.p;
    const dim3 block(p->block_x, p->block_y);
    const size_t bytes = (p->block_x + MD_SHIFT) * p->block_y * sizeof(T);
    int64_t across;
    unsigned blocks;
    MD_TRY(cover(c.context, p, p->block_y, &across, &blocks));
    if (SHARED)
      shift_shared<<<blocks, block, bytes, c.stream>>>(*p, c.in, c.out, across);
    else
      shift_direct<<<blocks, block, 0, c.stream>>>(*p, c.in, c.out, across);
    return md_cuda_launched(c.context, "shift");
  }
};

/* y <- A x: six ways to sum a row. */
constexpr int BLOCK = 256;

template <class T> struct Vectors {
  int64_t rows, columns;
  const T *a, *x;
  T *y;
};

/* A thread per row: neighbours read `columns` elements apart, a sector each. */
template <class T> __global__ void thread_row(Vectors<T> v, T *) {
  const int64_t i = blockIdx.x * (int64_t)BLOCK + threadIdx.x;
  if (i >= v.rows) return;
  T sum = 0;
  for (int64_t j = 0; j < v.columns; j++) sum += v.a[i * v.columns + j] * v.x[j];
  v.y[i] = sum;
}

/* First phase: all products, as many elements as A. */
template <class T> __global__ void products(Vectors<T> v, T *scratch) {
  for (int64_t j = threadIdx.x; j < v.columns; j += BLOCK)
    scratch[blockIdx.x * v.columns + j] = v.a[blockIdx.x * v.columns + j] * v.x[j];
}

/* Second phase: a block per row, a tree over its threads. */
template <class T> __global__ void tree(Vectors<T> v, const T *scratch) {
  __shared__ T part[BLOCK];
  T sum = 0;
  for (int64_t j = threadIdx.x; j < v.columns; j += BLOCK)
    sum += scratch[blockIdx.x * v.columns + j];
  part[threadIdx.x] = sum;
  for (int width = BLOCK / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
  }
  if (threadIdx.x == 0) v.y[blockIdx.x] = part[0];
}

template <class T> __device__ inline T partial(const Vectors<T> &v) {
  T sum = 0;
  for (int64_t j = threadIdx.x; j < v.columns; j += BLOCK)
    sum += v.a[blockIdx.x * v.columns + j] * v.x[j];
  return sum;
}

/* A block per row; its partial sums meet in shared memory and one thread adds them up. */
template <class T> __global__ void block_serial(Vectors<T> v, T *) {
  __shared__ T part[BLOCK];
  part[threadIdx.x] = partial(v);
  __syncthreads();
  if (threadIdx.x != 0) return;
  T sum = 0;
  for (int i = 0; i < BLOCK; i++) sum += part[i];
  v.y[blockIdx.x] = sum;
}

/* A block per row; all its threads add to one word of shared memory. */
template <class T> __global__ void block_atomic(Vectors<T> v, T *) {
  __shared__ T sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, partial(v));
  __syncthreads();
  if (threadIdx.x == 0) v.y[blockIdx.x] = sum;
}

/* A warp per row: lanes read neighbours, the sum stays in registers. */
template <class T> __global__ void warp_shuffle(Vectors<T> v, T *) {
  const int64_t i = (blockIdx.x * (int64_t)BLOCK + threadIdx.x) / 32;
  if (i >= v.rows) return;
  T sum = 0;
#pragma unroll 8
  for (int64_t j = threadIdx.x % 32; j < v.columns; j += 32) sum += v.a[i * v.columns + j] * v.x[j];
  for (int width = 16; width > 0; width /= 2) sum += __shfl_down_sync(0xffffffffu, sum, width);
  if (threadIdx.x % 32 == 0) v.y[i] = sum;
}

enum Method { THREAD_ROW, TWO_PHASE, BLOCK_SERIAL, BLOCK_ATOMIC, WARP_SHUFFLE };

template <Method method> struct Gemv {
  template <class T> static md_status start(const Call<T> &c) {
    const Vectors<T> v = {c.p->rows, c.p->columns, c.in, c.x, c.out};
    if (v.rows > INT_MAX - BLOCK)
      return md_fail(c.context, MD_INPUT, "device kernels take fewer than 2^31 rows, got %lld",
                     (long long)v.rows);
    const unsigned rows = (unsigned)v.rows;
    if (method == THREAD_ROW)
      thread_row<<<(rows + BLOCK - 1) / BLOCK, BLOCK, 0, c.stream>>>(v, c.scratch);
    if (method == TWO_PHASE) {
      products<<<rows, BLOCK, 0, c.stream>>>(v, c.scratch);
      tree<<<rows, BLOCK, 0, c.stream>>>(v, c.scratch);
    }
    if (method == BLOCK_SERIAL) block_serial<<<rows, BLOCK, 0, c.stream>>>(v, c.scratch);
    if (method == BLOCK_ATOMIC) block_atomic<<<rows, BLOCK, 0, c.stream>>>(v, c.scratch);
    if (method == WARP_SHUFFLE)
      warp_shuffle<<<(rows + BLOCK / 32 - 1) / (BLOCK / 32), BLOCK, 0, c.stream>>>(v, c.scratch);
    return md_cuda_launched(c.context, "gemv");
  }
};

md_status open_scratch(md_context *context, const md_small_problem *p, void *, void **state) {
  return md_device_allocate(context, (size_t)p->rows * p->columns * 4,
                            "the products of a matrix-vector product", state);
}

constexpr md_small_kernel small(const char *name, decltype(md_small_kernel::run) start,
                                decltype(md_small_kernel::open) open = nullptr,
                                decltype(md_small_kernel::close) close = nullptr) {
  return {name, MD_GEMM_DEVICE, MD_SMALL_BOTH, nullptr, start, open, close};
}

} // namespace

const md_small_kernel md_transpose_naive = small("naive", by_type<Transpose<false, 0>>);
const md_small_kernel md_transpose_tile = small("tile", by_type<Transpose<true, 0>>);
const md_small_kernel md_transpose_padded = small("padded", by_type<Transpose<true, 1>>);
const md_small_kernel md_shift_direct = small("direct", by_type<Shift<false>>);
const md_small_kernel md_shift_shared = small("shared", by_type<Shift<true>>);
const md_small_kernel md_gemv_thread_row = small("thread_row", by_type<Gemv<THREAD_ROW>>);
const md_small_kernel md_gemv_two_phase =
    small("two_phase", by_type<Gemv<TWO_PHASE>>, open_scratch, md_device_free);
const md_small_kernel md_gemv_block_serial = small("block_serial", by_type<Gemv<BLOCK_SERIAL>>);
const md_small_kernel md_gemv_block_atomic = small("block_atomic", by_type<Gemv<BLOCK_ATOMIC>>);
const md_small_kernel md_gemv_warp_shuffle = small("warp_shuffle", by_type<Gemv<WARP_SHUFFLE>>);
