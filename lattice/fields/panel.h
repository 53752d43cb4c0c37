#pragma once

#include "lattice/fields/field.h"

/* Products of many vectors with one or a few, in one pass over the many. The many are fields
 * x[0 .. count) of one right-hand side, of one precision, space and parity; what they meet are
 * MD_DOUBLE fields of that space, parity and geometry. Arithmetic is in double. Small matrices are
 * host arrays of (re, im) pairs. Every function dispatches on the space of the fields, works on
 * the local sites and waits for a device. */

/* dots[2 (k n_rhs + r)] and the number behind it: real and imaginary part of <x_k, y_r>, linear in
 * y, for vectors x of norm 1 about (3 at most). The same to the last bit for every rank grid and
 * thread count, on the host and on a device each (the sums are exact before they are rounded: a
 * term of eight sites, on a device of one, loses 2^-68 |y_r| at most). NaN where a number is not
 * finite. Meets a deferred failure (md_defer). Collective. */
md_status md_panel_dots(md_context *context, int count, const md_field *x, const md_field *y,
                        double *dots);

/* y_r += sum over k of c[k][r] x_k; c is [count][n_rhs]. Local. */
md_status md_panel_add(md_context *context, int count, const md_field *x, const double *c,
                       md_field *y);

/* out[i] = sum over k of rotation[i][k] x_k for i < rows; the fields out have one right-hand side
 * and are none of x. rotation is [rows][count]. Local. */
md_status md_panel_rotate(md_context *context, int count, const md_field *x, int rows,
                          const double *rotation, md_field *out);
