#include "base/memory.h"
#include "io/hdf5_chunks.h"
#include "io/hdf5_label.h"
#include "io/lattice_format.h"
#include "io/read_ahead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* miniDirac's own lattice files: dataset /gauge/links [t][z][y][x][mu][3][3] of complex {r, i}.
 * The SciDAC checksum pair is that of the big-endian image of the sites: the same numbers as in
 * an ILDG file of this field and precision. */
enum { FORMAT_VERSION = 1, SLAB_BYTES = 16 << 20 };
static const char links_name[] = "/gauge/links";

static md_h5_shape links_shape(int real_bytes) {
  return (md_h5_shape){.inner = {MD_DIMS, 3, 3}, .real_bytes = real_bytes};
}

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 8 && memcmp(head, "\211HDF\r\n\032\n", 8) == 0;
}

static void describe_space(hid_t space, char *text, size_t bytes) {
  hsize_t extents[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space, extents, NULL);
  *text = 0;
  for (int i = 0; i < rank; i++) {
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "[%llu]", (unsigned long long)extents[i]);
  }
}

static herr_t note_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data) {
  md_record record = {.bytes = (int64_t)info->data_size};
  char object_name[64] = "";
  H5Iget_name(object, object_name, sizeof object_name);
  snprintf(record.type, sizeof record.type, "%s@%.60s", object_name, name);
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
  const hid_t space = id < 0 ? H5I_INVALID_HID : H5Aget_space(id);
  if (space >= 0) describe_space(space, record.detail, sizeof record.detail);
  if (space >= 0) H5Sclose(space);
  if (id >= 0) H5Aclose(id);
  md_notes_record(data, &record);
  return 0;
}

static herr_t note_object(hid_t file, const char *name, const H5O_info_t *info, void *data) {
  md_record record = {.offset = (int64_t)info->addr};
  snprintf(record.type, sizeof record.type, "/%s", strcmp(name, ".") ? name : "");
  const hid_t id = H5Oopen(file, name, H5P_DEFAULT);
  if (id < 0) return 0;
  snprintf(record.detail, sizeof record.detail, info->type == H5O_TYPE_GROUP ? "group" : "type");
  if (info->type == H5O_TYPE_DATASET) {
    const hid_t space = H5Dget_space(id);
    describe_space(space, record.detail, sizeof record.detail);
    record.bytes = (int64_t)H5Dget_storage_size(id);
    H5Sclose(space);
  }
  md_notes_record(data, &record);
  H5Aiterate2(id, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute, data);
  H5Oclose(id);
  return 0;
}

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
  const hid_t create = H5Dget_create_plist(dataset);
  unsigned flags = 0;
  size_t none = 0;
  if (H5Pget_filter_by_id2(create, H5Z_FILTER_FLETCHER32, &flags, &none, NULL, 0, NULL, NULL) < 0)
    md_notes_departure(notes, "dataset %s has no Fletcher32 checksums", links_name);
  H5Pclose(create);
}

