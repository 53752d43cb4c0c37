#include "base/file.h"
#include "base/memory.h"
#include "io/modes_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double md_modes_scale(const int dims[MD_DIMS], md_precision store) {
  double unknowns = 1.5;
  for (int d = 0; d < MD_DIMS; d++) unknowns *= dims[d];
  return store == MD_HALF || store == MD_FIXED ? ldexp(1.0, -(int)fmin(0.5 * log2(unknowns), 15.0))
                                               : 1.0;
}

md_precision md_modes_store_of(const char *word) {
  return strcmp(word, "fixed8") == 0 ? MD_FIXED : (md_precision)md_precision_of(word);
}
const char *md_modes_store_name(md_precision store) {
  return store == MD_FIXED ? "fixed8" : md_precision_name(store);
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
  if (store == MD_FIXED) md_fixed8_pack(raw, count / MD_FERMION_REALS, scale);
}

typedef struct writer {
  const char *path;
  const md_modes *modes;
  const md_modes_info *info;
  md_h5_shape shape;
  hid_t dataset;
  md_field host; /* one vector in double */
} writer;

static md_status write_vector(md_context *context, writer *w, int mode, void *raw) {
  const md_geometry *g = w->host.geometry;
  const md_bundle_sites sites = {.field = {&w->host}};
  size_t bytes;
  const md_slab_plan plan = md_bundle_plan(&sites, &bytes);
  MD_TRY(md_agree(context, md_field_convert(context, &w->host, &w->modes->vectors[mode])));
  for (int i = 0; i < plan.count; i++) {
    const md_slab slab = md_slab_at(g, &plan, i);
    md_bundle_copy_slab(&sites, &slab, 0, raw, false);
    narrow(raw, md_slab_sites(g, &slab) / MD_PARITIES * MD_FERMION_REALS, w->info->store,
           md_modes_scale(g->global, w->info->store));
    MD_TRY(md_agree(
        context, md_h5_write_slab(context, w->path, w->dataset, g, &w->shape, mode, &slab, raw)));
  }
  return MD_OK;
}

static md_status write_vectors(md_context *context, writer *w) {
  const md_bundle_sites sites = {.field = {&w->host}};
  size_t bytes;
  void *raw = NULL;
  md_bundle_plan(&sites, &bytes);
  md_status status = md_agree(context, md_allocate(context, bytes, "output buffer", &raw));
  for (int i = 0; i < w->modes->count && status == MD_OK; i++)
    status = write_vector(context, w, i, raw);
  free(raw);
  return status;
}

static md_status write_attributes(md_context *context, const writer *w, hid_t file) {
  const md_modes_info *info = w->info;
  const int count = w->modes->count;
  int64_t dims[MD_DIMS], version = MD_BUNDLE_VERSION, converged = info->converged, independent = 1;
  double tolerance = info->tolerance, scale = md_modes_scale(w->host.geometry->global, info->store);
  for (int d = 0; d < MD_DIMS; d++) dims[d] = w->host.geometry->global[d];
  const md_attribute attributes[] = {
      {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
      {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      {"lattice_checksum", MD_ATTRIBUTE_TEXT, 0, (char *)info->label.lattice_checksum},
      {"action", MD_ATTRIBUTE_TEXT, 0, (char *)info->label.action},
      {"boundary", MD_ATTRIBUTE_TEXT, 0, (char *)info->label.boundary},
      {"mass_independent", MD_ATTRIBUTE_INTEGER, 1, &independent},
      {"converged", MD_ATTRIBUTE_INTEGER, 1, &converged},
      {"tolerance", MD_ATTRIBUTE_REAL, 1, &tolerance},
      {"scale", MD_ATTRIBUTE_REAL, 1, &scale},
      {"eigenvalues", MD_ATTRIBUTE_REAL, count, w->modes->values},
      {"residuals", MD_ATTRIBUTE_REAL, count, w->modes->residuals}};
  const hid_t group = H5Oopen(file, MD_MODES_GROUP, H5P_DEFAULT);
  md_status status = MD_OK;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes && status == MD_OK; i++)
    status = md_h5_put_attribute(context, w->path, group, &attributes[i]);
  H5Oclose(group);
  return status;
}

static md_status write_file(md_context *context, writer *w, hid_t file) {
  md_status status = md_h5_group(context, w->path, file, MD_MODES_GROUP);
  if (status == MD_OK)
    status = md_h5_create_sites(context, w->path, file, MD_MODES_VECTORS, w->host.geometry,
                                &w->shape, &w->dataset);
  status = md_agree(context, status);
  if (status != MD_OK) return status;
  status = write_vectors(context, w);
  if (status == MD_OK) status = md_agree(context, write_attributes(context, w, file));
  H5Dclose(w->dataset);
  return status;
}

md_status md_modes_write(md_context *context, const char *path, const md_modes *modes,
                         const md_modes_info *info) {
  const md_geometry *g = modes->vectors[0].geometry;
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true};
  writer w = {.modes = modes, .info = info, .shape = md_modes_shape(modes->count, info->store)};
  const double bytes = (double)g->volume / MD_PARITIES * (double)md_h5_site_bytes(&w.shape);
  md_new_file target;
  hid_t file = H5I_INVALID_HID;
  MD_TRY(md_agree(context, md_field_create(context, g, &host, MD_EVEN, &w.host)));
  md_status status = md_new_file_begin(context, path, &target);
  if (status == MD_OK) {
    target.keep_old = info->keep_old;
    w.path = target.path;
    status = md_h5_create(context, w.path, (int64_t)(bytes * modes->count), &file);
    if (status == MD_OK) status = write_file(context, &w, file);
    const md_status closed = md_h5_close_written(context, w.path, &file);
    status = md_new_file_end(context, &target, status == MD_OK ? closed : status);
  }
  md_field_destroy(&w.host);
  return status;
}
