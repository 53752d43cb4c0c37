#include "io/arrays.h"
#include "base/file.h"
#include "io/child.h"
#include "io/hdf5_file.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256, OPEN = 0 };

static size_t entries_of(const md_array *array) {
  size_t entries = 1;
  for (int d = 0; d < array->rank; d++) entries *= (size_t)array->extent[d];
  return entries;
}

static size_t bytes_of(const md_array *array) {
  return entries_of(array) * (array->text_bytes ? (size_t)array->text_bytes : sizeof(double));
}

static size_t attribute_bytes(const md_attribute *a) {
  return (size_t)a->count * (a->type == MD_ATTRIBUTE_TEXT ? 1 : 8);
}

static hid_t type_of(const md_array *array, bool on_file) {
  if (!array->text_bytes) return H5Tcopy(on_file ? H5T_IEEE_F64LE : H5T_NATIVE_DOUBLE);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, (size_t)array->text_bytes);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

static void name_of(const char *group, const md_array *array, char name[NAME_BYTES]) {
  snprintf(name, NAME_BYTES, "/%s/%s", group, array->name);
}

/* One chunk, so that its Fletcher32 guards all of it. */
static md_status write_array(md_context *context, const char *path, hid_t file, const char *group,
                             const md_array *array) {
  hsize_t extents[MD_ARRAY_RANK_MOST];
  char name[NAME_BYTES];
  name_of(group, array, name);
  for (int d = 0; d < array->rank; d++) extents[d] = (hsize_t)array->extent[d];
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(create, array->rank, extents);
  H5Pset_fletcher32(create);
  const hid_t space = H5Screate_simple(array->rank, extents, NULL);
  const hid_t there = type_of(array, true), here = type_of(array, false);
  const hid_t dataset = H5Dcreate2(file, name, there, space, H5P_DEFAULT, create, H5P_DEFAULT);
  const bool written =
      dataset >= 0 && H5Dwrite(dataset, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, array->data) >= 0;
  const md_status status = written ? MD_OK : md_h5_fail(context, MD_ENVIRONMENT, path, array->name);
  if (dataset >= 0) H5Dclose(dataset);
  H5Tclose(there);
  H5Tclose(here);
  H5Sclose(space);
  H5Pclose(create);
  return status;
}

static md_status fill_file(md_context *context, const char *path, hid_t file, const char *group,
                           const md_array *arrays, int array_count, const md_attribute *attributes,
                           int attribute_count) {
  MD_TRY(md_h5_group(context, path, file, group));
  for (int i = 0; i < array_count; i++) MD_TRY(write_array(context, path, file, group, &arrays[i]));
  const hid_t object = H5Oopen(file, group, H5P_DEFAULT);
  md_status status = MD_OK;
  for (int i = 0; i < attribute_count && status == MD_OK; i++)
    status = md_h5_put_attribute(context, path, object, &attributes[i]);
  H5Oclose(object);
  return status;
}

/* On rank 0 alone: the file is small and nobody else has a part of it. */
static md_status write_here(md_context *context, const char *path, const char *group,
                            const md_array *arrays, int array_count, const md_attribute *attributes,
                            int attribute_count) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110); /* checksummed metadata */
  H5Pset_file_locking(access, true, true);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  if (file < 0) return md_h5_fail(context, MD_ENVIRONMENT, path, "creating the file");
  md_status status =
      fill_file(context, path, file, group, arrays, array_count, attributes, attribute_count);
  if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 && status == MD_OK)
    status = md_h5_fail(context, MD_ENVIRONMENT, path, "flushing the file");
  if (H5Fclose(file) < 0 && status == MD_OK)
    status = md_h5_fail(context, MD_ENVIRONMENT, path, "closing the file");
  return status;
}

md_status md_arrays_write(md_context *context, const char *path, bool keep_old, const char *group,
                          const md_array *arrays, int array_count, const md_attribute *attributes,
                          int attribute_count) {
  md_new_file target;
  MD_TRY(md_new_file_begin(context, path, &target));
  target.keep_old = keep_old;
  md_status status = MD_OK;
  if (context->rank == 0)
    status =
        write_here(context, target.path, group, arrays, array_count, attributes, attribute_count);
  return md_new_file_end(context, &target, status);
}

typedef struct reader {
  const char *path, *group;
  const md_array *arrays;
  int array_count;
  const md_attribute *attributes;
  int attribute_count;
} reader;

