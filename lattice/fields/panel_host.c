/* The operations of panel.h on the host, compiled once for each instruction set. */
#include "base/memory.h"
#include "lattice/fields/lanes.h"
#include "lattice/fields/reals.h"
#include "lattice/fields/spaces.h"

#include <stdlib.h>

/* Cells that are neighbours along x make a strip, and so do neighbouring sites. Rows of right-hand
 * sides are `width` reals long, a multiple of the lanes, and padded by zeros. */
enum {
  CELLS = 16,
  SITES = 64,
  TOGETHER = 4 /* vectors that are multiplied at once */
};

enum { STAGGERED = 6 }; /* components that inner loops are made for, beside those for any number */

/* Of a vector's cell, (re, im) pairs; reals of its strip of cells, of its strip of sites. */
static int rows_of(const md_field *f) {
  return MD_CORNERS * f->components / 2;
}
static int strip_reals(const md_field *f) {
  return MD_CORNERS * f->components * CELLS;
}
static int64_t block_reals(const md_field *f) {
  return f->components * SITES;
}

/* What adding and taking away 1.5 * 2^52 units leaves is a whole number of them, whatever has been
 * added before; high += that, and low += the same of the rest. */
static inline void add_term(md_lanes_double term, md_lanes_double to_high, md_lanes_double to_low,
                            md_lanes_double *high, md_lanes_double *low) {
  const md_lanes_double whole = (term + to_high) - to_high, rest = term - whole;
  *high += whole;
  *low += (rest + to_low) - to_low;
}

static double sum_of(md_lanes_double v) {
  double sum = 0.0;
  for (int l = 0; l < MD_LANES_OF_double; l++) sum += v[l];
  return sum;
}

/* sums[4] += <x, y> over a strip of cells, x and y [corner][component][CELLS]. */
static inline void dots_one(int rows, const double *x, const double *y, const md_panel_units *units,
                            double *sums) {
  const md_lanes_double none = {0}, to_high = none + units->high, to_low = none + units->low;
  md_lanes_double high[2] = {none, none}, low[2] = {none, none};
  for (int cell = 0; cell < CELLS; cell += MD_LANES_OF_double) {
    md_lanes_double re = none, im = none;
    for (int row = 0; row < rows; row++) {
      const double *u = x + 2 * row * CELLS + cell, *v = y + 2 * row * CELLS + cell;
      const md_lanes_double ur = md_load_double(u), ui = md_load_double(u + CELLS);
      const md_lanes_double vr = md_load_double(v), vi = md_load_double(v + CELLS);
      re += ur * vr + ui * vi;
      im += ur * vi - ui * vr;
    }
    add_term(re, to_high, to_low, &high[0], &low[0]);
    add_term(im, to_high, to_low, &high[1], &low[1]);
  }
  for (int part = 0; part < 2; part++) {
    sums[2 * part] += sum_of(high[part]);
    sums[2 * part + 1] += sum_of(low[part]);
  }
}

/* The same with right-hand sides: a cell's rows plain and turned; the cell's numbers of TOGETHER
 * vectors, x[k] with CELLS from one to the next. high and low are [TOGETHER][width], to_high and
 * to_low the units of each lane, [width]. */
static inline void dots_many(int rows, int width, const double *const *x, const double *plain,
                             const double *turned, const double *to_high, const double *to_low,
                             double *high, double *low) {
  for (int first = 0; first < width; first += MD_LANES_OF_double) {
    md_lanes_double sum[TOGETHER] = {0};
    for (int row = 0; row < rows; row++) {
      const md_lanes_double p = md_load_double(plain + row * width + first);
      const md_lanes_double t = md_load_double(turned + row * width + first);
      for (int k = 0; k < TOGETHER; k++) {
        const double *at = x[k] + 2 * row * CELLS;
        sum[k] += at[0] * p + at[CELLS] * t;
      }
    }
    for (int k = 0; k < TOGETHER; k++) {
      double *to = high + k * width + first, *rest = low + k * width + first;
      md_lanes_double h = md_load_double(to), l = md_load_double(rest);
      add_term(sum[k], md_load_double(to_high + first), md_load_double(to_low + first), &h, &l);
      md_store_double(to, h);
      md_store_double(rest, l);
    }
  }
}

