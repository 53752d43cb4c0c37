#include "base/interrupt.h"
#include "base/progress.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/timer.h"
#include "generate/generate.h"
#include "lattice/gauge/heatbath.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char record_name[] = "minidirac chain", series_name[] = "chain plaquettes";
enum { SERIES_MOST = 1000, NUMBER_BYTES = 24 };

md_status md_chain_find(md_context *context, const md_file_texts *texts, md_chain_record *record) {
  const char *text = md_file_texts_find(texts, record_name);
  const char *series = md_file_texts_find(texts, series_name);
  md_chain_record said = {.found = true};
  *record = (md_chain_record){.found = false};
  if (!text || sscanf(text, "beta=%lf seed=%lld sweeps=%lld overrelax=%lld", &said.beta, &said.seed,
                      &said.sweeps, &said.overrelax) != 4)
    return MD_OK;
  const bool sane = isfinite(said.beta) && said.beta >= 0.0 && said.seed >= 0 && said.sweeps >= 0 &&
                    said.sweeps < 1LL << 53 && said.overrelax >= 0;
  if (!sane) return MD_OK; /* and no part of it counts */
  *record = said;
  record->plaquettes = malloc(SERIES_MOST * sizeof(double));
  if (!record->plaquettes) return md_fail_memory(context, SERIES_MOST * 8, "plaquette history");
  for (char *end; series && record->count < SERIES_MOST; series = end) {
    const double value = strtod(series, &end);
    if (end == series || !isfinite(value)) break;
    record->plaquettes[record->count++] = value;
  }
  return MD_OK;
}

/* The newest plaquettes, those of the file that the chain came from before its own. */
static char *print_series(const md_chain *c) {
  const int own = c->done < SERIES_MOST ? (int)c->done : SERIES_MOST;
  const int before = c->from.count < SERIES_MOST - own ? c->from.count : SERIES_MOST - own;
  char *text = malloc((size_t)SERIES_MOST * NUMBER_BYTES);
  size_t used = 0;
  for (int k = 0; text && k < before + own; k++) {
    const double value = k < before ? c->from.plaquettes[c->from.count - before + k]
                                    : c->plaquettes[c->done - own + (k - before)];
    used += (size_t)snprintf(text + used, NUMBER_BYTES, "%s%.15g", k ? " " : "", value);
  }
  return text;
}

static md_status add_texts(md_context *context, const md_generate_request *r, const md_chain *c,
                           md_file_texts *texts) {
  char record[160];
  if (!c->plaquettes) return MD_OK; /* no chain */
  snprintf(record, sizeof record, "beta=%.17g seed=%lld sweeps=%lld overrelax=%lld", r->beta,
           r->seed, c->from.sweeps + c->done, r->overrelax);
  MD_TRY(md_file_texts_add(context, texts, record_name, record, strlen(record)));
  char *series = print_series(c);
  if (!series) return md_fail_memory(context, SERIES_MOST * NUMBER_BYTES, "plaquette history");
  const md_status status = md_file_texts_add(context, texts, series_name, series, strlen(series));
  free(series);
  return status;
}

static bool keeps_record(const md_lattice_format *format) {
  size_t used = 0;
  return md_lattice_format_keeps(format, record_name, "", &used);
}

bool md_chain_fits(const md_lattice_format *format) {
  return md_lattice_format_holds(format, MD_DOUBLE) && keeps_record(format);
}

md_status md_chain_save(md_context *context, const char *path, const md_lattice_format *format,
                        const md_generate_request *r, const md_chain *c, const md_gauge *gauge) {
  md_file_texts texts = {0};
  const md_precision wish = path == r->checkpoint ? MD_DOUBLE : r->precision;
  const bool holds = md_lattice_format_holds(format, wish);
  md_status status = md_agree(context, add_texts(context, r, c, &texts));
  const md_lattice_output output = {.format = format,
                                    .precision = holds ? wish : MD_SINGLE,
                                    .texts = &texts,
                                    .keep_old = !r->force && path != r->checkpoint};
  if (status == MD_OK) status = md_lattice_save_as(context, path, &output, gauge);
  const char *series = md_file_texts_find(&texts, series_name);
  size_t used = 0;
  const bool told =
      status == MD_OK && c->plaquettes && (path == r->checkpoint || strcmp(path, r->output) == 0);
  if (told && keeps_record(format) && !md_lattice_format_keeps(format, series_name, series, &used))
    md_warn(context, "%s: %s files have no place for these texts, which are dropped: %s", path,
            md_lattice_format_name(format), series_name);
  if (told && !keeps_record(format))
    md_warn(context,
            "%s: %s files have no place for a chain's record; who goes on from it gives --beta and "
            "a --seed that the chain has not used",
            path, md_lattice_format_name(format));
  md_file_texts_free(&texts);
  return status;
}

