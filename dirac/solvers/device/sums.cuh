#pragma once

#include "base/device.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

extern "C" {
#include "dirac/backend.h"
}

/* Sums of zero; units: in device memory, one for each right-hand side. Local. */
static inline md_status partial_sums_create(md_context *context, int n_rhs, const sum_units *units,
                                            md_partial_sums *sums) {
  const size_t bytes = (size_t)n_rhs * MD_SUM_SLOTS * sizeof *sums->sum;
  *sums = {NULL, units};
  return md_device_allocate(context, bytes, "sums", (void **)&sums->sum);
}
static inline void partial_sums_clear(const md_partial_sums *sums, int n_rhs) {
  cudaMemsetAsync(sums->sum, 0, (size_t)n_rhs * MD_SUM_SLOTS * sizeof *sums->sum, md_stream());
}
static inline void partial_sums_destroy(md_partial_sums *sums) {
  md_device_free(sums->sum);
}

/* One of MD_SUM_SLOTS threads' share of a right-hand side's sums, which are zero then; add_threads
 * of a block's shares is their sum. */
static __device__ inline unit_sum share_of(const md_partial_sums &sums, int r) {
  unit_sum *slot = &sums.sum[r * MD_SUM_SLOTS + threadIdx.x];
  const unit_sum value = load_sum(slot);
  store_sum(slot, {0.0, 0.0});
  return value;
}
