#pragma once

#include "base/context.h"

#include <stdbool.h>
#include <stdint.h>

/* C <- alpha A B + beta C, row-major, any m, n, k >= 1, by many kernels that answer to one call. */
MD_C_BEGIN

/* Type of A and B. C, alpha and beta are double for MD_GEMM_DOUBLE and float for all others.
 * TF32 is stored as float; the kernel rounds the operands to 10 mantissa bits. */
typedef enum md_gemm_precision {
  MD_GEMM_DOUBLE,
  MD_GEMM_SINGLE,
  MD_GEMM_TF32,
  MD_GEMM_HALF,
  MD_GEMM_BF16,
  MD_GEMM_PRECISIONS
} md_gemm_precision;
#define MD_GEMM_PRECISION_WORDS "double|single|tf32|half|bf16" /* as the enumeration */

typedef enum md_gemm_space { MD_GEMM_HOST, MD_GEMM_DEVICE } md_gemm_space;

/* A is m x k, B is k x n, C is m x n; element (i, j) of X stands at x[i * ldx + j], leading
 * dimensions in elements, lda >= k, ldb >= n, ldc >= n. beta == 0: C is assigned and never read
 * (it may hold NaN). Elements behind a row's end are neither read as values nor written. */
typedef struct md_gemm_problem {
  int64_t m, n, k;
  md_gemm_precision precision;
  int64_t lda, ldb, ldc;
  double alpha, beta;
} md_gemm_problem;

/* How to run it; what a kernel has no use for it ignores. */
typedef struct md_gemm_launch {
  int variant;  /* index into the kernel's variants, 0 when it has none */
  int threads;  /* host: OpenMP threads */
  void *stream; /* device: a cudaStream_t; work is queued there, run does not wait for it */
} md_gemm_launch;

/* One product by a kernel that was opened: the problem given to open, which was checked, and the
 * state that open made; a, b, c are of the kernel's space, of the element types above, aligned to
 * one element only, and do not alias. */
typedef struct md_gemm_call {
  const md_gemm_problem *problem;
  const md_gemm_launch *launch;
  void *state;
  const void *a, *b;
  void *c;
} md_gemm_call;

typedef struct md_gemm_kernel {
  const char *name;
  md_gemm_space space;
  unsigned precisions;         /* bit 1u << md_gemm_precision */
  const char *const *variants; /* NULL or NULL-terminated names ("16x16", ...); the first is the
                                  default; asked for as NAME:VARIANT */
  const char *unavailable;     /* NULL, or why this build lacks it and how to get it */

  /* MD_ENVIRONMENT with the reason when this machine cannot run it (a compute capability, a
   * driver). Opens the device. May be NULL: wherever a kernel of its space runs. Local. */
  md_status (*serves)(md_context *context);
  /* Library handles, padded copies, tensor maps that do not hang on the operands: all that is to
   * stay out of the timing. May be NULL, then *state stays NULL. Undone by close. Local. */
  md_status (*open)(md_context *context, const md_gemm_problem *problem,
                    const md_gemm_launch *launch, void **state);
  void (*close)(void *state);
  /* One product. Local. MD_ENVIRONMENT with the reason when a launch fails. */
  md_status (*run)(md_context *context, const md_gemm_call *call);
  /* On the host, threads that work when `asked` are asked for; 0: it cannot be told. May be NULL:
   * as many as asked. Local. */
  int (*threads)(int asked);
  /* MD_INPUT for sizes that it does not take. May be NULL: it takes all. Local. */
  md_status (*takes)(md_context *context, const md_gemm_problem *problem);
} md_gemm_kernel;

/* The table, NULL-terminated: the host kernels, then the device ladder. Every name is there in
 * every build. */
const md_gemm_kernel *const *md_gemm_kernels(void);
/* By name or NAME:VARIANT (*variant gets its index; 0 for a kernel that this build lacks). MD_INPUT
 * with the known names. Local. */
md_status md_gemm_find(md_context *context, const char *name, const md_gemm_kernel **kernel,
                       int *variant);

/* A kernel made ready for one problem. */
typedef struct md_gemm_plan {
  const md_gemm_kernel *kernel;
  md_gemm_problem problem;
  md_gemm_launch launch;
  void *state;
} md_gemm_plan;

/* Checks sizes, leading dimensions and precision (MD_INPUT), that the kernel is there
 * (MD_ENVIRONMENT with how to get it), and opens it. Local. */
md_status md_gemm_plan_open(md_context *context, const md_gemm_kernel *kernel,
                            const md_gemm_problem *problem, const md_gemm_launch *launch,
                            md_gemm_plan *plan);
md_status md_gemm_plan_run(md_context *context, const md_gemm_plan *plan, const void *a,
                           const void *b, void *c);
void md_gemm_plan_close(md_gemm_plan *plan);
/* The three in one. */
md_status md_gemm(md_context *context, const md_gemm_kernel *kernel, const md_gemm_problem *problem,
                  const md_gemm_launch *launch, const void *a, const void *b, void *c);

/* That the kernel takes inputs of the precision (MD_INPUT) and is there (MD_ENVIRONMENT with how to
 * get it). Local. */
md_status md_gemm_kernel_check(md_context *context, const md_gemm_kernel *kernel,
                               md_gemm_precision precision);
/* Sizes >= 1, leading dimensions, and that no matrix has more bytes than size_t holds: MD_INPUT
 * with the rule. Local. */
md_status md_gemm_check(md_context *context, const md_gemm_problem *problem);

size_t md_gemm_input_bytes(md_gemm_precision precision);  /* of an element of A, B */
size_t md_gemm_output_bytes(md_gemm_precision precision); /* of an element of C */
const char *md_gemm_precision_name(md_gemm_precision precision);

/* The table, X(kernel): the host kernels, then those of gemm/cuda/, of which k0 .. k7 climb the
 * ladder of CUDA-core kernels. In a build without CUDA those say so. */
#define MD_GEMM_NO_CUDA                                                                            \
  "this build has no CUDA; install the CUDA Toolkit (>= 12) and configure with MINIDIRAC_CUDA=ON"
#define MD_GEMM_HOST_KERNELS(X) X(naive) X(cpu_tiled) X(openblas)
#define MD_GEMM_DEVICE_KERNELS(X)                                                                  \
  X(k0)                                                                                            \
  X(k1) X(k2) X(k3) X(k4) X(k5) X(k6) X(k7) X(wmma_simple) X(wmma_tiled) X(wgmma) X(dmma) X(cublas)
#define MD_ROW(kernel) extern const md_gemm_kernel md_gemm_##kernel;
MD_GEMM_HOST_KERNELS(MD_ROW)
MD_GEMM_DEVICE_KERNELS(MD_ROW)
#undef MD_ROW

MD_C_END
