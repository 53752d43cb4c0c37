/* The judge itself: the rounding bound accepts what rounding does and sees one wrong element; the
 * test matrices are functions of global indices; sampled rows. */
#include "fill.h"
#include "support.h"

#include <math.h>
#include <string.h>

enum { M = 9, N = 11, K = 40 };
static const md_gemm_problem PROBLEM = {M, N, K, MD_GEMM_SINGLE, K, N, N, 1.5, -0.5};

static float a[M * K], b[K * N], c0[M * N], c[M * N];

static void fill(void) {
  fill_whole(1, MD_GEMM_A, MD_GEMM_SINGLE, M, K, a, K);
  fill_whole(1, MD_GEMM_B, MD_GEMM_SINGLE, K, N, b, N);
  fill_whole(1, MD_GEMM_C, MD_GEMM_SINGLE, M, N, c0, N);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      long double sum = 0.0L;
      for (int l = 0; l < K; l++) sum += (long double)a[i * K + l] * b[l * N + j];
      c[i * N + j] = (float)(1.5L * sum - 0.5L * c0[i * N + j]);
    }
}

static md_gemm_error judge(md_context *context) {
  md_gemm_row_sums sums[M] = {0};
  int64_t rows[M];
  assert_int_equal(md_gemm_sample_rows(M, M, rows), M);
  MD_REQUIRE(context, md_gemm_verify_rows(context, &PROBLEM, a, b, c0, c, rows, M, sums));
  return md_gemm_error_of(sums, M);
}

static void rounding_passes(void **state) {
  fill();
  const md_gemm_error error = judge(*state);
  md_require_at_most(error.relative_error, 0x1p-24, "relative error of rounded results");
  md_require_at_most(error.excess, 1.0, "excess of rounded results");
  md_require_at_most(0x1p-24, error.relative_bound, "bound");
}

static void one_wrong_element_is_seen(void **state) {
  for (int at = 0; at < M * N; at++) {
    fill();
    c[at] += 1e-3f;
    assert_true(judge(*state).excess > 1.0);
  }
}

/* gamma_(K+2) (|alpha| |A| |B| + |beta| |C|), gamma_n = n u / (1 - n u), u = 2^-24: an element that
 * is wrong by a multiple of that is judged to be. Rounding of c itself is 1/(K+2) of the bound. */
static void bound_is_the_definition(void **state) {
  const double gamma = (K + 2) * 0x1p-24 / (1.0 - (K + 2) * 0x1p-24);
  for (int at = 0; at < M * N; at++) {
    double modulus = 0.5 * fabs(c0[at]);
    for (int l = 0; l < K; l++)
      modulus += 1.5 * fabs((double)a[at / N * K + l] * b[l * N + at % N]);
    for (int k = 1; k <= 3; k++) {
      fill();
      c[at] = (float)(c[at] + 0.5 * k * gamma * modulus);
      md_require_at_most(fabs(judge(*state).excess - 0.5 * k), 2.0 / (K + 2), "excess");
    }
  }
}

/* Half a unit of the least number for each operation, where gamma alone allows less than one. */
static void underflow_passes(void **state) {
  md_gemm_problem tiny = PROBLEM;
  tiny.k = 2, tiny.alpha = 0x1p-126, tiny.beta = 0.0;
  int64_t rows[M];
  md_gemm_sample_rows(M, M, rows);
  for (int wrong = 0; wrong < 2; wrong++) {
    md_gemm_row_sums sums[M] = {0};
    fill();
    for (int i = 0; i < M * N; i++) {
      const float *x = a + i / N * K, *y = b + i % N, factor = 0x1p-126f;
      c[i] = factor * x[0] * y[0] + factor * x[1] * y[N] + (float)wrong * 0x1p-145f;
    }
    MD_REQUIRE(*state, md_gemm_verify_rows(*state, &tiny, a, b, c0, c, rows, M, sums));
    assert_int_equal(md_gemm_error_of(sums, M).excess > 1.0, wrong);
  }
}

static void not_a_number_is_seen(void **state) {
  fill();
  c[3 * N + 4] = NAN;
  const md_gemm_error error = judge(*state);
  assert_true(isnan(error.excess));
  assert_false(error.relative_error <= 1.0);
}

/* Columns that are checked later must not hide it. */
static void not_a_number_stays(void **state) {
  md_gemm_row_sums sums[M] = {0};
  int64_t rows[M];
  md_gemm_problem half = PROBLEM;
  half.n = 5;
  fill();
  c[2] = NAN;
  md_gemm_sample_rows(M, M, rows);
  MD_REQUIRE(*state, md_gemm_verify_rows(*state, &half, a, b, c0, c, rows, M, sums));
  MD_REQUIRE(*state, md_gemm_verify_rows(*state, &half, a, b + 5, c0 + 5, c + 5, rows, M, sums));
  assert_true(isnan(md_gemm_error_of(sums, M).excess));
  assert_true(isnan(md_gemm_error_of(sums, M).relative_error));
}

static void parts_of_a_matrix_agree_with_the_whole(void **state) {
  (void)state;
  enum { ROWS = 13, COLUMNS = 17 };
  static double whole[ROWS * COLUMNS], part[ROWS * COLUMNS];
  fill_whole(5, MD_GEMM_A, MD_GEMM_DOUBLE, ROWS, COLUMNS, whole, COLUMNS);
  const md_gemm_subset rows = {2, 3, 1, 0}, columns = {3, 2, 1, 1};
  md_gemm_fill(5, MD_GEMM_A, MD_GEMM_DOUBLE, 4, 5, &rows, &columns, part, 6);
  const int row[4] = {2, 3, 8, 9}, column[5] = {4, 5, 9, 10, 11};
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 5; j++) assert_true(part[i * 6 + j] == whole[row[i] * COLUMNS + column[j]]);
  double sum = 0.0;
  for (int i = 0; i < ROWS * COLUMNS; i++) sum += whole[i];
  md_require_at_most(fabs(sum) / (ROWS * COLUMNS), 0.15, "mean of the matrix");
}

static void matrices_of_a_seed_differ(void **state) {
  (void)state;
  double x[4], y[4], z[4];
  fill_whole(5, MD_GEMM_A, MD_GEMM_DOUBLE, 2, 2, x, 2);
  fill_whole(5, MD_GEMM_B, MD_GEMM_DOUBLE, 2, 2, y, 2);
  fill_whole(6, MD_GEMM_A, MD_GEMM_DOUBLE, 2, 2, z, 2);
  assert_memory_not_equal(x, y, sizeof x);
  assert_memory_not_equal(x, z, sizeof x);
}

static void sampled_rows_hold_the_ends(void **state) {
  (void)state;
  int64_t rows[16];
  assert_int_equal(md_gemm_sample_rows(1000, 16, rows), 16);
  assert_int_equal(rows[0], 0);
  assert_int_equal(rows[15], 999);
  for (int s = 1; s < 16; s++) assert_true(rows[s] > rows[s - 1]);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(rounding_passes),
    cmocka_unit_test(one_wrong_element_is_seen),
    cmocka_unit_test(bound_is_the_definition),
    cmocka_unit_test(underflow_passes),
    cmocka_unit_test(not_a_number_is_seen),
    cmocka_unit_test(not_a_number_stays),
    cmocka_unit_test(parts_of_a_matrix_agree_with_the_whole),
    cmocka_unit_test(matrices_of_a_seed_differ),
    cmocka_unit_test(sampled_rows_hold_the_ends),
};

MD_RUN_TESTS(tests)
