#ifndef MD_LATTICE_FIELDS_CUDA_DEVICE_FIELD_H
#define MD_LATTICE_FIELDS_CUDA_DEVICE_FIELD_H

#include "lattice/fields/field.h"

/* The device side of field.h and linear.h, called by their dispatch only. Kernels are
 * queued; a failure of theirs is met by the next call that returns a status, and by sums as NaN. */

/* md_field_convert_times of fermions that both lie on the device. Local. */
md_status md_device_convert(md_context *context, md_field *out, const double *factor,
                            const md_field *in);
/* md_field_add_single on the device. Local. */
md_status md_device_add_single(md_context *context, md_field *out, const double *factor,
                               const md_field *in);
/* Data and scales with halo between fields of one shape, of which one or both are host fields.
 * Waits. Local. */
md_status md_device_transfer(md_context *context, md_field *out, const md_field *in);

#endif
