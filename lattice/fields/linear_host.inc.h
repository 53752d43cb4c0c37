/* Vector operations on the host for one storage type, included by a five-line .c with
 *   PRECISION  as md_field has it       SUFFIX   its name
 *   STORED   the stored type          ARITH   the arithmetic type
 *   LOAD(s)  STORED -> ARITH          STORE(a) ARITH -> STORED
 *   DIRECT   1 when both types are one and nothing is scaled: strips are used where they lie
 *   SCALED   1 when sites carry a scale
 * and compiled once for each instruction set (MD_ISA names it), without fused multiply-adds: the
 * results are the same for all of them, and for a site in the last part of a loop as in the others.
 * Loops over lanes are plain, so that the compiler vectorises them. */

#include "lattice/fields/linear_table.h"
#include "lattice/fields/strips.inc.h"
#include "lattice/fields/sum.h"

#include <string.h>

/* y = a x + b y; a or b NULL: one. */
static void combine(const double *a, const md_field *x, const double *b, md_field *y) {
  ARITH left[MOST_LANES], right[MOST_LANES];
  spread(y, a, left);
  spread(y, b, right);
  const int most = sites_per_strip(y);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < y->sites; i += most) {
    const strip s = strip_at(y, i, (int)(y->sites - i < most ? y->sites - i : most));
    const strip from = strip_at(x, i, s.lanes);
    ARITH buffer[2][MOST_REALS];
    const view xs = strip_load(x, &from, buffer[0]), ys = strip_load(y, &s, buffer[1]);
    for (int c = 0; c < s.planes; c++) {
      const ARITH *from_x = xs.at + c * xs.distance;
      ARITH *to_y = ys.at + c * ys.distance;
      for (int l = 0; l < s.lanes; l++) to_y[l] = left[l] * from_x[l] + right[l] * to_y[l];
    }
    strip_store(y, &s, ys);
  }
}

static void axpy(const double *a, const md_field *x, md_field *y) {
  combine(a, x, NULL, y);
}
static void xpby(const md_field *x, const double *b, md_field *y) {
  combine(NULL, x, b, y);
}

static void axpy_complex(const double *re, const double *im, const md_field *x, md_field *y) {
  ARITH left[MOST_LANES], right[MOST_LANES];
  spread(y, re, left);
  spread(y, im, right);
  const int most = sites_per_strip(y);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < y->sites; i += most) {
    const strip s = strip_at(y, i, (int)(y->sites - i < most ? y->sites - i : most));
    const strip from = strip_at(x, i, s.lanes);
    ARITH buffer[3][MOST_REALS];
    const view xs = strip_load(x, &from, buffer[0]), ys = strip_load(y, &s, buffer[1]);
    const view turned = strip_turn(x, &from, xs, buffer[2]);
    for (int c = 0; c < s.planes; c++)
      for (int l = 0; l < s.lanes; l++)
        ys.at[c * ys.distance + l] +=
            left[l] * xs.at[c * xs.distance + l] + right[l] * turned.at[c * turned.distance + l];
    strip_store(y, &s, ys);
  }
}

enum { TOGETHER = 8 }; /* pairs that share a strip of r */

/* Coefficients of a pair in all lanes, a step each. */
typedef struct spread_steps {
  ARITH a[MD_LINEAR_MOST_STEPS][MOST_LANES], b[MD_LINEAR_MOST_STEPS][MOST_LANES];
} spread_steps;

static void cg_update_strip(const spread_steps *by, int steps, const view *rs, md_field *p,
                            md_field *x, int64_t site, int sites) {
  const strip sx = strip_at(x, site, sites), sp = strip_at(p, site, sites);
  ARITH buffer[2][MOST_REALS];
  const view xs = strip_load(x, &sx, buffer[0]), ps = strip_load(p, &sp, buffer[1]);
  for (int c = 0; c < sx.planes; c++) {
    ARITH *to_x = xs.at + c * xs.distance, *to_p = ps.at + c * ps.distance;
    for (int j = 0; j < steps; j++) {
      const ARITH *from_r = rs[j].at + c * rs[j].distance, *a = by->a[j], *b = by->b[j];
      for (int l = 0; l < sx.lanes; l++) {
        to_x[l] += a[l] * to_p[l];
        to_p[l] = from_r[l] + b[l] * to_p[l];
      }
    }
  }
  strip_store(x, &sx, xs);
  strip_store(p, &sp, ps);
}

static void cg_updates(int count, int steps, const double *const *a, const double *const *b,
                       const md_field *const *r, md_field *const *p, md_field *const *x) {
  const int most = sites_per_strip(r[0]), now = count < TOGETHER ? count : TOGETHER;
  spread_steps by[TOGETHER];
  for (int k = 0; k < now; k++)
    for (int j = 0; j < steps; j++) {
      spread(x[k], a[k * steps + j], by[k].a[j]);
      spread(x[k], b[k * steps + j], by[k].b[j]);
    }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < r[0]->sites; i += most) {
    const int sites = (int)(r[0]->sites - i < most ? r[0]->sites - i : most);
    ARITH buffer[MD_LINEAR_MOST_STEPS][MOST_REALS];
    view rs[MD_LINEAR_MOST_STEPS];
    for (int j = 0; j < steps; j++) {
      const strip sr = strip_at(r[j], i, sites);
      rs[j] = strip_load(r[j], &sr, buffer[j]);
    }
    for (int k = 0; k < now; k++) cg_update_strip(&by[k], steps, rs, p[k], x[k], i, sites);
  }
  if (count > now)
    cg_updates(count - now, steps, a + now * steps, b + now * steps, r, p + now, x + now);
}

