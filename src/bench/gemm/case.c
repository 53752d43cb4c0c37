#include "bench/gemm/case.h"
#include "base/memory.h"
#include "base/timer.h"
#include "bench/gemm/options.h"
#include "gemm/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double bytes_of(const md_gemm_problem *p) {
  return ((double)p->m * (double)p->k + (double)p->k * (double)p->n) *
             (double)md_gemm_input_bytes(p->precision) +
         (double)p->m * (double)p->n * (double)md_gemm_output_bytes(p->precision) *
             (p->beta != 0.0 ? 2.0 : 1.0);
}

md_status md_gemm_case_memory_check(md_context *context, const md_gemm_problem *problem,
                                    int parts) {
  return md_bench_memory_check(context, bytes_of(problem) / parts);
}

static size_t c_bytes(const md_gemm_problem *p) {
  return (size_t)(p->m * p->n) * md_gemm_output_bytes(p->precision);
}

static md_status make_whole(md_context *context, const md_gemm_settings *settings,
                            md_gemm_matrices *x) {
  const md_gemm_problem *p = &x->problem;
  const size_t in = md_gemm_input_bytes(p->precision);
  MD_TRY(md_gemm_case_memory_check(context, p, 1));
  MD_TRY(md_gemm_host_allocate(context, x->kind, (size_t)(p->m * p->k) * in, "A", &x->a));
  MD_TRY(md_gemm_host_allocate(context, x->kind, (size_t)(p->k * p->n) * in, "B", &x->b));
  MD_TRY(md_gemm_host_allocate(context, x->kind, c_bytes(p), "C", &x->c));
  md_gemm_fill_whole(settings->seed, MD_GEMM_A, p->precision, p->m, p->k, x->a, p->lda);
  md_gemm_fill_whole(settings->seed, MD_GEMM_B, p->precision, p->k, p->n, x->b, p->ldb);
  if (p->beta == 0.0) return MD_OK;
  MD_TRY(md_allocate(context, c_bytes(p), "C before the product", &x->c0));
  md_gemm_fill_whole(settings->seed, MD_GEMM_C, md_gemm_output(p->precision), p->m, p->n, x->c0,
                     p->ldc);
  return MD_OK;
}

md_gemm_problem md_gemm_case_problem(const md_gemm_settings *settings, md_gemm_precision precision,
                                     int64_t m, int64_t n, int64_t k) {
  return (md_gemm_problem){m, n, k, precision, k, n, n, settings->alpha, settings->beta};
}

md_gemm_request md_gemm_case_request(const md_gemm_settings *settings,
                                     const md_gemm_problem *problem) {
  return (md_gemm_request){.problem = *problem,
                           .grid = settings->grid,
                           .block_rows = settings->block[0],
                           .block_columns = settings->block[1],
                           .block_depth = settings->block[2],
                           .kernel = settings->local_kernel,
                           .launch = {settings->local_variant, settings->threads, NULL},
                           .place = settings->place};
}

md_status md_gemm_matrices_make(md_context *context, const md_gemm_settings *settings,
                                const md_gemm_problem *problem, bool whole, md_gemm_matrices *x) {
  *x = (md_gemm_matrices){.problem = *problem, .kind = settings->host_memory};
  md_status status = md_gemm_check(context, problem);
  if (status == MD_OK && whole && context->rank == 0) status = make_whole(context, settings, x);
  return md_agree(context, status);
}

void md_gemm_matrices_free(md_gemm_matrices *x) {
  md_gemm_host_free(x->kind, x->a);
  md_gemm_host_free(x->kind, x->b);
  md_gemm_host_free(x->kind, x->c);
  free(x->c0);
  *x = (md_gemm_matrices){0};
}

/* C as it is before a product: its old values, or NaN where beta = 0 must not read them. */
static void reset_c(const md_gemm_problem *p, const void *c0, void *c) {
  if (c0)
    memcpy(c, c0, c_bytes(p));
  else
    memset(c, 0xff, c_bytes(p));
}

enum { MOST_TRANSFERS = 5 }; /* repetitions with transfers */

