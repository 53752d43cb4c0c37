/* Vector operations on the host for one storage type, compiled for each PRECISION (SUFFIX is its
 * name, MD_REAL the type of arithmetic) and each instruction set (MD_ISA), without fused
 * multiply-adds: the results are the same for all of them, and for a site in the last part of a
 * loop as in the others. Loops over lanes are plain, so that the compiler vectorises them. */
#include "lattice/fields/reals.h"
#include "lattice/fields/spaces.h"
#include "lattice/fields/sum.h"

#include <stdlib.h>

enum {
  DIRECT = PRECISION == MD_DOUBLE || PRECISION == MD_SINGLE, /* arithmetic in the stored type */
  MOST_LANES = 2 * MD_MAX_RHS,
  MOST_SITES = MOST_LANES / 2,                 /* of a strip of one right-hand side */
  MOST_REALS = MD_MAX_COMPONENTS * MD_MAX_RHS, /* of a strip */
  LONG_ROW = DIRECT ? 32 : MOST_LANES,         /* lanes: with more the loops gain nothing */
  BUFFER = DIRECT ? 1 : MOST_REALS + 80 /* of one that is converted; no multiple of 4 KiB apart */
};
_Static_assert(MOST_SITES *MD_MAX_COMPONENTS <= MOST_REALS, "one right-hand side");

/* Work goes in strips: `planes` rows of `lanes` consecutive reals. With one right-hand side a strip
 * is up to MOST_SITES neighbouring sites of a row, a plane for each component; with many it is as
 * many sites as one row holds whole, or one site in equal rows of whole n_rhs complex numbers, of
 * one where that is long. Lanes map to right-hand sides by their index, so both layouts run through
 * the same loops. */
typedef struct strip {
  int64_t site, start, apart;       /* first site; in the field: first real, from plane to plane */
  int sites, planes, lanes, period; /* lanes that a right-hand side has one number in */
  MD_REAL *at; /* lane l of plane c at at[c * distance + l]: in the field or a buffer */
  int64_t distance;
} strip;

/* Rows of a site with many right-hand sides, each of at most MOST_LANES. */
static inline int rows_of_many(const md_field *f) {
  const int numbers = f->components / 2;
  if (2 * f->n_rhs >= LONG_ROW) return numbers;
  int rows = (numbers * 2 * f->n_rhs + MOST_LANES - 1) / MOST_LANES;
  while (numbers % rows != 0) rows++;
  return rows;
}

/* The strips of a field: the sites of a strip, and of that from site i. */
static inline int sites_per_strip(const md_field *f) {
  const int reals = f->components * f->n_rhs;
  if (md_field_planar(f)) return MOST_SITES;
  return 2 * f->n_rhs < LONG_ROW && reals < MOST_LANES ? MOST_LANES / reals : 1;
}
static inline int sites_from(const md_field *f, int64_t i) {
  const int most = sites_per_strip(f);
  return (int)(f->sites - i < most ? f->sites - i : most);
}

/* True when the values are used where they lie: nothing to convert. That holds for every operand
 * of a DIRECT type, and for one in the arithmetic type beside 16-bit ones. */
static inline bool in_place(const md_field *f) {
  return DIRECT || f->precision == MD_SINGLE;
}

/* The strip of `sites` sites from `site`, no more than one holds; `buffer` holds its values where
 * they are not used in place. */
static inline strip strip_load(const md_field *f, int64_t site, int sites,
                               MD_REAL *restrict buffer) {
  const bool one = md_field_planar(f);
  const int reals = f->components * f->n_rhs; /* of a site */
  const int planes = one ? f->components : rows_of_many(f);
  const int lanes = one ? sites : sites * reals / planes;
  strip s = {.site = site,
             .start = one ? site : site * reals,
             .apart = one ? f->stride : lanes,
             .sites = sites,
             .planes = planes,
             .lanes = lanes,
             .period = one ? lanes : 2 * f->n_rhs,
             .at = buffer,
             .distance = lanes};
  if (in_place(f)) {
    s.at = (MD_REAL *)f->data + s.start, s.distance = s.apart;
    return s;
  }
  for (int c = 0; c < planes; c++)
    md_load_reals(PRECISION, f->data, s.start + c * s.apart, lanes, buffer + c * lanes);
  if (!md_is_scaled(PRECISION)) return s;
  const float *scale = f->scale + site;
  for (int c = 0; one && c < planes; c++)
    for (int l = 0; l < lanes; l++) buffer[c * lanes + l] *= scale[l];
  for (int i = 0; !one && i < sites; i++)
    for (int l = 0; l < reals; l++) buffer[i * reals + l] *= scale[i];
  return s;
}

