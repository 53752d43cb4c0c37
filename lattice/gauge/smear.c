#include "base/device.h"
#include "base/timer.h"
#include "lattice/gauge/phases.h"
#include "lattice/gauge/recipes.h"

#include <math.h>

static md_status check_request(md_context *context, const md_smear_request *r, bool wants_long) {
  const char *name = md_recipe_name(r->recipe);
  if (md_recipe_takes(r->recipe, "u0") && !(r->u0 > 0.0 && r->u0 <= 10.0))
    return md_fail(context, MD_INPUT, "u0 must be above 0 and at most 10, got %g", r->u0);
  if (md_recipe_takes(r->recipe, "alpha") && !(r->alpha >= 0.0 && r->alpha <= 1.0))
    return md_fail(context, MD_INPUT, "alpha must be within 0..1, got %g", r->alpha);
  if (md_recipe_takes(r->recipe, "rho") && !(r->rho >= 0.0 && r->rho <= 1.0))
    return md_fail(context, MD_INPUT, "rho must be within 0..1, got %g", r->rho);
  if (md_recipe_takes(r->recipe, "steps") && !(r->steps >= 1 && r->steps <= 1000))
    return md_fail(context, MD_INPUT, "steps must be within 1..1000, got %d", r->steps);
  if (!(fabs(r->naik_epsilon) <= 10.0) ||
      (r->naik_epsilon != 0.0 && !md_recipe_takes(r->recipe, "naik-epsilon")))
    return md_fail(context, MD_INPUT,
                   "the Naik epsilon must be within -10..10, and 0 for %s links, got %g", name,
                   r->naik_epsilon);
  if (wants_long && !md_recipe_has_long(r->recipe))
    return md_fail(context, MD_INPUT, "%s has no long links", name);
  return MD_OK;
}

md_status md_gauge_check_thin(md_context *context, const md_gauge *thin) {
  md_gauge_observables observables;
  md_phases phases;
  MD_TRY(md_gauge_observe(context, thin, &observables));
  if (observables.bad_links > 0)
    return md_fail(context, MD_INPUT,
                   "thin links must be finite, NaN or infinity is in %lld of them",
                   observables.bad_links);
  if (observables.unitarity_deviation <= MD_THIN_TOLERANCE) return MD_OK;
  MD_TRY(md_phases_score(context, thin, MD_LINKS_THIN, &phases));
  if (phases.clear && (phases.convention != MD_PHASES_NONE || phases.antiperiodic))
    return md_fail(context, MD_INPUT,
                   "thin links must be bare, these have in them: staggered phases %s, boundary "
                   "sign %s; write them without",
                   md_phase_name(phases.convention),
                   phases.antiperiodic ? "antiperiodic" : "periodic");
  return md_fail(context, MD_INPUT,
                 "thin links must be in SU(3) within %g, their largest deviation is %.3g; are "
                 "they fat or long links?",
                 MD_THIN_TOLERANCE, observables.unitarity_deviation);
}

md_status md_link_measure(md_context *context, const md_gauge *gauge, char name,
                          md_link_means *means) {
  md_gauge_observables now;
  MD_TRY(md_gauge_observe(context, gauge, &now));
  *means = (md_link_means){.name = name,
                           .plaquette = name == 'L' ? NAN : now.plaquette,
                           .link_trace = now.link_trace,
                           .norm2 = now.norm2};
  return MD_OK;
}

/* What one call of md_smear works on. */
typedef struct work {
  md_context *context;
  const md_smear_request *request;
  md_staples *staples;
  md_projection_counts counts; /* of this rank */
  md_smear_report *report;     /* NULL: nothing is measured */
  double measure_s;            /* time spent on it */
} work;

/* For what is queued on the device. */
static md_status wait(work *w) {
  if (w->request->space == MD_HOST) return MD_OK;
  return md_agree(w->context, md_device_synchronise(w->context));
}

/* `host` is created from `device`, halos exchanged, and to be destroyed in any case. */
static md_status copy_home(work *w, md_gauge *host, const md_gauge *device) {
  md_status status = md_gauge_create(w->context, device->geometry, host);
  if (status == MD_OK) status = md_gauge_copy(w->context, host, device);
  MD_TRY(md_agree(w->context, status));
  return md_gauge_exchange(w->context, host);
}

/* Links on the device are brought to the host to be measured. */
static md_status measure(work *w, const md_gauge *gauge, char name, md_link_means *means) {
  if (w->request->space == MD_HOST) return md_link_measure(w->context, gauge, name, means);
  md_gauge host;
  md_status status = copy_home(w, &host, gauge);
  if (status == MD_OK) status = md_link_measure(w->context, &host, name, means);
  md_gauge_destroy(&host);
  return status;
}

