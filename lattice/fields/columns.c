#include "lattice/fields/columns.h"

#include "lattice/fields/cuda/columns_device.h"

enum { TOGETHER = 16 }; /* sites: what they have in a block stays in the cache for all columns */

md_status md_columns_join(md_context *context, int count, const md_field *columns,
                          md_field *block) {
  if (MINIDIRAC_HAVE_CUDA && block->space == MD_DEVICE)
    return md_device_columns_join(context, count, columns, block);
  double *to = block->data;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < block->sites; first += TOGETHER) {
    const int64_t left = block->sites - first, end = first + (left < TOGETHER ? left : TOGETHER);
    for (int r = 0; r < block->n_rhs; r++)
      for (int c = 0; c < block->components; c++)
        for (int64_t i = first; i < end; i++)
          to[md_field_at(block, i, c, r)] =
              r < count ? ((const double *)columns[r].data)[md_field_at(&columns[r], i, c, 0)]
                        : 0.0;
  }
  return MD_OK;
}

md_status md_columns_split(md_context *context, const md_field *block, int count,
                           md_field *columns) {
  if (MINIDIRAC_HAVE_CUDA && block->space == MD_DEVICE)
    return md_device_columns_split(context, block, count, columns);
  const double *from = block->data;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < block->sites; first += TOGETHER) {
    const int64_t left = block->sites - first, end = first + (left < TOGETHER ? left : TOGETHER);
    for (int r = 0; r < count; r++)
      for (int c = 0; c < block->components; c++)
        for (int64_t i = first; i < end; i++)
          ((double *)columns[r].data)[md_field_at(&columns[r], i, c, 0)] =
              from[md_field_at(block, i, c, r)];
  }
  return MD_OK;
}