static void cg_update(const double *a, const double *b, const md_field *r, md_field *p,
                      md_field *x) {
  cg_updates(1, 1, &a, &b, &r, &p, &x);
}

/* What one strip adds to the lanes' sums; may also write. */
typedef void (*strip_sum)(const ARITH *a, const md_field *x, md_field *y, const strip *sx,
                          const strip *sy, double *lane);

static void sum_product(const ARITH *a, const md_field *x, md_field *y, const strip *sx,
                        const strip *sy, double *lane) {
  ARITH buffer[2][MOST_REALS];
  (void)a;
  const view xs = strip_load(x, sx, buffer[0]), ys = y == x ? xs : strip_load(y, sy, buffer[1]);
  for (int c = 0; c < sx->planes; c++) {
    const ARITH *u = xs.at + c * xs.distance, *v = ys.at + c * ys.distance;
    for (int l = 0; l < sx->lanes; l++) lane[l] += (double)u[l] * (double)v[l];
  }
}

static void sum_turned(const ARITH *a, const md_field *x, md_field *y, const strip *sx,
                       const strip *sy, double *lane) {
  ARITH buffer[3][MOST_REALS];
  (void)a;
  const view xs = strip_load(x, sx, buffer[0]), ys = strip_load(y, sy, buffer[1]);
  const view turned = strip_turn(x, sx, xs, buffer[2]);
  for (int c = 0; c < sx->planes; c++)
    for (int l = 0; l < sx->lanes; l++)
      lane[l] += (double)turned.at[c * turned.distance + l] * (double)ys.at[c * ys.distance + l];
}

/* The norm is that of what was stored, after rounding. */
static void sum_axpy(const ARITH *a, const md_field *x, md_field *y, const strip *sx,
                     const strip *sy, double *lane) {
  ARITH buffer[2][MOST_REALS];
  const view xs = strip_load(x, sx, buffer[0]), ys = strip_load(y, sy, buffer[1]);
  for (int c = 0; c < sx->planes; c++) {
    const ARITH *u = xs.at + c * xs.distance;
    ARITH *v = ys.at + c * ys.distance;
    for (int l = 0; l < sx->lanes; l++) v[l] += a[l] * u[l];
  }
  strip_store(y, sy, ys);
  const view stored = strip_load(y, sy, buffer[1]);
  for (int c = 0; c < sx->planes; c++) {
    const ARITH *v = stored.at + c * stored.distance;
    for (int l = 0; l < sx->lanes; l++) lane[l] += (double)v[l] * (double)v[l];
  }
}

/* The sums of cells of 2x2x2x2 sites are added to sums[rhs]. A cell is given by half the
 * coordinates z, t of its first site. */

/* One right-hand side: the cells of an even number of rows from `row` and of `columns` from
 * `first`, no more than MOST_LANES / 2 sites of whole rows, or as many of each of two. A cell's
 * four sites of one y are added in the order t, z. */
static void row_sums(const ARITH *a, const md_field *x, md_field *y, const int cell[2], int row,
                     int rows, int first, int columns, strip_sum add, md_sum *sums) {
  const md_geometry *g = x->geometry;
  const int half = g->local[0] / 2;
  const int runs = columns == half && rows * columns <= MOST_LANES / 2 ? 1 : rows;
  const int length = rows / runs * columns; /* of sites that follow each other */
  double lane[MOST_LANES] = {0};
  for (int corner = 0; corner < 4; corner++)
    for (int run = 0; run < runs; run++) {
      const int64_t line =
          ((int64_t)(2 * cell[1] + (corner >> 1)) * g->local[2] + 2 * cell[0] + (corner & 1)) *
              g->local[1] +
          row + run;
      const int64_t site = line * half + first;
      const strip sx = strip_at(x, site, length), sy = strip_at(y, site, length);
      add(a, x, y, &sx, &sy, lane + run * length);
    }
  for (int r = 0; r < rows; r += 2)
    for (int c = 0; c < columns; c++)
      md_sum_add(&sums[0], lane[r * columns + c] + lane[(r + 1) * columns + c]);
}

static void plane_sums_of_one(const ARITH *a, const md_field *x, md_field *y, const int cell[2],
                              strip_sum add, md_sum *sums) {
  const int half = x->geometry->local[0] / 2, all = x->geometry->local[1];
  const int most = MOST_LANES / 2, columns = 2 * half <= most ? half : most;
  const int together = columns == half ? most / half / 2 * 2 : 2; /* rows */
  for (int row = 0; row < all; row += together)
    for (int first = 0; first < half; first += columns)
      row_sums(a, x, y, cell, row, all - row < together ? all - row : together, first,
               half - first < columns ? half - first : columns, add, sums);
}

