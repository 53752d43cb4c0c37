#include "bench/gemm/report.h"

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

static double reference_time_s(const md_gemm_result *results, int count,
                               const md_gemm_result *result) {
  for (int r = 0; r < count; r++)
    if (strcmp(results[r].name, reference_name(result)) == 0) return results[r].kernel_s.median;
  return NAN;
}

static const char *memory_name(md_gemm_host_memory kind) {
  return kind == MD_GEMM_PAGEABLE ? "pageable" : kind == MD_GEMM_PINNED ? "pinned" : "registered";
}

static void add_how(cJSON *row, const md_gemm_settings *settings, const md_gemm_result *r) {
  const int block[3] = {(int)settings->block[0], (int)settings->block[1], (int)settings->block[2]};
  cJSON_AddNumberToObject(row, "threads", r->threads);
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
                       double reference_s, double baseline_s) {
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
  add_real(row, "vs_reference", reference_s / r->kernel_s.median);
  add_real(row, "seconds_scatter", r->scatter_s);
  add_real(row, "seconds_product", r->product_s);
  add_real(row, "seconds_gather", r->gather_s);
  add_how(row, settings, r);
  return row;
}

void md_gemm_report_add(cJSON *rows, const md_gemm_settings *settings,
                        const md_gemm_result *results, int count, double baseline_s) {
  for (int r = 0; r < count; r++)
    cJSON_AddItemToArray(rows, make_row(settings, &results[r],
                                        reference_time_s(results, count, &results[r]), baseline_s));
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

void md_gemm_table_rows(const md_context *context, const cJSON *rows, int count) {
  const int size = cJSON_GetArraySize(rows);
  for (int i = size - count; i < size; i++) {
    const cJSON *row = cJSON_GetArrayItem(rows, i);
    md_say(context,
           "%-18s %-7s %6.0f %6.0f %6.0f %5.0f %11.4e %10.2e %9.2f %9.2f %8.2f %8.3f %9.1e %9.1e\n",
           cJSON_GetObjectItem(row, "kernel")->valuestring,
           cJSON_GetObjectItem(row, "precision")->valuestring, real_of(row, "m"), real_of(row, "n"),
           real_of(row, "k"), real_of(row, "ranks"), real_of(row, "seconds_median"),
           real_of(row, "seconds_std"), real_of(row, "gflops_kernel"), real_of(row, "gflops_total"),
           real_of(row, "speedup"), real_of(row, "vs_reference"), real_of(row, "relative_error"),
           real_of(row, "relative_bound"));
    if (isfinite(real_of(row, "seconds_scatter")) && real_of(row, "seconds_scatter") > 0.0)
      md_say(context, "%18s scatter %.4e s, product %.4e s, gather %.4e s\n", "",
             real_of(row, "seconds_scatter"), real_of(row, "seconds_product"),
             real_of(row, "seconds_gather"));
  }
}
