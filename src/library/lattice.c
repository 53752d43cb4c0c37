/* Lattices of thin links, and the link fields of an action. */
#include "base/memory_need.h"
#include "io/lattice_file.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/gauge/smear.h"
#include "lattice/halo/halo.h"
#include "library/library.h"
#include "links/action_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

md_lattice_request md_lattice_defaults(void) {
  return (md_lattice_request){.space = "host", .longest_hop = 3};
}

static md_status create(md_context *context, const md_lattice_request *request,
                        const int dims[MD_DIMS], md_lattice **lattice) {
  md_space space;
  *lattice = NULL;
  if (request->longest_hop != 1 && request->longest_hop != 3)
    return md_fail(context, MD_INPUT, "the longest hop must be 1 or 3, got %d",
                   request->longest_hop);
  MD_TRY(md_space_word(context, request->space, &space));
  const md_layout_request layout =
      md_layout_of(dims, request->grid, request->longest_hop, md_halo_face_costs(space));
  if (!(*lattice = md_handle(context, sizeof **lattice))) return MD_ENVIRONMENT;
  (*lattice)->context = context;
  return md_geometry_create(context, &layout, &(*lattice)->geometry);
}

static md_status finish(md_lattice **lattice, md_status status) {
  if (status == MD_OK || !*lattice) return status;
  md_lattice_destroy(*lattice);
  *lattice = NULL;
  return status;
}

static md_status fill_cold(md_lattice *l) {
  MD_TRY(md_agree(l->context, md_gauge_create(l->context, l->geometry, &l->thin)));
  return md_gauge_exchange(l->context, &l->thin);
}

md_status md_lattice_create(md_context *context, const md_lattice_request *request,
                            md_lattice **lattice) {
  md_status status = create(context, request, request->dims, lattice);
  if (status == MD_OK) status = fill_cold(*lattice);
  return finish(lattice, status);
}

md_status md_lattice_read(md_context *context, const char *path, const md_lattice_request *request,
                          md_lattice **lattice) {
  const md_link_kind thin = MD_LINKS_THIN;
  md_geometry plan;
  md_lattice_info info = {0};
  *lattice = NULL;
  MD_TRY(md_given(context, "the path", path));
  MD_TRY(md_lattice_plan(context, path, request->grid, &plan, NULL));
  const md_memory_need need = {.host = md_lattice_load_bytes(&plan)};
  MD_TRY(md_memory_require(context, &need, "loading the lattice"));
  md_status status = create(context, request, plan.global, lattice);
  if (status == MD_OK)
    status = md_lattice_load_links(context, path, &thin, request->grid, request->ignore_checksum,
                                   &(*lattice)->geometry, &(*lattice)->thin, &info);
  md_lattice_info_destroy(&info);
  return finish(lattice, status);
}

md_status md_lattice_write(md_lattice *lattice, const char *path, const char *precision,
                           bool replace) {
  md_context *context = lattice->context;
  md_lattice_output output = {.label = lattice->label, .keep_old = !replace};
  int place;
  MD_TRY(md_word(context, "precision", "double|single", precision, &place));
  output.precision = place == 0 ? MD_DOUBLE : MD_SINGLE;
  MD_TRY(md_given(context, "the path", path));
  MD_TRY(md_lattice_format_find(context, path, NULL, &output.format));
  MD_TRY(md_output_path(context, path, replace));
  return md_lattice_save_as(context, path, &output, &lattice->thin);
}

void md_lattice_destroy(md_lattice *lattice) {
  if (!lattice) return;
  md_gauge_destroy(&lattice->thin);
  md_geometry_destroy(lattice->geometry);
  free(lattice);
}

md_layout md_lattice_layout(const md_lattice *lattice) {
  const md_geometry *g = lattice->geometry;
  md_layout layout = {.local_sites = (size_t)g->local_volume};
  memcpy(layout.dims, g->global, sizeof layout.dims);
  memcpy(layout.local, g->local, sizeof layout.local);
  memcpy(layout.origin, g->origin, sizeof layout.origin);
  memcpy(layout.grid, g->grid, sizeof layout.grid);
  return layout;
}

