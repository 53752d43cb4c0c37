#include "links/action_links.h"
#include "base/device.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/timer.h"
#include "io/site_data.h"
#include "lattice/gauge/project.h"
#include "lattice/halo/halo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

md_space md_action_links_space(md_context *context, const char *backend,
                               const md_physics_options *physics) {
  const md_backend *fastest;
  md_backend_request request = {.precision = MD_DOUBLE, .n_rhs = 1};
  md_physics_apply(physics, &request);
  if (strcmp(backend, "auto") == 0)
    return md_backend_find(context, backend, &request, &fastest) == MD_OK ? fastest->space
                                                                          : MD_HOST;
  /* Whatever else an operator asks for, which decides whether the backend serves it. */
  for (const md_backend *const *b = md_backends(); *b; b++)
    if (strcmp((*b)->name, backend) == 0 && !(*b)->unavailable && (*b)->space == MD_DEVICE &&
        (*b)->actions & 1u << request.action)
      return md_agree(context, md_device_open(context)) == MD_OK ? MD_DEVICE : MD_HOST;
  return MD_HOST;
}

/* What makes the geometry: extents from the header of the lattice, else of the fat links. */
static md_status find_layout(md_context *context, const md_action_links_request *request,
                             md_layout_request *layout) {
  const char *path = request->lattice ? request->lattice : request->physics->fat_file;
  md_geometry plan;
  MD_TRY(md_lattice_plan(context, path, request->grid, &plan, NULL));
  const int depth = md_action_depth(md_physics_action(request->physics));
  *layout = md_layout_of(plan.global, request->grid, depth, md_halo_face_costs(request->space));
  return MD_OK;
}

md_status md_action_links_plan(md_context *context, const md_action_links_request *request,
                               md_geometry *plan) {
  md_layout_request layout;
  MD_TRY(find_layout(context, request, &layout));
  return md_geometry_plan(context, &layout, plan);
}

/* All that is held at once while links are read and made, beside the geometry. */
static md_memory_need need_to_load(const md_action_links_request *request,
                                   const md_geometry *plan) {
  const md_smear_request smear = md_physics_smear(request->physics, request->space);
  const int fields = md_action_get(md_physics_action(request->physics))->fields;
  md_memory_need need = {.host = md_lattice_load_bytes(plan) - md_geometry_bytes(plan)};
  if (request->physics->fat_file)
    need.host += (fields - 1) * md_gauge_bytes(plan);
  else if (smear.recipe)
    md_smear_need(plan, &smear, &need);
  return need;
}

static md_status require_memory(md_context *context, const md_action_links_request *request,
                                const md_geometry *plan) {
  md_memory_need need = need_to_load(request, plan);
  need.host += md_geometry_bytes(plan);
  return md_memory_require(context, &need, "loading the lattice");
}

/* In place of the links in a dry run: what it takes to load them, then fields without data. */
static md_status count(md_context *context, const md_action_links_request *request,
                       md_action_links *links) {
  const md_memory_need mark = md_memory_mark(context);
  md_count_memory(context, need_to_load(request, links->geometry));
  md_memory_return_to(context, mark);
  for (int f = 0; f < md_action_get(links->action)->fields; f++)
    MD_TRY(md_gauge_create(context, links->geometry, &links->field[f]));
  return MD_OK;
}

/* Of which lattice a file's links are. */
typedef struct md_link_origin {
  const char *path; /* of the file, borrowed */
  /* Both empty where the file does not say. */
  char identity[MD_LATTICE_IDENTITY]; /* md_lattice_identity of the thin links */
  char checksum[32];                  /* of their file, which depends on its format */
} md_link_origin;

/* What convert says is of the file that it read, which has become `source` in the next copy: only
 * who says an action has made the links of a lattice. */
static const char *checksum_in(const md_file_texts *texts) {
  if (md_file_texts_find(texts, "source action"))
    return md_file_texts_find(texts, "source lattice_checksum");
  return md_file_texts_find(texts, "action") ? md_file_texts_find(texts, "lattice_checksum") : NULL;
}

/* From what a file of fat or long links says of itself; files that smear wrote, and copies of them
 * by convert, name their lattice. Local. */
