#include "io/hdf5_label.h"

#include <stdio.h>
#include <string.h>

md_status md_h5_take_label(md_context *context, const char *path, const md_h5_label_words *words,
                           md_link_label *label) {
  snprintf(label->made, sizeof label->made, "%s", words->made);
  label->bare = strcmp(words->phases, "none") == 0;
  for (md_link_kind kind = MD_LINKS_THIN; kind <= MD_LINKS_LONG; kind++)
    if (strcmp(words->links, md_link_kind_name(kind)) == 0) {
      label->kind = kind;
      return MD_OK;
    }
  return md_fail(context, MD_INPUT, "%s: attribute links must be thin, fat or long, got '%.15s'",
                 path, words->links);
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
