#include "base/memory.h"
#include "base/memory_need.h"
#include "lattice/fields/block_rows.h"
#include "lattice/fields/block_space.h"
#include "lattice/fields/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cells of eight sites are added to doubles without rounding, at most this many; those of more, or
 * of several ranks, go into the exact sums of lattice/fields/sum.h, which round to the same. */
enum { CORNERS = 8, COLOURS = MD_BLOCK_ROWS, MATRICES = 3, FIELDS = 3, MOST_CELLS = 1 << 20 };

/* What a thread works with. */
typedef struct worker {
  double *plain, *turned; /* the rows of a cell */
  double *other;          /* a cell's rows of another field */
  double *cell;           /* its sums, padded */
  double *site;           /* rows of three fields that are not MD_DOUBLE */
  /* For each slot: those of all its cells, see md_block_rows.add; and n (n + 1) exact sums, i <= j
   * row by row, that are in use once `exact` is set. */
  double *high[MD_BLOCK_SLOTS], *low[MD_BLOCK_SLOTS];
  md_sum *sums[MD_BLOCK_SLOTS];
  bool exact[MD_BLOCK_SLOTS];
} worker;

typedef struct host_block {
  int n, width, threads;
  const md_block_rows *rows;
  double *memory;
  md_sum *sums;
  md_block_matrix b, a, c;
  worker *workers;
  bool few[MD_BLOCK_SLOTS];     /* MOST_CELLS or fewer went into the slot */
  double limit[MD_BLOCK_SLOTS]; /* for md_block_rows.add, from the sums before; 0: exact sums */
} host_block;

static const md_block_rows *best_rows(void) {
  static const md_block_rows *const rows[MD_ISAS] = MD_EVERY_ISA(&md_block_rows);
  return rows[md_isa_best()];
}

static void destroy(void *state) {
  host_block *b = state;
  free(b->memory);
  free(b->sums);
  free(b->workers);
  free(b);
}

static size_t padded_rows(const host_block *b) {
  return (size_t)(b->n + 3) / 4 * 4;
}

static size_t sums_of(const host_block *b) {
  return (size_t)b->n * ((size_t)b->n + 1);
}

/* Cuts the memory into its parts. */
static void share_out(host_block *b) {
  const size_t width = (size_t)b->width, square = padded_rows(b) * width;
  const size_t rows = MD_BLOCK_CELL_ROWS * width;
  double *at = b->memory;
  md_block_matrix *matrices[MATRICES] = {&b->b, &b->a, &b->c};
  for (int m = 0; m < MATRICES; m++, at += 2 * square)
    *matrices[m] = (md_block_matrix){at, at + square};
  for (int t = 0; t < b->threads; t++) {
    worker *w = &b->workers[t];
    w->plain = at;
    w->turned = at + rows;
    w->other = at + 2 * rows;
    w->cell = at + 3 * rows;
    w->site = w->cell + square;
    at = w->site + FIELDS * COLOURS * width;
    for (int slot = 0; slot < MD_BLOCK_SLOTS; slot++, at += 2 * square) {
      w->high[slot] = at;
      w->low[slot] = at + square;
      w->sums[slot] = b->sums + (size_t)(t * MD_BLOCK_SLOTS + slot) * sums_of(b);
    }
  }
}

static md_status create(md_context *context, const md_geometry *geometry, int n, void **state) {
  (void)geometry;
  host_block *b = calloc(1, sizeof *b);
  *state = b;
  if (!b) return md_fail_memory(context, sizeof *b, "block operations");
  b->n = n;
  b->threads = context->threads;
  b->rows = best_rows();
  b->width = (2 * n + b->rows->chunk - 1) / b->rows->chunk * b->rows->chunk;
  const size_t width = (size_t)b->width, square = padded_rows(b) * width;
  const size_t threads = (size_t)b->threads, sums = sums_of(b) * MD_BLOCK_SLOTS;
  const size_t rows = (3 * MD_BLOCK_CELL_ROWS + FIELDS * COLOURS) * width;
  const size_t reals = MATRICES * 2 * square + threads * (rows + (1 + 2 * MD_BLOCK_SLOTS) * square);
  b->workers = calloc(threads, sizeof *b->workers);
  b->sums = calloc(threads * sums, sizeof *b->sums);
  if (!b->workers || !b->sums)
    return md_fail_memory(context, threads * sums * sizeof *b->sums, "sums of a block");
  MD_TRY(md_allocate(context, reals * sizeof(double), "block operations", (void **)&b->memory));
  if (md_counts(context)) return MD_OK;
  memset(b->memory, 0, reals * sizeof(double));
  share_out(b);
  return MD_OK;
}

/* The rows of a site where they lie, or in `buffer` with their values. */
static double *rows_of(const host_block *b, const md_field *f, int64_t site, double *buffer) {
  if (!f) return NULL;
  if (f->precision == MD_DOUBLE) return (double *)f->data + site * COLOURS * f->n_rhs * 2;
  b->rows->load(f, site, buffer);
  return buffer;
}

