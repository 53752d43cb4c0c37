#include "base/options.h"
#include "base/report.h"
#include "commands.h"
#include "io/lattice_file.h"

#include <string.h>

typedef struct convert_options {
  md_common_options common;
  const char *in, *out, *format, *precision;
  bool ignore_checksum;
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
    status = md_lattice_save_links(context, o->out, format, precision, &info.header.label, &gauge);
    md_report_grid(report, geometry->grid);
    md_report_integers(report->root, "dims", geometry->global, MD_DIMS);
    cJSON_AddStringToObject(report->root, "in", o->in);
    cJSON_AddStringToObject(report->root, "out", o->out);
    cJSON_AddStringToObject(report->root, "format", md_lattice_format_name(format));
    cJSON_AddStringToObject(report->root, "links", md_link_kind_name(info.header.label.kind));
    cJSON_AddStringToObject(report->root, "precision", md_precision_name(precision));
    cJSON_AddNumberToObject(report->root, "plaquette", info.observables.plaquette);
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
      {.name = "in",
       .type = MD_OPTION_POSITIONAL,
       .target = &o.in,
       .argument = "IN",
       .help = "lattice file of any format"},
      {.name = "out",
       .type = MD_OPTION_POSITIONAL,
       .target = &o.out,
       .argument = "OUT",
       .help = "lattice file to write"},
      {.name = "format",
       .type = MD_OPTION_CHOICE,
       .target = &o.format,
       .argument = "F",
       .help = "hdf5, ildg, milc or nersc [by the suffix of OUT: .h5, .lime, .ildg, .nersc]",
       .choices = "hdf5|ildg|milc|nersc"},
      {.name = "precision",
       .type = MD_OPTION_CHOICE,
       .target = &o.precision,
       .argument = "P",
       .help = "double or single [that of IN]",
       .choices = "double|single"},
      {.name = "ignore-checksum",
       .type = MD_OPTION_FLAG,
       .target = &o.ignore_checksum,
       .help = "go on with a warning where checksum, plaquette or link trace do not fit"},
      MD_COMMON_OPTIONS(o.common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"convert", "copy a lattice into a file of another format", NULL};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &o.common, argc, argv));
  if (o.common.help) return MD_OK;
  MD_TRY(md_report_open(context, "convert", &report));
  const md_status status = convert(context, &o, &report);
  const md_status reported = md_report_close(context, &report, o.common.json);
  return status == MD_OK ? reported : status;
}
