/* minidirac smear: fat and long links, and other smeared links, from a lattice of thin links. */
#include "lattice/gauge/smear.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "base/timer.h"
#include "commands.h"
#include "io/lattice_file.h"
#include "io/site_data.h"
#include "lattice/gauge/project.h"
#include "links/run.h"

#include <stdio.h>
#include <string.h>

typedef struct request {
  md_common_options common;
  const char *action, *lattice, *fat_out, *long_out, *precision, *on;
  long long steps;
  bool ignore_checksum, force, reunitarize;
  const md_lattice_format *fat_format, *long_format;
  md_smear_request smear;
} request;

/* What was made. */
typedef struct result {
  char lattice_checksum[32]; /* of LATTICE */
  char thin_links[MD_LATTICE_IDENTITY];
  md_geometry *geometry;
  md_gauge fat, long_links;
  md_smear_report report;
  double smear_s;
  double change; /* largest of a link by --reunitarize */
} result;

/* Links of ape and stout are in SU(3), and as good as thin ones for a file. */
static md_link_kind kind_of(const request *r) {
  const bool unitary = strcmp(r->action, "ape") == 0 || strcmp(r->action, "stout") == 0;
  return unitary ? MD_LINKS_THIN : MD_LINKS_FAT;
}

/* MD_INPUT where one of the files cannot hold what it is to. */
static md_status check_formats(md_context *context, const request *r) {
  const md_precision precision = (md_precision)md_precision_of(r->precision);
  const bool holds = md_lattice_format_holds(r->fat_format, precision) &&
                     (!r->long_out || md_lattice_format_holds(r->long_format, precision));
  if (!holds)
    return md_fail(context, MD_INPUT,
                   "MILC files hold single precision, got %s; use --precision single",
                   md_precision_name(precision));
  if (md_lattice_format_takes(r->fat_format, kind_of(r)) &&
      (!r->long_out || md_lattice_format_takes(r->long_format, MD_LINKS_LONG)))
    return MD_OK;
  return md_fail(context, MD_INPUT,
                 "NERSC files hold links in SU(3), fat and long links are not; use names in .h5, "
                 ".lime or .ildg");
}

/* Parameters that the action does not look at are refused. */
static md_status check(md_context *context, request *r, const md_option *options, int count) {
  const char *name;
  double value;
  if (!r->action) return md_fail(context, MD_INPUT, "smear needs --action %s", md_recipe_names);
  if (!r->fat_out) return md_fail(context, MD_INPUT, "smear needs --fat-out FILE");
  const md_recipe *recipe = md_recipe_find(r->action);
  for (int i = 0; (name = md_smear_parameter(&r->smear, i, &value)); i++)
    if (md_option_seen(options, count, name) && !md_recipe_takes(recipe, name))
      return md_fail(context, MD_INPUT, "--action %s takes no --%s; leave it out", r->action, name);
  if (r->long_out && !md_recipe_has_long(recipe))
    return md_fail(context, MD_INPUT, "--action %s has no long links; leave --long-out out",
                   r->action);
  MD_TRY(md_lattice_format_find(context, r->fat_out, NULL, &r->fat_format));
  if (r->long_out) MD_TRY(md_lattice_format_find(context, r->long_out, NULL, &r->long_format));
  r->smear.recipe = recipe;
  r->smear.space = strcmp(r->on, "gpu") == 0 ? MD_DEVICE : MD_HOST;
  r->smear.steps = (int)r->steps;
  return check_formats(context, r);
}

/* "hisq, naik-epsilon 0" */
static void describe(const request *r, char *text, size_t bytes) {
  const char *name;
  double value;
  snprintf(text, bytes, "%s", r->action);
  for (int i = 0; (name = md_smear_parameter(&r->smear, i, &value)); i++)
    if (md_recipe_takes(r->smear.recipe, name)) md_append(text, bytes, ", %s %.10g", name, value);
  if (r->reunitarize) md_append(text, bytes, ", reunitarized");
}

static void say_head(const md_context *context, const request *r, const md_geometry *g,
                     double plaquette) {
  char words[MD_PHYSICS_WORDS_BYTES];
  describe(r, words, sizeof words);
  md_say(context, "lattice      %s, %dx%dx%dx%d, plaquette %.12f\n", r->lattice, g->global[0],
         g->global[1], g->global[2], g->global[3], plaquette);
  md_say_ranks(context, g, -1);
  md_say(context, "links        %s, made on the %s\n", words, r->on);
}

