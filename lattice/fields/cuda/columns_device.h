#ifndef MD_LATTICE_FIELDS_CUDA_COLUMNS_DEVICE_H
#define MD_LATTICE_FIELDS_CUDA_COLUMNS_DEVICE_H

#include "lattice/fields/field.h"

/* The device side of columns.h; same contracts. Local. */
md_status md_device_columns_join(md_context *context, int count, const md_field *columns,
                                 md_field *block);
md_status md_device_columns_split(md_context *context, const md_field *block, int count,
                                  md_field *columns);

#endif
