#include "base/memory_need.h"
#include "io/child.h"
#include "io/modes_parts.h"
#include "lattice/fields/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  const char *path;
  const md_geometry *geometry;       /* NULL: the file is only described */
  md_modes_info info;                /* as the file has it */
  double scale, *values, *residuals; /* info.count of them, for the caller to free */
  md_child child;
  md_h5_shape shape; /* of the dataset */
  bool unguarded;    /* without checksums */
  md_field host;     /* one vector in double */
} reader;

/* Extents, count and precision of the dataset; false when it cannot be one of modes. */
static bool take_shape(const md_child_extents *e, md_modes_info *info) {
  const int rank = e->rank;
  bool fits = rank == MD_DIMS + 1 || rank == MD_DIMS + 2;
  for (int d = 0; d < MD_DIMS && fits; d++) {
    const long long extent = e->extent[1 + MD_T - d];
    fits = extent > 0 && extent < 1 << 15;
    info->dims[d] = fits ? (int)extent * (d == MD_X ? 2 : 1) : 0;
  }
  fits = fits && e->extent[0] > 0 && e->extent[0] <= MD_MODES_MOST;
  info->count = fits ? (int)e->extent[0] : 0;
  info->store = e->bytes == 16 ? MD_DOUBLE : e->bytes == 8 ? MD_SINGLE : MD_HALF;
  if (rank == MD_DIMS + 1) info->store = MD_FIXED;
  return fits && (e->bytes == 16 || e->bytes == 8 || (e->bytes == 4 && info->store == MD_HALF));
}

static md_status get_attributes(md_context *context, reader *r) {
  md_modes_info *info = &r->info;
  int64_t dims[MD_DIMS], version, converged;
  const md_attribute attributes[] = {
      {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
      {"lattice_checksum", MD_ATTRIBUTE_TEXT, MD_MODES_TEXT, info->label.lattice_checksum},
      {"action", MD_ATTRIBUTE_TEXT, MD_MODES_TEXT, info->label.action},
      {"boundary", MD_ATTRIBUTE_TEXT, MD_MODES_TEXT, info->label.boundary},
      {"converged", MD_ATTRIBUTE_INTEGER, 1, &converged},
      {"tolerance", MD_ATTRIBUTE_REAL, 1, &info->tolerance},
      {"scale", MD_ATTRIBUTE_REAL, 1, &r->scale},
      {"eigenvalues", MD_ATTRIBUTE_REAL, info->count, r->values},
      {"residuals", MD_ATTRIBUTE_REAL, info->count, r->residuals}};
  MD_TRY(md_child_attributes(context, &r->child, attributes,
                             (int)(sizeof attributes / sizeof *attributes)));
  if (version != MD_BUNDLE_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", r->path,
                   MD_BUNDLE_VERSION, (long long)version);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != info->dims[d])
      return md_fail(context, MD_INPUT, "%s: attribute dims must be the extents of %s", r->path,
                     MD_MODES_VECTORS);
  if (converged < 0 || converged > info->count || !(r->scale > 0.0 && r->scale <= 1.0))
    return md_fail(context, MD_INPUT, "%s: attributes converged or scale have no sensible value",
                   r->path);
  info->converged = (int)converged;
  return MD_OK;
}

static md_status describe(md_context *context, reader *r) {
  const md_child_request request = {.what = MD_CHILD_EXTENTS, .name = MD_MODES_VECTORS};
  MD_TRY(md_child_ask(context, &r->child, &request));
  if (!take_shape(r->child.shared, &r->info))
    return md_fail(
        context, MD_INPUT,
        "%s: dataset %s must have the shape [mode][t][z][y][x/2][3] of compound {r, i}, or "
        "without [3] of {scale, r[3], i[3]}, at most %d modes",
        r->path, MD_MODES_VECTORS, MD_MODES_MOST);
  const size_t bytes = (size_t)r->info.count * sizeof(double);
  r->values = malloc(bytes);
  r->residuals = malloc(bytes);
  if (!r->values || !r->residuals) return md_fail_memory(context, 2 * bytes, "eigenvalues");
  MD_TRY(md_child_open(context, &r->child, MD_MODES_GROUP, false));
  MD_TRY(get_attributes(context, r));
  r->shape = md_modes_shape(r->info.count, r->info.store);
  MD_TRY(md_child_open_sites(context, &r->child, MD_MODES_VECTORS, r->info.dims, &r->shape));
  r->unguarded = r->child.number > 0;
  return MD_OK;
}

static md_slab_plan plan_of(const reader *r, size_t *bytes) {
  const md_bundle_sites sites = {.field = {(md_field *)&r->host}};
  return md_bundle_plan(&sites, bytes);
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
  if (store == MD_FIXED) md_fixed8_unpack(raw, count / MD_FERMION_REALS, scale);
}

/* One vector, and its norm^2 here. Local. */
static md_status read_vector(md_context *context, reader *r, int mode, md_field *vector,
                             double *norm2) {
  double *data = r->child.shared;
  const md_bundle_sites sites = {.field = {&r->host}};
  size_t bytes;
  const md_slab_plan plan = plan_of(r, &bytes);
  for (int i = 0; i < plan.count; i++) {
    const md_slab slab = md_slab_at(r->geometry, &plan, i);
    const int64_t reals = md_slab_sites(r->geometry, &slab) / MD_PARITIES * MD_FERMION_REALS;
    MD_TRY(md_child_read_slab(context, &r->child, 0, r->geometry, &r->shape, mode, &slab));
    if (r->child.number > 0)
      return md_fail(context, MD_INPUT, "%s: dataset %s is damaged, its Fletcher32 checksums fail",
                     r->path, MD_MODES_VECTORS);
    widen(data, reals, r->info.store, r->scale);
    for (int64_t k = 0; k < reals; k++) *norm2 += data[k] * data[k];
    if (!md_bundle_copy_slab(&sites, &slab, 0, data, true))
      return md_fail(context, MD_INPUT, "%s: dataset %s must hold finite numbers", r->path,
                     MD_MODES_VECTORS);
  }
  return md_field_convert(context, vector, &r->host);
}

