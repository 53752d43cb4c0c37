/* K3: a thread computes 8 x 8 elements of C. Per step in depth it takes a column of A and a row of
 * B into registers: 16 reads of shared memory feed 64 multiply-adds, in K2 two feed one. */
#include "gemm/cuda/register_tile.cuh"

using namespace md;

static __global__ void __launch_bounds__(THREADS) registers(Operands<float> g) {
  __shared__ float as[TILE][DEPTH], bs[DEPTH][TILE];
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, TILE, TILE, BAND);
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  float sum[SIDE][SIDE] = {};
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS)
      as[e / DEPTH][e % DEPTH] =
          at(g.a, g.lda, g.m, g.k, tile.row * TILE + e / DEPTH, l0 + e % DEPTH);
    load_b(bs, g, l0, tile.column * TILE);
    __syncthreads();
#pragma unroll 1 // unrolled, the compiler would gather columns of A into wide reads: that is K4
    for (int l = 0; l < DEPTH; l++) {
      float a[SIDE], b[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; i++) a[i] = as[y * SIDE + i][l];
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
  registers<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(operands<float>(p, a, b, c));
  return md_cuda_launched(context, "GEMM kernel k3");
}

const md_gemm_kernel md_gemm_k3 =
    stateless("k3", "8x8 elements per thread, column of A and row of B in registers", SINGLE,
              "as inputs", run);
