#ifndef MD_DIRAC_SOLVERS_DEVICE_SUMS_CUH
#define MD_DIRAC_SOLVERS_DEVICE_SUMS_CUH

#include "lattice/fields/cuda/reduce.cuh"

extern "C" {
#include "dirac/backend.h"
}

/* This thread's share of a right-hand side's partial sums; add_threads of a block's shares is
 * their sum in a fixed order. */
static __device__ inline double share_of(const md_partial_sums &sums, int r) {
  double value = 0.0;
#pragma unroll 8
  for (int k = threadIdx.x; k < sums.count; k += blockDim.x)
    value += sums.value[(int64_t)r * sums.most + k];
  return value;
}

#endif
