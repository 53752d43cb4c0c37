/* minidirac generate: a gauge field made from nothing, or one continued by heatbath. */
#include "generate/generate.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/gauge/smear.h"
#include "links/run.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const md_command_text text = {
    "generate", "Makes a gauge field and writes it to a lattice file.",
    "Starts: cold (unit links), hot (uniform links), heatbath (a Markov chain of the Wilson "
    "action\n"
    "that begins with --from). One sweep is a heatbath of every link (Cabibbo and Marinari, with\n"
    "Kennedy and Pendleton) and --overrelax microcanonical updates. The links depend on the seed\n"
    "alone: they are the same to the last bit for every number of ranks and threads, and on GPUs\n"
    "to rounding, which overrelaxation lets grow. A file says which sweeps of which seed made it:\n"
    "with --from FILE the chain goes on as if it had never stopped, with the file's beta, seed "
    "and\n"
    "overrelaxation where no other is given.",
    "minidirac generate --dims 8x8x8x8 --beta 6.0 --sweeps 40 --seed 1 -o mine.h5"};

static bool is_word(const char *value, const char *word) {
  return strcmp(value, word) == 0;
}

static bool starts_from_file(const md_generate_request *r) {
  return is_word(r->start, "heatbath") && !is_word(r->from, "cold") && !is_word(r->from, "hot");
}

