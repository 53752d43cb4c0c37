#include "io/propagator.h"
#include "base/memory_need.h"
#include "io/bundle.h"

#include <stdio.h>
#include <string.h>

static md_status check_own_attributes(md_context *context, md_child *child, const md_bundle *b,
                                      bool dataset) {
  int64_t dims[MD_DIMS], version = 0;
  const md_attribute of_version = {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version};
  const md_attribute of_dims = {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims};
  const char *path = child->path;
  const int *g = b->geometry->global;
  bool found = false;
  MD_TRY(md_child_find(context, child, b->object, dataset, &of_version, &found));
  if (!found || version != MD_BUNDLE_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", path,
                   MD_BUNDLE_VERSION, (long long)version);
  MD_TRY(md_child_find(context, child, b->object, dataset, &of_dims, &found));
  if (!found) return md_fail(context, MD_INPUT, "%s: attribute dims is missing", path);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != g[d])
      return md_fail(context, MD_INPUT,
                     "%s is of a %lldx%lldx%lldx%lld lattice, needed is one of %dx%dx%dx%d", path,
                     (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3],
                     g[0], g[1], g[2], g[3]);
  return MD_OK;
}

static md_status open_dataset(md_context *context, md_child *child, const md_bundle_sites *s,
                              bool *unguarded) {
  const md_h5_shape shape = md_bundle_shape(s);
  int64_t parity = -1;
  bool found = true;
  MD_TRY(md_child_open_sites(context, child, s->name, s->field[0]->geometry->global, &shape));
  *unguarded = *unguarded || child->number > 0;
  if (!md_bundle_one_parity(s)) return MD_OK;
  MD_TRY(md_child_find(context, child, s->name, true,
                       &(md_attribute){"parity", MD_ATTRIBUTE_INTEGER, 1, &parity}, &found));
  if (!found || parity != s->field[0]->parity)
    return md_fail(context, MD_INPUT, "%s: dataset %s must be of parity %d, got %lld", child->path,
                   s->name, s->field[0]->parity, (long long)parity);
  return MD_OK;
}

/* Local. */
static md_status read_all(md_context *context, md_child *child, const md_bundle *b) {
  const bool dataset = strcmp(b->object, b->group) != 0;
  bool unguarded = false;
  MD_TRY(check_own_attributes(context, child, b, dataset));
  MD_TRY(
      md_child_attributes(context, child, b->object, dataset, b->attributes, b->attribute_count));
  for (int i = 0; i < b->dataset_count; i++)
    MD_TRY(open_dataset(context, child, &b->datasets[i], &unguarded));
  if (unguarded) md_h5_warn_of_sums(context, child->path);
  for (int i = 0; i < b->dataset_count; i++)
    for (int r = 0; r < b->datasets[i].field[0]->n_rhs; r++)
      MD_TRY(md_bundle_read_lead(context, child, i, &b->datasets[i], r, NULL));
  return MD_OK;
}

static md_status read_bundle(md_context *context, const char *path, const md_bundle *b) {
  md_child child;
  size_t most = md_attributes_most(b->attributes, b->attribute_count, MD_DIMS * sizeof(int64_t));
  for (int i = 0; i < b->dataset_count; i++) {
    const size_t bytes = md_bundle_slab_bytes(&b->datasets[i]);
    most = bytes > most ? bytes : most;
  }
  md_status status = md_child_start(context, path, most, &child);
  if (status == MD_OK) status = read_all(context, &child, b);
  md_child_stop(&child);
  return md_agree(context, status);
}

static md_bundle propagator_bundle(md_bundle_sites *s, md_field *solution,
                                   const md_attribute *attributes, int count) {
  *s = (md_bundle_sites){.name = "/propagator/solution", .field = {&solution[0], &solution[1]}};
  return (md_bundle){"/propagator", s->name, s, 1, solution[0].geometry, attributes, count, false};
}

md_status md_propagator_write(md_context *context, const char *path, bool keep_old,
                              const md_field solution[MD_PARITIES], const md_attribute *attributes,
                              int count) {
  md_field copy[MD_PARITIES] = {solution[0], solution[1]}; /* descriptors, not the data */
  md_bundle_sites s;
  md_bundle b = propagator_bundle(&s, copy, attributes, count);
  b.keep_old = keep_old;
  return md_bundle_write(context, path, &b);
}

md_status md_propagator_read(md_context *context, const char *path, md_field solution[MD_PARITIES],
                             const md_attribute *attributes, int count) {
  md_bundle_sites s;
  const md_bundle b = propagator_bundle(&s, solution, attributes, count);
  return read_bundle(context, path, &b);
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
  const char *group = "/checkpoint";
  const md_bundle b = {group, group, s, field_count, geometry, attributes, count, false};
  if (md_counts(context)) return MD_OK;
  return write ? md_bundle_write(context, path, &b) : read_bundle(context, path, &b);
}

md_status md_checkpoint_write(md_context *context, const char *path, const md_named_field *fields,
                              int field_count, const md_attribute *attributes, int count) {
  return checkpoint(context, path, fields[0].field->geometry, fields, field_count, attributes,
                    count, true);
}

md_status md_checkpoint_read(md_context *context, const char *path, const md_geometry *geometry,
                             const md_named_field *fields, int field_count,
                             const md_attribute *attributes, int count) {
  return checkpoint(context, path, geometry, fields, field_count, attributes, count, false);
}
