#include "base/options.h"
#include "base/random.h"
#include "bench.h"
#include "gemm/gemv.h"
#include "gemm_shapes.h"
#include "small_case.h"

#include <string.h>

static const md_command_text TEXT = {
    "bench gemv", "y = A x for integers and floats, by kernel.",
    "Each result is compared with double sums before it is timed: integers exactly, floats within\n"
    "their rounding bound."};

typedef struct bench {
  md_small_bench small;
  md_common_options common;
  const char *dims, *types, *csv;
  long long repeat, seed;
  md_small_matrix a, x, y, copy;
} bench;

typedef struct call {
  const md_gemv_kernel *kernel;
  md_gemv_problem problem;
  void *state;
  const void *a, *x;
  void *y;
} call;

static const char *type_name(md_gemv_type type) {
  return type == MD_GEMV_INTEGER ? "integer" : "single";
}

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  return c->kernel->run(context, &c->problem, stream, c->state, c->a, c->x, c->y);
}

/* Integers -9 .. 9, floats in (-1, 1). */
static void fill(void *data, int64_t count, md_gemv_type type, uint64_t seed, uint64_t purpose) {
  md_random random = md_random_at(seed, purpose, 0);
  for (int64_t i = 0; i < count; i++)
    if (type == MD_GEMV_INTEGER)
      ((int32_t *)data)[i] = (int32_t)(md_random_bits(&random) % 19) - 9;
    else
      ((float *)data)[i] = (float)(2.0 * md_random_uniform(&random) - 1.0);
}

/* Largest |y - exact| in units of its bound gamma_(k+1) sum |a| |x|; integers have bound 0. */
static md_status check(const bench *b, const call *c) {
  const int64_t columns = c->problem.columns;
  const double nu = (double)(columns + 1) * 0x1p-24, gamma = nu / (1.0 - nu);
  for (int64_t i = 0; i < c->problem.rows; i++) {
    double sum = 0.0, modulus = 0.0, result;
    for (int64_t j = 0; j < columns; j++) {
      const int64_t at = i * columns + j;
      const double term = c->problem.type == MD_GEMV_INTEGER
                              ? (double)((int32_t *)b->a.host)[at] * ((int32_t *)b->x.host)[j]
                              : (double)((float *)b->a.host)[at] * ((float *)b->x.host)[j];
      sum += term;
      modulus += fabs(term);
    }
    if (c->problem.type == MD_GEMV_INTEGER)
      result = ((int32_t *)b->y.host)[i];
    else
      result = ((float *)b->y.host)[i];
    const double bound = c->problem.type == MD_GEMV_INTEGER ? 0.0 : gamma * modulus;
    if (!(fabs(result - sum) <= bound))
      return md_fail(b->small.context, MD_UNREACHED,
                     "gemv by %s (%s) must be within %.3g of %.9g in row %lld, got %.9g",
                     c->kernel->name, type_name(c->problem.type), bound, sum, (long long)i, result);
  }
  return MD_OK;
}

static md_status timed(bench *b, call *c) {
  const md_gemv_problem *p = &c->problem;
  const md_gemm_space space = c->kernel->space;
  md_bench_statistics seconds = {0};
  memset(b->y.host, 0xff, (size_t)p->rows * sizeof(float));
  MD_TRY(md_small_put(&b->small, &b->y));
  MD_TRY(md_small_time(&b->small, space, run_call, c, 0, &seconds));
  if (space == MD_GEMM_DEVICE) MD_TRY(md_small_get(&b->small, &b->y));
  MD_TRY(check(b, c));
  MD_TRY(md_small_time(&b->small, space, run_call, c, b->small.repeat, &seconds));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", c->kernel->name);
  cJSON_AddStringToObject(row, "type", type_name(p->type));
  cJSON_AddNumberToObject(row, "rows", (double)p->rows);
  cJSON_AddNumberToObject(row, "columns", (double)p->columns);
  md_say(b->small.context, "%-14s %-8s", c->kernel->name, type_name(p->type));
  const double elements = (double)p->rows * (double)p->columns + (double)(p->rows + p->columns);
  md_small_report(&b->small, row, space, sizeof(float) * elements, &seconds);
  return MD_OK;
}

