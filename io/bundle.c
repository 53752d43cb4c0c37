#include "io/bundle.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "io/propagator.h"
#include "io/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 16 << 20, COLOURS = MD_FERMION_REALS / 2, SPINS = 4 };

/* Reals of a site, and its bytes in double: those of the fields. */
static int reals_of(const md_bundle_sites *s) {
  return s->field[0]->components;
}
static int site_bytes_of(const md_bundle_sites *s) {
  return reals_of(s) * (int)sizeof(double);
}

md_h5_shape md_bundle_shape(const md_bundle_sites *s) {
  md_h5_shape shape = {.lead = s->mode_count ? s->mode_count : s->field[0]->n_rhs,
                       .one_parity = md_bundle_one_parity(s),
                       .inner = {COLOURS},
                       .real_bytes = 8,
                       .or_single = !s->mode_count && !md_bundle_one_parity(s)};
  const int spinors = reals_of(s) / (MD_FERMION_REALS * SPINS); /* slices of a fifth dimension */
  if (spinors == 1) memcpy(shape.inner, (int[]){SPINS, COLOURS, 0}, sizeof shape.inner);
  if (spinors > 1) memcpy(shape.inner, (int[]){spinors, SPINS, COLOURS}, sizeof shape.inner);
  if (s->mode_count) shape.real_bytes = (int)md_precision_bytes(s->store);
  if (s->mode_count && s->store == MD_FIXED)
    shape = (md_h5_shape){.lead = s->mode_count, .one_parity = true, .fixed8 = true};
  return shape;
}

static md_slab_plan plan_of(const md_bundle_sites *s) {
  return md_slab_plan_make(s->field[0]->geometry, site_bytes_of(s), SLAB_BYTES, 1);
}

size_t md_bundle_slab_bytes(const md_bundle_sites *s) {
  const md_slab_plan plan = plan_of(s);
  return md_slab_bytes(s->field[0]->geometry, &plan, site_bytes_of(s));
}

/* Copies right-hand side r of a slab between raw (sites in file order) and the fields; false when
 * a value that was stored is not finite. Local, threaded. */
static bool copy_slab(const md_bundle_sites *s, const md_slab *slab, int r, double *raw,
                      bool store) {
  const md_geometry *geometry = s->field[0]->geometry;
  const int *local = geometry->local;
  const int length = md_bundle_one_parity(s) ? local[0] / 2 : local[0];
  const int64_t rows = (int64_t)slab->nt * slab->nz * local[1];
  bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
  for (int64_t i = 0; i < rows; i++) {
    const int x[MD_DIMS] = {0, (int)(i % local[1]), (int)(i / local[1] % slab->nz) + slab->z,
                            (int)(i / local[1] / slab->nz) + slab->t};
    const int parity = md_parity(x);
    const int64_t first = md_site(geometry, x);
    for (int k = 0; k < length; k++) {
      const md_field *f = s->field[md_bundle_one_parity(s) ? 0 : (parity + k) & 1];
      const int64_t site = first + (md_bundle_one_parity(s) ? k : k / 2);
      double *at = raw + (i * length + k) * reals_of(s);
      if (f->precision != MD_DOUBLE) {
        md_field_get(f, site, r, at);
        continue;
      }
      for (int c = 0; c < f->components; c++) {
        double *value = (double *)f->data + md_field_at(f, site, c, r);
        if (store) {
          *value = at[c];
          finite = finite && isfinite(at[c]);
        } else
          at[c] = *value;
      }
    }
  }
  return finite;
}

/* A site of fixed8 in memory, see fixed8_type of io/hdf5_file.c; its numbers are steps * scale *
 * that of the file.
 */
typedef struct fixed8 {
  uint16_t scale; /* binary16 */
  int8_t steps[2][COLOURS];
} fixed8;

/* The smallest binary16 that is no less than a number >= 0; positive ones lie in the order of their
 * bits. */
static uint16_t half_above(float number) {
  const uint16_t nearest = md_half_of_float(number);
  return md_float_of_half(nearest) < number ? (uint16_t)(nearest + 1) : nearest;
}

static fixed8 pack(const double *site, double scale) {
  fixed8 packed = {0};
  double largest = 0.0;
  for (int c = 0; c < MD_FERMION_REALS; c++) largest = fmax(largest, fabs(site[c]));
  packed.scale = half_above((float)(largest / (MD_FIXED8_STEPS * scale)));
  const double step = scale * (double)md_float_of_half(packed.scale);
  for (int c = 0; c < MD_FERMION_REALS && step > 0.0; c++)
    packed.steps[c % 2][c / 2] = (int8_t)lrint(site[c] / step);
  return packed;
}