/* repeat products on the device alone, then some with their transfers. */
static md_status time_device(md_context *context, md_gemm_matrices *x, md_gemm_local *local,
                             int repeat, double *samples, md_gemm_result *result) {
  const int transfers = repeat < MOST_TRANSFERS ? repeat : MOST_TRANSFERS;
  md_gemm_times times;
  MD_TRY(md_gemm_local_again(context, local, &samples[0])); /* awake after the check on the host */
  for (int r = 0; r < repeat; r++) MD_TRY(md_gemm_local_again(context, local, &samples[r]));
  result->kernel_s = md_statistics_of(samples, repeat);
  for (int r = 0; r < transfers; r++) {
    if (x->c0) reset_c(&x->problem, x->c0, x->c);
    MD_TRY(md_gemm_local_run(context, local, &x->problem, x->a, x->b, x->c, &times));
    samples[r] = times.total_s;
  }
  result->total_s = md_statistics_of(samples, transfers);
  return MD_OK;
}

static md_status time_host(md_context *context, md_gemm_matrices *x, md_gemm_local *local,
                           int repeat, double *samples, md_gemm_result *result) {
  for (int r = 0; r < repeat; r++) {
    md_gemm_times times;
    if (x->c0) reset_c(&x->problem, x->c0, x->c);
    MD_TRY(md_gemm_local_run(context, local, &x->problem, x->a, x->b, x->c, &times));
    samples[r] = times.kernel_s;
  }
  result->kernel_s = result->total_s = md_statistics_of(samples, repeat);
  return MD_OK;
}

static md_status kernel_runs(md_context *context, const md_gemm_settings *settings,
                             md_gemm_matrices *x, md_gemm_local *local, int repeat,
                             md_gemm_result *result) {
  md_gemm_times times;
  double *samples = malloc((size_t)repeat * sizeof *samples);
  if (!samples) return md_fail_memory(context, (size_t)repeat * sizeof *samples, "timings");
  reset_c(&x->problem, x->c0, x->c);
  md_status status = md_gemm_local_run(context, local, &x->problem, x->a, x->b, x->c, &times);
  if (status == MD_OK) status = md_gemm_check_whole(context, settings, x, result);
  if (status == MD_OK)
    status = (result->kernel->space == MD_GEMM_DEVICE ? time_device : time_host)(
        context, x, local, repeat, samples, result);
  free(samples);
  return status;
}

/* Of each rank; 0: it cannot be told. */
static int threads_of(const md_gemm_kernel *kernel, const md_gemm_method *method, int asked) {
  int (*threads)(int) = method && !method->local_kernel ? method->threads : kernel->threads;
  return threads ? threads(asked) : asked;
}

md_status md_gemm_case_kernel(md_context *context, const md_gemm_settings *settings,
                              md_gemm_matrices *x, const md_gemm_kernel *kernel, int variant,
                              int threads, int repeat, md_gemm_result *result) {
  *result = (md_gemm_result){.kernel = kernel,
                             .problem = x->problem,
                             .ranks = 1,
                             .threads = threads_of(kernel, NULL, threads),
                             .grid = {1, 1},
                             .scatter_s = NAN,
                             .product_s = NAN,
                             .gather_s = NAN};
  snprintf(result->name, sizeof result->name, "%s%s%s", kernel->name, kernel->variants ? ":" : "",
           kernel->variants ? kernel->variants[variant] : "");
  md_status status = MD_OK;
  if (context->rank == 0) {
    const md_gemm_launch launch = {.variant = variant, .threads = threads};
    md_gemm_local local;
    status = md_gemm_local_open(context, kernel, &x->problem, &launch, &settings->place, &local);
    if (status == MD_OK) status = kernel_runs(context, settings, x, &local, repeat, result);
    md_gemm_local_close(&local);
  }
  return md_agree(context, status);
}

/* The parts of a method whose matrices start and end dealt out. */
typedef struct parts {
  void *a, *b, *c;
} parts;

static md_status make_part(md_context *context, const md_gemm_settings *settings,
                           const md_gemm_request *request, md_gemm_operand operand, void **part) {
  const md_gemm_layout layout = md_gemm_part_layout(request, operand);
  const md_gemm_subset rows = md_gemm_deal_subset(&layout.rows, layout.grid.row);
  const md_gemm_subset columns = md_gemm_deal_subset(&layout.columns, layout.grid.column);
  const int64_t m = md_gemm_layout_rows(&layout), n = md_gemm_layout_columns(&layout);
  md_gemm_precision type = request->problem.precision;
  if (operand == MD_GEMM_C) type = md_gemm_output(type);
  MD_TRY(
      md_allocate(context, (size_t)(m * n) * md_gemm_input_bytes(type), "part of a matrix", part));
  md_gemm_fill(settings->seed, operand, type, m, n, &rows, &columns, *part, n);
  return MD_OK;
}

