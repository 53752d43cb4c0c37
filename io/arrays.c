#include "io/arrays.h"
#include "base/file.h"
#include "base/report.h"
#include "io/child.h"
#include "md_version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void md_provenance_of_run(const md_context *context, md_provenance *p) {
  *p = (md_provenance){.mass = NAN, .tolerance = NAN};
  if (context->rank == 0) {
    char *line = md_command_line();
    const int whole = snprintf(p->command_line, sizeof p->command_line, "%s", line ? line : "");
    if (whole >= (int)sizeof p->command_line)
      memcpy(p->command_line + sizeof p->command_line - 4, "...", 4);
    md_date_utc(p->date_utc, sizeof p->date_utc);
    free(line);
  }
  md_broadcast(context, p->command_line, sizeof p->command_line);
  md_broadcast(context, p->date_utc, sizeof p->date_utc);
}

int md_provenance_append(md_provenance *p, md_attribute *attributes, int count) {
  const md_attribute all[MD_PROVENANCE_ATTRIBUTES] = {
      {"lattice", MD_ATTRIBUTE_TEXT, 0, (char *)p->lattice},
      {"lattice_checksum", MD_ATTRIBUTE_TEXT, 0, (char *)p->lattice_checksum},
      {"action", MD_ATTRIBUTE_TEXT, 0, (char *)p->action},
      {"mass", MD_ATTRIBUTE_REAL, 1, &p->mass},
      {"tolerance", MD_ATTRIBUTE_REAL, 1, &p->tolerance},
      {"version", MD_ATTRIBUTE_TEXT, 0, MD_VERSION},
      {"commit", MD_ATTRIBUTE_TEXT, 0, MD_COMMIT},
      {"date_utc", MD_ATTRIBUTE_TEXT, 0, p->date_utc},
      {"command_line", MD_ATTRIBUTE_TEXT, 0, p->command_line}};
  for (int i = 0; i < MD_PROVENANCE_ATTRIBUTES; i++) {
    const void *data = all[i].data;
    const bool known = all[i].type == MD_ATTRIBUTE_REAL ? !isnan(*(const double *)data)
                                                        : data && *(const char *)data;
    if (known) attributes[count++] = all[i];
  }
  return count;
}

static void name_of(const char *group, const md_array *array, char name[MD_CHILD_NAME]) {
  snprintf(name, MD_CHILD_NAME, "/%s/%s", group, array->name);
}

/* Of a chunk: a reader takes one of at most 64 MiB at once, and HDF5 none of 4 GiB. */
#define CHUNK_MOST 0x1p24

/* All of a small array, so that one Fletcher32 guards it, and equal parts of a large one: along the
 * first axis, and along the next one where a part of one index is still too large. */
static void choose_chunk(const md_array *array, hsize_t chunk[MD_ARRAY_RANK_MOST]) {
  double bytes = (double)md_array_bytes(array); /* of the part that a chunk has */
  for (int d = 0; d < array->rank; d++) {
    const double all = (double)array->extent[d], one = bytes / all;
    const double most = one < CHUNK_MOST ? floor(CHUNK_MOST / one) : 1.0;
    chunk[d] = (hsize_t)ceil(all / ceil(all / most));
    bytes = one * (double)chunk[d];
  }
}

/* All of its chunks, the last ones whole. */
static int64_t stored_bytes(const md_array *array) {
  hsize_t chunk[MD_ARRAY_RANK_MOST];
  int64_t bytes = array->text_bytes ? array->text_bytes : (int64_t)sizeof(double);
  choose_chunk(array, chunk);
  for (int d = 0; d < array->rank; d++) {
    const int64_t part = (int64_t)chunk[d];
    bytes *= (array->extent[d] + part - 1) / part * part;
  }
  return bytes;
}

static md_status write_array(const md_h5_file *file, const char *group, const md_array *array) {
  hsize_t extents[MD_ARRAY_RANK_MOST], chunk[MD_ARRAY_RANK_MOST];
  char name[MD_CHILD_NAME];
  const size_t text = (size_t)array->text_bytes;
  name_of(group, array, name);
  for (int d = 0; d < array->rank; d++) extents[d] = (hsize_t)array->extent[d];
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  choose_chunk(array, chunk);
  H5Pset_chunk(create, array->rank, chunk);
  H5Pset_fletcher32(create);
  const hid_t space = H5Screate_simple(array->rank, extents, NULL);
  const hid_t there = md_h5_value(text, true), here = md_h5_value(text, false);
  const hid_t dataset = H5Dcreate2(file->id, name, there, space, H5P_DEFAULT, create, H5P_DEFAULT);
  const bool written =
      dataset >= 0 && H5Dwrite(dataset, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, array->data) >= 0;
  md_status status = written ? MD_OK : md_h5_fail(file, MD_ENVIRONMENT, array->name);
  if (status == MD_OK) status = md_h5_put_axes(file, dataset, array->axes);
  MD_H5_CLOSE(dataset, there, here, space, create);
  return status;
}

