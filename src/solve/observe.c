#include "base/text.h"
#include "lattice/fields/observables.h"
#include "solve/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A source on one time slice, whose t counts from the first slice of the lattice. */
static bool on_one_slice(const md_source *source) {
  return source->word != MD_WORD_POINTS && source->word != MD_WORD_SEEDED;
}

/* C(t) from the source to t of the lattice. */
static void turn(double *correlator, double *room, int times, int first) {
  for (int t = 0; t < times; t++) room[(t + first) % times] = correlator[t];
  memcpy(correlator, room, (size_t)times * sizeof *correlator);
}

/* Means over the copies of the source with momentum zero, then with those asked for; room holds the
 * correlators of all right-hand sides. */
static md_status correlate(md_context *context, const md_solve_run *run,
                           const md_source_vector *vectors, double *room) {
  const md_solve_options *o = &run->options;
  const md_solve_observables *found = &run->observed;
  const int times = run->links.geometry->global[MD_T], n = o->request.n_rhs;
  static const int zero[1][3] = {{0, 0, 0}};
  int origin[MD_MAX_RHS][MD_DIMS];
  for (int r = 0; r < n; r++) memcpy(origin[r], vectors[r].at, sizeof origin[r]);
  const md_momenta still = {1, zero}, moving = md_momenta_of(&o->momenta);
  MD_TRY(md_pion_correlators(context, run->x, (const int(*)[MD_DIMS])origin, &still, room));
  md_source_mean(&o->source, n, room, times, times, found->pion, found->pion_error);
  if (on_one_slice(&o->source)) {
    turn(found->pion, room, times, origin[0][MD_T]);
    turn(found->pion_error, room, times, origin[0][MD_T]);
    /* One sum for the three colours, as ever. */
    if (!md_source_is_random(&o->source)) MD_TRY(md_pion_correlator(context, run->x, found->pion));
  }
  if (!found->momentum) return MD_OK;
  MD_TRY(md_pion_correlators(context, run->x, (const int(*)[MD_DIMS])origin, &moving, room));
  const int length = moving.count * times;
  md_source_mean(&o->source, n, room, length, length, found->momentum, found->momentum_error);
  return MD_OK;
}

static md_status observe_pion(md_context *context, md_solve_run *run) {
  const md_solve_options *o = &run->options;
  md_solve_observables *found = &run->observed;
  const size_t times = (size_t)run->links.geometry->global[MD_T];
  const size_t rows = o->momenta.count ? (size_t)o->momenta.count : 1;
  md_source_vector vectors[MD_MAX_RHS];
  md_source_expand(&o->source, run->links.geometry->global, (int)o->rhs, vectors);
  double *room = malloc(rows * times * (size_t)o->rhs * sizeof *room);
  found->pion = calloc(times, sizeof(double));
  found->pion_error = calloc(times, sizeof(double));
  bool there = room && found->pion && found->pion_error;
  if (o->momenta.count) {
    found->momentum = calloc(rows * times, sizeof(double));
    found->momentum_error = calloc(rows * times, sizeof(double));
    there = there && found->momentum && found->momentum_error;
  }
  md_status status = there ? MD_OK : md_fail_memory(context, rows * times * 8, "observables");
  status = md_agree(context, status);
  if (status == MD_OK) status = correlate(context, run, vectors, room);
  free(room);
  return status;
}

md_status md_solve_observe(md_context *context, md_solve_run *run) {
  md_solve_observables *found = &run->observed;
  const size_t rhs = (size_t)run->options.rhs;
  md_solve_observables_free(found);
  if (!md_source_is_noise(&run->options.source)) return observe_pion(context, run);
  found->condensate = calloc(rhs, sizeof(double));
  MD_TRY(md_agree(context,
                  found->condensate ? MD_OK : md_fail_memory(context, rhs * 8, "observables")));
  return md_chiral_condensate(context, run->b, run->x, found->condensate);
}

void md_solve_observables_free(md_solve_observables *observed) {
  free(observed->pion);
  free(observed->pion_error);
  free(observed->momentum);
  free(observed->momentum_error);
  free(observed->condensate);
  *observed = (md_solve_observables){0};
}

static int copies_of(const md_solve_options *o) {
  return (int)o->rhs / md_source_width(&o->source);
}

/* Mean over noise vectors and its standard error (0 for one vector). */
static void mean_condensate(const md_solve_run *run, double *mean, double *error) {
  md_source_mean(&run->options.source, (int)run->options.rhs, run->observed.condensate, 1, 1, mean,
                 error);
}

static void report_momenta(cJSON *object, const md_solve_run *run) {
  const md_momenta momenta = md_momenta_of(&run->options.momenta);
  const int times = run->links.geometry->global[MD_T];
  cJSON *rows = cJSON_AddArrayToObject(object, "pion_momenta");
  for (int q = 0; q < momenta.count; q++) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(rows, row);
    md_report_integers(row, "momentum", momenta.n[q], 3);
    md_report_reals(row, "correlator", run->observed.momentum + q * times, times);
    if (copies_of(&run->options) > 1)
      md_report_reals(row, "error", run->observed.momentum_error + q * times, times);
  }
}

void md_solve_report_observables(cJSON *object, const md_solve_run *run) {
  const md_solve_observables *found = &run->observed;
  const md_source *source = &run->options.source;
  const int times = run->links.geometry->global[MD_T];
  if (found->pion) {
    md_report_reals(object, "pion_correlator", found->pion, times);
    if (copies_of(&run->options) > 1)
      md_report_reals(object, "pion_correlator_error", found->pion_error, times);
    cJSON_AddStringToObject(object, "pion_correlator_from",
                            on_one_slice(source) ? "lattice" : "source");
  }
  if (found->momentum) report_momenta(object, run);
  if (found->condensate) {
    double mean, error;
    mean_condensate(run, &mean, &error);
    cJSON_AddNumberToObject(object, "chiral_condensate", mean);
    cJSON_AddNumberToObject(object, "chiral_condensate_error", error);
    md_report_reals(object, "chiral_condensate_estimates", found->condensate,
                    (int)run->options.rhs);
  }
}

void md_solve_print_observables(const md_context *context, const md_solve_run *run) {
  const md_solve_observables *found = &run->observed;
  const md_momenta momenta = md_momenta_of(&run->options.momenta);
  const int times = run->links.geometry->global[MD_T];
  const bool copies = copies_of(&run->options) > 1;
  if (found->pion)
    md_say(context, "pion correlator, t%s and C(t)%s\n",
           on_one_slice(&run->options.source) ? "" : " from the source",
           copies ? " with its error over sources" : "");
  for (int t = 0; found->pion && t < times; t++)
    if (copies)
      md_say(context, "%3d  %.16g +- %.2g\n", t, found->pion[t], found->pion_error[t]);
    else
      md_say(context, "%3d  %.16g\n", t, found->pion[t]);
  for (int q = 0; found->momentum && q < momenta.count; q++) {
    md_say(context, "momentum %d %d %d, t from the source and C(t)\n", momenta.n[q][0],
           momenta.n[q][1], momenta.n[q][2]);
    for (int t = 0; t < times; t++)
      md_say(context, "%3d  %.16g\n", t, found->momentum[q * times + t]);
  }
  if (found->condensate) {
    double mean, error;
    mean_condensate(run, &mean, &error);
    md_say(context, "condensate   tr M^-1 / V = %.12g +- %.2g over %lld source%s\n", mean, error,
           run->options.rhs, md_plural(run->options.rhs));
  }
}