/* Without --precision: double, as far as the format can hold it. */
static md_status choose_precision(md_context *context, md_generate_request *r) {
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

static md_status check(md_context *context, md_generate_request *r, const md_option *options,
                       int count) {
  static const char *const of_chain[] = {"from",       "ignore-checksum", "beta",
                                         "sweeps",     "overrelax",       "discard",
                                         "checkpoint", "save-every",      "on"};
  if (!r->output) return md_fail(context, MD_INPUT, "generate needs --output FILE");
  if (r->dims[0] == 0 && !starts_from_file(r))
    return md_fail(context, MD_INPUT, "generate needs --dims AxBxCxD");
  if (!is_word(r->start, "heatbath"))
    for (size_t i = 0; i < sizeof of_chain / sizeof *of_chain; i++)
      if (md_option_seen(options, count, of_chain[i]))
        md_warn(context, "--%s has no effect with --start %s", of_chain[i], r->start);
  if (is_word(r->start, "cold") && r->has_seed)
    md_warn(context, "--seed has no effect with --start cold");
  r->space = is_word(r->on, "gpu") ? MD_DEVICE : MD_HOST;
  if (r->discard < 0) r->discard = r->sweeps / 2;
  if (is_word(r->start, "heatbath") && r->discard >= r->sweeps)
    return md_fail(context, MD_INPUT, "--discard must be below --sweeps %lld, got %lld", r->sweeps,
                   r->discard);
  MD_TRY(md_lattice_format_find(context, r->output, r->format_name, &r->format));
  /* --format is also that of the checkpoint where it can be. */
  const char *format = r->format_name && md_chain_fits(r->format) ? r->format_name : NULL;
  if (r->checkpoint)
    MD_TRY(md_lattice_format_find(context, r->checkpoint, format, &r->checkpoint_format));
  if (r->checkpoint && !md_chain_fits(r->checkpoint_format))
    return md_fail(context, MD_INPUT,
                   "--checkpoint needs a format that holds links in double and the record of their "
                   "chain, got %s; use hdf5",
                   md_lattice_format_name(r->checkpoint_format));
  return choose_precision(context, r);
}

/* What the file says in the place of options that were not given. */
static md_status check_record(md_context *context, const md_generate_request *r) {
  if (!(r->beta <= MD_BETA_MOST))
    return md_fail(context, MD_INPUT, "beta must be within 0..%g, %s says %g; give --beta",
                   MD_BETA_MOST, r->from, r->beta);
  if (r->seed > MD_SEED_MOST)
    return md_fail(context, MD_INPUT, "seed must be within 0..%lld, %s says %lld; give --seed",
                   MD_SEED_MOST, r->from, r->seed);
  if (r->overrelax > MD_OVERRELAX_MOST)
    return md_fail(context, MD_INPUT,
                   "overrelax must be within 0..%d, %s says %lld; give --overrelax",
                   MD_OVERRELAX_MOST, r->from, r->overrelax);
  return MD_OK;
}

/* A chain goes on with what its file says; what the command line says stands above that. */
static md_status go_on(md_context *context, md_generate_request *r, const md_lattice_info *info,
                       md_chain *c) {
  MD_TRY(md_chain_find(context, &info->notes.texts, &c->from));
  if (!c->from.found) {
    md_warn(context,
            "%s does not say which sweeps made it: random numbers begin with sweep 1 of seed %lld, "
            "which its chain must not have used",
            r->from, r->seed);
    return MD_OK;
  }
  if (!r->has_seed) r->seed = c->from.seed;
  if (!r->has_beta) r->beta = c->from.beta;
  if (!r->has_overrelax) r->overrelax = c->from.overrelax;
  MD_TRY(check_record(context, r));
  md_say(context,
         "%s: sweep %lld of a chain with beta %g, seed %lld; going on with beta %g, seed %lld\n",
         r->from, c->from.sweeps, c->from.beta, c->from.seed, r->beta, r->seed);
  return MD_OK;
}

static md_status load_start(md_context *context, md_generate_request *r, md_geometry **geometry,
                            md_gauge *gauge, md_chain *c) {
  md_lattice_info info = {0};
  md_status status =
      md_lattice_load(context, r->from, r->common.grid, r->ignore_checksum, geometry, gauge, &info);
  if (status == MD_OK) status = md_gauge_check_thin(context, gauge); /* sweeps would keep it */
  if (status == MD_OK) status = md_agree(context, go_on(context, r, &info, c));
  md_lattice_info_destroy(&info);
  if (status != MD_OK || r->dims[0] == 0) return status;
  const int *is = (*geometry)->global, *asked = r->dims;
  if (memcmp(asked, is, sizeof r->dims) == 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "--dims must be those of %s, %dx%dx%dx%d, got %dx%dx%dx%d; leave --dims out",
                 r->from, is[0], is[1], is[2], is[3], asked[0], asked[1], asked[2], asked[3]);
}

static md_status require_memory(md_context *context, const md_generate_request *r,
                                const md_geometry *plan) {
  md_memory_need need = {.host = md_lattice_load_bytes(plan)};
  if (is_word(r->start, "heatbath")) {
    if (r->space == MD_HOST) need.host += md_heatbath_bytes(plan);
    if (r->space == MD_DEVICE) need.device += md_heatbath_device_bytes(plan);
  }
  return md_memory_require(context, &need, "generate");
}

static md_status make_start(md_context *context, md_generate_request *r, md_geometry **geometry,
                            md_gauge *gauge, md_chain *c) {
  md_geometry plan;
  if (starts_from_file(r)) {
    MD_TRY(md_lattice_plan(context, r->from, r->common.grid, &plan, NULL));
    MD_TRY(require_memory(context, r, &plan));
    return load_start(context, r, geometry, gauge, c);
  }
  const md_layout_request layout = md_layout_of(r->dims, r->common.grid, 0, NULL);
  MD_TRY(md_geometry_plan(context, &layout, &plan));
  MD_TRY(require_memory(context, r, &plan));
  MD_TRY(md_geometry_create(context, &layout, geometry));
  MD_TRY(md_agree(context, md_gauge_create(context, *geometry, gauge)));
  const char *start = is_word(r->start, "heatbath") ? r->from : r->start;
  return is_word(start, "hot") ? md_gauge_start_hot(context, gauge, (uint64_t)r->seed)
                               : md_gauge_start_cold(context, gauge);
}

static void fill_report(md_report *report, const md_generate_request *r,
                        const md_geometry *geometry, const md_gauge_observables *now,
                        const md_chain *c) {
  md_report_grid(report, geometry->grid, geometry->grid_asked, geometry->grid_reason);
  md_report_integers(report->root, "dims", geometry->global, MD_DIMS);
  md_report_add(report->root,
                "start=%s seed=%g output=%s format=%s precision=%s plaquette=%g plaquette_ss=%g "
                "plaquette_st=%g link_trace=%g unitarity_deviation=%g",
                r->start, (double)r->seed, r->output, md_lattice_format_name(r->format),
                md_precision_name(r->precision), now->plaquette, now->plaquette_ss,
                now->plaquette_st, now->link_trace, now->unitarity_deviation);
  if (c->plaquettes) {
    md_report_add(report->root,
                  "from=%s on=%s beta=%g sweeps=%g sweeps_done=%g first_sweep=%g save_every=%g "
                  "overrelax=%g discard=%g plaquette_mean=%g plaquette_error=%g",
                  r->from, r->on, r->beta, (double)r->sweeps, (double)c->done,
                  (double)c->from.sweeps + 1, (double)r->save_every, (double)r->overrelax,
                  (double)r->discard, c->mean, c->error);
    md_report_reals(report->root, "plaquette_history", c->plaquettes, (int)c->done);
    md_report_reals(report->root, "plaquettes_before", c->from.plaquettes, c->from.count);
    cJSON_AddNumberToObject(report->root, "sweep_s", c->sweep_s);
  }
}

/* The chain ended early, as the message says, which stays: its links are not to be lost. */
static md_status keep_chain(md_context *context, const md_generate_request *r, md_gauge *gauge,
                            const md_chain *c, md_status status) {
  char first[sizeof context->message], second[sizeof context->message];
  if (!r->checkpoint || !c->plaquettes) return status;
  memcpy(first, context->message, sizeof first);
  const md_status kept = md_chain_save(context, r->checkpoint, r->checkpoint_format, r, c, gauge);
  memcpy(second, context->message, sizeof second);
  if (kept != MD_OK) return md_fail(context, status, "%s; %s", first, second);
  return md_fail(context, status,
                 "%s; %s has the links, go on with --from %s and the rest of --sweeps", first,
                 r->checkpoint, r->checkpoint);
}

/* A signal ended the chain: --output is for whole ones. */
static md_status fail_interrupted(md_context *context, const md_generate_request *r,
                                  const md_chain *c) {
  const char *name = md_interrupt_name(context);
  const long long before = c->from.sweeps, sweep = before + c->done, last = before + r->sweeps;
  if (r->checkpoint)
    return md_fail(context, MD_ENVIRONMENT, "%s ended the chain after sweep %lld of %lld", name,
                   sweep, last);
  return md_fail(context, MD_ENVIRONMENT,
                 "%s ended the chain after sweep %lld of %lld, %s is not written; with "
                 "--checkpoint FILE the links are kept",
                 name, sweep, last, r->output);
}

/* A state replaces one of the same chain alone. */
static md_status check_checkpoint(md_context *context, const md_generate_request *r,
                                  const md_geometry *geometry) {
  md_lattice_info info;
  md_chain_record old = {0};
  bool there;
  if (!r->checkpoint || r->force || !is_word(r->start, "heatbath")) return MD_OK;
  md_status status = md_lattice_describe_old(context, r->checkpoint, &info, &there);
  if (there && status == MD_OK)
    status = md_agree(context, md_chain_find(context, &info.notes.texts, &old));
  const bool same = status == MD_OK && old.found && old.beta == r->beta && old.seed == r->seed &&
                    old.overrelax == r->overrelax &&
                    memcmp(info.header.dims, geometry->global, sizeof info.header.dims) == 0;
  free(old.plaquettes);
  md_lattice_info_destroy(&info);
  if (!there || same) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "--checkpoint replaces a state of this chain alone, but %s holds other data; add "
                 "--force or give another name",
                 r->checkpoint);
}

