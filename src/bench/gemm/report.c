#include "bench/gemm/report.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static void add_real(cJSON *row, const char *key, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(row, key, value);
  else
    cJSON_AddNullToObject(row, key);
}

static double gflops(const md_gemm_problem *p, double time_s) {
  return 2e-9 * (double)p->m * (double)p->n * (double)p->k / time_s;
}

static const char *reference_name(const md_gemm_result *result) {
  if (result->method) return "scalapack";
  return result->kernel->space == MD_GEMM_DEVICE ? "cublas" : "openblas";
}

/* NULL: it is not among the results. */
static const md_gemm_result *reference_of(const md_gemm_result *results, int count,
                                          const md_gemm_result *result) {
  for (int r = 0; r < count; r++)
    if (strcmp(results[r].name, reference_name(result)) == 0) return &results[r];
  return NULL;
}

/* Times of other numbers of threads are no measure of a kernel; on a device none of them matter. */
static double vs_reference(const md_gemm_result *reference, const md_gemm_result *r) {
  const bool device = r->kernel && r->kernel->space == MD_GEMM_DEVICE;
  if (!reference || (!device && (r->threads == 0 || reference->threads != r->threads))) return NAN;
  return reference->kernel_s.median / r->kernel_s.median;
}

static void add_threads(cJSON *row, const char *key, int threads) {
  if (threads > 0)
    cJSON_AddNumberToObject(row, key, threads);
  else
    cJSON_AddNullToObject(row, key);
}

static const char *memory_name(md_gemm_host_memory kind) {
  return kind == MD_GEMM_PAGEABLE ? "pageable" : kind == MD_GEMM_PINNED ? "pinned" : "registered";
}

static void add_how(cJSON *row, const md_gemm_settings *settings, const md_gemm_result *r) {
  const int block[3] = {(int)settings->block[0], (int)settings->block[1], (int)settings->block[2]};
  add_threads(row, "threads", r->threads);
  cJSON_AddNumberToObject(row, "alpha", r->problem.alpha);
  cJSON_AddNumberToObject(row, "beta", r->problem.beta);
  if (r->method)
    md_report_integers(row, "block", block, 3);
  else
    cJSON_AddNullToObject(row, "block");
  cJSON_AddStringToObject(row, "local_kernel",
                          r->kernel                 ? r->kernel->name
                          : r->method->local_kernel ? settings->local_kernel->name
                                                    : r->method->name);
  cJSON_AddStringToObject(row, "host_memory", memory_name(settings->host_memory));
  cJSON_AddBoolToObject(row, "pitched", settings->place.pitched);
}

static cJSON *make_row(const md_gemm_settings *settings, const md_gemm_result *r,
                       const md_gemm_result *reference, double baseline_s) {
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", r->name);
  cJSON_AddStringToObject(row, "precision", md_gemm_precision_name(r->problem.precision));
  cJSON_AddNumberToObject(row, "m", (double)r->problem.m);
  cJSON_AddNumberToObject(row, "n", (double)r->problem.n);
  cJSON_AddNumberToObject(row, "k", (double)r->problem.k);
  cJSON_AddNumberToObject(row, "ranks", r->ranks);
  md_report_integers(row, "grid", r->grid, 2);
  cJSON_AddNumberToObject(row, "seconds_mean", r->kernel_s.mean);
  cJSON_AddNumberToObject(row, "seconds_std", r->kernel_s.std);
  cJSON_AddNumberToObject(row, "seconds_median", r->kernel_s.median);
  cJSON_AddNumberToObject(row, "seconds_min", r->kernel_s.min);
  cJSON_AddNumberToObject(row, "seconds_max", r->kernel_s.max);
  cJSON_AddNumberToObject(row, "repetitions", settings->repeat);
  cJSON_AddNumberToObject(row, "seconds_total_median", r->total_s.median);
  add_real(row, "gflops_kernel", gflops(&r->problem, r->kernel_s.median));
  add_real(row, "gflops_total", gflops(&r->problem, r->total_s.median));
  add_real(row, "speedup", baseline_s / r->total_s.median);
  add_real(row, "relative_error", r->error.relative_error);
  add_real(row, "relative_bound", r->error.relative_bound);
  add_real(row, "excess", r->error.excess);
  cJSON_AddStringToObject(row, "checked", r->checked);
  add_real(row, "vs_reference", vs_reference(reference, r));
  add_real(row, "seconds_scatter", r->scatter_s);
  add_real(row, "seconds_product", r->product_s);
  add_real(row, "seconds_gather", r->gather_s);
  add_how(row, settings, r);
  add_threads(row, "reference_threads", reference ? reference->threads : 0);
  return row;
}

