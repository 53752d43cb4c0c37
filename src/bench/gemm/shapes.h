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

/* Appends what the options say; each text may be NULL. shapes "MxNxK,...", square
 * "FROM:TO:STEP" or "N", rect "MxN" with depths "K,...". MD_INPUT for anything else, for sizes
 * below 1, and for rect without depths or the other way round. Local. */
md_status md_gemm_shapes_read(md_context *context, const char *shapes, const char *square,
                              const char *rect, const char *depths, md_gemm_shapes *list);

/* "AxB" or "AxBxC" (count = 2, 3) with every number at least 1. `option` is named in the message.
 */
md_status md_gemm_sizes_read(md_context *context, const char *option, const char *text, int count,
                             int64_t *sizes);

/* MD_ENVIRONMENT when this machine has less memory than `bytes`. Local. */
md_status md_bench_memory_check(md_context *context, double bytes);

#endif