static md_status make(md_context *context, const request *r, result *made) {
  md_gauge thin = {0};
  md_lattice_info info = {0};
  md_status status = md_lattice_load(context, r->lattice, r->common.grid, r->ignore_checksum,
                                     &made->geometry, &thin, &info);
  md_checksum_print(&info.computed, made->lattice_checksum, sizeof made->lattice_checksum);
  const double plaquette = info.observables.plaquette;
  md_lattice_info_destroy(&info);
  MD_TRY(status);
  md_memory_need need = {0};
  md_smear_need(made->geometry, &r->smear, &need);
  status = md_memory_require(context, &need, "smear");
  if (status == MD_OK) say_head(context, r, made->geometry, plaquette);
  if (status == MD_OK) status = md_lattice_identity(context, &thin, made->thin_links);
  if (status == MD_OK && r->reunitarize)
    status = md_gauge_reunitarize(context, r->lattice, &thin, &made->change);
  const double start_s = md_time_s();
  if (status == MD_OK)
    status = md_smear(context, &thin, &r->smear, &made->fat, r->long_out ? &made->long_links : NULL,
                      &made->report);
  made->smear_s = md_time_s() - start_s;
  md_gauge_destroy(&thin);
  return status;
}

/* The file may round the links that were measured. */
static void take_means(const md_gauge_observables *written, md_link_means *means) {
  if (means->name != 'L') means->plaquette = written->plaquette;
  means->link_trace = written->link_trace;
  means->norm2 = written->norm2;
}

static md_status save_links(md_context *context, const char *path, const md_lattice_output *output,
                            const md_gauge *links) {
  const char *names[3] = {0};
  int count = md_lattice_format_drops(output->format, &output->label, names);
  size_t used = 0;
  if (!md_lattice_format_keeps(output->format, MD_THIN_LINKS, "", &used))
    names[count++] = MD_THIN_LINKS;
  MD_TRY(md_lattice_save_as(context, path, output, links));
  if (count > 0)
    md_warn(context, "%s: %s files have no place for these texts, which are dropped: %s%s%s%s%s",
            path, md_lattice_format_name(output->format), names[0], count > 1 ? ", " : "",
            count > 1 ? names[1] : "", count > 2 ? ", " : "", count > 2 ? names[2] : "");
  return MD_OK;
}

/* The report is due once a file is there, and names what was written. */
static md_status save(md_context *context, const request *r, result *made, md_report *report,
                      bool *due) {
  md_file_texts texts = {0};
  md_provenance from;
  md_gauge_observables written;
  md_link_means *last = &made->report.kinds[made->report.kind_count - 1]; /* long ones, or fat */
  md_lattice_output output = {.format = r->fat_format,
                              .precision = (md_precision)md_precision_of(r->precision),
                              .label = {.kind = kind_of(r), .bare = true},
                              .texts = &texts,
                              .provenance = &from,
                              .keep_old = !r->force,
                              .written = &written};
  describe(r, output.label.made, sizeof output.label.made);
  md_provenance_of_run(context, &from);
  from.lattice = r->lattice;
  from.lattice_checksum = made->lattice_checksum;
  from.action = output.label.made;
  md_status status =
      md_agree(context, md_file_texts_add(context, &texts, MD_THIN_LINKS, made->thin_links,
                                          strlen(made->thin_links)));
  if (status == MD_OK) status = save_links(context, r->fat_out, &output, &made->fat);
  *due = status == MD_OK;
  if (status == MD_OK) take_means(&written, last - (r->long_out != NULL));
  output.format = r->long_format;
  output.label.kind = MD_LINKS_LONG;
  if (status == MD_OK && r->long_out)
    status = save_links(context, r->long_out, &output, &made->long_links);
  if (status == MD_OK && r->long_out) take_means(&written, last);
  if (status != MD_OK) cJSON_DeleteItemFromObject(report->root, "long_out");
  md_file_texts_free(&texts);
  return status;
}

#define COLUMNS                                                                                    \
  "name|links=%-5s plaquette=%18.12f link_trace|link~trace=%18.12f norm2||link|^2~/~3=%18.12f"

static void report_kinds(md_context *context, md_report *report, const result *made) {
  const md_smear_report *found = &made->report;
  cJSON *rows = cJSON_AddArrayToObject(report->root, "kinds");
  md_rows_head(context, COLUMNS);
  for (int k = 0; k < found->kind_count; k++) {
    const md_link_means *means = &found->kinds[k];
    md_rows_add(context, rows, COLUMNS, (const char[]){means->name, 0}, means->plaquette,
                means->link_trace, means->norm2);
  }
  md_report_add(report->root, "projections=%g projections_by_singular_values=%g",
                (double)found->projection.links, (double)found->projection.fallbacks);
  if (found->projection.links > 0)
    md_say(context, "projections %lld, of them by singular values %lld\n", found->projection.links,
           found->projection.fallbacks);
}