/* `sites` times six doubles, (re, im) of each colour, to as many fixed8 in place, and back. */
static void fixed8_pack(void *raw, int64_t sites, double scale) {
  unsigned char *bytes = raw;
  for (int64_t i = 0; i < sites; i++) {
    double site[MD_FERMION_REALS];
    memcpy(site, bytes + (size_t)i * sizeof site, sizeof site);
    const fixed8 packed = pack(site, scale);
    memcpy(bytes + (size_t)i * sizeof packed, &packed, sizeof packed);
  }
}

static void fixed8_unpack(void *raw, int64_t sites, double scale) {
  unsigned char *bytes = raw;
  for (int64_t i = sites - 1; i >= 0; i--) {
    fixed8 packed;
    double site[MD_FERMION_REALS];
    memcpy(&packed, bytes + (size_t)i * sizeof packed, sizeof packed);
    const double step = scale * (double)md_float_of_half(packed.scale);
    for (int c = 0; c < MD_FERMION_REALS; c++) site[c] = step * packed.steps[c % 2][c / 2];
    memcpy(bytes + (size_t)i * sizeof site, site, sizeof site);
  }
}

/* The numbers of a slab in the stored precision, in place. */
static void narrow(void *raw, int64_t count, md_precision store, double scale) {
  const double *wide = raw;
  unsigned char *to = raw;
  const float inverse = (float)(1.0 / scale);
  for (int64_t i = 0; store == MD_SINGLE && i < count; i++) {
    const float value = (float)wide[i];
    memcpy(to + i * (int64_t)sizeof value, &value, sizeof value);
  }
  for (int64_t i = 0; store == MD_HALF && i < count; i++) {
    const uint16_t value = md_half_of_float((float)wide[i] * inverse);
    memcpy(to + i * (int64_t)sizeof value, &value, sizeof value);
  }
  if (store == MD_FIXED) fixed8_pack(raw, count / MD_FERMION_REALS, scale);
}

/* The numbers of a slab to double, in place. */
static void widen(void *raw, int64_t count, md_precision store, double scale) {
  const unsigned char *from = raw;
  double *wide = raw;
  for (int64_t i = count - 1; store == MD_SINGLE && i >= 0; i--) {
    float value;
    memcpy(&value, from + i * (int64_t)sizeof value, sizeof value);
    wide[i] = (double)value;
  }
  for (int64_t i = count - 1; store == MD_HALF && i >= 0; i--) {
    uint16_t value;
    memcpy(&value, from + i * (int64_t)sizeof value, sizeof value);
    wide[i] = scale * (double)md_float_of_half(value);
  }
  if (store == MD_FIXED) fixed8_unpack(raw, count / MD_FERMION_REALS, scale);
}

static md_status write_sites(const md_h5_file *file, hid_t dataset, const md_bundle_sites *s) {
  md_context *context = file->context;
  const md_geometry *geometry = s->field[0]->geometry;
  const md_h5_shape shape = md_bundle_shape(s);
  const md_slab_plan plan = plan_of(s);
  void *raw = NULL;
  md_status status =
      md_agree(context, md_allocate(context, md_bundle_slab_bytes(s), "output buffer", &raw));
  for (int r = 0; r < shape.lead && status == MD_OK; r++) {
    if (s->modes)
      status = md_agree(context, md_field_convert(context, s->field[0], &s->modes->vectors[r]));
    for (int i = 0; i < plan.count && status == MD_OK; i++) {
      const md_slab slab = md_slab_at(geometry, &plan, i);
      copy_slab(s, &slab, s->modes ? 0 : r, raw, false);
      if (s->modes)
        narrow(raw, md_slab_sites(geometry, &slab) * reals_of(s) / 2, s->store, s->scale);
      status = md_agree(context, md_h5_write_slab(file, dataset, geometry, &shape, r, &slab, raw));
    }
  }
  free(raw);
  return status;
}

enum { AXES_BYTES = 48 };
/* A site of fixed8 is one element with its colours inside. */
static const char *axes_of(const md_bundle_sites *s, char axes[AXES_BYTES]) {
  const int spinors = reals_of(s) / (MD_FERMION_REALS * SPINS);
  snprintf(axes, AXES_BYTES, "%s,t,z,y,%s%s%s%s", s->mode_count ? "mode" : "rhs",
           md_bundle_one_parity(s) ? "x/2" : "x", spinors > 1 ? ",slice" : "",
           spinors > 0 ? ",spin" : "", md_bundle_shape(s).fixed8 ? "" : ",colour");
  return axes;
}

