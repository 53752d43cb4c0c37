#pragma once

/* The block shape of the steps k3 .. k6, which k7 begins with: 256 threads compute a 128 x 128 tile
 * of C, eight deep at a time, 8 x 8 elements each. */
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

} // namespace md
