#include "base/file.h"
#include "io/reader/reader.h"
#include "lattice/fields/modes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is asked of the reader. Each takes the request, and puts the answer into shared memory or
 * into *number. */

static md_status open_file(md_reader *r) {
  md_h5_file *f = &r->file;
  const int there = open(f->path, O_RDONLY | O_CLOEXEC); /* plain, which knows the reason */
  if (there < 0) return md_fail_open(f->context, "", f->path, errno);
  close(there);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* messages go through md_fail, not to stderr */
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_cache(access, 0, 10007, 32 << 20, 0.75);
  H5Pset_file_locking(access, true, true); /* file systems without locks are fine */
  f->id = H5Fopen(f->path, H5F_ACC_RDONLY, access);
  MD_H5_CLOSE(access);
  H5PLset_loading_state(0); /* no filter or driver from elsewhere */
  md_reader_open_no_more();
  return f->id < 0 ? md_h5_fail(f, MD_INPUT, "opening it as HDF5") : MD_OK;
}

/* What is asked for and the memory for it are the parent's to match: else it is our mistake. */
static md_status check_room(const md_reader *r, size_t bytes) {
  if (bytes <= r->shared_bytes) return MD_OK;
  return md_fail(r->file.context, MD_ENVIRONMENT,
                 "%s: reading it takes %zu bytes, there is room for %zu", r->file.path, bytes,
                 r->shared_bytes);
}

static md_status get_attribute(md_reader *r, const md_child_request *q, long long *number) {
  const md_attribute a = {q->attribute, q->type, q->count, r->shared};
  hid_t object;
  MD_TRY(check_room(r, md_attribute_bytes(&a)));
  MD_TRY(md_h5_open_object(&r->file, q->name, q->dataset, &object));
  *number = md_h5_get_attribute(object, &a);
  MD_H5_CLOSE(object);
  return MD_OK;
}

static md_status get_extents(const md_reader *r, const md_child_request *q) {
  hid_t dataset;
  MD_TRY(check_room(r, sizeof(md_h5_found)));
  MD_TRY(md_h5_open_object(&r->file, q->name, true, &dataset));
  *(md_h5_found *)r->shared = md_h5_find(dataset);
  MD_H5_CLOSE(dataset);
  return MD_OK;
}

static md_status open_sites(md_reader *r, const md_child_request *q, long long *number) {
  const int i = r->dataset_count;
  if (i == MD_CHILD_DATASETS)
    return md_fail(r->file.context, MD_ENVIRONMENT, "%s: more than %d datasets are to be read",
                   r->file.path, MD_CHILD_DATASETS);
  r->sites[i].shape = q->shape;
  memcpy(r->sites[i].dims, q->dims, sizeof q->dims);
  MD_TRY(md_h5_open_sites(&r->file, q->name, q->dims, &q->shape, &r->sites[i].dataset));
  *number = !md_h5_has_sums(r->sites[i].dataset);
  r->dataset_count++;
  return MD_OK;
}

static md_status read_box(const md_reader *r, const md_child_request *q, long long *number) {
  if (q->number >= r->dataset_count)
    return md_fail(r->file.context, MD_ENVIRONMENT, "%s: dataset %d is not open", r->file.path,
                   q->number);
  const md_h5_shape *shape = &r->sites[q->number].shape;
  size_t bytes = md_h5_site_bytes(shape);
  for (int d = 0; d < MD_DIMS; d++) bytes *= (size_t)q->box.extent[d];
  MD_TRY(check_room(r, bytes / (shape->one_parity ? 2 : 1)));
  return md_h5_read_box(&r->file, r->sites[q->number].dataset, shape, q->lead, &q->box, r->shared,
                        number);
}

static bool fits(hid_t dataset, const md_array *array) {
  const md_h5_found found = md_h5_find(dataset);
  const hid_t type = H5Dget_type(dataset);
  bool same = found.rank == array->rank;
  for (int d = 0; d < array->rank && same; d++) same = found.extent[d] == array->extent[d];
  if (array->text_bytes)
    same = same && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
           found.bytes == array->text_bytes;
  else
    same = same && H5Tget_class(type) == H5T_FLOAT;
  MD_H5_CLOSE(type);
  return same;
}