/* y += c x for a strip of sites, y [component][SITES], the components of x `distance` apart. */
static void add_one(int components, const double *c, const double *x, int64_t distance, double *y) {
  for (int k = 0; k < components; k += 2) {
    const double *re = x + k * distance, *im = re + distance;
    double *to_re = y + k * SITES, *to_im = to_re + SITES;
    for (int i = 0; i < SITES; i += MD_LANES_OF_double) {
      const md_lanes_double xr = md_load_double(re + i), xi = md_load_double(im + i);
      md_store_double(to_re + i, md_load_double(to_re + i) + c[0] * xr - c[1] * xi);
      md_store_double(to_im + i, md_load_double(to_im + i) + c[0] * xi + c[1] * xr);
    }
  }
}

/* `rows` rows of y of a site, 3 at most, += sum over `count` vectors of their numbers, x[k * apart]
 * with reals SITES apart, times row k of plain and turned coefficients. */
static inline void add_many(int rows, int count, int width, int64_t apart, const double *x,
                            const double *plain, const double *turned, double *y) {
  for (int first = 0; first < width; first += MD_LANES_OF_double) {
    md_lanes_double sum[3];
    for (int c = 0; c < rows; c++) sum[c] = md_load_double(y + c * width + first);
    for (int k = 0; k < count; k++) {
      const double *at = x + k * apart;
      const md_lanes_double p = md_load_double(plain + (int64_t)k * width + first);
      const md_lanes_double t = md_load_double(turned + (int64_t)k * width + first);
      for (int c = 0; c < rows; c++) sum[c] += at[2 * c * SITES] * p + at[(2 * c + 1) * SITES] * t;
    }
    for (int c = 0; c < rows; c++) md_store_double(y + c * width + first, sum[c]);
  }
}

/* Component c of `count` neighbouring sites of a field of one right-hand side and that precision.
 */
MD_INLINE void load_line(md_precision precision, const md_field *f, int c, int64_t site, int count,
                         double *to) {
  md_load_reals(precision, f->data, c * f->stride + site, count, to);
  if (!md_is_scaled(precision)) return;
  for (int i = 0; i < count; i++) to[i] *= (double)f->scale[site + i];
}

/* Up to CELLS cells that follow each other in a plane of cells of one z and t, row by row. */
typedef struct strip_place {
  int64_t corner[MD_CORNERS]; /* site of the plane's first cell in each corner */
  int first, cells;           /* of the plane */
  int row;                    /* cells of a row */
} strip_place;

static int strips_of_plane(const md_geometry *g) {
  return (g->local[0] / 2 * (g->local[1] / 2) + CELLS - 1) / CELLS;
}

static strip_place strip_at(const md_geometry *g, int64_t i) {
  const int row = g->local[0] / 2, first = (int)(i % strips_of_plane(g)) * CELLS;
  const int64_t plane = i / strips_of_plane(g);
  const int64_t half[MD_DIMS] = {0, 0, plane % (g->local[2] / 2), plane / (g->local[2] / 2)};
  const int left = row * (g->local[1] / 2) - first;
  strip_place s = {.first = first, .cells = left < CELLS ? left : CELLS, .row = row};
  md_cell_sites(g, half, s.corner);
  return s;
}

/* Site of cell i of the strip in a corner: rows of cells are two rows of sites apart. */
static inline int64_t site_of(const strip_place *s, int corner, int i) {
  const int cell = s->first + i;
  return s->corner[corner] + (int64_t)(cell / s->row) * 2 * s->row + cell % s->row;
}

/* [corner][component][CELLS] but for the lanes beyond the cells of the strip. */
MD_INLINE void load_cells(md_precision precision, int components, const md_field *f,
                          const strip_place *s, double *to) {
  for (int i = 0; i < s->cells;) {
    const int to_end = s->row - (s->first + i) % s->row, left = s->cells - i;
    const int run = to_end < left ? to_end : left;
    for (int corner = 0; corner < MD_CORNERS; corner++)
      for (int c = 0; c < components; c++)
        load_line(precision, f, c, site_of(s, corner, i), run,
                  to + (corner * components + c) * CELLS + i);
    i += run;
  }
}

/* Runs are short: what does not change in the loops is known to them where it matters. */
static void load_strip(const md_field *f, const strip_place *s, double *to) {
#define CASE(ID, ...)                                                                              \
  case ID:                                                                                         \
    load_cells(ID, STAGGERED, f, s, to);                                                           \
    break;
  if (f->components != STAGGERED)
    load_cells(f->precision, f->components, f, s, to);
  else
    switch (f->precision) {
      MD_PRECISION_TABLE(CASE)
    case MD_PRECISIONS:
      break;
    }
#undef CASE
}

typedef struct dots_job {
  int count, width;
  const md_field *x, *y;
  const md_panel_units *units;
  double *to_high, *to_low; /* [width] */
} dots_job;

