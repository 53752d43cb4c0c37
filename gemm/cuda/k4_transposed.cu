/* K4: the tile of A stands transposed in shared memory, so that the column of A which a thread
 * takes is contiguous and comes in 16-byte reads. */
#include "gemm/cuda/register_tile.cuh"

using namespace md;

static __global__ void __launch_bounds__(THREADS) transposed(Operands<float> g) {
  __shared__ __align__(16) float as[DEPTH][TILE], bs[DEPTH][TILE];
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, TILE, TILE, BAND);
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  float sum[SIDE][SIDE] = {};
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS)
      as[e % DEPTH][e / DEPTH] =
          at(g.a, g.lda, g.m, g.k, tile.row * TILE + e / DEPTH, l0 + e % DEPTH);
    load_b(bs, g, l0, tile.column * TILE);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < DEPTH; l++) {
      float a[SIDE], b[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; i++) a[i] = as[l][y * SIDE + i];
#pragma unroll
      for (int j = 0; j < SIDE; j++) b[j] = bs[l][x * SIDE + j];
      outer_product(sum, a, b);
    }
    __syncthreads();
  }
  store_block(g, tile, sum);
}

static md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *, const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, TILE, TILE, &blocks));
  transposed<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(operands<float>(p, a, b, c));
  return md_cuda_launched(context, "GEMM kernel k4");
}

const md_gemm_kernel md_gemm_k4 =
    stateless("k4", "tile of A transposed in shared memory", SINGLE, "as inputs", run);
