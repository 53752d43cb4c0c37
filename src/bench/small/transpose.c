#include "gemm/transpose.h"
#include "bench/bench.h"
#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <string.h>

enum { IN, OUT };

typedef struct call {
  md_small_bench *bench;
  const md_transpose_kernel *kernel;
  md_transpose_problem problem;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  const md_gemm_space space = c->kernel->space;
  return c->kernel->run(context, &c->problem, md_small_data(&c->bench->matrix[IN], space),
                        md_small_data(&c->bench->matrix[OUT], space), stream);
}

enum { CHECKED_COLUMNS = 16 }; /* at a time: their lines of the result stay in cache */

/* Every element bit by bit, whatever its type. */
static md_status check(md_context *context, void *user) {
  const call *c = user;
  const int64_t rows = c->problem.rows, columns = c->problem.columns;
  const char *in = c->bench->matrix[IN].host, *out = c->bench->matrix[OUT].host;
  int64_t wrong = INT64_MAX; /* the first one */
#pragma omp parallel for reduction(min : wrong) num_threads(context->threads)
  for (int64_t j0 = 0; j0 < columns; j0 += CHECKED_COLUMNS)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = j0; j < columns && j < j0 + CHECKED_COLUMNS; j++) {
        const int64_t from = i * columns + j, to = j * rows + i;
        if (memcmp(out + to * MD_SMALL_BYTES, in + from * MD_SMALL_BYTES, MD_SMALL_BYTES) != 0 &&
            from < wrong)
          wrong = from;
      }
  if (wrong == INT64_MAX) return MD_OK;
  return md_fail(context, MD_UNREACHED,
                 "transpose by %s (%s) with block %dx%d must carry element (%lld, %lld), it does "
                 "not",
                 c->kernel->name, md_small_type_name(c->problem.type), c->problem.block_x,
                 c->problem.block_y, (long long)(wrong / columns), (long long)(wrong % columns));
}

static md_status run_kernel(md_small_bench *b, const md_transpose_kernel *kernel,
                            md_small_type type, const int *block) {
  call c = {b, kernel, {b->size[0], b->size[1], type, block[0], block[1]}};
  const md_small_case work = {kernel->space, &b->matrix[OUT], run_call, check, &c};
  md_bench_statistics seconds = {0};
  MD_TRY(md_small_run(b, &work, &seconds));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", kernel->name);
  cJSON_AddStringToObject(row, "type", md_small_type_name(type));
  cJSON_AddNumberToObject(row, "rows", (double)b->size[0]);
  cJSON_AddNumberToObject(row, "columns", (double)b->size[1]);
  md_report_integers(row, "block", block, 2);
  md_say(b->context, "%-12s %-8s %2dx%-2d", kernel->name, md_small_type_name(type), block[0],
         block[1]);
  const double bytes = 2.0 * MD_SMALL_BYTES * (double)b->size[0] * (double)b->size[1];
  md_small_report(b, row, kernel->space, bytes, &seconds);
  return MD_OK;
}

static md_status prepare(md_small_bench *b) {
  const int64_t rows = b->size[0], columns = b->size[1];
  MD_TRY(md_bench_memory_check(b->context, 2.0 * MD_SMALL_BYTES * (double)rows * (double)columns));
  MD_TRY(md_small_make(b, rows, columns, "matrix", &b->matrix[IN]));
  return md_small_make(b, columns, rows, "transposed matrix", &b->matrix[OUT]);
}

static md_status run_type(md_small_bench *b, md_small_type type) {
  MD_TRY(md_small_fill(b, &b->matrix[IN], type, 1, INT32_MAX));
  for (int i = 0; md_transpose_kernels()[i]; i++) {
    const md_transpose_kernel *kernel = md_transpose_kernels()[i];
    if (!md_small_takes(b, kernel->name, kernel->space, kernel->unavailable)) continue;
    for (int k = 0; k < b->block_count; k++) {
      MD_TRY(run_kernel(b, kernel, type, b->block[k]));
      if (kernel == &md_transpose_host_naive) break; /* it knows no blocks */
    }
  }
  return MD_OK;
}

static const md_small_kind KIND = {
    .text = {"bench transpose",
             "Out-of-place transpose of integers and floats, by kernel and block shape.",
             "Each result is compared with the definition before it is timed."},
    .dims = "4096x4096",
    .dims_argument = "ROWSxCOLUMNS",
    .dims_help = "of the matrix [4096x4096]",
    .most = (int64_t)1 << 30,
    .blocks = "all",
    .blocks_help = "block shapes up to 32x32, or all: 32xY and 16xY, Y in 1..32 [all]",
    .most_block = 32,
    .prepare = prepare,
    .run_type = run_type};

md_status md_bench_transpose(md_context *context, int argc, char **argv) {
  return md_small_command(context, &KIND, argc, argv);
}
