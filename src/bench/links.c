#include "bench/links.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/halo/halo.h"
#include "links/action_links.h"

#include <stdio.h>
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
  MD_TRY(md_heatbath_create(context, thin, r->sweeps_in, &heatbath));
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

/* What a case needs beyond the links is compared when it begins. */
static md_status require_links(md_context *context, const md_bench_links_request *r,
                               const md_geometry *plan) {
  md_memory_need need = {.host = md_geometry_bytes(plan) + md_gauge_bytes(plan)};
  if (r->sweeps > 0 && r->sweeps_in == MD_HOST) need.host += md_heatbath_bytes(plan);
  if (r->sweeps > 0 && r->sweeps_in == MD_DEVICE) need.device += md_heatbath_device_bytes(plan);
  return md_memory_require(context, &need, r->command);
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
  MD_TRY(r->require ? r->require(context, &plan, r->user) : require_links(context, r, &plan));
  MD_TRY(md_geometry_create(context, &layout, &geometry));
  md_status status = md_agree(context, md_gauge_create(context, geometry, &thin));
  if (status == MD_OK) status = start_links(context, r, &thin);
  if (status == MD_OK)
    return md_action_links_make(context, r->physics, r->space, geometry, &thin, links);
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
  return status;
}

/* BACKEND[:PACKING[:REALS]] */
static md_status read_operator(md_context *context, const char *label, const char *word,
                               md_bench_operators *o) {
  char backends[MD_BACKEND_WORDS_BYTES], *backend = o->of[o->count].backend;
  snprintf(backend, MD_BENCH_OPERATOR_BYTES, "%s", word);
  char *packing = strchr(backend, ':'), *reals = packing ? strchr(packing + 1, ':') : NULL;
  if (packing) *packing++ = '\0';
  if (reals) *reals++ = '\0';
  const int p = packing ? md_packing_of(packing) : MD_PACKING_NONE;
  const int r = reals ? md_reconstruct_of(reals) : MD_RECONSTRUCT_18;
  if (md_choice_of(md_backend_words("auto", backends), backend) < 0)
    return md_fail_choice(context, label, backends, backend);
  if (p < 0) return md_fail_choice(context, label, &(MD_PACKING_WORDS)[1], packing);
  if (r < 0) return md_fail_choice(context, label, &(MD_RECONSTRUCT_WORDS)[1], reals);
  o->of[o->count].packing = (md_packing)p;
  o->of[o->count++].reconstruct = (md_reconstruct)r;
  return MD_OK;
}

md_status md_bench_operators_read(md_context *context, const char *label, const char *text,
                                  void *target) {
  char copy[MD_BENCH_OPERATOR_BYTES];
  const char *words[MD_BENCH_OPERATORS];
  const int count = md_words(text, copy, sizeof copy, words, MD_BENCH_OPERATORS);
  md_bench_operators *o = target;
  o->count = 0;
  if (count < 0)
    return md_fail(context, MD_INPUT,
                   "%s must be a list of at most %d BACKEND, BACKEND:PACKING or "
                   "BACKEND:PACKING:REALS, got '%.200s'",
                   label, MD_BENCH_OPERATORS, text);
  for (int i = 0; i < count; i++) MD_TRY(read_operator(context, label, words[i], o));
  return MD_OK;
}

md_space md_bench_operators_space(md_context *context, const md_bench_operators *operators,
                                  const md_physics_options *physics) {
  for (int o = 0; o < operators->count; o++)
    if (md_action_links_space(context, operators->of[o].backend, physics) == MD_DEVICE)
      return MD_DEVICE;
  return MD_HOST;
}
