/* Template of shift.c: ELEMENT and NAME(x) are set by the includer. */

static void NAME(shift)(const md_shift_problem *p, int threads, const ELEMENT *in, ELEMENT *out) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads)
  for (int64_t y0 = 0; y0 < p->height; y0 += p->block_y)
    for (int64_t x0 = 0; x0 < p->width; x0 += p->block_x)
      for (int64_t y = y0; y < md_small_tile_end(y0, p->block_y, p->height); y++)
        for (int64_t x = x0; x < md_small_tile_end(x0, p->block_x, p->width); x++)
          out[y * p->out_ld + x] = in[y * p->in_ld + x] + in[y * p->in_ld + x + MD_SHIFT];
}
