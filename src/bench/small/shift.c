#include "gemm/shift.h"
#include "bench/bench.h"
#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <string.h>

enum { IN, OUT };

typedef struct call {
  md_small_bench *bench;
  const md_shift_kernel *kernel;
  md_shift_problem problem;
} call;

static md_status run_call(md_context *context, void *user, void *stream) {
  const call *c = user;
  const md_gemm_space space = c->kernel->space;
  return c->kernel->run(context, &c->problem, md_small_data(&c->bench->matrix[IN], space),
                        md_small_data(&c->bench->matrix[OUT], space), stream);
}

/* The sum of two floats is rounded once: nothing but the same bits is right. */
static md_status check(md_context *context, void *user) {
  const call *c = user;
  const md_shift_problem *p = &c->problem;
  const void *in = c->bench->matrix[IN].host, *out = c->bench->matrix[OUT].host;
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

static md_status run_kernel(md_small_bench *b, const md_shift_kernel *kernel, md_small_type type,
                            const int *block) {
  call c = {b,
            kernel,
            {b->size[0], b->size[1], b->matrix[IN].columns, b->matrix[OUT].columns, type, block[0],
             block[1]}};
  const md_small_case work = {kernel->space, &b->matrix[OUT], run_call, check, &c};
  md_bench_statistics seconds = {0};
  MD_TRY(md_small_run(b, &work, &seconds));
  const md_shift_sectors sectors = md_shift_warp_sectors(block[0], block[1]);
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kernel", kernel->name);
  cJSON_AddStringToObject(row, "type", md_small_type_name(type));
  cJSON_AddNumberToObject(row, "width", (double)b->size[0]);
  cJSON_AddNumberToObject(row, "height", (double)b->size[1]);
  md_report_integers(row, "block", block, 2);
  cJSON_AddNumberToObject(row, "warp_load_sectors", sectors.load);
  cJSON_AddNumberToObject(row, "warp_shifted_load_sectors", sectors.load_shifted);
  cJSON_AddNumberToObject(row, "warp_store_sectors", sectors.store);
  md_say(b->context, "%-8s %-8s %4dx%-2d sectors %2d + %2d, %2d", kernel->name,
         md_small_type_name(type), block[0], block[1], sectors.load, sectors.load_shifted,
         sectors.store);
  const double elements = (double)b->size[0] * (double)b->size[1];
  md_small_report(b, row, kernel->space, 2.0 * MD_SMALL_BYTES * elements, &seconds);
  return MD_OK;
}

/* The input has MD_SHIFT columns more, so that no element needs a rule for the edge. */
static md_status prepare(md_small_bench *b) {
  const int64_t height = b->size[1], ld = (b->size[0] + MD_SHIFT + 31) / 32 * 32; /* 128 bytes */
  MD_TRY(md_bench_memory_check(b->context, 2.0 * MD_SMALL_BYTES * (double)ld * (double)height));
  MD_TRY(md_small_make(b, height, ld, "input", &b->matrix[IN]));
  return md_small_make(b, height, ld, "output", &b->matrix[OUT]);
}

static md_status run_type(md_small_bench *b, md_small_type type) {
  MD_TRY(md_small_fill(b, &b->matrix[IN], type, 1, INT32_MAX / 2));
  for (int i = 0; md_shift_kernels()[i]; i++) {
    const md_shift_kernel *kernel = md_shift_kernels()[i];
    if (!md_small_takes(b, kernel->name, kernel->space, kernel->unavailable)) continue;
    for (int k = 0; k < b->block_count; k++) MD_TRY(run_kernel(b, kernel, type, b->block[k]));
  }
  return MD_OK;
}

static const md_small_kind KIND = {
    .text = {"bench shift",
             "out[x, y] = in[x, y] + in[x + 4, y], integers and floats, by kernel and block.",
             "Sectors: a warp takes 32 threads of the block, x fastest. A device moves memory in "
             "sectors "
             "of\n"
             "32 bytes (8 elements). A warp on one row of 32 elements asks for 4 sectors for "
             "in[x]; in[x + "
             "4]\n"
             "starts 16 bytes behind a boundary and asks for 5. Narrower blocks spread a warp over "
             "several\n"
             "rows, each with its own cut: 16 wide 2 x 2 and 2 x 3, 8 wide 4 x 1 and 4 x 2, 4 wide "
             "8 x 1 "
             "and\n"
             "8 x 1 with half of each sector unused by this warp.\n"
             "Each result is compared with the definition before it is timed."},
    .dims = "4096x4096",
    .dims_argument = "WIDTHxHEIGHT",
    .dims_help = "of the result, x first [4096x4096]",
    .most = (int64_t)1 << 30,
    .blocks = "32x1,32x2,32x4,32x8,32x16,32x32,16x2,16x16,8x4,8x32,4x8,4x64,64x4,"
              "128x2,256x1,512x1,1024x1",
    .blocks_help = "block shapes, or all: 32xY and 16xY, Y in 1..32 [from 4 to 1024 wide]",
    .most_block = 1024,
    .prepare = prepare,
    .run_type = run_type};

md_status md_bench_shift(md_context *context, int argc, char **argv) {
  return md_small_command(context, &KIND, argc, argv);
}
