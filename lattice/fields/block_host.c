/* The operations of block.h on the host, compiled once for each instruction set. */
#include "base/memory.h"
#include "base/memory_need.h"
#include "lattice/fields/lanes.h"
#include "lattice/fields/reals.h"
#include "lattice/fields/spaces.h"
#include "lattice/fields/sum.h"

#include <math.h>
#include <stdlib.h>

enum { MATRICES = 3, FIELDS = 3 };
enum { VECTORS = 4, CHUNK = VECTORS * MD_LANES_OF_double, MOST_ROWS = 3 };
enum { TILE_ROWS = 4, TILE_VECTORS = 2, TILE_REALS = TILE_VECTORS * MD_LANES_OF_double };

/* sum += the chunk of (rows times matrix) that starts at real `first`; a row is n numbers long. */
MD_INLINE void multiply(int rows, int n, int width, const double *from, const md_block_matrix *m,
                        int first, md_lanes_double sum[][VECTORS]) {
  const double *plain = m->plain + first, *turned = m->turned + first;
  md_lanes_double now[MOST_ROWS][VECTORS]; /* in registers */
  memcpy(now, sum, (size_t)rows * sizeof *now);
  for (int k = 0; k < n; k++, plain += width, turned += width)
    for (int v = 0; v < VECTORS; v++) {
      const md_lanes_double p = md_load_double(plain + v * MD_LANES_OF_double);
      const md_lanes_double t = md_load_double(turned + v * MD_LANES_OF_double);
      for (int r = 0; r < rows; r++)
        now[r][v] = now[r][v] + from[2 * (r * n + k)] * p + from[2 * (r * n + k) + 1] * t;
    }
  memcpy(sum, now, (size_t)rows * sizeof *now);
}

MD_INLINE void store(int rows, int n, int first, md_lanes_double sum[][VECTORS], double *to) {
  const int left = 2 * n - first, reals = left < CHUNK ? left : CHUNK;
  for (int r = 0; r < rows; r++)
    memcpy(to + 2 * r * n + first, sum[r], (size_t)reals * sizeof(double));
}

MD_INLINE void update_few(int rows, int n, int width, const md_block_matrix *b, const double *x,
                          const md_block_matrix *a, double *y, double *z,
                          const md_block_matrix *c) {
  double fresh[MOST_ROWS * 2 * MD_MAX_BLOCK];
  for (int first = 0; first < 2 * n; first += CHUNK) {
    md_lanes_double sum[MOST_ROWS][VECTORS] = {0};
    if (z) {
      const int left = 2 * n - first, reals = left < CHUNK ? left : CHUNK;
      for (int r = 0; r < rows; r++)
        memcpy(sum[r], z + 2 * r * n + first, (size_t)reals * sizeof(double));
      multiply(rows, n, width, y, c, first, sum);
      store(rows, n, first, sum, z);
      memset(sum, 0, sizeof sum);
    }
    multiply(rows, n, width, y, b, first, sum);
    if (x) multiply(rows, n, width, x, a, first, sum);
    store(rows, n, first, sum, fresh);
  }
  memcpy(y, fresh, (size_t)(rows * 2 * n) * sizeof *y);
}

/* By threes, of which a staggered site has one, and what is left one by one. */
static void update_rows(int rows, int n, int width, const md_block_matrix *b, const double *x,
                        const md_block_matrix *a, double *y, double *z, const md_block_matrix *c) {
  const int apart = 2 * n;
  int done = 0;
  for (; done + MOST_ROWS <= rows; done += MOST_ROWS)
    update_few(MOST_ROWS, n, width, b, x ? x + done * apart : NULL, a, y + done * apart,
               z ? z + done * apart : NULL, c);
  for (; done < rows; done++)
    update_few(1, n, width, b, x ? x + done * apart : NULL, a, y + done * apart,
               z ? z + done * apart : NULL, c);
}

