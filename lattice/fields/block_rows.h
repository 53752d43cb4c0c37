#ifndef MD_LATTICE_FIELDS_BLOCK_ROWS_H
#define MD_LATTICE_FIELDS_BLOCK_ROWS_H

#include "base/instruction_set.h"
#include "lattice/fields/field.h"

/* Inner loops of the block operations on the host, compiled once for each instruction set. A row
 * is the n complex numbers of a site and colour. Padded rows are `width` reals long. */
enum { MD_BLOCK_ROWS = 3, MD_BLOCK_CELL_ROWS = 24 }; /* of a site, of a cell of eight sites */

/* A small matrix as rows of (re, im) and of i times them, (-im, re); both n x width. */
typedef struct md_block_matrix {
  double *plain, *turned;
} md_block_matrix;

typedef struct md_block_rows {
  int chunk; /* width is a multiple of it */
  /* z += y c, then y = y b + x a for the rows of a site; x with a, z with c may be NULL. */
  void (*update)(int n, int width, const md_block_matrix *b, const double *x,
                 const md_block_matrix *a, double *y, double *z, const md_block_matrix *c);
  /* cell[i][2 j ..] = sum over the rows of conj(x_i) y_j, for i <= j at least, for all where
   * `whole`; x[row], plain[row] and turned[row], y as (re, im) and as (im, -re), are padded by
   * zeros. cell is n rounded up to a multiple of 4 rows. */
  void (*gram)(int n, int width, const double *x, const double *plain, const double *turned,
               bool whole, double *cell);
  /* Adds `count` numbers whose absolute values add up to less than `limit` to high, in units of
   * 2^-32 limit, and what that leaves to low, in units of 2^-64 limit: additions without rounding,
   * so that their order does not matter. False, and nothing added, for larger or infinite ones. */
  bool (*add)(int count, double limit, const double *numbers, double *high, double *low);
  /* The rows of a site of a field that is not MD_DOUBLE, as doubles; and the field's from those,
   * which become what was stored. */
  void (*load)(const md_field *f, int64_t site, double *rows);
  void (*store)(double *rows, md_field *f, int64_t site);
} md_block_rows;

MD_DECLARE_EVERY_ISA(const md_block_rows, md_block_rows);

#endif
