#include "lattice/fields/panel_rows.h"
#include "lattice/fields/rows_lanes.h"

#include <string.h>

enum { COLOURS = 3, ROWS = MD_PANEL_REALS / 2 };

static void store(double *p, lanes v) {
  memcpy(p, &v, sizeof v);
}

/* What adding and taking away 1.5 * 2^52 units leaves is a whole number of them, whatever has been
 * added before; high += that, and low += the same of the rest. */
static inline void add_term(lanes term, lanes to_high, lanes to_low, lanes *high, lanes *low) {
  const lanes whole = (term + to_high) - to_high, rest = term - whole;
  *high += whole;
  *low += (rest + to_low) - to_low;
}

static double sum_of(lanes v) {
  double sum = 0.0;
  for (int l = 0; l < LANES; l++) sum += v[l];
  return sum;
}

static void dots_one(const double *x, const double *y, const md_panel_units *units, double *sums) {
  const lanes none = {0}, to_high = none + units->high, to_low = none + units->low;
  lanes high[2] = {none, none}, low[2] = {none, none};
  for (int cell = 0; cell < MD_PANEL_CELLS; cell += LANES) {
    lanes re = none, im = none;
    for (int row = 0; row < ROWS; row++) {
      const double *u = x + 2 * row * MD_PANEL_CELLS + cell;
      const double *v = y + 2 * row * MD_PANEL_CELLS + cell;
      const lanes ur = load(u), ui = load(u + MD_PANEL_CELLS);
      const lanes vr = load(v), vi = load(v + MD_PANEL_CELLS);
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

static void dots_many(int width, const double *const *x, const double *plain, const double *turned,
                      const double *to_high, const double *to_low, double *high, double *low) {
  for (int first = 0; first < width; first += LANES) {
    lanes sum[MD_PANEL_TOGETHER] = {0};
    for (int row = 0; row < ROWS; row++) {
      const lanes p = load(plain + row * width + first), t = load(turned + row * width + first);
      for (int k = 0; k < MD_PANEL_TOGETHER; k++) {
        const double *at = x[k] + 2 * row * MD_PANEL_CELLS;
        sum[k] += at[0] * p + at[MD_PANEL_CELLS] * t;
      }
    }
    for (int k = 0; k < MD_PANEL_TOGETHER; k++) {
      double *to = high + k * width + first, *rest = low + k * width + first;
      lanes h = load(to), l = load(rest);
      add_term(sum[k], load(to_high + first), load(to_low + first), &h, &l);
      store(to, h);
      store(rest, l);
    }
  }
}

static void add_one(const double *c, const double *x, int64_t distance, double *y) {
  for (int colour = 0; colour < COLOURS; colour++) {
    const double *re = x + 2 * colour * distance, *im = re + distance;
    double *to_re = y + 2 * colour * MD_PANEL_SITES, *to_im = to_re + MD_PANEL_SITES;
    for (int i = 0; i < MD_PANEL_SITES; i += LANES) {
      const lanes xr = load(re + i), xi = load(im + i);
      store(to_re + i, load(to_re + i) + c[0] * xr - c[1] * xi);
      store(to_im + i, load(to_im + i) + c[0] * xi + c[1] * xr);
    }
  }
}

static void add_many(int count, int width, const double *x, const double *plain,
                     const double *turned, double *y) {
  for (int first = 0; first < width; first += LANES) {
    lanes sum[COLOURS];
    for (int c = 0; c < COLOURS; c++) sum[c] = load(y + c * width + first);
    for (int k = 0; k < count; k++) {
      const double *at = x + (int64_t)k * 2 * COLOURS * MD_PANEL_SITES;
      const lanes p = load(plain + (int64_t)k * width + first);
      const lanes t = load(turned + (int64_t)k * width + first);
      for (int c = 0; c < COLOURS; c++)
        sum[c] += at[2 * c * MD_PANEL_SITES] * p + at[(2 * c + 1) * MD_PANEL_SITES] * t;
    }
    for (int c = 0; c < COLOURS; c++) store(y + c * width + first, sum[c]);
  }
}

const md_panel_rows NAME(md_panel_rows_, MD_ISA) = {LANES, dots_one, dots_many, add_one, add_many};
