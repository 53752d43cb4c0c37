#ifndef MD_GEMM_DEVICE_H
#define MD_GEMM_DEVICE_H

/* Matrices in device and pinned memory, their transfers and device times, by base/device.h; without
 * CUDA or a GPU open fails as that does. All calls are local. */
#include "gemm/gemm.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct md_gemm_device {
  char name[128];
  void *stream; /* cudaStream_t of all work below and of the launches */
  struct md_device_timer *timer;
} md_gemm_device;

/* The GPU of md_device_open. MD_ENVIRONMENT: no device, no driver, not in this build. */
md_status md_gemm_device_open(md_context *context, md_gemm_device *device);
void md_gemm_device_close(md_gemm_device *device);

/* A row-major matrix in device memory; ld in elements. */
typedef struct md_gemm_device_matrix {
  void *data;
  int64_t rows, columns, ld;
  size_t element_bytes;
} md_gemm_device_matrix;

/* Zeroed. pitched: rows start on 512 bytes; else ld = columns. MD_ENVIRONMENT with the bytes asked
 * for and free when there is not enough. */
md_status md_gemm_device_allocate(md_context *context, int64_t rows, int64_t columns,
                                  size_t element_bytes, bool pitched,
                                  md_gemm_device_matrix *matrix);
void md_gemm_device_free(md_gemm_device_matrix *matrix); /* all zero: nothing to do */

/* Whole matrices, host leading dimension in elements; they return when the copy is done. */
md_status md_gemm_device_put(md_context *context, const md_gemm_device_matrix *to, const void *from,
                             int64_t from_ld);
md_status md_gemm_device_get(md_context *context, void *to, int64_t to_ld,
                             const md_gemm_device_matrix *from);
/* Device to device, same shape: the copy that effective bandwidths are compared with. Queued. */
md_status md_gemm_device_copy(md_context *context, const md_gemm_device_matrix *to,
                              const md_gemm_device_matrix *from);

typedef enum md_gemm_host_memory {
  MD_GEMM_PAGEABLE,  /* md_allocate */
  MD_GEMM_PINNED,    /* md_device_allocate_pinned */
  MD_GEMM_REGISTERED /* md_allocate, then md_device_pin */
} md_gemm_host_memory;

/* *memory is NULL on failure. Pageable memory works without a device too. */
md_status md_gemm_host_allocate(md_context *context, md_gemm_host_memory kind, size_t bytes,
                                const char *what, void **memory);
void md_gemm_host_free(md_gemm_host_memory kind, void *memory); /* NULL: nothing to do */

/* Device time between the two marks on the stream; stop waits for all that was queued and reports
 * what failed in it. */
void md_gemm_device_start(md_gemm_device *device);
md_status md_gemm_device_stop(md_context *context, md_gemm_device *device, double *time_s);

#ifdef __cplusplus
}
#endif
#endif
