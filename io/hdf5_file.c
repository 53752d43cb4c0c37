#include "io/hdf5_file.h"
#include "base/file.h"
#include "base/ranks_mpi.h"
#include "io/child.h"
#include "io/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static herr_t keep_first(unsigned depth, const H5E_error2_t *error, void *text) {
  (void)depth;
  char *first = text;
  if (!*first) snprintf(first, 256, "%s", error->desc ? error->desc : "");
  return 0;
}

md_status md_h5_fail(md_context *context, md_status status, const char *path, const char *step) {
  char text[256] = "";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, text);
  return md_fail(context, status, "%s: %s failed%s%s", path, step, *text ? ": HDF5 says " : "",
                 text);
}

md_status md_h5_open(md_context *context, const char *path, hid_t *file) {
  const int there = open(path, O_RDONLY | O_CLOEXEC); /* plain, which knows the reason */
  *file = H5I_INVALID_HID;
  if (there < 0) return md_fail_open(context, "", path, errno);
  close(there);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* messages go through md_fail, not to stderr */
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_cache(access, 0, 10007, 32 << 20, 0.75);
  H5Pset_file_locking(access, true, true); /* file systems without locks are fine */
  *file = H5Fopen(path, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  H5PLset_loading_state(0); /* no filter or driver from elsewhere */
  md_child_open_no_more();
  return *file < 0 ? md_h5_fail(context, MD_INPUT, path, "opening it as HDF5") : MD_OK;
}

md_status md_h5_create(md_context *context, const char *path, int64_t bytes, hid_t *file) {
  *file = H5I_INVALID_HID;
  const int64_t room = bytes + bytes / 128 + (1 << 20);
  MD_TRY(md_reserve(context, path, room)); /* HDF5 empties the file again */
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110); /* checksummed metadata */
  H5Pset_file_locking(access, true, true);
  if (context->ranks > 1) H5Pset_fapl_mpio(access, md_mpi(context), MPI_INFO_NULL);
  *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  const md_status status =
      *file < 0 ? md_h5_fail(context, MD_ENVIRONMENT, path, "creating the file") : MD_OK;
  MD_TRY(md_agree(context, status));
  return md_reserve_behind(context, path, room);
}

md_status md_h5_close_written(md_context *context, const char *path, hid_t *file) {
  md_status status = MD_OK;
  if (*file < 0) return MD_OK;
  if (H5Fflush(*file, H5F_SCOPE_GLOBAL) < 0)
    status = md_h5_fail(context, MD_ENVIRONMENT, path, "flushing the file");
  if (H5Fclose(*file) < 0 && status == MD_OK)
    status = md_h5_fail(context, MD_ENVIRONMENT, path, "closing the file");
  *file = H5I_INVALID_HID;
  struct stat there; /* gives back what was reserved behind the end */
  if (status == MD_OK && context->rank == 0 && stat(path, &there) == 0 &&
      truncate(path, there.st_size) != 0)
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be closed: %m", path);
  return md_agree(context, status);
}

md_status md_h5_group(md_context *context, const char *path, hid_t file, const char *name) {
  const hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (group < 0) return md_h5_fail(context, MD_ENVIRONMENT, path, "creating a group");
  H5Gclose(group);
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
  H5Tclose(real);
  return complex;
}

hid_t md_h5_fixed8(bool on_file) {
  const hsize_t colours = 3;
  const hid_t scale = half_type(on_file);
  const hid_t steps = H5Tarray_create2(on_file ? H5T_STD_I8LE : H5T_NATIVE_INT8, 1, &colours);
  const hid_t type = H5Tcreate(H5T_COMPOUND, MD_H5_FIXED8_BYTES);
  H5Tinsert(type, "scale", 0, scale);
  H5Tinsert(type, "r", 2, steps);
  H5Tinsert(type, "i", 5, steps);
  H5Tclose(steps);
  H5Tclose(scale);
  return type;
}

static hid_t text_type(size_t bytes) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, bytes);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

md_status md_h5_put_attribute(md_context *context, const char *path, hid_t object,
                              const md_attribute *attribute) {
  const hsize_t count = (hsize_t)attribute->count;
  const bool text = attribute->type == MD_ATTRIBUTE_TEXT;
  const bool real = attribute->type == MD_ATTRIBUTE_REAL;
  const hid_t type = text ? text_type(strlen(attribute->data) + 1)
                          : H5Tcopy(real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64);
  const hid_t space =
      text || count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
  const hid_t id = H5Acreate2(object, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool written = id >= 0 && H5Awrite(id, type, attribute->data) >= 0;
  if (id >= 0) H5Aclose(id);
  H5Sclose(space);
  H5Tclose(type);
  return written ? MD_OK : md_h5_fail(context, MD_ENVIRONMENT, path, attribute->name);
}

bool md_h5_get_attribute(hid_t object, const md_attribute *attribute) {
  if (H5Aexists(object, attribute->name) <= 0) return false;
  const hid_t id = H5Aopen(object, attribute->name, H5P_DEFAULT);
  if (id < 0) return false;
  const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
  const H5T_class_t class = H5Tget_class(type);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  bool found = false;
  if (attribute->type == MD_ATTRIBUTE_TEXT) {
    if (class == H5T_STRING && H5Tis_variable_str(type) == 0 && count == 1 &&
        H5Tget_size(type) <= (size_t)attribute->count) {
      memset(attribute->data, 0, (size_t)attribute->count);
      found = H5Aread(id, type, attribute->data) >= 0;
      ((char *)attribute->data)[attribute->count - 1] = 0;
    }
  } else if (count == attribute->count) {
    const bool real = attribute->type == MD_ATTRIBUTE_REAL;
    if (class == (real ? H5T_FLOAT : H5T_INTEGER))
      found = H5Aread(id, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, attribute->data) >= 0;
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(id);
  return found;
}

bool md_h5_has_sums(hid_t dataset) {
  const hid_t create = H5Dget_create_plist(dataset);
  unsigned flags = 0;
  size_t none = 0;
  const bool has =
      H5Pget_filter_by_id2(create, H5Z_FILTER_FLETCHER32, &flags, &none, NULL, 0, NULL, NULL) >= 0;
  H5Pclose(create);
  return has;
}

void md_h5_warn_of_sums(const md_context *context, const char *path) {
  md_warn(context, "%s has no Fletcher32 checksums: its numbers cannot be verified", path);
}