static md_status describe_dataset(md_context *context, const md_source *source, hid_t file,
                                  md_lattice_header *header, md_notes *notes) {
  long long dims[MD_DIMS];
  int real_bytes = 0;
  hid_t dataset = H5Dopen2(file, links_name, H5P_DEFAULT);
  if (dataset < 0)
    return md_fail(context, MD_INPUT, "%s: a lattice file has a dataset %s, this one has none",
                   source->path, links_name);
  const bool fits = read_shape(dataset, dims, &real_bytes);
  md_status status = MD_OK;
  if (!fits)
    status = md_fail(context, MD_INPUT,
                     "%s: dataset %s must have the shape [t][z][y][x][4][3][3] of compound {r, i}",
                     source->path, links_name);
  if (status == MD_OK) status = md_source_check_dims(context, source, dims, header);
  if (status == MD_OK) {
    header->precision = real_bytes == 8 ? MD_DOUBLE : MD_SINGLE;
    header->site = (md_site_format){
        .rows = 3, .real_bytes = real_bytes, .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    status = read_attributes(context, source, dataset, header, notes);
  }
  if (status == MD_OK) status = md_h5_get_label(context, source->path, dataset, &header->label);
  if (status == MD_OK) note_filters(dataset, notes);
  H5Dclose(dataset);
  if (status != MD_OK) return status;
  const md_h5_shape shape = links_shape(real_bytes);
  MD_TRY(md_h5_open_sites(context, source->path, file, links_name, header->dims, &shape, &dataset));
  H5Dclose(dataset);
  return MD_OK;
}

static md_status describe(md_context *context, const md_source *source, md_lattice_header *header,
                          md_notes *notes) {
  hid_t file;
  MD_TRY(md_h5_open(context, source->path, &file));
  const md_status status = describe_dataset(context, source, file, header, notes);
  H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, note_object, notes);
  H5Fclose(file);
  return status;
}

static int chunk_z(hid_t dataset) {
  hsize_t chunk[H5S_MAX_RANK] = {1, 1};
  const hid_t create = H5Dget_create_plist(dataset);
  if (H5Pget_layout(create) == H5D_CHUNKED) H5Pget_chunk(create, H5S_MAX_RANK, chunk);
  H5Pclose(create);
  return chunk[1] > 0 && chunk[1] < 32768 ? (int)chunk[1] : 1;
}

/* What read_slab needs. */
typedef struct reader {
  const char *path;
  const md_geometry *geometry;
  md_h5_shape shape;
  md_slab_plan plan;
  hid_t dataset;
  md_read_ahead *ahead;
  bool straight; /* as long as all that was met was as it should be */
  md_h5_chunks chunks;
  long long damaged;
} reader;

static md_status read_slab(md_context *context, void *file, int i, void *raw) {
  reader *r = file;
  const md_slab slab = md_slab_at(r->geometry, &r->plan, i);
  md_read_ahead_advance(r->ahead);
  r->straight = r->straight && md_h5_chunks_read(&r->chunks, &slab, raw);
  if (r->straight) return MD_OK;
  return md_h5_read_slab(context, r->path, r->dataset, r->geometry, &r->shape, 0, &slab, raw,
                         &r->damaged);
}

/* This rank's part; no communication. */
static md_status read_part(md_context *context, const char *path, hid_t file,
                           const md_lattice_header *header, const md_geometry *geometry,
                           md_gauge *gauge, md_checksum *checksum) {
  reader r = {.path = path, .geometry = geometry, .shape = links_shape(header->site.real_bytes)};
  const size_t site_bytes = md_site_bytes(&header->site);
  void *raw[2];
  MD_TRY(md_h5_open_sites(context, path, file, links_name, header->dims, &r.shape, &r.dataset));
  r.plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, chunk_z(r.dataset));
  md_status status = md_slab_buffers(context, geometry, &r.plan, site_bytes, raw);
  /* Chunks lie nearly in the order of their sites: good enough for a hint. */
  r.ahead = md_read_ahead_start(path, geometry, &r.plan, 0, site_bytes);
  r.straight = md_h5_chunks_open(path, file, r.dataset, geometry, &r.shape, &r.chunks);
  if (status == MD_OK)
    status = md_sites_read(context, geometry, &r.plan, &header->site, read_slab, &r, raw, gauge,
                           checksum);
  checksum->damaged += r.damaged;
  md_h5_chunks_close(&r.chunks);
  md_read_ahead_stop(r.ahead);
  free(raw[0]);
  free(raw[1]);
  H5Dclose(r.dataset);
  return status;
}

