#include "base/text.h"
#include "io/child.h"
#include "io/hdf5_label.h"
#include "io/hdf5_lattice.h"
#include "io/hdf5_objects.h"

#include <stdio.h>
#include <string.h>

/* What miniDirac's lattice files say of themselves, found out in a child process. */
enum { FORMAT_VERSION = MD_H5_LATTICE_VERSION, RECORDS_MOST = 1024, DEPARTURES_MOST = 64 };

/* Extents and element size as the dataset has them; false when it cannot be one of links. */
static bool read_shape(hid_t dataset, long long dims[MD_DIMS], int *real_bytes) {
  hsize_t extents[H5S_MAX_RANK];
  const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  const bool fits = H5Sget_simple_extent_dims(space, extents, NULL) == MD_DIMS + 3;
  for (int d = 0; d < MD_DIMS && fits; d++) dims[d] = (long long)extents[MD_T - d];
  *real_bytes = (int)(H5Tget_size(type) / 2);
  H5Tclose(type);
  H5Sclose(space);
  return fits && (*real_bytes == 4 || *real_bytes == 8);
}

static md_status read_attributes(md_context *context, const md_source *source, hid_t dataset,
                                 md_lattice_header *header, md_notes *notes) {
  int64_t dims[MD_DIMS], version = 0, pair[2];
  const bool sums = md_h5_get_attribute(
      dataset, &(md_attribute){"scidac_checksum", MD_ATTRIBUTE_INTEGER, 2, pair});
  if (sums && (uint64_t)pair[0] <= UINT32_MAX && (uint64_t)pair[1] <= UINT32_MAX)
    header->checksum =
        (md_checksum){.kind = MD_CHECKSUM_SCIDAC, .a = (uint32_t)pair[0], .b = (uint32_t)pair[1]};
  else
    md_notes_departure(notes, "attribute scidac_checksum is missing or no pair of 32-bit numbers");
  header->binding = true;
  header->has_plaquette = md_h5_get_attribute(
      dataset, &(md_attribute){"plaquette", MD_ATTRIBUTE_REAL, 1, &header->plaquette});
  header->has_link_trace = md_h5_get_attribute(
      dataset, &(md_attribute){"link_trace", MD_ATTRIBUTE_REAL, 1, &header->link_trace});
  if (!header->has_plaquette) md_notes_departure(notes, "attribute plaquette is missing");
  if (!header->has_link_trace) md_notes_departure(notes, "attribute link_trace is missing");
  if (!md_h5_get_attribute(dataset,
                           &(md_attribute){"format_version", MD_ATTRIBUTE_INTEGER, 1, &version}))
    md_notes_departure(notes, "attribute format_version is missing");
  else if (version != FORMAT_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", source->path,
                   FORMAT_VERSION, (long long)version);
  if (!md_h5_get_attribute(dataset, &(md_attribute){"dims", MD_ATTRIBUTE_INTEGER, 4, dims})) {
    md_notes_departure(notes, "attribute dims is missing");
    return MD_OK;
  }
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != header->dims[d])
      return md_fail(context, MD_INPUT,
                     "%s: extents differ in direction %c: attribute dims says %lld, the dataset %d",
                     source->path, "xyzt"[d], (long long)dims[d], header -> dims[d]);
  return MD_OK;
}

static void note_filters(hid_t dataset, md_notes *notes) {
  if (!md_h5_has_sums(dataset))
    md_notes_departure(notes, "dataset %s has no Fletcher32 checksums", MD_H5_LINKS);
}

/* Planes in z that are stored together. */
static int planes_of(hid_t dataset) {
  hsize_t chunk[H5S_MAX_RANK] = {1, 1};
  const hid_t create = H5Dget_create_plist(dataset);
  if (H5Pget_layout(create) == H5D_CHUNKED) H5Pget_chunk(create, H5S_MAX_RANK, chunk);
  H5Pclose(create);
  return chunk[1] > 0 && chunk[1] < 32768 ? (int)chunk[1] : 1;
}