static md_status fill_file(const md_h5_file *file, const char *group, const md_array *arrays,
                           int array_count, const md_attribute *attributes, int attribute_count) {
  MD_TRY(md_h5_group(file, group));
  for (int i = 0; i < array_count; i++) MD_TRY(write_array(file, group, &arrays[i]));
  const hid_t object = H5Oopen(file->id, group, H5P_DEFAULT);
  const md_status status = md_h5_put_attributes(file, object, attributes, attribute_count);
  MD_H5_CLOSE(object);
  return status;
}

/* Rank 0, as a run of its own: the file is small and nobody else has a part of it. HDF5 has all the
 * room that it may need before it writes, because a file that it could not close it would close
 * again when the process ends, and crash. */
static md_status write_here(md_context *context, const char *path, const char *group,
                            const md_array *arrays, int array_count, const md_attribute *attributes,
                            int attribute_count) {
  md_context alone = {.ranks = 1, .threads = 1};
  md_h5_file file = {&alone, path, .id = H5I_INVALID_HID};
  int64_t bytes = 0;
  for (int i = 0; i < array_count; i++) bytes += stored_bytes(&arrays[i]);
  md_status status = md_h5_create(&file, bytes);
  if (status == MD_OK)
    status = fill_file(&file, group, arrays, array_count, attributes, attribute_count);
  status = md_h5_close_written(&file, status);
  if (status != MD_OK) memcpy(context->message, alone.message, sizeof context->message);
  return status;
}

md_status md_arrays_write(md_context *context, const char *path, bool keep_old, const char *group,
                          const md_array *arrays, int array_count, const md_attribute *attributes,
                          int attribute_count) {
  md_new_file target;
  MD_TRY(md_new_file_begin(context, path, &target));
  target.keep_old = keep_old;
  md_status status = MD_OK;
  if (context->rank == 0)
    status =
        write_here(context, target.path, group, arrays, array_count, attributes, attribute_count);
  return md_new_file_end(context, &target, status);
}

static md_status read_array(md_context *context, md_child *child, const char *group,
                            const md_array *array) {
  const size_t bytes = md_array_bytes(array), text = (size_t)array->text_bytes;
  md_child_request request = {.what = MD_CHILD_ARRAY, .array = *array};
  request.array.name = NULL;
  request.array.data = NULL;
  request.array.axes = NULL;
  name_of(group, array, request.name);
  MD_TRY(md_child_ask(context, child, &request));
  memcpy(array->data, child->shared, bytes);
  for (size_t at = text; text > 0 && at <= bytes; at += text) ((char *)array->data)[at - 1] = 0;
  return MD_OK;
}

/* Local. */
static md_status read_here(md_context *context, const char *path, const char *group,
                           const md_array *arrays, int array_count, const md_attribute *attributes,
                           int attribute_count) {
  size_t most = md_attributes_most(attributes, attribute_count, 8);
  bool unguarded = false;
  md_child child;
  char name[MD_CHILD_NAME];
  for (int i = 0; i < array_count; i++)
    if (md_array_bytes(&arrays[i]) > most) most = md_array_bytes(&arrays[i]);
  snprintf(name, sizeof name, "/%s", group);
  md_status status = md_child_start(context, path, most, &child);
  if (status == MD_OK)
    status = md_child_attributes(context, &child, name, false, attributes, attribute_count);
  for (int i = 0; i < array_count && status == MD_OK; i++) {
    status = read_array(context, &child, group, &arrays[i]);
    unguarded = unguarded || child.number > 0;
  }
  if (status == MD_OK && unguarded) md_h5_warn_of_sums(context, path);
  md_child_stop(&child);
  return status;
}

md_status md_arrays_read(md_context *context, const char *path, const char *group,
                         const md_array *arrays, int array_count, const md_attribute *attributes,
                         int attribute_count) {
  md_status status = MD_OK;
  if (context->rank == 0)
    status = read_here(context, path, group, arrays, array_count, attributes, attribute_count);
  MD_TRY(md_agree(context, status));
  for (int i = 0; i < attribute_count; i++)
    md_broadcast(context, attributes[i].data, md_attribute_bytes(&attributes[i]));
  for (int i = 0; i < array_count; i++)
    md_broadcast(context, arrays[i].data, md_array_bytes(&arrays[i]));
  return MD_OK;
}
