#include "io/hdf5_file.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK_BYTES = 4 << 20, FIXED8_BYTES = 8 };

static herr_t keep_first(unsigned depth, const H5E_error2_t *error, void *text) {
  (void)depth;
  char *first = text;
  if (!*first) snprintf(first, 256, "%s", error->desc ? error->desc : "");
  return 0;
}

md_status md_h5_fail(const md_h5_file *file, md_status status, const char *step) {
  char text[256] = "";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, text);
  return md_fail(file->context, status, "%s: %s failed%s%s", file->path, step,
                 *text ? ": HDF5 says " : "", text);
}

void md_h5_close(const hid_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] >= 0) H5Idec_ref(ids[i]);
}

md_status md_h5_group(const md_h5_file *file, const char *name) {
  const hid_t group = H5Gcreate2(file->id, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (group < 0) return md_h5_fail(file, MD_ENVIRONMENT, "creating a group");
  MD_H5_CLOSE(group);
  return MD_OK;
}

/* IEEE binary16, for which HDF5 has no name before 1.14. */
static hid_t half_type(bool on_file) {
  const hid_t type = H5Tcopy(on_file ? H5T_IEEE_F32LE : H5T_NATIVE_FLOAT);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

static hid_t real_type(int real_bytes, bool on_file) {
  if (real_bytes == 2) return half_type(on_file);
  if (on_file) return H5Tcopy(real_bytes == 8 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
  return H5Tcopy(real_bytes == 8 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT);
}

hid_t md_h5_complex(int real_bytes, bool on_file) {
  const hid_t real = real_type(real_bytes, on_file);
  const hid_t complex = H5Tcreate(H5T_COMPOUND, 2 * (size_t)real_bytes);
  H5Tinsert(complex, "r", 0, real);
  H5Tinsert(complex, "i", (size_t)real_bytes, real);
  MD_H5_CLOSE(real);
  return complex;
}

/* Compound {scale, r[3], i[3]} of a site, FIXED8_BYTES long: an IEEE binary16 and integers of 8
 * bits, the real and imaginary parts of the colours over the scale. */
static hid_t fixed8_type(bool on_file) {
  const hsize_t colours = 3;
  const hid_t scale = half_type(on_file);
  const hid_t steps = H5Tarray_create2(on_file ? H5T_STD_I8LE : H5T_NATIVE_INT8, 1, &colours);
  const hid_t type = H5Tcreate(H5T_COMPOUND, FIXED8_BYTES);
  H5Tinsert(type, "scale", 0, scale);
  H5Tinsert(type, "r", 2, steps);
  H5Tinsert(type, "i", 5, steps);
  MD_H5_CLOSE(steps, scale);
  return type;
}

hid_t md_h5_value(size_t text_bytes, bool on_file) {
  if (text_bytes == 0) return real_type(8, on_file);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, text_bytes);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

static md_status put_attribute(const md_h5_file *file, hid_t object,
                               const md_attribute *attribute) {
  const hsize_t count = (hsize_t)attribute->count;
  const bool text = attribute->type == MD_ATTRIBUTE_TEXT;
  const hid_t type = attribute->type == MD_ATTRIBUTE_INTEGER
                         ? H5Tcopy(H5T_NATIVE_INT64)
                         : md_h5_value(text ? strlen(attribute->data) + 1 : 0, false);
  const hid_t space =
      text || count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
  const hid_t id = H5Acreate2(object, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool written = id >= 0 && H5Awrite(id, type, attribute->data) >= 0;
  const md_status status = written ? MD_OK : md_h5_fail(file, MD_ENVIRONMENT, attribute->name);
  MD_H5_CLOSE(id, space, type);
  return status;
}

md_status md_h5_put_attributes(const md_h5_file *file, hid_t object, const md_attribute *list,
                               int count) {
  for (int i = 0; i < count; i++) MD_TRY(put_attribute(file, object, &list[i]));
  return MD_OK;
}

md_status md_h5_put_axes(const md_h5_file *file, hid_t dataset, const char *axes) {
  const md_attribute attribute = {"axes", MD_ATTRIBUTE_TEXT, 0, (char *)axes};
  return axes ? md_h5_put_attributes(file, dataset, &attribute, 1) : MD_OK;
}

/* A text of no fixed length, as h5py writes it, if it has room. */
static bool get_variable_text(hid_t id, hid_t type, const md_attribute *attribute) {
  char *text = NULL;
  if (H5Aread(id, type, &text) < 0) return false;
  const size_t length = text ? strlen(text) : 0;
  const bool fits = length < (size_t)attribute->count;
  if (fits) memset(attribute->data, 0, (size_t)attribute->count);
  if (fits && text) memcpy(attribute->data, text, length);
  H5free_memory(text);
  return fits;
}

bool md_h5_get_attribute(hid_t object, const md_attribute *attribute) {
  if (H5Aexists(object, attribute->name) <= 0) return false;
  const hid_t id = H5Aopen(object, attribute->name, H5P_DEFAULT);
  if (id < 0) return false;
  const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
  const H5T_class_t class = H5Tget_class(type);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  const bool text = attribute->type == MD_ATTRIBUTE_TEXT,
             real = attribute->type == MD_ATTRIBUTE_REAL;
  const bool one_text = text && class == H5T_STRING && count == 1;
  const bool variable = one_text && H5Tis_variable_str(type) > 0;
  const bool fits = text ? one_text && !variable && H5Tget_size(type) <= (size_t)attribute->count
                         : class == (real ? H5T_FLOAT : H5T_INTEGER) && count == attribute->count;
  const hid_t here = text ? type : real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
  if (fits && text) memset(attribute->data, 0, (size_t)attribute->count);
  const bool found = variable ? get_variable_text(id, type, attribute)
                              : fits && H5Aread(id, here, attribute->data) >= 0;
  if (fits && text) ((char *)attribute->data)[attribute->count - 1] = 0;
  MD_H5_CLOSE(space, type, id);
  return found;
}

bool md_h5_has_sums(hid_t dataset) {
  const hid_t create = H5Dget_create_plist(dataset);
  unsigned flags = 0;
  size_t none = 0;
  const bool has =
      H5Pget_filter_by_id2(create, H5Z_FILTER_FLETCHER32, &flags, &none, NULL, 0, NULL, NULL) >= 0;
  MD_H5_CLOSE(create);
  return has;
}

void md_h5_warn_of_sums(const md_context *context, const char *path) {
  md_warn(context, "%s has no Fletcher32 checksums: its numbers cannot be verified", path);
}

md_h5_found md_h5_find(hid_t dataset) {
  md_h5_found found = {0};
  hsize_t extents[H5S_MAX_RANK];
  const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  found.rank = H5Sget_simple_extent_dims(space, extents, NULL);
  for (int i = 0; i < found.rank; i++) found.extent[i] = (long long)extents[i];
  found.bytes = (long long)H5Tget_size(type);
  MD_H5_CLOSE(type, space);
  return found;
}

int md_h5_planes(hid_t dataset) {
  hsize_t chunk[H5S_MAX_RANK] = {1, 1};
  const hid_t create = H5Dget_create_plist(dataset);
  if (H5Pget_layout(create) == H5D_CHUNKED) H5Pget_chunk(create, H5S_MAX_RANK, chunk);
  MD_H5_CLOSE(create);
  return chunk[1] > 0 && chunk[1] < 32768 ? (int)chunk[1] : 1;
}

int md_h5_extents(const md_h5_shape *shape, const int dims[MD_DIMS],
                  hsize_t extents[MD_H5_RANK_MOST]) {
  int rank = 0;
  if (shape->lead) extents[rank++] = (hsize_t)shape->lead;
  for (int d = MD_T; d >= MD_X; d--)
    extents[rank++] = (hsize_t)(d == MD_X && shape->one_parity ? dims[d] / 2 : dims[d]);
  for (int i = 0; i < 3 && shape->inner[i]; i++) extents[rank++] = (hsize_t)shape->inner[i];
  return rank;
}

size_t md_h5_site_bytes(const md_h5_shape *shape) {
  size_t bytes = shape->fixed8 ? FIXED8_BYTES : 2 * (size_t)shape->real_bytes;
  for (int i = 0; i < 3 && shape->inner[i]; i++) bytes *= (size_t)shape->inner[i];
  return bytes;
}

static hid_t element_type(const md_h5_shape *shape, bool on_file) {
  return shape->fixed8 ? fixed8_type(on_file) : md_h5_complex(shape->real_bytes, on_file);
}

/* Largest divisor of `extent` that is at most `most`, at least 1. */
static int divisor(int extent, size_t most) {
  int found = extent;
  while (found > 1 && ((size_t)found > most || extent % found)) found--;
  return found;
}

static void choose_chunk(const md_geometry *geometry, const md_h5_shape *shape,
                         hsize_t chunk[MD_H5_RANK_MOST]) {
  int part[MD_DIMS] = {geometry->local[0], 1, 1, 1};
  const size_t row = md_h5_site_bytes(shape) * (size_t)part[0] / (shape->one_parity ? 2 : 1);
  part[1] = divisor(geometry->local[1], CHUNK_BYTES / row);
  if (part[1] == geometry->local[1])
    part[2] = divisor(geometry->local[2], CHUNK_BYTES / (row * (size_t)part[1]));
  md_h5_extents(shape, part, chunk);
  if (shape->lead) chunk[0] = 1;
}

md_status md_h5_create_sites(const md_h5_file *file, const char *name, const char *axes,
                             const md_geometry *geometry, const md_h5_shape *shape,
                             hid_t *dataset) {
  hsize_t extents[MD_H5_RANK_MOST], chunk[MD_H5_RANK_MOST];
  const int rank = md_h5_extents(shape, geometry->global, extents);
  choose_chunk(geometry, shape, chunk);
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(create, rank, chunk);
  H5Pset_fletcher32(create);
  H5Pset_fill_time(create, H5D_FILL_TIME_NEVER);
  const hid_t space = H5Screate_simple(rank, extents, NULL);
  const hid_t type = element_type(shape, true);
  *dataset = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  MD_H5_CLOSE(type, space, create);
  if (*dataset < 0) return md_h5_fail(file, MD_ENVIRONMENT, "creating a dataset");
  return md_h5_put_axes(file, *dataset, axes);
}

static bool has_bytes(const md_h5_shape *shape, size_t real_bytes) {
  return real_bytes == (size_t)shape->real_bytes || (shape->or_single && real_bytes == 4);
}

/* What element_type makes; complex numbers in any byte order: two reals r and i of that size. */
static bool is_element(hid_t type, const md_h5_shape *shape) {
  const char *const names[2] = {"r", "i"};
  const hid_t wanted = element_type(shape, true);
  bool same = H5Tequal(type, wanted) > 0;
  MD_H5_CLOSE(wanted);
  if (same || shape->fixed8 || H5Tget_class(type) != H5T_COMPOUND) return same;
  same = H5Tget_nmembers(type) == 2;
  for (unsigned i = 0; i < 2 && same; i++) {
    const hid_t member = H5Tget_member_type(type, i);
    same = H5Tget_member_index(type, names[i]) == (int)i && H5Tget_class(member) == H5T_FLOAT &&
           has_bytes(shape, H5Tget_size(member));
    MD_H5_CLOSE(member);
  }
  return same;
}

/* Extents of the chunks, or of the dataset where it is not chunked. HDF5 makes no chunk that is
 * longer than its dataset can become, but reads from one that a damaged header speaks of, and what
 * it then finds is whatever memory holds: false. */
static bool chunk_extents(hid_t dataset, hid_t create, int rank, hsize_t *chunk) {
  hsize_t most[MD_H5_RANK_MOST] = {0};
  const hid_t space = H5Dget_space(dataset);
  bool fit = H5Sget_simple_extent_dims(space, chunk, most) == rank;
  if (fit && H5Pget_layout(create) == H5D_CHUNKED) {
    fit = H5Pget_chunk(create, rank, chunk) == rank;
    for (int i = 0; i < rank; i++)
      fit = fit && chunk[i] > 0 && (most[i] == H5S_UNLIMITED || chunk[i] <= most[i]);
  }
  MD_H5_CLOSE(space);
  return fit;
}

/* Whole chunks that were never written would read as zeros; without a compressing filter the
 * storage is that of all chunks, with four bytes for each checksum, and cannot be more than the
 * file, whatever extents the header claims. */
static bool is_stored(hid_t file, hid_t dataset, hid_t create, const hsize_t *extents,
                      const hsize_t *chunk, const md_h5_found *found) {
  bool compressed = false;
  double bytes = (double)found->bytes, chunk_bytes = bytes, chunks = 1.0;
  hsize_t all = 0;
  for (int i = 0; i < found->rank; i++) {
    bytes *= (double)extents[i];
    chunk_bytes *= (double)chunk[i];
    chunks *= ceil((double)extents[i] / (double)chunk[i]);
  }
  for (int i = 0; i < H5Pget_nfilters(create); i++) {
    unsigned flags = 0;
    size_t none = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(create, (unsigned)i, &flags, &none, NULL, 0, NULL, NULL);
    compressed = compressed || (filter != H5Z_FILTER_FLETCHER32 && filter != H5Z_FILTER_SHUFFLE);
  }
  const double least = compressed ? bytes / MD_H5_RATIO_MOST : chunks * chunk_bytes;
  const double stored = (double)H5Dget_storage_size(dataset);
  const double most =
      compressed ? HUGE_VAL : least + (md_h5_has_sums(dataset) ? 4.0 * chunks : 0.0);
  return H5Fget_filesize(file, &all) >= 0 && (double)all >= least && stored >= least &&
         stored <= most;
}

md_status md_h5_open_sites(const md_h5_file *file, const char *name, const int dims[MD_DIMS],
                           const md_h5_shape *shape, hid_t *dataset) {
  hsize_t wanted[MD_H5_RANK_MOST], chunk[MD_H5_RANK_MOST];
  const int rank = md_h5_extents(shape, dims, wanted);
  MD_TRY(md_h5_open_object(file, name, true, dataset));
  const md_h5_found found = md_h5_find(*dataset);
  const hid_t type = H5Dget_type(*dataset), create = H5Dget_create_plist(*dataset);
  bool fits = found.rank == rank && is_element(type, shape);
  for (int i = 0; i < rank; i++) fits = fits && found.extent[i] == (long long)wanted[i];
  const bool chunked = fits && chunk_extents(*dataset, create, rank, chunk);
  const bool stored = chunked && is_stored(file->id, *dataset, create, wanted, chunk, &found);
  MD_H5_CLOSE(create, type);
  if (stored) return MD_OK;
  MD_H5_CLOSE(*dataset);
  *dataset = H5I_INVALID_HID;
  if (fits)
    return md_fail(file->context, MD_INPUT, "%s: dataset %s %s", file->path, name,
                   chunked ? "is not stored completely" : "has chunks that are longer than it is");
  char asked[128] = "", there[128] = "";
  for (int i = 0; i < rank; i++) md_append(asked, sizeof asked, "[%lld]", (long long)wanted[i]);
  for (int i = 0; i < found.rank; i++)
    md_append(there, sizeof there, "[%lld]", (long long)found.extent[i]);
  return md_fail(
      file->context, MD_INPUT,
      "%s: dataset %s must have the shape %s and the type that this run asks for, got %s",
      file->path, name, asked, there);
}

/* Selects the sites in the file; memory has the box's own extents: equal shapes spare HDF5 a walk
 * over single elements. */
static void select_box(hid_t dataset, const md_h5_shape *shape, int lead, const md_h5_box *box,
                       hid_t *there, hid_t *here) {
  hsize_t count[MD_H5_RANK_MOST], start[MD_H5_RANK_MOST];
  const int rank = md_h5_extents(shape, box->extent, count);
  md_h5_extents(shape, box->origin, start);
  for (int i = MD_DIMS + (shape->lead > 0); i < rank; i++) start[i] = 0;
  if (shape->lead) {
    start[0] = (hsize_t)lead;
    count[0] = 1;
  }
  *there = H5Dget_space(dataset);
  *here = H5Screate_simple(rank, count, NULL);
  H5Sselect_hyperslab(*there, H5S_SELECT_SET, start, NULL, count, NULL);
}

md_h5_box md_h5_slab_box(const md_geometry *geometry, const md_slab *slab) {
  return (md_h5_box){.origin = {geometry->origin[0], geometry->origin[1],
                                geometry->origin[2] + slab->z, geometry->origin[3] + slab->t},
                     .extent = {geometry->local[0], geometry->local[1], slab->nz, slab->nt}};
}

md_status md_h5_write_slab(const md_h5_file *file, hid_t dataset, const md_geometry *geometry,
                           const md_h5_shape *shape, int lead, const md_slab *slab,
                           const void *raw) {
  const md_h5_box box = md_h5_slab_box(geometry, slab);
  hid_t there, here;
  select_box(dataset, shape, lead, &box, &there, &here);
  const hid_t type = element_type(shape, false);
  const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  if (file->context->ranks > 1) H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  const bool written = H5Dwrite(dataset, type, here, there, transfer, raw) >= 0;
  const md_status status = written ? MD_OK : md_h5_fail(file, MD_ENVIRONMENT, "writing a dataset");
  MD_H5_CLOSE(transfer, type, here, there);
  return status;
}

md_status md_h5_read_box(const md_h5_file *file, hid_t dataset, const md_h5_shape *shape, int lead,
                         const md_h5_box *box, void *raw, long long *damaged) {
  hid_t there, here;
  select_box(dataset, shape, lead, box, &there, &here);
  const hid_t type = element_type(shape, false), transfer = H5Pcreate(H5P_DATASET_XFER);
  bool read = H5Dread(dataset, type, here, there, transfer, raw) >= 0;
  md_status status = read ? MD_OK : md_h5_fail(file, MD_INPUT, "reading a dataset");
  if (!read) {
    H5Pset_edc_check(transfer, H5Z_DISABLE_EDC);
    read = H5Dread(dataset, type, here, there, transfer, raw) >= 0;
    *damaged += read;
    if (read) status = MD_OK;
  }
  MD_H5_CLOSE(transfer, type, here, there);
  return status;
}
