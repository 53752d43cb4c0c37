#include "base/options.h"
#include "base/text.h"
#include "io/child.h"

#include <stdlib.h>
#include <string.h>

/* The format "hdf5": how its files are written, and read with the help of a child process. */

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 8 && memcmp(head, "\211HDF\r\n\032\n", 8) == 0;
}

/* What our files say of themselves, as a child process found it out (io/reader/requests.c). The
 * child could still write there: texts are copied, then ended, and only the copy is read. */
static void take_notes(const md_h5_described *d, md_notes *notes) {
  for (int i = 0; i < d->record_count && i < MD_H5_RECORDS_MOST; i++) {
    md_record r = d->records[i], shown = r;
    r.type[sizeof r.type - 1] = r.detail[sizeof r.detail - 1] = 0;
    md_printable(r.type, false, shown.type, sizeof shown.type);
    md_printable(r.detail, false, shown.detail, sizeof shown.detail);
    md_notes_record(notes, &shown);
  }
  for (int i = 0; i < d->departure_count && i < MD_H5_DEPARTURES_MOST; i++) {
    char departure[sizeof *d->departures];
    memcpy(departure, d->departures[i], sizeof departure);
    departure[sizeof departure - 1] = 0;
    md_notes_departure(notes, "%s", departure);
  }
}

/* Of those that are no links (io/reader/requests.c). */
static bool is_other_content(const char *content) {
  return md_choice_of("solution|modes|checkpoint|study", content) >= 0;
}

static md_status take_texts(const md_header_input *s, const md_h5_described *d) {
  size_t used = d->texts_used;
  char *own = malloc(sizeof d->texts);
  if (!own) return md_fail_memory(s->context, sizeof d->texts, "texts of a file");
  memcpy(own, d->texts, sizeof d->texts);
  if (used > sizeof d->texts) used = sizeof d->texts;
  const md_status status = md_file_texts_take(s->context, &s->notes->texts, own, used);
  free(own);
  return status;
}

/* The header as far as later steps rely on it: whatever went wrong in the child, sizes are those
 * that a file may have. */
static md_status take_header(const md_header_input *s, const md_h5_described *d) {
  md_lattice_header *header = s->header;
  long long dims[MD_DIMS];
  *header = d->header;
  header->texts = NULL;
  header->provenance = NULL;
  header->vectors = NULL;
  header->content[sizeof header->content - 1] = 0;
  header->offset = 0;
  header->label.made[sizeof header->label.made - 1] = 0;
  for (int i = 0; i < MD_DIMS; i++) dims[i] = header->dims[i];
  s->notes->texts.lost = d->texts_lost;
  MD_TRY(take_texts(s, d));
  if (is_other_content(header->content)) return MD_OK;
  MD_TRY(md_header_input_check_dims(s, dims));
  const int bytes = header->precision == MD_DOUBLE ? 8 : 4, kind = (int)header->label.kind;
  if (header->site.rows != 3 || header->site.real_bytes != bytes || header->planes < 1 ||
      kind < MD_LINKS_THIN || kind > MD_LINKS_LONG)
    return md_fail(s->context, MD_INPUT, "%s is damaged: reading its header went astray", s->path);
  return MD_OK;
}

md_status md_datasets_verify(md_context *context, const char *path, md_datasets_found *found) {
  const md_child_request request = {.what = MD_CHILD_VERIFY};
  md_child child;
  md_status status = MD_OK;
  if (context->rank == 0) {
    status = md_child_start(context, path, sizeof *found, &child);
    if (status == MD_OK) status = md_child_ask(context, &child, &request);
    if (status == MD_OK) memcpy(found, child.shared, sizeof *found);
    md_child_stop(&child);
  }
  MD_TRY(md_agree(context, status));
  md_broadcast(context, found, sizeof *found);
  return MD_OK;
}

static md_status describe(const md_header_input *s) {
  const md_child_request request = {.what = MD_CHILD_DESCRIBE_LINKS};
  md_child child;
  md_status status = md_child_start(s->context, s->path, sizeof(md_h5_described), &child);
  if (status == MD_OK) status = md_child_ask(s->context, &child, &request);
  if (child.shared) take_notes(child.shared, s->notes);
  if (status == MD_OK) status = take_header(s, child.shared);
  md_child_stop(&child);
  return status;
}

/* The links of a file that was described. Chunks of the usual kind are read here, straight from
 * where a child process found them; everything else is read by the library in that child. */
typedef struct reader {
  const md_geometry *geometry;
  size_t site_bytes;
  md_child child;
  md_h5_chunks chunks;
  bool straight; /* as long as all that was met was as it should be */
  long long damaged;
} reader;

static md_status read_slab(md_context *context, void *file, const md_slab *slab, void *raw) {
  reader *r = file;
  r->straight = r->straight && md_h5_chunks_read(&r->chunks, slab, raw);
  if (r->straight) return MD_OK;
  MD_TRY(md_child_read_slab(context, &r->child, 0, r->geometry, 0, slab));
  memcpy(raw, r->child.shared, (size_t)md_slab_sites(r->geometry, slab) * r->site_bytes);
  r->damaged += r->child.number > 0;
  return MD_OK;
}