static size_t padded(size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

static md_status read_array(md_context *context, const reader *r, hid_t file, const md_array *array,
                            void *data, int64_t *unguarded) {
  hsize_t extents[MD_ARRAY_RANK_MOST + 1] = {0};
  char name[NAME_BYTES];
  hid_t dataset;
  name_of(r->group, array, name);
  if (array->optional && H5Lexists(file, name, H5P_DEFAULT) == 0) {
    memset(data, 0, bytes_of(array));
    return MD_OK;
  }
  MD_TRY(md_h5_open_object(context, r->path, file, name, true, &dataset));
  const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  const int rank = H5Sget_simple_extent_ndims(space);
  bool fits = rank == array->rank;
  if (fits) H5Sget_simple_extent_dims(space, extents, NULL);
  for (int d = 0; d < array->rank && fits; d++) fits = extents[d] == (hsize_t)array->extent[d];
  fits = fits &&
         (array->text_bytes ? H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
                                  H5Tget_size(type) == (size_t)array->text_bytes
                            : H5Tget_class(type) == H5T_FLOAT);
  const hid_t here = type_of(array, false);
  md_status status = MD_OK;
  *unguarded += !md_h5_has_sums(dataset);
  if (!fits)
    status = md_fail(context, MD_INPUT, "%s: %s has another shape or type than it should have",
                     r->path, name);
  else if (H5Dread(dataset, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
    status = md_fail(context, MD_INPUT, "%s: %s is damaged and cannot be read", r->path, name);
  H5Tclose(here);
  H5Tclose(type);
  H5Sclose(space);
  H5Oclose(dataset);
  return status;
}

/* In the child: the number of arrays without checksums, attributes, then arrays, each from a
 * multiple of 8 bytes on. */
static md_status serve(md_context *context, void *state, int request, void *shared) {
  (void)request;
  const reader *r = state;
  int64_t *unguarded = shared;
  unsigned char *at = (unsigned char *)(unguarded + 1);
  char name[NAME_BYTES];
  hid_t file, group;
  MD_TRY(md_h5_open(context, r->path, &file));
  snprintf(name, sizeof name, "/%s", r->group);
  MD_TRY(md_h5_open_object(context, r->path, file, name, false, &group));
  for (int i = 0; i < r->attribute_count; i++) {
    md_attribute a = r->attributes[i];
    a.data = at;
    if (!md_h5_get_attribute(group, &a))
      return md_fail(context, MD_INPUT, "%s: attribute %s is missing or has another type or length",
                     r->path, a.name);
    at += padded(attribute_bytes(&a));
  }
  for (int i = 0; i < r->array_count; i++) {
    MD_TRY(read_array(context, r, file, &r->arrays[i], at, unguarded));
    at += padded(bytes_of(&r->arrays[i]));
  }
  return MD_OK;
}

static size_t shared_bytes(const reader *r) {
  size_t bytes = sizeof(int64_t);
  for (int i = 0; i < r->attribute_count; i++) bytes += padded(attribute_bytes(&r->attributes[i]));
  for (int i = 0; i < r->array_count; i++) bytes += padded(bytes_of(&r->arrays[i]));
  return bytes;
}

static void take(const reader *r, const unsigned char *at) {
  for (int i = 0; i < r->attribute_count; i++) {
    const md_attribute *a = &r->attributes[i];
    memcpy(a->data, at, attribute_bytes(a));
    if (a->type == MD_ATTRIBUTE_TEXT && a->count > 0) ((char *)a->data)[a->count - 1] = 0;
    at += padded(attribute_bytes(a));
  }
  for (int i = 0; i < r->array_count; i++) {
    const md_array *array = &r->arrays[i];
    memcpy(array->data, at, bytes_of(array));
    for (size_t k = 0; array->text_bytes && k < entries_of(array); k++)
      ((char *)array->data)[(k + 1) * (size_t)array->text_bytes - 1] = 0;
    at += padded(bytes_of(array));
  }
}

md_status md_arrays_read(md_context *context, const char *path, const char *group,
                         const md_array *arrays, int array_count, const md_attribute *attributes,
                         int attribute_count) {
  reader r = {path, group, arrays, array_count, attributes, attribute_count};
  md_status status = MD_OK;
  if (context->rank == 0) {
    md_child child;
    status = md_child_start(context, path, serve, &r, shared_bytes(&r), &child);
    if (status == MD_OK) status = md_child_ask(context, &child, OPEN);
    if (status == MD_OK) take(&r, (unsigned char *)child.shared + sizeof(int64_t));
    if (status == MD_OK && *(int64_t *)child.shared > 0) md_h5_warn_of_sums(context, path);
    md_child_stop(&child);
  }
  MD_TRY(md_agree(context, status));
  for (int i = 0; i < attribute_count; i++)
    md_broadcast(context, attributes[i].data, attribute_bytes(&attributes[i]));
  for (int i = 0; i < array_count; i++) md_broadcast(context, arrays[i].data, bytes_of(&arrays[i]));
  return MD_OK;
}
