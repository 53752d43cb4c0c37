#include "gemm/transpose.h"
#include "base/options.h"
#include "bench/bench.h"
#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <stdlib.h>
#include <string.h>

static const md_command_text TEXT = {
    "bench transpose", "Out-of-place transpose of integers and floats, by kernel and block shape.",
    "Each result is compared with the definition before it is timed."};

typedef struct bench {
  md_small_bench small;
  md_common_options common;
  md_small_options options;
  const char *dims, *blocks;
  md_small_matrix in, out;
} bench;

typedef struct call {
  const bench *bench;
  const md_transpose_kernel *kernel;
  md_transpose_problem problem;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  const md_gemm_space space = c->kernel->space;
  return c->kernel->run(context, &c->problem, md_small_data(&c->bench->in, space),
                        md_small_data(&c->bench->out, space), stream);
}

enum { CHECKED_COLUMNS = 16 }; /* at a time: their lines of the result stay in cache */

/* Every element bit by bit, whatever its type. */
static md_status check(md_context *context, void *user) {
  const call *c = user;
  const int64_t rows = c->problem.rows, columns = c->problem.columns;
  const char *in = c->bench->in.host, *out = c->bench->out.host;
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

static md_status run_kernel(bench *b, const md_transpose_kernel *kernel, md_small_type type,
                            const int *block) {
  call c = {b, kernel, {b->in.rows, b->in.columns, type, block[0], block[1]}};
  const md_small_case work = {kernel->space, &b->out, run_call, check, &c};
  md_bench_statistics seconds = {0};
  MD_TRY(md_small_run(&b->small, &work, &seconds));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", kernel->name);
  cJSON_AddStringToObject(row, "type", md_small_type_name(type));
  cJSON_AddNumberToObject(row, "rows", (double)b->in.rows);
  cJSON_AddNumberToObject(row, "columns", (double)b->in.columns);
  md_report_integers(row, "block", block, 2);
  md_say(b->small.context, "%-12s %-8s %2dx%-2d", kernel->name, md_small_type_name(type), block[0],
         block[1]);
  const double bytes = 2.0 * MD_SMALL_BYTES * (double)b->in.rows * (double)b->in.columns;
  md_small_report(&b->small, row, kernel->space, bytes, &seconds);
  return MD_OK;
}

static md_status prepare(bench *b) {
  int64_t size[2];
  MD_TRY(md_small_sizes(b->small.context, "dims", b->dims, (int64_t)1 << 30, size));
  const double bytes = 2.0 * MD_SMALL_BYTES * (double)size[0] * (double)size[1];
  MD_TRY(md_bench_memory_check(b->small.context, bytes));
  MD_TRY(md_small_make(&b->small, size[0], size[1], "matrix", &b->in));
  return md_small_make(&b->small, size[1], size[0], "transposed matrix", &b->out);
}

static md_status run_type(bench *b, md_small_type type, const int block[][2], int blocks) {
  MD_TRY(md_small_fill(&b->small, &b->in, type, 1, INT32_MAX));
  for (int i = 0; md_transpose_kernels()[i]; i++) {
    const md_transpose_kernel *kernel = md_transpose_kernels()[i];
    if (!md_small_takes(&b->small, kernel->name, kernel->space, kernel->unavailable)) continue;
    for (int k = 0; k < blocks; k++) {
      MD_TRY(run_kernel(b, kernel, type, block[k]));
      if (kernel == &md_transpose_host_naive) break; /* it knows no blocks */
    }
  }
  return MD_OK;
}

static md_status run_all(bench *b) {
  int block[MD_SMALL_MOST_BLOCKS][2];
  const int blocks = md_small_blocks(b->small.context, b->blocks, 32, block);
  if (blocks < 0) return MD_INPUT;
  MD_TRY(prepare(b));
  MD_TRY(md_small_copy(&b->small, &b->in, &b->out));
  for (int type = 0; type < MD_SMALL_TYPES; type++)
    if (md_small_wants(&b->small, (md_small_type)type))
      MD_TRY(run_type(b, (md_small_type)type, block, blocks));
  return MD_OK;
}

md_status md_bench_transpose(md_context *context, int argc, char **argv) {
  bench b = {.dims = "4096x4096", .blocks = "all", .options = MD_SMALL_DEFAULTS};
  md_option options[] = {
      {.name = "dims",
       .type = MD_OPTION_TEXT,
       .target = &b.dims,
       .argument = "ROWSxCOLUMNS",
       .help = "of the matrix [4096x4096]"},
      {.name = "blocks",
       .type = MD_OPTION_TEXT,
       .target = &b.blocks,
       .argument = "XxY,...",
       .help = "block shapes up to 32x32, or all: 32xY and 16xY, Y in 1..32 [all]"},
      MD_SMALL_OPTIONS(b.options),
      MD_COMMON_OPTIONS(b.common),
  };
  MD_TRY(md_options_read(context, &TEXT, options, sizeof options / sizeof *options, &b.common, argc,
                         argv));
  if (b.common.help) return MD_OK;
  md_report report;
  MD_TRY(md_small_open(&b.small, context, &b.options, TEXT.command, &report));
  md_status status = run_all(&b);
  md_small_free(&b.in);
  md_small_free(&b.out);
  return md_small_close(&b.small, status, &report, b.common.json);
}