/* The numbered files are checked before the work, as --output is. */
static md_status check_numbered(md_context *context, const md_generate_request *r,
                                const md_chain *c) {
  char name[PATH_MAX];
  md_made_files made = {0};
  md_status status = MD_OK;
  const long long first = c->from.sweeps, last = first + r->sweeps, step = r->save_every;
  if (step == 0 || !is_word(r->start, "heatbath")) return MD_OK;
  for (long long sweep = (first / step + 1) * step; sweep <= last && status == MD_OK;
       sweep += step) {
    md_chain_numbered(r->output, sweep, name, sizeof name);
    status = md_made_files_add(context, &made, "--save-every", name, MD_FILE_RESULT);
  }
  return md_options_check_made(context, &r->common, &made, status);
}

static void say_head(const md_context *context, const md_generate_request *r,
                     const md_geometry *g) {
  const bool chain = is_word(r->start, "heatbath");
  md_say(context, "lattice      %dx%dx%dx%d, %s\n", g->global[0], g->global[1], g->global[2],
         g->global[3], chain ? r->from : r->start);
  md_say_ranks(context, g, -1);
  if (chain)
    md_say(context,
           "chain        beta %g, %lld sweep%s with %lld overrelaxation%s each, on the %s\n",
           r->beta, r->sweeps, md_plural(r->sweeps), r->overrelax, md_plural(r->overrelax), r->on);
  md_say(context, "seed         %lld\n", r->seed);
}

/* *made: the links are, and the report says so, even where they could not be written. */
static md_status generate(md_context *context, md_generate_request *r, md_geometry **geometry,
                          md_gauge *gauge, md_chain *c, md_report *report, bool *made) {
  MD_TRY(make_start(context, r, geometry, gauge, c));
  MD_TRY(check_numbered(context, r, c));
  MD_TRY(check_checkpoint(context, r, *geometry));
  say_head(context, r, *geometry);
  if (is_word(r->start, "heatbath")) MD_TRY(md_chain_run(context, r, gauge, c));
  md_gauge_observables now;
  const bool whole = !c->plaquettes || c->done == r->sweeps;
  const md_precision stored = whole ? r->precision : MD_DOUBLE; /* a state is in double */
  MD_TRY(md_gauge_observe_in(context, gauge, stored, &now));
  double loop[2];
  MD_TRY(md_polyakov_loop(context, gauge, stored, loop));
  fill_report(report, r, *geometry, &now, c);
  md_report_reals(report->root, "polyakov_loop", loop, 2);
  *made = true;
  md_status status = MD_OK;
  if (whole)
    status = md_chain_save(context, r->output, r->format, r, c, gauge);
  else if (c->unsaved == MD_OK)
    status = fail_interrupted(context, r, c);
  const bool kept = whole && status == MD_OK;
  if (c->unsaved != MD_OK) status = md_fail(context, c->unsaved, "%s", c->message); /* the first */
  if (status != MD_OK) return kept ? status : keep_chain(context, r, gauge, c, status);
  md_say(context, "%s: %dx%dx%dx%d %s, plaquette %.15f\n", r->output, (*geometry)->global[0],
         (*geometry)->global[1], (*geometry)->global[2], (*geometry)->global[3],
         md_precision_name(r->precision), now.plaquette);
  return MD_OK;
}

