/* Transpose, shifted sum, matrix times vector: every kernel that this build and machine have. */
#include "fill.h"
#include "gemm/local.h"
#include "gemm/small.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
  md_context *context;
  md_gemm_device device;
  bool has_device;
} bench;

static bench begin(md_context *context) {
  bench b = {.context = context};
  b.has_device = md_gemm_device_open(context, &b.device) == MD_OK;
  return b;
}
static bool runs(const bench *b, md_gemm_space space, const char *unavailable) {
  return !unavailable && (space == MD_GEMM_HOST || b->has_device);
}
static void end(bench *b) {
  if (b->has_device) md_gemm_device_close(&b->device);
}

/* A matrix where a kernel of `space` wants it; get brings it back. */
typedef struct both {
  void *host;
  md_small_type type;
  md_gemm_device_matrix device;
} both;

static double value(const both *x, int64_t at) {
  if (x->type == MD_SMALL_INTEGER) return ((const int32_t *)x->host)[at];
  return (double)((const float *)x->host)[at];
}

/* Floats in (-1, 1); integers small enough for every sum here, and different next to each other. */
static both make(bench *b, md_gemm_space space, md_small_type type, int64_t rows, int64_t columns) {
  both x = {.host = calloc((size_t)(rows * columns), MD_SMALL_BYTES), .type = type};
  assert_non_null(x.host);
  if (type == MD_SMALL_SINGLE)
    fill_whole(3, MD_GEMM_A, MD_GEMM_SINGLE, rows, columns, x.host, columns);
  for (int64_t i = 0; i < rows * columns && type == MD_SMALL_INTEGER; i++)
    ((int32_t *)x.host)[i] = (int32_t)(i * 7919 % 1009) - 504;
  if (space == MD_GEMM_DEVICE) {
    MD_REQUIRE(b->context, md_gemm_device_allocate(b->context, rows, columns, MD_SMALL_BYTES, false,
                                                   &x.device));
    MD_REQUIRE(b->context, md_gemm_device_put(b->context, &x.device, x.host, columns));
  }
  return x;
}
static void *data(const both *x) {
  return x->device.data ? x->device.data : x->host;
}
static void get(bench *b, both *x) {
  if (x->device.data)
    MD_REQUIRE(b->context, md_gemm_device_get(b->context, x->host, x->device.columns, &x->device));
}
static void destroy(both *x) {
  free(x->host);
  md_gemm_device_free(&x->device);
}

static const int BLOCKS[][2] = {{32, 1}, {32, 8}, {32, 32}, {16, 16},
                                {16, 5}, {7, 3},  {3, 30},  {1, 1}};
enum { BLOCK_COUNT = sizeof BLOCKS / sizeof *BLOCKS };

