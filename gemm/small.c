#include "gemm/small.h"

#if !MINIDIRAC_HAVE_CUDA
#define MD_ROW(work, kernel)                                                                       \
  const md_small_kernel md_##work##_##kernel = {.name = #kernel,                                   \
                                                .space = MD_GEMM_DEVICE,                           \
                                                .types = MD_SMALL_BOTH,                            \
                                                .unavailable = MD_GEMM_NO_CUDA};
#define MD_HERE(work, kernel)
MD_SMALL_TABLE(MD_HERE, MD_ROW)
#undef MD_HERE
#undef MD_ROW
#endif

#define MD_ROW(work, kernel) &md_##work##_##kernel,
static const md_small_kernel *const TRANSPOSES[] = {MD_TRANSPOSES(MD_ROW, MD_ROW) NULL};
static const md_small_kernel *const SHIFTS[] = {MD_SHIFTS(MD_ROW, MD_ROW) NULL};
static const md_small_kernel *const GEMVS[] = {MD_GEMVS(MD_ROW, MD_ROW) NULL};
#undef MD_ROW

const md_small_kernel *const *md_small_kernels(md_small_work work) {
  return work == MD_SMALL_TRANSPOSE ? TRANSPOSES : work == MD_SMALL_SHIFT ? SHIFTS : GEMVS;
}

/* Elements are carried as they are, whatever their type. */
static md_status transpose_naive(md_context *context, const md_small_call *call) {
  const md_small_problem *p = call->problem;
  const uint32_t *from = call->in;
  uint32_t *to = call->out;
  (void)context;
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t j = 0; j < p->columns; j++) to[j * p->rows + i] = from[i * p->columns + j];
  return MD_OK;
}

/* Where a tile from `begin` ends in a matrix of `extent`. */
static int64_t tile_end(int64_t begin, int tile, int64_t extent) {
  return begin + tile < extent ? begin + tile : extent;
}

static md_status transpose_tile(md_context *context, const md_small_call *call) {
  const md_small_problem *p = call->problem;
  const uint32_t *from = call->in;
  uint32_t *to = call->out;
#pragma omp parallel for collapse(2) schedule(static) num_threads(context->threads)
  for (int64_t i0 = 0; i0 < p->rows; i0 += p->block_y)
    for (int64_t j0 = 0; j0 < p->columns; j0 += p->block_x)
      for (int64_t j = j0; j < tile_end(j0, p->block_x, p->columns); j++)
        for (int64_t i = i0; i < tile_end(i0, p->block_y, p->rows); i++)
          to[j * p->rows + i] = from[i * p->columns + j];
  return MD_OK;
}

/* Threads over tiles of the block shape. */
static md_status shift(md_context *context, const md_small_call *call) {
  const md_small_problem *p = call->problem;
#pragma omp parallel for collapse(2) schedule(static) num_threads(context->threads)
  for (int64_t y0 = 0; y0 < p->rows; y0 += p->block_y)
    for (int64_t x0 = 0; x0 < p->columns; x0 += p->block_x)
      for (int64_t y = y0; y < tile_end(y0, p->block_y, p->rows); y++) {
        const int64_t end = tile_end(x0, p->block_x, p->columns);
        const int32_t *integer = (const int32_t *)call->in + y * p->in_ld;
        const float *single = (const float *)call->in + y * p->in_ld;
        if (p->type == MD_SMALL_INTEGER)
          for (int64_t x = x0; x < end; x++)
            ((int32_t *)call->out)[y * p->out_ld + x] = integer[x] + integer[x + MD_SHIFT];
        else
          for (int64_t x = x0; x < end; x++)
            ((float *)call->out)[y * p->out_ld + x] = single[x] + single[x + MD_SHIFT];
      }
  return MD_OK;
}

/* Sums in double: exact for integers, the reference for floats. */
static md_status multiply_naive(md_context *context, const md_small_call *call) {
  const md_small_problem *p = call->problem;
  const void *a = call->in, *x = call->x;
  (void)context;
  for (int64_t i = 0; i < p->rows; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < p->columns; j++)
      sum += p->type == MD_SMALL_INTEGER
                 ? (double)((const int32_t *)a)[i * p->columns + j] * ((const int32_t *)x)[j]
                 : (double)((const float *)a)[i * p->columns + j] * ((const float *)x)[j];
    if (p->type == MD_SMALL_INTEGER)
      ((int32_t *)call->out)[i] = (int32_t)sum;
    else
      ((float *)call->out)[i] = (float)sum;
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

static md_status multiply_lanes(md_context *context, const md_small_call *call) {
  const md_small_problem *p = call->problem;
  const void *a = call->in, *x = call->x;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t i = 0; i < p->rows; i++)
    if (p->type == MD_SMALL_INTEGER)
      ((int32_t *)call->out)[i] =
          row_sum_integer(p->columns, (const int32_t *)a + i * p->columns, x);
    else
      ((float *)call->out)[i] = row_sum_float(p->columns, (const float *)a + i * p->columns, x);
  return MD_OK;
}

#define HOST(variable, name_, run_)                                                                \
  const md_small_kernel variable = {                                                               \
      .name = name_, .space = MD_GEMM_HOST, .types = MD_SMALL_BOTH, .run = run_}
HOST(md_transpose_host_naive, "host_naive", transpose_naive);
HOST(md_transpose_host_tile, "host_tile", transpose_tile);
HOST(md_shift_host, "host", shift);
HOST(md_gemv_host_naive, "host_naive", multiply_naive);
HOST(md_gemv_host_lanes, "host_lanes", multiply_lanes);

enum { WARP = 32, SECTOR_ELEMENTS = 32 / MD_SMALL_BYTES };

/* Sectors of one row of `length` elements that starts `offset` elements behind a boundary. */
static int sectors_of_row(int offset, int length) {
  return (offset + length + SECTOR_ELEMENTS - 1) / SECTOR_ELEMENTS - offset / SECTOR_ELEMENTS;
}

md_shift_sectors md_shift_warp_sectors(int block_x, int block_y) {
  md_shift_sectors sectors = {0, 0, 0};
  int threads = block_x * block_y;
  if (threads > WARP) threads = WARP;
  for (int left = threads; left > 0; left -= block_x) {
    const int length = left < block_x ? left : block_x;
    sectors.load += sectors_of_row(0, length);
    sectors.load_shifted += sectors_of_row(MD_SHIFT, length);
  }
  sectors.store = sectors.load;
  return sectors;
}
