#include "gemm/transpose.h"

static const md_transpose_kernel *const KERNELS[] = {
    &md_transpose_host_naive, &md_transpose_host_tile, &md_transpose_naive,
    &md_transpose_tile,       &md_transpose_padded,    NULL,
};

const md_transpose_kernel *const *md_transpose_kernels(void) {
  return KERNELS;
}

#define ELEMENT int32_t
#define NAME(name) name##_integer
#include "gemm/transpose.inc.h"
#undef ELEMENT
#undef NAME
#define ELEMENT float
#define NAME(name) name##_single
#include "gemm/transpose.inc.h"

static md_status naive(md_context *context, const md_transpose_problem *p, const void *in,
                       void *out, void *stream) {
  (void)context, (void)stream;
  if (p->type == MD_SMALL_INTEGER)
    naive_integer(p, in, out);
  else
    naive_single(p, in, out);
  return MD_OK;
}

static md_status tile(md_context *context, const md_transpose_problem *p, const void *in, void *out,
                      void *stream) {
  (void)stream;
  if (p->type == MD_SMALL_INTEGER)
    tile_integer(p, context->threads, in, out);
  else
    tile_single(p, context->threads, in, out);
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
