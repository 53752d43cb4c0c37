#include "gemm/gemv.h"

static const md_gemv_kernel *const KERNELS[] = {
    &md_gemv_host_naive,   &md_gemv_host_lanes,   &md_gemv_thread_row,
    &md_gemv_two_phase,    &md_gemv_block_serial, &md_gemv_block_atomic,
    &md_gemv_warp_shuffle, &md_gemv_cublas,       NULL,
};

const md_gemv_kernel *const *md_gemv_kernels(void) {
  return KERNELS;
}

/* Sums in double: exact for integers, the reference for floats. */
static md_status naive(md_context *context, const md_gemv_problem *p, void *stream, void *state,
                       const void *a, const void *x, void *y) {
  (void)context, (void)stream, (void)state;
  for (int64_t i = 0; i < p->rows; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < p->columns; j++)
      sum += p->type == MD_SMALL_INTEGER
                 ? (double)((const int32_t *)a)[i * p->columns + j] * ((const int32_t *)x)[j]
                 : (double)((const float *)a)[i * p->columns + j] * ((const float *)x)[j];
    if (p->type == MD_SMALL_INTEGER)
      ((int32_t *)y)[i] = (int32_t)sum;
    else
      ((float *)y)[i] = (float)sum;
  }
  return MD_OK;
}

enum { LANES = 16 };

/* LANES sums side by side, which the compiler may keep in one vector register, then a tree. */
#define ROW_SUM(REAL, NAME)                                                                        \
  static REAL NAME(int64_t columns, const REAL *a, const REAL *x) {                                \
    REAL sum[LANES] = {0};                                                                         \
    int64_t j = 0;                                                                                 \
    for (; j + LANES <= columns; j += LANES)                                                       \
      for (int lane = 0; lane < LANES; lane++) sum[lane] += a[j + lane] * x[j + lane];             \
    for (int lane = 0; j < columns; j++, lane++) sum[lane] += a[j] * x[j];                         \
    for (int half = LANES / 2; half > 0; half /= 2)                                                \
      for (int lane = 0; lane < half; lane++) sum[lane] += sum[lane + half];                       \
    return sum[0];                                                                                 \
  }
ROW_SUM(float, row_sum_float)
ROW_SUM(int32_t, row_sum_integer)

static md_status lanes(md_context *context, const md_gemv_problem *p, void *stream, void *state,
                       const void *a, const void *x, void *y) {
  (void)stream, (void)state;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t i = 0; i < p->rows; i++)
    if (p->type == MD_SMALL_INTEGER)
      ((int32_t *)y)[i] = row_sum_integer(p->columns, (const int32_t *)a + i * p->columns, x);
    else
      ((float *)y)[i] = row_sum_float(p->columns, (const float *)a + i * p->columns, x);
  return MD_OK;
}

const md_gemv_kernel md_gemv_host_naive = {
    .name = "host_naive",
    .idea = "the definition with double sums: the reference",
    .space = MD_GEMM_HOST,
    .types = 1u << MD_SMALL_INTEGER | 1u << MD_SMALL_SINGLE,
    .run = naive,
};
const md_gemv_kernel md_gemv_host_lanes = {
    .name = "host_lanes",
    .idea = "16 sums side by side in a vector register, threads over rows",
    .space = MD_GEMM_HOST,
    .types = 1u << MD_SMALL_INTEGER | 1u << MD_SMALL_SINGLE,
    .run = lanes,
};