/* Sets new scales; changes the values. */
static inline void strip_rescale(const md_field *f, const strip *s) {
  int32_t largest[MOST_LANES] = {0};
  float inverse[MOST_LANES], *scale = f->scale + s->site;
  if (!md_field_planar(f)) { /* one scale for a site, whose reals follow each other */
    const int reals = f->components * f->n_rhs;
    for (int k = 0; k < s->sites; k++) {
      MD_REAL *values = s->at + k * reals;
      int32_t most = 0;
      for (int l = 0; l < reals; l++) most = md_larger_bits(most, (float)values[l]);
      scale[k] = md_scale_of_bits(PRECISION, most);
      const float by = 1.0f / scale[k];
      for (int l = 0; l < reals; l++) values[l] *= by;
    }
    return;
  }
  for (int c = 0; c < s->planes; c++)
    for (int l = 0; l < s->lanes; l++)
      largest[l] = md_larger_bits(largest[l], (float)s->at[c * s->lanes + l]);
  for (int l = 0; l < s->lanes; l++) {
    scale[l] = md_scale_of_bits(PRECISION, largest[l]);
    inverse[l] = 1.0f / scale[l];
  }
  for (int c = 0; c < s->planes; c++)
    for (int l = 0; l < s->lanes; l++) s->at[c * s->lanes + l] *= inverse[l];
}

/* Ends a change of the values; nothing is left to do where they lie in the field. */
static inline void strip_store(const md_field *f, const strip *s) {
  if (in_place(f)) return;
  if (md_is_scaled(PRECISION)) strip_rescale(f, s);
  for (int c = 0; c < s->planes; c++)
    md_store_reals(PRECISION, f->data, s->start + c * s->apart, s->lanes, s->at + c * s->lanes);
}

/* i times the values: (re, im) are neighbouring planes of one right-hand side, neighbouring lanes
 * of many. The whole strip, so that what is read has been written long before. */
static inline void strip_turn(const md_field *f, const strip *s, MD_REAL *restrict buffer) {
  for (int c = 0; c < s->planes; c++) {
    MD_REAL *turned = buffer + c * s->lanes;
    const MD_REAL *other = s->at + (md_field_planar(f) ? c ^ 1 : c) * s->distance;
    if (!md_field_planar(f))
      for (int l = 0; l < s->lanes; l += 2) {
        turned[l] = -other[l + 1];
        turned[l + 1] = other[l];
      }
    else if (c & 1)
      for (int l = 0; l < s->lanes; l++) turned[l] = other[l];
    else
      for (int l = 0; l < s->lanes; l++) turned[l] = -other[l];
  }
}

/* A coefficient for every lane; NULL: one. */
static void spread(const md_field *f, const double *coefficient, MD_REAL lane[MOST_LANES]) {
  for (int l = 0; l < MOST_LANES; l++) {
    const int rhs = l / 2 % f->n_rhs;
    lane[l] = coefficient ? (MD_REAL)coefficient[rhs] : 1;
  }
}

/* y = a x + b y; a or b NULL: one. */
static void axpby(const double *a, const md_field *x, const double *b, md_field *y) {
  MD_REAL left[MOST_LANES], right[MOST_LANES];
  spread(y, a, left);
  spread(y, b, right);
#pragma omp parallel
  {
    MD_REAL buffer[2][BUFFER];
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < y->sites; i += sites_per_strip(y)) {
      const strip xs = strip_load(x, i, sites_from(y, i), buffer[0]);
      const strip ys = strip_load(y, i, sites_from(y, i), buffer[1]);
      for (int c = 0; c < ys.planes; c++) {
        const MD_REAL *from_x = xs.at + c * xs.distance;
        MD_REAL *to_y = ys.at + c * ys.distance;
        for (int l = 0; l < ys.lanes; l++) to_y[l] = left[l] * from_x[l] + right[l] * to_y[l];
      }
      strip_store(y, &ys);
    }
  }
}

static void add_one_complex(const double *re, const double *im, const md_field *x, md_field *y) {
  MD_REAL left[MOST_LANES], right[MOST_LANES];
  spread(y, re, left);
  spread(y, im, right);
#pragma omp parallel
  {
    MD_REAL buffer[2][BUFFER], turned[MOST_REALS];
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < y->sites; i += sites_per_strip(y)) {
      const strip xs = strip_load(x, i, sites_from(y, i), buffer[0]);
      const strip ys = strip_load(y, i, sites_from(y, i), buffer[1]);
      strip_turn(x, &xs, turned);
      for (int c = 0; c < ys.planes; c++)
        for (int l = 0; l < ys.lanes; l++)
          ys.at[c * ys.distance + l] +=
              left[l] * xs.at[c * xs.distance + l] + right[l] * turned[c * ys.lanes + l];
      strip_store(y, &ys);
    }
  }
}