static void transpose(bench *b, const md_small_kernel *kernel, md_small_type type,
                      const int64_t *size, const int *block) {
  const int64_t rows = size[0], columns = size[1];
  both in = make(b, kernel->space, type, rows, columns);
  both out = make(b, kernel->space, type, columns, rows);
  const md_small_problem p = {
      .rows = rows, .columns = columns, .type = type, .block_x = block[0], .block_y = block[1]};
  const md_small_call call = {&p, b->device.stream, NULL, data(&in), NULL, data(&out)};
  MD_REQUIRE(b->context, kernel->run(b->context, &call));
  get(b, &out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      if (value(&out, j * rows + i) != value(&in, i * columns + j))
        fail_msg("%s type %d %lldx%lld block %dx%d at %lld, %lld", kernel->name, type,
                 (long long)rows, (long long)columns, block[0], block[1], (long long)i,
                 (long long)j);
  destroy(&in);
  destroy(&out);
}

static void transposes(void **state) {
  static const int64_t SIZES[][2] = {{1, 1}, {1, 50}, {33, 1}, {64, 96}, {67, 101}};
  bench b = begin(*state);
  for (int k = 0; md_small_kernels(MD_SMALL_TRANSPOSE)[k]; k++) {
    const md_small_kernel *kernel = md_small_kernels(MD_SMALL_TRANSPOSE)[k];
    if (!runs(&b, kernel->space, kernel->unavailable)) continue;
    for (int s = 0; s < 5 * BLOCK_COUNT; s++)
      for (int type = 0; type < MD_SMALL_TYPES; type++)
        transpose(&b, kernel, (md_small_type)type, SIZES[s % 5], BLOCKS[s / 5]);
  }
  end(&b);
}

static void shift(bench *b, const md_small_kernel *kernel, md_small_type type, const int *block) {
  const md_small_problem p = {61, 19, 70, 63, type, block[0], block[1]};
  both in = make(b, kernel->space, type, p.rows, p.in_ld);
  both out = make(b, kernel->space, type, p.rows, p.out_ld);
  const double guard = value(&out, p.columns);
  const md_small_call call = {&p, b->device.stream, NULL, data(&in), NULL, data(&out)};
  MD_REQUIRE(b->context, kernel->run(b->context, &call));
  get(b, &out);
  assert_true(value(&out, p.columns) == guard);
  for (int64_t y = 0; y < p.rows; y++)
    for (int64_t x = 0; x < p.columns; x++) {
      const double a = value(&in, y * p.in_ld + x), c = value(&in, y * p.in_ld + x + MD_SHIFT);
      const double sum = type == MD_SMALL_INTEGER ? a + c : (double)((float)a + (float)c);
      if (value(&out, y * p.out_ld + x) != sum)
        fail_msg("%s type %d block %dx%d at %lld, %lld", kernel->name, type, block[0], block[1],
                 (long long)x, (long long)y);
    }
  destroy(&in);
  destroy(&out);
}

static void shifts(void **state) {
  bench b = begin(*state);
  for (int k = 0; md_small_kernels(MD_SMALL_SHIFT)[k]; k++) {
    const md_small_kernel *kernel = md_small_kernels(MD_SMALL_SHIFT)[k];
    if (!runs(&b, kernel->space, kernel->unavailable)) continue;
    for (int s = 0; s < BLOCK_COUNT; s++)
      for (int type = 0; type < MD_SMALL_TYPES; type++)
        shift(&b, kernel, (md_small_type)type, BLOCKS[s]);
  }
  end(&b);
}

static void sectors_of_a_warp(void **state) {
  (void)state;
  static const int EXPECTED[][5] = {{32, 1, 4, 5, 4},  {32, 8, 4, 5, 4}, {1024, 1, 4, 5, 4},
                                    {16, 16, 4, 6, 4}, {8, 32, 4, 8, 4}, {4, 8, 8, 8, 8},
                                    {16, 1, 2, 3, 2},  {24, 2, 4, 6, 4}};
  for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
    const int *e = EXPECTED[i];
    const md_shift_sectors sectors = md_shift_warp_sectors(e[0], e[1]);
    assert_int_equal(sectors.load, e[2]);
    assert_int_equal(sectors.load_shifted, e[3]);
    assert_int_equal(sectors.store, e[4]);
  }
}

static void multiply(bench *b, const md_small_kernel *kernel, md_small_type type, int64_t rows,
                     int64_t columns) {
  const md_small_problem p = {.rows = rows, .columns = columns, .type = type};
  both a = make(b, kernel->space, type, rows, columns);
  both x = make(b, kernel->space, type, 1, columns);
  both y = make(b, kernel->space, type, 1, rows);
  void *kernel_state = NULL;
  if (kernel->open)
    MD_REQUIRE(b->context, kernel->open(b->context, &p, b->device.stream, &kernel_state));
  const md_small_call call = {&p, b->device.stream, kernel_state, data(&a), data(&x), data(&y)};
  MD_REQUIRE(b->context, kernel->run(b->context, &call));
  get(b, &y);
  if (kernel->close && kernel_state) kernel->close(kernel_state);
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0.0, modulus = 0.0;
    for (int64_t j = 0; j < columns; j++) {
      const double term = value(&a, i * columns + j) * value(&x, j);
      sum += term;
      modulus += fabs(term);
    }
    const double bound = type == MD_SMALL_INTEGER ? 0.0 : (double)(columns + 2) * 0x1p-24 * modulus;
    md_require_at_most(fabs(value(&y, i) - sum), bound, kernel->name);
  }
  destroy(&a);
  destroy(&x);
  destroy(&y);
}

static void products_with_vectors(void **state) {
  static const int64_t SIZES[][2] = {{1, 1}, {5, 1}, {1, 77}, {100, 31}, {64, 256}, {33, 1025}};
  bench b = begin(*state);
  for (int k = 0; md_small_kernels(MD_SMALL_GEMV)[k]; k++) {
    const md_small_kernel *kernel = md_small_kernels(MD_SMALL_GEMV)[k];
    if (!runs(&b, kernel->space, kernel->unavailable)) continue;
    for (int s = 0; s < 6; s++)
      for (int type = 0; type < MD_SMALL_TYPES; type++)
        if (kernel->types & 1u << type)
          multiply(&b, kernel, (md_small_type)type, SIZES[s][0], SIZES[s][1]);
  }
  end(&b);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(transposes),
    cmocka_unit_test(shifts),
    cmocka_unit_test(sectors_of_a_warp),
    cmocka_unit_test(products_with_vectors),
};

MD_RUN_TESTS(tests)