static md_status read_array(const md_reader *r, const md_child_request *q, long long *number) {
  const md_h5_file *f = &r->file;
  const size_t bytes = md_array_bytes(&q->array);
  hid_t dataset;
  MD_TRY(check_room(r, bytes));
  if (q->array.optional && H5Lexists(f->id, q->name, H5P_DEFAULT) == 0) {
    memset(r->shared, 0, bytes);
    return MD_OK;
  }
  MD_TRY(md_h5_open_object(f, q->name, true, &dataset));
  *number = !md_h5_has_sums(dataset);
  const hid_t here = md_h5_value((size_t)q->array.text_bytes, false);
  md_status status = MD_OK;
  if (!fits(dataset, &q->array))
    status = md_fail(f->context, MD_INPUT, "%s: %s has another shape or type than it should have",
                     f->path, q->name);
  else if (H5Dread(dataset, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, r->shared) < 0)
    status =
        md_fail(f->context, MD_INPUT, "%s: %s is damaged and cannot be read", f->path, q->name);
  MD_H5_CLOSE(here, dataset);
  return status;
}

static md_status find_chunks(const md_reader *r) {
  MD_TRY(check_room(r, sizeof(md_h5_chunk_table)));
  if (r->dataset_count > 0)
    md_h5_chunks_find(r->file.id, r->sites[0].dataset, r->sites[0].dims, &r->sites[0].shape,
                      r->shared);
  return MD_OK;
}

/* What miniDirac's lattice files say of themselves. */
enum { TEXTS_MOST = 1024, NUMBERS_MOST = 512 };

