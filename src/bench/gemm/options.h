#pragma once

#include "base/context.h"
#include "base/options.h"
#include "bench/gemm/case.h"
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

/* What bench gemm is asked to do. */
enum { MD_GEMM_MOST_ENTRIES = 64, MD_GEMM_MOST_PRECISIONS = MD_LIST_MOST };

typedef struct md_gemm_entry {
  const md_gemm_kernel *kernel; /* NULL: a method */
  const md_gemm_method *method;
  int variant;
} md_gemm_entry;

typedef struct md_gemm_order {
  md_common_options common;
  bool grid_asked; /* by --grid or --process-grid */
  const char *baseline, *csv;
  md_gemm_settings settings; /* without a device */
  md_gemm_shapes list;       /* freed by the owner, also after a failure */
  md_gemm_entry entries[MD_GEMM_MOST_ENTRIES];
  int entry_count;
  bool all; /* entries are all there are, the owner passes over what cannot run */
  md_gemm_precision precision[MD_GEMM_MOST_PRECISIONS];
  int precision_count;
} md_gemm_order;

/* Reads the command line of bench gemm. With --help only order->common.help is set. Collective; all
 * ranks return the same. */
md_status md_gemm_order_read(md_context *context, int argc, char **argv, md_gemm_order *order);
