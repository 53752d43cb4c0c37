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

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static md_status host(md_context *context, const md_shift_problem *p, const float *in, float *out,
                      void *stream) {
  (void)stream;
#pragma omp parallel for collapse(2) schedule(static) num_threads(context->threads)
  for (int64_t y0 = 0; y0 < p->height; y0 += p->block_y)
    for (int64_t x0 = 0; x0 < p->width; x0 += p->block_x)
      for (int64_t y = y0; y < least(y0 + p->block_y, p->height); y++)
        for (int64_t x = x0; x < least(x0 + p->block_x, p->width); x++)
          out[y * p->out_ld + x] = in[y * p->in_ld + x] + in[y * p->in_ld + x + MD_SHIFT];
  return MD_OK;
}

const md_shift_kernel md_shift_host = {
    .name = "host",
    .idea = "the definition, in tiles of the block shape, threads over tiles",
    .space = MD_GEMM_HOST,
    .run = host,
};

enum { WARP = 32, SECTOR_FLOATS = 8 };

/* Sectors of one row of `length` floats that starts `offset` floats behind a boundary. */
static int sectors_of_row(int offset, int length) {
  return (offset + length + SECTOR_FLOATS - 1) / SECTOR_FLOATS - offset / SECTOR_FLOATS;
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