MD_INLINE void gram_cell(int rows, int n, int width, const double *x, const double *plain,
                         const double *turned, bool whole, double *cell) {
  for (int first = 0; first < 2 * n; first += TILE_REALS)
    for (int i = 0; i < n && (whole || 2 * i < first + TILE_REALS); i += TILE_ROWS) {
      md_lanes_double sum[TILE_ROWS][TILE_VECTORS] = {0};
      for (int row = 0; row < rows; row++) {
        const double *from = x + row * width + 2 * i;
        for (int v = 0; v < TILE_VECTORS; v++) {
          const md_lanes_double p =
              md_load_double(plain + row * width + first + v * MD_LANES_OF_double);
          const md_lanes_double t =
              md_load_double(turned + row * width + first + v * MD_LANES_OF_double);
          for (int k = 0; k < TILE_ROWS; k++)
            sum[k][v] = sum[k][v] + from[2 * k] * p + from[2 * k + 1] * t;
        }
      }
      for (int k = 0; k < TILE_ROWS; k++)
        memcpy(cell + (i + k) * width + first, sum[k], sizeof sum[k]);
    }
}

static bool add_limited(int count, double limit, const double *numbers, double *high, double *low) {
  /* Adding and taking away 3 * 2^51 units leaves a multiple of the unit. */
  const double to_high = 3.0 * 0x1p51 * 0x1p-32 * limit, to_low = 3.0 * 0x1p51 * 0x1p-64 * limit;
  double size[MD_LANES_OF_double] = {0.0}, all = 0.0;
  for (int e = 0; e < count; e += MD_LANES_OF_double)
    for (int l = 0; l < MD_LANES_OF_double; l++) size[l] += fabs(numbers[e + l]);
  for (int l = 0; l < MD_LANES_OF_double; l++) all += size[l];
  if (!(all < limit)) return false;
  for (int e = 0; e < count; e++) {
    const double h = (numbers[e] + to_high) - to_high, rest = numbers[e] - h;
    high[e] += h;
    low[e] += (rest + to_low) - to_low;
  }
  return true;
}

const md_block_loops MD_JOIN(md_block_loops_, MD_ISA) = {CHUNK, update_rows, gram_cell,
                                                         add_limited};

/* Cells of eight sites are added to doubles without rounding, at most this many; those of more, or
 * of several ranks, go into the exact sums of lattice/fields/sum.h. */
enum { MOST_CELLS = 1 << 20 };

/* What a thread works with. */
typedef struct worker {
  double *plain, *turned; /* the rows of a cell */
  double *other;          /* a cell's rows of another field */
  double *cell;           /* its sums, padded */
  double *site;           /* rows of three fields that are not MD_DOUBLE */
  /* For each slot: those of all its cells, see md_block_loops.add; and n (n + 1) exact sums, i <= j
   * row by row, that are in use once `exact` is set. */
  double *high[MD_BLOCK_SLOTS], *low[MD_BLOCK_SLOTS];
  md_sum *sums[MD_BLOCK_SLOTS];
  bool exact[MD_BLOCK_SLOTS];
} worker;

typedef struct host_block {
  int n, rows, width, threads; /* rows of a site: pairs of components */
  double *memory;
  md_sum *sums;
  md_block_matrix b, a, c;
  worker *workers;
  bool few[MD_BLOCK_SLOTS];     /* MOST_CELLS or fewer went into the slot */
  double limit[MD_BLOCK_SLOTS]; /* for md_block_loops.add, from the sums before; 0: exact sums */
} host_block;

static void destroy(void *state) {
  host_block *b = state;
  MD_FREE(b->memory, b->sums, b->workers, b);
}

static size_t padded_rows(const host_block *b) {
  return (size_t)(b->n + 3) / 4 * 4;
}

static size_t sums_of(const host_block *b) {
  return (size_t)b->n * ((size_t)b->n + 1);
}

/* Reals of a matrix, of a site's rows, and of a thread's memory. */
static size_t square_of(const host_block *b) {
  return padded_rows(b) * (size_t)b->width;
}
static size_t site_of(const host_block *b) {
  return (size_t)b->rows * (size_t)b->width;
}
static size_t share_of(const host_block *b) {
  return (3 * MD_CORNERS + FIELDS) * site_of(b) + (1 + 2 * MD_BLOCK_SLOTS) * square_of(b);
}

