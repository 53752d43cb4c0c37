#include "gemm/device.h"
#include "gemm/gemv.h"
#include "gemm/kernels.h"
#include "gemm/shift.h"
#include "gemm/transpose.h"

#include "base/memory.h"
#include <stdlib.h>

/* The device side of a build without CUDA: every name answers with how to build it. */
static const char REASON[] = "this build has no CUDA; install the CUDA Toolkit (>= 12) and "
                             "configure with MINIDIRAC_CUDA=ON";

#define GEMM(kernel)                                                                               \
  const md_gemm_kernel md_gemm_##kernel = {.name = #kernel,                                        \
                                           .idea = "CUDA kernel",                                  \
                                           .space = MD_GEMM_DEVICE,                                \
                                           .precisions = (1u << MD_GEMM_PRECISIONS) - 1,           \
                                           .unavailable = REASON}
GEMM(k0);
GEMM(k1);
GEMM(k2);
GEMM(k3);
GEMM(k4);
GEMM(k5);
GEMM(k6);
GEMM(k7);
GEMM(wmma_simple);
GEMM(wmma_tiled);
GEMM(wgmma);
GEMM(dmma);
GEMM(cublas);

#define SMALL(kind, kernel)                                                                        \
  const md_##kind##_kernel md_##kind##_##kernel = {                                                \
      .name = #kernel, .idea = "CUDA kernel", .space = MD_GEMM_DEVICE, .unavailable = REASON}
SMALL(transpose, naive);
SMALL(transpose, tile);
SMALL(transpose, padded);
SMALL(shift, direct);
SMALL(shift, shared);
SMALL(gemv, thread_row);
SMALL(gemv, two_phase);
SMALL(gemv, block_serial);
SMALL(gemv, block_atomic);
SMALL(gemv, warp_shuffle);
SMALL(gemv, cublas);

md_status md_gemm_device_open(md_context *context, md_gemm_device *device) {
  *device = (md_gemm_device){0};
  return md_fail(context, MD_ENVIRONMENT, "no device: %s", REASON);
}

void md_gemm_device_close(md_gemm_device *device) {
  *device = (md_gemm_device){0};
}

md_status md_gemm_device_allocate(md_context *context, md_gemm_device *device, int64_t rows,
                                  int64_t columns, size_t element_bytes, bool pitched,
                                  md_gemm_device_matrix *matrix) {
  (void)device, (void)rows, (void)columns, (void)element_bytes, (void)pitched;
  *matrix = (md_gemm_device_matrix){0};
  return md_fail(context, MD_ENVIRONMENT, "no device memory: %s", REASON);
}

void md_gemm_device_free(md_gemm_device_matrix *matrix) {
  *matrix = (md_gemm_device_matrix){0};
}

md_status md_gemm_device_put(md_context *context, md_gemm_device *device,
                             const md_gemm_device_matrix *to, const void *from, int64_t from_ld) {
  (void)device, (void)to, (void)from, (void)from_ld;
  return md_fail(context, MD_ENVIRONMENT, "no device memory: %s", REASON);
}

md_status md_gemm_device_get(md_context *context, md_gemm_device *device, void *to, int64_t to_ld,
                             const md_gemm_device_matrix *from) {
  (void)device, (void)to, (void)to_ld, (void)from;
  return md_fail(context, MD_ENVIRONMENT, "no device memory: %s", REASON);
}

md_status md_gemm_device_copy(md_context *context, md_gemm_device *device,
                              const md_gemm_device_matrix *to, const md_gemm_device_matrix *from) {
  (void)device, (void)to, (void)from;
  return md_fail(context, MD_ENVIRONMENT, "no device memory: %s", REASON);
}

md_status md_gemm_host_allocate(md_context *context, md_gemm_host_memory kind, size_t bytes,
                                const char *what, void **memory) {
  *memory = NULL;
  if (kind != MD_GEMM_PAGEABLE)
    return md_fail(context, MD_ENVIRONMENT, "no pinned memory: %s", REASON);
  return md_allocate(context, bytes, what, memory);
}

void md_gemm_host_free(md_gemm_host_memory kind, void *memory) {
  (void)kind;
  free(memory);
}

md_status md_gemm_device_start(md_context *context, md_gemm_device *device) {
  (void)device;
  return md_fail(context, MD_ENVIRONMENT, "no device: %s", REASON);
}

md_status md_gemm_device_stop(md_context *context, md_gemm_device *device, double *time_s) {
  (void)device;
  *time_s = 0.0;
  return md_fail(context, MD_ENVIRONMENT, "no device: %s", REASON);
}
