#pragma once

#include "base/report.h"
#include "base/statistics.h"
#include "gemm/distributed.h"
#include "gemm/matrix.h"

/* One row of bench gemm: a product by one kernel or one method over ranks, checked, then timed. */
typedef struct md_gemm_settings {
  double alpha, beta;
  int repeat;
  int64_t check_size; /* every element of products up to check_size^3, sampled rows above; 0: no */
  uint64_t seed;
  md_gemm_host_memory host_memory;
  md_gemm_place place;
  int threads;
  md_gemm_grid grid;
  int64_t block[3];                   /* of m, n, k */
  const md_gemm_kernel *local_kernel; /* of the ranks' own products */
  int local_variant;
} md_gemm_settings;

/* Whole matrices on rank 0, dense; c0 is C before the product (NULL for beta == 0). */
typedef struct md_gemm_matrices {
  md_gemm_problem problem;
  md_gemm_host_memory kind;
  void *a, *b, *c, *c0;
} md_gemm_matrices;

/* The problem of a shape, dense. */
md_gemm_problem md_gemm_case_problem(const md_gemm_settings *settings, md_gemm_precision precision,
                                     int64_t m, int64_t n, int64_t k);
/* What a method over ranks is asked for. */
md_gemm_request md_gemm_case_request(const md_gemm_settings *settings,
                                     const md_gemm_problem *problem);

/* MD_ENVIRONMENT when this machine has less memory than the matrices take, or one of the `parts`
 * that they are dealt out in. Local. */
md_status md_gemm_case_memory_check(md_context *context, const md_gemm_problem *problem, int parts);

/* With `whole`, on rank 0, the filled matrices of the problem; without, none: methods whose
 * matrices stay dealt out make their own parts. MD_INPUT for sizes that overflow, MD_ENVIRONMENT
 * when rank 0 has less memory than they take. Collective. */
md_status md_gemm_matrices_make(md_context *context, const md_gemm_settings *settings,
                                const md_gemm_problem *problem, bool whole,
                                md_gemm_matrices *matrices);
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

/* Collective; the result is whole on rank 0. repeat >= 1. */
md_status md_gemm_case_kernel(md_context *context, const md_gemm_settings *settings,
                              md_gemm_matrices *matrices, const md_gemm_kernel *kernel, int variant,
                              int threads, int repeat, md_gemm_result *result);
md_status md_gemm_case_method(md_context *context, const md_gemm_settings *settings,
                              md_gemm_matrices *matrices, const md_gemm_method *method,
                              md_gemm_result *result);

/* Compares c on rank 0 with the definition. Local. */
md_status md_gemm_check_whole(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_matrices *matrices, md_gemm_result *result);
/* The same for the dealt-out result of a request: every rank makes the rows of A and columns of B
 * that it needs anew. Collective. */
md_status md_gemm_check_parts(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_request *request, const void *c,
                              md_gemm_result *result);

/* The results of one shape as rows of the report and lines of the table. */

/* The head of the table. */
void md_gemm_table_head(const md_context *context);
/* Adds a row and a line for each result. baseline_s: the sequential time of this shape (NaN: none
 * was measured). vs_reference is the GFLOP/s of the product over that of the library of the same
 * kind (openblas on the host, cublas on a device, scalapack over ranks), null when it is not among
 * the results or ran on another number of threads. Local. */
void md_gemm_report_add(const md_context *context, cJSON *rows, const md_gemm_settings *settings,
                        const md_gemm_result *results, int count, double baseline_s);

/* bench gemm as argv asks for it, into rows of another report, which are on rank 0. *worst_excess,
 * on every rank: the largest of the checked products' errors over their bounds. Collective. */
md_status md_gemm_bench_rows(md_context *context, int argc, char **argv, cJSON *rows,
                             double *worst_excess);