static md_status read_file(md_context *context, const char *path, const md_lattice_header *header,
                           const md_geometry *geometry, md_gauge *gauge, md_checksum *checksum) {
  hid_t file;
  *checksum = (md_checksum){.kind = header->checksum.kind};
  md_status status = md_h5_open(context, path, &file);
  if (status == MD_OK) {
    status = read_part(context, path, file, header, geometry, gauge, checksum);
    H5Fclose(file);
  }
  status = md_agree(context, status);
  if (status == MD_OK) md_checksum_combine(context, checksum);
  return status;
}

static md_status write_slabs(md_context *context, const char *path, hid_t dataset,
                             md_lattice_header *header, const md_gauge *gauge) {
  const md_geometry *geometry = gauge->geometry;
  const md_h5_shape shape = links_shape(header->site.real_bytes);
  const size_t site_bytes = md_site_bytes(&header->site);
  const md_slab_plan plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, chunk_z(dataset));
  const size_t bytes = md_slab_bytes(geometry, &plan, site_bytes);
  void *raw = NULL;
  md_status status = md_agree(context, md_allocate(context, bytes, "output buffer", &raw));
  for (int i = 0; i < plan.count && status == MD_OK; i++) {
    const md_slab slab = md_slab_at(geometry, &plan, i);
    md_sites_pack(geometry, &slab, &header->site, gauge, raw, &header->checksum);
    status = md_h5_write_slab(context, path, dataset, geometry, &shape, 0, &slab, raw);
  }
  free(raw);
  if (status == MD_OK) md_checksum_combine(context, &header->checksum);
  return status;
}

static md_status write_attributes(md_context *context, const char *path, hid_t dataset,
                                  const md_lattice_header *header) {
  int64_t dims[MD_DIMS], version = FORMAT_VERSION;
  int64_t pair[2] = {header->checksum.a, header->checksum.b};
  double plaquette = header->plaquette, link_trace = header->link_trace;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = header->dims[d];
  const md_attribute attributes[] = {{"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
                                     {"plaquette", MD_ATTRIBUTE_REAL, 1, &plaquette},
                                     {"link_trace", MD_ATTRIBUTE_REAL, 1, &link_trace},
                                     {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
                                     {"scidac_checksum", MD_ATTRIBUTE_INTEGER, 2, pair}};
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    MD_TRY(md_h5_put_attribute(context, path, dataset, &attributes[i]));
  return md_h5_put_label(context, path, dataset, &header->label);
}

static md_status write_dataset(md_context *context, const char *path, hid_t file,
                               md_lattice_header *header, const md_gauge *gauge) {
  const md_h5_shape shape = links_shape(header->site.real_bytes);
  hid_t dataset = H5I_INVALID_HID;
  md_status status = md_h5_group(context, path, file, "/gauge");
  if (status == MD_OK)
    status = md_h5_create_sites(context, path, file, links_name, gauge->geometry, &shape, &dataset);
  status = md_agree(context, status);
  if (status == MD_OK) status = write_slabs(context, path, dataset, header, gauge);
  if (status == MD_OK) status = md_agree(context, write_attributes(context, path, dataset, header));
  if (dataset >= 0) H5Dclose(dataset);
  return status;
}

static md_status write_file(md_context *context, const char *path, md_lattice_header *header,
                            const md_gauge *gauge) {
  hid_t file;
  header->site = (md_site_format){.rows = 3,
                                  .real_bytes = header->precision == MD_DOUBLE ? 8 : 4,
                                  .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
  header->offset = 0;
  header->checksum = (md_checksum){.kind = MD_CHECKSUM_SCIDAC};
  MD_TRY(md_h5_create(context, path, md_lattice_link_bytes(header), &file));
  const md_status status = write_dataset(context, path, file, header, gauge);
  const md_status closed = md_h5_close_written(context, path, &file);
  return status == MD_OK ? closed : status;
}

const md_lattice_format md_format_hdf5 = {.name = "hdf5",
                                          .suffixes = ".h5 .hdf5",
                                          .recognises = recognises,
                                          .describe = describe,
                                          .read = read_file,
                                          .write = write_file};
