#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/gemm/case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
  "seconds_gather=%g threads=%g alpha=%g beta=%g local_kernel=%s host_memory=%s pitched=%hhd "     \
  "reference_threads=%g"

/* Why a row has no ratio with the reference that ran beside it. */
static void say_threads(const md_context *context, int threads, int other) {
  if (threads == 0)
    md_say(context,
           "%18s on as many threads as its library likes, which are not known: no vs_ref\n", "");
  else if (other > 0 && other != threads)
    md_say(context, "%18s on %d thread%s, the reference on %d: no vs_ref\n", "", threads,
           md_plural(threads), other);
}

static void add_row(const md_context *context, cJSON *rows, const md_gemm_order *o,
                    const md_gemm_result *r, const md_gemm_result *reference, double baseline_s) {
  const md_gemm_problem *p = &r->problem;
  const md_statistics *s = &r->kernel_s;
  const md_gemm_request *asked = &o->settings.request;
  const int block[3] = {(int)asked->block[0], (int)asked->block[1], (int)asked->block[2]};
  const int other = reference ? reference->threads : 0;
  const char *local = r->kernel                 ? r->kernel->name
                      : r->method->local_kernel ? o->local_kernel
                                                : r->method->name;
  cJSON *row = md_rows_add(
      context, rows, COLUMNS, r->name, md_gemm_precision_name(p->precision), (long long)p->m,
      (long long)p->n, (long long)p->k, r->ranks, s->median, s->std, gflops(p, s->median),
      gflops(p, r->total_s.median), baseline_s / r->total_s.median, vs_reference(reference, r),
      r->error.relative_error, r->error.relative_bound, s->mean, s->min, s->max, o->settings.repeat,
      r->total_s.median, r->error.excess, r->checked, r->scatter_s, r->product_s, r->gather_s,
      known(r->threads), p->alpha, p->beta, local, o->host_memory, asked->place.pitched,
      known(other));
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

static const int64_t SLOW_SIZE = 1024; /* 'all' leaves the oracle out above its cube */

typedef struct bench {
  md_context *context;
  md_gemm_order order;
  md_gemm_device device;
  bool has_device;
  cJSON *rows;
  md_progress progress;
  int done, jobs;
  char passed[256];    /* why 'all' passed over the first kernel that this build has */
  double worst_excess; /* of all checks, and whose it is */
  char worst[64];
} bench;

/* That multiplies: of a method, the ranks' own. */
static const md_gemm_kernel *kernel_of(const bench *b, const md_gemm_entry *e) {
  return e->method ? b->order.settings.request.kernel : e->kernel;
}

static bool is_device(const bench *b, const md_gemm_entry *e) {
  const md_gemm_kernel *kernel = kernel_of(b, e);
  return kernel->space == MD_GEMM_DEVICE && !kernel->unavailable;
}

/* A device is opened when a kernel of the run wants one; 'all' goes on without. */
static md_status open_device(bench *b) {
  bool wanted = b->order.settings.host_memory != MD_GEMM_PAGEABLE;
  for (int i = 0; i < b->order.entry_count; i++)
    wanted = wanted || is_device(b, &b->order.entries[i]);
  if (!wanted) return MD_OK;
  const md_status status = md_agree(b->context, md_gemm_device_open(b->context, &b->device));
  b->has_device = status == MD_OK;
  if (b->has_device) b->order.settings.request.place.device = &b->device;
  if (b->has_device || !b->order.all) return status;
  md_say(b->context, "without a device: %s\n", b->context->message);
  return MD_OK;
}

/* What this build, machine or precision has not; NULL: this rank can run it. */
static const char *reason_here(const bench *b, const md_gemm_entry *e, const md_gemm_problem *p) {
  const unsigned bit = 1u << p->precision;
  const md_gemm_kernel *kernel = kernel_of(b, e);
  if (e->method && e->method->unavailable) return e->method->unavailable;
  if (e->method && !(e->method->precisions & bit)) return "not in this precision";
  if (e->method && !e->method->local_kernel) return NULL;
  if (kernel->unavailable) return kernel->unavailable;
  if (!(kernel->precisions & bit)) return "not in this precision";
  if (is_device(b, e) && !b->has_device) return "no device";
  if (kernel->serves && kernel->serves(b->context) != MD_OK) return b->context->message;
  if (e->kernel && kernel->takes && kernel->takes(b->context, p) != MD_OK)
    return b->context->message;
  const double limit = (double)SLOW_SIZE;
  if (e->kernel && strcmp(kernel->name, "naive") == 0 &&
      (double)p->m * (double)p->n * (double)p->k > limit * limit * limit)
    return "slow above 1024^3; name it to run it";
  return NULL;
}

/* Why 'all' passes over it, the same on all ranks, as a kernel may serve the device of one and not
 * that of another; NULL: it is to run. Lasts until the next message. Collective. */
static const char *reason_to_pass(const bench *b, const md_gemm_entry *e,
                                  const md_gemm_problem *p) {
  char reason[sizeof b->context->message];
  if (!b->order.all) return NULL;
  const char *here = reason_here(b, e, p);
  snprintf(reason, sizeof reason, "%s", here ? here : "");
  const md_status status = here ? md_fail(b->context, MD_ENVIRONMENT, "%s", reason) : MD_OK;
  return md_agree(b->context, status) == MD_OK ? NULL : b->context->message;
}

static md_status run_baseline(bench *b, md_gemm_matrices *x, double *baseline_s) {
  *baseline_s = NAN;
  const md_gemm_problem *p = &x->request.problem;
  if (strcmp(b->order.baseline, "off") == 0) return MD_OK;
  const md_gemm_kernel *kernel;
  int variant;
  MD_TRY(md_gemm_find(b->context, b->order.baseline, &kernel, &variant));
  if (!(kernel->precisions & 1u << p->precision)) return MD_OK;
  md_gemm_settings once = b->order.settings;
  once.check_size = 0;
  md_gemm_result result;
  const double work = (double)p->m * (double)p->n * (double)p->k;
  const int runs = work < 1e8 ? once.repeat : work < 1e9 ? 3 : 1; /* short ones warm up first */
  MD_TRY(md_gemm_case_kernel(b->context, &once, x, kernel, variant, 1, runs, &result));
  *baseline_s = result.kernel_s.median;
  return MD_OK;
}

static md_status run_entry(bench *b, const md_gemm_entry *e, const md_gemm_request *request,
                           md_gemm_matrices *x, md_gemm_result *result) {
  md_context *context = b->context;
  MD_TRY(e->method ? md_gemm_case_method(context, &b->order.settings, request, x, e->method, result)
                   : md_gemm_case_kernel(context, &b->order.settings, x, e->kernel, e->variant,
                                         b->order.settings.request.launch.threads,
                                         b->order.settings.repeat, result));
  const bool checked = context->rank == 0 && strcmp(result->checked, "off") != 0;
  if (checked && !isnan(b->worst_excess) && !(result->error.excess <= b->worst_excess)) {
    b->worst_excess = result->error.excess;
    memcpy(b->worst, result->name, sizeof b->worst);
  }
  return MD_OK;
}

/* Matrices that stay dealt out are made in parts: no rank needs the memory of all. */
static bool needs_whole(const bench *b) {
  bool needed = strcmp(b->order.baseline, "off") != 0;
  for (int i = 0; i < b->order.entry_count; i++)
    needed = needed || b->order.entries[i].kernel || b->order.entries[i].method->from_root;
  return needed;
}

static md_status run_shape(bench *b, md_gemm_precision precision, const md_gemm_shape *shape) {
  md_gemm_matrices x = {0};
  md_gemm_result *results = calloc(MD_GEMM_MOST_ENTRIES, sizeof *results);
  int count = 0;
  double baseline_s = NAN;
  md_status status = results ? MD_OK : md_fail_memory(b->context, sizeof *results, "results");
  if ((status = md_agree(b->context, status)) != MD_OK) return status;
  const md_gemm_request request = md_gemm_case_request(&b->order.settings, precision, shape);
  if (needs_whole(b)) status = md_gemm_matrices_make(b->context, &b->order.settings, &request, &x);
  if (status == MD_OK) status = run_baseline(b, &x, &baseline_s);
  for (int i = 0; i < b->order.entry_count && status == MD_OK; i++) {
    md_progress_update(&b->progress, (double)b->done / b->jobs, "%lldx%lldx%lld",
                       (long long)shape->m, (long long)shape->n, (long long)shape->k);
    const char *reason = reason_to_pass(b, &b->order.entries[i], &request.problem);
    if (reason && !*b->passed) snprintf(b->passed, sizeof b->passed, "%.255s", reason);
    if (!reason) status = run_entry(b, &b->order.entries[i], &request, &x, &results[count++]);
    if (status == MD_OK) status = md_interrupt_check(b->context, "bench gemm");
  }
  md_gemm_matrices_free(&x);
  b->done++;
  md_progress_stop(&b->progress); /* the table goes on where the line was */
  if (md_report_is_due(b->context, status) && b->context->rank == 0)
    for (int r = 0; r < count; r++)
      add_row(b->context, b->rows, &b->order, &results[r],
              reference_of(results, count, &results[r]), baseline_s);
  free(results);
  return status;
}

static const char *lacking(const bench *b, int i) {
  const md_gemm_entry *e = &b->order.entries[i];
  return e->method ? e->method->unavailable : e->kernel->unavailable;
}

/* What 'all' leaves out: a line for each reason. */
static void say_passed(const bench *b) {
  const int count = b->order.all ? b->order.entry_count : 0;
  for (int i = 0; i < count; i++) {
    bool said = lacking(b, i) == NULL;
    for (int j = 0; j < i && !said; j++)
      said = lacking(b, j) && strcmp(lacking(b, j), lacking(b, i)) == 0;
    if (said) continue;
    for (int j = i; j < count; j++)
      if (lacking(b, j) && strcmp(lacking(b, j), lacking(b, i)) == 0)
        md_say(b->context, "%s ",
               b->order.entries[j].method ? b->order.entries[j].method->name
                                          : b->order.entries[j].kernel->name);
    md_say(b->context, "left out: %s\n", lacking(b, i));
  }
}

/* What was asked for by name must be there before anything runs. */
static md_status check_entries(bench *b) {
  const md_gemm_order *o = &b->order;
  md_status status = MD_OK;
  for (int i = 0; i < o->entry_count && !o->all; i++)
    for (int p = 0; p < o->precisions.count && status == MD_OK; p++) {
      const md_gemm_entry *e = &o->entries[i];
      if (!e->method || (e->method->local_kernel && !e->method->unavailable))
        status = md_gemm_kernel_check(b->context, kernel_of(b, e),
                                      (md_gemm_precision)o->precisions.value[p]);
    }
  return md_agree(b->context, status);
}

/* Elements of the matrices are below 1: sums of larger ones than the type of C holds would condemn
 * right kernels. */
static md_status check_range(md_context *context, const md_gemm_problem *p) {
  const double most = p->precision == MD_GEMM_DOUBLE ? DBL_MAX : FLT_MAX;
  const double sum = fabs(p->alpha) * (double)p->k + fabs(p->beta);
  if (sum <= most) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "|alpha| k + |beta| must be at most %.3g in precision %s, got %.3g; take smaller "
                 "factors",
                 most, md_gemm_precision_name(p->precision), sum);
}

