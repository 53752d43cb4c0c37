#pragma once

#include "gemm/gemm.h"

/* Matrices in device and pinned memory, their transfers and device times, by base/device.h; without
 * CUDA or a GPU open fails as that does. All calls here are local. */
typedef struct md_gemm_device {
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

typedef enum md_gemm_host_memory {
  MD_GEMM_PAGEABLE,  /* md_allocate */
  MD_GEMM_PINNED,    /* md_device_allocate_pinned */
  MD_GEMM_REGISTERED /* md_allocate, then md_device_pin */
} md_gemm_host_memory;

/* *memory is NULL on failure. Pageable memory works without a device too. */
md_status md_gemm_host_allocate(md_context *context, md_gemm_host_memory kind, size_t bytes,
                                const char *what, void **memory);
void md_gemm_host_free(md_gemm_host_memory kind, void *memory); /* NULL: nothing to do */

/* Device time on the stream since md_device_timer_start of device->timer; waits for all that was
 * queued and reports what failed in it. */
md_status md_gemm_device_stop(md_context *context, md_gemm_device *device, double *time_s);

/* Products of host matrices by a kernel of either space, with the transfers that this takes. What
 * one rank does with its own memory; all calls are local. */
typedef struct md_gemm_place {
  md_gemm_device *device; /* NULL: host kernels only */
  bool pitched;           /* device matrices */
} md_gemm_place;

typedef struct md_gemm_local {
  md_gemm_plan plan;
  md_gemm_place place;
  md_gemm_device_matrix a, b, c; /* all zero for a host kernel */
} md_gemm_local;

/* Opens the kernel for host matrices of the problem's shape and leading dimensions; on a device
 * the leading dimensions are those of its own matrices. The stream of the launch is the place's.
 * After a failure close may still be called. */
md_status md_gemm_local_open(md_context *context, const md_gemm_kernel *kernel,
                             const md_gemm_problem *problem, const md_gemm_launch *launch,
                             const md_gemm_place *place, md_gemm_local *local);
void md_gemm_local_close(md_gemm_local *local);

/* One product c <- alpha a b + beta c of host matrices with its two times: the product alone, and
 * with all transfers (equal on the host). */
typedef struct md_gemm_times {
  double kernel_s, total_s;
} md_gemm_times;
md_status md_gemm_local_run(md_context *context, md_gemm_local *local,
                            const md_gemm_problem *problem, const void *a, const void *b, void *c,
                            md_gemm_times *times);

/* The same in steps, for several products that add to one c: load once, then begin and finish each
 * product with a and b of the host (c: where c is for a host kernel), store once. Load and store
 * copy to and from the device; for a host kernel they do nothing. Begin returns when a and b may be
 * overwritten, finish when the product is done. Between them a device multiplies while the host is
 * free; a host kernel does all of it in begin. *kernel_s after finish. */
md_status md_gemm_local_load(md_context *context, md_gemm_local *local, const void *c, int64_t ldc);
md_status md_gemm_local_begin(md_context *context, md_gemm_local *local,
                              const md_gemm_problem *problem, const void *a, const void *b, void *c,
                              double *kernel_s);
md_status md_gemm_local_finish(md_context *context, md_gemm_local *local, double *kernel_s);
md_status md_gemm_local_store(md_context *context, md_gemm_local *local, void *c, int64_t ldc);

/* The product once more on what lies on the device, without transfers; device kernels only. C
 * there takes the result in. */
md_status md_gemm_local_again(md_context *context, md_gemm_local *local, double *kernel_s);
