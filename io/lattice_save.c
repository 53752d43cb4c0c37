#include "base/file.h"
#include "io/lattice_format.h"
#include "io/lattice_output.h"

#include <string.h>

bool md_lattice_format_holds(const md_lattice_format *format, md_precision precision) {
  return precision == MD_SINGLE || (precision == MD_DOUBLE && !format->single_only);
}

bool md_lattice_format_takes(const md_lattice_format *format, md_link_kind kind) {
  return kind == MD_LINKS_THIN || !format->thin_only;
}

/* The file as it lies on disk has the links that were in memory. */
static md_status read_back(md_context *context, const char *path, const md_lattice_format *format,
                           const md_lattice_header *header, const md_gauge *gauge) {
  md_checksum there;
  MD_TRY(format->read(context, path, header, gauge->geometry, NULL, &there));
  if (there.damaged || there.a != header->checksum.a || there.b != header->checksum.b)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s: what was written does not read back the same; is the disk full or broken?",
                   path);
  return MD_OK;
}

md_status md_lattice_save(md_context *context, const char *path, const md_lattice_format *format,
                          md_precision precision, const md_gauge *gauge) {
  const md_link_label thin = {0};
  return md_lattice_save_links(context, path, format, precision, &thin, gauge);
}

md_status md_lattice_save_links(md_context *context, const char *path,
                                const md_lattice_format *format, md_precision precision,
                                const md_link_label *label, const md_gauge *gauge) {
  const md_lattice_output output = {.format = format, .precision = precision, .label = *label};
  return md_lattice_save_as(context, path, &output, gauge);
}

bool md_lattice_format_keeps(const md_lattice_format *format, const char *name, const char *text) {
  return !format->keeps || format->keeps(name, text);
}

static md_status check_output(md_context *context, const md_lattice_output *output) {
  const md_lattice_format *format = output->format;
  if (!md_lattice_format_holds(format, output->precision))
    return md_fail(context, MD_INPUT, "%s files hold %s, got %s", format->name,
                   format->single_only ? "single precision" : "single or double precision",
                   md_precision_name(output->precision));
  if (!md_lattice_format_takes(format, output->label.kind))
    return md_fail(context, MD_INPUT, "%s files hold thin links, got %s links; use hdf5 or ildg",
                   format->name, md_link_kind_name(output->label.kind));
  return MD_OK;
}

md_status md_lattice_save_as(md_context *context, const char *path, const md_lattice_output *output,
                             const md_gauge *gauge) {
  md_gauge_observables observables;
  md_new_file file;
  md_provenance provenance;
  md_lattice_header header = {.precision = output->precision,
                              .label = output->label,
                              .has_plaquette = true,
                              .has_link_trace = true,
                              .texts = output->texts,
                              .provenance = &provenance};
  MD_TRY(check_output(context, output));
  MD_TRY(md_gauge_observe(context, gauge, &observables));
  if (observables.bad_links > 0)
    return md_fail(context, MD_INPUT,
                   "%s: links must be finite, NaN or infinity is in %lld of them", path,
                   observables.bad_links);
  memcpy(header.dims, gauge->geometry->global, sizeof header.dims);
  header.plaquette = observables.plaquette;
  header.link_trace = observables.link_trace;
  md_provenance_of_run(context, &provenance);
  if (output->provenance) provenance = *output->provenance;
  MD_TRY(md_new_file_begin(context, path, &file));
  file.keep_old = output->keep_old;
  md_status status = output->format->write(context, file.path, &header, gauge);
  if (status == MD_OK) status = read_back(context, file.path, output->format, &header, gauge);
  return md_new_file_end(context, &file, status);
}
