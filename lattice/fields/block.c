#include "lattice/fields/block.h"
#include "lattice/fields/block_space.h"

#include <stdlib.h>

struct md_block {
  const md_block_space *space;
  void *state;
  int n;
};

static const md_block_space *space_of(md_space space) {
  return MINIDIRAC_HAVE_CUDA && space == MD_DEVICE ? &md_block_device : &md_block_host;
}

md_status md_block_create(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, md_block **block) {
  md_block *b = calloc(1, sizeof *b);
  *block = b;
  if (!b) return md_fail_memory(context, sizeof *b, "block operations");
  b->space = space_of(shape->space);
  b->n = shape->n_rhs;
  return b->space->create(context, geometry, b->n, &b->state);
}

void md_block_destroy(md_block *block) {
  if (block && block->state) block->space->destroy(block->state);
  free(block);
}

md_status md_block_gram(md_context *context, md_block *block, const md_field *x, int slot) {
  return md_defer(context, block->space->gram(context, block->state, x, slot));
}

md_status md_block_update(md_context *context, md_block *block, md_field *y,
                          const md_block_step *step) {
  return md_defer(context, block->space->update(context, block->state, y, step));
}

md_status md_block_wait(md_context *context, md_block *block, int slot, double *gram) {
  const int n = block->n;
  MD_TRY(block->space->wait(context, block->state, slot, gram));
  for (int i = 0; i < n; i++) {
    gram[2 * (i * n + i) + 1] = 0.0;
    for (int j = 0; j < i; j++) {
      gram[2 * (i * n + j)] = gram[2 * (j * n + i)];
      gram[2 * (i * n + j) + 1] = -gram[2 * (j * n + i) + 1];
    }
  }
  return MD_OK;
}

/* z = z + x c by an update; where the matrix of ones is. */
static md_status add_one(md_context *context, md_block *block, md_field *z, const md_field *x,
                         const double *c) {
  const int n = block->n;
  double *one = calloc(2 * (size_t)n * (size_t)n, sizeof *one);
  if (!one) return md_fail_memory(context, 2 * (size_t)n * (size_t)n * sizeof *one, "a block");
  for (int i = 0; i < n; i++) one[2 * (i * n + i)] = 1.0;
  const md_block_step step = {.b = one, .x = x, .a = c, .slot = -1};
  const md_status status = block->space->update(context, block->state, z, &step);
  free(one);
  return status;
}

md_status md_block_add(md_context *context, md_block *block, md_field *z, int count,
                       const md_field *x, const double *c, const md_block_part *part) {
  static const md_block_part whole = {.count = 1};
  const size_t entries = (size_t)block->n * (size_t)block->n;
  if (block->space->add && z->precision != MD_DOUBLE)
    return md_defer(context,
                    block->space->add(context, block->state, z, count, x, c, part ? part : &whole));
  for (int k = 0; k < count; k++)
    MD_TRY(md_defer(context, add_one(context, block, z, &x[k], c + 2 * entries * (size_t)k)));
  return MD_OK;
}

md_status md_block_cross(md_context *context, md_block *block, const md_field *x, const md_field *y,
                         double *product) {
  return block->space->cross(context, block->state, x, y, product);
}

md_status md_block_update_cross(md_context *context, md_block *block, md_field *y,
                                const md_block_step *step, const md_field *with, double *product) {
  md_block_step unsummed = *step;
  unsummed.slot = -1;
  return block->space->update_cross(context, block->state, y, &unsummed, with, product);
}