static md_status run_kernel(bench *b, const md_gemv_kernel *kernel, md_gemv_type type) {
  call c = {kernel,
            {b->a.rows, b->a.columns, type},
            NULL,
            md_small_data(&b->a, kernel->space),
            md_small_data(&b->x, kernel->space),
            md_small_data(&b->y, kernel->space)};
  md_status status = MD_OK;
  if (kernel->open)
    status = kernel->open(b->small.context, &c.problem, b->small.device.stream, &c.state);
  if (status == MD_OK) status = timed(b, &c);
  if (kernel->close && c.state) kernel->close(c.state);
  return status;
}

static md_status prepare(bench *b) {
  int64_t size[2];
  md_context *context = b->small.context;
  MD_TRY(md_small_sizes(context, "dims", b->dims, (int64_t)1 << 24, size));
  const double elements = (double)size[0] * (double)size[1];
  MD_TRY(md_bench_memory_check(context, 2.0 * sizeof(float) * elements));
  MD_TRY(md_small_make(&b->small, size[0], size[1], "matrix", &b->a));
  MD_TRY(md_small_make(&b->small, size[0], size[1], "copy of the matrix", &b->copy));
  MD_TRY(md_small_make(&b->small, 1, size[1], "vector", &b->x));
  return md_small_make(&b->small, 1, size[0], "result", &b->y);
}

static md_status run_type(bench *b, md_gemv_type type) {
  fill(b->a.host, b->a.rows * b->a.columns, type, (uint64_t)b->seed, 1);
  fill(b->x.host, b->x.columns, type, (uint64_t)b->seed, 2);
  MD_TRY(md_small_put(&b->small, &b->a));
  MD_TRY(md_small_put(&b->small, &b->x));
  for (int i = 0; md_gemv_kernels()[i]; i++) {
    const md_gemv_kernel *kernel = md_gemv_kernels()[i];
    if (!md_small_takes(&b->small, kernel->name, kernel->space, kernel->unavailable)) continue;
    if (kernel->types & 1u << type) MD_TRY(run_kernel(b, kernel, type));
  }
  return MD_OK;
}

static md_status run_all(bench *b) {
  MD_TRY(prepare(b));
  MD_TRY(md_small_copy(&b->small, &b->a, &b->copy));
  if (strcmp(b->types, "single") != 0) MD_TRY(run_type(b, MD_GEMV_INTEGER));
  if (strcmp(b->types, "integer") != 0) MD_TRY(run_type(b, MD_GEMV_SINGLE));
  return MD_OK;
}

md_status md_bench_gemv(md_context *context, int argc, char **argv) {
  bench b = {.dims = "10240x256", .types = "both", .repeat = 10, .seed = 987654};
  md_option options[] = {
      {.name = "dims",
       .type = MD_OPTION_TEXT,
       .target = &b.dims,
       .argument = "ROWSxCOLUMNS",
       .help = "of the matrix [10240x256]"},
      {.name = "type",
       .type = MD_OPTION_CHOICE,
       .target = &b.types,
       .help = "[both]",
       .choices = "integer|single|both"},
      {.name = "seed",
       .type = MD_OPTION_INTEGER,
       .target = &b.seed,
       .argument = "N",
       .help = "of matrix and vector [987654]",
       .low = 0,
       .high = 9.2e18},
      MD_SMALL_OPTIONS(b.repeat, b.csv),
      MD_COMMON_OPTIONS(b.common),
  };
  MD_TRY(md_options_read(context, &TEXT, options, sizeof options / sizeof *options, &b.common, argc,
                         argv));
  if (b.common.help) return MD_OK;
  b.small = (md_small_bench){.context = context, .repeat = (int)b.repeat};
  md_report report;
  MD_TRY(md_small_open(&b.small, TEXT.command, &report));
  md_status status = run_all(&b);
  md_small_free(&b.a);
  md_small_free(&b.x);
  md_small_free(&b.y);
  md_small_free(&b.copy);
  return md_small_close(&b.small, status, &report, b.csv, b.common.json);
}
