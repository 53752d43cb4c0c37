/* Stands in for io/child.c in targets that read HDF5 files which are sound as such: the work that a
 * child process does is done here, a thousand times a second and under the sanitizers, in memory
 * whose ends they watch. */
#include "base/file.h"
#include "io/child.h"
#include "io/reader/reader.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 4 };
static md_reader readers[AT_ONCE]; /* those without a path are free */

md_status md_child_start(md_context *context, const char *path, size_t shared_bytes,
                         md_child *child) {
  int64_t bytes;
  *child = (md_child){.path = path, .socket = -1, .shared_bytes = shared_bytes};
  MD_TRY(md_file_length(context, path, &bytes));
  int i = 0;
  while (i < AT_ONCE && readers[i].file.path) i++;
  child->shared = i < AT_ONCE ? calloc(1, shared_bytes) : NULL;
  if (!child->shared) return md_fail_memory(context, shared_bytes, "buffer of a file's reader");
  readers[i] = (md_reader){{context, path, .id = H5I_INVALID_HID},
                           .shared = child->shared,
                           .shared_bytes = shared_bytes};
  child->socket = i;
  return MD_OK;
}

/* An attribute goes into memory of its own length: what it may be, not what there is room for. */
static md_status serve_attribute(md_context *context, md_child *child,
                                 const md_child_request *request) {
  md_reader *r = &readers[child->socket];
  const md_attribute a = {request->attribute, request->type, request->count, NULL};
  const size_t bytes = md_attribute_bytes(&a);
  if (bytes > child->shared_bytes) return md_reader_serve(r, request, &child->number);
  r->shared_bytes = bytes;
  r->shared = malloc(bytes);
  if (!r->shared) return md_fail_memory(context, bytes, "an attribute");
  const md_status status = md_reader_serve(r, request, &child->number);
  memcpy(child->shared, r->shared, bytes);
  free(r->shared);
  r->shared = child->shared;
  r->shared_bytes = child->shared_bytes;
  return status;
}

md_status md_child_ask(md_context *context, md_child *child, const md_child_request *request) {
  child->number = 0;
  return request->what == MD_CHILD_ATTRIBUTE
             ? serve_attribute(context, child, request)
             : md_reader_serve(&readers[child->socket], request, &child->number);
}

/* What a child leaves open ends with it. */
static void close_all(void) {
  hid_t left[64];
  ssize_t count = H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_ALL, 64, left);
  while (count-- > 0)
    if (H5Iis_valid(left[count]) > 0) H5Idec_ref(left[count]);
}

void md_child_stop(md_child *child) {
  if (child->socket >= 0) readers[child->socket].file.path = NULL;
  if (child->shared) close_all();
  free(child->shared);
  *child = (md_child){.socket = -1};
}

void md_reader_open_no_more(void) {}