static void report_request(md_report *report, const request *r, const result *made) {
  cJSON *root = report->root;
  const char *name;
  char key[16];
  double value;
  md_report_geometry(report, made->geometry);
  md_report_add(root, "lattice=%s action=%s", r->lattice, r->action);
  if (r->reunitarize)
    md_report_add(root, "reunitarized=%hhd largest_link_change=%g", (bool)true, made->change);
  for (int i = 0; (name = md_smear_parameter(&r->smear, i, &value)); i++) {
    snprintf(key, sizeof key, "%s", name);
    for (char *at = key; *at; at++) *at = *at == '-' ? '_' : *at;
    if (md_recipe_takes(r->smear.recipe, name)) md_report_real(root, key, value);
  }
  cJSON_AddStringToObject(root, "fat_out", r->fat_out);
  if (r->long_out) cJSON_AddStringToObject(root, "long_out", r->long_out);
  /* make_s is without checks and means. */
  md_report_add(root, "precision=%s on=%s make_s=%g smear_s=%g", r->precision, r->on,
                made->report.make_s, made->smear_s);
}

static md_status smear(md_context *context, const request *r, md_report *report, bool *due) {
  result made = {0};
  md_status status = make(context, r, &made);
  if (status == MD_OK) {
    report_request(report, r, &made);
    status = save(context, r, &made, report, due);
    report_kinds(context, report, &made);
  }
  if (status == MD_OK)
    md_say(context, "%s%s%s: %s links, made in %.3f s\n", r->fat_out, r->long_out ? ", " : "",
           r->long_out ? r->long_out : "", r->action, made.report.make_s);
  md_gauge_destroy(&made.fat);
  md_gauge_destroy(&made.long_links);
  md_geometry_destroy(made.geometry);
  return status;
}

md_status md_command_smear(md_context *context, int argc, char **argv) {
  request r = {.precision = "double", .on = "cpu", .smear = md_smear_defaults(NULL), .steps = 1};
  md_option options[] = {
      MD_OPTION(TEXT, "lattice", &r.lattice, "LATTICE", "lattice file of thin links, any format",
                .positional = true, .required = true, .file = MD_FILE_INPUT,
                .group = MD_GROUP_INPUT),
      MD_OPTION(CHOICE, "action", &r.action, NULL, "which links are made (required)",
                .choices = md_recipe_names, .group = MD_GROUP_PHYSICS),
      MD_SMEAR_OPTIONS(r.smear.u0, "asqtad and fat7", r.smear.naik_epsilon),
      MD_REUNITARIZE_OPTION(r.reunitarize),
      MD_OPTION(REAL, "alpha", &r.smear.alpha, "A", "weight of the staples of ape [0.5]",
                .low = 0.0, .high = 1.0, .group = MD_GROUP_PHYSICS),
      MD_OPTION(REAL, "rho", &r.smear.rho, "R", "weight of the staples of stout [0.1]", .low = 0.0,
                .high = 1.0),
      MD_OPTION(INTEGER, "steps", &r.steps, "N", "how often ape or stout is done [1]", .low = 1,
                .high = 1000),
      MD_OPTION(TEXT, "fat-out", &r.fat_out, "FILE",
                "file for the fat (or smeared) links; .h5, .lime, .ildg (required)",
                .file = MD_FILE_RESULT, .group = MD_GROUP_OUTPUT),
      MD_OPTION(TEXT, "long-out", &r.long_out, "FILE", "file for the long links of asqtad and hisq",
                .file = MD_FILE_RESULT),
      MD_OPTION(FLAG, "force", &r.force, NULL, "replace output files that are there already"),
      MD_OPTION(CHOICE, "precision", &r.precision, NULL, "of the links on file [double]",
                .choices = "double|single"),
      MD_OPTION(CHOICE, "on", &r.on, NULL, "where the links are made [cpu]", .choices = "cpu|gpu",
                .group = MD_GROUP_MACHINE),
      MD_OPTION(FLAG, "ignore-checksum", &r.ignore_checksum, NULL,
                "only warn where the checksum, or the header of HDF5 or NERSC, does not fit links",
                .group = MD_GROUP_INPUT),
      MD_COMMON_OPTIONS(r.common)};
  const int count = sizeof options / sizeof *options;
  const md_command_text text = {
      "smear", "Makes fat and long links, or smeared links, from a lattice of thin links.",
      "asqtad and hisq: fat and long links of the improved staggered actions; fat7: one step of\n"
      "fat links; ape and stout: SU(3) links. The links written are bare: staggered phases and\n"
      "the boundary sign belong to the operator. Formulas: docs/actions.md.",
      "minidirac smear inputs/beta6.0_8x8x8x8.h5 --action hisq --fat-out fat.h5 --long-out "
      "long.h5"};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, count, &r.common, argc, argv));
  if (r.common.help) return MD_OK;
  MD_TRY(check(context, &r, options, count));
  MD_TRY(md_report_open(context, "smear", &report));
  bool due = false;
  const md_status status = smear(context, &r, &report, &due);
  return md_report_close_after(context, &report, due ? r.common.json : NULL, status);
}
