#include "base/options.h"
#include "bench.h"
#include "gemm_report.h"
#include "gemm_shapes.h"

#include <stdlib.h>
#include <string.h>

static const md_command_text TEXT = {
    "bench gemm",
    "C <- alpha A B + beta C by every kernel: checked against the definition, then timed.",
    "Kernels are named NAME or NAME:VARIANT. One rank: naive cpu_tiled openblas k0 ... k7 "
    "wmma_simple\n"
    "wmma_tiled wgmma dmma cublas. Over ranks: block_cyclic summa scalapack. 'all' takes those of "
    "the\n"
    "run (one rank or many) that this build and machine have for the precision.\n"
    "error and bound are relative in the infinity norm; every element is held to its own rounding\n"
    "bound, and a product that breaks it ends the run with exit code 1."};

enum { MOST_KERNELS = 64, MOST_PRECISIONS = 8 };
static const int64_t SLOW_SIZE = 1024; /* 'all' leaves the oracle out above its cube */

typedef struct entry {
  const md_gemm_kernel *kernel; /* or a method */
  const md_gemm_method *method;
  int variant;
} entry;

typedef struct bench {
  md_context *context;
  md_common_options common;
  const char *shapes, *square, *rect, *depths, *kernels, *precisions, *check, *block, *grid;
  const char *local_kernel, *host_memory, *baseline, *csv;
  long long repeat, seed, panel;
  bool pitched;
  md_gemm_settings settings;
  md_gemm_shapes list;
  entry entries[MOST_KERNELS];
  int entry_count;
  bool all;
  md_gemm_precision precision[MOST_PRECISIONS];
  int precision_count;
  md_gemm_device device;
  bool has_device;
  cJSON *rows;
  double worst_excess;
  char worst[64];
} bench;

static md_status read_options(bench *b, int argc, char **argv) {
  md_option options[] = {
      {.name = "shapes",
       .type = MD_OPTION_TEXT,
       .target = &b->shapes,
       .argument = "MxNxK,...",
       .help = "sizes [1024x1024x1024]"},
      {.name = "square",
       .type = MD_OPTION_TEXT,
       .target = &b->square,
       .argument = "FROM:TO:STEP",
       .help = "a sweep of m = n = k, or one N"},
      {.name = "rect",
       .type = MD_OPTION_TEXT,
       .target = &b->rect,
       .argument = "MxN",
       .help = "m and n of a sweep over --k"},
      {.name = "k",
       .type = MD_OPTION_TEXT,
       .target = &b->depths,
       .argument = "K,...",
       .help = "the depths of --rect"},
      {.name = "kernels",
       .type = MD_OPTION_TEXT,
       .target = &b->kernels,
       .argument = "NAMES",
       .help = "names between commas, or all [all]"},
      {.name = "precision",
       .type = MD_OPTION_TEXT,
       .target = &b->precisions,
       .argument = "NAMES",
       .help = "of A and B: double single tf32 half bf16, between commas [single]"},
      {.name = "alpha",
       .type = MD_OPTION_REAL,
       .target = &b->settings.alpha,
       .argument = "X",
       .help = "[1]"},
      {.name = "beta",
       .type = MD_OPTION_REAL,
       .target = &b->settings.beta,
       .argument = "X",
       .help = "[0]"},
      {.name = "repeat",
       .type = MD_OPTION_INTEGER,
       .target = &b->repeat,
       .argument = "N",
       .help = "timed products of each kernel [5]",
       .low = 1,
       .high = 1000000},
      {.name = "check",
       .type = MD_OPTION_TEXT,
       .target = &b->check,
       .argument = "on|off|SIZE",
       .help = "every element; or up to SIZE^3, sampled rows above [1024]"},
      {.name = "baseline",
       .type = MD_OPTION_CHOICE,
       .target = &b->baseline,
       .help = "the sequential product behind 'speedup', one thread [cpu_tiled]",
       .choices = "cpu_tiled|naive|off"},
      {.name = "process-grid",
       .type = MD_OPTION_TEXT,
       .target = &b->grid,
       .argument = "RxC",
       .help = "ranks over rows and columns of C [most square]"},
      {.name = "block",
       .type = MD_OPTION_TEXT,
       .target = &b->block,
       .argument = "RxC",
       .help = "blocks that rows and columns are dealt out in [64x64]"},
      {.name = "panel",
       .type = MD_OPTION_INTEGER,
       .target = &b->panel,
       .argument = "N",
       .help = "block of k for summa and scalapack [256]",
       .low = 1,
       .high = 2147483647},
      {.name = "local-kernel",
       .type = MD_OPTION_TEXT,
       .target = &b->local_kernel,
       .argument = "NAME",
       .help = "of each rank's own products [cpu_tiled]"},
      {.name = "host-memory",
       .type = MD_OPTION_CHOICE,
       .target = &b->host_memory,
       .help = "of the matrices on rank 0 [pageable]",
       .choices = "pageable|pinned|registered"},
      {.name = "pitched",
       .type = MD_OPTION_FLAG,
       .target = &b->pitched,
       .help = "device matrices with aligned rows"},
      {.name = "seed",
       .type = MD_OPTION_INTEGER,
       .target = &b->seed,
       .argument = "N",
       .help = "of the matrices [987654]",
       .low = 0,
       .high = 9.2e18},
      {.name = "csv",
       .type = MD_OPTION_TEXT,
       .target = &b->csv,
       .argument = "FILE",
       .help = "the rows as a table"},
      MD_COMMON_OPTIONS(b->common),
  };
  return md_options_read(b->context, &TEXT, options, sizeof options / sizeof *options, &b->common,
                         argc, argv);
}

