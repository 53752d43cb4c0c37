#include "io/arrays.h"
#include "base/file.h"
#include "io/child.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = MD_CHILD_NAME };
_Static_assert((int)MD_ARRAY_RANK_MOST == (int)MD_CHILD_RANK_MOST, "extents of a request");

static size_t entries_of(const md_array *array) {
  size_t entries = 1;
  for (int d = 0; d < array->rank; d++) entries *= (size_t)array->extent[d];
  return entries;
}

static size_t bytes_of(const md_array *array) {
  return entries_of(array) * (array->text_bytes ? (size_t)array->text_bytes : sizeof(double));
}

static hid_t type_of(const md_array *array, bool on_file) {
  if (!array->text_bytes) return H5Tcopy(on_file ? H5T_IEEE_F64LE : H5T_NATIVE_DOUBLE);
  return md_h5_text((size_t)array->text_bytes);
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

static md_status read_array(md_context *context, md_child *child, const char *group,
                            const md_array *array) {
  md_child_request request = {.what = MD_CHILD_ARRAY,
                              .rank = array->rank,
                              .text_bytes = array->text_bytes,
                              .optional = array->optional};
  name_of(group, array, request.name);
  memcpy(request.extent, array->extent, (size_t)array->rank * sizeof *array->extent);
  MD_TRY(md_child_ask(context, child, &request));
  memcpy(array->data, child->shared, bytes_of(array));
  for (size_t k = 0; array->text_bytes && k < entries_of(array); k++)
    ((char *)array->data)[(k + 1) * (size_t)array->text_bytes - 1] = 0;
  return MD_OK;
}

/* Local. */
static md_status read_here(md_context *context, const char *path, const char *group,
                           const md_array *arrays, int array_count, const md_attribute *attributes,
                           int attribute_count) {
  size_t most = 8;
  bool unguarded = false;
  md_child child;
  char name[NAME_BYTES];
  for (int i = 0; i < attribute_count; i++)
    if (md_attribute_bytes(&attributes[i]) > most) most = md_attribute_bytes(&attributes[i]);
  for (int i = 0; i < array_count; i++)
    if (bytes_of(&arrays[i]) > most) most = bytes_of(&arrays[i]);
  snprintf(name, sizeof name, "/%s", group);
  md_status status = md_child_start(context, path, most, &child);
  if (status == MD_OK) status = md_child_open(context, &child, name, false);
  if (status == MD_OK) status = md_child_attributes(context, &child, attributes, attribute_count);
  for (int i = 0; i < array_count && status == MD_OK; i++) {
    status = read_array(context, &child, group, &arrays[i]);
    unguarded = unguarded || child.number > 0;
  }
  if (status == MD_OK && unguarded) md_h5_warn_of_sums(context, path);
  md_child_stop(&child);
  return status;
}

md_status md_arrays_read(md_context *context, const char *path, const char *group,
                         const md_array *arrays, int array_count, const md_attribute *attributes,
                         int attribute_count) {
  md_status status = MD_OK;
  if (context->rank == 0)
    status = read_here(context, path, group, arrays, array_count, attributes, attribute_count);
  MD_TRY(md_agree(context, status));
  for (int i = 0; i < attribute_count; i++)
    md_broadcast(context, attributes[i].data, md_attribute_bytes(&attributes[i]));
  for (int i = 0; i < array_count; i++) md_broadcast(context, arrays[i].data, bytes_of(&arrays[i]));
  return MD_OK;
}
