#include "io/slabs.h"
#include "base/memory.h"

#include <stdlib.h>

md_slab_plan md_slab_plan_make(const md_geometry *geometry, size_t site_bytes, size_t most_bytes,
                               int z_multiple) {
  const int *local = geometry->local;
  const size_t plane = site_bytes * local[0] * local[1];
  const size_t slice = plane * local[2];
  md_slab_plan plan = {.z_planes = local[2], .t_slices = 1};
  if (slice <= most_bytes) {
    plan.t_slices = most_bytes / slice < (size_t)local[3] ? (int)(most_bytes / slice) : local[3];
  } else {
    plan.z_planes = most_bytes > plane ? (int)(most_bytes / plane) : 1;
    plan.z_planes -= plan.z_planes % z_multiple;
    if (plan.z_planes < z_multiple) plan.z_planes = z_multiple;
    if (plan.z_planes > local[2]) plan.z_planes = local[2];
  }
  plan.count = (local[3] + plan.t_slices - 1) / plan.t_slices *
               ((local[2] + plan.z_planes - 1) / plan.z_planes);
  return plan;
}

md_slab md_slab_at(const md_geometry *geometry, const md_slab_plan *plan, int i) {
  const int z_parts = (geometry->local[2] + plan->z_planes - 1) / plan->z_planes;
  md_slab slab = {.z = i % z_parts * plan->z_planes,
                  .nz = plan->z_planes,
                  .t = i / z_parts * plan->t_slices,
                  .nt = plan->t_slices};
  if (slab.z + slab.nz > geometry->local[2]) slab.nz = geometry->local[2] - slab.z;
  if (slab.t + slab.nt > geometry->local[3]) slab.nt = geometry->local[3] - slab.t;
  return slab;
}

size_t md_slab_bytes(const md_geometry *geometry, const md_slab_plan *plan, size_t site_bytes) {
  const md_slab first = md_slab_at(geometry, plan, 0);
  return (size_t)md_slab_sites(geometry, &first) * site_bytes;
}

md_status md_slab_buffers(md_context *context, const md_geometry *geometry,
                          const md_slab_plan *plan, size_t site_bytes, void *raw[2]) {
  const size_t bytes = md_slab_bytes(geometry, plan, site_bytes);
  const char *what = "input and output buffer";
  raw[0] = raw[1] = NULL;
  md_status status = md_allocate(context, bytes, what, &raw[0]);
  if (status == MD_OK) status = md_allocate(context, bytes, what, &raw[1]);
  if (status == MD_OK) return MD_OK;
  free(raw[0]);
  raw[0] = NULL;
  return status;
}