#define MOST_BYTES 0x1p50 /* no host has them; those of its ranks can be added up */

/* Sizes that a kernel or a method over ranks does not take or that the memory does not hold,
 * likewise: whole matrices, and beside them those that a method deals out. */
static md_status check_shapes(bench *b) {
  const md_gemm_order *o = &b->order;
  for (int p = 0; p < o->precisions.count; p++)
    for (int s = 0; s < o->list.count; s++) {
      const md_gemm_shape *shape = &o->list.shape[s];
      const md_gemm_precision precision = (md_gemm_precision)o->precisions.value[p];
      const md_gemm_request request = md_gemm_case_request(&o->settings, precision, shape);
      const double bytes = fmin(md_gemm_case_bytes(&request.problem), MOST_BYTES);
      const double whole = needs_whole(b) && b->context->rank == 0 ? bytes : 0.0;
      double part = 0.0;
      MD_TRY(md_gemm_check(b->context, &request.problem));
      MD_TRY(check_range(b->context, &request.problem));
      for (int i = 0; i < o->entry_count; i++) {
        const md_gemm_entry *e = &o->entries[i];
        if (e->kernel && e->kernel->takes && !o->all)
          MD_TRY(e->kernel->takes(b->context, &request.problem));
        if (!e->method || reason_to_pass(b, e, &request.problem)) continue;
        MD_TRY(md_gemm_request_check(b->context, e->method, &request));
        part = bytes / b->context->ranks;
      }
      const md_memory_need need = {.host = (int64_t)(whole + part)};
      MD_TRY(md_memory_require(b->context, &need, "bench gemm"));
    }
  return MD_OK;
}

