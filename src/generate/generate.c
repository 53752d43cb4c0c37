/* minidirac generate: a gauge field made from nothing, or one continued by heatbath. */
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/precision.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/statistics.h"
#include "base/timer.h"
#include "commands.h"
#include "io/lattice_file.h"
#include "lattice/gauge/gauge_start.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/gauge/polyakov.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
  md_common_options common;
  int dims[MD_DIMS]; /* all 0: those of the lattice file */
  const char *start, *from, *output, *checkpoint, *format_name, *precision_name;
  double beta;
  long long sweeps, overrelax, discard, seed;
  bool force;
  const md_lattice_format *format, *checkpoint_format;
  md_precision precision;
} request;

typedef struct chain {
  double *plaquettes; /* after each sweep */
  long long done;     /* sweeps */
  double mean, error; /* over the sweeps that were not discarded */
  double sweep_s;     /* median time of a sweep, its overrelaxation included */
} chain;

static const md_command_text text = {
    "generate", "Makes a gauge field and writes it to a lattice file.",
    "Starts: cold (unit links), hot (uniform links), heatbath (a Markov chain of the Wilson "
    "action\n"
    "that begins with --from). One sweep is a heatbath of every link (Cabibbo and Marinari, with\n"
    "Kennedy and Pendleton) and --overrelax microcanonical updates. The links depend on the seed\n"
    "alone: they are the same to the last bit for every number of ranks and threads. To continue\n"
    "a chain from a file, give another --seed."};

static bool is_word(const char *value, const char *word) {
  return strcmp(value, word) == 0;
}

static bool starts_from_file(const request *r) {
  return is_word(r->start, "heatbath") && !is_word(r->from, "cold") && !is_word(r->from, "hot");
}

/* Without --precision: double, as far as the format can hold it. */
static md_status choose_precision(md_context *context, request *r) {
  const bool given = r->precision_name != NULL;
  r->precision = given ? (md_precision)md_precision_of(r->precision_name) : MD_DOUBLE;
  if (md_lattice_format_holds(r->format, r->precision)) return MD_OK;
  if (given)
    return md_fail(context, MD_INPUT, "this lattice format holds no %s links; use --precision %s",
                   r->precision_name, r->precision == MD_DOUBLE ? "single" : "double");
  r->precision = MD_SINGLE;
  md_warn(context, "%s is written in single precision, all that its format can hold", r->output);
  return MD_OK;
}

static md_status check(md_context *context, request *r, const md_option *options, int count) {
  static const char *const of_chain[] = {"from",      "beta",    "sweeps",
                                         "overrelax", "discard", "checkpoint"};
  if (!r->output) return md_fail(context, MD_INPUT, "generate needs --output FILE");
  if (r->dims[0] == 0 && !starts_from_file(r))
    return md_fail(context, MD_INPUT, "generate needs --dims AxBxCxD");
  if (!is_word(r->start, "heatbath"))
    for (size_t i = 0; i < sizeof of_chain / sizeof *of_chain; i++)
      if (md_option_seen(options, count, of_chain[i]))
        md_warn(context, "--%s has no effect with --start %s", of_chain[i], r->start);
  if (r->discard < 0) r->discard = r->sweeps / 2;
  if (r->discard >= r->sweeps)
    return md_fail(context, MD_INPUT, "--discard must be below --sweeps %lld, got %lld", r->sweeps,
                   r->discard);
  MD_TRY(md_lattice_format_find(context, r->output, r->format_name, &r->format));
  if (r->checkpoint)
    MD_TRY(md_lattice_format_find(context, r->checkpoint, r->format_name, &r->checkpoint_format));
  return choose_precision(context, r);
}

static md_status load_start(md_context *context, const request *r, md_geometry **geometry,
                            md_gauge *gauge) {
  md_lattice_info info = {0};
  md_status status =
      md_lattice_load(context, r->from, r->common.grid, false, geometry, gauge, &info);
  md_lattice_info_destroy(&info);
  if (status == MD_OK && r->dims[0] != 0 &&
      memcmp(r->dims, (*geometry)->global, sizeof r->dims) != 0)
    status = md_fail(context, MD_INPUT, "--dims must be those of the lattice %s; leave --dims out",
                     r->from);
  return status;
}

