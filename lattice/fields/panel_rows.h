#ifndef MD_LATTICE_FIELDS_PANEL_ROWS_H
#define MD_LATTICE_FIELDS_PANEL_ROWS_H

#include "base/instruction_set.h"
#include "lattice/fields/panel_space.h"

#include <stdint.h>

/* Inner loops of panel.h on the host, compiled once for each instruction set. A cell is the eight
 * sites of one parity in an aligned 2x2x2x2 cube; MD_PANEL_CELLS neighbours along x make a strip,
 * and so do MD_PANEL_SITES neighbouring sites. Rows of right-hand sides are `width` reals long, a
 * multiple of the chunk, and padded by zeros; (re, im) pairs, and `turned` (im, -re) of y, (-im,
 * re) of coefficients. */
enum {
  MD_PANEL_CELLS = 16,
  MD_PANEL_SITES = 64,
  MD_PANEL_CORNERS = 8,
  MD_PANEL_REALS = 6 * MD_PANEL_CORNERS, /* of a cell: [corner][component] */
  MD_PANEL_TOGETHER = 4                  /* vectors that are multiplied at once */
};

typedef struct md_panel_rows {
  int chunk;
  /* sums[4] += <x, y> over a strip of cells, x and y [MD_PANEL_REALS][MD_PANEL_CELLS]. */
  void (*dots_one)(const double *x, const double *y, const md_panel_units *units, double *sums);
  /* The same with right-hand sides: a cell's rows plain and turned, [24][width]; the cell's numbers
   * of MD_PANEL_TOGETHER vectors, x[k] with MD_PANEL_CELLS from one to the next. high and low are
   * [MD_PANEL_TOGETHER][width], to_high and to_low the units of each lane, [width]. */
  void (*dots_many)(int width, const double *const *x, const double *plain, const double *turned,
                    const double *to_high, const double *to_low, double *high, double *low);
  /* y += c x for a strip of sites, y [6][MD_PANEL_SITES], the components of x `distance` apart; c
   * is (re, im). */
  void (*add_one)(const double *c, const double *x, int64_t distance, double *y);
  /* The three rows of y of one site += sum over `count` vectors k of its number x_k, whose six
   * reals are MD_PANEL_SITES apart and those of the next vector 6 MD_PANEL_SITES, times row k of
   * plain and turned coefficients. */
  void (*add_many)(int count, int width, const double *x, const double *plain, const double *turned,
                   double *y);
} md_panel_rows;

MD_DECLARE_EVERY_ISA(const md_panel_rows, md_panel_rows);

#endif