void md_gemm_report_add(cJSON *rows, const md_gemm_settings *settings,
                        const md_gemm_result *results, int count, double baseline_s) {
  for (int r = 0; r < count; r++)
    cJSON_AddItemToArray(rows, make_row(settings, &results[r],
                                        reference_of(results, count, &results[r]), baseline_s));
}

void md_gemm_table_head(const md_context *context) {
  md_say(context, "%-18s %-7s %6s %6s %6s %5s %11s %10s %9s %9s %8s %8s %9s %9s\n", "kernel",
         "type", "m", "n", "k", "ranks", "median_s", "std_s", "GF/s", "GF/s_all", "speedup",
         "vs_ref", "error", "bound");
}

static double real_of(const cJSON *row, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(row, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* A number of the row, or "-" where it has none. */
static void say_real(const md_context *context, const cJSON *row, const char *key, int width,
                     const char *format) {
  const double value = real_of(row, key);
  char text[32] = "-";
  if (isfinite(value)) snprintf(text, sizeof text, format, value);
  md_say(context, " %*s", width, text);
}

/* Why a row has no ratio with the reference that ran beside it. */
static void say_threads(const md_context *context, const cJSON *row) {
  const double threads = real_of(row, "threads"), other = real_of(row, "reference_threads");
  if (isnan(threads))
    md_say(context,
           "%18s on as many threads as its library likes, which are not known: no vs_ref\n", "");
  else if (isfinite(other) && other != threads)
    md_say(context, "%18s on %.0f thread%s, the reference on %.0f: no vs_ref\n", "", threads,
           md_plural((long long)threads), other);
}

void md_gemm_table_rows(const md_context *context, const cJSON *rows, int count) {
  const int size = cJSON_GetArraySize(rows);
  for (int i = size - count; i < size; i++) {
    const cJSON *row = cJSON_GetArrayItem(rows, i);
    md_say(context, "%-18s %-7s %6.0f %6.0f %6.0f %5.0f %11.4e %10.2e %9.2f %9.2f",
           cJSON_GetObjectItem(row, "kernel")->valuestring,
           cJSON_GetObjectItem(row, "precision")->valuestring, real_of(row, "m"), real_of(row, "n"),
           real_of(row, "k"), real_of(row, "ranks"), real_of(row, "seconds_median"),
           real_of(row, "seconds_std"), real_of(row, "gflops_kernel"),
           real_of(row, "gflops_total"));
    say_real(context, row, "speedup", 8, "%.2f");
    say_real(context, row, "vs_reference", 8, "%.3f");
    say_real(context, row, "relative_error", 9, "%.1e");
    say_real(context, row, "relative_bound", 9, "%.1e");
    md_say(context, "\n");
    say_threads(context, row);
    if (isfinite(real_of(row, "seconds_scatter")) && real_of(row, "seconds_scatter") > 0.0)
      md_say(context, "%18s scatter %.4e s, product %.4e s, gather %.4e s\n", "",
             real_of(row, "seconds_scatter"), real_of(row, "seconds_product"),
             real_of(row, "seconds_gather"));
  }
}
