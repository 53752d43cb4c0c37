#ifndef MD_GEMM_LOCAL_H
#define MD_GEMM_LOCAL_H

#include "gemm/device.h"

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

/* The same in steps, for several products that add to one c: load once, multiply with a and b of
 * the host (c: where c is for a host kernel), store once. Load and store copy to and from the
 * device; for a host kernel they do nothing. */
md_status md_gemm_local_load(md_context *context, md_gemm_local *local, const void *c, int64_t ldc);
md_status md_gemm_local_multiply(md_context *context, md_gemm_local *local,
                                 const md_gemm_problem *problem, const void *a, const void *b,
                                 void *c, double *kernel_s);
/* Multiply in two halves: begin returns when a and b may be overwritten, finish when the product is
 * done. Between them a device multiplies while the host is free; a host kernel does all of it in
 * begin. *kernel_s after finish. */
md_status md_gemm_local_begin(md_context *context, md_gemm_local *local,
                              const md_gemm_problem *problem, const void *a, const void *b, void *c,
                              double *kernel_s);
md_status md_gemm_local_finish(md_context *context, md_gemm_local *local, double *kernel_s);
md_status md_gemm_local_store(md_context *context, md_gemm_local *local, void *c, int64_t ldc);

/* The product once more on what lies on the device, without transfers; device kernels only. C
 * there takes the result in. */
md_status md_gemm_local_again(md_context *context, md_gemm_local *local, double *kernel_s);

#endif
