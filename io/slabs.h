#ifndef MD_IO_SLABS_H
#define MD_IO_SLABS_H

#include "lattice/geometry/geometry.h"

/* A part of the rank's sites that is held in memory at once: all x and y, and either several
 * whole time slices or some z planes of one. Extents and origin are local. */
typedef struct md_slab {
  int z, nz, t, nt;
} md_slab;

typedef struct md_slab_plan {
  int z_planes, t_slices, count;
} md_slab_plan;

/* Slabs of at most about `most_bytes` (one plane at least); z_planes is a multiple of z_multiple
 * where that divides the extent. The same on every rank. */
md_slab_plan md_slab_plan_make(const md_geometry *geometry, size_t site_bytes, size_t most_bytes,
                               int z_multiple);
md_slab md_slab_at(const md_geometry *geometry, const md_slab_plan *plan, int i);
static inline int64_t md_slab_sites(const md_geometry *geometry, const md_slab *slab) {
  return (int64_t)slab->nt * slab->nz * geometry->local[1] * geometry->local[0];
}

/* Of the largest slab. */
size_t md_slab_bytes(const md_geometry *geometry, const md_slab_plan *plan, size_t site_bytes);
/* Two buffers for a slab of the plan each; both NULL after a failure. Local. */
md_status md_slab_buffers(md_context *context, const md_geometry *geometry,
                          const md_slab_plan *plan, size_t site_bytes, void *raw[2]);

#endif