/* Between links and an array [t][z][y][x][mu][row][column], of which one is assigned. */
static void move_links(md_gauge *gauge, double *array, bool out) {
  const md_geometry *g = gauge->geometry;
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t site = 0; site < g->sites; site++) {
      int x[MD_DIMS];
      md_coordinates(g, p, site, x);
      const int64_t place =
          2 * md_site(g, x) + x[0] % 2; /* pairs along x: one site of each parity */
      for (int mu = 0; mu < MD_DIMS; mu++) {
        double *link = array + (place * MD_DIMS + mu) * MD_LINK_REALS;
        if (out)
          md_gauge_get(gauge, p, mu, site, link);
        else
          md_gauge_set(gauge, p, mu, site, link);
      }
    }
  }
}

md_status md_lattice_set(md_lattice *lattice, const double *links) {
  move_links(&lattice->thin, (double *)links, false);
  lattice->label = (md_link_label){.kind = MD_LINKS_THIN}; /* whatever the last ones were */
  return md_gauge_exchange(lattice->context, &lattice->thin);
}

void md_lattice_get(const md_lattice *lattice, double *links) {
  move_links((md_gauge *)&lattice->thin, links, true);
}

md_status md_lattice_start(md_lattice *lattice, const char *kind, uint64_t seed) {
  int hot;
  MD_TRY(md_word(lattice->context, "kind", "cold|hot", kind, &hot));
  lattice->label = (md_link_label){.kind = MD_LINKS_THIN};
  return hot ? md_gauge_start_hot(lattice->context, &lattice->thin, seed)
             : md_gauge_start_cold(lattice->context, &lattice->thin);
}

md_chain_request md_chain_defaults(double beta) {
  return (md_chain_request){.beta = beta, .sweeps = 1, .seed = 1, .space = "host"};
}

static md_status sweep(md_heatbath *heatbath, const md_chain_request *r) {
  for (int k = 0; k < r->sweeps; k++) {
    MD_TRY(md_heatbath_sweep(heatbath, r->beta, r->seed, r->first + (uint64_t)k));
    for (int i = 0; i < r->overrelax; i++) MD_TRY(md_overrelaxation_sweep(heatbath));
    MD_TRY(md_heatbath_wait(heatbath));
  }
  return md_heatbath_give(heatbath);
}

md_status md_lattice_sweep(md_lattice *lattice, const md_chain_request *request) {
  md_context *context = lattice->context;
  md_heatbath *heatbath = NULL;
  md_space space;
  MD_TRY(md_space_word(context, request->space, &space));
  if (!(request->beta >= 0.0 && request->beta <= MD_BETA_MOST))
    return md_fail(context, MD_INPUT, "beta must be within 0..%g, got %g", MD_BETA_MOST,
                   request->beta);
  if (request->sweeps < 1 || request->overrelax < 0)
    return md_fail(context, MD_INPUT,
                   "sweeps must be 1 at least and overrelax not negative, got %d and %d",
                   request->sweeps, request->overrelax);
  MD_TRY(md_gauge_check_thin(context, &lattice->thin));
  MD_TRY(md_heatbath_create(context, &lattice->thin, space, &heatbath));
  const md_status status = md_agree(context, sweep(heatbath, request));
  md_heatbath_destroy(heatbath);
  return status;
}

md_status md_lattice_observe(md_lattice *lattice, md_means *means) {
  md_gauge_observables seen;
  MD_TRY(md_gauge_observe(lattice->context, &lattice->thin, &seen));
  *means = (md_means){seen.plaquette, seen.plaquette_ss, seen.plaquette_st, seen.link_trace,
                      seen.unitarity_deviation};
  return MD_OK;
}

md_smearing md_smearing_defaults(const char *recipe) {
  const md_smear_request usual = md_smear_defaults(NULL);
  return (md_smearing){.recipe = recipe,
                       .space = "host",
                       .u0 = usual.u0,
                       .alpha = usual.alpha,
                       .rho = usual.rho,
                       .steps = usual.steps};
}

