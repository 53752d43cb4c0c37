#ifndef MD_GEMM_CUDA_VECTOR_TILE_CUH
#define MD_GEMM_CUDA_VECTOR_TILE_CUH

/* Global memory read four floats at a time, through registers into shared memory. */
#include "gemm/cuda/register_tile.cuh"

namespace md {

/* Four neighbours of row i from column j, zeros outside. vector: rows start on 16 bytes. */
template <bool vector>
__device__ inline float4 four_at(const float *x, int64_t ld, int rows, int columns, int i, int j) {
  if (vector && i < rows && j + 4 <= columns) return *(const float4 *)(x + i * ld + j);
  return {at(x, ld, rows, columns, i, j), at(x, ld, rows, columns, i, j + 1),
          at(x, ld, rows, columns, i, j + 2), at(x, ld, rows, columns, i, j + 3)};
}

/* Tiles of A (transposed on the way, rows padded by 4 against bank conflicts) and of B. */
template <bool vector>
__device__ inline void load_vectors(float (*as)[TILE + 4], float (*bs)[TILE],
                                    const Operands<float> &g, Tile tile, int l0) {
  const int i = threadIdx.x / 2, l = threadIdx.x % 2 * 4;
  const float4 a = four_at<vector>(g.a, g.lda, g.m, g.k, tile.row * TILE + i, l0 + l);
  as[l][i] = a.x, as[l + 1][i] = a.y, as[l + 2][i] = a.z, as[l + 3][i] = a.w;
  const int r = threadIdx.x / 32, j = threadIdx.x % 32 * 4;
  *(float4 *)&bs[r][j] = four_at<vector>(g.b, g.ldb, g.k, g.n, l0 + r, tile.column * TILE + j);
}

} // namespace md

#endif
