/* Template of cpu_tiled.c: REAL and NAME(x) are set by the includer. */

typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
enum { NAME(LANES) = VECTOR_BYTES / sizeof(REAL) };

/* tile (TILE_ROWS x LANES) <- sum over l of a[l][row] * b[l][lane], both packed and aligned. */
CLONES static void NAME(tile_product)(int64_t depth, const REAL *a, const REAL *b, REAL *tile) {
  const NAME(vector) *lanes = (const NAME(vector) *)b;
  NAME(vector) sum[TILE_ROWS] = {0};
  for (int64_t l = 0; l < depth; l++, a += TILE_ROWS)
    for (int r = 0; r < TILE_ROWS; r++) sum[r] += a[r] * lanes[l];
  for (int r = 0; r < TILE_ROWS; r++) ((NAME(vector) *)tile)[r] = sum[r];
}

/* panel[tile][l][row] <- a[row of the tile][l], zeros behind `rows`. */
static void NAME(pack_a)(int64_t rows, int64_t depth, const REAL *a, int64_t lda, REAL *panel) {
  for (int64_t i = 0; i < rows; i += TILE_ROWS, panel += TILE_ROWS * depth)
    for (int64_t r = 0; r < TILE_ROWS; r++)
      for (int64_t l = 0; l < depth; l++)
        panel[l * TILE_ROWS + r] = i + r < rows ? a[(i + r) * lda + l] : 0;
}

/* panel[l][lane] of the tile that starts at column b, zeros behind `columns`. */
static void NAME(pack_b)(int64_t columns, int64_t depth, const REAL *b, int64_t ldb, REAL *panel) {
  const int64_t filled = columns < NAME(LANES) ? columns : NAME(LANES);
  for (int64_t l = 0; l < depth; l++, panel += NAME(LANES)) {
    for (int64_t lane = 0; lane < filled; lane++) panel[lane] = b[l * ldb + lane];
    for (int64_t lane = filled; lane < NAME(LANES); lane++) panel[lane] = 0;
  }
}

/* c <- alpha tile + beta c on the part of the tile that exists. */
static void NAME(store_tile)(int64_t rows, int64_t columns, REAL alpha, const REAL *tile, REAL beta,
                             REAL *c, int64_t ldc) {
  for (int64_t r = 0; r < rows && r < TILE_ROWS; r++)
    for (int64_t lane = 0; lane < columns && lane < NAME(LANES); lane++) {
      const REAL scaled = alpha * tile[r * NAME(LANES) + lane];
      c[r * ldc + lane] = beta == 0 ? scaled : scaled + beta * c[r * ldc + lane];
    }
}

static void NAME(product)(const md_gemm_problem *p, int threads, const REAL *a, const REAL *b,
                          REAL *c, REAL *a_panels, REAL *b_panel) {
  const int64_t width = NAME(LANES);
  for (int64_t j0 = 0; j0 < p->n; j0 += PANEL_COLUMNS)
    for (int64_t l0 = 0; l0 < p->k; l0 += DEPTH) {
      const int64_t columns = p->n - j0 < PANEL_COLUMNS ? p->n - j0 : PANEL_COLUMNS;
      const int64_t depth = p->k - l0 < DEPTH ? p->k - l0 : DEPTH;
      const REAL beta = l0 == 0 ? (REAL)p->beta : 1;
#pragma omp parallel num_threads(threads)
      {
        REAL *a_panel = a_panels + (int64_t)omp_get_thread_num() * (depth * PANEL_ROWS);
#pragma omp for schedule(static)
        for (int64_t j = 0; j < columns; j += width)
          NAME(pack_b)(columns - j, depth, b + l0 * p->ldb + j0 + j, p->ldb, b_panel + j * depth);
#pragma omp for schedule(dynamic)
        for (int64_t i0 = 0; i0 < p->m; i0 += PANEL_ROWS) {
          const int64_t rows = p->m - i0 < PANEL_ROWS ? p->m - i0 : PANEL_ROWS;
          NAME(pack_a)(rows, depth, a + i0 * p->lda + l0, p->lda, a_panel);
          for (int64_t j = 0; j < columns; j += width)
            for (int64_t i = 0; i < rows; i += TILE_ROWS) {
              _Alignas(VECTOR_BYTES) REAL tile[TILE_ROWS * NAME(LANES)];
              NAME(tile_product)(depth, a_panel + i * depth, b_panel + j * depth, tile);
              NAME(store_tile)
              (rows - i, columns - j, (REAL)p->alpha, tile, beta, c + (i0 + i) * p->ldc + j0 + j,
               p->ldc);
            }
        }
      }
    }
}
