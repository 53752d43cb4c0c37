#include "io/propagator.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/hdf5_file.h"

#include <stdio.h>
#include <stdlib.h>

enum { FORMAT_VERSION = 1, SLAB_BYTES = 16 << 20 };

/* One dataset: both parities in lexicographic order, or one parity alone. */
typedef struct sites {
  const char *name;
  md_field *field[MD_PARITIES]; /* one parity: field[0] only */
} sites;

static bool one_parity(const sites *s) {
  return s->field[1] == NULL;
}

static md_h5_shape shape_of(const sites *s) {
  return (md_h5_shape){.lead = s->field[0]->n_rhs,
                       .one_parity = one_parity(s),
                       .inner = {s->field[0]->components / 2},
                       .real_bytes = 8};
}

/* Copies right-hand side r of a slab between raw (sites in file order) and the fields. */
static void copy_slab(const sites *s, const md_slab *slab, int r, double *raw, bool store) {
  const md_geometry *geometry = s->field[0]->geometry;
  const int *local = geometry->local, components = s->field[0]->components;
  const int length = one_parity(s) ? local[0] / 2 : local[0];
  const int64_t rows = (int64_t)slab->nt * slab->nz * local[1];
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; i++) {
    const int x[MD_DIMS] = {0, (int)(i % local[1]), (int)(i / local[1] % slab->nz) + slab->z,
                            (int)(i / local[1] / slab->nz) + slab->t};
    const int parity = md_parity(x);
    const int64_t first = md_site(geometry, x);
    for (int k = 0; k < length; k++) {
      const md_field *f = s->field[one_parity(s) ? 0 : (parity + k) & 1];
      const int64_t site = first + (one_parity(s) ? k : k / 2);
      double *at = raw + (i * length + k) * components;
      for (int c = 0; c < components; c++) {
        double *value = (double *)f->data + md_field_at(f, site, c, r);
        if (store)
          *value = at[c];
        else
          at[c] = *value;
      }
    }
  }
}

static md_status slab_buffer(md_context *context, const sites *s, md_slab_plan *plan,
                             double **raw) {
  const md_geometry *geometry = s->field[0]->geometry;
  const size_t site_bytes = (size_t)s->field[0]->components * sizeof(double);
  void *memory = NULL;
  *plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, 1);
  MD_TRY(md_allocate(context, md_slab_bytes(geometry, plan, site_bytes), "input and output buffer",
                     &memory));
  *raw = memory;
  return MD_OK;
}

static md_status write_sites(md_context *context, const char *path, hid_t dataset, const sites *s) {
  const md_h5_shape shape = shape_of(s);
  md_slab_plan plan;
  double *raw = NULL;
  md_status status = md_agree(context, slab_buffer(context, s, &plan, &raw));
  for (int r = 0; r < shape.lead && status == MD_OK; r++)
    for (int i = 0; i < plan.count && status == MD_OK; i++) {
      const md_slab slab = md_slab_at(s->field[0]->geometry, &plan, i);
      copy_slab(s, &slab, r, raw, false);
      status =
          md_h5_write_slab(context, path, dataset, s->field[0]->geometry, &shape, r, &slab, raw);
    }
  free(raw);
  return status;
}

/* Local. */
static md_status read_sites(md_context *context, const char *path, hid_t dataset, const sites *s) {
  const md_h5_shape shape = shape_of(s);
  md_slab_plan plan;
  double *raw = NULL;
  long long damaged = 0;
  md_status status = slab_buffer(context, s, &plan, &raw);
  for (int r = 0; r < shape.lead && status == MD_OK; r++)
    for (int i = 0; i < plan.count && status == MD_OK; i++) {
      const md_slab slab = md_slab_at(s->field[0]->geometry, &plan, i);
      status = md_h5_read_slab(context, path, dataset, s->field[0]->geometry, &shape, r, &slab, raw,
                               &damaged);
      if (status == MD_OK) copy_slab(s, &slab, r, raw, true);
    }
  free(raw);
  if (status == MD_OK && damaged > 0)
    return md_fail(context, MD_INPUT, "%s: dataset %s is damaged, its Fletcher32 checksums fail",
                   path, s->name);
  return status;
}

