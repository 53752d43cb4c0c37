/* Means, errors and effective masses over the lattices of a study. */
#include "base/statistics.h"
#include "base/text.h"
#include "measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for the jackknife of up to `length` numbers at once. */
typedef struct desk {
  const md_study *s;
  int done, bins;
  double *values;        /* [done][length]; all memory begins here */
  double *samples;       /* [bins][length] */
  double *masses, *mass; /* effective ones: [bins][length] of the samples, and of the mean */
  double *mean, *error;  /* [length] */
} desk;

static md_status desk_create(md_context *context, const md_study *s, int length, desk *d) {
  *d = (desk){.s = s};
  for (int k = 0; k < s->lattices; k++) d->done += md_study_has(s, k);
  d->bins = md_jackknife_bins(d->done, (int)s->options.bin);
  const size_t n = (size_t)length, rows = (size_t)(d->done + 1);
  d->values = malloc((3 * rows + 3) * n * sizeof *d->values);
  if (!d->values) return md_fail_memory(context, 3 * rows * n * sizeof *d->values, "statistics");
  d->samples = d->values + rows * n;
  d->masses = d->samples + rows * n;
  d->mass = d->masses + rows * n;
  d->mean = d->mass + n;
  d->error = d->mean + n;
  return MD_OK;
}

/* Mean and error of `length` numbers from place `at` of a field on. */
static void average(desk *d, md_study_field field, int at, int length) {
  for (int k = 0, row = 0; k < d->s->lattices; k++)
    if (md_study_has(d->s, k))
      memcpy(d->values + (size_t)(row++) * (size_t)length, md_study_at(d->s, k, field) + at,
             (size_t)length * sizeof *d->values);
  md_jackknife_means(d->values, d->done, length, d->bins, d->mean, d->samples);
  for (int i = 0; i < length; i++)
    d->error[i] = md_jackknife_error(d->samples + i, length, d->bins);
}

static void report_scalar(desk *d, cJSON *object, const char *name, md_study_field field, int at) {
  static const char *const of[] = {"", "_error", "_autocorrelation_time",
                                   "_autocorrelation_time_error"};
  double tau, tau_error;
  average(d, field, at, 1);
  md_autocorrelation_time(d->values, d->done, &tau, &tau_error);
  const double values[] = {d->mean[0], d->error[0], tau, tau_error};
  for (int k = 0; k < 4; k++) {
    char key[64];
    snprintf(key, sizeof key, "%s%s", name, of[k]);
    md_report_real(object, key, values[k]);
  }
}

/* A row of the report for an action, a mass and a source; says which. */
static cJSON *add_case(const md_context *context, const md_study *s, cJSON *rows, int action,
                       int mass, int source) {
  const md_study_options *o = &s->options;
  const char *of_action = md_action_name((md_action)o->actions.value[action]);
  const char *of_source = o->sources.source[source].text;
  const int place = md_study_case(s, action, mass, source);
  double most = 0.0;
  for (int k = 0; k < s->lattices; k++)
    if (md_study_has(s, k)) most = fmax(most, md_study_at(s, k, MD_STUDY_ITERATIONS)[place]);
  md_say(context, "%s, mass %g, %s", of_action, o->masses.value[mass], of_source);
  cJSON *row = md_rows_add(context, rows, "action=%s mass=%g source=%s iterations=%g", of_action,
                           o->masses.value[mass], of_source, most);
  md_kappa_report(row, (md_action)o->actions.value[action], o->masses.value[mass]);
  return row;
}

/* The effective mass of the mean, its error from those of the samples: NaN where one has none. */
static void effective_mass(desk *d, int times) {
  md_effective_mass(d->mean, times, d->mass);
  for (int b = 0; b < d->bins && d->bins > 1; b++)
    md_effective_mass(d->samples + (size_t)b * (size_t)times, times,
                      d->masses + (size_t)b * (size_t)times);
}

/* m_res with its error, from place `at` of the pion and `place` of the midpoint; nothing where that
 * is NaN. The desk is used anew. */
static void analyse_midpoint(const md_context *context, desk *d, cJSON *row, int at, int place) {
  const int times = d->s->dims[MD_T], bins = d->bins > 1 ? d->bins : 0; /* one has no samples */
  char text[MD_ERROR_TEXT];
  average(d, MD_STUDY_PION, at, times);
  d->mass[0] = 0.0;
  for (int b = 0; b < bins; b++) d->masses[b] = 0.0;
  for (int t = 0; t < times; t++) {
    if (!md_in_window(t, times)) continue;
    d->mass[0] += d->mean[t];
    for (int b = 0; b < bins; b++) d->masses[b] += d->samples[b * times + t];
  }
  average(d, MD_STUDY_MIDPOINT, place, 1);
  if (isnan(d->mean[0]) || times < 4) return; /* with less there is no slice in the window */
  for (int b = 0; b < bins; b++) d->samples[b] /= d->masses[b];
  const double error = md_jackknife_error(d->samples, 1, bins);
  md_report_real(row, "residual_mass", d->mean[0] / d->mass[0]);
  md_report_real(row, "residual_mass_error", error);
  md_say(context, "m_res %s\n", md_format_error(d->mean[0] / d->mass[0], error, text));
}

