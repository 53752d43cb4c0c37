#pragma once

#include "lattice/fields/field.h"

/* The right-hand sides of a field as the n = n_rhs columns of a tall matrix: its products with
 * small matrices and with itself, for block solvers. Fields have 2 .. MD_MAX_BLOCK right-hand
 * sides, one space, and lie on their local sites. Those of a call are all MD_DOUBLE or all
 * narrower; on a device the latter are of one precision, but where z says otherwise, and have
 * MD_MAX_NARROW_BLOCK right-hand sides at most. Small matrices are host arrays of n x n complex
 * numbers, row-major [i][j] of (re, im) pairs. Every function dispatches on the space of the work
 * space, so that one solver source serves host and device.
 *
 * Sums and products are in double, whatever the fields are stored in, but for narrow fields on a
 * device: there a new number of y or z is good to some 2^-22 of its largest term, and md_block_gram
 * and md_block_cross of 16-bit fields and the sums of md_block_update to some 2^-22 of |x_i| |x_j|.
 */
enum { MD_MAX_BLOCK = 64, MD_MAX_NARROW_BLOCK = 32, MD_BLOCK_SLOTS = 2 };

/* Work space: sums on their way. */
typedef struct md_block md_block;
/* For fields of this shape. Local. */
md_status md_block_create(md_context *context, const md_field_shape *shape, md_block **block);
void md_block_destroy(md_block *block); /* NULL is fine */

/* Gram matrix x^H x, entry [i][j] = <x_i, x_j>, into a slot, 0 .. MD_BLOCK_SLOTS - 1, from which
 * md_block_wait takes it. On a device it is queued only. A failure is deferred (md_defer) until the
 * wait, which returns it on all ranks. Local. */
md_status md_block_gram(md_context *context, md_block *block, const md_field *x, int slot);

/* In one pass: z = z + y c, then y = y b + x a, then y^H y of the new y, as it is stored, into a
 * slot. The fields are different ones. Where y is narrow z is MD_SINGLE, and for the host only: on
 * a device md_block_add does what z is for, and `to` may take the new y. */
typedef struct md_block_step {
  const double *b;
  const md_field *x; /* NULL: nothing is added to y b; a is not read */
  const double *a;
  md_field *z; /* NULL: there is none; c is not read */
  const double *c;
  md_field *to;   /* narrow fields on a device; NULL: the new y replaces y */
  int slot;       /* < 0: no sum */
  bool backwards; /* a hint: take the sites from the last to the first */
} md_block_step;
/* The step's matrices may change after the call. On a device it is queued only; a failure as of
 * md_block_gram. Local. */
md_status md_block_update(md_context *context, md_block *block, md_field *y,
                          const md_block_step *step);

/* Waits for the sums of a slot and adds them over the ranks: gram is Hermitian to the bit and the
 * same on all ranks; on the host also the same for every rank grid and thread count (md_sum), on
 * a device from run to run. On the host the part of eight sites is good to 2^-60 of the largest
 * sum that was waited for in this slot before. Sums that are not finite are NaN. Collective. */
md_status md_block_wait(md_context *context, md_block *block, int slot, double *gram);

/* One of `count` nearly equal parts of the sites. */
typedef struct md_block_part {
  int index, count;
} md_block_part;
/* z = z + sum of x[k] c[k], k < count: fields and n x n matrices that follow each other; z is
 * MD_DOUBLE or, where x are narrow, MD_SINGLE. part: the sites that are served, for narrow fields
 * on a device; NULL: all. Sums that were asked for before are on their way first, so that who waits
 * for them waits for nothing of this. As md_block_update otherwise. Local. */
md_status md_block_add(md_context *context, md_block *block, md_field *z, int count,
                       const md_field *x, const double *c, const md_block_part *part);

/* product[i][j] = <x_i, y_j>, summed and the same everywhere as md_block_wait says; sums on their
 * way are lost. For the few times at which a solver needs it. Collective. */
md_status md_block_cross(md_context *context, md_block *block, const md_field *x, const md_field *y,
                         double *product);

/* md_block_update without sums, then md_block_cross of `with` and the new y, of fields on a device
 * alone; in one pass where they are narrow. Collective. */
md_status md_block_update_cross(md_context *context, md_block *block, md_field *y,
                                const md_block_step *step, const md_field *with, double *product);