static md_status require_memory(md_context *context, const request *r,
                                const md_layout_request *layout) {
  md_geometry plan;
  MD_TRY(md_geometry_plan(context, layout, &plan));
  const bool heatbath = is_word(r->start, "heatbath");
  const md_memory_need need = {.host = md_lattice_load_bytes(&plan) +
                                       (heatbath ? md_heatbath_bytes(&plan) : 0)};
  return md_memory_require(context, &need, "generate");
}

static md_status make_start(md_context *context, const request *r, md_geometry **geometry,
                            md_gauge *gauge) {
  if (starts_from_file(r)) return load_start(context, r, geometry, gauge);
  md_layout_request layout = {0};
  memcpy(layout.global, r->dims, sizeof layout.global);
  memcpy(layout.grid, r->common.grid, sizeof layout.grid);
  MD_TRY(require_memory(context, r, &layout));
  MD_TRY(md_geometry_create(context, &layout, geometry));
  MD_TRY(md_agree(context, md_gauge_create(context, *geometry, gauge)));
  const char *start = is_word(r->start, "heatbath") ? r->from : r->start;
  return is_word(start, "hot") ? md_gauge_start_hot(context, gauge, (uint64_t)r->seed)
                               : md_gauge_start_cold(context, gauge);
}

static md_status run_sweeps(md_context *context, const request *r, md_gauge *gauge, chain *c,
                            double *times_s) {
  md_heatbath *heatbath = NULL;
  MD_TRY(md_heatbath_create(context, gauge, &heatbath));
  md_progress progress = md_progress_start(context, "heatbath");
  md_say(context, "%8s %16s %16s %16s\n", "sweep", "plaquette", "space-space", "space-time");
  md_status status = MD_OK;
  for (long long sweep = 0; sweep < r->sweeps && status == MD_OK; sweep++) {
    const double start_s = md_time_s();
    status = md_heatbath_sweep(heatbath, r->beta, (uint64_t)r->seed, (uint64_t)sweep);
    for (long long k = 0; k < r->overrelax && status == MD_OK; k++)
      status = md_overrelaxation_sweep(heatbath);
    times_s[sweep] = md_time_s() - start_s;
    md_gauge_observables now;
    if (status == MD_OK) status = md_gauge_observe(context, gauge, &now);
    if (status != MD_OK) break;
    c->plaquettes[sweep] = now.plaquette;
    c->done = sweep + 1;
    md_progress_stop(&progress);
    md_say(context, "%8lld %16.12f %16.12f %16.12f\n", sweep + 1, now.plaquette, now.plaquette_ss,
           now.plaquette_st);
    md_progress_update(&progress, (double)(sweep + 1) / (double)r->sweeps, "sweep %lld of %lld",
                       sweep + 1, r->sweeps);
    if (md_interrupted_now(context)) break;
  }
  md_progress_stop(&progress);
  md_heatbath_destroy(heatbath);
  return status;
}

static md_status run_chain(md_context *context, const request *r, md_gauge *gauge, chain *c) {
  const size_t bytes = (size_t)r->sweeps * sizeof(double);
  c->plaquettes = malloc(bytes);
  double *times_s = malloc(bytes);
  md_status status =
      c->plaquettes && times_s ? MD_OK : md_fail_memory(context, bytes, "plaquette history");
  status = md_agree(context, status);
  if (status == MD_OK) status = run_sweeps(context, r, gauge, c, times_s);
  if (status == MD_OK) {
    c->sweep_s = md_median(times_s, (int)c->done);
    c->mean = c->error = NAN;
    if (c->done > r->discard)
      status = md_agree(context, md_blocked_mean(context, c->plaquettes + r->discard,
                                                 (int)(c->done - r->discard), &c->mean, &c->error));
  }
  free(times_s);
  if (status == MD_OK && isfinite(c->error))
    md_say(context, "plaquette %.6f +- %.6f (mean after sweep %lld, blocked error)\n", c->mean,
           c->error, r->discard);
  else if (status == MD_OK && isfinite(c->mean))
    md_say(context,
           "plaquette %.6f (mean after sweep %lld; an error needs two sweeps or more after "
           "--discard)\n",
           c->mean, r->discard);
  return status;
}