static md_link_origin origin_of(const char *path, const md_file_texts *texts) {
  const char *identity = md_file_texts_find(texts, MD_THIN_LINKS), *checksum = checksum_in(texts);
  md_link_origin origin = {.path = path};
  snprintf(origin.identity, sizeof origin.identity, "%s", identity ? identity : "");
  snprintf(origin.checksum, sizeof origin.checksum, "%s", checksum ? checksum : "");
  return origin;
}

static bool says(const md_link_origin *origin) {
  return *origin->identity || *origin->checksum;
}

static md_status compare_origins(md_context *context, const md_link_origin *a,
                                 const md_link_origin *b, bool ignored) {
  const bool both = *a->identity && *b->identity;
  const char *in_a = both ? a->identity : a->checksum, *in_b = both ? b->identity : b->checksum;
  if (*in_a && *in_b && strcmp(in_a, in_b) == 0) return MD_OK;
  if (!*in_a || !*in_b) {
    if (says(a) || says(b))
      md_warn(context, "%s and %s do not both say of which lattice they are; see that it is one",
              a->path, b->path);
    return MD_OK;
  }
  const md_status status =
      md_fail(context, MD_INPUT,
              "links must be of one lattice, but that of %s has the checksum '%s' and that of %s "
              "'%s'; make fat and long links from one file with minidirac smear",
              a->path, in_a, b->path, in_b);
  if (!ignored) return status;
  md_warn(context, "%s (ignored)", context->message);
  return MD_OK;
}

/* A label may say of which action the links are, and with which parameters. */
static md_status check_made(md_context *context, const char *action,
                            const char *const path[MD_MOST_LINK_FIELDS],
                            const md_improved_info info[MD_MOST_LINK_FIELDS]) {
  const char *made[MD_MOST_LINK_FIELDS];
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) {
    char word[16];
    made[f] = info[f].lattice.header.label.made;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(made[f], ", "), made[f]);
    if (md_recipe_find(word) && strcmp(word, action) != 0)
      return md_fail(context, MD_INPUT,
                     "%s: action %s is asked for, the file says that its links are '%s'", path[f],
                     action, made[f]);
  }
  if (*made[0] && *made[1] && strcmp(made[0], made[1]) != 0)
    return md_fail(context, MD_INPUT,
                   "fat and long links must be of one kind, %s says '%s' and %s '%s'", path[0],
                   made[0], path[1], made[1]);
  return MD_OK;
}

md_status md_improved_check(md_context *context, const char *action,
                            const char *const path[MD_MOST_LINK_FIELDS],
                            const md_improved_info info[MD_MOST_LINK_FIELDS],
                            const md_link_origin *thin, bool ignored) {
  md_link_origin made[MD_MOST_LINK_FIELDS];
  MD_TRY(check_made(context, action, path, info));
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++)
    made[f] = origin_of(path[f], &info[f].lattice.notes.texts);
  if (!thin) return compare_origins(context, &made[0], &made[1], ignored);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++)
    MD_TRY(compare_origins(context, thin, &made[f], ignored));
  return MD_OK;
}

/* thin: of the lattice beside them; NULL where there is none. */
static md_status read_files(md_context *context, const md_action_links_request *request,
                            const md_link_origin *thin, md_action_links *links) {
  static const md_link_kind kinds[MD_MOST_LINK_FIELDS] = {MD_LINKS_FAT, MD_LINKS_LONG};
  const char *const path[] = {request->physics->fat_file, request->physics->long_file};
  md_improved_info info[MD_MOST_LINK_FIELDS] = {0};
  md_gauge_observables fat;
  md_status status = MD_OK;
  for (int f = 0; f < MD_MOST_LINK_FIELDS && status == MD_OK; f++) {
    status = md_improved_load(context, path[f], kinds[f], request->grid, request->ignore_checksum,
                              &links->geometry, &links->field[f], &info[f]);
    links->phases[f] = info[f].phases;
  }
  if (status == MD_OK)
    status = md_improved_check(context, request->physics->action, path, info, thin,
                               request->ignore_checksum);
  if (status == MD_OK) status = md_gauge_observe(context, &links->field[0], &fat);
  if (status == MD_OK) links->fat_plaquette = fat.plaquette;
  if (status == MD_OK && request->identify)
    status = md_links_checksum(context, links->field, MD_MOST_LINK_FIELDS, links->checksum);
  if (status == MD_OK && !request->lattice)
    md_checksum_print(&info[0].lattice.computed, links->lattice_checksum,
                      sizeof links->lattice_checksum);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) md_lattice_info_destroy(&info[f].lattice);
  return status;
}

