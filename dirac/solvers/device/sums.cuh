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
  const size_t bytes = (size_t)most * n_rhs * sizeof(double);
  *sums = {NULL, NULL, units, most, 0};
  MD_TRY(md_device_allocate(context, bytes, "sums", (void **)&sums->high));
  return md_device_allocate(context, bytes, "sums", (void **)&sums->low);
}
static inline void partial_sums_destroy(md_partial_sums *sums) {
  md_device_free(sums->high);
  md_device_free(sums->low);
}

/* This thread's share of a right-hand side's partial sums; add_threads of a block's shares is
 * their sum. */
static __device__ inline unit_sum share_of(const md_partial_sums &sums, int r) {
  unit_sum value = {};
#pragma unroll 8
  for (int k = threadIdx.x; k < sums.count; k += blockDim.x) {
    value.high += sums.high[(int64_t)r * sums.most + k];
    value.low += sums.low[(int64_t)r * sums.most + k];
  }
  return value;
}

#endif