/* Eigenvalues that rise, and unit vectors; norms[mode] is this rank's part. Collective. */
static md_status check_numbers(md_context *context, const char *path, const md_modes *modes,
                               const double *norms) {
  for (int i = 0; i < modes->count; i++) {
    md_sum sum = {.limb = {0}};
    double norm2;
    const double value = modes->values[i], before = i > 0 ? modes->values[i - 1] : 0.0;
    md_sum_add(&sum, norms[i]);
    MD_TRY(md_sum_finish(context, &sum, 1, &norm2));
    if (!(fabs(norm2 - 1.0) <= 0.01))
      return md_fail(context, MD_INPUT,
                     "%s: vectors must have the norm 1, got norm^2 %g of mode %d", path, norm2, i);
    if (!(value >= before - 1e-9 && isfinite(value)))
      return md_fail(context, MD_INPUT,
                     "%s: eigenvalues must be positive and rise, got %g after %g at mode %d", path,
                     value, before, i);
  }
  return MD_OK;
}

static md_status check_label(md_context *context, const char *path, const md_modes_label *found,
                             const md_modes_label *wanted) {
  const struct {
    const char *name, *found, *wanted;
  } texts[] = {{"lattice checksum", found->lattice_checksum, wanted->lattice_checksum},
               {"action", found->action, wanted->action},
               {"boundary", found->boundary, wanted->boundary}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(texts[i].found, texts[i].wanted) != 0)
      return md_fail(context, MD_INPUT,
                     "the modes of %s must have the %s of this run, '%s', got '%s'; find its modes "
                     "with minidirac eigen",
                     path, texts[i].name, texts[i].wanted, texts[i].found);
  return MD_OK;
}

static md_status check_dims(md_context *context, const char *path, const md_modes_info *info,
                            const int *g) {
  const int *d = info->dims;
  if (memcmp(d, g, sizeof info->dims) == 0) return MD_OK;
  return md_fail(context, MD_INPUT, "%s is of a %dx%dx%dx%d lattice, needed is one of %dx%dx%dx%d",
                 path, d[0], d[1], d[2], d[3], g[0], g[1], g[2], g[3]);
}

/* Starts a child that has the vectors open; `bytes` of a slab. To be stopped. Local. */
static md_status start(md_context *context, reader *r, size_t bytes) {
  const size_t values = MD_MODES_MOST * sizeof(double);
  MD_TRY(md_child_start(context, r->path, bytes > values ? bytes : values, &r->child));
  return describe(context, r);
}

static void stop(reader *r) {
  md_child_stop(&r->child);
  free(r->values);
  free(r->residuals);
}

md_status md_modes_describe(md_context *context, const char *path, md_modes_info *info) {
  reader r = {.path = path};
  const md_status status = start(context, &r, 0);
  if (status == MD_OK) *info = r.info;
  stop(&r);
  return md_agree(context, status);
}

/* Local. */
static md_status read_vectors(md_context *context, reader *r, const md_modes_info *info,
                              md_modes *modes, double *norms) {
  if (memcmp(&r->info, info, sizeof *info) != 0)
    return md_fail(context, MD_INPUT, "%s changed while it was read", r->path);
  if (r->unguarded && !md_counts(context)) md_h5_warn_of_sums(context, r->path);
  memcpy(modes->values, r->values, (size_t)modes->count * sizeof *modes->values);
  memcpy(modes->residuals, r->residuals, (size_t)modes->count * sizeof *modes->residuals);
  for (int i = 0; i < modes->count && !md_counts(context); i++)
    MD_TRY(read_vector(context, r, i, &modes->vectors[i], &norms[i]));
  return MD_OK;
}

md_status md_modes_read(md_context *context, const char *path, const md_geometry *geometry,
                        const md_modes_label *wanted, const md_modes_info *info, int count,
                        md_space space, md_modes *modes) {
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true};
  const md_field_shape shape = {info->store, space, MD_FERMION_REALS, 1, true};
  reader r = {.path = path, .geometry = geometry, .child = {.socket = -1}};
  size_t bytes = 0;
  *modes = (md_modes){0};
  MD_TRY(check_dims(context, path, info, geometry->global));
  if (!md_counts(context)) MD_TRY(check_label(context, path, &info->label, wanted));
  double *norms = calloc((size_t)count, sizeof *norms);
  md_status status = norms ? MD_OK : md_fail_memory(context, (size_t)count * 8, "modes");
  if (status == MD_OK) status = md_field_create(context, geometry, &host, MD_EVEN, &r.host);
  if (status == MD_OK) status = md_modes_create(context, geometry, &shape, count, modes);
  if (info->store == MD_FIXED) modes->roundoff = 0.5 / MD_FIXED8_STEPS;
  if (status == MD_OK) {
    plan_of(&r, &bytes);
    status = start(context, &r, bytes);
  }
  if (status == MD_OK) status = read_vectors(context, &r, info, modes, norms);
  stop(&r);
  status = md_agree(context, status);
  if (status == MD_OK && !md_counts(context)) status = check_numbers(context, path, modes, norms);
  free(norms);
  md_field_destroy(&r.host);
  if (status != MD_OK) md_modes_destroy(modes);
  return status;
}