static void add_complex(int count, const double (*re)[MD_MAX_RHS], const double (*im)[MD_MAX_RHS],
                        const md_field *x, md_field *y) {
  for (int k = 0; k < count; k++) add_one_complex(re[k], im[k], &x[k], y);
}

enum { TOGETHER = 8 }; /* pairs that share a strip of r */

/* Coefficients of a pair in all lanes, a step each. */
typedef struct spread_steps {
  MD_REAL a[MD_LINEAR_MOST_STEPS][MOST_LANES], b[MD_LINEAR_MOST_STEPS][MOST_LANES];
} spread_steps;

/* buffer: of two strips, `apart` reals from each other. */
static inline void cg_update_strip(const spread_steps *by, int steps, const strip *rs, md_field *p,
                                   md_field *x, int64_t site, MD_REAL *buffer, size_t apart) {
  const strip xs = strip_load(x, site, sites_from(x, site), buffer);
  const strip ps = strip_load(p, site, sites_from(x, site), buffer + apart);
  for (int c = 0; c < xs.planes; c++) {
    MD_REAL *to_x = xs.at + c * xs.distance, *to_p = ps.at + c * ps.distance;
    for (int j = 0; j < steps; j++) {
      const MD_REAL *from_r = rs[j].at + c * rs[j].distance, *a = by->a[j], *b = by->b[j];
      for (int l = 0; l < xs.lanes; l++) {
        to_x[l] += a[l] * to_p[l];
        to_p[l] = from_r[l] + b[l] * to_p[l];
      }
    }
  }
  strip_store(x, &xs);
  strip_store(p, &ps);
}

/* A thread's part of the first `now` solutions. */
static void cg_update_strips(const spread_steps *by, int now, int steps, const md_field *const *r,
                             md_field *const *p, md_field *const *x, MD_REAL *buffer,
                             size_t apart) {
#pragma omp for schedule(static) nowait
  for (int64_t i = 0; i < r[0]->sites; i += sites_per_strip(r[0])) {
    strip rs[MD_LINEAR_MOST_STEPS];
    for (int j = 0; j < steps; j++)
      rs[j] = strip_load(r[j], i, sites_from(r[j], i), buffer + (2 + (size_t)j) * apart);
    for (int k = 0; k < now; k++) cg_update_strip(&by[k], steps, rs, p[k], x[k], i, buffer, apart);
  }
}

/* The same where no memory is to be had, with more of the stack than every thread has. */
static __attribute__((noinline)) void cg_update_on_stack(const spread_steps *by, int now, int steps,
                                                         const md_field *const *r,
                                                         md_field *const *p, md_field *const *x) {
  MD_REAL buffer[(MD_LINEAR_MOST_STEPS + 2) * BUFFER];
  cg_update_strips(by, now, steps, r, p, x, buffer, BUFFER);
}

static void cg_updates(int count, int steps, const double *const *a, const double *const *b,
                       const md_field *const *r, md_field *const *p, md_field *const *x) {
  const int now = count < TOGETHER ? count : TOGETHER;
  spread_steps by[TOGETHER];
  for (int k = 0; k < now; k++)
    for (int j = 0; j < steps; j++) {
      spread(x[k], a[k * steps + j], by[k].a[j]);
      spread(x[k], b[k * steps + j], by[k].b[j]);
    }
#pragma omp parallel
  {
    const size_t reals = (size_t)sites_per_strip(r[0]) * (size_t)(r[0]->components * r[0]->n_rhs);
    const size_t apart = DIRECT ? 1 : reals + BUFFER - MOST_REALS;
    MD_REAL *buffer = malloc(((size_t)steps + 2) * apart * sizeof *buffer);
    if (buffer)
      cg_update_strips(by, now, steps, r, p, x, buffer, apart);
    else
      cg_update_on_stack(by, now, steps, r, p, x);
    free(buffer);
  }
  if (count > now)
    cg_updates(count - now, steps, a + now * steps, b + now * steps, r, p + now, x + now);
}

/* What one strip adds to the lanes' sums; may also write. */
typedef struct sum_job {
  const MD_REAL *a, *b;
  const md_field *x;
  md_field *y;
  MD_REAL (*buffer)[BUFFER], *turned;
  void (*add)(const struct sum_job *job, int64_t site, int sites, double *lane);
} sum_job;

