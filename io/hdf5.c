#include "base/memory.h"
#include "io/hdf5_label.h"
#include "io/hdf5_lattice.h"
#include "io/site_data.h"

#include <stdlib.h>
#include <string.h>

/* The format "hdf5", and how its files are written. */
enum { SLAB_BYTES = 16 << 20 };

static bool recognises(const unsigned char *head, size_t bytes) {
  return bytes >= 8 && memcmp(head, "\211HDF\r\n\032\n", 8) == 0;
}

/* Planes in z that are stored together. */
static int planes_of(hid_t dataset) {
  hsize_t chunk[MD_H5_RANK_MOST] = {1, 1};
  const hid_t create = H5Dget_create_plist(dataset);
  H5Pget_chunk(create, MD_H5_RANK_MOST, chunk);
  H5Pclose(create);
  return (int)chunk[1];
}

static md_status write_slabs(md_context *context, const char *path, hid_t dataset,
                             md_lattice_header *header, const md_gauge *gauge) {
  const md_geometry *geometry = gauge->geometry;
  const md_h5_shape shape = md_h5_links_shape(header->site.real_bytes);
  const size_t site_bytes = md_site_bytes(&header->site);
  header->planes = planes_of(dataset);
  const md_slab_plan plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, header->planes);
  const size_t bytes = md_slab_bytes(geometry, &plan, site_bytes);
  void *raw = NULL;
  md_status status = md_agree(context, md_allocate(context, bytes, "output buffer", &raw));
  for (int i = 0; i < plan.count && status == MD_OK; i++) {
    const md_slab slab = md_slab_at(geometry, &plan, i);
    md_sites_pack(geometry, &slab, &header->site, gauge, raw, &header->checksum);
    status = md_agree(context,
                      md_h5_write_slab(context, path, dataset, geometry, &shape, 0, &slab, raw));
  }
  free(raw);
  if (status == MD_OK) md_checksum_combine(context, &header->checksum);
  return status;
}

static md_status write_attributes(md_context *context, const char *path, hid_t dataset,
                                  const md_lattice_header *header) {
  int64_t dims[MD_DIMS], version = MD_H5_LATTICE_VERSION;
  int64_t pair[2] = {header->checksum.a, header->checksum.b};
  double plaquette = header->plaquette, link_trace = header->link_trace;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = header->dims[d];
  enum { OWN = 5 };
  md_attribute attributes[OWN + MD_PROVENANCE_ATTRIBUTES] = {
      {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
      {"plaquette", MD_ATTRIBUTE_REAL, 1, &plaquette},
      {"link_trace", MD_ATTRIBUTE_REAL, 1, &link_trace},
      {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      {"scidac_checksum", MD_ATTRIBUTE_INTEGER, 2, pair}};
  const int count = md_provenance_append(header->provenance, attributes, OWN);
  for (int i = 0; i < count; i++)
    MD_TRY(md_h5_put_attribute(context, path, dataset, &attributes[i]));
  return md_h5_put_label(context, path, dataset, &header->label);
}

static md_status write_dataset(md_context *context, const char *path, hid_t file,
                               md_lattice_header *header, const md_gauge *gauge) {
  const md_h5_shape shape = md_h5_links_shape(header->site.real_bytes);
  hid_t dataset = H5I_INVALID_HID;
  md_status status = md_h5_group(context, path, file, "/gauge");
  if (status == MD_OK)
    status =
        md_h5_create_sites(context, path, file, MD_H5_LINKS, gauge->geometry, &shape, &dataset);
  status = md_agree(context, status);
  if (status == MD_OK) status = write_slabs(context, path, dataset, header, gauge);
  if (status == MD_OK) status = md_agree(context, write_attributes(context, path, dataset, header));
  if (status == MD_OK && header->texts)
    status = md_agree(context, md_h5_put_texts(context, path, file, header->texts));
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
                                          .describe = md_h5_lattice_describe,
                                          .read = md_h5_lattice_read,
                                          .write = write_file};
