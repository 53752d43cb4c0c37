/* Template of transpose.c: ELEMENT and NAME(x) are set by the includer. */

static void NAME(naive)(const md_transpose_problem *p, const ELEMENT *in, ELEMENT *out) {
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t j = 0; j < p->columns; j++) out[j * p->rows + i] = in[i * p->columns + j];
}

static void NAME(tile)(const md_transpose_problem *p, int threads, const ELEMENT *in,
                       ELEMENT *out) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads)
  for (int64_t i0 = 0; i0 < p->rows; i0 += p->block_y)
    for (int64_t j0 = 0; j0 < p->columns; j0 += p->block_x)
      for (int64_t j = j0; j < md_small_tile_end(j0, p->block_x, p->columns); j++)
        for (int64_t i = i0; i < md_small_tile_end(i0, p->block_y, p->rows); i++)
          out[j * p->rows + i] = in[i * p->columns + j];
}
