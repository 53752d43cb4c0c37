/* Device kernels on matrices that stay on the device: several tiles with ragged edges, operands
 * that start on an odd element, NaN around every row. Skipped where there is no device. */
#include "fill.h"
#include "gemm/local.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

enum { SEED = 4242, SAMPLES = 128 };

/* A row-major matrix whose storage begins `offset` elements into its allocation, NaN between the
 * rows, on host and device. */
typedef struct matrix {
  md_gemm_device_matrix device; /* one row: offset + rows * ld elements */
  char *host;
  size_t element_bytes;
  int64_t offset;
} matrix;

static matrix make(md_context *context, int64_t rows, int64_t columns, int64_t ld, int64_t offset,
                   md_gemm_precision type, int operand) {
  matrix x = {.element_bytes = md_gemm_input_bytes(type), .offset = offset};
  const int64_t length = offset + rows * ld;
  x.host = malloc((size_t)length * x.element_bytes);
  assert_non_null(x.host);
  memset(x.host, 0xff, (size_t)length * x.element_bytes); /* NaN in every type */
  if (operand)
    fill_whole(SEED, (md_gemm_operand)operand, type, rows, columns,
               x.host + (size_t)offset * x.element_bytes, ld);
  MD_REQUIRE(context,
             md_gemm_device_allocate(context, 1, length, x.element_bytes, false, &x.device));
  MD_REQUIRE(context, md_gemm_device_put(context, &x.device, x.host, length));
  return x;
}
static void *on_device(const matrix *x) {
  return (char *)x->device.data + (size_t)x->offset * x->element_bytes;
}
static char *on_host(const matrix *x) {
  return x->host + (size_t)x->offset * x->element_bytes;
}
static void destroy(matrix *x) {
  md_gemm_device_free(&x->device);
  free(x->host);
}

static void product_is_right(md_context *context, md_gemm_device *device,
                             const md_gemm_kernel *kernel, int variant, const md_gemm_problem *p,
                             int64_t offset) {
  const md_gemm_precision out = md_gemm_output(p->precision);
  matrix a = make(context, p->m, p->k, p->lda, offset, p->precision, MD_GEMM_A);
  matrix b = make(context, p->k, p->n, p->ldb, offset, p->precision, MD_GEMM_B);
  matrix c = make(context, p->m, p->n, p->ldc, offset, out, p->beta != 0.0 ? MD_GEMM_C : 0);
  const md_gemm_launch launch = {variant, 1, device->stream};
  MD_REQUIRE(context,
             md_gemm(context, kernel, p, &launch, on_device(&a), on_device(&b), on_device(&c)));
  const size_t bytes = (size_t)c.device.columns * c.element_bytes;
  char *result = malloc(bytes);
  assert_non_null(result);
  MD_REQUIRE(context, md_gemm_device_get(context, result, c.device.columns, &c.device));
  char *computed = result + (size_t)offset * c.element_bytes;

  int64_t rows[SAMPLES];
  md_gemm_row_sums sums[SAMPLES] = {{0.0, 0.0, 0.0, 0.0}};
  const int64_t samples = md_gemm_sample_rows(p->m, SAMPLES, rows);
  MD_REQUIRE(context, md_gemm_verify_rows(context, p, on_host(&a), on_host(&b), on_host(&c),
                                          computed, rows, samples, sums));
  const double excess = md_gemm_error_of(sums, samples).excess;
  if (!(excess <= 1.0))
    fail_msg("%s variant %d %s %lldx%lldx%lld ldc %lld offset %lld beta %g: %g times the bound",
             kernel->name, variant, md_gemm_precision_name(p->precision), (long long)p->m,
             (long long)p->n, (long long)p->k, (long long)p->ldc, (long long)offset, p->beta,
             excess);
  for (int64_t i = 0; i < p->m; i++)
    assert_memory_equal(computed + (size_t)(i * p->ldc + p->n) * c.element_bytes,
                        on_host(&c) + (size_t)(i * p->ldc + p->n) * c.element_bytes,
                        (size_t)(p->ldc - p->n) * c.element_bytes);
  free(result), destroy(&a), destroy(&b), destroy(&c);
}

static void every_layout(md_context *context, md_gemm_device *device, const md_gemm_kernel *kernel,
                         int variant, md_gemm_precision precision) {
  static const struct {
    int64_t m, n, k, padding, offset;
    double alpha, beta;
  } CASES[] = {{130, 257, 33, 0, 0, 1.0, 0.0},    {641, 639, 1023, 0, 0, 1.0, 0.0},
               {641, 639, 1023, 1, 0, 0.5, 0.25}, {256, 512, 128, 8, 0, -0.7, 1.3},
               {256, 512, 192, 8, 0, 1.0, 0.0},   {300, 1, 77, 3, 1, 1.0, 0.0},
               {1, 300, 77, 3, 1, -0.7, 1.3},     {255, 130, 64, 2, 1, 1.0, 0.5},
               {520, 776, 200, 0, 0, -0.7, 1.3},  {385, 514, 260, 6, 3, 1.0, 0.0},
               {384, 1028, 156, 0, 0, 2.0, -0.5}, {900, 388, 800, 4, 0, 1.0, 0.75}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const md_gemm_problem p = {CASES[i].m,
                               CASES[i].n,
                               CASES[i].k,
                               precision,
                               CASES[i].k + CASES[i].padding,
                               CASES[i].n + CASES[i].padding,
                               CASES[i].n + CASES[i].padding,
                               CASES[i].alpha,
                               CASES[i].beta};
    product_is_right(context, device, kernel, variant, &p, CASES[i].offset);
  }
}

