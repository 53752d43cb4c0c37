#include "io/hdf5_file.h"

#include <stdio.h>
#include <string.h>

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

hid_t md_h5_text(size_t bytes) {
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
  const hid_t type = text ? md_h5_text(strlen(attribute->data) + 1)
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
