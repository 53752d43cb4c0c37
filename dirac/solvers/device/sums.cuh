#ifndef MD_DIRAC_SOLVERS_DEVICE_SUMS_CUH
#define MD_DIRAC_SOLVERS_DEVICE_SUMS_CUH

#include "base/device.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

extern "C" {
#include "dirac/backend.h"
}

/* Room for `most` blocks of each right-hand side; units: in device memory, one for each. Local. */
static inline md_status partial_sums_create(md_context *context, int most, int n_rhs,
                                            const sum_units *units, md_partial_sums *sums) {
  *sums = {NULL, units, most, 0};
  return md_device_allocate(context, (size_t)most * n_rhs * sizeof *sums->sum, "sums",
                            (void **)&sums->sum);
}
static inline void partial_sums_destroy(md_partial_sums *sums) {
  md_device_free(sums->sum);
}

/* This thread's share of a right-hand side's partial sums; add_threads of a block's shares is
 * their sum. */
static __device__ inline unit_sum share_of(const md_partial_sums &sums, int r) {
  unit_sum value = {};
#pragma unroll 8
  for (int k = threadIdx.x; k < sums.count; k += blockDim.x) {
    const unit_sum of_block = load_sum(&sums.sum[(int64_t)r * sums.most + k]);
    value.high += of_block.high;
    value.low += of_block.low;
  }
  return value;
}

#endif