static void fill_report(md_report *report, const request *r, const md_geometry *geometry,
                        const md_gauge_observables *now, const chain *c) {
  md_report_grid(report, geometry->grid);
  md_report_integers(report->root, "dims", geometry->global, MD_DIMS);
  cJSON_AddStringToObject(report->root, "start", r->start);
  cJSON_AddNumberToObject(report->root, "seed", (double)r->seed);
  cJSON_AddStringToObject(report->root, "output", r->output);
  cJSON_AddStringToObject(report->root, "format", md_lattice_format_name(r->format));
  cJSON_AddStringToObject(report->root, "precision", md_precision_name(r->precision));
  cJSON_AddNumberToObject(report->root, "plaquette", now->plaquette);
  cJSON_AddNumberToObject(report->root, "plaquette_ss", now->plaquette_ss);
  cJSON_AddNumberToObject(report->root, "plaquette_st", now->plaquette_st);
  cJSON_AddNumberToObject(report->root, "link_trace", now->link_trace);
  cJSON_AddNumberToObject(report->root, "unitarity_deviation", now->unitarity_deviation);
  if (c->plaquettes) {
    cJSON_AddStringToObject(report->root, "from", r->from);
    cJSON_AddNumberToObject(report->root, "beta", r->beta);
    cJSON_AddNumberToObject(report->root, "sweeps", (double)r->sweeps);
    cJSON_AddNumberToObject(report->root, "sweeps_done", (double)c->done);
    cJSON_AddNumberToObject(report->root, "overrelax", (double)r->overrelax);
    cJSON_AddNumberToObject(report->root, "discard", (double)r->discard);
    md_report_real(report->root, "plaquette_mean", c->mean);
    md_report_real(report->root, "plaquette_error", c->error);
    md_report_reals(report->root, "plaquette_history", c->plaquettes, (int)c->done);
    cJSON_AddNumberToObject(report->root, "sweep_s", c->sweep_s);
  }
}

/* A signal ended the chain: --output is for whole ones. */
static md_status leave_chain(md_context *context, const request *r, md_gauge *gauge,
                             const chain *c) {
  if (!r->checkpoint)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s ended the chain after sweep %lld of %lld, %s is not written; with "
                   "--checkpoint FILE the links are kept",
                   md_interrupt_name(context), c->done, r->sweeps, r->output);
  const bool holds = md_lattice_format_holds(r->checkpoint_format, r->precision);
  MD_TRY(md_lattice_save(context, r->checkpoint, r->checkpoint_format,
                         holds ? r->precision : MD_SINGLE, gauge));
  return md_fail(context, MD_ENVIRONMENT,
                 "%s ended the chain after sweep %lld of %lld; %s has the links, go on with --from "
                 "%s and another --seed",
                 md_interrupt_name(context), c->done, r->sweeps, r->checkpoint, r->checkpoint);
}

/* *made: the links are, and the report says so, even where they could not be written. */
static md_status generate(md_context *context, const request *r, md_geometry **geometry,
                          md_gauge *gauge, chain *c, md_report *report, bool *made) {
  MD_TRY(make_start(context, r, geometry, gauge));
  if (is_word(r->start, "heatbath")) MD_TRY(run_chain(context, r, gauge, c));
  md_gauge_observables now;
  MD_TRY(md_gauge_observe(context, gauge, &now));
  const bool whole = !c->plaquettes || c->done == r->sweeps;
  double loop[2];
  MD_TRY(md_polyakov_loop(context, gauge, loop));
  fill_report(report, r, *geometry, &now, c);
  md_report_reals(report->root, "polyakov_loop", loop, 2);
  *made = true;
  if (!whole) return leave_chain(context, r, gauge, c);
  MD_TRY(md_lattice_save(context, r->output, r->format, r->precision, gauge));
  md_say(context, "%s: %dx%dx%dx%d %s, plaquette %.15f\n", r->output, (*geometry)->global[0],
         (*geometry)->global[1], (*geometry)->global[2], (*geometry)->global[3],
         md_precision_name(r->precision), now.plaquette);
  return MD_OK;
}

