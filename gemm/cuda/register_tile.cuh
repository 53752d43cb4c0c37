#ifndef MD_GEMM_CUDA_REGISTER_TILE_CUH
#define MD_GEMM_CUDA_REGISTER_TILE_CUH

/* The block shape that the steps k3 .. k6 share: 256 threads compute a 128 x 128 tile of C, eight
 * deep at a time, 8 x 8 elements each. */
#include "gemm/cuda/launch.cuh"

namespace md {

constexpr int TILE = 128, DEPTH = 8, SIDE = 8, THREADS = 256, BAND = 8;

/* sum += a b^T of a column of A and a row of B, both in registers. */
template <int M, int N>
__device__ inline void outer_product(float (&sum)[M][N], const float (&a)[M], const float (&b)[N]) {
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int j = 0; j < N; j++) sum[i][j] += a[i] * b[j];
}

/* Tile of B into bs[DEPTH][TILE], one float per access. */
__device__ inline void load_b(float (*bs)[TILE], const Operands<float> &g, int l0, int column) {
  for (int e = threadIdx.x; e < DEPTH * TILE; e += THREADS)
    bs[e / TILE][e % TILE] = at(g.b, g.ldb, g.k, g.n, l0 + e / TILE, column + e % TILE);
}

/* Thread (y, x) of 16 x 16 stores its 8 x 8 elements, one float per access. */
__device__ inline void store_block(const Operands<float> &g, Tile tile,
                                   const float (&sum)[SIDE][SIDE]) {
  const int i0 = tile.row * TILE + threadIdx.x / 16 * SIDE;
  const int j0 = tile.column * TILE + threadIdx.x % 16 * SIDE;
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j++)
      if (i0 + i < g.m && j0 + j < g.n)
        store(g.c + (i0 + i) * g.ldc + j0 + j, sum[i][j], g.alpha, g.beta);
}

/* Whether rows of A, B and C start on 16 bytes. */
inline bool rows_aligned(const Operands<float> &g) {
  return aligned(g.a, g.lda, 4, 16) && aligned(g.b, g.ldb, 4, 16) && aligned(g.c, g.ldc, 4, 16);
}

} // namespace md

#endif
