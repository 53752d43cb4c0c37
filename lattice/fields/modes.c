#include "lattice/fields/modes.h"

#include <stdlib.h>

md_status md_modes_create(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int count, md_modes *modes) {
  const size_t n = (size_t)count;
  *modes = (md_modes){.values = calloc(n, sizeof *modes->values),
                      .residuals = calloc(n, sizeof *modes->residuals),
                      .vectors = calloc(n, sizeof *modes->vectors),
                      .roundoff = md_precision_roundoff(shape->precision)};
  if (!modes->values || !modes->residuals || !modes->vectors)
    return md_fail_memory(context, n * (2 * sizeof(double) + sizeof(md_field)), "modes");
  for (; modes->count < count; modes->count++)
    MD_TRY(md_field_create(context, geometry, shape, MD_EVEN, &modes->vectors[modes->count]));
  return MD_OK;
}

void md_modes_destroy(md_modes *modes) {
  for (int i = 0; i < modes->count; i++) md_field_destroy(&modes->vectors[i]);
  MD_FREE(modes->values, modes->residuals, modes->vectors);
  *modes = (md_modes){0};
}
