#include "io/propagator.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "io/bundle.h"

#include <stdio.h>
#include <stdlib.h>

static md_status write_sites(md_context *context, const char *path, hid_t dataset,
                             const md_bundle_sites *s) {
  const md_h5_shape shape = md_bundle_shape(s);
  size_t bytes = 0;
  const md_slab_plan plan = md_bundle_plan(s, &bytes);
  void *raw = NULL;
  md_status status = md_agree(context, md_allocate(context, bytes, "output buffer", &raw));
  for (int r = 0; r < shape.lead && status == MD_OK; r++)
    for (int i = 0; i < plan.count && status == MD_OK; i++) {
      const md_slab slab = md_slab_at(s->field[0]->geometry, &plan, i);
      md_bundle_copy_slab(s, &slab, r, raw, false);
      status = md_agree(context, md_h5_write_slab(context, path, dataset, s->field[0]->geometry,
                                                  &shape, r, &slab, raw));
    }
  free(raw);
  return status;
}

static md_status put_attributes(md_context *context, const char *path, hid_t object,
                                const md_geometry *geometry, const md_attribute *attributes,
                                int count) {
  int64_t dims[MD_DIMS], version = MD_BUNDLE_VERSION;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = geometry->global[d];
  const md_attribute own[2] = {{"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
                               {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version}};
  for (int i = 0; i < 2; i++) MD_TRY(md_h5_put_attribute(context, path, object, &own[i]));
  for (int i = 0; i < count; i++)
    MD_TRY(md_h5_put_attribute(context, path, object, &attributes[i]));
  return MD_OK;
}

static md_status write_bundle(md_context *context, const char *path, hid_t file,
                              const md_bundle *b) {
  md_status status = md_agree(context, md_h5_group(context, path, file, b->group));
  for (int i = 0; i < b->dataset_count && status == MD_OK; i++) {
    const md_h5_shape shape = md_bundle_shape(&b->datasets[i]);
    hid_t dataset = H5I_INVALID_HID;
    status = md_agree(context, md_h5_create_sites(context, path, file, b->datasets[i].name,
                                                  b->geometry, &shape, &dataset));
    if (status == MD_OK) status = write_sites(context, path, dataset, &b->datasets[i]);
    const int64_t parity = b->datasets[i].field[0]->parity;
    const md_attribute which = {"parity", MD_ATTRIBUTE_INTEGER, 1, (void *)&parity};
    if (status == MD_OK && md_bundle_one_parity(&b->datasets[i]))
      status = md_agree(context, md_h5_put_attribute(context, path, dataset, &which));
    if (dataset >= 0) H5Dclose(dataset);
  }
  if (status != MD_OK) return status;
  const hid_t object = H5Oopen(file, b->object, H5P_DEFAULT);
  status = put_attributes(context, path, object, b->geometry, b->attributes, b->attribute_count);
  H5Oclose(object);
  return md_agree(context, status);
}

static md_status save_bundle(md_context *context, const char *path, bool keep_old,
                             const md_bundle *b) {
  md_new_file target;
  hid_t file = H5I_INVALID_HID;
  double bytes = 0;
  for (int i = 0; i < b->dataset_count; i++)
    for (int p = 0; p < MD_PARITIES && b->datasets[i].field[p]; p++) {
      const md_field *f = b->datasets[i].field[p];
      bytes += (double)f->geometry->volume / 2 * f->components * f->n_rhs * sizeof(double);
    }
  MD_TRY(md_new_file_begin(context, path, &target));
  target.keep_old = keep_old;
  md_status status = md_h5_create(context, target.path, (int64_t)bytes, &file);
  if (status == MD_OK) status = write_bundle(context, target.path, file, b);
  const md_status closed = md_h5_close_written(context, target.path, &file);
  return md_new_file_end(context, &target, status == MD_OK ? closed : status);
}

static md_bundle propagator_bundle(md_bundle_sites *s, md_field *solution,
                                   const md_attribute *attributes, int count) {
  *s = (md_bundle_sites){.name = "/propagator/solution", .field = {&solution[0], &solution[1]}};
  return (md_bundle){.group = "/propagator",
                     .object = s->name,
                     .datasets = s,
                     .dataset_count = 1,
                     .geometry = solution[0].geometry,
                     .attributes = attributes,
                     .attribute_count = count};
}

md_status md_propagator_write_as(md_context *context, const char *path, bool keep_old,
                                 const md_field solution[MD_PARITIES],
                                 const md_attribute *attributes, int count) {
  md_field copy[MD_PARITIES] = {solution[0], solution[1]}; /* descriptors, not the data */
  md_bundle_sites s;
  const md_bundle b = propagator_bundle(&s, copy, attributes, count);
  return save_bundle(context, path, keep_old, &b);
}

md_status md_propagator_write(md_context *context, const char *path,
                              const md_field solution[MD_PARITIES], const md_attribute *attributes,
                              int count) {
  return md_propagator_write_as(context, path, false, solution, attributes, count);
}

md_status md_propagator_read(md_context *context, const char *path, md_field solution[MD_PARITIES],
                             const md_attribute *attributes, int count) {
  md_bundle_sites s;
  const md_bundle b = propagator_bundle(&s, solution, attributes, count);
  return md_bundle_read(context, path, &b);
}

enum { CHECKPOINT_FIELDS = MD_BUNDLE_DATASETS, CHECKPOINT_NAME = 64 };

static md_status checkpoint(md_context *context, const char *path, const md_geometry *geometry,
                            const md_named_field *fields, int field_count,
                            const md_attribute *attributes, int count, bool write) {
  md_bundle_sites s[CHECKPOINT_FIELDS];
  char names[CHECKPOINT_FIELDS][CHECKPOINT_NAME];
  if (field_count > CHECKPOINT_FIELDS)
    return md_fail(context, MD_INPUT, "a checkpoint holds at most %d fields, got %d",
                   CHECKPOINT_FIELDS, field_count);
  for (int i = 0; i < field_count; i++) {
    snprintf(names[i], sizeof names[i], "/checkpoint/%s", fields[i].name);
    s[i] = (md_bundle_sites){.name = names[i], .field = {fields[i].field, NULL}};
  }
  const md_bundle b = {.group = "/checkpoint",
                       .object = "/checkpoint",
                       .datasets = s,
                       .dataset_count = field_count,
                       .geometry = geometry,
                       .attributes = attributes,
                       .attribute_count = count};
  if (md_counts(context)) return MD_OK;
  return write ? save_bundle(context, path, false, &b) : md_bundle_read(context, path, &b);
}

md_status md_checkpoint_write(md_context *context, const char *path, const md_named_field *fields,
                              int field_count, const md_attribute *attributes, int count) {
  return checkpoint(context, path, fields[0].field->geometry, fields, field_count, attributes,
                    count, true);
}

md_status md_checkpoint_read(md_context *context, const char *path, const md_named_field *fields,
                             int field_count, const md_attribute *attributes, int count) {
  return checkpoint(context, path, fields[0].field->geometry, fields, field_count, attributes,
                    count, false);
}

md_status md_checkpoint_read_attributes(md_context *context, const char *path,
                                        const md_geometry *geometry, const md_attribute *attributes,
                                        int count) {
  return checkpoint(context, path, geometry, NULL, 0, attributes, count, false);
}