static md_status note(work *w, const md_gauge *gauge, char name) {
  if (!w->report || w->request->unmeasured || !name) return MD_OK;
  md_link_means *means = &w->report->kinds[w->report->kind_count++];
  MD_TRY(wait(w));
  const double start_s = md_time_s();
  MD_TRY(measure(w, gauge, name, means));
  w->measure_s += md_time_s() - start_s;
  return MD_OK;
}

static void directions_of(const md_gauge *gauge, md_matrices u[MD_DIMS]) {
  for (int mu = 0; mu < MD_DIMS; mu++) u[mu] = md_gauge_direction(gauge, mu);
}

/* The sums of paths become the links of the level. */
static md_status finish_level(work *w, md_level_end end, const md_matrices *in, md_matrices *out) {
  const md_staple_kernels *kernels = md_staples_kernels(w->staples);
  const md_staple_tables *tables = md_staples_tables(w->staples);
  for (int mu = 0; mu < MD_DIMS; mu++) {
    if (end == MD_END_STOUT)
      kernels->stout(&out[mu], &out[mu], &in[mu]);
    else
      MD_TRY(kernels->project(w->context, tables, &out[mu], end == MD_END_SU3, &w->counts));
  }
  return MD_OK;
}

/* out = one level of smearing of `in`, both with halos exchanged; noted when it is to be. */
static md_status make_level(work *w, const md_level *level, bool noted, const md_gauge *in,
                            md_gauge *out) {
  const md_path_weights weights = md_smear_weights(w->request, level);
  md_matrices u[MD_DIMS], v[MD_DIMS];
  directions_of(in, u);
  directions_of(out, v);
  for (int mu = 0; mu < MD_DIMS; mu++) MD_TRY(md_staples_fat(w->staples, u, mu, &weights, &v[mu]));
  MD_TRY(md_staples_exchange_gauge(w->staples, out));
  if (level->end == MD_END_NONE) return MD_OK; /* noted when epsilon is in */
  if (noted) MD_TRY(note(w, out, level->sum_name));
  MD_TRY(md_agree(w->context, finish_level(w, level->end, u, v)));
  MD_TRY(md_staples_exchange_gauge(w->staples, out));
  return noted ? note(w, out, level->end_name) : MD_OK;
}

/* Level after level; `result` receives the links of the last, *source those that it smeared:
 * `thin` or *previous, which is to be destroyed in any case. */
static md_status make_levels(work *w, const md_gauge *thin, md_gauge *result, md_gauge *previous,
                             const md_gauge **source) {
  const md_recipe *recipe = w->request->recipe;
  const int steps = md_smear_steps(w->request), levels = recipe->level_count;
  *source = thin;
  for (int step = 0; step < steps; step++) {
    const bool last = step == steps - 1;
    const md_level *level = &recipe->levels[step < levels ? step : levels - 1];
    md_gauge next = {0};
    md_gauge *out = last ? result : &next;
    md_status status = MD_OK;
    if (!last)
      status = md_agree(w->context,
                        md_gauge_allocate(w->context, thin->geometry, w->request->space, &next));
    if (status == MD_OK) status = make_level(w, level, last || levels > 1, *source, out);
    if (status != MD_OK) {
      md_gauge_destroy(&next);
      return status;
    }
    if (last) return MD_OK;
    md_gauge_destroy(previous);
    *previous = next;
    *source = previous;
  }
  return MD_OK;
}

/* From the fat links for epsilon = 0, or the products of three links, to those of the request. */
static md_status spread(work *w, const md_gauge *source, bool are_long, md_gauge *links) {
  const md_recipe *recipe = w->request->recipe;
  const md_staple_kernels *kernels = md_staples_kernels(w->staples);
  const md_level *level = &recipe->levels[recipe->level_count - 1];
  const char name = are_long ? 'L' : level->end == MD_END_NONE ? level->sum_name : 0;
  const double add = are_long ? 0.0 : recipe->epsilon_one * w->request->naik_epsilon;
  md_matrices u[MD_DIMS], v[MD_DIMS];
  directions_of(source, u);
  directions_of(links, v);
  for (int mu = 0; mu < MD_DIMS && (are_long || recipe->epsilon_one != 0.0); mu++)
    kernels->combine(&v[mu], are_long ? md_smear_naik_weight(w->request) : 1.0, &v[mu], add,
                     are_long ? NULL : &u[mu], NULL);
  MD_TRY(md_staples_exchange_gauge(w->staples, links));
  return note(w, links, name);
}