/* What a thread of dots works with. */
typedef struct worker {
  double *strips;         /* TOGETHER of x, one of y */
  double *plain, *turned; /* rows of all cells of a strip */
  double *high, *low;     /* [count + TOGETHER][width]; one right-hand side: [count][4] */
} worker;

/* Reals of the rows and of either sums; of a thread's memory. */
static int64_t all_rows(const dots_job *job) {
  return (int64_t)job->width * rows_of(job->y) * CELLS;
}
static int64_t all_sums(const dots_job *job) {
  return (int64_t)job->width * (job->count + TOGETHER) + 4 * (int64_t)job->count;
}
static int64_t share_of(const dots_job *job) {
  return (TOGETHER + 1) * strip_reals(job->y) + 2 * all_rows(job) + 2 * all_sums(job);
}

static worker worker_of(const dots_job *job, double *memory) {
  worker w = {.strips = memory, .plain = memory + (TOGETHER + 1) * strip_reals(job->y)};
  w.turned = w.plain + all_rows(job);
  w.high = w.turned + all_rows(job);
  w.low = w.high + all_sums(job);
  return w;
}

static void strip_of_one(const dots_job *job, worker *w, const strip_place *s) {
  const int reals = strip_reals(job->y);
  double *y = w->strips + reals;
  if (s->cells < CELLS) memset(y, 0, (size_t)reals * sizeof *y); /* against what is left in x */
  load_strip(job->y, s, y);
  for (int k = 0; k < job->count; k++) {
    load_strip(&job->x[k], s, w->strips);
    if (job->y->components == STAGGERED)
      dots_one(MD_CORNERS * STAGGERED / 2, w->strips, y, job->units, w->high + 4 * k);
    else
      dots_one(rows_of(job->y), w->strips, y, job->units, w->high + 4 * k);
  }
}

