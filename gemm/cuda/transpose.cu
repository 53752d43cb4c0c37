/* Transposition. The naive kernel reads along rows and writes down columns, every store of a warp
 * to another cache line. The others pass a tile through shared memory, so that both sides are
 * contiguous; the tile is block_x wide and max(block_x, block_y) high, a thread takes several of
 * its rows when the block is flat. Read down a column, an unpadded tile of 32 columns is one bank:
 * 32-way conflicts; one element of padding per row removes them. */
#include "gemm/cuda/launch.cuh"
#include "gemm/transpose.h"

using namespace md;

template <class T>
static __global__ void naive(const T *in, T *out, int64_t rows, int64_t columns, int64_t across) {
  const int64_t x = blockIdx.x % across * blockDim.x + threadIdx.x;
  const int64_t y = blockIdx.x / across * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}

template <int PADDING, class T>
static __global__ void tiled(const T *in, T *out, int64_t rows, int64_t columns, int64_t across,
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

static md_status count(md_context *context, const md_transpose_problem *p, int height,
                       int64_t *across, unsigned *blocks) {
  *across = (p->columns + p->block_x - 1) / p->block_x;
  const int64_t all = *across * ((p->rows + height - 1) / height);
  *blocks = (unsigned)all;
  if (all <= INT_MAX) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "a grid has at most 2^31 - 1 blocks, %lld x %lld in blocks of %d x %d takes %lld; "
                 "take larger blocks",
                 (long long)p->rows, (long long)p->columns, p->block_x, p->block_y, (long long)all);
}

constexpr int NO_TILE = -1; /* instead of a padding: the naive kernel */

template <int PADDING, class T>
static md_status run_type(md_context *context, const md_transpose_problem *p, const void *in,
                          void *out, void *stream) {
  const bool square = PADDING != NO_TILE && p->block_x > p->block_y;
  const int height = square ? p->block_x : p->block_y;
  const dim3 block(p->block_x, p->block_y);
  int64_t across;
  unsigned blocks;
  MD_TRY(count(context, p, height, &across, &blocks));
  if constexpr (PADDING == NO_TILE)
    naive<<<blocks, block, 0, (cudaStream_t)stream>>>((const T *)in, (T *)out, p->rows, p->columns,
                                                      across);
  else
    tiled<PADDING><<<blocks, block, 0, (cudaStream_t)stream>>>((const T *)in, (T *)out, p->rows,
                                                               p->columns, across, height);
  return md_cuda_launched(context, "transpose");
}

template <int PADDING>
static md_status run(md_context *context, const md_transpose_problem *p, const void *in, void *out,
                     void *stream) {
  return p->type == MD_SMALL_INTEGER ? run_type<PADDING, int>(context, p, in, out, stream)
                                     : run_type<PADDING, float>(context, p, in, out, stream);
}

const md_transpose_kernel md_transpose_naive = {"naive", "reads along rows, writes down columns",
                                                MD_GEMM_DEVICE, nullptr, run<NO_TILE>};
const md_transpose_kernel md_transpose_tile = {"tile", "through a tile in shared memory",
                                               MD_GEMM_DEVICE, nullptr, run<0>};
const md_transpose_kernel md_transpose_padded = {
    "padded", "the tile's rows padded by one element: no bank conflicts", MD_GEMM_DEVICE, nullptr,
    run<1>};
