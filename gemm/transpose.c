#include "gemm/transpose.h"

static const md_transpose_kernel *const KERNELS[] = {
    &md_transpose_host_naive, &md_transpose_host_tile, &md_transpose_naive,
    &md_transpose_tile,       &md_transpose_padded,    NULL,
};

const md_transpose_kernel *const *md_transpose_kernels(void) {
  return KERNELS;
}

static md_status naive(md_context *context, const md_transpose_problem *p, const float *in,
                       float *out, void *stream) {
  (void)context, (void)stream;
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t j = 0; j < p->columns; j++) out[j * p->rows + i] = in[i * p->columns + j];
  return MD_OK;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static md_status tile(md_context *context, const md_transpose_problem *p, const float *in,
                      float *out, void *stream) {
  (void)stream;
#pragma omp parallel for collapse(2) schedule(static) num_threads(context->threads)
  for (int64_t i0 = 0; i0 < p->rows; i0 += p->block_y)
    for (int64_t j0 = 0; j0 < p->columns; j0 += p->block_x)
      for (int64_t j = j0; j < least(j0 + p->block_x, p->columns); j++)
        for (int64_t i = i0; i < least(i0 + p->block_y, p->rows); i++)
          out[j * p->rows + i] = in[i * p->columns + j];
  return MD_OK;
}

const md_transpose_kernel md_transpose_host_naive = {
    .name = "host_naive",
    .idea = "reads along rows, writes along columns: the reference",
    .space = MD_GEMM_HOST,
    .run = naive,
};
const md_transpose_kernel md_transpose_host_tile = {
    .name = "host_tile",
    .idea = "tiles whose lines of both matrices stay in cache, threads over tiles",
    .space = MD_GEMM_HOST,
    .run = tile,
};
