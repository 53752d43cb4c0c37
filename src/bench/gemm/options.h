#ifndef MD_BENCH_GEMM_OPTIONS_H
#define MD_BENCH_GEMM_OPTIONS_H

#include "base/options.h"
#include "bench/gemm/case.h"
#include "bench/gemm/shapes.h"

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

#endif