/* Ends a change of them. */
static void put_rows(const host_block *b, md_field *f, int64_t site, double *rows) {
  if (f && f->precision != MD_DOUBLE) b->rows->store(rows, f, site);
}

static void update_site(const host_block *b, const md_block_step *step, double *y_rows, md_field *y,
                        int64_t site, worker *w) {
  const int64_t reals = COLOURS * (int64_t)b->width;
  const double *x_rows = rows_of(b, step->x, site, w->site + reals);
  double *z_rows = rows_of(b, step->z, site, w->site + 2 * reals);
  b->rows->update(b->n, b->width, &b->b, x_rows, &b->a, y_rows, z_rows, &b->c);
  put_rows(b, y, site, y_rows);
  put_rows(b, step->z, site, z_rows);
}

static void take_matrix(const host_block *b, const double *from, md_block_matrix *to) {
  for (int i = 0; i < b->n; i++)
    for (int j = 0; j < b->n; j++) {
      const double *e = from + 2 * (i * b->n + j);
      double *plain = to->plain + i * b->width + 2 * j, *turned = to->turned + i * b->width + 2 * j;
      plain[0] = e[0];
      plain[1] = e[1];
      turned[0] = -e[1];
      turned[1] = e[0];
    }
}

static void take_rows(const host_block *b, worker *w, const double *rows, int first) {
  for (int r = 0; r < COLOURS; r++) {
    double *plain = w->plain + (first + r) * b->width, *turned = w->turned + (first + r) * b->width;
    for (int j = 0; j < 2 * b->n; j += 2) {
      const double re = rows[2 * r * b->n + j], im = rows[2 * r * b->n + j + 1];
      plain[j] = re;
      plain[j + 1] = im;
      turned[j] = im;
      turned[j + 1] = -re;
    }
  }
}

static void add_exactly(const host_block *b, worker *w, int slot, const double *numbers) {
  md_sum *sum = w->sums[slot];
  if (!w->exact[slot]) memset(sum, 0, sums_of(b) * sizeof *sum);
  w->exact[slot] = true;
  for (int i = 0; i < b->n; i++)
    for (int e = 2 * i; e < 2 * b->n; e++) md_sum_add(sum++, numbers[i * b->width + e]);
}

static void clear(const host_block *b, worker *w, int slot) {
  memset(w->high[slot], 0, 2 * padded_rows(b) * (size_t)b->width * sizeof *w->high[slot]);
}

/* To the exact sums: `high` and `low`, which become zero. */
static void flush(const host_block *b, worker *w, int slot) {
  add_exactly(b, w, slot, w->high[slot]);
  add_exactly(b, w, slot, w->low[slot]);
  clear(b, w, slot);
}

/* Adds the rows of a cell. Which way it goes depends on the cell and on sums of the whole lattice
 * alone, so that the result does not depend on the cut. */
static void add_cell(const host_block *b, worker *w, int slot) {
  b->rows->gram(b->n, b->width, w->plain, w->plain, w->turned, false, w->cell);
  if (b->limit[slot] > 0.0 &&
      b->rows->add(b->n * b->width, b->limit[slot], w->cell, w->high[slot], w->low[slot]))
    return;
  add_exactly(b, w, slot, w->cell);
}

/* The sites of cell k, in the order of lattice/fields/sum.h. */
static void find_cell(const md_geometry *g, int64_t k, int64_t site[CORNERS]) {
  const int half = g->local[0] / 2;
  const int n[3] = {g->local[1] / 2, g->local[2] / 2, g->local[3] / 2};
  const int64_t first = k % half, row = k / half;
  const int64_t c[3] = {row % n[0], row / n[0] % n[1], row / n[0] / n[1]};
  for (int corner = 0; corner < CORNERS; corner++) {
    const int64_t line =
        ((2 * c[2] + (corner >> 2)) * g->local[2] + 2 * c[1] + (corner >> 1 & 1)) * g->local[1] +
        2 * c[0] + (corner & 1);
    site[corner] = line * half + first;
  }
}

/* Goes through the aligned 2x2x2x2 cells from `begin` on, eight sites of the parity each: what is
 * added to the sums does not depend on the cut. */
static void pass_cells(const host_block *b, const md_block_step *step, md_field *y, int64_t begin,
                       int64_t end, worker *w, int slot) {
  int64_t site[CORNERS];
  for (int64_t k = begin; k < end; k++) {
    find_cell(y->geometry, k, site);
    for (int corner = 0; corner < CORNERS; corner++) {
      double *rows = rows_of(b, y, site[corner], w->site);
      if (step) update_site(b, step, rows, y, site[corner], w);
      if (slot >= 0) take_rows(b, w, rows, corner * COLOURS);
    }
    if (slot >= 0) add_cell(b, w, slot);
    if (slot >= 0 && (k - begin) % MOST_CELLS == MOST_CELLS - 1) flush(b, w, slot);
  }
}