/* Departures name what is missing, in the order of the list. */
static md_status read_attributes(const md_h5_file *f, hid_t dataset, md_lattice_header *header,
                                 md_notes *notes) {
  enum { SUMS, PLAQUETTE, TRACE, VERSION, EXTENTS, ATTRIBUTES };
  int64_t dims[MD_DIMS], version = MD_H5_LATTICE_VERSION, pair[2] = {-1, -1};
  const md_attribute list[ATTRIBUTES] = {
      [SUMS] = {"scidac_checksum", MD_ATTRIBUTE_INTEGER, 2, pair},
      [PLAQUETTE] = {"plaquette", MD_ATTRIBUTE_REAL, 1, &header->plaquette},
      [TRACE] = {"link_trace", MD_ATTRIBUTE_REAL, 1, &header->link_trace},
      [VERSION] = {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      [EXTENTS] = {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims}};
  bool there[ATTRIBUTES];
  for (int i = 0; i < ATTRIBUTES; i++) {
    there[i] = md_h5_get_attribute(dataset, &list[i]);
    if (i == SUMS)
      there[i] = there[i] && (uint64_t)pair[0] <= UINT32_MAX && (uint64_t)pair[1] <= UINT32_MAX;
    if (!there[i])
      md_notes_departure(notes, "attribute %s is missing%s", list[i].name,
                         i == SUMS ? " or no pair of 32-bit numbers" : "");
    if (i == VERSION && there[i] && version != MD_H5_LATTICE_VERSION)
      return md_fail(f->context, MD_INPUT, "%s: format_version must be %d, got %lld", f->path,
                     MD_H5_LATTICE_VERSION, (long long)version);
  }
  if (there[SUMS])
    header->checksum =
        (md_checksum){.kind = MD_CHECKSUM_SCIDAC, .a = (uint32_t)pair[0], .b = (uint32_t)pair[1]};
  header->binding = true;
  header->has_plaquette = there[PLAQUETTE];
  header->has_link_trace = there[TRACE];
  for (int d = 0; d < MD_DIMS && there[EXTENTS]; d++)
    if (dims[d] != header->dims[d])
      return md_fail(f->context, MD_INPUT,
                     "%s: extents differ in direction %c: attribute dims says %lld, the dataset %d",
                     f->path, "xyzt"[d], (long long)dims[d], (int)header -> dims[d]);
  return MD_OK;
}

/* The label as the attributes of the dataset have it, of thin links where it has none. */
static md_status get_label(const md_h5_file *file, hid_t dataset, md_link_label *label) {
  static const char *const kinds[] = {"thin", "fat", "long"}; /* as md_link_kind_name */
  char links[16] = "thin", phases[16] = "";
  const md_attribute attributes[] = {{"links", MD_ATTRIBUTE_TEXT, sizeof links, links},
                                     {"phases", MD_ATTRIBUTE_TEXT, sizeof phases, phases},
                                     {"made", MD_ATTRIBUTE_TEXT, sizeof label->made, label->made}};
  for (int i = 0; i < 3; i++)
    if (!md_h5_get_attribute(dataset, &attributes[i]) &&
        H5Aexists(dataset, attributes[i].name) != 0)
      return md_fail(file->context, MD_INPUT,
                     "%s: attribute %s must be a text of at most %d bytes; write it anew as such",
                     file->path, attributes[i].name, attributes[i].count - 1);
  label->bare = strcmp(phases, "none") == 0;
  for (label->kind = MD_LINKS_THIN; label->kind <= MD_LINKS_LONG; label->kind++)
    if (strcmp(links, kinds[label->kind]) == 0) return MD_OK;
  return md_fail(file->context, MD_INPUT,
                 "%s: attribute links must be thin, fat or long, got '%.15s'", file->path, links);
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

/* Numbers between blanks. */
static void add_numbers(texts_reader *r, hid_t object, const char *name, int count, bool real) {
  static const size_t each = 26;
  double reals[NUMBERS_MOST];
  int64_t integers[NUMBERS_MOST];
  const md_attribute a = {name, real ? MD_ATTRIBUTE_REAL : MD_ATTRIBUTE_INTEGER, count,
                          real ? (void *)reals : integers};
  char *text = calloc((size_t)count, each), *at = text;
  if (!text)
    r->status = md_fail_memory(r->context, (size_t)count * each, "texts of a file");
  else if (md_h5_get_attribute(object, &a)) {
    for (int i = 0; i < count; i++)
      at += real ? snprintf(at, each, "%s%.17g", i ? " " : "", reals[i])
                 : snprintf(at, each, "%s%lld", i ? " " : "", (long long)integers[i]);
    r->status = md_file_texts_add(r->context, r->texts, name, text, strlen(text));
  }
  free(text);
}

static herr_t visit(hid_t object, const char *name, const H5A_info_t *info, void *user) {
  texts_reader *r = user;
  (void)info;
  if (r->texts->count + r->texts->lost >= TEXTS_MOST) return 1;
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
  if (id < 0) return 0;
  const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
  const H5T_class_t class = H5Tget_class(type);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  MD_H5_CLOSE(space, type, id);
  if (class == H5T_STRING)
    add_text(r, object, name);
  else if ((class == H5T_FLOAT || class == H5T_INTEGER) && count > 0 && count <= NUMBERS_MOST)
    add_numbers(r, object, name, (int)count, class == H5T_FLOAT);
  return r->status == MD_OK ? 0 : 1;
}

/* The texts of the group MD_H5_TEXTS, and the provenance of the dataset. */
static md_status get_texts(const md_h5_file *file, hid_t dataset, md_file_texts *texts) {
  static const char *const names[] = {"lattice", "lattice_checksum", "action",      "version",
                                      "commit",  "date_utc",         "command_line"};
  texts_reader r = {file->context, texts, MD_OK};
  hid_t group;
  for (size_t i = 0; i < sizeof names / sizeof *names && r.status == MD_OK; i++)
    add_text(&r, dataset, names[i]);
  if (r.status != MD_OK || H5Lexists(file->id, "/gauge", H5P_DEFAULT) <= 0 ||
      H5Lexists(file->id, MD_H5_TEXTS, H5P_DEFAULT) <= 0)
    return r.status;
  MD_TRY(md_h5_open_object(file, MD_H5_TEXTS, false, &group));
  hsize_t at = 0;
  H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, &at, visit, &r);
  MD_H5_CLOSE(group);
  return r.status;
}

static md_status describe_dataset(const md_h5_file *f, hid_t dataset, md_lattice_header *header,
                                  md_notes *notes) {
  const md_header_input source = {.context = f->context, .path = f->path, .header = header};
  const md_h5_found found = md_h5_find(dataset);
  const int real_bytes = (int)(found.bytes / 2);
  long long dims[MD_DIMS];
  if (found.rank != MD_DIMS + 3 || (real_bytes != 4 && real_bytes != 8))
    return md_fail(f->context, MD_INPUT,
                   "%s: dataset %s must have the shape [t][z][y][x][4][3][3] of compound {r, i}",
                   f->path, MD_H5_LINKS);
  for (int d = 0; d < MD_DIMS; d++) dims[d] = found.extent[MD_T - d];
  MD_TRY(md_header_input_check_dims(&source, dims));
  header->precision = real_bytes == 8 ? MD_DOUBLE : MD_SINGLE;
  header->site =
      (md_site_format){.rows = 3, .real_bytes = real_bytes, .big_endian = MD_HOST_BIG_ENDIAN};
  header->planes = md_h5_planes(dataset);
  MD_TRY(read_attributes(f, dataset, header, notes));
  MD_TRY(get_texts(f, dataset, &notes->texts));
  if (!md_h5_has_sums(dataset))
    md_notes_departure(notes, "dataset %s has no Fletcher32 checksums", MD_H5_LINKS);
  return MD_OK;
}

/* What else our files hold. */
static const struct other {
  const char *content, *group, *object; /* object: has the attributes */
  const char *counted;                  /* dataset whose first axis counts; NULL: none */
} others[] = {{"solution", "/propagator", "/propagator/solution", "/propagator/solution"},
              {"modes", "/modes", "/modes", "/modes/vectors"},
              {"checkpoint", "/checkpoint", "/checkpoint", NULL},
              {"study", "/study", "/study", NULL}};
enum { OTHERS = sizeof others / sizeof *others };

/* What the dataset of vectors says of the lattice, modes of half of x; attribute dims, where it
 * is there, says the same. Who reads the file makes tables of so many sites, so it holds data to
 * speak of. */
static md_status describe_vectors(const md_h5_file *f, const struct other *o, bool has_dims,
                                  const int64_t said[MD_DIMS], md_lattice_header *header) {
  const bool modes = strcmp(o->content, "modes") == 0;
  const md_header_input source = {.context = f->context, .path = f->path, .header = header};
  long long dims[MD_DIMS];
  bool same = true;
  hid_t dataset;
  MD_TRY(md_h5_open_object(f, o->counted, true, &dataset));
  const md_h5_found found = md_h5_find(dataset);
  const double stored = (double)H5Dget_storage_size(dataset);
  double bytes = (double)found.bytes;
  MD_H5_CLOSE(dataset);
  if (found.rank <= MD_DIMS)
    return md_fail(f->context, MD_INPUT, "%s: dataset %s must have the shape [%s][t][z][y][%s]...",
                   f->path, o->counted, modes ? "mode" : "rhs", modes ? "x/2" : "x");
  for (int d = 0; d < MD_DIMS; d++) {
    dims[d] = found.extent[MD_DIMS - d] * (d == MD_X && modes ? 2 : 1);
    same = same && (!has_dims || said[d] == dims[d]);
  }
  if (!same)
    return md_fail(f->context, MD_INPUT, "%s: attribute dims must be the extents of %s", f->path,
                   o->counted);
  for (int i = 0; i < found.rank; i++) bytes *= (double)found.extent[i];
  if (bytes > MD_H5_RATIO_MOST * stored)
    return md_fail(f->context, MD_INPUT, "%s: dataset %s is not stored completely", f->path,
                   o->counted);
  if (found.extent[0] <= MD_MODES_MOST) header->count = (int)found.extent[0];
  if (!modes && found.bytes == 8) header->precision = MD_SINGLE;
  return md_header_input_check_dims(&source, dims);
}

static md_status describe_other(const md_h5_file *f, const struct other *o,
                                md_lattice_header *header, md_notes *notes) {
  texts_reader r = {f->context, &notes->texts, MD_OK};
  const bool dataset = strcmp(o->object, o->group) != 0;
  int64_t dims[MD_DIMS];
  hid_t object;
  hsize_t at = 0;
  header->precision = MD_DOUBLE;
  MD_TRY(md_h5_open_object(f, o->object, dataset, &object));
  snprintf(header->content, sizeof header->content, "%s", o->content);
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, visit, &r);
  const bool has_dims =
      md_h5_get_attribute(object, &(md_attribute){"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims});
  MD_H5_CLOSE(object);
  if (r.status == MD_OK && o->counted) return describe_vectors(f, o, has_dims, dims, header);
  for (int d = 0; d < MD_DIMS && has_dims; d++)
    header->dims[d] = dims[d] >= 2 && dims[d] <= 32767 ? (int)dims[d] : 0;
  return r.status;
}

static md_status describe_file(const md_h5_file *f, md_lattice_header *header, md_notes *notes) {
  hid_t dataset, sites = H5I_INVALID_HID;
  for (int i = 0; i < OTHERS && H5Lexists(f->id, "/gauge", H5P_DEFAULT) <= 0; i++)
    if (H5Lexists(f->id, others[i].group, H5P_DEFAULT) > 0)
      return describe_other(f, &others[i], header, notes);
  snprintf(header->content, sizeof header->content, "links");
  MD_TRY(md_h5_open_object(f, MD_H5_LINKS, true, &dataset));
  md_status status = describe_dataset(f, dataset, header, notes);
  const md_h5_shape shape = md_h5_links_shape(header->site.real_bytes);
  if (status == MD_OK) status = md_h5_open_sites(f, MD_H5_LINKS, header->dims, &shape, &sites);
  if (status == MD_OK) status = get_label(f, dataset, &header->label);
  MD_H5_CLOSE(sites, dataset);
  return status;
}

static md_status describe_links(const md_reader *r) {
  md_h5_described *d = r->shared;
  md_notes notes = {0};
  MD_TRY(check_room(r, sizeof *d));
  const md_status status = describe_file(&r->file, &d->header, &notes);
  (void)md_h5_list_objects(r->file.id, &notes);
  for (int i = 0; i < notes.record_count && i < MD_H5_RECORDS_MOST; i++)
    d->records[d->record_count++] = notes.records[i];
  for (int i = 0; i < notes.departure_count && i < MD_H5_DEPARTURES_MOST; i++)
    memcpy(d->departures[d->departure_count++], notes.departures[i], sizeof *d->departures);
  d->texts_used = notes.texts.used;
  d->texts_lost = notes.texts.lost;
  if (notes.texts.used > 0) memcpy(d->texts, notes.texts.bytes, notes.texts.used);
  return status;
}

md_status md_reader_serve(md_reader *r, const md_child_request *q, long long *number) {
  if (r->file.id < 0) MD_TRY(open_file(r));
  switch (q->what) {
  case MD_CHILD_DESCRIBE_LINKS:
    return describe_links(r);
  case MD_CHILD_EXTENTS:
    return get_extents(r, q);
  case MD_CHILD_ATTRIBUTE:
    return get_attribute(r, q, number);
  case MD_CHILD_SITES:
    return open_sites(r, q, number);
  case MD_CHILD_CHUNKS:
    return find_chunks(r);
  case MD_CHILD_BOX:
    return read_box(r, q, number);
  case MD_CHILD_ARRAY:
    return read_array(r, q, number);
  case MD_CHILD_VERIFY:
    MD_TRY(check_room(r, sizeof(md_datasets_found)));
    *(md_datasets_found *)r->shared = md_h5_verify(&r->file);
    return MD_OK;
  }
  return md_fail(r->file.context, MD_ENVIRONMENT, "%s: there is no request %d", r->file.path,
                 (int)q->what);
}
