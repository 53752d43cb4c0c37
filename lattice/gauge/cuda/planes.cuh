#pragma once

#include "base/device.cuh"

extern "C" {
#include "lattice/fields/field.h"
#include "lattice/gauge/su3.h"
}

/* Fields of matrices as kernels see them, one thread for each site of one parity: planes are read
 * and written by neighbouring threads side by side. */
enum { BLOCK = 128, MATRIX = MD_LINK_REALS };

struct plane_view {
  double *data; /* NULL: not there */
  int64_t stride;
};

static inline plane_view view(const md_field *f) {
  return {(double *)f->data, f->stride};
}

static inline unsigned blocks(int64_t sites) {
  return (unsigned)((sites + BLOCK - 1) / BLOCK);
}

/* Queues the kernel for n sites, its first argument. */
template <class... P, class... A>
static inline void for_sites(void (*kernel)(int64_t, P...), int64_t n, A... a) {
  kernel<<<blocks(n), BLOCK, 0, md_stream()>>>(n, a...);
}

static __device__ inline void load(double u[MATRIX], const plane_view &from, int64_t site) {
#pragma unroll
  for (int c = 0; c < MATRIX; c++) u[c] = from.data[c * from.stride + site];
}
static __device__ inline void store(const plane_view &to, int64_t site, const double u[MATRIX]) {
#pragma unroll
  for (int c = 0; c < MATRIX; c++) to.data[c * to.stride + site] = u[c];
}
static __device__ inline void add(double sum[MATRIX], double factor, const plane_view &from,
                                  int64_t site) {
#pragma unroll
  for (int c = 0; c < MATRIX; c++) sum[c] += factor * from.data[c * from.stride + site];
}
static __device__ inline int64_t site_of_thread() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
