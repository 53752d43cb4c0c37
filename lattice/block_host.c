#include "lattice/block_space.h"
#include "lattice/sum.h"

#include <stdlib.h>
#include <string.h>

enum { COLOURS = 3, MOST = 2 * MD_MAX_BLOCK, CORNERS = 8 };

/* Of every thread a cell's sums and the exact sums of all its cells, [thread][real]. */
typedef struct host_block {
  int n, threads;
  double *cell;
  md_sum *sums[MD_BLOCK_SLOTS];
} host_block;

static void destroy(void *state) {
  host_block *b = state;
  for (int slot = 0; slot < MD_BLOCK_SLOTS; slot++) free(b->sums[slot]);
  free(b->cell);
  free(b);
}

static md_status create(md_context *context, const md_geometry *geometry, int n, void **state) {
  (void)geometry;
  host_block *b = calloc(1, sizeof *b);
  *state = b;
  if (!b) return md_fail_memory(context, sizeof *b, "block operations");
  b->n = n;
  b->threads = context->threads;
  const size_t entries = 2 * (size_t)n * (size_t)n * (size_t)b->threads;
  b->cell = calloc(entries, sizeof *b->cell);
  for (int slot = 0; slot < MD_BLOCK_SLOTS; slot++) {
    b->sums[slot] = calloc(entries, sizeof *b->sums[slot]);
    if (!b->sums[slot] || !b->cell)
      return md_fail_memory(context, entries * sizeof(md_sum), "sums of a block");
  }
  return MD_OK;
}

/* The n complex numbers of a site and colour. */
static double *row_of(const md_field *f, int64_t site, int colour) {
  return (double *)f->data + (site * COLOURS + colour) * f->n_rhs * 2;
}

/* to += from times the matrix */
static void add_product(int n, const double *from, const double *matrix, double *to) {
  for (int i = 0; i < n; i++) {
    const double re = from[2 * i], im = from[2 * i + 1];
    const double *m = matrix + 2 * i * n;
    for (int j = 0; j < n; j++) {
      to[2 * j] += re * m[2 * j] - im * m[2 * j + 1];
      to[2 * j + 1] += re * m[2 * j + 1] + im * m[2 * j];
    }
  }
}

static void update_site(const md_block_step *s, md_field *y, int64_t site) {
  const int n = y->n_rhs;
  for (int colour = 0; colour < COLOURS; colour++) {
    double sum[MOST] = {0}, *to = row_of(y, site, colour);
    if (s->z) add_product(n, to, s->c, row_of(s->z, site, colour));
    add_product(n, to, s->b, sum);
    if (s->x) add_product(n, row_of(s->x, site, colour), s->a, sum);
    memcpy(to, sum, 2 * (size_t)n * sizeof *sum);
  }
}

/* cell[i][j] += sum over colours of conj(x_i) x_j for i <= j */
static void add_site(const md_field *x, int64_t site, double *cell) {
  const int n = x->n_rhs;
  for (int colour = 0; colour < COLOURS; colour++) {
    const double *u = row_of(x, site, colour);
    for (int i = 0; i < n; i++) {
      const double re = u[2 * i], im = u[2 * i + 1];
      double *to = cell + 2 * i * n;
      for (int j = i; j < n; j++) {
        to[2 * j] += re * u[2 * j] + im * u[2 * j + 1];
        to[2 * j + 1] += re * u[2 * j + 1] - im * u[2 * j];
      }
    }
  }
}

/* Goes through the aligned 2x2x2x2 cells from `begin` on, eight sites of the parity each, in the
 * order of lattice/sum.h: what is added to the sums does not depend on the cut. */
static void pass_cells(const md_block_step *step, md_field *y, int64_t begin, int64_t end,
                       double *cell, md_sum *sums) {
  const md_geometry *g = y->geometry;
  const int n_rhs = y->n_rhs, half = g->local[0] / 2;
  const int n[3] = {g->local[1] / 2, g->local[2] / 2, g->local[3] / 2};
  for (int64_t k = begin; k < end; k++) {
    const int64_t first = k % half, row = k / half;
    const int64_t c[3] = {row % n[0], row / n[0] % n[1], row / n[0] / n[1]};
    if (sums) memset(cell, 0, 2 * (size_t)n_rhs * (size_t)n_rhs * sizeof *cell);
    for (int corner = 0; corner < CORNERS; corner++) {
      const int64_t line =
          ((2 * c[2] + (corner >> 2)) * g->local[2] + 2 * c[1] + (corner >> 1 & 1)) * g->local[1] +
          2 * c[0] + (corner & 1);
      if (step) update_site(step, y, line * half + first);
      if (sums) add_site(y, line * half + first, cell);
    }
    for (int i = 0; sums && i < n_rhs; i++)
      for (int e = 2 * i * (n_rhs + 1); e < 2 * (i + 1) * n_rhs; e++) md_sum_add(&sums[e], cell[e]);
  }
}

static void pass(host_block *b, const md_block_step *step, md_field *y, int slot) {
  const int64_t cells = y->sites / CORNERS;
  const size_t reals = 2 * (size_t)b->n * (size_t)b->n;
  if (slot >= 0) memset(b->sums[slot], 0, (size_t)b->threads * reals * sizeof *b->sums[slot]);
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int t = 0; t < b->threads; t++)
    pass_cells(step, y, cells * t / b->threads, cells * (t + 1) / b->threads,
               b->cell + (size_t)t * reals, slot < 0 ? NULL : b->sums[slot] + (size_t)t * reals);
}

static md_status gram(md_context *context, void *state, const md_field *x, int slot) {
  (void)context;
  pass(state, NULL, (md_field *)x, slot);
  return MD_OK;
}

static md_status update(md_context *context, void *state, md_field *y, const md_block_step *step) {
  (void)context;
  pass(state, step, y, step->slot);
  return MD_OK;
}

static md_status wait(md_context *context, void *state, int slot, double *gram) {
  host_block *b = state;
  const int reals = 2 * b->n * b->n;
  for (int t = 1; t < b->threads; t++)
    for (int e = 0; e < reals; e++) md_sum_merge(&b->sums[slot][e], &b->sums[slot][t * reals + e]);
  md_sum_finish(context, b->sums[slot], reals, gram);
  return MD_OK;
}

const md_block_space md_block_host = {create, destroy, gram, update, wait};
