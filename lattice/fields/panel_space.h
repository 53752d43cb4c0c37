#ifndef MD_LATTICE_FIELDS_PANEL_SPACE_H
#define MD_LATTICE_FIELDS_PANEL_SPACE_H

#include "lattice/fields/panel.h"

/* The units of exact sums: 1.5 * 2^52 of each. A term is rounded to a whole number of high units,
 * what that loses to low ones; doubles hold up to 2^29 such numbers' sums exactly. */
typedef struct md_panel_units {
  double high, low;
} md_panel_units;

/* The operations of panel.h in one space. Local. */
typedef struct md_panel_space {
  /* sums[4 (k n_rhs + r)]: real part, high and low, imaginary part, high and low, of <x_k, y_r> on
   * this rank, as values; units[r] belongs to right-hand side r. */
  md_status (*dots)(md_context *context, int count, const md_field *x, const md_field *y,
                    const md_panel_units *units, double *sums);
  /* The columns of y are n_rhs right-hand sides of one field, or `fields` fields of one; c is
   * [count][columns]; assigned instead of added to where `assign`. */
  md_status (*add)(md_context *context, int count, const md_field *x, const double *c, int fields,
                   md_field *y, bool assign);
} md_panel_space;

extern const md_panel_space md_panel_host, md_panel_device;

#endif