/* Many: cell by cell, whose sites are added in the order t, z, y. */
static void plane_sums_of_many(const ARITH *a, const md_field *x, md_field *y, const int cell[2],
                               strip_sum add, md_sum *sums) {
  const md_geometry *g = x->geometry;
  const int half = g->local[0] / 2;
  for (int row = 0; row < g->local[1]; row += 2)
    for (int column = 0; column < half; column++) {
      double lane[MOST_LANES] = {0};
      for (int corner = 0; corner < 8; corner++) {
        const int64_t line = ((int64_t)(2 * cell[1] + (corner >> 2)) * g->local[2] + 2 * cell[0] +
                              (corner >> 1 & 1)) *
                                 g->local[1] +
                             row + (corner & 1);
        const int64_t site = line * half + column;
        const strip sx = strip_at(x, site, 1), sy = strip_at(y, site, 1);
        add(a, x, y, &sx, &sy, lane);
      }
      for (int r = 0; r < x->n_rhs; r++) md_sum_add(&sums[r], lane[2 * r] + lane[2 * r + 1]);
    }
}

static md_status reduce(md_context *context, const double *a, const md_field *x, md_field *y,
                        strip_sum add, double *values) {
  const int n[2] = {x->geometry->local[2] / 2, x->geometry->local[3] / 2};
  md_sum all[MD_MAX_RHS];
  ARITH as[MOST_LANES];
  memset(all, 0, (size_t)x->n_rhs * sizeof *all);
  spread(x, a, as);
#pragma omp parallel
  {
    md_sum mine[MD_MAX_RHS];
    memset(mine, 0, (size_t)x->n_rhs * sizeof *mine);
#pragma omp for schedule(static)
    for (int k = 0; k < n[0] * n[1]; k++) {
      const int cell[2] = {k % n[0], k / n[0]};
      if (x->n_rhs == 1)
        plane_sums_of_one(as, x, y, cell, add, mine);
      else
        plane_sums_of_many(as, x, y, cell, add, mine);
    }
#pragma omp critical
    for (int r = 0; r < x->n_rhs; r++) md_sum_merge(&all[r], &mine[r]);
  }
  return md_sum_finish(context, all, x->n_rhs, values);
}

/* Sums on the host are exact before they are rounded, so that guesses are not needed. */
static md_status norm2(md_context *context, const md_field *x, const double *guess, double *norms) {
  (void)guess;
  return reduce(context, NULL, x, (md_field *)x, sum_product, norms);
}

static md_status dot(md_context *context, const md_field *x, const md_field *y, const double *guess,
                     double *dots) {
  (void)guess;
  return reduce(context, NULL, x, (md_field *)y, sum_product, dots);
}

static md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
                      double *values) {
  for (int k = 0; k < count; k++, values += 2 * y->n_rhs) {
    MD_TRY(reduce(context, NULL, &x[k], (md_field *)y, sum_product, values));
    MD_TRY(reduce(context, NULL, &x[k], (md_field *)y, sum_turned, values + y->n_rhs));
  }
  return MD_OK;
}

static md_status axpy_norm2(md_context *context, const double *a, const md_field *x, md_field *y,
                            const double *guess, double *norms) {
  (void)guess;
  return reduce(context, a, x, y, sum_axpy, norms);
}

/* The bits of the local sites. */
static void copy(md_field *out, const md_field *in) {
  const size_t entry = (size_t)md_field_entry(in) * sizeof(STORED);
  const int planes = md_field_planes(in);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < in->sites; i += 64) {
    const size_t sites = (size_t)(in->sites - i < 64 ? in->sites - i : 64);
    for (int c = 0; c < planes; c++)
      memcpy((char *)out->data + (size_t)(c * out->stride + i) * entry,
             (const char *)in->data + (size_t)(c * in->stride + i) * entry, sites * entry);
    if (in->scale) memcpy(out->scale + i, in->scale + i, sites * sizeof(float));
  }
}

static void zero(md_field *x) {
  const size_t entry = (size_t)md_field_entry(x) * sizeof(STORED);
  const int planes = md_field_planes(x);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < x->sites; i += 64) {
    const size_t sites = (size_t)(x->sites - i < 64 ? x->sites - i : 64);
    for (int c = 0; c < planes; c++)
      memset((char *)x->data + (size_t)(c * x->stride + i) * entry, 0, sites * entry);
    for (size_t k = 0; x->scale && k < sites; k++) x->scale[i + (int64_t)k] = MD_SCALE_OF_ZERO;
  }
}

#define JOIN3(a, b, c) a##b##_##c
#define NAME3(a, b, c) JOIN3(a, b, c)
const md_linear_table NAME3(md_linear_host_, SUFFIX, MD_ISA) = {
    zero, copy,       axpy,      xpby,       combine, norm2,
    dot,  axpy_norm2, cg_update, cg_updates, dots,    axpy_complex};
