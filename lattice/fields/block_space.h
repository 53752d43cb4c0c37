#ifndef MD_LATTICE_FIELDS_BLOCK_SPACE_H
#define MD_LATTICE_FIELDS_BLOCK_SPACE_H

#include "lattice/fields/block.h"

/* The operations of block.h in one space; same contracts. `state` is the space's part of the work
 * space. wait gives the sums of all ranks for i <= j; the rest is made by block.c. */
typedef struct md_block_space {
  md_status (*create)(md_context *context, const md_geometry *geometry, int n, void **state);
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

extern const md_block_space md_block_host, md_block_device;

#endif
