#ifndef MD_LATTICE_HALO_HALO_H
#define MD_LATTICE_HALO_HALO_H

#include "lattice/fields/field.h"

/* Halo transport for fields of one shape: buffers and persistent requests made once. */
typedef struct md_halo md_halo;

/* For all fields with this shape on this geometry. Only split directions get buffers; a rank that
 * is its own neighbour sends to itself. Collective. */
md_status md_halo_create(md_context *context, const md_geometry *geometry,
                         const md_field_shape *shape, md_halo **halo);
void md_halo_destroy(md_halo *halo);

/* Packs the surfaces of `field` and starts the transfers; the field's local sites must not change
 * until md_halo_end, which fills the halo. One exchange of a halo object at a time. Neighbours
 * call the same. With no split direction both do nothing. */
void md_halo_begin(md_halo *halo, const md_field *field);
void md_halo_end(md_halo *halo, md_field *field);

/* Bytes that this rank sends in one exchange. */
int64_t md_halo_bytes(const md_halo *halo);

#endif