static void strip_of_many(const dots_job *job, worker *w, const strip_place *s) {
  const md_field *y = job->y;
  const int width = job->width, rows = rows_of(y), of_cell = rows * width;
  for (int i = 0; i < s->cells; i++)
    for (int row = 0; row < rows; row++) {
      const int64_t site = site_of(s, 2 * row / y->components, i), at = i * of_cell + row * width;
      md_turn_row(2 * y->n_rhs, -1.0,
                  (const double *)y->data + md_field_at(y, site, 2 * row % y->components, 0),
                  w->plain + at, w->turned + at);
    }
  for (int k = 0; k < job->count; k += TOGETHER) {
    const double *x[TOGETHER];
    for (int j = 0; j < TOGETHER; j++) /* beyond the last: what comes of it is not read */
      if (k + j < job->count) load_strip(&job->x[k + j], s, w->strips + j * strip_reals(y));
    for (int i = 0; i < s->cells; i++) {
      for (int j = 0; j < TOGETHER; j++) x[j] = w->strips + j * strip_reals(y) + i;
      dots_many(rows, width, x, w->plain + i * of_cell, w->turned + i * of_cell, job->to_high,
                job->to_low, w->high + (int64_t)k * width, w->low + (int64_t)k * width);
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

static md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
                      const md_panel_units *units, double *sums) {
  double to_high[2 * MD_MAX_RHS + 8], to_low[2 * MD_MAX_RHS + 8];
  const md_geometry *g = y->geometry;
  const dots_job job = {count, md_padded(y->n_rhs, MD_LANES_OF_double), x, y, units, to_high,
                        to_low};
  const int64_t share = share_of(&job);
  const int64_t strips = (int64_t)strips_of_plane(g) * (g->local[2] / 2) * (g->local[3] / 2);
  const int threads = context->threads;
  const size_t bytes = (size_t)(threads * share) * sizeof(double);
  void *memory;
  for (int l = 0; l < job.width; l++) {
    const int rhs = l / 2 < y->n_rhs ? l / 2 : 0;
    to_high[l] = units[rhs].high, to_low[l] = units[rhs].low;
  }
  MD_TRY(md_allocate(context, bytes, "inner products", &memory));
  memset(memory, 0, bytes);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; t++) {
    worker w = worker_of(&job, (double *)memory + t * share);
    for (int64_t i = strips * t / threads; i < strips * (t + 1) / threads; i++) {
      const strip_place s = strip_at(g, i);
      if (y->n_rhs == 1)
        strip_of_one(&job, &w, &s);
      else
        strip_of_many(&job, &w, &s);
    }
  }
  memset(sums, 0, 4 * (size_t)count * (size_t)y->n_rhs * sizeof *sums);
  for (int t = 0; t < threads; t++) {
    const worker w = worker_of(&job, (double *)memory + t * share);
    take_sums(&job, &w, sums);
  }
  free(memory);
  return MD_OK;
}

/* Whether whole strips of x are used where they lie. */
static bool in_place(const md_field *x, int columns, int sites) {
  return x->precision == MD_DOUBLE && columns == 1 && sites == SITES;
}

/* Column i of `columns` of a strip of sites into y; `loaded` holds the vectors, [vector][component]
 * [site], where they are not used in place, and room for one more. */
static void add_column(int count, const md_field *x, double *loaded, const double *c, int columns,
                       int i, int64_t first, int sites, md_field *y, bool assign) {
  double *block = loaded + count * block_reals(y);
  memset(block, 0, (size_t)block_reals(y) * sizeof *block);
  for (int k = 0; k < y->components && !assign; k++)
    load_line(MD_DOUBLE, y, k, first, sites, block + k * SITES);
  for (int k = 0; k < count; k++) {
    const bool lies = in_place(x, columns, sites);
    add_one(y->components, c + 2 * ((int64_t)k * columns + i),
            lies ? (const double *)x[k].data + first : loaded + k * block_reals(y),
            lies ? x[k].stride : SITES, block);
  }
  for (int k = 0; k < y->components; k++)
    memcpy((double *)y->data + k * y->stride + first, block + k * SITES,
           (size_t)sites * sizeof *block);
}

/* All right-hand sides of a strip of sites, pairs of components by threes. */
static void add_rows(int count, int width, const double *x, const double *plain,
                     const double *turned, int64_t first, int sites, md_field *y) {
  enum { AT_ONCE = 3 };
  double rows[AT_ONCE * (2 * MD_MAX_RHS + 8)] = {0};
  const int reals = 2 * y->n_rhs, all = y->components / 2;
  for (int s = 0; s < sites; s++)
    for (int c = 0; c < all; c += AT_ONCE) {
      const int now = all - c < AT_ONCE ? all - c : AT_ONCE;
      double *at = (double *)y->data + md_field_at(y, first + s, 2 * c, 0);
      const double *from = x + 2 * c * SITES + s;
      for (int k = 0; k < now; k++)
        memcpy(rows + k * width, at + k * reals, (size_t)reals * sizeof *rows);
      if (now == AT_ONCE)
        add_many(AT_ONCE, count, width, block_reals(y), from, plain, turned, rows);
      else
        add_many(now, count, width, block_reals(y), from, plain, turned, rows);
      for (int k = 0; k < now; k++)
        memcpy(at + k * reals, rows + k * width, (size_t)reals * sizeof *rows);
    }
}

static md_status add(md_context *context, int count, const md_field *x, const double *c, int fields,
                     md_field *y, bool assign) {
  const int n = y->n_rhs, width = md_padded(n, MD_LANES_OF_double);
  const size_t rows = (size_t)count * (size_t)width, share = (size_t)((count + 1) * block_reals(y));
  const size_t bytes = (2 * rows + share * (size_t)context->threads) * sizeof(double);
  const int64_t strips = (y->sites + SITES - 1) / SITES;
  void *memory;
  MD_TRY(md_allocate(context, bytes, "sums of vectors", &memory));
  double *plain = memory, *turned = plain + rows, *of_threads = turned + rows;
  memset(plain, 0, 2 * rows * sizeof *plain);
  for (int64_t k = 0; k < count && n > 1; k++)
    md_turn_row(2 * n, 1.0, c + 2 * k * n, plain + k * width, turned + k * width);
#pragma omp parallel for num_threads(context->threads) schedule(static)
  for (int t = 0; t < context->threads; t++)
    for (int64_t b = strips * t / context->threads; b < strips * (t + 1) / context->threads; b++) {
      double *block = of_threads + (size_t)t * share;
      const int64_t first = b * SITES, left = y->sites - first;
      const int sites = (int)(left < SITES ? left : SITES);
      const bool loads = n > 1 || !in_place(x, fields, sites);
      if (loads && sites < SITES) memset(block, 0, share * sizeof *block);
      for (int k = 0; loads && k < count; k++)
        for (int i = 0; i < y->components; i++)
          load_line(x->precision, &x[k], i, first, sites, block + k * block_reals(y) + i * SITES);
      if (n > 1) add_rows(count, width, block, plain, turned, first, sites, y);
      for (int i = 0; n == 1 && i < fields; i++)
        add_column(count, x, block, c, fields, i, first, sites, &y[i], assign);
    }
  free(memory);
  return MD_OK;
}

const md_panel_space MD_JOIN(md_panel_host_, MD_ISA) = {dots, add};
