#include "base/options.h"
#include "bench.h"
#include "gemm/matrix.h"
#include "gemm/shift.h"
#include "gemm_shapes.h"
#include "small_case.h"

#include <string.h>

static const md_command_text TEXT = {
    "bench shift", "out[x, y] = in[x, y] + in[x + 4, y], floats, by kernel and block shape.",
    "Sectors: a warp takes 32 threads of the block, x fastest. A device moves memory in sectors "
    "of\n"
    "32 bytes (8 floats). A warp on one row of 32 floats asks for 4 sectors for in[x]; in[x + 4]\n"
    "starts 16 bytes behind a boundary and asks for 5. Narrower blocks spread a warp over several\n"
    "rows, each with its own cut: 16 wide 2 x 2 and 2 x 3, 8 wide 4 x 1 and 4 x 2, 4 wide 8 x 1 "
    "and\n"
    "8 x 1 with half of each sector unused by this warp.\n"
    "Each result is compared with the definition before it is timed."};

static const char BLOCKS[] = "32x1,32x2,32x4,32x8,32x16,32x32,16x2,16x16,8x4,8x32,4x8,4x64,64x4,"
                             "128x2,256x1,512x1,1024x1";

typedef struct bench {
  md_small_bench small;
  md_common_options common;
  const char *dims, *blocks, *csv;
  long long repeat;
  int64_t width, height;
  md_small_matrix in, out;
} bench;

typedef struct call {
  const md_shift_kernel *kernel;
  md_shift_problem problem;
  const float *in;
  float *out;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  return c->kernel->run(context, &c->problem, c->in, c->out, stream);
}

static md_status check(const bench *b, const call *c) {
  const float *in = b->in.host, *out = b->out.host;
  for (int64_t y = 0; y < b->height; y++)
    for (int64_t x = 0; x < b->width; x++) {
      const float *from = in + y * b->in.columns + x;
      if (!(out[y * b->out.columns + x] == from[0] + from[MD_SHIFT]))
        return md_fail(b->small.context, MD_UNREACHED,
                       "shift by %s with block %dx%d must be exact, it is not at (%lld, %lld)",
                       c->kernel->name, c->problem.block_x, c->problem.block_y, (long long)x,
                       (long long)y);
    }
  return MD_OK;
}

static md_status run_kernel(bench *b, const md_shift_kernel *kernel, const int *block) {
  md_context *context = b->small.context;
  call c = {kernel,
            {b->width, b->height, b->in.columns, b->out.columns, block[0], block[1]},
            md_small_data(&b->in, kernel->space),
            md_small_data(&b->out, kernel->space)};
  md_bench_statistics seconds = {0};
  memset(b->out.host, 0xff, (size_t)(b->out.rows * b->out.columns) * sizeof(float));
  MD_TRY(md_small_put(&b->small, &b->out));
  MD_TRY(md_small_time(&b->small, kernel->space, run_call, &c, 0, &seconds));
  if (kernel->space == MD_GEMM_DEVICE) MD_TRY(md_small_get(&b->small, &b->out));
  MD_TRY(check(b, &c));
  MD_TRY(md_small_time(&b->small, kernel->space, run_call, &c, b->small.repeat, &seconds));
  const md_shift_sectors sectors = md_shift_warp_sectors(block[0], block[1]);
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", kernel->name);
  cJSON_AddNumberToObject(row, "width", (double)b->width);
  cJSON_AddNumberToObject(row, "height", (double)b->height);
  md_report_integers(row, "block", block, 2);
  cJSON_AddNumberToObject(row, "warp_load_sectors", sectors.load);
  cJSON_AddNumberToObject(row, "warp_shifted_load_sectors", sectors.load_shifted);
  cJSON_AddNumberToObject(row, "warp_store_sectors", sectors.store);
  md_say(context, "%-8s %4dx%-2d sectors %2d + %2d, %2d", kernel->name, block[0], block[1],
         sectors.load, sectors.load_shifted, sectors.store);
  const double elements = (double)b->width * (double)b->height;
  md_small_report(&b->small, row, kernel->space, 2.0 * sizeof(float) * elements, &seconds);
  return MD_OK;
}

/* The input has MD_SHIFT columns more, so that no element needs a rule for the edge. */
static md_status prepare(bench *b) {
  int64_t size[2];
  MD_TRY(md_small_sizes(b->small.context, "dims", b->dims, (int64_t)1 << 30, size));
  b->width = size[0], b->height = size[1];
  const int64_t ld = (b->width + MD_SHIFT + 31) / 32 * 32; /* rows on 128 bytes */
  MD_TRY(
      md_bench_memory_check(b->small.context, 2.0 * sizeof(float) * (double)ld * (double)size[1]));
  MD_TRY(md_small_make(&b->small, b->height, ld, "input", &b->in));
  MD_TRY(md_small_make(&b->small, b->height, ld, "output", &b->out));
  md_gemm_fill_whole(987654, MD_GEMM_A, MD_GEMM_SINGLE, b->height, ld, b->in.host, ld);
  return md_small_put(&b->small, &b->in);
}

static md_status run_all(bench *b) {
  int block[MD_SMALL_MOST_BLOCKS][2];
  const int blocks = md_small_blocks(b->small.context, b->blocks, 1024, block);
  if (blocks < 0) return MD_INPUT;
  MD_TRY(prepare(b));
  MD_TRY(md_small_copy(&b->small, &b->in, &b->out));
  for (int i = 0; md_shift_kernels()[i]; i++) {
    const md_shift_kernel *kernel = md_shift_kernels()[i];
    if (!md_small_takes(&b->small, kernel->name, kernel->space, kernel->unavailable)) continue;
    for (int k = 0; k < blocks; k++) MD_TRY(run_kernel(b, kernel, block[k]));
  }
  return MD_OK;
}

md_status md_bench_shift(md_context *context, int argc, char **argv) {
  bench b = {.dims = "4096x4096", .blocks = BLOCKS, .repeat = 10};
  md_option options[] = {
      {.name = "dims",
       .type = MD_OPTION_TEXT,
       .target = &b.dims,
       .argument = "WIDTHxHEIGHT",
       .help = "of the result, x first [4096x4096]"},
      {.name = "blocks",
       .type = MD_OPTION_TEXT,
       .target = &b.blocks,
       .argument = "XxY,...",
       .help = "block shapes, or all: 32xY and 16xY, Y in 1..32 [from 4 to 1024 wide]"},
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
