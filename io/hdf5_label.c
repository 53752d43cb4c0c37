#include "io/hdf5_label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

md_status md_h5_get_label(md_context *context, const char *path, hid_t dataset,
                          md_link_label *label) {
  char links[16] = "thin", phases[16] = "";
  md_h5_get_attribute(dataset, &(md_attribute){"links", MD_ATTRIBUTE_TEXT, sizeof links, links});
  md_h5_get_attribute(dataset, &(md_attribute){"phases", MD_ATTRIBUTE_TEXT, sizeof phases, phases});
  md_h5_get_attribute(dataset,
                      &(md_attribute){"made", MD_ATTRIBUTE_TEXT, sizeof label->made, label->made});
  label->bare = strcmp(phases, "none") == 0;
  for (md_link_kind kind = MD_LINKS_THIN; kind <= MD_LINKS_LONG; kind++)
    if (strcmp(links, md_link_kind_name(kind)) == 0) {
      label->kind = kind;
      return MD_OK;
    }
  return md_fail(context, MD_INPUT, "%s: attribute links must be thin, fat or long, got '%.15s'",
                 path, links);
}

md_status md_h5_put_label(md_context *context, const char *path, hid_t dataset,
                          const md_link_label *label) {
  char links[16], phases[16] = "none", made[sizeof label->made];
  const bool thin = label->kind == MD_LINKS_THIN;
  snprintf(links, sizeof links, "%s", md_link_kind_name(label->kind));
  snprintf(made, sizeof made, "%s", label->made);
  if (!thin)
    MD_TRY(md_h5_put_attribute(context, path, dataset,
                               &(md_attribute){"links", MD_ATTRIBUTE_TEXT, 0, links}));
  if (label->bare && !thin)
    MD_TRY(md_h5_put_attribute(context, path, dataset,
                               &(md_attribute){"phases", MD_ATTRIBUTE_TEXT, 0, phases}));
  if (!*made) return MD_OK;
  return md_h5_put_attribute(context, path, dataset,
                             &(md_attribute){"made", MD_ATTRIBUTE_TEXT, 0, made});
}

md_status md_h5_put_texts(md_context *context, const char *path, hid_t file,
                          const md_file_texts *texts) {
  const char *name, *text;
  if (texts->count == 0) return MD_OK;
  MD_TRY(md_h5_group(context, path, file, MD_H5_TEXTS));
  const hid_t group = H5Gopen2(file, MD_H5_TEXTS, H5P_DEFAULT);
  md_status status = MD_OK;
  for (size_t at = 0; status == MD_OK && md_file_texts_next(texts, &at, &name, &text);)
    status = md_h5_put_attribute(context, path, group,
                                 &(md_attribute){name, MD_ATTRIBUTE_TEXT, 0, (char *)text});
  H5Gclose(group);
  return status;
}

typedef struct reader {
  md_context *context;
  md_file_texts *texts;
  md_status status;
} reader;

static void add_text(reader *r, hid_t object, const char *name) {
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

static herr_t visit(hid_t group, const char *name, const H5A_info_t *info, void *user) {
  reader *r = user;
  (void)info;
  if (r->texts->count + r->texts->lost >= 1024) return 1;
  add_text(r, group, name);
  return r->status == MD_OK ? 0 : 1;
}

md_status md_h5_get_texts(md_context *context, hid_t file, hid_t dataset, md_file_texts *texts) {
  static const char *const names[] = {"lattice", "lattice_checksum", "action",      "version",
                                      "commit",  "date_utc",         "command_line"};
  reader r = {context, texts, MD_OK};
  hid_t group;
  for (size_t i = 0; i < sizeof names / sizeof *names && r.status == MD_OK; i++)
    add_text(&r, dataset, names[i]);
  if (r.status != MD_OK || H5Lexists(file, "/gauge", H5P_DEFAULT) <= 0 ||
      H5Lexists(file, MD_H5_TEXTS, H5P_DEFAULT) <= 0)
    return r.status;
  MD_TRY(md_h5_open_object(context, "", file, MD_H5_TEXTS, false, &group));
  hsize_t at = 0;
  H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, &at, visit, &r);
  H5Oclose(group);
  return r.status;
}
