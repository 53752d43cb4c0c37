#include "bench/links.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "lattice/gauge/gauge_start.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/halo/halo.h"

#include <string.h>

/* A sweep and its updates; done when it returns, so that an interrupt is met between sweeps. */
static md_status sweep_once(md_context *context, const md_bench_links_request *r,
                            md_heatbath *heatbath, long long k) {
  MD_TRY(md_heatbath_sweep(heatbath, r->beta, r->seed, (uint64_t)k));
  for (int o = 0; o < r->overrelax; o++) MD_TRY(md_overrelaxation_sweep(heatbath));
  MD_TRY(md_heatbath_wait(heatbath));
  return md_interrupt_check(context, r->command);
}

static md_status start_links(md_context *context, const md_bench_links_request *r, md_gauge *thin) {
  if (r->sweeps == 0) return md_gauge_start_hot(context, thin, r->seed);
  md_heatbath *heatbath = NULL;
  MD_TRY(md_gauge_start_cold(context, thin));
  MD_TRY(md_heatbath_create_in(context, thin, r->sweeps_in, &heatbath));
  md_progress progress = md_progress_start(context, "heatbath");
  md_status status = MD_OK;
  for (long long k = 0; k < r->sweeps && status == MD_OK; k++) {
    status = sweep_once(context, r, heatbath, k);
    md_progress_update(&progress, (double)(k + 1) / (double)r->sweeps, "sweep %lld of %lld", k + 1,
                       r->sweeps);
  }
  md_progress_stop(&progress);
  if (status == MD_OK) status = md_heatbath_give(heatbath);
  md_heatbath_destroy(heatbath);
  md_device_release(context);
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
  md_memory_need need = {.host = md_geometry_bytes(&plan) + md_gauge_bytes(&plan)};
  if (r->sweeps > 0 && r->sweeps_in == MD_HOST) need.host += md_heatbath_bytes(&plan);
  if (r->sweeps > 0 && r->sweeps_in == MD_DEVICE) need.device += md_heatbath_device_bytes(&plan);
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