/* Adds the products of two rows to the lanes of their sites and right-hand sides. */
static inline void add_products(const strip *s, const MD_REAL *u, const MD_REAL *v, double *lane) {
  if (s->period == s->lanes) {
    for (int l = 0; l < s->lanes; l++) lane[l] += (double)u[l] * (double)v[l];
    return;
  }
  double products[MOST_LANES], *next = products;
  const int in_row = s->lanes / s->sites / s->period; /* numbers of a site */
  for (int l = 0; l < s->lanes; l++) products[l] = (double)u[l] * (double)v[l];
  for (int i = 0; i < s->sites; i++, lane += s->period)
    for (int k = 0; k < in_row; k++, next += s->period)
      for (int l = 0; l < s->period; l++) lane[l] += next[l];
}

static void sum_product(const sum_job *job, int64_t site, int sites, double *lane) {
  const strip xs = strip_load(job->x, site, sites, job->buffer[0]);
  const strip ys = job->y == job->x ? xs : strip_load(job->y, site, sites, job->buffer[1]);
  for (int c = 0; c < xs.planes; c++)
    add_products(&xs, xs.at + c * xs.distance, ys.at + c * ys.distance, lane);
}

static void sum_turned(const sum_job *job, int64_t site, int sites, double *lane) {
  const strip xs = strip_load(job->x, site, sites, job->buffer[0]);
  const strip ys = strip_load(job->y, site, sites, job->buffer[1]);
  strip_turn(job->x, &xs, job->turned);
  for (int c = 0; c < xs.planes; c++)
    add_products(&xs, job->turned + c * xs.lanes, ys.at + c * ys.distance, lane);
}

/* The norm is that of what was stored, after rounding. */
static void sum_axpby(const sum_job *job, int64_t site, int sites, double *lane) {
  const strip xs = strip_load(job->x, site, sites, job->buffer[0]);
  const strip ys = strip_load(job->y, site, sites, job->buffer[1]);
  for (int c = 0; c < xs.planes; c++) {
    const MD_REAL *u = xs.at + c * xs.distance, *a = job->a, *b = job->b;
    MD_REAL *v = ys.at + c * ys.distance;
    for (int l = 0; l < xs.lanes; l++) v[l] = a[l] * u[l] + b[l] * v[l];
  }
  strip_store(job->y, &ys);
  const strip stored = strip_load(job->y, site, sites, ys.at);
  for (int c = 0; c < xs.planes; c++) {
    const MD_REAL *v = stored.at + c * stored.distance;
    add_products(&xs, v, v, lane);
  }
}

/* The sums of cells of 2x2x2x2 sites are added to sums[rhs]. A cell is given by half the
 * coordinates of its first site. */

/* One right-hand side: the cells of an even number of rows from `row` and of `columns` from
 * `first`, no more than MOST_SITES sites of whole rows, or as many of each of two. A cell's four
 * sites of one y are added in the order t, z. */
static void row_sums(const sum_job *job, const int64_t plane[MD_DIMS], int row, int rows, int first,
                     int columns, md_sum *sums) {
  const md_geometry *g = job->x->geometry;
  const int half = g->local[0] / 2;
  const int runs = columns == half && rows * columns <= MOST_SITES ? 1 : rows;
  const int length = rows / runs * columns; /* of sites that follow each other */
  double lane[MOST_LANES] = {0};
  int64_t site[MD_CORNERS];
  md_cell_sites(g, plane, site);
  for (int corner = 0; corner < MD_CORNERS; corner += 2)
    for (int run = 0; run < runs; run++)
      job->add(job, site[corner] + (int64_t)(row + run) * half + first, length,
               lane + run * length);
  for (int r = 0; r < rows; r += 2)
    for (int c = 0; c < columns; c++)
      md_sum_add(&sums[0], lane[r * columns + c] + lane[(r + 1) * columns + c]);
}

static void plane_sums_of_one(const sum_job *job, const int64_t plane[MD_DIMS], md_sum *sums) {
  const int half = job->x->geometry->local[0] / 2, all = job->x->geometry->local[1];
  const bool several = 2 * half <= MOST_SITES; /* rows at once */
  const int columns = several ? half : MOST_SITES;
  const int together = several ? MOST_SITES / half / 2 * 2 : 2;
  for (int row = 0; row < all; row += together)
    for (int first = 0; first < half; first += columns)
      row_sums(job, plane, row, all - row < together ? all - row : together, first,
               half - first < columns ? half - first : columns, sums);
}

/* Many: the cells of a row of them, `columns` from `cell` on; a cell's sites are added in the order
 * t, z, y. */