static md_smear_request request_of(const md_smearing *how) {
  return (md_smear_request){.recipe = md_recipe_find(how->recipe),
                            .u0 = how->u0,
                            .alpha = how->alpha,
                            .rho = how->rho,
                            .steps = how->steps,
                            .naik_epsilon = how->naik_epsilon,
                            .unmeasured = true};
}

/* No parameter that does nothing. */
static md_status check_takes(md_context *context, const md_smearing *how) {
  const md_smear_request given = request_of(how), usual = md_smear_defaults(NULL);
  const char *name;
  double value, unset;
  for (int i = 0; (name = md_smear_parameter(&given, i, &value)); i++) {
    (void)md_smear_parameter(&usual, i, &unset);
    if (value != unset && !(given.recipe && md_recipe_takes(given.recipe, name)))
      return md_fail(context, MD_INPUT, "%s takes no %s, got %g; leave it out", how->recipe, name,
                     value);
  }
  return MD_OK;
}

/* Fat links, and long ones where the recipe has them and they are asked for. */
static md_status smear(const md_lattice *thin, const md_smearing *how, md_gauge *fat,
                       md_gauge *long_links) {
  md_context *context = thin->context;
  md_smear_request request = request_of(how);
  md_memory_need need = {0};
  MD_TRY(check_takes(context, how));
  MD_TRY(md_space_word(context, how->space, &request.space));
  md_smear_need(thin->geometry, &request, &need);
  MD_TRY(md_memory_require(context, &need, "making the links"));
  return md_smear(context, &thin->thin, &request, fat, long_links, NULL);
}

md_status md_smear_lattice(md_lattice *thin, const md_smearing *how, md_lattice **smeared) {
  md_context *context = thin->context;
  const md_geometry *g = thin->geometry;
  md_lattice_request request = md_lattice_defaults();
  md_gauge made = {0};
  int place;
  *smeared = NULL;
  MD_TRY(md_word(context, "recipe", md_recipe_names, how->recipe, &place));
  if (md_recipe_has_long(md_recipe_find(how->recipe)))
    return md_fail(context, MD_INPUT,
                   "%s makes fat and long links of an action; take md_improved_make", how->recipe);
  MD_TRY(smear(thin, how, &made, NULL));
  memcpy(request.grid, g->grid, sizeof request.grid);
  request.longest_hop = g->depth;
  md_status status = create(context, &request, g->global, smeared);
  if (status == MD_OK) status = fill_cold(*smeared);
  if (status == MD_OK) status = md_gauge_copy(context, &(*smeared)->thin, &made);
  md_gauge_destroy(&made);
  if (status == MD_OK) status = md_gauge_exchange(context, &(*smeared)->thin);
  if (status == MD_OK && md_recipe_takes(md_recipe_find(how->recipe), "u0")) { /* not in SU(3) */
    md_link_label *label = &(*smeared)->label;
    *label = (md_link_label){.kind = MD_LINKS_FAT, .bare = true};
    snprintf(label->made, sizeof label->made, "%s, u0 %.10g", how->recipe, how->u0);
  }
  return finish(smeared, status);
}

/* Without links. */
static md_status improved_create(const md_lattice *lattice, const char *action, bool thin,
                                 md_improved **links) {
  md_context *context = lattice->context;
  int place;
  *links = NULL;
  MD_TRY(md_word(context, "action", md_action_words, action, &place));
  if (!thin && md_action_get((md_action)place)->fields == 1)
    return md_fail(context, MD_INPUT, "action %s has no fat and long links; take asqtad or hisq",
                   action);
  if (!(*links = md_handle(context, sizeof **links))) return MD_ENVIRONMENT;
  md_improved *l = *links;
  l->context = context;
  l->lattice = lattice;
  l->action = (md_action)place;
  l->field = md_action_get(l->action)->fields == 1 ? &lattice->thin : l->own;
  l->physics = (md_physics_options)MD_PHYSICS_DEFAULTS;
  l->physics.action = md_action_name(l->action);
  return MD_OK;
}

