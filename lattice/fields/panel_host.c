#include "base/memory.h"
#include "lattice/fields/panel_rows.h"

#include <stdlib.h>
#include <string.h>

enum { COMPONENTS = 6, COLOURS = 3, CELL_ROWS = MD_PANEL_REALS / 2 };
enum { STRIP = MD_PANEL_REALS * MD_PANEL_CELLS, BLOCK = COMPONENTS * MD_PANEL_SITES };

static const md_panel_rows *best_rows(void) {
  static const md_panel_rows *const rows[MD_ISAS] = MD_EVERY_ISA(&md_panel_rows);
  return rows[md_isa_best()];
}

static int padded(int n_rhs) {
  const int chunk = best_rows()->chunk;
  return (2 * n_rhs + chunk - 1) / chunk * chunk;
}

/* Short runs: a call for each would take longer than the copy. */
static inline void copy_run(double *to, const double *from, int count) {
  enum { AT_ONCE = 4 };
  int i = 0;
  for (; i + AT_ONCE <= count; i += AT_ONCE) memcpy(to + i, from + i, AT_ONCE * sizeof *to);
  for (; i < count; i++) to[i] = from[i];
}

/* Component c of `count` neighbouring sites of a field of one right-hand side. */
static inline void load_line(const md_field *f, int c, int64_t site, int count, double *to) {
  const int64_t at = c * f->stride + site;
  if (f->precision == MD_DOUBLE) {
    copy_run(to, (const double *)f->data + at, count);
  } else if (f->precision == MD_SINGLE) {
    for (int i = 0; i < count; i++) to[i] = (double)((const float *)f->data + at)[i];
  } else if (f->precision == MD_HALF) {
    for (int i = 0; i < count; i++)
      to[i] = (double)(md_float_of_half(((const uint16_t *)f->data + at)[i]) * f->scale[site + i]);
  } else if (f->precision == MD_FIXED) {
    for (int i = 0; i < count; i++)
      to[i] = (double)(md_float_of_fixed(((const int16_t *)f->data + at)[i])) *
              (double)f->scale[site + i];
  } else {
    double site_values[COMPONENTS];
    for (int i = 0; i < count; i++) {
      md_field_get(f, site + i, 0, site_values);
      to[i] = site_values[c];
    }
  }
}

/* Up to MD_PANEL_CELLS cells that follow each other in a plane of cells of one z and t, row by row.
 */
typedef struct strip_place {
  int64_t corner[MD_PANEL_CORNERS]; /* site of the plane's first cell in each corner */
  int first, cells;                 /* of the plane */
  int row;                          /* cells of a row */
} strip_place;

static int cells_of_plane(const md_geometry *g) {
  return g->local[0] / 2 * (g->local[1] / 2);
}
static int strips_of_plane(const md_geometry *g) {
  return (cells_of_plane(g) + MD_PANEL_CELLS - 1) / MD_PANEL_CELLS;
}
static int64_t strips_of(const md_geometry *g) {
  return (int64_t)strips_of_plane(g) * (g->local[2] / 2) * (g->local[3] / 2);
}

static strip_place strip_at(const md_geometry *g, int64_t i) {
  const int half = g->local[0] / 2, first = (int)(i % strips_of_plane(g)) * MD_PANEL_CELLS;
  const int64_t plane = i / strips_of_plane(g);
  const int64_t z = plane % (g->local[2] / 2), t = plane / (g->local[2] / 2);
  const int left = cells_of_plane(g) - first;
  strip_place s = {
      .first = first, .cells = left < MD_PANEL_CELLS ? left : MD_PANEL_CELLS, .row = half};
  for (int k = 0; k < MD_PANEL_CORNERS; k++)
    s.corner[k] =
        (((2 * t + (k >> 2)) * g->local[2] + 2 * z + (k >> 1 & 1)) * g->local[1] + (k & 1)) * half;
  return s;
}

