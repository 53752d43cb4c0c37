#include "base/device.h"
#include "base/timer.h"
#include "lattice/gauge/recipes.h"

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

/* Links on the device are brought to the host to be measured. */
static md_status measure(work *w, const md_gauge *gauge, char name, md_link_means *means) {
  if (w->request->space == MD_HOST) return md_link_measure(w->context, gauge, name, means);
  md_gauge host;
  md_status status = md_gauge_create(w->context, gauge->geometry, &host);
  if (status == MD_OK) status = md_gauge_copy(w->context, &host, gauge);
  status = md_agree(w->context, status);
  if (status == MD_OK) status = md_gauge_exchange(w->context, &host);
  if (status == MD_OK) status = md_link_measure(w->context, &host, name, means);
  md_gauge_destroy(&host);
  return status;
}

static md_status note(work *w, const md_gauge *gauge, char name, double epsilon) {
  if (!w->report || w->request->unmeasured || !name) return MD_OK;
  md_link_means *means = &w->report->kinds[w->report->kind_count++];
  MD_TRY(wait(w));
  const double start_s = md_time_s();
  MD_TRY(measure(w, gauge, name, means));
  means->naik_epsilon = epsilon;
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
  if (noted) MD_TRY(note(w, out, level->sum_name, 0.0));
  MD_TRY(md_agree(w->context, finish_level(w, level->end, u, v)));
  MD_TRY(md_staples_exchange_gauge(w->staples, out));
  return noted ? note(w, out, level->end_name, 0.0) : MD_OK;
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
      status = md_agree(w->context, md_staples_create_gauge(w->context, w->staples, &next));
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

/* From the fat links for epsilon = 0 in fat[0] to those of all values. */
static md_status spread_fat(work *w, const md_gauge *source, md_gauge *fat) {
  const md_recipe *recipe = w->request->recipe;
  const md_staple_kernels *kernels = md_staples_kernels(w->staples);
  const md_level *level = &recipe->levels[recipe->level_count - 1];
  md_matrices u[MD_DIMS], base[MD_DIMS], v[MD_DIMS];
  directions_of(source, u);
  directions_of(&fat[0], base);
  for (int e = md_smear_epsilons(w->request) - 1; e >= 0; e--) { /* fat[0] is the last to change */
    const double epsilon = md_smear_epsilon(w->request, e);
    directions_of(&fat[e], v);
    for (int mu = 0; mu < MD_DIMS && recipe->epsilon_one != 0.0; mu++)
      kernels->combine(&v[mu], 1.0, &base[mu], recipe->epsilon_one * epsilon, &u[mu], NULL);
    MD_TRY(md_staples_exchange_gauge(w->staples, &fat[e]));
  }
  if (level->end != MD_END_NONE) return MD_OK;
  for (int e = 0; e < md_smear_epsilons(w->request); e++)
    MD_TRY(note(w, &fat[e], level->sum_name, md_smear_epsilon(w->request, e)));
  return MD_OK;
}

static md_status make_long(work *w, const md_gauge *source, md_gauge *long_links) {
  const md_staple_kernels *kernels = md_staples_kernels(w->staples);
  md_matrices u[MD_DIMS], base[MD_DIMS], v[MD_DIMS];
  directions_of(source, u);
  directions_of(&long_links[0], base);
  for (int mu = 0; mu < MD_DIMS; mu++) MD_TRY(md_staples_triple(w->staples, &u[mu], mu, &base[mu]));
  for (int e = md_smear_epsilons(w->request) - 1; e >= 0; e--) {
    directions_of(&long_links[e], v);
    for (int mu = 0; mu < MD_DIMS; mu++)
      kernels->combine(&v[mu], md_smear_naik_weight(w->request, e), &base[mu], 0.0, NULL, NULL);
    MD_TRY(md_staples_exchange_gauge(w->staples, &long_links[e]));
  }
  for (int e = 0; e < md_smear_epsilons(w->request); e++)
    MD_TRY(note(w, &long_links[e], 'L', md_smear_epsilon(w->request, e)));
  return MD_OK;
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
  md_status status = make_levels(w, thin, &fat[0], &previous, &source);
  if (status == MD_OK) status = count_projections(w);
  if (status == MD_OK) status = spread_fat(w, source, fat);
  if (status == MD_OK && long_links) status = make_long(w, source, long_links);
  md_gauge_destroy(&previous);
  return status;
}

static md_status create_all(work *w, int count, md_gauge *gauge) {
  md_status status = MD_OK;
  for (int e = 0; e < count && gauge && status == MD_OK; e++)
    status = md_staples_create_gauge(w->context, w->staples, &gauge[e]);
  return status;
}

static void destroy_all(int count, md_gauge *gauge) {
  for (int e = 0; e < count && gauge; e++) md_gauge_destroy(&gauge[e]);
}

/* All in the space of the staples: `thin` with halos exchanged. */
static md_status make_all(work *w, const md_gauge *thin, md_gauge *fat, md_gauge *long_links) {
  const int count = md_smear_epsilons(w->request);
  const double start_s = md_time_s();
  md_status status = create_all(w, count, fat);
  if (status == MD_OK) status = create_all(w, count, long_links);
  status = md_agree(w->context, status);
  if (status == MD_OK) status = make_links(w, thin, fat, long_links);
  if (status == MD_OK) status = wait(w);
  if (w->report) w->report->make_s = md_time_s() - start_s - w->measure_s;
  return md_agree(w->context, status); /* with what was deferred on the way */
}

/* host[] are created from device[], one after another, halos exchanged. */
static md_status bring_home(work *w, int count, md_gauge *host, md_gauge *device) {
  for (int e = 0; e < count && host; e++) {
    md_status status = md_gauge_create(w->context, device[e].geometry, &host[e]);
    if (status == MD_OK) status = md_gauge_copy(w->context, &host[e], &device[e]);
    MD_TRY(md_agree(w->context, status));
    md_gauge_destroy(&device[e]);
    MD_TRY(md_gauge_exchange(w->context, &host[e]));
  }
  return MD_OK;
}

static md_status make_on_device(work *w, const md_gauge *thin, md_gauge *fat,
                                md_gauge *long_links) {
  const int count = md_smear_epsilons(w->request);
  md_gauge there = {0}, fat_there[MD_EPSILONS_MOST] = {0}, long_there[MD_EPSILONS_MOST] = {0};
  md_status status = md_staples_create_gauge(w->context, w->staples, &there);
  if (status == MD_OK) status = md_gauge_copy(w->context, &there, thin);
  status = md_agree(w->context, status);
  if (status == MD_OK) {
    status = md_agree(w->context, md_staples_exchange_gauge(w->staples, &there));
    if (status == MD_OK) status = make_all(w, &there, fat_there, long_links ? long_there : NULL);
  }
  md_gauge_destroy(&there);
  if (status == MD_OK) status = bring_home(w, count, fat, fat_there);
  if (status == MD_OK) status = bring_home(w, count, long_links, long_there);
  destroy_all(count, fat_there);
  destroy_all(count, long_there);
  return status;
}

void md_smear_need(const md_geometry *geometry, const md_smear_request *request,
                   md_memory_need *need) {
  const int count = md_smear_epsilons(request);
  const int made = count * (md_recipe_has_long(request->recipe) ? 2 : 1);
  const int between = md_smear_steps(request) > 2 ? 2 : md_smear_steps(request) - 1;
  const int64_t gauge = md_gauge_bytes(geometry);
  const int64_t all = (made + between) * gauge + MD_STAPLE_MATRICES * gauge / MD_DIMS;
  need->host += request->space == MD_HOST ? all : made * gauge;
  if (request->space == MD_DEVICE) need->device += gauge + all;
}

md_status md_smear(md_context *context, const md_gauge *thin, const md_smear_request *request,
                   md_gauge *fat, md_gauge *long_links, md_smear_report *report) {
  const int count = md_smear_epsilons(request);
  work w = {.context = context, .request = request, .report = report};
  if (report) *report = (md_smear_report){0};
  MD_TRY(md_smear_check_request(context, request, long_links != NULL));
  MD_TRY(md_smear_check_thin(context, thin));
  for (int e = 0; e < count; e++) {
    fat[e] = (md_gauge){0};
    if (long_links) long_links[e] = (md_gauge){0};
  }
  MD_TRY(md_staples_create(context, thin->geometry, request->space, md_recipe_name(request->recipe),
                           MD_DIMS * md_smear_steps(request), &w.staples));
  const md_status status = request->space == MD_HOST ? make_all(&w, thin, fat, long_links)
                                                     : make_on_device(&w, thin, fat, long_links);
  md_staples_destroy(w.staples);
  if (status == MD_OK) return MD_OK;
  destroy_all(count, fat);
  destroy_all(count, long_links);
  return status;
}