static void analyse_pion(md_context *context, desk *d, cJSON *rows, int action, int mass,
                         int source, int momentum) {
  const md_study *s = d->s;
  const int times = s->dims[MD_T], *n = md_momenta_of(&s->options.momenta).n[momentum];
  const int place = md_study_case(s, action, mass, source) * md_study_momenta(s) + momentum;
  average(d, MD_STUDY_PION, place * times, times);
  if (isnan(d->mean[0])) return;
  effective_mass(d, times);
  cJSON *row = add_case(context, s, rows, action, mass, source);
  md_report_integers(row, "momentum", n, 3);
  md_report_reals(row, "correlator", d->mean, times);
  md_report_reals(row, "error", d->error, times);
  md_report_reals(row, "effective_mass", d->mass, times);
  md_say(context, ", momentum %d %d %d: t from the source, C(t), effective mass\n", n[0], n[1],
         n[2]);
  double *errors = d->error; /* said before it takes the masses' */
  for (int t = 0; t < times; t++) {
    const double found = md_jackknife_error(d->masses + t, times, d->bins);
    char text[MD_ERROR_TEXT];
    md_say(context, "%4d  %s", t, md_format_error(d->mean[t], errors[t], text));
    if (!isnan(d->mass[t])) md_say(context, "   %s", md_format_error(d->mass[t], found, text));
    md_say(context, "\n");
    errors[t] = found;
  }
  md_report_reals(row, "effective_mass_error", errors, times);
  if (n[0] == 0 && n[1] == 0 && n[2] == 0)
    analyse_midpoint(context, d, row, place * times, md_study_case(s, action, mass, source));
}

static void analyse_condensate(md_context *context, desk *d, cJSON *rows, int action, int mass,
                               int source) {
  const md_study *s = d->s;
  const int place = md_study_case(s, action, mass, source);
  double noise2 = 0.0;
  average(d, MD_STUDY_CONDENSATE, place, 1);
  if (isnan(d->mean[0])) return;
  average(d, MD_STUDY_CONDENSATE_ERROR, place, 1);
  for (int k = 0; k < d->done; k++) noise2 += d->values[k] * d->values[k];
  char text[MD_ERROR_TEXT];
  cJSON *row = add_case(context, s, rows, action, mass, source);
  report_scalar(d, row, "chiral_condensate", MD_STUDY_CONDENSATE, place);
  const double noise = s->options.vectors > 1 ? sqrt(noise2) / d->done : NAN; /* of one: unknown */
  md_report_real(row, "stochastic_error", noise);
  md_say(context, ": tr M^-1 / V = %s", md_format_error(d->mean[0], d->error[0], text));
  if (!isnan(noise)) md_say(context, ", noise %.2g", noise);
  md_say(context, "\n");
}

static void analyse_links(md_context *context, desk *d, cJSON *root) {
  double loop[2], error[2];
  char text[2][MD_ERROR_TEXT];
  report_scalar(d, root, "plaquette", MD_STUDY_PLAQUETTE, 0);
  md_say(context, "plaquette      %s\n", md_format_error(d->mean[0], d->error[0], text[0]));
  average(d, MD_STUDY_POLYAKOV, 0, 2);
  memcpy(loop, d->mean, sizeof loop);
  memcpy(error, d->error, sizeof error);
  md_report_reals(root, "polyakov_loop", loop, 2);
  md_report_reals(root, "polyakov_loop_error", error, 2);
  md_say(context, "Polyakov loop  %s, %s i\n", md_format_error(loop[0], error[0], text[0]),
         md_format_error(loop[1], error[1], text[1]));
}

/* Lattices one by one. */
static void report_lattices(const md_study *s, cJSON *root) {
  static const char *const states[] = {"waits", "measured", "resumed", "skipped"};
  cJSON *rows = cJSON_AddArrayToObject(root, "lattices");
  for (int k = 0; k < s->lattices; k++) {
    const md_study_lattice *lattice = &s->lattice[k];
    cJSON *row =
        md_rows_add(NULL, rows, "lattice=%s state=%s", lattice->name, states[lattice->state]);
    if (lattice->state == MD_LATTICE_SKIPPED)
      cJSON_AddStringToObject(row, "reason", lattice->reason);
    if (!md_study_has(s, k)) continue;
    md_report_add(row, "checksum=%s plaquette=%g", lattice->sums.file,
                  *md_study_at(s, k, MD_STUDY_PLAQUETTE));
    md_report_reals(row, "polyakov_loop", md_study_at(s, k, MD_STUDY_POLYAKOV), 2);
    md_report_real(row, "seconds", *md_study_at(s, k, MD_STUDY_SECONDS));
  }
}

md_status md_study_analyse(md_context *context, const md_study *s, cJSON *root) {
  const md_study_options *o = &s->options;
  desk d;
  const int length = s->dims[MD_T] > 2 ? s->dims[MD_T] : 2;
  report_lattices(s, root);
  md_status status = md_agree(context, desk_create(context, s, length, &d));
  cJSON *pion = cJSON_AddArrayToObject(root, "pion");
  cJSON *condensate = cJSON_AddArrayToObject(root, "condensate");
  cJSON_AddNumberToObject(root, "bins", d.bins);
  if (status == MD_OK && d.done > 0) {
    md_say(context, "\nlattices       %d, in %d bin%s of the jackknife\n", d.done, d.bins,
           md_plural(d.bins));
    analyse_links(context, &d, root);
    for (int a = 0; a < o->actions.count; a++)
      for (int m = 0; m < o->masses.count; m++)
        for (int i = 0; i < o->sources.count; i++) {
          for (int q = 0; q < md_study_momenta(s); q++) analyse_pion(context, &d, pion, a, m, i, q);
          analyse_condensate(context, &d, condensate, a, m, i);
        }
  }
  free(d.values);
  return status;
}