/* Site of cell i of the strip in a corner: rows of cells are two rows of sites apart. */
static inline int64_t site_of(const strip_place *s, int corner, int i) {
  const int cell = s->first + i;
  return s->corner[corner] + (int64_t)(cell / s->row) * 2 * s->row + cell % s->row;
}

/* [MD_PANEL_REALS][MD_PANEL_CELLS] but for the lanes beyond the cells of the strip. */
static void load_strip(const md_field *f, const strip_place *s, double *to) {
  for (int i = 0; i < s->cells;) {
    const int to_end = s->row - (s->first + i) % s->row, left = s->cells - i;
    const int run = to_end < left ? to_end : left;
    for (int corner = 0; corner < MD_PANEL_CORNERS; corner++)
      for (int c = 0; c < COMPONENTS; c++)
        load_line(f, c, site_of(s, corner, i), run,
                  to + (corner * COMPONENTS + c) * MD_PANEL_CELLS + i);
    i += run;
  }
}

/* The rows of cell i of the strip, plain and turned. */
static void load_rows(const md_field *y, const strip_place *s, int i, int width, double *plain,
                      double *turned) {
  for (int row = 0; row < CELL_ROWS; row++) {
    const int64_t site = site_of(s, row / COLOURS, i);
    const double *from = (const double *)y->data + md_field_at(y, site, 2 * (row % COLOURS), 0);
    double *p = plain + row * width, *t = turned + row * width;
    for (int l = 0; l < 2 * y->n_rhs; l += 2) {
      p[l] = from[l], p[l + 1] = from[l + 1];
      t[l] = from[l + 1], t[l + 1] = -from[l];
    }
  }
}

/* What a thread of dots works with. */
typedef struct worker {
  double *strips;         /* MD_PANEL_TOGETHER of x, one of y */
  double *plain, *turned; /* rows of all cells of a strip */
  double *high, *low;     /* [count + MD_PANEL_TOGETHER][width]; one right-hand side: [count][4] */
} worker;

typedef struct dots_job {
  int count, width;
  const md_field *x, *y;
  const md_panel_units *units;
  double *to_high, *to_low; /* [width] */
} dots_job;

static void strip_of_one(const dots_job *job, worker *w, const strip_place *s) {
  double *y = w->strips + STRIP;
  if (s->cells < MD_PANEL_CELLS) memset(y, 0, STRIP * sizeof *y); /* against what is left in x */
  load_strip(job->y, s, y);
  for (int k = 0; k < job->count; k++) {
    load_strip(&job->x[k], s, w->strips);
    best_rows()->dots_one(w->strips, y, job->units, w->high + 4 * k);
  }
}

static void strip_of_many(const dots_job *job, worker *w, const strip_place *s) {
  const int width = job->width, rows = CELL_ROWS * width;
  for (int i = 0; i < s->cells; i++)
    load_rows(job->y, s, i, width, w->plain + i * rows, w->turned + i * rows);
  for (int k = 0; k < job->count; k += MD_PANEL_TOGETHER) {
    const double *x[MD_PANEL_TOGETHER];
    for (int j = 0; j < MD_PANEL_TOGETHER; j++) /* beyond the last: what comes of it is not read */
      if (k + j < job->count) load_strip(&job->x[k + j], s, w->strips + j * STRIP);
    for (int i = 0; i < s->cells; i++) {
      for (int j = 0; j < MD_PANEL_TOGETHER; j++) x[j] = w->strips + j * STRIP + i;
      best_rows()->dots_many(width, x, w->plain + i * rows, w->turned + i * rows, job->to_high,
                             job->to_low, w->high + (int64_t)k * width,
                             w->low + (int64_t)k * width);
    }
  }
}

/* Exact, so that the order of the threads does not matter. */
static void take_sums(const dots_job *job, const worker *w, double *sums) {
  const int n = job->y->n_rhs;
  for (int i = 0; n == 1 && i < 4 * job->count; i++) sums[i] += w->high[i];
  for (int64_t i = 0; n > 1 && i < (int64_t)job->count * n; i++) {
    const int64_t at = i / n * job->width + 2 * (i % n);
    for (int part = 0; part < 2; part++) {
      sums[4 * i + 2 * part] += w->high[at + part];
      sums[4 * i + 2 * part + 1] += w->low[at + part];
    }
  }
}