static md_status put_attributes(md_context *context, const char *path, hid_t object,
                                const md_geometry *geometry, const md_attribute *attributes,
                                int count) {
  int64_t dims[MD_DIMS], version = FORMAT_VERSION;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = geometry->global[d];
  const md_attribute own[2] = {{"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
                               {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version}};
  for (int i = 0; i < 2; i++) MD_TRY(md_h5_put_attribute(context, path, object, &own[i]));
  for (int i = 0; i < count; i++)
    MD_TRY(md_h5_put_attribute(context, path, object, &attributes[i]));
  return MD_OK;
}

static md_status get_attributes(md_context *context, const char *path, hid_t object,
                                const md_geometry *geometry, const md_attribute *attributes,
                                int count) {
  int64_t dims[MD_DIMS], version = 0;
  const int *g = geometry->global;
  if (!md_h5_get_attribute(object,
                           &(md_attribute){"format_version", MD_ATTRIBUTE_INTEGER, 1, &version}) ||
      version != FORMAT_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", path,
                   FORMAT_VERSION, (long long)version);
  if (!md_h5_get_attribute(object, &(md_attribute){"dims", MD_ATTRIBUTE_INTEGER, 4, dims}))
    return md_fail(context, MD_INPUT, "%s: attribute dims is missing", path);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != g[d])
      return md_fail(context, MD_INPUT,
                     "%s is of a %lldx%lldx%lldx%lld lattice, needed is one of %dx%dx%dx%d", path,
                     (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3],
                     g[0], g[1], g[2], g[3]);
  for (int i = 0; i < count; i++)
    if (!md_h5_get_attribute(object, &attributes[i]))
      return md_fail(context, MD_INPUT, "%s: attribute %s is missing or has another type or length",
                     path, attributes[i].name);
  return MD_OK;
}

/* A file with one group, its datasets, and attributes at `object`: the group or the dataset. */
typedef struct bundle {
  const char *group, *object;
  sites *datasets;
  int dataset_count;
  const md_attribute *attributes;
  int attribute_count;
} bundle;

static md_status write_bundle(md_context *context, const char *path, hid_t file, const bundle *b) {
  const md_geometry *geometry = b->datasets[0].field[0]->geometry;
  md_status status = md_agree(context, md_h5_group(context, path, file, b->group));
  for (int i = 0; i < b->dataset_count && status == MD_OK; i++) {
    const md_h5_shape shape = shape_of(&b->datasets[i]);
    hid_t dataset = H5I_INVALID_HID;
    status = md_agree(context, md_h5_create_sites(context, path, file, b->datasets[i].name,
                                                  geometry, &shape, &dataset));
    if (status == MD_OK) status = write_sites(context, path, dataset, &b->datasets[i]);
    const int64_t parity = b->datasets[i].field[0]->parity;
    const md_attribute which = {"parity", MD_ATTRIBUTE_INTEGER, 1, (void *)&parity};
    if (status == MD_OK && one_parity(&b->datasets[i]))
      status = md_agree(context, md_h5_put_attribute(context, path, dataset, &which));
    if (dataset >= 0) H5Dclose(dataset);
  }
  if (status != MD_OK) return status;
  const hid_t object = H5Oopen(file, b->object, H5P_DEFAULT);
  status = put_attributes(context, path, object, geometry, b->attributes, b->attribute_count);
  H5Oclose(object);
  return md_agree(context, status);
}

static md_status save_bundle(md_context *context, const char *path, const bundle *b) {
  md_new_file target;
  hid_t file = H5I_INVALID_HID;
  double bytes = 0;
  for (int i = 0; i < b->dataset_count; i++)
    for (int p = 0; p < MD_PARITIES && b->datasets[i].field[p]; p++) {
      const md_field *f = b->datasets[i].field[p];
      bytes += (double)f->geometry->volume / 2 * f->components * f->n_rhs * sizeof(double);
    }
  MD_TRY(md_new_file_begin(context, path, &target));
  md_status status = md_h5_create(context, target.path, (int64_t)bytes, &file);
  if (status == MD_OK) status = write_bundle(context, target.path, file, b);
  const md_status closed = md_h5_close_written(context, target.path, &file);
  return md_new_file_end(context, &target, status == MD_OK ? closed : status);
}

