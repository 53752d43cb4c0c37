#include "gemm/shift.h"
#include "base/options.h"
#include "bench/bench.h"
#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <string.h>

static const md_command_text TEXT = {
    "bench shift", "out[x, y] = in[x, y] + in[x + 4, y], integers and floats, by kernel and block.",
    "Sectors: a warp takes 32 threads of the block, x fastest. A device moves memory in sectors "
    "of\n"
    "32 bytes (8 elements). A warp on one row of 32 elements asks for 4 sectors for in[x]; in[x + "
    "4]\n"
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
  md_small_options options;
  const char *dims, *blocks;
  int64_t width, height;
  md_small_matrix in, out;
} bench;

typedef struct call {
  const bench *bench;
  const md_shift_kernel *kernel;
  md_shift_problem problem;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  const md_gemm_space space = c->kernel->space;
  return c->kernel->run(context, &c->problem, md_small_data(&c->bench->in, space),
                        md_small_data(&c->bench->out, space), stream);
}

/* The sum of two floats is rounded once: nothing but the same bits is right. */
static md_status check(md_context *context, void *user) {
  const call *c = user;
  const md_shift_problem *p = &c->problem;
  const void *in = c->bench->in.host, *out = c->bench->out.host;
  int64_t wrong = INT64_MAX; /* the first one */
#pragma omp parallel for reduction(min : wrong) num_threads(context->threads)
  for (int64_t y = 0; y < p->height; y++)
    for (int64_t x = 0; x < p->width; x++) {
      const int64_t from = y * p->in_ld + x, to = y * p->out_ld + x;
      const bool right =
          p->type == MD_SMALL_INTEGER
              ? ((const int32_t *)out)[to] ==
                    ((const int32_t *)in)[from] + ((const int32_t *)in)[from + MD_SHIFT]
              : ((const float *)out)[to] ==
                    ((const float *)in)[from] + ((const float *)in)[from + MD_SHIFT];
      if (!right && y * p->width + x < wrong) wrong = y * p->width + x;
    }
  if (wrong == INT64_MAX) return MD_OK;
  return md_fail(context, MD_UNREACHED,
                 "shift by %s (%s) with block %dx%d must be exact, it is not at (%lld, %lld)",
                 c->kernel->name, md_small_type_name(p->type), p->block_x, p->block_y,
                 (long long)(wrong % p->width), (long long)(wrong / p->width));
}

static md_status run_kernel(bench *b, const md_shift_kernel *kernel, md_small_type type,
                            const int *block) {
  call c = {
      b, kernel, {b->width, b->height, b->in.columns, b->out.columns, type, block[0], block[1]}};
  const md_small_case work = {kernel->space, &b->out, run_call, check, &c};
  md_bench_statistics seconds = {0};
  MD_TRY(md_small_run(&b->small, &work, &seconds));
  const md_shift_sectors sectors = md_shift_warp_sectors(block[0], block[1]);
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", kernel->name);
  cJSON_AddStringToObject(row, "type", md_small_type_name(type));
  cJSON_AddNumberToObject(row, "width", (double)b->width);
  cJSON_AddNumberToObject(row, "height", (double)b->height);
  md_report_integers(row, "block", block, 2);
  cJSON_AddNumberToObject(row, "warp_load_sectors", sectors.load);
  cJSON_AddNumberToObject(row, "warp_shifted_load_sectors", sectors.load_shifted);
  cJSON_AddNumberToObject(row, "warp_store_sectors", sectors.store);
  md_say(b->small.context, "%-8s %-8s %4dx%-2d sectors %2d + %2d, %2d", kernel->name,
         md_small_type_name(type), block[0], block[1], sectors.load, sectors.load_shifted,
         sectors.store);
  const double elements = (double)b->width * (double)b->height;
  md_small_report(&b->small, row, kernel->space, 2.0 * MD_SMALL_BYTES * elements, &seconds);
  return MD_OK;
}

/* The input has MD_SHIFT columns more, so that no element needs a rule for the edge. */
static md_status prepare(bench *b) {
  int64_t size[2];
  MD_TRY(md_small_sizes(b->small.context, "dims", b->dims, (int64_t)1 << 30, size));
  b->width = size[0], b->height = size[1];
  const int64_t ld = (b->width + MD_SHIFT + 31) / 32 * 32; /* rows on 128 bytes */
  MD_TRY(
      md_bench_memory_check(b->small.context, 2.0 * MD_SMALL_BYTES * (double)ld * (double)size[1]));
  MD_TRY(md_small_make(&b->small, b->height, ld, "input", &b->in));
  return md_small_make(&b->small, b->height, ld, "output", &b->out);
}

static md_status run_type(bench *b, md_small_type type, const int block[][2], int blocks) {
  MD_TRY(md_small_fill(&b->small, &b->in, type, 1, INT32_MAX / 2));
  for (int i = 0; md_shift_kernels()[i]; i++) {
    const md_shift_kernel *kernel = md_shift_kernels()[i];
    if (!md_small_takes(&b->small, kernel->name, kernel->space, kernel->unavailable)) continue;
    for (int k = 0; k < blocks; k++) MD_TRY(run_kernel(b, kernel, type, block[k]));
  }
  return MD_OK;
}

static md_status run_all(bench *b) {
  int block[MD_SMALL_MOST_BLOCKS][2];
  const int blocks = md_small_blocks(b->small.context, b->blocks, 1024, block);
  if (blocks < 0) return MD_INPUT;
  MD_TRY(prepare(b));
  MD_TRY(md_small_copy(&b->small, &b->in, &b->out));
  for (int type = 0; type < MD_SMALL_TYPES; type++)
    if (md_small_wants(&b->small, (md_small_type)type))
      MD_TRY(run_type(b, (md_small_type)type, block, blocks));
  return MD_OK;
}

md_status md_bench_shift(md_context *context, int argc, char **argv) {
  bench b = {.dims = "4096x4096", .blocks = BLOCKS, .options = MD_SMALL_DEFAULTS};
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
