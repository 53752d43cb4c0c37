#include "bench/gemm/report.h"
#include "base/text.h"

#include <string.h>

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

static const char *memory_name(md_gemm_host_memory kind) {
  return kind == MD_GEMM_PAGEABLE ? "pageable" : kind == MD_GEMM_PINNED ? "pinned" : "registered";
}

/* A number of threads that is not known is none. */
static double known(int threads) {
  return threads > 0 ? threads : NAN;
}

#define COLUMNS                                                                                    \
  "kernel=%-18s precision|type=%-7s m=%6lld n=%6lld k=%6lld ranks=%5d "                            \
  "seconds_median|median_s=%11.4e seconds_std|std_s=%10.2e gflops_kernel|GF/s=%9.2f "              \
  "gflops_total|GF/s_all=%9.2f speedup=%8.2f vs_reference|vs_ref=%8.3f "                           \
  "relative_error|error=%9.1e "                                                                    \
  "relative_bound|bound=%9.1e seconds_mean=%g seconds_min=%g seconds_max=%g repetitions=%d "       \
  "seconds_total_median=%g excess=%g checked=%s seconds_scatter=%g seconds_product=%g "            \
  "seconds_gather=%g threads=%g alpha=%g beta=%g local_kernel=%s host_memory=%s pitched=%c "       \
  "reference_threads=%g"

void md_gemm_table_head(const md_context *context) {
  md_rows_head(context, COLUMNS);
}

/* Why a row has no ratio with the reference that ran beside it. */
static void say_threads(const md_context *context, int threads, int other) {
  if (threads == 0)
    md_say(context,
           "%18s on as many threads as its library likes, which are not known: no vs_ref\n", "");
  else if (other > 0 && other != threads)
    md_say(context, "%18s on %d thread%s, the reference on %d: no vs_ref\n", "", threads,
           md_plural(threads), other);
}

static void add_row(const md_context *context, cJSON *rows, const md_gemm_settings *settings,
                    const md_gemm_result *r, const md_gemm_result *reference, double baseline_s) {
  const md_gemm_problem *p = &r->problem;
  const md_bench_statistics *s = &r->kernel_s;
  const int block[3] = {(int)settings->block[0], (int)settings->block[1], (int)settings->block[2]};
  const int other = reference ? reference->threads : 0;
  const char *local = r->kernel                 ? r->kernel->name
                      : r->method->local_kernel ? settings->local_kernel->name
                                                : r->method->name;
  cJSON *row = md_rows_add(
      context, rows, COLUMNS, r->name, md_gemm_precision_name(p->precision), (long long)p->m,
      (long long)p->n, (long long)p->k, r->ranks, s->median, s->std, gflops(p, s->median),
      gflops(p, r->total_s.median), baseline_s / r->total_s.median, vs_reference(reference, r),
      r->error.relative_error, r->error.relative_bound, s->mean, s->min, s->max, settings->repeat,
      r->total_s.median, r->error.excess, r->checked, r->scatter_s, r->product_s, r->gather_s,
      known(r->threads), p->alpha, p->beta, local, memory_name(settings->host_memory),
      settings->place.pitched, known(other));
  md_report_integers(row, "grid", r->grid, 2);
  if (r->method)
    md_report_integers(row, "block", block, 3);
  else
    cJSON_AddNullToObject(row, "block");
  say_threads(context, r->threads, other);
  if (r->scatter_s > 0.0)
    md_say(context, "%18s scatter %.4e s, product %.4e s, gather %.4e s\n", "", r->scatter_s,
           r->product_s, r->gather_s);
}

void md_gemm_report_add(const md_context *context, cJSON *rows, const md_gemm_settings *settings,
                        const md_gemm_result *results, int count, double baseline_s) {
  for (int r = 0; r < count; r++)
    add_row(context, rows, settings, &results[r], reference_of(results, count, &results[r]),
            baseline_s);
}