static md_status describe_dataset(md_context *context, const md_source *source, hid_t file,
                                  md_lattice_header *header, md_notes *notes) {
  long long dims[MD_DIMS];
  int real_bytes = 0;
  hid_t dataset;
  MD_TRY(md_h5_open_object(context, source->path, file, MD_H5_LINKS, true, &dataset));
  md_status status = MD_OK;
  if (!read_shape(dataset, dims, &real_bytes))
    status = md_fail(context, MD_INPUT,
                     "%s: dataset %s must have the shape [t][z][y][x][4][3][3] of compound {r, i}",
                     source->path, MD_H5_LINKS);
  if (status == MD_OK) status = md_source_check_dims(context, source, dims, header);
  if (status == MD_OK) {
    header->precision = real_bytes == 8 ? MD_DOUBLE : MD_SINGLE;
    header->site = (md_site_format){
        .rows = 3, .real_bytes = real_bytes, .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    header->planes = planes_of(dataset);
    status = read_attributes(context, source, dataset, header, notes);
  }
  if (status == MD_OK) status = md_h5_get_label(context, source->path, dataset, &header->label);
  if (status == MD_OK) status = md_h5_get_texts(context, file, dataset, &notes->texts);
  if (status == MD_OK) note_filters(dataset, notes);
  H5Oclose(dataset);
  if (status != MD_OK) return status;
  const md_h5_shape shape = md_h5_links_shape(real_bytes);
  MD_TRY(
      md_h5_open_sites(context, source->path, file, MD_H5_LINKS, header->dims, &shape, &dataset));
  H5Dclose(dataset);
  return MD_OK;
}

/* What the child tells. */
typedef struct described {
  md_lattice_header header;
  int record_count, departure_count;
  md_record records[RECORDS_MOST];
  char departures[DEPARTURES_MOST][200];
  size_t texts_used;
  int texts_lost;
  char texts[MD_FILE_TEXTS_MOST];
} described;

/* Everything is opened and closed there, so that damage ends the child and not the program. */
static md_status describe_in_child(md_context *context, void *state, int request, void *shared) {
  const md_source *source = state;
  described *d = shared;
  md_notes notes = {0};
  hid_t file;
  (void)request;
  MD_TRY(md_h5_open(context, source->path, &file));
  const md_status status = describe_dataset(context, source, file, &d->header, &notes);
  md_h5_list_objects(file, &notes);
  H5Fclose(file);
  d->record_count = notes.record_count < RECORDS_MOST ? notes.record_count : RECORDS_MOST;
  d->departure_count =
      notes.departure_count < DEPARTURES_MOST ? notes.departure_count : DEPARTURES_MOST;
  d->texts_used = notes.texts.used;
  d->texts_lost = notes.texts.lost;
  if (notes.texts.used > 0) memcpy(d->texts, notes.texts.bytes, notes.texts.used);
  for (int i = 0; i < d->record_count; i++) d->records[i] = notes.records[i];
  for (int i = 0; i < d->departure_count; i++)
    memcpy(d->departures[i], notes.departures[i], sizeof *d->departures);
  return status;
}

static void take_notes(described *d, md_notes *notes) {
  for (int i = 0; i < d->record_count && i < RECORDS_MOST; i++) {
    md_record *r = &d->records[i], shown = *r;
    r->type[sizeof r->type - 1] = r->detail[sizeof r->detail - 1] = 0;
    md_printable(r->type, false, shown.type, sizeof shown.type);
    md_printable(r->detail, false, shown.detail, sizeof shown.detail);
    md_notes_record(notes, &shown);
  }
  for (int i = 0; i < d->departure_count && i < DEPARTURES_MOST; i++) {
    d->departures[i][sizeof *d->departures - 1] = 0;
    md_notes_departure(notes, "%s", d->departures[i]);
  }
}

/* The header as far as later steps rely on it: whatever went wrong in the child, sizes are those
 * that a file may have. */
static md_status take_header(md_context *context, const md_source *source, const described *d,
                             md_lattice_header *header) {
  long long dims[MD_DIMS];
  *header = d->header;
  header->texts = NULL;
  header->provenance = NULL;
  header->label.made[sizeof header->label.made - 1] = 0;
  for (int i = 0; i < MD_DIMS; i++) dims[i] = header->dims[i];
  MD_TRY(md_source_check_dims(context, source, dims, header));
  const int bytes = header->precision == MD_DOUBLE ? 8 : 4;
  if (header->site.rows != 3 || header->site.real_bytes != bytes || header->planes < 1)
    return md_fail(context, MD_INPUT, "%s is damaged: reading its header went astray",
                   source->path);
  return MD_OK;
}

static md_status take_texts(md_context *context, const described *d, md_file_texts *texts) {
  texts->lost = d->texts_lost;
  return md_file_texts_take(context, texts, d->texts,
                            d->texts_used < sizeof d->texts ? d->texts_used : sizeof d->texts);
}

md_status md_h5_lattice_describe(md_context *context, const md_source *source,
                                 md_lattice_header *header, md_notes *notes) {
  md_child child;
  md_status status = md_child_start(context, source->path, describe_in_child, (void *)source,
                                    sizeof(described), &child);
  if (status == MD_OK) status = md_child_ask(context, &child, 0);
  if (child.shared) take_notes(child.shared, notes);
  if (status == MD_OK) status = take_header(context, source, child.shared, header);
  if (status == MD_OK) status = take_texts(context, child.shared, &notes->texts);
  md_child_stop(&child);
  return status;
}
