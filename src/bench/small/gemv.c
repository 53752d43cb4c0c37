#include "gemm/gemv.h"
#include "bench/bench.h"
#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <string.h>

/* Integers stay below 2^31 in sums over the longest row: 9^2 2^24 < 2^31. */
enum { MAGNITUDE = 9, MOST = 1 << 24 };

/* COPY: as large as A, for the bandwidth. */
enum { A, COPY, X, Y };

typedef struct call {
  md_small_bench *bench;
  const md_gemv_kernel *kernel;
  md_gemv_problem problem;
  void *state;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  const md_small_matrix *m = c->bench->matrix;
  const md_gemm_space space = c->kernel->space;
  return c->kernel->run(context, &c->problem, stream, c->state, md_small_data(&m[A], space),
                        md_small_data(&m[X], space), md_small_data(&m[Y], space));
}

/* Largest |y - exact| in units of its bound gamma_(k+1) sum |a| |x|; integers have bound 0. */
static md_status check(md_context *context, void *user) {
  const call *c = user;
  const md_small_matrix *m = c->bench->matrix;
  const int64_t columns = c->problem.columns;
  const double nu = (double)(columns + 1) * 0x1p-24, gamma = nu / (1.0 - nu);
  for (int64_t i = 0; i < c->problem.rows; i++) {
    double sum = 0.0, modulus = 0.0, result;
    for (int64_t j = 0; j < columns; j++) {
      const int64_t at = i * columns + j;
      const double term = c->problem.type == MD_SMALL_INTEGER
                              ? (double)((int32_t *)m[A].host)[at] * ((int32_t *)m[X].host)[j]
                              : (double)((float *)m[A].host)[at] * ((float *)m[X].host)[j];
      sum += term;
      modulus += fabs(term);
    }
    if (c->problem.type == MD_SMALL_INTEGER)
      result = ((int32_t *)m[Y].host)[i];
    else
      result = ((float *)m[Y].host)[i];
    const double bound = c->problem.type == MD_SMALL_INTEGER ? 0.0 : gamma * modulus;
    if (!(fabs(result - sum) <= bound))
      return md_fail(context, MD_UNREACHED,
                     "gemv by %s (%s) must be within %.3g of %.9g in row %lld, got %.9g",
                     c->kernel->name, md_small_type_name(c->problem.type), bound, sum, (long long)i,
                     result);
  }
  return MD_OK;
}

static md_status timed(md_small_bench *b, call *c) {
  const md_gemv_problem *p = &c->problem;
  const md_gemm_space space = c->kernel->space;
  const md_small_case work = {space, &b->matrix[Y], run_call, check, c};
  md_bench_statistics seconds = {0};
  MD_TRY(md_small_run(b, &work, &seconds));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", c->kernel->name);
  cJSON_AddStringToObject(row, "type", md_small_type_name(p->type));
  cJSON_AddNumberToObject(row, "rows", (double)p->rows);
  cJSON_AddNumberToObject(row, "columns", (double)p->columns);
  md_say(b->context, "%-14s %-8s", c->kernel->name, md_small_type_name(p->type));
  const double elements = (double)p->rows * (double)p->columns + (double)(p->rows + p->columns);
  md_small_report(b, row, space, MD_SMALL_BYTES * elements, &seconds);
  return MD_OK;
}

static md_status run_kernel(md_small_bench *b, const md_gemv_kernel *kernel, md_small_type type) {
  call c = {b, kernel, {b->size[0], b->size[1], type}, NULL};
  md_status status = MD_OK;
  if (kernel->open) status = kernel->open(b->context, &c.problem, b->device.stream, &c.state);
  if (status == MD_OK) status = timed(b, &c);
  if (kernel->close && c.state) kernel->close(c.state);
  return status;
}

static md_status prepare(md_small_bench *b) {
  const int64_t rows = b->size[0], columns = b->size[1];
  MD_TRY(md_bench_memory_check(b->context, 2.0 * MD_SMALL_BYTES * (double)rows * (double)columns));
  MD_TRY(md_small_make(b, rows, columns, "matrix", &b->matrix[A]));
  MD_TRY(md_small_make(b, rows, columns, "copy of the matrix", &b->matrix[COPY]));
  MD_TRY(md_small_make(b, 1, columns, "vector", &b->matrix[X]));
  return md_small_make(b, 1, rows, "result", &b->matrix[Y]);
}

static md_status run_type(md_small_bench *b, md_small_type type) {
  MD_TRY(md_small_fill(b, &b->matrix[A], type, 1, MAGNITUDE));
  MD_TRY(md_small_fill(b, &b->matrix[X], type, 2, MAGNITUDE));
  for (int i = 0; md_gemv_kernels()[i]; i++) {
    const md_gemv_kernel *kernel = md_gemv_kernels()[i];
    if (!(kernel->types & 1u << type)) continue;
    if (md_small_takes(b, kernel->name, kernel->space, kernel->unavailable))
      MD_TRY(run_kernel(b, kernel, type));
  }
  return MD_OK;
}

static const md_small_kind KIND = {
    .text = {"bench gemv", "y = A x for integers and floats, by kernel.",
             "Each result is compared with double sums before it is timed: integers exactly, "
             "floats\nwithin their rounding bound."},
    .dims = "10240x256",
    .dims_argument = "ROWSxCOLUMNS",
    .dims_help = "of the matrix [10240x256]",
    .most = MOST,
    .prepare = prepare,
    .run_type = run_type};

md_status md_bench_gemv(md_context *context, int argc, char **argv) {
  return md_small_command(context, &KIND, argc, argv);
}