md_status md_command_generate(md_context *context, int argc, char **argv) {
  md_generate_request r = {.start = "heatbath",
                           .from = "cold",
                           .on = "cpu",
                           .beta = 6.0,
                           .sweeps = 100,
                           .overrelax = 4,
                           .discard = -1,
                           .seed = 1};
  md_interrupt_catch(context);
  md_option options[] = {
      MD_OPTION(DIMS, "dims", r.dims, "AxBxCxD", "even extents along x,y,z,t", .low = 1,
                .high = 32767, .group = MD_GROUP_PHYSICS),
      MD_OPTION(CHOICE, "start", &r.start, NULL, "what to make [heatbath]",
                .choices = "cold|hot|heatbath"),
      MD_OPTION(TEXT, "from", &r.from, "cold|hot|FILE", "where the heatbath begins [cold]",
                .file = MD_FILE_INPUT),
      MD_IGNORE_CHECKSUM_OPTION(r.ignore_checksum),
      MD_OPTION(REAL, "beta", &r.beta, "B", "6/g^2 of the Wilson action [6.0]", .low = 0.0,
                .high = MD_BETA_MOST, .group = MD_GROUP_PHYSICS),
      MD_OPTION(INTEGER, "sweeps", &r.sweeps, "N", "heatbath sweeps [100]", .low = 1, .high = 1e8),
      MD_OPTION(INTEGER, "overrelax", &r.overrelax, "N", "overrelaxation updates in each sweep [4]",
                .low = 0, .high = MD_OVERRELAX_MOST),
      MD_OPTION(INTEGER, "discard", &r.discard, "N",
                "sweeps before the mean plaquette is taken [half]", .low = 0, .high = 1e8),
      MD_OPTION(CHOICE, "on", &r.on, NULL, "where the sweeps are done [cpu]", .choices = "cpu|gpu",
                .group = MD_GROUP_MACHINE),
      MD_OPTION(INTEGER, "seed", &r.seed, "S", "of the random numbers [1]", .low = 0,
                .high = MD_SEED_MOST, .group = MD_GROUP_PHYSICS),
      MD_OPTION(TEXT, "output", &r.output, "FILE", "lattice file to write (required)",
                .short_name = 'o', .file = MD_FILE_RESULT, .group = MD_GROUP_OUTPUT),
      MD_FORCE_OPTION(r.force),
      MD_OPTION(INTEGER, "save-every", &r.save_every, "N",
                "also write OUTPUT.000N.SUFFIX after every N sweeps of the chain [0: not]",
                .low = 0, .high = 1e8),
      MD_OPTION(TEXT, "checkpoint", &r.checkpoint, "FILE",
                "lattice file that takes the links of a chain that ends early",
                .file = MD_FILE_STATE),
      MD_OPTION(CHOICE, "format", &r.format_name, NULL, "of the file [by its suffix]",
                .choices = "hdf5|ildg|milc|nersc"),
      MD_OPTION(CHOICE, "precision", &r.precision_name, NULL,
                "of the links on file [double where it can be]", .choices = "double|single"),
      MD_COMMON_OPTIONS(r.common)};
  const int count = sizeof options / sizeof *options;
  MD_TRY(md_options_read(context, &text, options, count, &r.common, argc, argv));
  if (r.common.help) return MD_OK;
  r.has_beta = md_option_seen(options, count, "beta");
  r.has_seed = md_option_seen(options, count, "seed");
  r.has_overrelax = md_option_seen(options, count, "overrelax");
  MD_TRY(check(context, &r, options, count));
  md_geometry *geometry = NULL;
  md_gauge gauge = {0};
  md_chain c = {0};
  md_report report;
  MD_TRY(md_report_open(context, "generate", &report));
  bool made = false;
  const md_status status = generate(context, &r, &geometry, &gauge, &c, &report, &made);
  MD_FREE(c.plaquettes, c.from.plaquettes);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  const bool due = made || md_report_is_due(context, status);
  return md_report_close_after(context, &report, due ? r.common.json : NULL, status);
}
