#ifndef MD_LATTICE_FIELDS_CUDA_REDUCE_CUH
#define MD_LATTICE_FIELDS_CUDA_REDUCE_CUH

/* The sums of N values over the threads of a block of whole warps, in a fixed order; in thread 0.
 * All threads of the block call it together. */
template <int N> static __device__ inline void add_threads(double (&value)[N]) {
  __shared__ double warps[N][32];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int count = blockDim.x * blockDim.y / 32;
#pragma unroll
  for (int i = 0; i < N; i++)
    for (int left = 16; left > 0; left /= 2)
      value[i] += __shfl_down_sync(0xffffffffu, value[i], left);
  __syncthreads(); /* a sum before this one has been read */
  if (thread % 32 == 0)
#pragma unroll
    for (int i = 0; i < N; i++) warps[i][thread / 32] = value[i];
  __syncthreads();
  if (thread >= 32) return;
#pragma unroll
  for (int i = 0; i < N; i++) {
    value[i] = thread < count ? warps[i][thread] : 0.0;
    for (int left = 16; left > 0; left /= 2)
      value[i] += __shfl_down_sync(0xffffffffu, value[i], left);
  }
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
