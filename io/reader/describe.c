#include "io/hdf5_lattice.h"
#include "io/hdf5_objects.h"
#include "io/reader/reader.h"

#include <stdlib.h>
#include <string.h>

/* What miniDirac's lattice files say of themselves. */
enum { FORMAT_VERSION = MD_H5_LATTICE_VERSION, TEXTS_MOST = 1024 };

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

static void get_label(hid_t dataset, md_h5_label_words *label) {
  const md_attribute attributes[] = {
      {"links", MD_ATTRIBUTE_TEXT, sizeof label->links, label->links},
      {"phases", MD_ATTRIBUTE_TEXT, sizeof label->phases, label->phases},
      {"made", MD_ATTRIBUTE_TEXT, sizeof label->made, label->made}};
  strcpy(label->links, "thin");
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    (void)md_h5_get_attribute(dataset, &attributes[i]);
}

typedef struct texts_reader {
  md_context *context;
  md_file_texts *texts;
  md_status status;
} texts_reader;

static void add_text(texts_reader *r, hid_t object, const char *name) {
  char *text = calloc(1, MD_FILE_TEXT_MOST);
  if (!text) {
    r->status = md_fail_memory(r->context, MD_FILE_TEXT_MOST, "texts of a file");
    return;
  }
  if (md_h5_get_attribute(object,
                          &(md_attribute){name, MD_ATTRIBUTE_TEXT, MD_FILE_TEXT_MOST, text}))
    r->status = md_file_texts_add(r->context, r->texts, name, text, strlen(text));
  free(text);
}

static herr_t visit(hid_t group, const char *name, const H5A_info_t *info, void *user) {
  texts_reader *r = user;
  (void)info;
  if (r->texts->count + r->texts->lost >= TEXTS_MOST) return 1;
  add_text(r, group, name);
  return r->status == MD_OK ? 0 : 1;
}

/* The texts of the group MD_H5_TEXTS, and the provenance of the dataset. */
static md_status get_texts(md_context *context, hid_t file, hid_t dataset, md_file_texts *texts) {
  static const char *const names[] = {"lattice", "lattice_checksum", "action",      "version",
                                      "commit",  "date_utc",         "command_line"};
  texts_reader r = {context, texts, MD_OK};
  hid_t group;
  for (size_t i = 0; i < sizeof names / sizeof *names && r.status == MD_OK; i++)
    add_text(&r, dataset, names[i]);
  if (r.status != MD_OK || H5Lexists(file, "/gauge", H5P_DEFAULT) <= 0 ||
      H5Lexists(file, MD_H5_TEXTS, H5P_DEFAULT) <= 0)
    return r.status;
  MD_TRY(md_h5_open_object(context, "", file, MD_H5_TEXTS, false, &group));
  hsize_t at = 0;
  H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, &at, visit, &r);
  H5Oclose(group);
  return r.status;
}

static md_status describe_dataset(md_context *context, const md_source *source, hid_t file,
                                  md_h5_described *d, md_notes *notes) {
  md_lattice_header *header = &d->header;
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
  get_label(dataset, &d->label);
  if (status == MD_OK) status = get_texts(context, file, dataset, &notes->texts);
  if (status == MD_OK) note_filters(dataset, notes);
  H5Oclose(dataset);
  if (status != MD_OK) return status;
  const md_h5_shape shape = md_h5_links_shape(real_bytes);
  MD_TRY(
      md_h5_open_sites(context, source->path, file, MD_H5_LINKS, header->dims, &shape, &dataset));
  H5Dclose(dataset);
  return MD_OK;
}

md_status md_reader_describe_links(md_context *context, const md_reader *r, md_h5_described *d) {
  const md_source source = {.path = r->path, .file = -1};
  md_notes notes = {0};
  const md_status status = describe_dataset(context, &source, r->file, d, &notes);
  md_h5_list_objects(r->file, &notes);
  d->record_count =
      notes.record_count < MD_H5_RECORDS_MOST ? notes.record_count : MD_H5_RECORDS_MOST;
  d->departure_count =
      notes.departure_count < MD_H5_DEPARTURES_MOST ? notes.departure_count : MD_H5_DEPARTURES_MOST;
  d->texts_used = notes.texts.used;
  d->texts_lost = notes.texts.lost;
  if (notes.texts.used > 0) memcpy(d->texts, notes.texts.bytes, notes.texts.used);
  for (int i = 0; i < d->record_count; i++) d->records[i] = notes.records[i];
  for (int i = 0; i < d->departure_count; i++)
    memcpy(d->departures[i], notes.departures[i], sizeof *d->departures);
  return status;
}
