/* One lattice of a study. */
#include "base/memory.h"
#include "base/timer.h"
#include "dirac/backend.h"
#include "io/site_data.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/project.h"
#include "lattice/gauge/smear.h"
#include "lattice/halo/halo.h"
#include "links/action_links.h"
#include "measure/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct loaded {
  md_geometry *geometry;
  md_gauge thin;
  md_lattice_info info;
  char checksum[MD_MODES_TEXT]; /* of the links as read, with --deflate */
} loaded;

md_layout_request md_study_layout(md_context *context, const md_study *s) {
  const md_study_options *o = &s->options;
  const md_physics_options first = md_study_physics(o, 0);
  md_layout_request layout = {
      .costs = md_halo_face_costs(md_action_links_space(context, o->backend, &first))};
  memcpy(layout.global, s->dims, sizeof layout.global);
  memcpy(layout.grid, o->common.grid, sizeof layout.grid);
  for (int a = 0; a < o->actions.count; a++) {
    const int depth = md_action_depth((md_action)o->actions.value[a]);
    if (depth > layout.depth) layout.depth = depth;
  }
  return layout;
}

static md_status load(md_context *context, const md_study *s, int lattice, loaded *l,
                      md_lattice_sums *sums) {
  const md_link_kind kind = MD_LINKS_THIN;
  const md_layout_request layout = md_study_layout(context, s);
  const char *name = s->lattice[lattice].name;
  double change;
  MD_TRY(md_geometry_create(context, &layout, &l->geometry));
  MD_TRY(md_lattice_load_links(context, name, &kind, s->options.common.grid,
                               s->options.ignore_checksum, &l->geometry, &l->thin, &l->info));
  md_checksum_print(&l->info.computed, sums->file, sizeof sums->file);
  MD_TRY(md_lattice_identity(context, &l->thin, sums->links));
  if (lattice == 0) /* once for all */
    md_physics_advise(context, &s->options.physics, &s->options.request,
                      l->info.observables.unitarity_deviation);
  if (s->options.deflate) MD_TRY(md_links_checksum(context, &l->thin, 1, l->checksum));
  return s->options.physics.reunitarize ? md_gauge_reunitarize(context, name, &l->thin, &change)
                                        : MD_OK;
}

static void unload(loaded *l) {
  md_gauge_destroy(&l->thin);
  md_geometry_destroy(l->geometry);
  md_lattice_info_destroy(&l->info);
}

md_status md_study_identify(md_context *context, const md_study *s, int lattice,
                            md_lattice_sums *sums) {
  loaded l = {0};
  const md_status status = load(context, s, lattice, &l, sums);
  unload(&l);
  return status;
}

static md_status observe_links(md_context *context, const md_study *s, const loaded *l,
                               double *record) {
  const md_gauge_observables *o = &l->info.observables;
  record[s->start[MD_STUDY_PLAQUETTE]] = o->plaquette;
  record[s->start[MD_STUDY_PLAQUETTE_SS]] = o->plaquette_ss;
  record[s->start[MD_STUDY_PLAQUETTE_ST]] = o->plaquette_st;
  record[s->start[MD_STUDY_LINK_TRACE]] = o->link_trace;
  return md_polyakov_loop(context, &l->thin, record + s->start[MD_STUDY_POLYAKOV]);
}

/* The links of one action, from thin ones that stay, and all that is asked of it. */
static md_status measure_action(md_context *context, const md_study *s, int lattice,
                                const loaded *l, int action, md_space space, double *record) {
  const md_physics_options physics = md_study_physics(&s->options, action);
  const md_smear_request smear = md_physics_smear(&physics, space);
  md_gauge made[MD_MOST_LINK_FIELDS] = {0};
  md_study_links links = {.action = action, .field = &l->thin};
  md_modes modes = {0};
  memcpy(&links.key, &l->info.observables.plaquette, sizeof links.key);
  md_status status = MD_OK;
  if (s->options.deflate) {
    status =
        md_study_modes_read(context, s, lattice, action, l->geometry, l->checksum, space, &modes);
    links.modes = &modes;
  }
  if (status == MD_OK && smear.recipe) {
    status = md_smear(context, &l->thin, &smear, &made[0], &made[1], NULL);
    links.field = made;
    md_memory_release();
  }
  if (status == MD_OK) status = md_study_propagate(context, s, &links, record);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) md_gauge_destroy(&made[f]);
  md_modes_destroy(&modes);
  return status;
}

/* Where fields of the backend lie that will serve the action. */
static md_status space_of(md_context *context, const md_study *s, int action, md_space *space) {
  const md_physics_options physics = md_study_physics(&s->options, action);
  md_backend_request request = s->options.request;
  const md_backend *backend;
  request.n_rhs = md_study_width(&s->options);
  md_physics_apply(&physics, &request);
  MD_TRY(md_backend_find(context, s->options.backend, &request, &backend));
  *space = backend->space;
  return MD_OK;
}

md_status md_study_measure(md_context *context, const md_study *s, int lattice, double *record,
                           md_lattice_sums *sums) {
  loaded l = {0};
  const double start_s = md_time_s();
  for (int i = 0; i < s->record; i++) record[i] = NAN;
  md_status status = load(context, s, lattice, &l, sums);
  md_memory_release(); /* of the reader's buffers */
  if (status == MD_OK) status = md_study_repeat(context, s, lattice, sums);
  if (status == MD_OK) status = observe_links(context, s, &l, record);
  for (int a = 0; a < s->options.actions.count && status == MD_OK; a++) {
    md_space space;
    status = space_of(context, s, a, &space);
    if (status == MD_OK) status = measure_action(context, s, lattice, &l, a, space, record);
  }
  record[s->start[MD_STUDY_SECONDS]] = md_time_s() - start_s;
  unload(&l);
  return status;
}