static md_status make_parts(md_context *context, const md_gemm_settings *settings,
                            const md_gemm_request *request, parts *x) {
  *x = (parts){0};
  MD_TRY(make_part(context, settings, request, MD_GEMM_A, &x->a));
  MD_TRY(make_part(context, settings, request, MD_GEMM_B, &x->b));
  return make_part(context, settings, request, MD_GEMM_C, &x->c);
}

/* Before each product; the dealt-out C is simply made again. */
static void renew_c(const md_gemm_settings *settings, const md_gemm_request *request,
                    const md_gemm_matrices *x, const parts *part, const md_context *context) {
  if (!part) {
    if (context->rank == 0) reset_c(&x->problem, x->c0, x->c);
    return;
  }
  const md_gemm_layout layout = md_gemm_part_layout(request, MD_GEMM_C);
  const md_gemm_subset rows = md_gemm_deal_subset(&layout.rows, layout.grid.row);
  const md_gemm_subset columns = md_gemm_deal_subset(&layout.columns, layout.grid.column);
  const int64_t m = md_gemm_layout_rows(&layout), n = md_gemm_layout_columns(&layout);
  const md_gemm_precision type = md_gemm_output(request->problem.precision);
  md_gemm_fill(settings->seed, MD_GEMM_C, type, m, n, &rows, &columns, part->c, n);
}

static md_status check_method(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_request *request, const md_gemm_matrices *x,
                              const parts *part, md_gemm_result *result) {
  if (part) return md_gemm_check_parts(context, settings, request, part->c, result);
  return md_agree(context,
                  context->rank == 0 ? md_gemm_check_whole(context, settings, x, result) : MD_OK);
}

static md_status method_runs(md_context *context, const md_gemm_settings *settings,
                             const md_gemm_request *request, const md_gemm_matrices *x,
                             const parts *part, double *samples, md_gemm_result *result) {
  const int repeat = settings->repeat;
  const void *a = part ? part->a : x->a, *b = part ? part->b : x->b;
  void *c = part ? part->c : x->c;
  md_gemm_rank_times t;
  renew_c(settings, request, x, part, context);
  MD_TRY(result->method->run(context, request, a, b, c, &t));
  MD_TRY(check_method(context, settings, request, x, part, result));
  for (int r = 0; r < repeat; r++) {
    renew_c(settings, request, x, part, context);
    MD_TRY(result->method->run(context, request, a, b, c, &t));
    const double values[4] = {t.product_s, t.scatter_s + t.product_s + t.gather_s, t.scatter_s,
                              t.gather_s};
    for (int i = 0; i < 4; i++) samples[i * repeat + r] = values[i];
  }
  result->kernel_s = md_statistics_of(samples, repeat);
  result->total_s = md_statistics_of(samples + repeat, repeat);
  result->product_s = result->kernel_s.median;
  result->scatter_s = md_median(samples + 2 * repeat, repeat);
  result->gather_s = md_median(samples + 3 * repeat, repeat);
  return MD_OK;
}

md_status md_gemm_case_method(md_context *context, const md_gemm_settings *settings,
                              md_gemm_matrices *x, const md_gemm_method *method,
                              md_gemm_result *result) {
  const md_gemm_request request = md_gemm_case_request(settings, &x->problem);
  *result =
      (md_gemm_result){.method = method,
                       .problem = x->problem,
                       .ranks = context->ranks,
                       .threads = threads_of(settings->local_kernel, method, settings->threads),
                       .grid = {settings->grid.rows, settings->grid.columns}};
  snprintf(result->name, sizeof result->name, "%s", method->name);
  MD_TRY(md_gemm_request_check(context, method, &request));
  parts part = {0};
  double *samples = malloc(4 * (size_t)settings->repeat * sizeof *samples);
  md_status status = samples ? MD_OK : md_fail_memory(context, 4, "timings");
  if (status == MD_OK && !method->from_root)
    status = make_parts(context, settings, &request, &part);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = method_runs(context, settings, &request, x, method->from_root ? NULL : &part, samples,
                         result);
  free(samples);
  free(part.a);
  free(part.b);
  free(part.c);
  return status;
}
