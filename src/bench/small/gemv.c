#include "gemm/gemv.h"
#include "base/options.h"
#include "bench/bench.h"
#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <string.h>

static const md_command_text TEXT = {
    "bench gemv", "y = A x for integers and floats, by kernel.",
    "Each result is compared with double sums before it is timed: integers exactly, floats within\n"
    "their rounding bound."};

/* Integers stay below 2^31 in sums over the longest row: 9^2 2^24 < 2^31. */
enum { MAGNITUDE = 9, MOST = 1 << 24 };

typedef struct bench {
  md_small_bench small;
  md_common_options common;
  md_small_options options;
  const char *dims;
  md_small_matrix a, x, y, copy;
} bench;

typedef struct call {
  const bench *bench;
  const md_gemv_kernel *kernel;
  md_gemv_problem problem;
  void *state;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  const bench *b = c->bench;
  const md_gemm_space space = c->kernel->space;
  return c->kernel->run(context, &c->problem, stream, c->state, md_small_data(&b->a, space),
                        md_small_data(&b->x, space), md_small_data(&b->y, space));
}

/* Largest |y - exact| in units of its bound gamma_(k+1) sum |a| |x|; integers have bound 0. */
static md_status check(md_context *context, void *user) {
  const call *c = user;
  const bench *b = c->bench;
  const int64_t columns = c->problem.columns;
  const double nu = (double)(columns + 1) * 0x1p-24, gamma = nu / (1.0 - nu);
  for (int64_t i = 0; i < c->problem.rows; i++) {
    double sum = 0.0, modulus = 0.0, result;
    for (int64_t j = 0; j < columns; j++) {
      const int64_t at = i * columns + j;
      const double term = c->problem.type == MD_SMALL_INTEGER
                              ? (double)((int32_t *)b->a.host)[at] * ((int32_t *)b->x.host)[j]
                              : (double)((float *)b->a.host)[at] * ((float *)b->x.host)[j];
      sum += term;
      modulus += fabs(term);
    }
    if (c->problem.type == MD_SMALL_INTEGER)
      result = ((int32_t *)b->y.host)[i];
    else
      result = ((float *)b->y.host)[i];
    const double bound = c->problem.type == MD_SMALL_INTEGER ? 0.0 : gamma * modulus;
    if (!(fabs(result - sum) <= bound))
      return md_fail(context, MD_UNREACHED,
                     "gemv by %s (%s) must be within %.3g of %.9g in row %lld, got %.9g",
                     c->kernel->name, md_small_type_name(c->problem.type), bound, sum, (long long)i,
                     result);
  }
  return MD_OK;
}

static md_status timed(bench *b, call *c) {
  const md_gemv_problem *p = &c->problem;
  const md_gemm_space space = c->kernel->space;
  const md_small_case work = {space, &b->y, run_call, check, c};
  md_bench_statistics seconds = {0};
  MD_TRY(md_small_run(&b->small, &work, &seconds));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", c->kernel->name);
  cJSON_AddStringToObject(row, "type", md_small_type_name(p->type));
  cJSON_AddNumberToObject(row, "rows", (double)p->rows);
  cJSON_AddNumberToObject(row, "columns", (double)p->columns);
  md_say(b->small.context, "%-14s %-8s", c->kernel->name, md_small_type_name(p->type));
  const double elements = (double)p->rows * (double)p->columns + (double)(p->rows + p->columns);
  md_small_report(&b->small, row, space, MD_SMALL_BYTES * elements, &seconds);
  return MD_OK;
}

static md_status run_kernel(bench *b, const md_gemv_kernel *kernel, md_small_type type) {
  call c = {b, kernel, {b->a.rows, b->a.columns, type}, NULL};
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
  MD_TRY(md_small_sizes(context, "dims", b->dims, MOST, size));
  const double elements = (double)size[0] * (double)size[1];
  MD_TRY(md_bench_memory_check(context, 2.0 * MD_SMALL_BYTES * elements));
  MD_TRY(md_small_make(&b->small, size[0], size[1], "matrix", &b->a));
  MD_TRY(md_small_make(&b->small, size[0], size[1], "copy of the matrix", &b->copy));
  MD_TRY(md_small_make(&b->small, 1, size[1], "vector", &b->x));
  return md_small_make(&b->small, 1, size[0], "result", &b->y);
}

static md_status run_type(bench *b, md_small_type type) {
  MD_TRY(md_small_fill(&b->small, &b->a, type, 1, MAGNITUDE));
  MD_TRY(md_small_fill(&b->small, &b->x, type, 2, MAGNITUDE));
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
  for (int type = 0; type < MD_SMALL_TYPES; type++)
    if (md_small_wants(&b->small, (md_small_type)type)) MD_TRY(run_type(b, (md_small_type)type));
  return MD_OK;
}

md_status md_bench_gemv(md_context *context, int argc, char **argv) {
  bench b = {.dims = "10240x256", .options = MD_SMALL_DEFAULTS};
  md_option options[] = {
      {.name = "dims",
       .type = MD_OPTION_TEXT,
       .target = &b.dims,
       .argument = "ROWSxCOLUMNS",
       .help = "of the matrix [10240x256]"},
      MD_SMALL_OPTIONS(b.options),
      MD_COMMON_OPTIONS(b.common),
  };
  MD_TRY(md_options_read(context, &TEXT, options, sizeof options / sizeof *options, &b.common, argc,
                         argv));
  if (b.common.help) return MD_OK;
  md_report report;
  MD_TRY(md_small_open(&b.small, context, &b.options, TEXT.command, &report));
  md_status status = run_all(&b);
  md_small_free(&b.a);
  md_small_free(&b.x);
  md_small_free(&b.y);
  md_small_free(&b.copy);
  return md_small_close(&b.small, status, &report, b.common.json);
}