/* The fields from thin links, which are destroyed or become the only field. */
static md_status make_fields(md_context *context, const md_physics_options *physics, md_space space,
                             md_gauge *thin, md_action_links *links) {
  const md_smear_request request = md_physics_smear(physics, space);
  md_smear_report report;
  if (!request.recipe) {
    links->field[0] = *thin;
    *thin = (md_gauge){0};
    return MD_OK;
  }
  links->space = space;
  const double start_s = md_time_s();
  const md_status status =
      md_smear(context, thin, &request, &links->field[0], &links->field[1], &report);
  md_gauge_destroy(thin);
  md_memory_release();
  links->smear_s = md_time_s() - start_s;
  md_device_release(context); /* the operators' fields are of other sizes */
  links->projection = report.projection;
  return status;
}

static void begin(md_action_links *links, const md_physics_options *physics) {
  *links = (md_action_links){.action = md_physics_action(physics),
                             .plaquette = NAN,
                             .fat_plaquette = NAN,
                             .unitarity = NAN,
                             .reunitarized = NAN};
}

static md_status read_lattice(md_context *context, const md_action_links_request *request,
                              md_link_origin *origin, md_action_links *links) {
  const md_link_kind kind = MD_LINKS_THIN;
  md_gauge thin = {0};
  md_lattice_info info = {0};
  md_status status =
      md_lattice_load_links(context, request->lattice, &kind, request->grid,
                            request->ignore_checksum, &links->geometry, &thin, &info);
  links->unitarity = info.observables.unitarity_deviation;
  if (status == MD_OK) links->plaquette = info.observables.plaquette;
  if (status == MD_OK)
    md_checksum_print(&info.computed, links->lattice_checksum, sizeof links->lattice_checksum);
  md_lattice_info_destroy(&info);
  if (status == MD_OK && request->physics->fat_file) {
    origin->path = request->lattice;
    memcpy(origin->checksum, links->lattice_checksum, sizeof origin->checksum);
    status = md_lattice_identity(context, &thin, origin->identity);
  }
  if (status == MD_OK && request->identify && !request->physics->fat_file)
    status = md_links_checksum(context, &thin, 1, links->checksum);
  if (status == MD_OK && request->physics->reunitarize)
    status = md_gauge_reunitarize(context, request->lattice, &thin, &links->reunitarized);
  if (status == MD_OK && !request->physics->fat_file)
    return make_fields(context, request->physics, request->space, &thin, links);
  md_gauge_destroy(&thin);
  return status;
}

md_status md_action_links_load(md_context *context, const md_action_links_request *request,
                               md_action_links *links) {
  md_layout_request layout;
  md_geometry plan;
  begin(links, request->physics);
  MD_TRY(find_layout(context, request, &layout));
  MD_TRY(md_geometry_plan(context, &layout, &plan));
  MD_TRY(require_memory(context, request, &plan));
  MD_TRY(md_geometry_create(context, &layout, &links->geometry));
  md_link_origin origin = {0};
  const bool counts = md_counts(context), files = request->physics->fat_file != NULL;
  md_status status = counts ? count(context, request, links) : MD_OK;
  if (!counts && request->lattice) status = read_lattice(context, request, &origin, links);
  if (!counts && files && status == MD_OK)
    status = read_files(context, request, request->lattice ? &origin : NULL, links);
  md_memory_release(); /* of the reader's buffers */
  if (status != MD_OK) md_action_links_destroy(links);
  return status;
}

md_status md_action_links_make(md_context *context, const md_physics_options *physics,
                               md_space space, md_geometry *geometry, md_gauge *thin,
                               md_action_links *links) {
  const md_smear_request smear = md_physics_smear(physics, space);
  md_gauge_observables observables;
  md_memory_need need = {0};
  md_status status = MD_OK;
  begin(links, physics);
  links->geometry = geometry;
  if (smear.recipe) {
    md_smear_need(geometry, &smear, &need);
    status = md_memory_require(context, &need, "making fat and long links");
  }
  if (status == MD_OK) status = md_gauge_observe(context, thin, &observables);
  if (status == MD_OK) {
    links->plaquette = observables.plaquette;
    status = make_fields(context, physics, space, thin, links);
  }
  md_gauge_destroy(thin);
  if (status != MD_OK) md_action_links_destroy(links);
  return status;
}