static void cell_sums_of_many(const sum_job *job, const int64_t cell[MD_DIMS], int columns,
                              md_sum *sums) {
  const int n = job->x->n_rhs, lanes = 2 * n;
  double lane[MOST_LANES];
  int64_t site[MD_CORNERS];
  for (int l = 0; l < columns * lanes; l++) lane[l] = 0.0;
  md_cell_sites(job->x->geometry, cell, site);
  for (int corner = 0; corner < MD_CORNERS; corner++) job->add(job, site[corner], columns, lane);
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < n; r++)
      md_sum_add(&sums[r], lane[c * lanes + 2 * r] + lane[c * lanes + 2 * r + 1]);
}

static void plane_sums_of_many(const sum_job *job, int64_t cell[MD_DIMS], md_sum *sums) {
  const md_geometry *g = job->x->geometry;
  const int half = g->local[0] / 2, most = sites_per_strip(job->x);
  for (cell[1] = 0; cell[1] < g->local[1] / 2; cell[1]++)
    for (cell[0] = 0; cell[0] < half; cell[0] += most)
      cell_sums_of_many(job, cell, (int)(half - cell[0] < most ? half - cell[0] : most), sums);
}

/* Sums of what job.add adds. They are exact before they are rounded: no guess is needed. */
static md_status reduce(md_context *context, sum_job job, double *values) {
  const int n = job.x->n_rhs, *local = job.x->geometry->local, z = local[2] / 2, t = local[3] / 2;
  md_sum all[MD_MAX_RHS];
  memset(all, 0, (size_t)n * sizeof *all);
#pragma omp parallel firstprivate(job)
  {
    md_sum mine[MD_MAX_RHS];
    MD_REAL buffer[2][BUFFER], turned[MOST_REALS];
    job.buffer = buffer;
    job.turned = turned;
    memset(mine, 0, (size_t)n * sizeof *mine);
#pragma omp for schedule(static)
    for (int k = 0; k < z * t; k++) {
      int64_t plane[MD_DIMS] = {0, 0, k % z, k / z};
      if (md_field_planar(job.x))
        plane_sums_of_one(&job, plane, mine);
      else
        plane_sums_of_many(&job, plane, mine);
    }
#pragma omp critical
    for (int r = 0; r < n; r++) md_sum_merge(&all[r], &mine[r]);
  }
  return md_sum_finish(context, all, n, values);
}

static md_status dot(md_context *context, const md_field *x, const md_field *y, const double *guess,
                     double *values) {
  (void)guess;
  return reduce(context, (sum_job){.x = x, .y = (md_field *)y, .add = sum_product}, values);
}

static md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
                      const double *guess, double *values) {
  (void)guess;
  for (int k = 0; k < count; k++, values += 2 * y->n_rhs) {
    MD_TRY(dot(context, &x[k], y, NULL, values));
    MD_TRY(reduce(context, (sum_job){.x = &x[k], .y = (md_field *)y, .add = sum_turned},
                  values + y->n_rhs));
  }
  return MD_OK;
}

static md_status axpby_norm2(md_context *context, const double *a, const md_field *x,
                             const double *b, md_field *y, const double *guess, double *norms) {
  MD_REAL as[MOST_LANES], bs[MOST_LANES];
  (void)guess;
  spread(x, a, as);
  spread(y, b, bs);
  return reduce(context, (sum_job){.a = as, .b = bs, .x = x, .y = y, .add = sum_axpby}, norms);
}

/* The bits of the local sites. */
static void copy(md_field *out, const md_field *in) {
  const size_t entry = (size_t)md_field_entry(out) * md_precision_bytes(PRECISION);
  const int planes = md_field_planes(out);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < out->sites; i += 64) {
    const size_t sites = (size_t)(out->sites - i < 64 ? out->sites - i : 64);
    for (int c = 0; c < planes; c++) {
      char *to = (char *)out->data + (size_t)(c * out->stride + i) * entry;
      if (in)
        memcpy(to, (const char *)in->data + (size_t)(c * in->stride + i) * entry, sites * entry);
      else
        memset(to, 0, sites * entry);
    }
    for (int64_t k = 0; out->scale && !in && k < (int64_t)sites; k++)
      out->scale[i + k] = MD_SCALE_OF_ZERO;
    if (out->scale && in) memcpy(out->scale + i, in->scale + i, sites * sizeof *in->scale);
  }
}

const md_linear_table MD_JOIN(md_linear_host_, MD_JOIN(SUFFIX, MD_JOIN(_, MD_ISA))) = {
    copy, axpby, add_complex, dot, dots, axpby_norm2, cg_updates, NULL, NULL};