/* Rows of all shapes; what was found wrong is told by worst_excess. */
static md_status run_shapes(bench *b, cJSON *rows) {
  b->rows = rows;
  say_passed(b);
  b->jobs = b->order.precisions.count * b->order.list.count;
  b->progress = md_progress_start(b->context, "bench gemm");
  md_rows_head(b->context, COLUMNS);
  md_status status = MD_OK;
  for (int p = 0; p < b->order.precisions.count; p++)
    for (int s = 0; s < b->order.list.count && status == MD_OK; s++)
      status =
          run_shape(b, (md_gemm_precision)b->order.precisions.value[p], &b->order.list.shape[s]);
  md_progress_stop(&b->progress);
  return status;
}

static md_status run_all(bench *b) {
  md_report report;
  MD_TRY(md_report_open(b->context, "bench gemm", &report));
  const int grid[4] = {b->order.settings.request.grid.rows, b->order.settings.request.grid.columns,
                       1, 1};
  const bool asked = b->order.grid_asked;
  md_report_grid(&report, grid, asked, asked ? "asked for" : "the most square one");
  cJSON_AddNumberToObject(report.root, "seed", (double)b->order.settings.seed);
  cJSON_AddStringToObject(report.root, "baseline", b->order.baseline);
  if (b->has_device) cJSON_AddStringToObject(report.root, "device", b->context->gpu.name);
  md_status status = run_shapes(b, cJSON_AddArrayToObject(report.root, "rows"));
  int timed = cJSON_GetArraySize(b->rows); /* of rank 0 */
  md_broadcast(b->context, &timed, sizeof timed);
  if (status == MD_OK && timed == 0)
    status = md_fail(b->context, MD_ENVIRONMENT, "bench gemm timed nothing: %s", b->passed);
  status =
      md_report_finish(b->context, &report, b->rows, b->order.csv, b->order.common.json, status);
  if (status == MD_OK && !(b->worst_excess <= 1.0))
    status = md_fail(b->context, MD_UNREACHED,
                     "every element must be within its rounding bound: %s is off by %.3g times it",
                     b->worst, b->worst_excess);
  return md_agree(b->context, status);
}

