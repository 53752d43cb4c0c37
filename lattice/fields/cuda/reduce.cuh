#ifndef MD_LATTICE_FIELDS_CUDA_REDUCE_CUH
#define MD_LATTICE_FIELDS_CUDA_REDUCE_CUH

/* The sum over a warp of value l % N in lane l, N a power of two: lanes first share out the values
 * and then add, so that a step moves half of what the one before moved. */
template <int N> static __device__ inline double add_lanes(double (&value)[N]) {
  const int lane = (int)(threadIdx.y * blockDim.x + threadIdx.x) % 32;
#pragma unroll
  for (int n = N / 2; n > 0; n /= 2) {
#pragma unroll
    for (int i = 0; i < n; i++) { /* lanes with bit n keep the upper half */
      const bool upper = lane & n;
      const double sent = upper ? value[i] : value[i + n];
      value[i] = (upper ? value[i + n] : value[i]) + __shfl_xor_sync(0xffffffffu, sent, n);
    }
  }
#pragma unroll
  for (int distance = N; distance < 32; distance *= 2)
    value[0] += __shfl_xor_sync(0xffffffffu, value[0], distance);
  return value[0];
}

/* The sums of N values over the threads of a block of whole warps, in a fixed order; in thread 0.
 * All threads of the block call it together. */
template <int N> static __device__ inline void add_threads(double (&value)[N]) {
  __shared__ double warps[N][32];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int count = blockDim.x * blockDim.y / 32;
  const double of_warp = add_lanes(value);
  __syncthreads(); /* a sum before this one has been read */
  if (thread % 32 < N) warps[thread % 32][thread / 32] = of_warp;
  __syncthreads();
  if (thread >= 32) return;
#pragma unroll
  for (int i = 0; i < N; i++) value[i] = thread < count ? warps[i][thread] : 0.0;
  const double of_block = add_lanes(value);
#pragma unroll
  for (int i = 0; i < N; i++) value[i] = __shfl_sync(0xffffffffu, of_block, i);
}

/* value[] of the threads (x, 0) += those of (x, 1), (x, 2) and (x, 3), in a block of 32 x 4. All
 * threads of the block call it together. */
template <int N, class T> static __device__ inline void add_to_first_warp(T *value) {
  __shared__ T partial[3][N][32];
  if (threadIdx.y > 0)
#pragma unroll
    for (int i = 0; i < N; i++) partial[threadIdx.y - 1][i][threadIdx.x] = value[i];
  __syncthreads();
  if (threadIdx.y == 0)
#pragma unroll
    for (int i = 0; i < N; i++)
      value[i] +=
          partial[0][i][threadIdx.x] + partial[1][i][threadIdx.x] + partial[2][i][threadIdx.x];
}

#endif
