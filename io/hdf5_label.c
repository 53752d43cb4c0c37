#include "io/hdf5_label.h"

#include <stdio.h>
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
