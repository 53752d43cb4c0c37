#pragma once

#include "base/instruction_set.h"
#include "lattice/fields/block.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"

/* What the files of one space, host or device, give to those that dispatch: field.c, linear.c,
 * panel.c, block.c. The host's are compiled once for each instruction set. A device queues its
 * kernels; a failure of theirs is met by the next call that returns a status, and by sums as NaN.
 */

/* The operations of linear.h for one storage type in one space; same contracts. */
typedef struct md_linear_table {
  void (*copy)(md_field *out, const md_field *in); /* in NULL: zeros */
  void (*axpby)(const double *a, const md_field *x, const double *b, md_field *y); /* NULL: ones */
  void (*add_complex)(int count, const double (*re)[MD_MAX_RHS], const double (*im)[MD_MAX_RHS],
                      const md_field *x, md_field *y);
  md_status (*dot)(md_context *context, const md_field *x, const md_field *y, const double *guess,
                   double *dots);
  md_status (*dots)(md_context *context, int count, const md_field *x, const md_field *y,
                    const double *guess, double *dots);
  md_status (*axpby_norm2)(md_context *context, const double *a, const md_field *x, const double *b,
                           md_field *y, const double *guess, double *norms);
  void (*cg_updates)(int count, int steps, const double *const *a, const double *const *b,
                     const md_field *const *r, md_field *const *p, md_field *const *x);
  /* In one pass; false, with nothing done, for fields that these do not serve. NULL: for any. */
  bool (*cg_direction)(const double *b, const md_field *r, const md_field *p, md_field *next);
  bool (*cg_add)(int count, const double (*a)[MD_MAX_RHS], const md_field *p, md_field *x);
} md_linear_table;
MD_DECLARE_EVERY_PRECISION(const md_linear_table, md_linear_host);
/* Those of one instruction set, by precision. */
const md_linear_table *md_linear_host(md_isa isa, md_precision precision);

/* The units of exact sums: 1.5 * 2^52 of each. A term is rounded to a whole number of high units,
 * what that loses to low ones; doubles hold up to 2^29 such numbers' sums exactly. */
typedef struct md_panel_units {
  double high, low;
} md_panel_units;

/* The operations of panel.h. Local. */
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
MD_DECLARE_EVERY_ISA(const md_panel_space, md_panel_host);

/* The operations of block.h; same contracts. `state` is the space's part of the work space. wait
 * gives the sums of all ranks for i <= j; the rest is made by block.c. */
typedef struct md_block_space {
  md_status (*create)(md_context *context, const md_field_shape *shape, void **state);
  void (*destroy)(void *state);
  md_status (*gram)(md_context *context, void *state, const md_field *x, int slot);
  md_status (*update)(md_context *context, void *state, md_field *y, const md_block_step *step);
  md_status (*wait)(md_context *context, void *state, int slot, double *gram);
  /* NULL, or not for MD_DOUBLE: by updates. */
  md_status (*add)(md_context *context, void *state, md_field *z, int count, const md_field *x,
                   const double *c, const md_block_part *part);
  md_status (*cross)(md_context *context, void *state, const md_field *x, const md_field *y,
                     double *product);
  md_status (*update_cross)(md_context *context, void *state, md_field *y,
                            const md_block_step *step, const md_field *with,
                            double *product); /* NULL on the host */
} md_block_space;
MD_DECLARE_EVERY_ISA(const md_block_space, md_block_host);

/* The inner loops of md_block_host, for tests. A row is the n complex numbers of a site and a pair
 * of components, a cell's rows those of eight sites. Padded rows are `width` reals long. */
typedef struct md_block_matrix { /* as rows of (re, im) and of i times them, (-im, re); n x width */
  double *plain, *turned;
} md_block_matrix;
typedef struct md_block_loops {
  int chunk; /* width is a multiple of it */
  /* z += y c, then y = y b + x a for some rows; x with a, z with c may be NULL. */
  void (*update)(int rows, int n, int width, const md_block_matrix *b, const double *x,
                 const md_block_matrix *a, double *y, double *z, const md_block_matrix *c);
  /* cell[i][2 j ..] = sum over the rows of conj(x_i) y_j, for i <= j at least, for all where
   * `whole`; x[row], plain[row] and turned[row], y as (re, im) and as (im, -re), are padded by
   * zeros. cell is n rounded up to a multiple of 4 rows. */
  void (*gram)(int rows, int n, int width, const double *x, const double *plain,
               const double *turned, bool whole, double *cell);
  /* Adds `count` numbers whose absolute values add up to less than `limit` to high, in units of
   * 2^-32 limit, and what that leaves to low, in units of 2^-64 limit: additions without rounding,
   * so that their order does not matter. False, and nothing added, for larger or infinite ones. */
  bool (*add)(int count, double limit, const double *numbers, double *high, double *low);
} md_block_loops;
MD_DECLARE_EVERY_ISA(const md_block_loops, md_block_loops);

/* In a build without CUDA these are named only where no field can lie. */
extern const md_linear_table md_linear_device[MD_PRECISIONS];
extern const md_panel_space md_panel_device;
extern const md_block_space md_block_device;
/* md_linear_norm2_of, md_field_convert_times, md_field_add_single and md_columns_* of fields that
 * lie on the device. */
md_status md_device_norm2_of(md_context *context, const md_field *y, const double *by,
                             md_linear_queue queue, void *user, const double *guess, double *norms);
md_status md_device_convert(md_context *context, md_field *out, const double *factor,
                            const md_field *in);
md_status md_device_add_single(md_context *context, md_field *out, const double *factor,
                               const md_field *in);
md_status md_device_join(md_context *context, int count, const md_field *columns, md_field *block);
md_status md_device_split(md_context *context, const md_field *block, int count, md_field *columns);
/* Between fields of[MD_PARITIES] in MD_DOUBLE and an array [rhs][t][z][y][x][component] of a
 * caller, of which one is assigned, the array where `out`. Waits, first for all streams of the
 * device, on which the caller may have worked. MD_INPUT for memory that is not of this device.
 * Local. */
md_status md_device_array(md_context *context, md_field *of, double *array, bool out);
/* Data and scales with halo between fields of one shape, of which one or both are host fields.
 * Waits. Local. */
md_status md_device_transfer(md_context *context, md_field *out, const md_field *in);