/* Cuts the memory into its parts. */
static void share_out(host_block *b) {
  const size_t square = square_of(b), rows = MD_CORNERS * site_of(b);
  double *at = b->memory;
  md_block_matrix *matrices[MATRICES] = {&b->b, &b->a, &b->c};
  for (int m = 0; m < MATRICES; m++, at += 2 * square)
    *matrices[m] = (md_block_matrix){at, at + square};
  for (int t = 0; t < b->threads; t++, at += share_of(b)) {
    worker *w = &b->workers[t];
    w->plain = at;
    w->turned = at + rows;
    w->other = at + 2 * rows;
    w->cell = at + 3 * rows;
    w->site = w->cell + square;
    for (int slot = 0; slot < MD_BLOCK_SLOTS; slot++) {
      w->high[slot] = w->site + FIELDS * site_of(b) + 2 * (size_t)slot * square;
      w->low[slot] = w->high[slot] + square;
      w->sums[slot] = b->sums + (size_t)(t * MD_BLOCK_SLOTS + slot) * sums_of(b);
    }
  }
}

static md_status create(md_context *context, const md_field_shape *shape, void **state) {
  host_block *b = calloc(1, sizeof *b);
  *state = b;
  if (!b) return md_fail_memory(context, sizeof *b, "block operations");
  b->n = shape->n_rhs;
  b->rows = shape->components / 2;
  b->threads = context->threads;
  b->width = md_padded(b->n, CHUNK);
  const size_t threads = (size_t)b->threads, sums = sums_of(b) * MD_BLOCK_SLOTS;
  const size_t reals = MATRICES * 2 * square_of(b) + threads * share_of(b);
  b->workers = calloc(threads, sizeof *b->workers);
  if (!b->workers) return md_fail_memory(context, threads * sizeof *b->workers, "a block");
  const size_t sum_bytes = threads * sums * sizeof *b->sums;
  MD_TRY(md_allocate(context, sum_bytes, "sums of a block", (void **)&b->sums));
  MD_TRY(md_allocate(context, reals * sizeof(double), "block operations", (void **)&b->memory));
  if (md_counts(context)) return MD_OK;
  memset(b->memory, 0, reals * sizeof(double));
  memset(b->sums, 0, sum_bytes);
  share_out(b);
  return MD_OK;
}

/* The rows of a site where they lie, or in `buffer` with their values. */
static double *rows_of(const md_field *f, int64_t site, double *buffer) {
  if (!f) return NULL;
  const int reals = f->components * f->n_rhs;
  if (f->precision == MD_DOUBLE) return (double *)f->data + site * reals;
  md_load_reals(f->precision, f->data, site * reals, reals, buffer);
  for (int e = 0; f->scale && e < reals; e++) buffer[e] *= (double)f->scale[site];
  return buffer;
}

/* Ends a change of them; they become what was stored. */
static void put_rows(md_field *f, int64_t site, double *rows) {
  if (!f || f->precision == MD_DOUBLE) return;
  const int reals = f->components * f->n_rhs;
  if (f->scale) {
    int32_t largest = 0;
    for (int e = 0; e < reals; e++) largest = md_larger_bits(largest, (float)rows[e]);
    f->scale[site] = md_scale_of_bits(f->precision, largest);
    const float inverse = 1.0f / f->scale[site];
    for (int e = 0; e < reals; e++) rows[e] = (double)((float)rows[e] * inverse);
  }
  md_store_reals(f->precision, f->data, site * reals, reals, rows);
  rows_of(f, site, rows);
}

static void update_site(const host_block *b, const md_block_step *step, double *y_rows, md_field *y,
                        int64_t site, worker *w) {
  const double *x_rows = rows_of(step->x, site, w->site + site_of(b));
  double *z_rows = rows_of(step->z, site, w->site + 2 * site_of(b));
  update_rows(b->rows, b->n, b->width, &b->b, x_rows, &b->a, y_rows, z_rows, &b->c);
  put_rows(y, site, y_rows);
  put_rows(step->z, site, z_rows);
}