static md_status read_check(bench *b) {
  if (!b->check) return MD_OK;
  if (strcmp(b->check, "off") == 0) {
    b->settings.check_size = 0;
    return MD_OK;
  }
  if (strcmp(b->check, "on") == 0) {
    b->settings.check_size = INT64_MAX;
    return MD_OK;
  }
  if (md_gemm_sizes_read(b->context, "check", b->check, 1, &b->settings.check_size) == MD_OK)
    return MD_OK;
  return md_fail(b->context, MD_INPUT, "--check takes on, off or a size of at least 1, got '%s'",
                 b->check);
}

static md_status read_grid(bench *b) {
  int64_t size[2] = {0, 0};
  const int *four = b->common.grid;
  if (b->grid && four[0])
    return md_fail(b->context, MD_INPUT, "--grid and --process-grid say the same; give one");
  if (b->grid) MD_TRY(md_gemm_sizes_read(b->context, "process-grid", b->grid, 2, size));
  if (four[0]) {
    if (four[2] != 1 || four[3] != 1)
      return md_fail(b->context, MD_INPUT,
                     "a GEMM runs on a two-dimensional grid RxCx1x1, got %dx%dx%dx%d", four[0],
                     four[1], four[2], four[3]);
    size[0] = four[0], size[1] = four[1];
  }
  if (size[0] > INT32_MAX || size[1] > INT32_MAX) size[0] = size[1] = INT32_MAX;
  return md_gemm_grid_make(b->context, (int)size[0], (int)size[1], &b->settings.grid);
}

static md_status read_precisions(bench *b) {
  char copy[256];
  const char *words[MOST_PRECISIONS];
  const int count = md_words(b->precisions, copy, sizeof copy, words, MOST_PRECISIONS);
  for (int i = 0; i < count; i++) {
    const int precision = md_gemm_precision_of(words[i]);
    if (precision < 0)
      return md_fail(b->context, MD_INPUT,
                     "--precision must be one of double, single, tf32, half, bf16, got '%s'",
                     words[i]);
    b->precision[i] = (md_gemm_precision)precision;
  }
  b->precision_count = count;
  return count > 0 ? MD_OK
                   : md_fail(b->context, MD_INPUT,
                             "--precision takes names between commas, got "
                             "'%.60s'",
                             b->precisions);
}

static md_status read_kernels(bench *b) {
  b->all = strcmp(b->kernels, "all") == 0;
  if (b->all) {
    if (b->context->ranks == 1)
      for (int i = 0; md_gemm_kernels()[i]; i++)
        b->entries[b->entry_count++].kernel = md_gemm_kernels()[i];
    for (int i = 0; md_gemm_methods()[i] && b->context->ranks > 1; i++)
      b->entries[b->entry_count++].method = md_gemm_methods()[i];
    return MD_OK;
  }
  char copy[1024];
  const char *words[MOST_KERNELS];
  b->entry_count = md_words(b->kernels, copy, sizeof copy, words, MOST_KERNELS);
  if (b->entry_count < 1)
    return md_fail(b->context, MD_INPUT, "--kernels takes names between commas, got '%.60s'",
                   b->kernels);
  for (int i = 0; i < b->entry_count; i++) {
    entry *e = &b->entries[i];
    e->method = md_gemm_method_find(words[i]);
    if (!e->method) MD_TRY(md_gemm_find(b->context, words[i], &e->kernel, &e->variant));
  }
  return MD_OK;
}

