#ifndef MD_BENCH_GEMM_REPORT_H
#define MD_BENCH_GEMM_REPORT_H

#include "base/report.h"
#include "bench/gemm/case.h"

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

#endif