static void pass(host_block *b, const md_block_step *step, md_field *y, int slot) {
  const int64_t cells = y->sites / CORNERS;
  if (slot >= 0) b->few[slot] = cells <= MOST_CELLS;
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int t = 0; t < b->threads; t++) {
    worker *w = &b->workers[t];
    if (slot >= 0) {
      w->exact[slot] = false;
      clear(b, w, slot);
    }
    pass_cells(b, step, y, cells * t / b->threads, cells * (t + 1) / b->threads, w, slot);
  }
}

static md_status gram(md_context *context, void *state, const md_field *x, int slot) {
  (void)context;
  pass(state, NULL, (md_field *)x, slot);
  return MD_OK;
}

static md_status update(md_context *context, void *state, md_field *y, const md_block_step *step) {
  host_block *b = state;
  (void)context;
  take_matrix(b, step->b, &b->b);
  if (step->x) take_matrix(b, step->a, &b->a);
  if (step->z) take_matrix(b, step->c, &b->c);
  pass(b, step, y, step->slot);
  return MD_OK;
}

/* packed[..] = the sums of all ranks' cells through the exact accumulators. Collective. */
static md_status finish_exactly(md_context *context, host_block *b, int slot, double *packed) {
  const int count = (int)sums_of(b);
  for (int t = 0; t < b->threads; t++) flush(b, &b->workers[t], slot);
  for (int t = 1; t < b->threads; t++)
    for (int e = 0; e < count; e++)
      md_sum_merge(&b->workers[0].sums[slot][e], &b->workers[t].sums[slot][e]);
  return md_sum_finish(context, b->workers[0].sums[slot], count, packed);
}

/* The same where nothing is in the accumulators: every addition but the last is without rounding.
 */
static void finish_directly(const host_block *b, int slot, double *packed) {
  for (int i = 0; i < b->n; i++)
    for (int e = 2 * i; e < 2 * b->n; e++) {
      double high = 0.0, low = 0.0;
      for (int t = 0; t < b->threads; t++) {
        high += b->workers[t].high[slot][i * b->width + e];
        low += b->workers[t].low[slot][i * b->width + e];
      }
      *packed++ = high + low;
    }
}

static md_status wait(md_context *context, void *state, int slot, double *gram) {
  host_block *b = state;
  const int n = b->n;
  bool direct = context->ranks == 1 && b->few[slot];
  double largest = 0.0;
  for (int t = 0; t < b->threads; t++) direct = direct && !b->workers[t].exact[slot];
  if (direct)
    finish_directly(b, slot, gram);
  else
    MD_TRY(finish_exactly(context, b, slot, gram));
  for (int i = n - 1; i >= 0; i--) { /* from packed rows to whole ones, the last first */
    memmove(gram + 2 * i * (n + 1), gram + i * (2 * n - i + 1), 2 * (size_t)(n - i) * sizeof *gram);
    largest = fmax(largest, gram[2 * i * (n + 1)]);
  }
  b->limit[slot] = largest > 0.0 && isfinite(largest) ? ldexp(1.0, ilogb(largest) + 4) : 0.0;
  return MD_OK;
}

/* x's rows of a cell beside those of y. */
static void take_other(const host_block *b, worker *w, const double *rows, int first) {
  for (int r = 0; r < COLOURS; r++)
    memcpy(w->other + (first + r) * b->width, rows + 2 * r * b->n, 2 * (size_t)b->n * sizeof *rows);
}

static void cross_cells(const host_block *b, const md_field *x, const md_field *y, int64_t begin,
                        int64_t end, worker *w, md_sum *sums) {
  int64_t site[CORNERS];
  for (int64_t k = begin; k < end; k++) {
    find_cell(y->geometry, k, site);
    for (int corner = 0; corner < CORNERS; corner++) {
      take_rows(b, w, rows_of(b, y, site[corner], w->site), corner * COLOURS);
      take_other(b, w, rows_of(b, x, site[corner], w->site), corner * COLOURS);
    }
    b->rows->gram(b->n, b->width, w->other, w->plain, w->turned, true, w->cell);
    md_sum *sum = sums;
    for (int i = 0; i < b->n; i++)
      for (int e = 0; e < 2 * b->n; e++) md_sum_add(sum++, w->cell[i * b->width + e]);
  }
}

/* In the exact sums of the slots, of which each thread has n (n + 1) for each of two. */
static md_status cross(md_context *context, void *state, const md_field *x, const md_field *y,
                       double *product) {
  host_block *b = state;
  const int64_t cells = y->sites / CORNERS;
  const int count = 2 * b->n * b->n;
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int t = 0; t < b->threads; t++) {
    worker *w = &b->workers[t];
    memset(w->sums[0], 0, (size_t)count * sizeof *w->sums[0]);
    cross_cells(b, x, y, cells * t / b->threads, cells * (t + 1) / b->threads, w, w->sums[0]);
  }
  for (int t = 1; t < b->threads; t++)
    for (int e = 0; e < count; e++)
      md_sum_merge(&b->workers[0].sums[0][e], &b->workers[t].sums[0][e]);
  return md_sum_finish(context, b->workers[0].sums[0], count, product);
}

const md_block_space md_block_host = {.create = create,
                                      .destroy = destroy,
                                      .gram = gram,
                                      .update = update,
                                      .wait = wait,
                                      .cross = cross};