static md_status interpret(bench *b) {
  md_gemm_settings *s = &b->settings;
  int64_t block[2] = {64, 64};
  if (!b->shapes && !b->square && !b->rect && !b->depths) b->shapes = "1024x1024x1024";
  MD_TRY(md_gemm_shapes_read(b->context, b->shapes, b->square, b->rect, b->depths, &b->list));
  MD_TRY(read_check(b));
  if (b->block) MD_TRY(md_gemm_sizes_read(b->context, "block", b->block, 2, block));
  MD_TRY(read_grid(b));
  MD_TRY(read_precisions(b));
  MD_TRY(read_kernels(b));
  MD_TRY(md_gemm_find(b->context, b->local_kernel, &s->local_kernel, &s->local_variant));
  s->block[0] = block[0], s->block[1] = block[1], s->block[2] = b->panel;
  s->repeat = (int)b->repeat;
  s->seed = (uint64_t)b->seed;
  s->threads = b->context->threads;
  s->host_memory = strcmp(b->host_memory, "pageable") == 0 ? MD_GEMM_PAGEABLE
                   : strcmp(b->host_memory, "pinned") == 0 ? MD_GEMM_PINNED
                                                           : MD_GEMM_REGISTERED;
  s->place.pitched = b->pitched;
  return MD_OK;
}

static bool is_device(const bench *b, const entry *e) {
  const md_gemm_kernel *kernel = e->method ? b->settings.local_kernel : e->kernel;
  return kernel->space == MD_GEMM_DEVICE && !kernel->unavailable;
}

/* A device is opened when a kernel of the run wants one; 'all' goes on without. */
static md_status open_device(bench *b) {
  bool wanted = b->settings.host_memory != MD_GEMM_PAGEABLE;
  for (int i = 0; i < b->entry_count; i++) wanted = wanted || is_device(b, &b->entries[i]);
  if (!wanted) return MD_OK;
  const md_status status = md_agree(b->context, md_gemm_device_open(b->context, &b->device));
  b->has_device = status == MD_OK;
  if (b->has_device) b->settings.place.device = &b->device;
  if (b->has_device || !b->all) return status;
  md_say(b->context, "without a device: %s\n", b->context->message);
  return MD_OK;
}

/* 'all' passes over what this build, machine or precision has not; NULL: it is to run. */
static const char *reason_to_pass(const bench *b, const entry *e, const md_gemm_problem *p) {
  const unsigned bit = 1u << p->precision;
  const md_gemm_kernel *kernel = e->method ? b->settings.local_kernel : e->kernel;
  if (e->method && e->method->unavailable) return e->method->unavailable;
  if (e->method && !(e->method->precisions & bit)) return "not in this precision";
  if (e->method && !e->method->local_kernel) return NULL;
  if (kernel->unavailable) return kernel->unavailable;
  if (!(kernel->precisions & bit)) return "not in this precision";
  if (is_device(b, e) && !b->has_device) return "no device";
  if (kernel->missing && kernel->missing()) return kernel->missing();
  const double limit = (double)SLOW_SIZE;
  if (e->kernel && strcmp(kernel->name, "naive") == 0 &&
      (double)p->m * (double)p->n * (double)p->k > limit * limit * limit)
    return "slow above 1024^3; name it to run it";
  return NULL;
}

static md_status run_baseline(bench *b, md_gemm_matrices *x, double *baseline_s) {
  *baseline_s = NAN;
  const md_gemm_problem *p = &x->problem;
  if (strcmp(b->baseline, "off") == 0) return MD_OK;
  const md_gemm_kernel *kernel;
  int variant;
  MD_TRY(md_gemm_find(b->context, b->baseline, &kernel, &variant));
  if (!(kernel->precisions & 1u << p->precision)) return MD_OK;
  md_gemm_settings once = b->settings;
  once.check_size = 0;
  md_gemm_result result;
  const bool small = (double)p->m * (double)p->n * (double)p->k < 1e9;
  MD_TRY(md_gemm_case_kernel(b->context, &once, x, kernel, variant, 1, small ? 3 : 1, &result));
  *baseline_s = result.kernel_s.median;
  return MD_OK;
}