/* This rank's part, with a child that says where chunks are; no communication. */
static md_status read_part(md_context *context, reader *r, const md_lattice_header *header,
                           const md_site_fields *fields, md_checksum *checksum) {
  const md_child_request request = {.what = MD_CHILD_CHUNKS};
  const md_h5_shape shape = md_h5_links_shape(header->site.real_bytes);
  const char *path = r->child.path;
  MD_TRY(md_child_open_sites(context, &r->child, MD_H5_LINKS, header->dims, &shape));
  MD_TRY(md_child_ask(context, &r->child, &request));
  r->straight = md_h5_chunks_open(path, r->child.shared, r->geometry, &shape, &r->chunks);
  /* Chunks lie nearly in the order of their sites: good enough for hints of what comes next. */
  const md_status status =
      md_sites_read(context, path, header, r->geometry, read_slab, r, false, fields, checksum);
  checksum->damaged += r->damaged;
  md_h5_chunks_close(&r->chunks);
  return status;
}

md_status md_h5_lattice_read(md_context *context, const char *path, const md_lattice_header *header,
                             const md_geometry *geometry, const md_site_fields *links,
                             md_checksum *checksum) {
  reader r = {.geometry = geometry, .site_bytes = md_site_bytes(&header->site)};
  const md_slab_plan plan = md_lattice_slabs(header, geometry);
  const size_t slab = md_slab_bytes(geometry, &plan, r.site_bytes);
  const size_t shared = slab > sizeof(md_h5_chunk_table) ? slab : sizeof(md_h5_chunk_table);
  md_status status = md_child_start(context, path, shared, &r.child);
  if (status == MD_OK) status = read_part(context, &r, header, links, checksum);
  md_child_stop(&r.child);
  return md_agree(context, status);
}

typedef struct writer {
  md_h5_file file;
  hid_t dataset;
  const md_geometry *geometry;
  md_h5_shape shape;
} writer;

static md_status write_slab(md_context *context, void *file, const md_slab *slab, void *raw) {
  const writer *w = file;
  return md_agree(context,
                  md_h5_write_slab(&w->file, w->dataset, w->geometry, &w->shape, 0, slab, raw));
}

static md_status write_attributes(const writer *w, const md_lattice_header *header) {
  int64_t dims[MD_DIMS], version = MD_H5_LATTICE_VERSION;
  int64_t pair[2] = {header->checksum.a, header->checksum.b};
  md_lattice_header said = *header;
  md_link_label *label = &said.label;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = header->dims[d];
  enum { OWN = 5, LABEL = 3 };
  md_attribute attributes[OWN + MD_PROVENANCE_ATTRIBUTES + LABEL] = {
      {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
      {"plaquette", MD_ATTRIBUTE_REAL, 1, &said.plaquette},
      {"link_trace", MD_ATTRIBUTE_REAL, 1, &said.link_trace},
      {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      {"scidac_checksum", MD_ATTRIBUTE_INTEGER, 2, pair}};
  int count = md_provenance_append(header->provenance, attributes, OWN);
  if (label->kind != MD_LINKS_THIN)
    attributes[count++] =
        (md_attribute){"links", MD_ATTRIBUTE_TEXT, 0, (char *)md_link_kind_name(label->kind)};
  if (label->kind != MD_LINKS_THIN && label->bare)
    attributes[count++] = (md_attribute){"phases", MD_ATTRIBUTE_TEXT, 0, "none"};
  if (*label->made) attributes[count++] = (md_attribute){"made", MD_ATTRIBUTE_TEXT, 0, label->made};
  return md_h5_put_attributes(&w->file, w->dataset, attributes, count);
}

static md_status write_texts(const md_h5_file *file, const md_file_texts *texts) {
  const char *name, *text;
  if (!texts || texts->count == 0) return MD_OK;
  MD_TRY(md_h5_group(file, MD_H5_TEXTS));
  const hid_t group = H5Gopen2(file->id, MD_H5_TEXTS, H5P_DEFAULT);
  md_status status = MD_OK;
  for (size_t at = 0; status == MD_OK && md_file_texts_next(texts, &at, &name, &text);)
    status = md_h5_put_attributes(file, group,
                                  &(md_attribute){name, MD_ATTRIBUTE_TEXT, 0, (char *)text}, 1);
  MD_H5_CLOSE(group);
  return status;
}

static md_status write_dataset(md_context *context, writer *w, md_lattice_header *header,
                               const md_gauge *gauge) {
  md_status status = md_h5_group(&w->file, "/gauge");
  if (status == MD_OK)
    status = md_h5_create_sites(&w->file, MD_H5_LINKS, "t,z,y,x,mu,row,column", w->geometry,
                                &w->shape, &w->dataset);
  MD_TRY(md_agree(context, status));
  header->planes = md_h5_planes(w->dataset);
  const md_site_fields links = md_gauge_sites(gauge);
  MD_TRY(md_sites_write(context, header, &links, write_slab, w));
  MD_TRY(md_agree(context, write_attributes(w, header)));
  return md_agree(context, write_texts(&w->file, header->texts));
}

md_status md_h5_lattice_write(md_context *context, const char *path, md_lattice_header *header,
                              const md_gauge *gauge) {
  writer w = {.file = {.context = context, .path = path},
              .dataset = H5I_INVALID_HID,
              .geometry = gauge->geometry,
              .shape = md_h5_links_shape(header->site.real_bytes)};
  md_status status = md_h5_create(&w.file, md_lattice_link_bytes(header));
  if (status == MD_OK) status = write_dataset(context, &w, header, gauge);
  MD_H5_CLOSE(w.dataset);
  return md_h5_close_written(&w.file, status);
}

const md_lattice_format md_format_hdf5 = {.name = "hdf5",
                                          .suffixes = ".h5 .hdf5",
                                          .holds = MD_HOLDS_LINKS | MD_HOLDS_VECTORS,
                                          .checksum = MD_CHECKSUM_SCIDAC,
                                          .recognises = recognises,
                                          .describe = describe};
