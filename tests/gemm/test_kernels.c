/* Every kernel of the table that this build and machine have, in every precision that it takes,
 * against the definition: odd shapes, alpha and beta, leading dimensions. */
#include "fill.h"
#include "gemm/local.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct subject {
  md_context *context;
  const md_gemm_kernel *kernel;
  md_gemm_launch launch;
  md_gemm_place place;
} subject;

static const uint64_t SEED = 987654;

static void *make(int64_t elements, size_t element_bytes) {
  void *memory = malloc((size_t)elements * element_bytes + 1);
  assert_non_null(memory);
  memset(memory, 0xff, (size_t)elements * element_bytes); /* NaN in every type */
  return memory;
}

/* One product with guarded rows: what stands behind a row's end must still be there, and NaN there
 * must not get into the result. */
static void product_is_right(const subject *s, md_gemm_problem p) {
  const size_t in = md_gemm_input_bytes(p.precision), out = md_gemm_output_bytes(p.precision);
  void *a = make(p.m * p.lda, in), *b = make(p.k * p.ldb, in);
  void *c = make(p.m * p.ldc, out), *c0 = make(p.m * p.ldc, out);
  fill_whole(SEED, MD_GEMM_A, p.precision, p.m, p.k, a, p.lda);
  fill_whole(SEED, MD_GEMM_B, p.precision, p.k, p.n, b, p.ldb);
  if (p.beta != 0.0) fill_whole(SEED, MD_GEMM_C, md_gemm_output(p.precision), p.m, p.n, c0, p.ldc);
  memcpy(c, c0, (size_t)(p.m * p.ldc) * out);
  md_gemm_local local;
  md_gemm_times times;
  MD_REQUIRE(s->context,
             md_gemm_local_open(s->context, s->kernel, &p, &s->launch, &s->place, &local));
  MD_REQUIRE(s->context, md_gemm_local_run(s->context, &local, &p, a, b, c, &times));
  md_gemm_local_close(&local);

  md_gemm_row_sums *sums = calloc((size_t)p.m, sizeof *sums);
  int64_t *rows = calloc((size_t)p.m, sizeof *rows);
  md_gemm_sample_rows(p.m, p.m, rows);
  MD_REQUIRE(s->context, md_gemm_verify_rows(s->context, &p, a, b, c0, c, rows, p.m, sums));
  const double excess = md_gemm_error_of(sums, p.m).excess;
  if (!(excess <= 1.0))
    fail_msg("%s variant %d %s %lldx%lldx%lld alpha %g beta %g: %g times the bound",
             s->kernel->name, s->launch.variant, md_gemm_precision_name(p.precision),
             (long long)p.m, (long long)p.n, (long long)p.k, p.alpha, p.beta, excess);
  for (int64_t i = 0; i < p.m; i++)
    for (size_t byte = (size_t)(i * p.ldc + p.n) * out; byte < (size_t)((i + 1) * p.ldc) * out;
         byte++)
      assert_int_equal(((unsigned char *)c)[byte], 0xff);
  free(a), free(b), free(c), free(c0), free(sums), free(rows);
}

static void shapes(const subject *s, md_gemm_precision precision) {
  static const int64_t SIZES[][3] = {
      {1, 1, 1},    {1, 1, 257},   {1, 37, 1},     {41, 1, 1},   {2, 3, 5},       {7, 1, 300},
      {1, 129, 64}, {17, 19, 23},  {16, 16, 16},   {64, 64, 64}, {127, 129, 131}, {61, 67, 521},
      {128, 32, 8}, {33, 130, 15}, {130, 257, 48}, {7, 2100, 5}, {3, 4097, 260}};
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
    const int64_t *z = SIZES[i];
    product_is_right(s, (md_gemm_problem){z[0], z[1], z[2], precision, z[2], z[1], z[1], 1.0, 0.0});
  }
}

