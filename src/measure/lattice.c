/* One lattice of a study. */
#include "base/memory.h"
#include "base/timer.h"
#include "io/site_data.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/project.h"
#include "lattice/gauge/smear.h"
#include "lattice/halo/halo.h"
#include "measure/measure.h"

#include <math.h>
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
  const md_space space = md_action_links_space(context, o->run.backend, &first);
  md_layout_request layout =
      md_layout_of(s->dims, o->run.common.grid, 0, md_halo_face_costs(space));
  for (int a = 0; a < o->actions.count; a++) {
    const int depth = md_action_depth((md_action)o->actions.value[a]);
    if (depth > layout.depth) layout.depth = depth;
  }
  return layout;
}

md_backend_request md_study_request(const md_study_options *o, int action) {
  const md_physics_options physics = md_study_physics(o, action);
  md_backend_request request = o->run.request;
  request.n_rhs = md_study_width(o);
  md_physics_apply(&physics, &request);
  return request;
}

md_backend_request md_study_batch(md_context *context, const md_study_options *o, int action,
                                  const int *local) {
  md_backend_request request = md_study_request(o, action);
  if (md_solver_takes_parts(o->how.by, request.action))
    md_solver_part_request(context, o->run.backend, local, &request);
  return request;
}

static md_status load(md_context *context, const md_study *s, int lattice, loaded *l,
                      md_lattice_sums *sums) {
  const md_link_kind kind = MD_LINKS_THIN;
  const md_layout_request layout = md_study_layout(context, s);
  const char *name = s->lattice[lattice].name;
  double change;
  const md_run_options *o = &s->options.run;
  MD_TRY(md_geometry_create(context, &layout, &l->geometry));
  MD_TRY(md_lattice_load_links(context, name, &kind, o->common.grid, o->ignore_checksum,
                               &l->geometry, &l->thin, &l->info));
  md_checksum_print(&l->info.computed, sums->file, sizeof sums->file);
  MD_TRY(md_lattice_identity(context, &l->thin, sums->links));
  MD_TRY(md_physics_check_unitarity(context, &o->physics, &o->request,
                                    l->info.observables.unitarity_deviation,
                                    lattice == 0)); /* a warning once for all */
  if (s->options.deflate) MD_TRY(md_links_checksum(context, &l->thin, 1, l->checksum));
  return o->physics.reunitarize ? md_gauge_reunitarize(context, name, &l->thin, &change) : MD_OK;
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
  return md_polyakov_loop(context, &l->thin, MD_DOUBLE, record + s->start[MD_STUDY_POLYAKOV]);
}

/* All modes of --deflate that converged. MD_INPUT where they belong to another lattice, action or
 * boundary. Collective. */
static md_status read_modes(md_context *context, const md_study *s, int lattice, const loaded *l,
                            int action, md_space space, md_modes *modes) {
  const md_physics_options physics = md_study_physics(&s->options, action);
  const md_backend_request request = md_study_request(&s->options, action);
  char name[MD_STUDY_NAME_BYTES];
  md_modes_info info;
  MD_TRY(md_study_modes_name(context, s, lattice, action, name));
  MD_TRY(md_deflation_describe(context, name, &info));
  const md_modes_label wanted = md_deflation_label(&physics, s->options.masses.value[0], &request,
                                                   s->options.run.boundary, l->checksum);
  return md_modes_read(context, name, l->geometry, &wanted, &info, info.converged, space, modes);
}

/* The links of one action, from thin ones that stay, and all that is asked of it. */
static md_status measure_action(md_context *context, const md_study *s, int lattice,
                                const loaded *l, int action, double *record) {
  const md_physics_options physics = md_study_physics(&s->options, action);
  const md_backend_request request = md_study_request(&s->options, action);
  const md_backend *backend;
  md_gauge made[MD_MOST_LINK_FIELDS] = {0};
  md_study_links links = {.action = action, .field = &l->thin};
  md_modes modes = {0};
  memcpy(&links.key, &l->info.observables.plaquette, sizeof links.key);
  MD_TRY(md_backend_find(context, s->options.run.backend, &request, &backend));
  const md_smear_request smear = md_physics_smear(&physics, backend->space);
  md_status status = MD_OK;
  if (s->options.deflate) {
    status = read_modes(context, s, lattice, l, action, backend->space, &modes);
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

md_status md_study_measure(md_context *context, const md_study *s, int lattice, double *record,
                           md_lattice_sums *sums) {
  loaded l = {0};
  const double start_s = md_time_s();
  for (int i = 0; i < s->record; i++) record[i] = NAN;
  md_status status = load(context, s, lattice, &l, sums);
  md_memory_release(); /* of the reader's buffers */
  if (status == MD_OK) status = md_study_repeat(context, s, lattice, sums);
  if (status == MD_OK) status = observe_links(context, s, &l, record);
  for (int a = 0; a < s->options.actions.count && status == MD_OK; a++)
    status = measure_action(context, s, lattice, &l, a, record);
  record[s->start[MD_STUDY_SECONDS]] = md_time_s() - start_s;
  unload(&l);
  return status;
}
