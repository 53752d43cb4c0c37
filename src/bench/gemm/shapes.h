#ifndef MD_BENCH_GEMM_SHAPES_H
#define MD_BENCH_GEMM_SHAPES_H

#include "base/context.h"
#include <stdint.h>

/* The sizes that bench gemm is asked for. */
typedef struct md_gemm_shape {
  int64_t m, n, k;
} md_gemm_shape;

typedef struct md_gemm_shapes {
  md_gemm_shape *shape; /* freed by the owner */
  int count;
} md_gemm_shapes;

/* Values of options, as md_option.parse; each appends to the md_gemm_shapes behind `target`.
 * "MxNxK,..." */
md_status md_gemm_shapes_read(md_context *context, const char *label, const char *text,
                              void *target);
/* "FROM:TO:STEP" or "N": m = n = k */
md_status md_gemm_square_read(md_context *context, const char *label, const char *text,
                              void *target);
/* "K,...": shapes 1 x 1 x K */
md_status md_gemm_depths_read(md_context *context, const char *label, const char *text,
                              void *target);
md_status md_gemm_shapes_append(md_context *context, md_gemm_shapes *list, int64_t m, int64_t n,
                                int64_t k);

/* "AxB" or "AxBxC" (count = 2, 3) with every number at least 1; `label` begins the message. */
md_status md_gemm_sizes_read(md_context *context, const char *label, const char *text, int count,
                             int64_t *sizes);
/* "AxB" into the int64_t[2] behind `target`, as md_option.parse. */
md_status md_gemm_pair_read(md_context *context, const char *label, const char *text, void *target);

/* MD_ENVIRONMENT when this machine has less memory than `bytes`. Local. */
md_status md_bench_memory_check(md_context *context, double bytes);

#endif
