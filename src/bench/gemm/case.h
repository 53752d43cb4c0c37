#pragma once

#include "base/options.h"
#include "base/report.h"
#include "base/statistics.h"
#include "gemm/distributed.h"
#include "gemm/matrix.h"

/* The sizes that bench gemm is asked for. */
typedef struct md_gemm_shape {
  int64_t m, n, k;
} md_gemm_shape;

typedef struct md_gemm_shapes {
  md_gemm_shape *shape;
  int count;
} md_gemm_shapes;

/* "AxB" or "AxBxC" (count = 2, 3) with every number at least 1; `label` begins the message. */
md_status md_gemm_sizes_read(md_context *context, const char *label, const char *text, int count,
                             int64_t *sizes);

/* How products are run, checked and timed. */
typedef struct md_gemm_settings {
  md_gemm_request request; /* without sizes; kernel and variant of the ranks' own products */
  int repeat;
  int64_t check_size; /* every element of products up to check_size^3, sampled rows above; 0: no */
  uint64_t seed;
  md_gemm_host_memory host_memory;
} md_gemm_settings;

/* What bench gemm is asked to do. */
enum { MD_GEMM_MOST_ENTRIES = 64 };
#define MD_GEMM_MEMORY_WORDS "pageable|pinned|registered" /* as md_gemm_host_memory */

typedef struct md_gemm_entry {
  const md_gemm_kernel *kernel; /* NULL: a method */
  const md_gemm_method *method;
  int variant;
} md_gemm_entry;

typedef struct md_gemm_order {
  md_common_options common;
  bool grid_asked; /* by --grid or --process-grid */
  const char *baseline, *csv, *host_memory;
  char local_kernel[64];     /* as it was named */
  md_gemm_settings settings; /* without a device */
  md_gemm_entry entries[MD_GEMM_MOST_ENTRIES];
  int entry_count;
  bool all;              /* entries are all there are, the owner passes over what cannot run */
  md_choices precisions; /* md_gemm_precision */
  md_gemm_shapes list;
} md_gemm_order;

/* Reads the command line of bench gemm. With --help only order->common.help is set; order->list is
 * freed by the owner, also after a failure. Collective; all ranks return the same. */
md_status md_gemm_order_read(md_context *context, int argc, char **argv, md_gemm_order *order);

/* One row of bench gemm: a product by one kernel or one method over ranks, checked, then timed. */

/* What a method over ranks is asked for. */
md_gemm_request md_gemm_case_request(const md_gemm_settings *settings, md_gemm_precision precision,
                                     const md_gemm_shape *shape);

/* Matrices of a product, dense: this rank's parts of a request or, of one whose grid is one
 * process, whole ones. Each element is a function of the seed and its place, so that any of them
 * can be made anew. */
typedef struct md_gemm_matrices {
  md_gemm_request request;
  md_gemm_host_memory kind;
  void *a, *b, *c;
} md_gemm_matrices;

/* What all matrices of a product take. */
double md_gemm_case_bytes(const md_gemm_problem *problem);

/* Whole matrices on rank 0, A and B filled; elsewhere there are none. MD_ENVIRONMENT when rank 0
 * has less memory than they take. Collective. */
md_status md_gemm_matrices_make(md_context *context, const md_gemm_settings *settings,
                                const md_gemm_request *request, md_gemm_matrices *matrices);
void md_gemm_matrices_free(md_gemm_matrices *matrices);

typedef struct md_gemm_result {
  char name[64]; /* NAME or NAME:VARIANT */
  const md_gemm_kernel *kernel;
  const md_gemm_method *method;
  md_gemm_problem problem;
  int ranks, threads, grid[2];           /* threads: of each rank; 0: not known */
  md_statistics kernel_s, total_s;       /* the product; with transfers, scatter and gather */
  double scatter_s, product_s, gather_s; /* medians; NaN for a kernel of one rank */
  const char *checked;                   /* "all", "rows", "off" */
  md_gemm_error error;                   /* NaN when off */
} md_gemm_result;

/* By a kernel, with whole matrices; by a method over ranks, with those or with parts of its own.
 * Collective; the result is whole on rank 0. repeat >= 1. */
md_status md_gemm_case_kernel(md_context *context, const md_gemm_settings *settings,
                              md_gemm_matrices *matrices, const md_gemm_kernel *kernel, int variant,
                              int threads, int repeat, md_gemm_result *result);
md_status md_gemm_case_method(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_request *request, md_gemm_matrices *whole,
                              const md_gemm_method *method, md_gemm_result *result);

/* bench gemm as argv asks for it, with its report; or into rows of another report, which are on
 * rank 0: then what cannot run is passed over also where it is named, and *worst_excess, on every
 * rank, is raised to the largest of the checked products' errors over their bounds. Collective. */
md_status md_gemm_bench_rows(md_context *context, int argc, char **argv, cJSON *rows,
                             double *worst_excess);