/* Reals of a thread's memory. */
static size_t share_of(const dots_job *job) {
  const size_t lanes = (size_t)job->width * (size_t)(job->count + MD_PANEL_TOGETHER);
  const size_t rows = (size_t)job->width * CELL_ROWS * MD_PANEL_CELLS;
  return STRIP * (MD_PANEL_TOGETHER + 1) + 2 * rows + 2 * lanes + 4 * (size_t)job->count;
}

static worker worker_of(const dots_job *job, double *memory) {
  const int64_t rows = (int64_t)job->width * CELL_ROWS * MD_PANEL_CELLS;
  worker w = {.strips = memory, .plain = memory + STRIP * (MD_PANEL_TOGETHER + 1)};
  w.turned = w.plain + rows;
  w.high = w.turned + rows;
  w.low = w.high + (int64_t)job->width * (job->count + MD_PANEL_TOGETHER);
  return w;
}

static void run_dots(const dots_job *job, int threads, double *memory, double *sums) {
  const int64_t strips = strips_of(job->y->geometry);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; t++) {
    worker w = worker_of(job, memory + (size_t)t * share_of(job));
    for (int64_t i = strips * t / threads; i < strips * (t + 1) / threads; i++) {
      const strip_place s = strip_at(job->y->geometry, i);
      if (job->y->n_rhs == 1)
        strip_of_one(job, &w, &s);
      else
        strip_of_many(job, &w, &s);
    }
  }
  memset(sums, 0, 4 * (size_t)job->count * (size_t)job->y->n_rhs * sizeof *sums);
  for (int t = 0; t < threads; t++) {
    const worker w = worker_of(job, memory + (size_t)t * share_of(job));
    take_sums(job, &w, sums);
  }
}

static md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
                      const md_panel_units *units, double *sums) {
  double to_high[2 * MD_MAX_RHS + 8], to_low[2 * MD_MAX_RHS + 8];
  const dots_job job = {count, padded(y->n_rhs), x, y, units, to_high, to_low};
  const size_t bytes = (size_t)context->threads * share_of(&job) * sizeof(double);
  void *memory;
  for (int l = 0; l < job.width; l++) {
    const int rhs = l / 2 < y->n_rhs ? l / 2 : 0;
    to_high[l] = units[rhs].high, to_low[l] = units[rhs].low;
  }
  MD_TRY(md_allocate(context, bytes, "inner products", &memory));
  memset(memory, 0, bytes);
  run_dots(&job, context->threads, memory, sums);
  free(memory);
  return MD_OK;
}

/* A vector's part of a block of sites, [component][site]: components are `distance` apart. */
typedef struct block_view {
  const double *at;
  int64_t distance;
} block_view;

/* x of MD_PANEL_SITES sites, [vector][component][site], zeros beyond the last. */
static void load_block(int count, const md_field *x, int64_t first, int sites, double *to) {
  if (sites < MD_PANEL_SITES) memset(to, 0, (size_t)count * BLOCK * sizeof *to);
  for (int k = 0; k < count; k++)
    for (int c = 0; c < COMPONENTS; c++)
      load_line(&x[k], c, first, sites, to + (int64_t)k * BLOCK + c * MD_PANEL_SITES);
}

/* Whether whole blocks of x are used where they lie. */
static bool in_place(const md_field *x, int columns, int sites) {
  return x->precision == MD_DOUBLE && columns == 1 && sites == MD_PANEL_SITES;
}