void md_action_links_destroy(md_action_links *links) {
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) md_gauge_destroy(&links->field[f]);
  md_geometry_destroy(links->geometry);
  links->geometry = NULL;
}

md_modes_label md_massless_label(const md_physics_options *physics,
                                 const md_backend_request *request, const char *boundary,
                                 const char *checksum) {
  md_modes_label label = {.action = ""};
  snprintf(label.lattice_checksum, sizeof label.lattice_checksum, "%s", checksum);
  md_physics_words(physics, request, label.action, sizeof label.action);
  snprintf(label.boundary, sizeof label.boundary, "%s", boundary);
  return label;
}

void md_label_mass(const md_backend_request *request, double mass, md_modes_label *label) {
  if (md_action_has_spin(request->action))
    md_append(label->action, sizeof label->action, ", mass %.15g", mass);
}

md_modes_label md_deflation_label(const md_physics_options *physics, double mass,
                                  const md_backend_request *request, const char *boundary,
                                  const char *checksum) {
  md_modes_label label = md_massless_label(physics, request, boundary, checksum);
  md_label_mass(request, mass, &label);
  return label;
}

md_status md_deflation_describe(md_context *context, const char *path, md_modes_info *info) {
  MD_TRY(md_modes_describe(context, path, info));
  if (info->converged > 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s must have modes that converged, none of its %d did; go on with minidirac "
                 "eigen --start %s",
                 path, info->count, path);
}

static void report_made(cJSON *object, const md_physics_options *physics,
                        const md_action_links *links) {
  const md_smear_request made = md_physics_smear(physics, links->space);
  if (md_recipe_takes(made.recipe, "u0")) cJSON_AddNumberToObject(object, "u0", made.u0);
  if (md_recipe_takes(made.recipe, "naik-epsilon"))
    cJSON_AddNumberToObject(object, "naik_epsilon", made.naik_epsilon);
  if (links->projection.links > 0) {
    md_report_add(object, "projections=%g projections_by_singular_values=%g",
                  (double)links->projection.links, (double)links->projection.fallbacks);
  }
  md_report_add(object, "smear_on=%s smear_s=%g", links->space == MD_HOST ? "cpu" : "gpu",
                links->smear_s);
}

void md_action_links_report(cJSON *object, const md_physics_options *physics,
                            const md_action_links *links) {
  const md_action_data *data = md_action_get(links->action);
  if (!isnan(links->plaquette)) cJSON_AddNumberToObject(object, "plaquette", links->plaquette);
  if (!isnan(links->reunitarized))
    md_report_add(object, "reunitarized=%hhd largest_link_change=%g", (bool)true,
                  links->reunitarized);
  if (data->fields == 1) return;
  if (!physics->fat_file) {
    report_made(object, physics, links);
    return;
  }
  md_report_add(object, "fat_file=%s long_file=%s fat_plaquette=%g", physics->fat_file,
                physics->long_file, links->fat_plaquette);
  for (int f = 0; f < data->fields; f++) {
    char key[32];
    snprintf(key, sizeof key, "%s_phases", data->field[f].name);
    cJSON_AddStringToObject(object, key, md_phase_name(links->phases[f].convention));
    snprintf(key, sizeof key, "%s_boundary", data->field[f].name);
    cJSON_AddStringToObject(object, key,
                            links->phases[f].antiperiodic ? "antiperiodic" : "periodic");
  }
}

void md_action_links_say(const md_context *context, const md_physics_options *physics,
                         const md_action_links *links) {
  if (!isnan(links->reunitarized))
    md_say(context, "links        projected onto SU(3), largest change %.2e\n",
           links->reunitarized);
  if (md_action_get(links->action)->fields == 1) return;
  if (physics->fat_file)
    md_say(context, "links        %s, %s, plaquette of fat links %.12f", physics->fat_file,
           physics->long_file, links->fat_plaquette);
  else
    md_say(context, "links        made on the %s in %.3f s",
           links->space == MD_HOST ? "CPU" : "GPU", links->smear_s);
  if (links->projection.links > 0)
    md_say(context, ", projections %lld, of them by singular values %lld", links->projection.links,
           links->projection.fallbacks);
  md_say(context, "\n");
}
