#ifndef MD_LATTICE_FIELDS_CUDA_DEVICE_FIELD_H
#define MD_LATTICE_FIELDS_CUDA_DEVICE_FIELD_H

#include "lattice/fields/field.h"

/* The device side of field.h, halo.h and linear.h, called by their dispatch only. Kernels are
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

/* Halo surfaces between a device field and pinned host buffers, on a stream of their own beside
 * the interior. A message holds the planes one after another, then the scales. */
typedef struct md_device_halo md_device_halo;
md_status md_device_halo_create(md_context *context, const md_geometry *geometry,
                                md_device_halo **halo);
void md_device_halo_destroy(md_device_halo *halo);
/* Queues the gather of what the geometry's message number `message` sends into `send`, after the
 * work so far. */
void md_device_halo_pack(md_device_halo *halo, const md_field *field, int message, void *send);
/* Waits until packed buffers are filled and receive buffers are read. */
void md_device_halo_wait(md_device_halo *halo);
/* Queues the copy of `receive` to the halo sites of that message; later work waits for it. */
void md_device_halo_unpack(md_device_halo *halo, md_field *field, int message,
                           const void *receive);

#endif
