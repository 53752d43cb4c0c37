/* Stands in for io/child.c in targets that read HDF5 files which are sound as such: the work that a
 * child process does is done here, a thousand times a second and under the sanitizers, in memory
 * whose ends they watch. */
#include "base/file.h"
#include "io/child.h"

#include <hdf5.h>
#include <stdlib.h>

enum { AT_ONCE = 4 };
static struct {
  md_child_work *work;
  void *state;
} at_work[AT_ONCE];

md_status md_child_start(md_context *context, const char *path, md_child_work *work, void *state,
                         size_t shared_bytes, md_child *child) {
  int64_t bytes;
  *child = (md_child){.path = path, .socket = -1, .shared_bytes = shared_bytes};
  MD_TRY(md_file_length(context, path, &bytes));
  int i = 0;
  while (i < AT_ONCE && at_work[i].work) i++;
  child->shared = i < AT_ONCE ? calloc(1, shared_bytes) : NULL;
  if (!child->shared) return md_fail_memory(context, shared_bytes, "buffer of a file's reader");
  at_work[i].work = work;
  at_work[i].state = state;
  child->socket = i;
  return MD_OK;
}

md_status md_child_ask(md_context *context, md_child *child, int request) {
  const int i = child->socket;
  return at_work[i].work(context, at_work[i].state, request, child->shared);
}

/* What a child leaves open ends with it. */
static void close_all(void) {
  hid_t left[64];
  ssize_t count = H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_ALL, 64, left);
  while (count-- > 0)
    if (H5Iis_valid(left[count]) > 0) H5Idec_ref(left[count]);
}

void md_child_stop(md_child *child) {
  if (child->socket >= 0) at_work[child->socket].work = NULL;
  if (child->shared) close_all();
  free(child->shared);
  *child = (md_child){.socket = -1};
}

void md_child_open_no_more(void) {}