static void take_matrix(const host_block *b, const double *from, md_block_matrix *to) {
  for (int i = 0; i < b->n; i++)
    md_turn_row(2 * b->n, 1.0, from + 2 * i * b->n, to->plain + i * b->width,
                to->turned + i * b->width);
}

static void take_rows(const host_block *b, worker *w, const double *rows, int corner) {
  for (int r = 0; r < b->rows; r++) {
    const int at = (corner * b->rows + r) * b->width;
    md_turn_row(2 * b->n, -1.0, rows + 2 * r * b->n, w->plain + at, w->turned + at);
  }
}

/* Of a field beside those. */
static void take_other(const host_block *b, worker *w, const double *rows, int corner) {
  for (int r = 0; r < b->rows; r++)
    memcpy(w->other + (corner * b->rows + r) * b->width, rows + 2 * r * b->n,
           2 * (size_t)b->n * sizeof *rows);
}

static void add_exactly(const host_block *b, worker *w, int slot, const double *numbers) {
  md_sum *sum = w->sums[slot];
  if (!w->exact[slot]) memset(sum, 0, sums_of(b) * sizeof *sum);
  w->exact[slot] = true;
  for (int i = 0; i < b->n; i++)
    for (int e = 2 * i; e < 2 * b->n; e++) md_sum_add(sum++, numbers[i * b->width + e]);
}

static void clear(const host_block *b, worker *w, int slot) {
  memset(w->high[slot], 0, 2 * square_of(b) * sizeof *w->high[slot]);
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
  if (b->rows == MOST_ROWS) /* known to the loops */
    gram_cell(MD_CORNERS * MOST_ROWS, b->n, b->width, w->plain, w->plain, w->turned, false,
              w->cell);
  else
    gram_cell(MD_CORNERS * b->rows, b->n, b->width, w->plain, w->plain, w->turned, false, w->cell);
  if (b->limit[slot] > 0.0 &&
      add_limited(b->n * b->width, b->limit[slot], w->cell, w->high[slot], w->low[slot]))
    return;
  add_exactly(b, w, slot, w->cell);
}

/* All products of the rows of two fields, into the exact sums of both slots. */
static void add_product(const host_block *b, worker *w) {
  md_sum *sum = w->sums[0];
  gram_cell(MD_CORNERS * b->rows, b->n, b->width, w->other, w->plain, w->turned, true, w->cell);
  for (int i = 0; i < b->n; i++)
    for (int e = 0; e < 2 * b->n; e++) md_sum_add(sum++, w->cell[i * b->width + e]);
}

/* Goes through the aligned 2x2x2x2 cells from `begin` on, eight sites of the parity each: what is
 * added to the sums does not depend on the cut. The sums of y go into the slot, or those of x and
 * y, x not NULL, into both. */
static void pass_cells(const host_block *b, const md_block_step *step, const md_field *x,
                       md_field *y, int64_t begin, int64_t end, worker *w, int slot) {
  const int *local = y->geometry->local;
  for (int64_t k = begin; k < end; k++) {
    const int64_t row = k / (local[0] / 2), plane = row / (local[1] / 2);
    const int64_t half[MD_DIMS] = {k % (local[0] / 2), row % (local[1] / 2), plane % (local[2] / 2),
                                   plane / (local[2] / 2)};
    int64_t site[MD_CORNERS];
    md_cell_sites(y->geometry, half, site);
    for (int corner = 0; corner < MD_CORNERS; corner++) {
      double *rows = rows_of(y, site[corner], w->site);
      if (step) update_site(b, step, rows, y, site[corner], w);
      if (x || slot >= 0) take_rows(b, w, rows, corner);
      if (x) take_other(b, w, rows_of(x, site[corner], w->site), corner);
    }
    if (x) add_product(b, w);
    if (slot >= 0) add_cell(b, w, slot);
    if (slot >= 0 && (k - begin) % MOST_CELLS == MOST_CELLS - 1) flush(b, w, slot);
  }
}