static md_status write_dataset(const md_h5_file *file, const md_geometry *geometry,
                               const md_bundle_sites *s) {
  const md_h5_shape shape = md_bundle_shape(s);
  int64_t parity = s->field[0]->parity;
  const md_attribute which = {"parity", MD_ATTRIBUTE_INTEGER, 1, &parity};
  hid_t dataset = H5I_INVALID_HID;
  char axes[AXES_BYTES];
  md_status status = md_agree(file->context, md_h5_create_sites(file, s->name, axes_of(s, axes),
                                                                geometry, &shape, &dataset));
  if (status == MD_OK) status = write_sites(file, dataset, s);
  if (status == MD_OK && md_bundle_one_parity(s) && !s->modes)
    status = md_agree(file->context, md_h5_put_attributes(file, dataset, &which, 1));
  MD_H5_CLOSE(dataset);
  return status;
}

static md_status write_group(const md_h5_file *file, const md_bundle *b) {
  int64_t dims[MD_DIMS], version = MD_BUNDLE_VERSION;
  for (int d = 0; d < MD_DIMS; d++) dims[d] = b->geometry->global[d];
  const md_attribute own[] = {{"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
                              {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version}};
  MD_TRY(md_agree(file->context, md_h5_group(file, b->group)));
  for (int i = 0; i < b->dataset_count; i++)
    MD_TRY(write_dataset(file, b->geometry, &b->datasets[i]));
  const hid_t object = H5Oopen(file->id, b->object, H5P_DEFAULT);
  md_status status = md_h5_put_attributes(file, object, own, 2);
  if (status == MD_OK)
    status = md_h5_put_attributes(file, object, b->attributes, b->attribute_count);
  MD_H5_CLOSE(object);
  return md_agree(file->context, status);
}

md_status md_bundle_write(md_context *context, const char *path, const md_bundle *b) {
  md_new_file target;
  double bytes = 0;
  for (int i = 0; i < b->dataset_count; i++) {
    const md_h5_shape shape = md_bundle_shape(&b->datasets[i]);
    bytes += (double)b->geometry->volume / (shape.one_parity ? 2 : 1) *
             (double)md_h5_site_bytes(&shape) * shape.lead;
  }
  MD_TRY(md_new_file_begin(context, path, &target));
  target.keep_old = b->keep_old;
  md_h5_file file = {.context = context, .path = target.path};
  md_status status = md_h5_create(&file, (int64_t)bytes);
  if (status == MD_OK) status = write_group(&file, b);
  return md_new_file_end(context, &target, md_h5_close_written(&file, status));
}

md_status md_bundle_read_lead(md_context *context, md_child *child, int number,
                              const md_bundle_sites *s, int lead, double *norm2) {
  const md_geometry *g = s->field[0]->geometry;
  const md_slab_plan plan = plan_of(s);
  double *data = child->shared;
  for (int i = 0; i < plan.count; i++) {
    const md_slab slab = md_slab_at(g, &plan, i);
    MD_TRY(md_child_read_slab(context, child, number, g, lead, &slab));
    if (child->number > 0)
      return md_fail(context, MD_INPUT, "%s: dataset %s is damaged, its Fletcher32 checksums fail",
                     child->path, s->name);
    if (s->mode_count) {
      const int64_t reals = md_slab_sites(g, &slab) * reals_of(s) / 2;
      widen(data, reals, s->store, s->scale);
      for (int64_t k = 0; k < reals; k++) *norm2 += data[k] * data[k];
    }
    if (!copy_slab(s, &slab, s->mode_count ? 0 : lead, data, true))
      return md_fail(context, MD_INPUT, "%s: dataset %s %s", child->path, s->name,
                     s->mode_count ? "must hold finite numbers"
                                   : "has values that are NaN or infinite");
  }
  return MD_OK;
}

/* Propagators and checkpoints, read and written. */

/* The extents of the lattice: attribute dims, which must be those of a propagator's dataset. Files
 * of others than miniDirac may have the dataset alone. */
static md_status find_dims(md_context *context, md_child *child, const md_bundle *b, bool dataset,
                           int64_t dims[MD_DIMS]) {
  const md_attribute of_dims = {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims};
  md_child_request request = {.what = MD_CHILD_EXTENTS};
  md_h5_found there;
  bool found = false;
  MD_TRY(md_child_find(context, child, b->object, dataset, &of_dims, &found));
  if (!dataset && !found)
    return md_fail(context, MD_INPUT, "%s: attribute dims is missing", child->path);
  if (!dataset) return MD_OK;
  snprintf(request.name, sizeof request.name, "%s", b->object);
  MD_TRY(md_child_ask(context, child, &request));
  memcpy(&there, child->shared, sizeof there);
  for (int d = 0; d < MD_DIMS; d++) {
    const int64_t extent = there.rank > MD_DIMS ? there.extent[MD_DIMS - d] : 0;
    if (found && dims[d] != extent)
      return md_fail(context, MD_INPUT, "%s: attribute dims must be the extents of %s", child->path,
                     b->object);
    dims[d] = extent;
  }
  return MD_OK;
}

static md_status check_own_attributes(md_context *context, md_child *child, const md_bundle *b,
                                      bool dataset) {
  int64_t dims[MD_DIMS], version = 0;
  const md_attribute of_version = {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version};
  const char *path = child->path;
  const int *g = b->geometry->global;
  bool found = false;
  MD_TRY(md_child_find(context, child, b->object, dataset, &of_version, &found));
  if (!dataset && !found)
    return md_fail(context, MD_INPUT, "%s: attribute format_version is missing", path);
  if (found && version != MD_BUNDLE_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", path,
                   MD_BUNDLE_VERSION, (long long)version);
  MD_TRY(find_dims(context, child, b, dataset, dims));
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
  size_t most = md_attributes_most(b->attributes, b->attribute_count, sizeof(md_h5_found));
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

static md_status write_propagator(md_context *context, const char *path, bool keep_old,
                                  const md_field solution[MD_PARITIES],
                                  const md_attribute *attributes, int count) {
  md_field copy[MD_PARITIES] = {solution[0], solution[1]}; /* descriptors, not the data */
  md_bundle_sites s;
  md_bundle b = propagator_bundle(&s, copy, attributes, count);
  b.keep_old = keep_old;
  return md_bundle_write(context, path, &b);
}

md_status md_solution_write(md_context *context, const char *path, const md_lattice_format *format,
                            md_precision precision, bool keep_old,
                            const md_field solution[MD_PARITIES], const md_field *source,
                            const md_attribute *attributes, int count) {
  if (!format->compose)
    return write_propagator(context, path, keep_old, solution, attributes, count);
  const md_vectors_output output = {format, precision, keep_old,   solution,
                                    source, NULL,      attributes, count};
  return md_vectors_write(context, path, &output);
}

/* From a file of another format. */
static md_status read_vectors(md_context *context, const char *path, md_field *solution,
                              const md_attribute *attributes, int count) {
  md_lattice_info info;
  md_status status = md_lattice_describe(context, path, &info);
  if (status == MD_OK && md_vectors_are_modes(&info))
    status = md_fail(context, MD_INPUT,
                     "%s holds modes of -Deo Doe, not solutions; give a file of solutions", path);
  const int there = status == MD_OK ? md_vectors_count(&info, false) : 0;
  if (status == MD_OK && there != solution->n_rhs)
    status = md_fail(context, MD_INPUT, "%s: %d right-hand sides are needed, the file has %d", path,
                     solution->n_rhs, there);
  if (status == MD_OK && solution->components != MD_FERMION_REALS)
    status = md_fail(context, MD_INPUT, "%s holds colour vectors, needed are %d reals a site", path,
                     solution->components);
  for (int i = 0; i < count && status == MD_OK; i++)
    if (!md_vectors_attribute(&info, &attributes[i]))
      status = md_fail(context, MD_INPUT,
                       "%s: attribute %s is missing; give the solution as hdf5 or scidac, whose "
                       "files say it",
                       path, attributes[i].name);
  if (status == MD_OK) status = md_vectors_read(context, path, &info, false, solution);
  md_lattice_info_destroy(&info);
  return status;
}

md_status md_propagator_read(md_context *context, const char *path, md_field solution[MD_PARITIES],
                             const md_attribute *attributes, int count) {
  if (md_vectors_recognised(context, path))
    return read_vectors(context, path, solution, attributes, count);
  md_bundle_sites s;
  const md_bundle b = propagator_bundle(&s, solution, attributes, count);
  return read_bundle(context, path, &b);
}

enum { CHECKPOINT_NAME = 64 };
_Static_assert((int)MD_CHECKPOINT_FIELDS <= (int)MD_BUNDLE_DATASETS, "a file holds every state");

static md_status checkpoint(md_context *context, const char *path, const md_geometry *geometry,
                            const md_named_field *fields, int field_count,
                            const md_attribute *attributes, int count, bool write) {
  md_bundle_sites s[MD_CHECKPOINT_FIELDS];
  char names[MD_CHECKPOINT_FIELDS][CHECKPOINT_NAME];
  if (field_count > MD_CHECKPOINT_FIELDS)
    return md_fail(context, MD_INPUT, "a checkpoint holds at most %d fields, got %d",
                   MD_CHECKPOINT_FIELDS, field_count);
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