void md_chain_numbered(const char *output, long long sweep, char *name, size_t bytes) {
  const char *dot = strrchr(md_base_of(output), '.');
  const int stem = dot ? (int)(dot - output) : (int)strlen(output);
  snprintf(name, bytes, "%.*s.%06lld%s", stem, output, sweep, dot ? dot : "");
}

/* The numbered file of this sweep, where one is due. What it cannot be written for is kept in c. */
static md_status save_numbered(md_context *context, const md_generate_request *r, md_chain *c,
                               md_heatbath *heatbath, const md_gauge *gauge) {
  char name[PATH_MAX];
  const long long sweep = c->from.sweeps + c->done;
  if (r->save_every == 0 || sweep % r->save_every != 0) return MD_OK;
  md_chain_numbered(r->output, sweep, name, sizeof name);
  MD_TRY(md_heatbath_give(heatbath));
  c->unsaved = md_chain_save(context, name, r->format, r, c, gauge);
  if (c->unsaved != MD_OK) memcpy(c->message, context->message, sizeof c->message);
  return MD_OK;
}

/* One sweep with its overrelaxation; *time_s without what is measured after it. */
static md_status run_sweep(const md_generate_request *r, md_heatbath *heatbath, uint64_t sweep,
                           double *time_s) {
  const double start_s = md_time_s();
  MD_TRY(md_heatbath_sweep(heatbath, r->beta, (uint64_t)r->seed, sweep));
  for (long long k = 0; k < r->overrelax; k++) MD_TRY(md_overrelaxation_sweep(heatbath));
  MD_TRY(md_heatbath_wait(heatbath));
  *time_s = md_time_s() - start_s;
  return MD_OK;
}

static md_status run_sweeps(md_context *context, const md_generate_request *r,
                            md_heatbath *heatbath, md_gauge *gauge, md_chain *c, double *times_s) {
  md_progress progress = md_progress_start(context, "heatbath");
  md_say(context, "%8s %16s %16s %16s\n", "sweep", "plaquette", "space-space", "space-time");
  md_status status = MD_OK;
  for (long long sweep = 0; sweep < r->sweeps && status == MD_OK; sweep++) {
    md_plaquettes now;
    status = run_sweep(r, heatbath, (uint64_t)(c->from.sweeps + sweep), &times_s[sweep]);
    if (status == MD_OK) status = md_heatbath_plaquettes(heatbath, &now);
    if (status != MD_OK) break;
    c->plaquettes[sweep] = now.mean;
    c->done = sweep + 1;
    md_say(context, "%8lld %16.12f %16.12f %16.12f\n", c->from.sweeps + sweep + 1, now.mean,
           now.space_space, now.space_time);
    md_progress_update(&progress, (double)(sweep + 1) / (double)r->sweeps, "sweep %lld of %lld",
                       c->from.sweeps + sweep + 1, c->from.sweeps + r->sweeps);
    status = save_numbered(context, r, c, heatbath, gauge);
    if (md_interrupted_now(context) || c->unsaved != MD_OK) break;
  }
  md_progress_stop(&progress);
  return status;
}

/* The sweeps where the request wants them; `gauge` receives the links. */
static md_status run_in_space(md_context *context, const md_generate_request *r, md_gauge *gauge,
                              md_chain *c, double *times_s) {
  md_heatbath *heatbath = NULL;
  MD_TRY(md_heatbath_create(context, gauge, r->space, &heatbath));
  md_status status = run_sweeps(context, r, heatbath, gauge, c, times_s);
  if (status == MD_OK) status = md_heatbath_give(heatbath);
  md_heatbath_destroy(heatbath);
  return status;
}

md_status md_chain_run(md_context *context, const md_generate_request *r, md_gauge *gauge,
                       md_chain *c) {
  const size_t bytes = (size_t)r->sweeps * sizeof(double);
  c->plaquettes = malloc(bytes);
  double *times_s = malloc(bytes);
  char text[MD_ERROR_TEXT];
  md_status status =
      c->plaquettes && times_s ? MD_OK : md_fail_memory(context, bytes, "plaquette history");
  status = md_agree(context, status);
  if (status == MD_OK) status = run_in_space(context, r, gauge, c, times_s);
  if (status == MD_OK) {
    c->sweep_s = md_median(times_s, (int)c->done);
    c->mean = c->error = NAN;
    if (c->done > r->discard)
      status = md_agree(context, md_blocked_mean(context, c->plaquettes + r->discard,
                                                 (int)(c->done - r->discard), &c->mean, &c->error));
  }
  free(times_s);
  if (status == MD_OK && isfinite(c->error))
    md_say(context, "plaquette %s (mean after sweep %lld, blocked error)\n",
           md_format_error(c->mean, c->error, text), c->from.sweeps + r->discard);
  else if (status == MD_OK && isfinite(c->mean))
    md_say(context,
           "plaquette %.6f (mean after sweep %lld; an error needs two sweeps or more after "
           "--discard)\n",
           c->mean, c->from.sweeps + r->discard);
  return status;
}