static void factors_and_strides(const subject *s, md_gemm_precision precision) {
  static const double FACTORS[][2] = {
      {0.5, 2.0}, {-1.25, 1.0}, {0.0, 0.5}, {1.0, -0.75}, {2.0, 0.0}};
  for (size_t f = 0; f < sizeof FACTORS / sizeof *FACTORS; f++) {
    product_is_right(
        s, (md_gemm_problem){35, 46, 57, precision, 57, 46, 46, FACTORS[f][0], FACTORS[f][1]});
    product_is_right(
        s, (md_gemm_problem){35, 46, 57, precision, 60, 53, 49, FACTORS[f][0], FACTORS[f][1]});
  }
}

/* Runs a property over the table; the device's kernels where there is one. */
static void over_table(md_context *context, void (*property)(const subject *, md_gemm_precision)) {
  md_gemm_device device;
  const bool has_device = md_gemm_device_open(context, &device) == MD_OK;
  int covered = 0;
  for (int i = 0; md_gemm_kernels()[i]; i++) {
    const md_gemm_kernel *kernel = md_gemm_kernels()[i];
    if (kernel->unavailable || (kernel->space == MD_GEMM_DEVICE && !has_device)) continue;
    if (kernel->serves && kernel->serves(context) != MD_OK) continue;
    subject s = {context, kernel, {0, 2, NULL}, {has_device ? &device : NULL, false}};
    do {
      for (int p = 0; p < MD_GEMM_PRECISIONS; p++)
        if (kernel->precisions & 1u << p) property(&s, (md_gemm_precision)p);
      s.place.pitched = !s.place.pitched;
      covered++;
    } while (kernel->variants && kernel->variants[++s.launch.variant]);
  }
  if (has_device) md_gemm_device_close(&device);
  assert_true(covered >= 2);
}

/* What each kernel must take where it is in the build: over_table passes over what it refuses. */
static void every_kernel_takes_what_it_promises(void **state) {
  enum { D = 1u << MD_GEMM_DOUBLE, S = 1u << MD_GEMM_SINGLE, ALL = (1u << MD_GEMM_PRECISIONS) - 1 };
  enum { TENSOR = ALL & ~(D | S) };
  static const struct {
    const char *name;
    unsigned precisions;
  } promises[] = {{"naive", ALL},
                  {"cpu_tiled", D | S},
                  {"openblas", D | S},
                  {"k0", D | S},
                  {"k1", D | S},
                  {"k2", D | S},
                  {"k3", S},
                  {"k4", S},
                  {"k5", S},
                  {"k6", S},
                  {"k7", S},
                  {"wmma_simple", TENSOR},
                  {"wmma_tiled", TENSOR},
                  {"wgmma", TENSOR},
                  {"dmma", D},
                  {"cublas", ALL}};
  enum { KERNELS = sizeof promises / sizeof *promises };
  (void)state;
  for (int i = 0; i < KERNELS; i++) {
    const md_gemm_kernel *kernel = md_gemm_kernels()[i];
    assert_non_null(kernel);
    assert_string_equal(kernel->name, promises[i].name);
    if (!kernel->unavailable) assert_int_equal(kernel->precisions, promises[i].precisions);
  }
  assert_null(md_gemm_kernels()[KERNELS]);
}

static void every_shape(void **state) {
  over_table(*state, shapes);
}
static void every_factor_and_stride(void **state) {
  over_table(*state, factors_and_strides);
}

