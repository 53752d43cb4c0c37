#include "base/options.h"
#include "bench.h"
#include "gemm/matrix.h"
#include "gemm/transpose.h"
#include "gemm_shapes.h"
#include "small_case.h"

#include <stdlib.h>
#include <string.h>

static const md_command_text TEXT = {
    "bench transpose", "Out-of-place transpose of a matrix of floats, by kernel and block shape.",
    "Each result is compared with the definition before it is timed."};

typedef struct bench {
  md_small_bench small;
  md_common_options common;
  const char *dims, *blocks, *csv;
  long long repeat;
  md_small_matrix in, out;
} bench;

typedef struct call {
  const md_transpose_kernel *kernel;
  md_transpose_problem problem;
  const float *in;
  float *out;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  return c->kernel->run(context, &c->problem, c->in, c->out, stream);
}

static md_status check(const bench *b, const call *c) {
  const float *in = b->in.host, *out = b->out.host;
  for (int64_t i = 0; i < b->in.rows; i++)
    for (int64_t j = 0; j < b->in.columns; j++)
      if (out[j * b->in.rows + i] != in[i * b->in.columns + j])
        return md_fail(b->small.context, MD_UNREACHED,
                       "transpose by %s with block %dx%d must carry element (%lld, %lld), it does "
                       "not",
                       c->kernel->name, c->problem.block_x, c->problem.block_y, (long long)i,
                       (long long)j);
  return MD_OK;
}

static md_status run_kernel(bench *b, const md_transpose_kernel *kernel, const int *block) {
  md_context *context = b->small.context;
  call c = {kernel,
            {b->in.rows, b->in.columns, block[0], block[1]},
            md_small_data(&b->in, kernel->space),
            md_small_data(&b->out, kernel->space)};
  md_bench_statistics seconds = {0};
  memset(b->out.host, 0xff, (size_t)(b->out.rows * b->out.columns) * sizeof(float));
  MD_TRY(md_small_put(&b->small, &b->out));
  MD_TRY(md_small_time(&b->small, kernel->space, run_call, &c, 0, &seconds));
  if (kernel->space == MD_GEMM_DEVICE) MD_TRY(md_small_get(&b->small, &b->out));
  MD_TRY(check(b, &c));
  MD_TRY(md_small_time(&b->small, kernel->space, run_call, &c, b->small.repeat, &seconds));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", kernel->name);
  cJSON_AddNumberToObject(row, "rows", (double)b->in.rows);
  cJSON_AddNumberToObject(row, "columns", (double)b->in.columns);
  md_report_integers(row, "block", block, 2);
  md_say(context, "%-12s %2dx%-2d", kernel->name, block[0], block[1]);
  const double bytes = 2.0 * sizeof(float) * (double)b->in.rows * (double)b->in.columns;
  md_small_report(&b->small, row, kernel->space, bytes, &seconds);
  return MD_OK;
}

static md_status prepare(bench *b) {
  int64_t size[2];
  MD_TRY(md_small_sizes(b->small.context, "dims", b->dims, (int64_t)1 << 30, size));
  const double bytes = 2.0 * sizeof(float) * (double)size[0] * (double)size[1];
  MD_TRY(md_bench_memory_check(b->small.context, bytes));
  MD_TRY(md_small_make(&b->small, size[0], size[1], "matrix", &b->in));
  MD_TRY(md_small_make(&b->small, size[1], size[0], "transposed matrix", &b->out));
  md_gemm_fill_whole(987654, MD_GEMM_A, MD_GEMM_SINGLE, size[0], size[1], b->in.host, size[1]);
  return md_small_put(&b->small, &b->in);
}

static md_status run_all(bench *b) {
  int block[MD_SMALL_MOST_BLOCKS][2];
  const int blocks = md_small_blocks(b->small.context, b->blocks, 32, block);
  if (blocks < 0) return MD_INPUT;
  MD_TRY(prepare(b));
  MD_TRY(md_small_copy(&b->small, &b->in, &b->out));
  for (int i = 0; md_transpose_kernels()[i]; i++) {
    const md_transpose_kernel *kernel = md_transpose_kernels()[i];
    if (!md_small_takes(&b->small, kernel->name, kernel->space, kernel->unavailable)) continue;
    for (int k = 0; k < blocks; k++) {
      MD_TRY(run_kernel(b, kernel, block[k]));
      if (kernel == &md_transpose_host_naive) break; /* it knows no blocks */
    }
  }
  return MD_OK;
}

md_status md_bench_transpose(md_context *context, int argc, char **argv) {
  bench b = {.dims = "4096x4096", .blocks = "all", .repeat = 10};
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
  md_small_free(&b.in);
  md_small_free(&b.out);
  return md_small_close(&b.small, status, &report, b.csv, b.common.json);
}
