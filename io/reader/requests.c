#include "base/file.h"
#include "io/hdf5_chunks.h"
#include "io/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static md_status open_file(md_context *context, md_reader *r) {
  const int there = open(r->path, O_RDONLY | O_CLOEXEC); /* plain, which knows the reason */
  if (there < 0) return md_fail_open(context, "", r->path, errno);
  close(there);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* messages go through md_fail, not to stderr */
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_cache(access, 0, 10007, 32 << 20, 0.75);
  H5Pset_file_locking(access, true, true); /* file systems without locks are fine */
  r->file = H5Fopen(r->path, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  H5PLset_loading_state(0); /* no filter or driver from elsewhere */
  md_reader_open_no_more();
  return r->file < 0 ? md_h5_fail(context, MD_INPUT, r->path, "opening it as HDF5") : MD_OK;
}

/* What is asked for and the memory for it are the parent's to match: else it is our mistake. */
static md_status check_room(md_context *context, const md_reader *r, size_t bytes) {
  if (bytes <= r->shared_bytes) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "%s: reading it takes %zu bytes, there is room for %zu",
                 r->path, bytes, r->shared_bytes);
}

static md_status open_object(md_context *context, md_reader *r, const md_child_request *q) {
  if (r->object >= 0) H5Oclose(r->object);
  return md_h5_open_object(context, r->path, r->file, q->name, q->dataset, &r->object);
}

static md_status get_attribute(md_context *context, md_reader *r, const md_child_request *q,
                               long long *number) {
  const md_attribute a = {q->name, q->type, q->count, r->shared};
  MD_TRY(check_room(context, r, md_attribute_bytes(&a)));
  *number = r->object >= 0 && md_h5_get_attribute(r->object, &a);
  return MD_OK;
}

static md_status get_extents(md_context *context, const md_reader *r, const md_child_request *q) {
  hsize_t extents[H5S_MAX_RANK];
  hid_t dataset;
  md_child_extents *e = r->shared;
  MD_TRY(check_room(context, r, sizeof *e));
  MD_TRY(md_h5_open_object(context, r->path, r->file, q->name, true, &dataset));
  const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  e->rank = H5Sget_simple_extent_dims(space, extents, NULL);
  for (int i = 0; i < e->rank; i++) e->extent[i] = (long long)extents[i];
  e->bytes = (long long)H5Tget_size(type);
  H5Tclose(type);
  H5Sclose(space);
  H5Oclose(dataset);
  return MD_OK;
}

/* Its attributes can be asked for too. */
static md_status open_sites(md_context *context, md_reader *r, const md_child_request *q,
                            long long *number) {
  hid_t *dataset = &r->dataset[r->dataset_count];
  if (r->dataset_count == MD_CHILD_DATASETS)
    return md_fail(context, MD_ENVIRONMENT, "%s: more than %d datasets are to be read", r->path,
                   MD_CHILD_DATASETS);
  MD_TRY(md_h5_open_sites(context, r->path, r->file, q->name, q->dims, &q->shape, dataset));
  r->dataset_count++;
  *number = !md_h5_has_sums(*dataset);
  if (r->object >= 0) H5Oclose(r->object);
  r->object = H5Oopen(r->file, q->name, H5P_DEFAULT);
  return MD_OK;
}

static md_status read_box(md_context *context, const md_reader *r, const md_child_request *q,
                          long long *number) {
  size_t bytes = md_h5_site_bytes(&q->shape);
  for (int d = 0; d < MD_DIMS; d++) bytes *= (size_t)q->box.extent[d];
  MD_TRY(check_room(context, r, bytes / (q->shape.one_parity ? 2 : 1)));
  if (q->number >= r->dataset_count)
    return md_fail(context, MD_ENVIRONMENT, "%s: dataset %d is not open", r->path, q->number);
  return md_h5_read_box(context, r->path, r->dataset[q->number], &q->shape, q->lead, &q->box,
                        r->shared, number);
}

static bool fits(hid_t dataset, const md_child_request *q) {
  hsize_t extents[H5S_MAX_RANK] = {0};
  const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  bool same = H5Sget_simple_extent_dims(space, extents, NULL) == q->rank;
  for (int d = 0; d < q->rank && same; d++) same = extents[d] == (hsize_t)q->extent[d];
  if (q->text_bytes)
    same = same && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
           H5Tget_size(type) == (size_t)q->text_bytes;
  else
    same = same && H5Tget_class(type) == H5T_FLOAT;
  H5Tclose(type);
  H5Sclose(space);
  return same;
}

static md_status read_array(md_context *context, const md_reader *r, const md_child_request *q,
                            long long *number) {
  size_t bytes = q->text_bytes ? (size_t)q->text_bytes : sizeof(double);
  hid_t dataset;
  for (int d = 0; d < q->rank; d++) bytes *= (size_t)q->extent[d];
  MD_TRY(check_room(context, r, bytes));
  if (q->optional && H5Lexists(r->file, q->name, H5P_DEFAULT) == 0) {
    memset(r->shared, 0, bytes);
    return MD_OK;
  }
  MD_TRY(md_h5_open_object(context, r->path, r->file, q->name, true, &dataset));
  *number = !md_h5_has_sums(dataset);
  const hid_t here = q->text_bytes ? md_h5_text((size_t)q->text_bytes) : H5Tcopy(H5T_NATIVE_DOUBLE);
  md_status status = MD_OK;
  if (!fits(dataset, q))
    status = md_fail(context, MD_INPUT, "%s: %s has another shape or type than it should have",
                     r->path, q->name);
  else if (H5Dread(dataset, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, r->shared) < 0)
    status = md_fail(context, MD_INPUT, "%s: %s is damaged and cannot be read", r->path, q->name);
  H5Tclose(here);
  H5Oclose(dataset);
  return status;
}

static md_status find_chunks(md_context *context, const md_reader *r, const md_child_request *q) {
  MD_TRY(check_room(context, r, sizeof(md_h5_chunk_table)));
  if (r->dataset_count > 0)
    md_h5_chunks_find(r->file, r->dataset[0], q->dims, &q->shape, r->shared);
  return MD_OK;
}

md_status md_reader_serve(md_context *context, md_reader *r, const md_child_request *q,
                          long long *number) {
  if (r->file < 0) MD_TRY(open_file(context, r));
  switch (q->what) {
  case MD_CHILD_DESCRIBE_LINKS:
    MD_TRY(check_room(context, r, sizeof(md_h5_described)));
    return md_reader_describe_links(context, r, r->shared);
  case MD_CHILD_EXTENTS:
    return get_extents(context, r, q);
  case MD_CHILD_OBJECT:
    return open_object(context, r, q);
  case MD_CHILD_ATTRIBUTE:
    return get_attribute(context, r, q, number);
  case MD_CHILD_SITES:
    return open_sites(context, r, q, number);
  case MD_CHILD_CHUNKS:
    return find_chunks(context, r, q);
  case MD_CHILD_BOX:
    return read_box(context, r, q, number);
  case MD_CHILD_ARRAY:
    return read_array(context, r, q, number);
  }
  return md_fail(context, MD_ENVIRONMENT, "%s: there is no request %d", r->path, (int)q->what);
}