static md_status run_entry(bench *b, const entry *e, md_gemm_matrices *x, md_gemm_result *result) {
  md_context *context = b->context;
  MD_TRY(e->method ? md_gemm_case_method(context, &b->settings, x, e->method, result)
                   : md_gemm_case_kernel(context, &b->settings, x, e->kernel, e->variant,
                                         b->settings.threads, b->settings.repeat, result));
  const bool checked = context->rank == 0 && strcmp(result->checked, "off") != 0;
  if (checked && !(result->error.excess <= b->worst_excess)) {
    b->worst_excess = result->error.excess;
    memcpy(b->worst, result->name, sizeof b->worst);
  }
  return MD_OK;
}

static md_status run_shape(bench *b, md_gemm_precision precision, const md_gemm_shape *shape) {
  md_gemm_matrices x;
  md_gemm_result *results = calloc(MOST_KERNELS, sizeof *results);
  int count = 0;
  double baseline_s = NAN;
  md_status status = results ? MD_OK : md_fail_memory(b->context, sizeof *results, "results");
  if ((status = md_agree(b->context, status)) != MD_OK) return status;
  status =
      md_gemm_matrices_make(b->context, &b->settings, precision, shape->m, shape->n, shape->k, &x);
  if (status == MD_OK) status = run_baseline(b, &x, &baseline_s);
  for (int i = 0; i < b->entry_count && status == MD_OK; i++) {
    const char *reason = b->all ? reason_to_pass(b, &b->entries[i], &x.problem) : NULL;
    if (!reason) status = run_entry(b, &b->entries[i], &x, &results[count++]);
  }
  md_gemm_matrices_free(&x);
  if (status == MD_OK && b->context->rank == 0) {
    md_gemm_report_add(b->rows, &b->settings, results, count, baseline_s);
    md_gemm_table_rows(b->context, b->rows, count);
  }
  free(results);
  return status;
}

/* What 'all' leaves out, once. */
static void say_passed(const bench *b) {
  for (int i = 0; i < b->entry_count && b->all; i++) {
    const entry *e = &b->entries[i];
    const char *reason = e->method ? e->method->unavailable : e->kernel->unavailable;
    if (reason)
      md_say(b->context, "%s: %s\n", e->method ? e->method->name : e->kernel->name, reason);
  }
}

static md_status run_all(bench *b) {
  md_report report;
  MD_TRY(md_agree(b->context, md_report_open(b->context, "bench gemm", &report)));
  const int grid[4] = {b->settings.grid.rows, b->settings.grid.columns, 1, 1};
  md_report_grid(&report, grid);
  cJSON_AddNumberToObject(report.root, "seed", (double)b->settings.seed);
  cJSON_AddStringToObject(report.root, "baseline", b->baseline);
  if (b->has_device) cJSON_AddStringToObject(report.root, "device", b->device.name);
  b->rows = cJSON_AddArrayToObject(report.root, "rows");
  say_passed(b);
  md_gemm_table_head(b->context);
  md_status status = MD_OK;
  for (int p = 0; p < b->precision_count; p++)
    for (int s = 0; s < b->list.count && status == MD_OK; s++)
      status = run_shape(b, b->precision[p], &b->list.shape[s]);
  const md_status csv = status == MD_OK ? md_report_csv(b->context, b->rows, b->csv) : MD_OK;
  const md_status json =
      md_report_close(b->context, &report, status == MD_OK ? b->common.json : NULL);
  if (status == MD_OK) status = csv != MD_OK ? csv : json;
  if (status == MD_OK && !(b->worst_excess <= 1.0))
    status = md_fail(b->context, MD_UNREACHED,
                     "every element must be within its rounding bound: %s is off by %.3g times it",
                     b->worst, b->worst_excess);
  return md_agree(b->context, status);
}

md_status md_bench_gemm(md_context *context, int argc, char **argv) {
  bench *b = calloc(1, sizeof *b);
  if (!b) return md_fail_memory(context, sizeof *b, "bench gemm");
  b->context = context;
  b->kernels = "all", b->precisions = "single", b->baseline = "cpu_tiled";
  b->local_kernel = "cpu_tiled", b->host_memory = "pageable";
  b->repeat = 5, b->seed = 987654, b->panel = 256;
  b->settings.alpha = 1.0;
  b->settings.check_size = 1024;
  md_status status = read_options(b, argc, argv);
  if (status == MD_OK && !b->common.help) {
    status = md_agree(context, interpret(b));
    if (status == MD_OK) status = open_device(b);
    if (status == MD_OK) status = run_all(b);
    if (b->has_device) md_gemm_device_close(&b->device);
  }
  free(b->list.shape);
  free(b);
  return status;
}
