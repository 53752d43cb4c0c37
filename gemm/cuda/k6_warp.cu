/* K6: warp tiles. The 32 threads of a warp compute 32 x 64 elements as 4 x 8 threads, each in four
 * 4 x 4 pieces: a 16-byte read of a row of B by the warp is then 128 contiguous bytes and of a
 * column of A 64, free of bank conflicts, and stores of C are whole cache lines. */
#include "gemm/cuda/vector_tile.cuh"

using namespace md;

template <bool vector> static __global__ void __launch_bounds__(THREADS) warps(Operands<float> g) {
  __shared__ __align__(16) float as[DEPTH][TILE + 4], bs[DEPTH][TILE];
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, TILE, TILE, BAND);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4;
  float sum[SIDE][SIDE] = {};
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    load_vectors<vector>(as, bs, g, tile, l0);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < DEPTH; l++) {
      float a[SIDE], b[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; i++) a[i] = as[l][y + i / 4 * 16 + i % 4];
#pragma unroll
      for (int j = 0; j < SIDE; j++) b[j] = bs[l][x + j / 4 * 32 + j % 4];
      outer_product(sum, a, b);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j += 4)
      store4<vector>(g, tile.row * TILE + y + i / 4 * 16 + i % 4, tile.column * TILE + x + j * 8,
                     &sum[i][j]);
}

static md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *, const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, TILE, TILE, &blocks));
  const Operands<float> g = operands<float>(p, a, b, c);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (rows_aligned(g))
    warps<true><<<blocks, THREADS, 0, stream>>>(g);
  else
    warps<false><<<blocks, THREADS, 0, stream>>>(g);
  return md_cuda_launched(context, "GEMM kernel k6");
}

const md_gemm_kernel md_gemm_k6 =
    stateless("k6", "warp tiles of 32x64, conflict-free reads", SINGLE, "as inputs", run);