/* cpu_tiled is the sequential reference: bits must not depend on threads or on the sub-block. */
static void tiled_bits_do_not_move(void **state) {
  enum { M = 150, N = 70, K = 601 };
  md_context *context = *state;
  const md_gemm_kernel *kernel;
  int variant;
  MD_REQUIRE(context, md_gemm_find(context, "cpu_tiled", &kernel, &variant));
  for (int p = MD_GEMM_DOUBLE; p <= MD_GEMM_SINGLE; p++) {
    const size_t element = md_gemm_input_bytes((md_gemm_precision)p);
    char *a = make(M * K, element), *b = make(K * N, element);
    char *one = make(M * N, element), *other = make(M * N, element);
    fill_whole(SEED, MD_GEMM_A, (md_gemm_precision)p, M, K, a, K);
    fill_whole(SEED, MD_GEMM_B, (md_gemm_precision)p, K, N, b, N);
    const md_gemm_launch alone = {0, 1, NULL}, threads = {0, 3, NULL};
    md_gemm_problem whole = {M, N, K, (md_gemm_precision)p, K, N, N, 1.1, 0.0};
    MD_REQUIRE(context, md_gemm(context, kernel, &whole, &alone, a, b, one));
    MD_REQUIRE(context, md_gemm(context, kernel, &whole, &threads, a, b, other));
    assert_memory_equal(one, other, M * N * element);
    memset(other, 0, M * N * element);
    for (int i = 0; i < M; i += 29)
      for (int j = 0; j < N; j += 23) {
        md_gemm_problem part = whole;
        part.m = M - i < 29 ? M - i : 29;
        part.n = N - j < 23 ? N - j : 23;
        MD_REQUIRE(context,
                   md_gemm(context, kernel, &part, &alone, a + (size_t)(i * K) * element,
                           b + (size_t)j * element, other + (size_t)(i * N + j) * element));
      }
    assert_memory_equal(one, other, M * N * element);
    free(a), free(b), free(one), free(other);
  }
}

static void refused(md_context *context, md_gemm_problem p, const char *name, md_status expected,
                    const char *words) {
  const md_gemm_kernel *kernel = NULL;
  int variant = 0;
  md_status status = md_gemm_find(context, name, &kernel, &variant);
  const md_gemm_launch launch = {variant, 1, NULL};
  if (status == MD_OK) status = md_gemm(context, kernel, &p, &launch, NULL, NULL, NULL);
  assert_int_equal(status, expected);
  if (!strstr(context->message, words)) fail_msg("'%s' lacks '%s'", context->message, words);
}

static void bad_input_is_refused(void **state) {
  const md_gemm_problem good = {2, 3, 4, MD_GEMM_SINGLE, 4, 3, 3, 1.0, 0.0};
  md_gemm_problem p = good;
  p.m = 0;
  refused(*state, p, "naive", MD_INPUT, "at least 1, got 0x3x4");
  p = good, p.k = -7;
  refused(*state, p, "naive", MD_INPUT, "got 2x3x-7");
  p = good, p.lda = 3;
  refused(*state, p, "naive", MD_INPUT, "leading dimension of A");
  p = good, p.ldc = 2;
  refused(*state, p, "cpu_tiled", MD_INPUT, "leading dimension of C");
  p = good, p.m = p.k = p.lda = (int64_t)1 << 32;
  refused(*state, p, "naive", MD_INPUT, "more bytes");
  p = good, p.precision = MD_GEMM_BF16;
  refused(*state, p, "cpu_tiled", MD_INPUT, "takes inputs in double, single, not bf16");
  refused(*state, good, "fastest", MD_INPUT, "must be one of naive, cpu_tiled");
  refused(*state, good, "naive:8x8", MD_INPUT, "no variant '8x8'");
}

static void what_is_missing_says_how_to_get_it(void **state) {
  md_context *context = *state;
  for (int i = 0; md_gemm_kernels()[i]; i++) {
    const md_gemm_kernel *kernel = md_gemm_kernels()[i];
    assert_true(kernel->precisions != 0);
    if (!kernel->unavailable) continue;
    assert_int_equal(md_gemm_kernel_check(context, kernel, MD_GEMM_SINGLE), MD_ENVIRONMENT);
    assert_non_null(strstr(context->message, "not available"));
    assert_non_null(strstr(context->message, "configure"));
  }
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(every_kernel_takes_what_it_promises),
    cmocka_unit_test(every_shape),
    cmocka_unit_test(every_factor_and_stride),
    cmocka_unit_test(tiled_bits_do_not_move),
    cmocka_unit_test(bad_input_is_refused),
    cmocka_unit_test(what_is_missing_says_how_to_get_it),
};

MD_RUN_TESTS(tests)