/* Column i of `columns` of a block of sites; `loaded` holds it where it is not used in place. */
static void add_column(int count, const md_field *x, const double *loaded, const double *c,
                       int columns, int i, int64_t first, int sites, md_field *y, bool assign) {
  double block[BLOCK] = {0};
  for (int k = 0; k < COMPONENTS && !assign; k++)
    load_line(y, k, first, sites, block + k * MD_PANEL_SITES);
  for (int k = 0; k < count; k++) {
    const block_view from = in_place(x, columns, sites)
                                ? (block_view){(const double *)x[k].data + first, x[k].stride}
                                : (block_view){loaded + (int64_t)k * BLOCK, MD_PANEL_SITES};
    best_rows()->add_one(c + 2 * ((int64_t)k * columns + i), from.at, from.distance, block);
  }
  for (int k = 0; k < COMPONENTS; k++)
    memcpy((double *)y->data + k * y->stride + first, block + k * MD_PANEL_SITES,
           (size_t)sites * sizeof *block);
}

/* All right-hand sides of a block of sites. */
static void add_rows(int count, int width, const double *x, const double *plain,
                     const double *turned, int64_t first, int sites, md_field *y) {
  double rows[COLOURS * (2 * MD_MAX_RHS + 8)] = {0};
  const int reals = 2 * y->n_rhs;
  for (int s = 0; s < sites; s++) {
    double *at = (double *)y->data + md_field_at(y, first + s, 0, 0);
    for (int c = 0; c < COLOURS; c++)
      memcpy(rows + c * width, at + c * reals, (size_t)reals * sizeof *rows);
    best_rows()->add_many(count, width, x + s, plain, turned, rows);
    for (int c = 0; c < COLOURS; c++)
      memcpy(at + c * reals, rows + c * width, (size_t)reals * sizeof *rows);
  }
}

/* Coefficients as rows of `width`, padded by zeros. */
static void take_coefficients(int count, int n, int width, const double *c, double *plain,
                              double *turned) {
  memset(plain, 0, (size_t)count * (size_t)width * sizeof *plain);
  memset(turned, 0, (size_t)count * (size_t)width * sizeof *turned);
  for (int64_t k = 0; k < count; k++)
    for (int64_t r = 0; r < n; r++) {
      const double re = c[2 * (k * n + r)], im = c[2 * (k * n + r) + 1];
      plain[k * width + 2 * r] = re, plain[k * width + 2 * r + 1] = im;
      turned[k * width + 2 * r] = -im, turned[k * width + 2 * r + 1] = re;
    }
}

static md_status add(md_context *context, int count, const md_field *x, const double *c, int fields,
                     md_field *y, bool assign) {
  const int width = padded(y->n_rhs);
  const size_t rows = (size_t)count * (size_t)width, share = (size_t)count * BLOCK;
  const int64_t blocks = (y->sites + MD_PANEL_SITES - 1) / MD_PANEL_SITES;
  void *memory;
  MD_TRY(md_allocate(context, (2 * rows + share * (size_t)context->threads) * sizeof(double),
                     "sums of vectors", &memory));
  double *plain = memory, *turned = plain + rows, *of_threads = turned + rows;
  if (y->n_rhs > 1) take_coefficients(count, y->n_rhs, width, c, plain, turned);
#pragma omp parallel for num_threads(context->threads) schedule(static)
  for (int t = 0; t < context->threads; t++)
    for (int64_t b = blocks * t / context->threads; b < blocks * (t + 1) / context->threads; b++) {
      double *block = of_threads + (size_t)t * share;
      const int64_t first = b * MD_PANEL_SITES, left = y->sites - first;
      const int sites = (int)(left < MD_PANEL_SITES ? left : MD_PANEL_SITES);
      if (y->n_rhs > 1 || !in_place(x, fields, sites)) load_block(count, x, first, sites, block);
      if (y->n_rhs > 1)
        add_rows(count, width, block, plain, turned, first, sites, y);
      else
        for (int i = 0; i < fields; i++)
          add_column(count, x, block, c, fields, i, first, sites, &y[i], assign);
    }
  free(memory);
  return MD_OK;
}

const md_panel_space md_panel_host = {dots, add};
