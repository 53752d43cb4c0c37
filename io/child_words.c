#include "io/child.h"

#include <stdio.h>
#include <string.h>

/* Requests in words: apart from child.c, in whose place tests/fuzz/child_here.c may stand. */

md_status md_child_find(md_context *context, md_child *child, const char *object, bool dataset,
                        const md_attribute *attribute, bool *found) {
  const md_attribute *a = attribute;
  const size_t bytes = md_attribute_bytes(a);
  md_child_request request = {
      .what = MD_CHILD_ATTRIBUTE, .dataset = dataset, .type = a->type, .count = a->count};
  snprintf(request.name, sizeof request.name, "%s", object);
  snprintf(request.attribute, sizeof request.attribute, "%s", a->name);
  MD_TRY(md_child_ask(context, child, &request));
  *found = child->number > 0 && bytes <= child->shared_bytes;
  if (!*found) return MD_OK;
  memcpy(a->data, child->shared, bytes);
  if (a->type == MD_ATTRIBUTE_TEXT && a->count > 0) ((char *)a->data)[a->count - 1] = 0;
  return MD_OK;
}

md_status md_child_attributes(md_context *context, md_child *child, const char *object,
                              bool dataset, const md_attribute *list, int count) {
  for (int i = 0; i < count; i++) {
    bool found = false;
    MD_TRY(md_child_find(context, child, object, dataset, &list[i], &found));
    if (!found)
      return md_fail(context, MD_INPUT, "%s: attribute %s is missing or has another type or length",
                     child->path, list[i].name);
  }
  return MD_OK;
}

md_status md_child_open_sites(md_context *context, md_child *child, const char *name,
                              const int dims[MD_DIMS], const md_h5_shape *shape) {
  md_child_request request = {.what = MD_CHILD_SITES, .shape = *shape};
  snprintf(request.name, sizeof request.name, "%s", name);
  memcpy(request.dims, dims, sizeof request.dims);
  return md_child_ask(context, child, &request);
}

md_status md_child_read_slab(md_context *context, md_child *child, int number,
                             const md_geometry *geometry, int lead, const md_slab *slab) {
  const md_child_request request = {
      .what = MD_CHILD_BOX, .number = number, .lead = lead, .box = md_h5_slab_box(geometry, slab)};
  return md_child_ask(context, child, &request);
}
