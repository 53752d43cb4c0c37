#include "io/hdf5_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names in an HDF5 file are followed link by link: a link may lead into another file, and the
 * library would open that without asking. */
enum { NAME_MOST = 1024, SOFT_LINKS_MOST = 8 };

typedef struct walk {
  md_context *context;
  const char *path, *name; /* of the file; what was asked for */
  hid_t file, at;          /* object that was reached */
  char rest[NAME_MOST];    /* of the name, relative to it */
  int soft_links;
} walk;

static md_status refuse_external(walk *w, const char *link, const H5L_info_t *info) {
  const char *there = "", *object = "";
  unsigned flags = 0;
  char *value = info->u.val_size < NAME_MOST ? calloc(1, NAME_MOST) : NULL;
  if (value && H5Lget_val(w->at, link, value, NAME_MOST, H5P_DEFAULT) >= 0)
    (void)H5Lunpack_elink_val(value, info->u.val_size, &flags, &there, &object);
  const md_status status = md_fail(
      w->context, MD_INPUT,
      "%s: %s leads through the external link '%.60s' to '%.200s' in the file '%.200s'; "
      "links to other files are not followed, copy the data into this one (h5repack or h5py)",
      w->path, w->name, link, object, there);
  free(value);
  return status;
}

/* The target takes the place of the link in the rest of the name. */
static md_status follow_soft(walk *w, const char *link, const H5L_info_t *info) {
  char target[NAME_MOST] = "", rest[NAME_MOST];
  if (++w->soft_links > SOFT_LINKS_MOST)
    return md_fail(w->context, MD_INPUT, "%s: %s leads through more than %d soft links", w->path,
                   w->name, SOFT_LINKS_MOST);
  if (info->u.val_size >= NAME_MOST ||
      H5Lget_val(w->at, link, target, sizeof target - 1, H5P_DEFAULT) < 0)
    return md_h5_fail(w->context, MD_INPUT, w->path, "reading a soft link");
  const int length = snprintf(rest, sizeof rest, "%s/%s", target, w->rest);
  if (length < 0 || (size_t)length >= sizeof rest)
    return md_fail(w->context, MD_INPUT,
                   "%s: the soft link '%.60s' has a target of more than %d "
                   "bytes",
                   w->path, link, NAME_MOST - 1);
  memcpy(w->rest, rest, sizeof rest);
  if (target[0] == '/') {
    H5Oclose(w->at);
    w->at = H5Oopen(w->file, "/", H5P_DEFAULT);
    if (w->at < 0) return md_h5_fail(w->context, MD_INPUT, w->path, "opening its root group");
  }
  return MD_OK;
}

static md_status follow(walk *w, const char *link) {
  H5L_info_t info;
  if (H5Iget_type(w->at) != H5I_GROUP || H5Lget_info(w->at, link, &info, H5P_DEFAULT) < 0)
    return md_fail(w->context, MD_INPUT, "%s: there is no %s in this file", w->path, w->name);
  if (info.type == H5L_TYPE_EXTERNAL) return refuse_external(w, link, &info);
  if (info.type == H5L_TYPE_SOFT) return follow_soft(w, link, &info);
  if (info.type != H5L_TYPE_HARD)
    return md_fail(w->context, MD_INPUT,
                   "%s: %s leads through the user-defined link '%.60s', which is not followed",
                   w->path, w->name, link);
  const hid_t next = H5Oopen(w->at, link, H5P_DEFAULT);
  if (next < 0) return md_h5_fail(w->context, MD_INPUT, w->path, "opening an object");
  H5Oclose(w->at);
  w->at = next;
  return MD_OK;
}

/* Takes the first part off the rest; false when nothing is left. */
static bool next_part(walk *w, char part[NAME_MOST]) {
  const size_t skipped = strspn(w->rest, "/"), length = strcspn(w->rest + skipped, "/");
  memcpy(part, w->rest + skipped, length);
  part[length] = 0;
  memmove(w->rest, w->rest + skipped + length, strlen(w->rest + skipped + length) + 1);
  return length > 0;
}

md_h5_storage md_h5_storage_of(hid_t dataset) {
  const hid_t create = H5Dget_create_plist(dataset);
  if (create < 0) return MD_H5_UNKNOWN;
  const H5D_layout_t layout = H5Pget_layout(create);
  const int external = layout == H5D_VIRTUAL ? 0 : H5Pget_external_count(create);
  H5Pclose(create);
  if (layout == H5D_VIRTUAL) return MD_H5_VIRTUAL;
  if (external > 0) return MD_H5_EXTERNAL;
  return layout == H5D_LAYOUT_ERROR || external < 0 ? MD_H5_UNKNOWN : MD_H5_HERE;
}

/* Data that the file itself does not hold are refused before they are looked for. */
static md_status check_storage(const walk *w) {
  switch (md_h5_storage_of(w->at)) {
  case MD_H5_VIRTUAL:
    return md_fail(w->context, MD_INPUT,
                   "%s: %s is a virtual dataset; data in other files are not read, copy them into "
                   "this one (h5repack or h5py)",
                   w->path, w->name);
  case MD_H5_EXTERNAL:
    return md_fail(w->context, MD_INPUT,
                   "%s: %s has external raw storage; data in other files are not read, copy them "
                   "into this one (h5repack or h5py)",
                   w->path, w->name);
  case MD_H5_UNKNOWN:
    return md_h5_fail(w->context, MD_INPUT, w->path, "reading the layout of a dataset");
  case MD_H5_HERE:
    break;
  }
  return MD_OK;
}

md_status md_h5_open_object(md_context *context, const char *path, hid_t file, const char *name,
                            bool dataset, hid_t *object) {
  char part[NAME_MOST];
  walk w = {.context = context, .path = path, .name = name, .file = file};
  snprintf(w.rest, sizeof w.rest, "%s", name);
  *object = H5I_INVALID_HID;
  w.at = H5Oopen(file, "/", H5P_DEFAULT);
  if (w.at < 0) return md_h5_fail(context, MD_INPUT, path, "opening its root group");
  md_status status = MD_OK;
  while (status == MD_OK && next_part(&w, part)) status = follow(&w, part);
  if (status == MD_OK && H5Iget_type(w.at) != (dataset ? H5I_DATASET : H5I_GROUP))
    status = md_fail(context, MD_INPUT, "%s: %s must be a %s", path, name,
                     dataset ? "dataset" : "group");
  if (status == MD_OK && dataset) status = check_storage(&w);
  if (status == MD_OK)
    *object = w.at;
  else if (w.at >= 0)
    H5Oclose(w.at);
  return status;
}
