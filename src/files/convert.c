#include "base/text.h"
#include "commands.h"
#include "io/lattice_file.h"
#include "io/site_data.h"
#include "links/run.h"

#include <stdio.h>
#include <string.h>

typedef struct convert_options {
  md_common_options common;
  const char *in, *out, *format, *precision;
  bool ignore_checksum, force;
} convert_options;

/* Without --precision the file keeps that of the input, as far as the format can hold it. */
static md_precision precision_to_write(md_context *context, const convert_options *o,
                                       const md_lattice_format *format,
                                       const md_lattice_header *header) {
  if (o->precision) return (md_precision)md_precision_of(o->precision);
  if (md_lattice_format_holds(format, header->precision)) return header->precision;
  md_warn(context, "%s is written in single precision, all that its format can hold", o->out);
  return MD_SINGLE;
}

/* What the input says in words, for the output: what it says of its own making becomes what its
 * source said, unless its source's source spoke already. */
static md_status texts_to_write(md_context *context, const md_file_texts *in, md_file_texts *out) {
  static const char *const making[] = {"lattice", "lattice_checksum", "action",      "version",
                                       "commit",  "date_utc",         "command_line"};
  const char *name, *text;
  char source[MD_FILE_TEXT_NAME];
  for (int own = 0; own < 2; own++) /* its own making last: what is there already stays */
    for (size_t at = 0; md_file_texts_next(in, &at, &name, &text);) {
      bool is_own = false;
      for (size_t i = 0; i < sizeof making / sizeof *making; i++)
        is_own = is_own || strcmp(name, making[i]) == 0;
      snprintf(source, sizeof source, "source %s", name);
      if (is_own == own)
        MD_TRY(md_file_texts_add(context, out, own ? source : name, text, strlen(text)));
    }
  return MD_OK;
}

/* Names what the output has no place for. */
static void say_dropped(md_context *context, const char *path, const md_lattice_format *format,
                        const md_file_texts *texts, int lost, cJSON *dropped) {
  char names[512] = "";
  const char *name, *text;
  for (size_t at = 0; md_file_texts_next(texts, &at, &name, &text);) {
    if (md_lattice_format_keeps(format, name, text)) continue;
    cJSON_AddItemToArray(dropped, cJSON_CreateString(name));
    if (strlen(names) + strlen(name) + 3 < sizeof names)
      md_append(names, sizeof names, "%s%s", *names ? ", " : "", name);
  }
  if (*names)
    md_warn(context, "%s: %s files have no place for these texts, which are dropped: %s", path,
            md_lattice_format_name(format), names);
  if (lost > 0)
    md_warn(context, "%s: %d record%s of no text, or of more than 32 KB, left out", path, lost,
            md_plural(lost));
}

static md_status save(md_context *context, const convert_options *o, const md_lattice_info *info,
                      const md_lattice_output *like, const md_gauge *gauge, md_report *report) {
  md_file_texts texts = {0};
  md_provenance provenance;
  md_lattice_output output = *like;
  char checksum[32];
  md_status status = md_agree(context, texts_to_write(context, &info->notes.texts, &texts));
  if (status == MD_OK) {
    md_provenance_of_run(context, &provenance);
    md_checksum_print(&info->computed, checksum, sizeof checksum);
    provenance.lattice = o->in;
    provenance.lattice_checksum = checksum;
    output.texts = &texts;
    output.provenance = &provenance;
    output.keep_old = !o->force;
    status = md_lattice_save_as(context, o->out, &output, gauge);
  }
  if (status == MD_OK)
    say_dropped(context, o->out, output.format, &texts, info->notes.texts.lost,
                cJSON_AddArrayToObject(report->root, "dropped"));
  md_file_texts_free(&texts);
  return status;
}

static md_status convert(md_context *context, const convert_options *o, md_report *report) {
  const md_lattice_format *format = NULL;
  md_lattice_info info = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  MD_TRY(md_lattice_format_find(context, o->out, o->format, &format));
  md_status status = md_lattice_load_links(context, o->in, NULL, o->common.grid, o->ignore_checksum,
                                           &geometry, &gauge, &info);
  if (status == MD_OK) {
    const md_precision precision = precision_to_write(context, o, format, &info.header);
    const md_lattice_output like = {
        .format = format, .precision = precision, .label = info.header.label};
    status = save(context, o, &info, &like, &gauge, report);
    md_report_geometry(report, geometry);
    md_report_add(report->root, "in=%s out=%s format=%s links=%s precision=%s plaquette=%g", o->in,
                  o->out, md_lattice_format_name(format), md_link_kind_name(info.header.label.kind),
                  md_precision_name(precision), info.observables.plaquette);
    if (status == MD_OK)
      md_say(context, "%s: %s, %s precision, plaquette %.15g\n", o->out,
             md_lattice_format_name(format), md_precision_name(precision),
             info.observables.plaquette);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  md_lattice_info_destroy(&info);
  return status;
}

md_status md_command_convert(md_context *context, int argc, char **argv) {
  convert_options o = {0};
  md_option options[] = {
      MD_OPTION(TEXT, "in", &o.in, "IN", "lattice file of any format", .file = MD_FILE_INPUT,
                .positional = true, .required = true, .group = MD_GROUP_INPUT),
      MD_OPTION(TEXT, "out", &o.out, "OUT", "lattice file to write", .file = MD_FILE_RESULT,
                .positional = true, .required = true, .group = MD_GROUP_OUTPUT),
      MD_OPTION(FLAG, "force", &o.force, NULL, "replace OUT where it is there"),
      MD_OPTION(
          CHOICE, "format", &o.format, "F",
          "hdf5, ildg, milc or nersc [by the suffix of OUT: .h5, .lime, .ildg, .milc, .nersc]",
          .choices = "hdf5|ildg|milc|nersc"),
      MD_OPTION(CHOICE, "precision", &o.precision, "P", "double or single [that of IN]",
                .choices = "double|single"),
      MD_OPTION(FLAG, "ignore-checksum", &o.ignore_checksum, NULL,
                "go on with a warning where checksum, plaquette or link trace do not fit",
                .group = MD_GROUP_INPUT),
      MD_COMMON_OPTIONS(o.common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"convert", "copy a lattice into a file of another format", NULL,
                                "minidirac convert inputs/beta6.0_8x8x8x8.h5 copy.lime"};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &o.common, argc, argv));
  if (o.common.help) return MD_OK;
  MD_TRY(md_report_open(context, "convert", &report));
  const md_status status = convert(context, &o, &report);
  return md_report_close_after(context, &report, o.common.json, status);
}