static md_status read_dataset(md_context *context, const char *path, hid_t file, const sites *s) {
  const md_geometry *geometry = s->field[0]->geometry;
  const md_h5_shape shape = shape_of(s);
  int64_t parity = -1;
  hid_t dataset;
  md_status status = MD_OK;
  MD_TRY(md_h5_open_sites(context, path, file, s->name, geometry->global, &shape, &dataset));
  if (one_parity(s) &&
      (!md_h5_get_attribute(dataset, &(md_attribute){"parity", MD_ATTRIBUTE_INTEGER, 1, &parity}) ||
       parity != s->field[0]->parity))
    status = md_fail(context, MD_INPUT, "%s: dataset %s must be of parity %d, got %lld", path,
                     s->name, s->field[0]->parity, (long long)parity);
  if (status == MD_OK) status = read_sites(context, path, dataset, s);
  H5Dclose(dataset);
  return status;
}

/* Local. */
static md_status read_bundle(md_context *context, const char *path, const bundle *b) {
  const md_geometry *geometry = b->datasets[0].field[0]->geometry;
  hid_t file;
  MD_TRY(md_h5_open(context, path, &file));
  const hid_t object = H5Oopen(file, b->object, H5P_DEFAULT);
  md_status status = MD_OK;
  if (object < 0) {
    status = md_fail(context, MD_INPUT, "%s: there is no %s in this file", path, b->object);
  } else {
    status = get_attributes(context, path, object, geometry, b->attributes, b->attribute_count);
    H5Oclose(object);
  }
  for (int i = 0; i < b->dataset_count && status == MD_OK; i++)
    status = read_dataset(context, path, file, &b->datasets[i]);
  H5Fclose(file);
  return status;
}

static bundle propagator_bundle(sites *s, md_field *solution, const md_attribute *attributes,
                                int count) {
  *s = (sites){.name = "/propagator/solution", .field = {&solution[0], &solution[1]}};
  return (bundle){.group = "/propagator",
                  .object = s->name,
                  .datasets = s,
                  .dataset_count = 1,
                  .attributes = attributes,
                  .attribute_count = count};
}

md_status md_propagator_write(md_context *context, const char *path,
                              const md_field solution[MD_PARITIES], const md_attribute *attributes,
                              int count) {
  md_field copy[MD_PARITIES] = {solution[0], solution[1]}; /* descriptors, not the data */
  sites s;
  const bundle b = propagator_bundle(&s, copy, attributes, count);
  return save_bundle(context, path, &b);
}

md_status md_propagator_read(md_context *context, const char *path, md_field solution[MD_PARITIES],
                             const md_attribute *attributes, int count) {
  sites s;
  const bundle b = propagator_bundle(&s, solution, attributes, count);
  return md_agree(context, read_bundle(context, path, &b));
}

enum { CHECKPOINT_FIELDS = 16, CHECKPOINT_NAME = 64 };

static md_status checkpoint(md_context *context, const char *path, const md_named_field *fields,
                            int field_count, const md_attribute *attributes, int count,
                            bool write) {
  sites s[CHECKPOINT_FIELDS];
  char names[CHECKPOINT_FIELDS][CHECKPOINT_NAME];
  if (field_count < 1 || field_count > CHECKPOINT_FIELDS)
    return md_fail(context, MD_INPUT, "a checkpoint holds 1 to %d fields, got %d",
                   CHECKPOINT_FIELDS, field_count);
  for (int i = 0; i < field_count; i++) {
    snprintf(names[i], sizeof names[i], "/checkpoint/%s", fields[i].name);
    s[i] = (sites){.name = names[i], .field = {fields[i].field, NULL}};
  }
  const bundle b = {.group = "/checkpoint",
                    .object = "/checkpoint",
                    .datasets = s,
                    .dataset_count = field_count,
                    .attributes = attributes,
                    .attribute_count = count};
  return write ? save_bundle(context, path, &b) : md_agree(context, read_bundle(context, path, &b));
}

md_status md_checkpoint_write(md_context *context, const char *path, const md_named_field *fields,
                              int field_count, const md_attribute *attributes, int count) {
  return checkpoint(context, path, fields, field_count, attributes, count, true);
}

md_status md_checkpoint_read(md_context *context, const char *path, const md_named_field *fields,
                             int field_count, const md_attribute *attributes, int count) {
  return checkpoint(context, path, fields, field_count, attributes, count, false);
}