static void pass(host_block *b, const md_block_step *step, const md_field *x, md_field *y,
                 int slot) {
  const int64_t cells = y->sites / MD_CORNERS;
  if (slot >= 0) b->few[slot] = cells <= MOST_CELLS;
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int t = 0; t < b->threads; t++) {
    worker *w = &b->workers[t];
    if (slot >= 0) {
      w->exact[slot] = false;
      clear(b, w, slot);
      /* What a product of two fields has left below the diagonal is in nobody's way of adding. */
      memset(w->cell, 0, square_of(b) * sizeof *w->cell);
    }
    if (x) memset(w->sums[0], 0, 2 * sums_of(b) * sizeof *w->sums[0]);
    pass_cells(b, step, x, y, cells * t / b->threads, cells * (t + 1) / b->threads, w, slot);
  }
}

static md_status gram(md_context *context, void *state, const md_field *x, int slot) {
  (void)context;
  pass(state, NULL, NULL, (md_field *)x, slot);
  return MD_OK;
}

static md_status update(md_context *context, void *state, md_field *y, const md_block_step *step) {
  host_block *b = state;
  (void)context;
  take_matrix(b, step->b, &b->b);
  if (step->x) take_matrix(b, step->a, &b->a);
  if (step->z) take_matrix(b, step->c, &b->c);
  pass(b, step, NULL, y, step->slot);
  return MD_OK;
}

/* values[count]: the accumulators of a slot over threads and ranks. Collective. */
static md_status finish_exactly(md_context *context, host_block *b, int slot, int count,
                                double *values) {
  md_sum *const sums = b->workers[0].sums[slot];
  for (int t = 1; t < b->threads; t++)
    for (int e = 0; e < count; e++) md_sum_merge(&sums[e], &b->workers[t].sums[slot][e]);
  return md_sum_finish(context, sums, count, values);
}

/* The packed sums of a slot where nothing is in the accumulators: additions are without rounding,
 * and the last one rounds as that of several ranks does. */
static void finish_directly(const host_block *b, int slot, double *packed) {
  for (int i = 0; i < b->n; i++)
    for (int e = 2 * i; e < 2 * b->n; e++) {
      double high = 0.0, low = 0.0;
      for (int t = 0; t < b->threads; t++) {
        high += b->workers[t].high[slot][i * b->width + e];
        low += b->workers[t].low[slot][i * b->width + e];
      }
      *packed++ = md_sum_of_two(high, low);
    }
}

static md_status wait(md_context *context, void *state, int slot, double *gram) {
  host_block *b = state;
  const int n = b->n;
  bool direct = context->ranks == 1 && b->few[slot];
  double largest = 0.0;
  for (int t = 0; t < b->threads; t++) direct = direct && !b->workers[t].exact[slot];
  if (direct) {
    finish_directly(b, slot, gram);
  } else {
    for (int t = 0; t < b->threads; t++) flush(b, &b->workers[t], slot);
    MD_TRY(finish_exactly(context, b, slot, (int)sums_of(b), gram));
  }
  for (int i = n - 1; i >= 0; i--) { /* from packed rows to whole ones, the last first */
    memmove(gram + 2 * i * (n + 1), gram + i * (2 * n - i + 1), 2 * (size_t)(n - i) * sizeof *gram);
    largest = fmax(largest, gram[2 * i * (n + 1)]);
  }
  b->limit[slot] = largest > 0.0 && isfinite(largest) ? ldexp(1.0, ilogb(largest) + 4) : 0.0;
  return MD_OK;
}

/* The exact sums of the slots serve as one: n (n + 1) for each of two. */
static md_status cross(md_context *context, void *state, const md_field *x, const md_field *y,
                       double *product) {
  host_block *b = state;
  pass(b, NULL, x, (md_field *)y, -1);
  return finish_exactly(context, b, 0, 2 * b->n * b->n, product);
}

const md_block_space MD_JOIN(md_block_host_, MD_ISA) = {.create = create,
                                                        .destroy = destroy,
                                                        .gram = gram,
                                                        .update = update,
                                                        .wait = wait,
                                                        .cross = cross};
