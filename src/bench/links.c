#include "bench/links.h"
#include "base/interrupt.h"
#include "lattice/gauge/gauge_start.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/halo/halo.h"

#include <string.h>

static md_status start_links(md_context *context, const md_bench_links_request *r, md_gauge *thin) {
  if (r->sweeps == 0) return md_gauge_start_hot(context, thin, r->seed);
  md_heatbath *heatbath = NULL;
  MD_TRY(md_gauge_start_cold(context, thin));
  MD_TRY(md_heatbath_create(context, thin, &heatbath));
  md_status status = MD_OK;
  for (long long k = 0; k < r->sweeps && status == MD_OK; k++) {
    status = md_heatbath_sweep(heatbath, r->beta, r->seed, (uint64_t)k);
    for (int o = 0; o < r->overrelax && status == MD_OK; o++)
      status = md_overrelaxation_sweep(heatbath);
    if (status == MD_OK) status = md_interrupt_check(context, r->command);
  }
  md_heatbath_destroy(heatbath);
  return status;
}

md_status md_bench_links_make(md_context *context, const md_bench_links_request *r,
                              md_action_links *links) {
  md_layout_request layout = {.depth = md_action_depth(md_physics_action(r->physics))};
  md_geometry plan, *geometry;
  md_gauge thin;
  memcpy(layout.global, r->dims, sizeof layout.global);
  memcpy(layout.grid, r->grid, sizeof layout.grid);
  layout.costs = md_halo_face_costs(r->space);
  MD_TRY(md_geometry_plan(context, &layout, &plan));
  /* What a case needs beyond the links is compared when it begins. */
  const md_memory_need need = {.host = md_geometry_bytes(&plan) + md_gauge_bytes(&plan) +
                                       (r->sweeps > 0 ? md_heatbath_bytes(&plan) : 0)};
  MD_TRY(md_memory_require(context, &need, r->command));
  MD_TRY(md_geometry_create(context, &layout, &geometry));
  md_status status = md_agree(context, md_gauge_create(context, geometry, &thin));
  if (status == MD_OK) status = start_links(context, r, &thin);
  if (status == MD_OK)
    return md_action_links_make(context, r->physics, r->space, geometry, &thin, links);
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
  return status;
}
