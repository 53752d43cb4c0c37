/* K5: 16-byte accesses also between global memory, registers and C: a quarter of the load and
 * store instructions. Rows that do not start on 16 bytes take a one-float path. */
#include "gemm/cuda/vector_tile.cuh"

using namespace md;

template <bool vector>
static __global__ void __launch_bounds__(THREADS) vectors(Operands<float> g) {
  __shared__ __align__(16) float as[DEPTH][TILE + 4], bs[DEPTH][TILE];
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, TILE, TILE, BAND);
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  float sum[SIDE][SIDE] = {};
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    load_vectors<vector>(as, bs, g, tile, l0);
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
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j += 4)
      store4<vector>(g, tile.row * TILE + y * SIDE + i, tile.column * TILE + x * SIDE + j,
                     &sum[i][j]);
}

static md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *, const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, TILE, TILE, &blocks));
  const Operands<float> g = operands<float>(p, a, b, c);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (rows_aligned(g))
    vectors<true><<<blocks, THREADS, 0, stream>>>(g);
  else
    vectors<false><<<blocks, THREADS, 0, stream>>>(g);
  return md_cuda_launched(context, "GEMM kernel k5");
}

const md_gemm_kernel md_gemm_k5 =
    stateless("k5", "16-byte accesses to global memory", SINGLE, "as inputs", run);