static md_status improved_finish(md_improved **links, md_status status) {
  const bool given = *links && (*links)->physics.fat_file;
  if (status == MD_OK)
    status = md_links_checksum((*links)->context, given ? (*links)->own : &(*links)->lattice->thin,
                               given ? MD_MOST_LINK_FIELDS : 1, (*links)->checksum);
  if (status == MD_OK || !*links) return status;
  md_improved_destroy(*links);
  *links = NULL;
  return status;
}

md_status md_improved_make(md_lattice *lattice, const md_smearing *how, md_improved **links) {
  md_status status = improved_create(lattice, how->recipe, true, links);
  if (status == MD_OK && (*links)->field == (*links)->own) {
    const md_recipe *recipe = md_recipe_find(how->recipe);
    if (md_recipe_takes(recipe, "u0")) (*links)->physics.u0 = how->u0;
    if (md_recipe_takes(recipe, "naik-epsilon")) (*links)->physics.naik_epsilon = how->naik_epsilon;
    status = smear(lattice, how, &(*links)->own[0], &(*links)->own[1]);
  } else if (status == MD_OK) {
    md_space space;
    status = check_takes(lattice->context, how);
    if (status == MD_OK) status = md_space_word(lattice->context, how->space, &space);
  }
  return improved_finish(links, status);
}

/* Those that the program calls "links of files". */
static void mark_given(md_improved *links) {
  links->physics.fat_file = "";
  links->physics.long_file = "";
}

md_status md_improved_read(md_lattice *lattice, const char *action, const char *fat,
                           const char *long_links, md_improved **links) {
  static const md_link_kind kinds[MD_MOST_LINK_FIELDS] = {MD_LINKS_FAT, MD_LINKS_LONG};
  const char *const path[MD_MOST_LINK_FIELDS] = {fat, long_links};
  md_improved_info info[MD_MOST_LINK_FIELDS] = {0};
  md_status status = improved_create(lattice, action, false, links);
  if (status == MD_OK) mark_given(*links);
  for (int f = 0; f < MD_MOST_LINK_FIELDS && status == MD_OK; f++) {
    md_geometry *geometry = lattice->geometry;
    status = md_given(lattice->context, "the path", path[f]);
    if (status == MD_OK)
      status = md_improved_load(lattice->context, path[f], kinds[f], geometry->grid, false,
                                &geometry, &(*links)->own[f], &info[f]);
  }
  if (status == MD_OK)
    status = md_improved_check(lattice->context, action, path, info, NULL, false);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) md_lattice_info_destroy(&info[f].lattice);
  return improved_finish(links, status);
}

md_status md_improved_set(md_lattice *lattice, const char *action, const double *fat,
                          const double *long_links, md_improved **links) {
  md_context *context = lattice->context;
  const double *const array[MD_MOST_LINK_FIELDS] = {fat, long_links};
  md_status status = improved_create(lattice, action, false, links);
  if (status == MD_OK) mark_given(*links);
  for (int f = 0; f < MD_MOST_LINK_FIELDS && status == MD_OK; f++) {
    md_gauge *own = &(*links)->own[f];
    status = md_agree(context, md_gauge_create(context, lattice->geometry, own));
    if (status == MD_OK) move_links(own, (double *)array[f], false);
    if (status == MD_OK) status = md_gauge_exchange(context, own);
  }
  return improved_finish(links, status);
}

md_status md_improved_get(const md_improved *links, int field, double *array) {
  const int fields = md_action_get(links->action)->fields;
  if (field < 0 || field >= fields)
    return md_fail(links->context, MD_INPUT, "action %s has link fields 0 to %d, got %d",
                   links->physics.action, fields - 1, field);
  move_links((md_gauge *)&links->field[field], array, true);
  return MD_OK;
}

void md_improved_destroy(md_improved *links) {
  if (!links) return;
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) md_gauge_destroy(&links->own[f]);
  free(links);
}