md_status md_command_generate(md_context *context, int argc, char **argv) {
  request r = {.start = "heatbath",
               .from = "cold",
               .beta = 6.0,
               .sweeps = 100,
               .overrelax = 4,
               .discard = -1,
               .seed = 1};
  md_interrupt_catch(context);
  /* clang-format off */
  md_option options[] = {
      {.name = "dims", .type = MD_OPTION_DIMS, .target = r.dims, .argument = "AxBxCxD",
       .help = "even extents along x,y,z,t", .low = 1, .high = 32767},
      {.name = "start", .type = MD_OPTION_CHOICE, .target = &r.start,
       .help = "what to make [heatbath]", .choices = "cold|hot|heatbath"},
      {.name = "from", .type = MD_OPTION_TEXT, .target = &r.from, .argument = "cold|hot|FILE",
       .help = "where the heatbath begins [cold]", .file = MD_FILE_INPUT},
      {.name = "beta", .type = MD_OPTION_REAL, .target = &r.beta, .argument = "B",
       .help = "6/g^2 of the Wilson action [6.0]", .low = 0.0, .high = 1e6},
      {.name = "sweeps", .type = MD_OPTION_INTEGER, .target = &r.sweeps, .argument = "N",
       .help = "heatbath sweeps [100]", .low = 1, .high = 1e8},
      {.name = "overrelax", .type = MD_OPTION_INTEGER, .target = &r.overrelax, .argument = "N",
       .help = "overrelaxation updates in each sweep [4]", .low = 0, .high = 1000},
      {.name = "discard", .type = MD_OPTION_INTEGER, .target = &r.discard, .argument = "N",
       .help = "sweeps before the mean plaquette is taken [half]", .low = 0, .high = 1e8},
      {.name = "seed", .type = MD_OPTION_INTEGER, .target = &r.seed, .argument = "S",
       .help = "of the random numbers [1]", .low = 0, .high = 0x1p53},
      {.name = "output", .short_name = 'o', .type = MD_OPTION_TEXT, .target = &r.output,
       .argument = "FILE", .help = "lattice file to write", .file = MD_FILE_RESULT},
      {.name = "force", .type = MD_OPTION_FLAG, .target = &r.force,
       .help = "replace the file of --output where it is there"},
      {.name = "checkpoint", .type = MD_OPTION_TEXT, .target = &r.checkpoint, .argument = "FILE",
       .help = "lattice file that takes the links when a signal ends the chain", .file = MD_FILE_STATE},
      {.name = "format", .type = MD_OPTION_CHOICE, .target = &r.format_name,
       .help = "of the file [by its suffix]", .choices = "hdf5|ildg|milc|nersc"},
      {.name = "precision", .type = MD_OPTION_CHOICE, .target = &r.precision_name,
       .help = "of the links on file [double where it can be]", .choices = "double|single"},
      MD_COMMON_OPTIONS(r.common)};
  /* clang-format on */
  const int count = sizeof options / sizeof *options;
  MD_TRY(md_options_read(context, &text, options, count, &r.common, argc, argv));
  if (r.common.help) return MD_OK;
  MD_TRY(check(context, &r, options, count));
  md_geometry *geometry = NULL;
  md_gauge gauge = {0};
  chain c = {0};
  md_report report;
  MD_TRY(md_agree(context, md_report_open(context, "generate", &report)));
  bool made = false;
  const md_status status = generate(context, &r, &geometry, &gauge, &c, &report, &made);
  free(c.plaquettes);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  const bool due = made || md_report_is_due(context, status);
  return md_report_close_after(context, &report, due ? r.common.json : NULL, status);
}