static md_status make_long(work *w, const md_gauge *source, md_gauge *long_links) {
  for (int mu = 0; mu < MD_DIMS; mu++) {
    const md_matrices u = md_gauge_direction(source, mu);
    md_matrices product = md_gauge_direction(long_links, mu);
    MD_TRY(md_staples_triple(w->staples, &u, mu, &product));
  }
  return spread(w, source, true, long_links);
}

/* The counts of all ranks, and whether every matrix had a projection. */
static md_status count_projections(work *w) {
  long long counts[3] = {w->counts.links, w->counts.fallbacks, w->counts.singular};
  md_sum_integers(w->context, counts, 3);
  if (w->report) w->report->projection = (md_projection_counts){counts[0], counts[1], counts[2]};
  if (counts[2] == 0) return MD_OK;
  return md_fail(
      w->context, MD_INPUT,
      "sums of paths need an inverse to be projected to U(3), %lld of %lld lack it; other "
      "parameters or other links are needed",
      counts[2], counts[0]);
}

static md_status make_links(work *w, const md_gauge *thin, md_gauge *fat, md_gauge *long_links) {
  md_gauge previous = {0};
  const md_gauge *source = NULL;
  md_status status = make_levels(w, thin, fat, &previous, &source);
  if (status == MD_OK) status = count_projections(w);
  if (status == MD_OK) status = spread(w, source, false, fat);
  if (status == MD_OK && long_links) status = make_long(w, source, long_links);
  md_gauge_destroy(&previous);
  return status;
}

/* All in the space of the staples: `thin` with halos exchanged. */
static md_status make_all(work *w, const md_gauge *thin, md_gauge *fat, md_gauge *long_links) {
  const double start_s = md_time_s();
  const md_space space = w->request->space;
  md_status status = md_gauge_allocate(w->context, thin->geometry, space, fat);
  if (status == MD_OK && long_links)
    status = md_gauge_allocate(w->context, thin->geometry, space, long_links);
  status = md_agree(w->context, status);
  if (status == MD_OK) status = make_links(w, thin, fat, long_links);
  if (status == MD_OK) status = wait(w);
  if (w->report) w->report->make_s = md_time_s() - start_s - w->measure_s;
  return md_agree(w->context, status); /* with what was deferred on the way */
}

static md_status make_on_device(work *w, const md_gauge *thin, md_gauge *fat,
                                md_gauge *long_links) {
  md_gauge there = {0}, fat_there = {0}, long_there = {0};
  md_status status = md_gauge_allocate(w->context, thin->geometry, MD_DEVICE, &there);
  if (status == MD_OK) status = md_gauge_copy(w->context, &there, thin);
  status = md_agree(w->context, status);
  if (status == MD_OK) {
    status = md_agree(w->context, md_staples_exchange_gauge(w->staples, &there));
    if (status == MD_OK) status = make_all(w, &there, &fat_there, long_links ? &long_there : NULL);
  }
  md_gauge_destroy(&there);
  if (status == MD_OK) status = copy_home(w, fat, &fat_there);
  if (status == MD_OK && long_links) status = copy_home(w, long_links, &long_there);
  md_gauge_destroy(&fat_there);
  md_gauge_destroy(&long_there);
  return status;
}

void md_smear_need(const md_geometry *geometry, const md_smear_request *request,
                   md_memory_need *need) {
  const int made = md_recipe_has_long(request->recipe) ? 2 : 1;
  const int between = md_smear_steps(request) > 2 ? 2 : md_smear_steps(request) - 1;
  const int64_t gauge = md_gauge_bytes(geometry);
  const int64_t all = (made + between) * gauge + MD_STAPLE_MATRICES * gauge / MD_DIMS;
  need->host += request->space == MD_HOST ? all : made * gauge;
  if (request->space == MD_DEVICE) need->device += gauge + all;
}

md_status md_smear(md_context *context, const md_gauge *thin, const md_smear_request *request,
                   md_gauge *fat, md_gauge *long_links, md_smear_report *report) {
  work w = {.context = context, .request = request, .report = report};
  if (report) *report = (md_smear_report){0};
  MD_TRY(check_request(context, request, long_links != NULL));
  MD_TRY(md_gauge_check_thin(context, thin));
  *fat = (md_gauge){0};
  if (long_links) *long_links = (md_gauge){0};
  MD_TRY(md_staples_create(context, thin->geometry, request->space, md_recipe_name(request->recipe),
                           MD_DIMS * md_smear_steps(request), &w.staples));
  const md_status status = request->space == MD_HOST ? make_all(&w, thin, fat, long_links)
                                                     : make_on_device(&w, thin, fat, long_links);
  md_staples_destroy(w.staples);
  if (status == MD_OK) return MD_OK;
  md_gauge_destroy(fat);
  if (long_links) md_gauge_destroy(long_links);
  return status;
}
