#include "gemm/shift.h"

static const md_shift_kernel *const KERNELS[] = {
    &md_shift_host,
    &md_shift_direct,
    &md_shift_shared,
    NULL,
};

const md_shift_kernel *const *md_shift_kernels(void) {
  return KERNELS;
}

#define ELEMENT int32_t
#define NAME(name) name##_integer
#include "gemm/shift.inc.h"
#undef ELEMENT
#undef NAME
#define ELEMENT float
#define NAME(name) name##_single
#include "gemm/shift.inc.h"

static md_status host(md_context *context, const md_shift_problem *p, const void *in, void *out,
                      void *stream) {
  (void)stream;
  if (p->type == MD_SMALL_INTEGER)
    shift_integer(p, context->threads, in, out);
  else
    shift_single(p, context->threads, in, out);
  return MD_OK;
}

const md_shift_kernel md_shift_host = {
    .name = "host",
    .idea = "the definition, in tiles of the block shape, threads over tiles",
    .space = MD_GEMM_HOST,
    .run = host,
};

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