/* Runs a property over the device kernels, their variants and precisions. */
static void over_device(md_context *context,
                        void (*property)(md_context *, md_gemm_device *, const md_gemm_kernel *,
                                         int, md_gemm_precision)) {
  md_gemm_device device;
  MD_REQUIRE(context, md_gemm_device_open(context, &device));
  for (int i = 0; md_gemm_kernels()[i]; i++) {
    const md_gemm_kernel *kernel = md_gemm_kernels()[i];
    if (kernel->space != MD_GEMM_DEVICE || kernel->unavailable) continue;
    if (kernel->serves && kernel->serves(context) != MD_OK) continue;
    int variant = 0;
    do
      for (int p = 0; p < MD_GEMM_PRECISIONS; p++)
        if (kernel->precisions & 1u << p)
          property(context, &device, kernel, variant, (md_gemm_precision)p);
    while (kernel->variants && kernel->variants[++variant]);
  }
  md_gemm_device_close(&device);
}

static void device_products_are_right(void **state) {
  over_device(*state, every_layout);
}

/* More tiles than multiprocessors, for the Hopper kernels, whose blocks take tile after tile:
 * copies for a stage must not overtake its last reads, which are late behind stores of odd rows of
 * C. */
static void several_tiles(md_context *context, md_gemm_device *device, const md_gemm_kernel *kernel,
                          int variant, md_gemm_precision precision) {
  if (!kernel->serves) return; /* runs anywhere: a block has one tile */
  static const struct {
    int64_t m, n, k, padding;
  } SIZES[] = {{2047, 2047, 700, 0}, {2047, 2047, 150, 0}, {2047, 2044, 700, 4}};
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
    const int64_t lda = SIZES[i].k + SIZES[i].padding, ld = SIZES[i].n + SIZES[i].padding;
    const md_gemm_problem p = {SIZES[i].m, SIZES[i].n, SIZES[i].k, precision, lda,
                               ld,         ld,         1.0,        0.0};
    for (int repeat = 0; repeat < 2; repeat++)
      product_is_right(context, device, kernel, variant, &p, 0);
  }
}

static void tiles_of_a_block_do_not_mix(void **state) {
  over_device(*state, several_tiles);
}

/* Operands just above the middle of two TF32 numbers must go up; cut off they would go down. What
 * cuBLAS does is its own. */
static void tf32_operands_are_rounded(void **state) {
  enum { SIZE = 40 };
  md_context *context = *state;
  md_gemm_device device;
  MD_REQUIRE(context, md_gemm_device_open(context, &device));
  const md_gemm_problem p = {SIZE, SIZE, SIZE, MD_GEMM_TF32, SIZE, SIZE, SIZE, 1.0, 0.0};
  float host[2][SIZE * SIZE], result[SIZE * SIZE];
  md_gemm_device_matrix x[3];
  for (int i = 0; i < SIZE * SIZE; i++) host[0][i] = 1.0f + 0x1p-11f + 0x1p-20f, host[1][i] = 1.0f;
  for (int i = 0; i < 3; i++)
    MD_REQUIRE(context, md_gemm_device_allocate(context, SIZE, SIZE, 4, false, &x[i]));
  for (int swapped = 0; swapped < 2; swapped++) {
    for (int i = 0; i < 2; i++)
      MD_REQUIRE(context, md_gemm_device_put(context, &x[i], host[i ^ swapped], SIZE));
    for (int i = 0; md_gemm_kernels()[i]; i++) {
      const md_gemm_kernel *kernel = md_gemm_kernels()[i];
      if (kernel->space != MD_GEMM_DEVICE || kernel->unavailable) continue;
      if (kernel->serves && kernel->serves(context) != MD_OK) continue;
      if (!(kernel->precisions & 1u << MD_GEMM_TF32) || strcmp(kernel->name, "cublas") == 0)
        continue;
      const md_gemm_launch launch = {0, 1, device.stream};
      MD_REQUIRE(context, md_gemm(context, kernel, &p, &launch, x[0].data, x[1].data, x[2].data));
      MD_REQUIRE(context, md_gemm_device_get(context, result, SIZE, &x[2]));
      for (int e = 0; e < SIZE * SIZE; e++)
        if (!(result[e] == SIZE * (1.0f + 0x1p-10f)))
          fail_msg("%s: element %d is %.9g", kernel->name, e, (double)result[e]);
    }
  }
  for (int i = 0; i < 3; i++) md_gemm_device_free(&x[i]);
  md_gemm_device_close(&device);
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  md_gemm_device device;
  if (md_gemm_device_open(context, &device) != MD_OK) {
    print_message("skipped: %s\n", context->message);
    md_test_end(context, 0);
    return 77;
  }
  md_gemm_device_close(&device);
  struct CMUnitTest tests[] = {cmocka_unit_test(tf32_operands_are_rounded),
                               cmocka_unit_test(device_products_are_right),
                               cmocka_unit_test(tiles_of_a_block_do_not_mix)};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i].initial_state = context;
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