md_status md_gemm_bench_rows(md_context *context, int argc, char **argv, cJSON *rows,
                             double *worst_excess) {
  bench b = {.context = context};
  const md_context asked = *context; /* whose options stand above those of a part of its work */
  if (rows) context->tune = NULL;
  md_status status = md_gemm_order_read(context, argc, argv, &b.order);
  if (rows) {
    context->tune = asked.tune;
    context->patience_s = asked.patience_s;
    context->progress = asked.progress;
  }
  const bool runs = status == MD_OK && !b.order.common.help;
  if (rows) b.order.all = true;
  if (runs) status = open_device(&b);
  if (runs && status == MD_OK) status = check_entries(&b);
  if (runs && status == MD_OK) status = check_shapes(&b);
  if (runs && status == MD_OK) status = rows ? run_shapes(&b, rows) : run_all(&b);
  if (rows && status == MD_OK) md_raise(worst_excess, b.worst_excess);
  if (rows) md_broadcast(context, worst_excess, sizeof *worst_excess);
  if (b.has_device) md_gemm_device_close(&b.device);
  free(b.order.list.shape);
  return status;
}

md_status md_bench_gemm(md_context *context, int argc, char **argv) {
  return md_gemm_bench_rows(context, argc, argv, NULL, NULL);
}
