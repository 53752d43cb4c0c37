#include "base/memory_need.h"
#include "io/bundle.h"
#include "io/vectors.h"
#include "lattice/fields/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char group[] = "/modes", vectors[] = "/modes/vectors";

/* One vector on the host, in double. */
static md_field_shape host_shape(int components) {
  return (md_field_shape){MD_DOUBLE, MD_HOST, components, 1, true, false};
}

/* What half and the scales of fixed8 are multiplied with on reading: about the size of a unit
 * vector's components, a power of two, so that nothing is lost. */
static double scale_of(const int dims[MD_DIMS], md_precision store) {
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

/* What every format says of modes, to be written or read. */
enum { SAID = 5 };
static void list_said(md_modes_info *info, int64_t *converged, md_attribute list[SAID]) {
  const md_attribute said[SAID] = {
      {"lattice_checksum", MD_ATTRIBUTE_TEXT, MD_MODES_TEXT, info->label.lattice_checksum},
      {"action", MD_ATTRIBUTE_TEXT, MD_MODES_TEXT, info->label.action},
      {"boundary", MD_ATTRIBUTE_TEXT, MD_MODES_TEXT, info->label.boundary},
      {"converged", MD_ATTRIBUTE_INTEGER, 1, converged},
      {"tolerance", MD_ATTRIBUTE_REAL, 1, &info->tolerance}};
  memcpy(list, said, sizeof said);
}

md_status md_modes_write(md_context *context, const char *path, const md_lattice_format *format,
                         const md_modes *modes, const md_modes_info *info) {
  const md_geometry *g = modes->vectors[0].geometry;
  const md_field_shape shape = host_shape(modes->vectors[0].components);
  md_modes_info said = *info;
  int64_t converged = info->converged, independent = shape.components == MD_FERMION_REALS;
  double scale = scale_of(g->global, info->store);
  md_attribute attributes[SAID + 4] = {
      [SAID] = {"mass_independent", MD_ATTRIBUTE_INTEGER, 1, &independent},
      {"scale", MD_ATTRIBUTE_REAL, 1, &scale},
      {"eigenvalues", MD_ATTRIBUTE_REAL, modes->count, modes->values},
      {"residuals", MD_ATTRIBUTE_REAL, modes->count, modes->residuals}};
  list_said(&said, &converged, attributes);
  const md_vectors_output output = {.format = format,
                                    .precision = info->store == MD_DOUBLE ? MD_DOUBLE : MD_SINGLE,
                                    .keep_old = info->keep_old,
                                    .modes = modes,
                                    .attributes = attributes,
                                    .count = SAID};
  if (format->compose) return md_vectors_write(context, path, &output);
  md_field host;
  md_bundle_sites sites = {vectors, {&host}, modes, modes->count, info->store, scale};
  const md_bundle b = {group, group, &sites, 1, g, attributes, SAID + 4, info->keep_old};
  MD_TRY(md_agree(context, md_field_create(context, g, &shape, MD_EVEN, &host)));
  const md_status status = md_bundle_write(context, path, &b);
  md_field_destroy(&host);
  return status;
}

/* Modes of a scidac file. MD_INPUT when its vectors have no eigenvalues. Local. */
static md_status take_vectors(md_context *context, const char *path, const md_lattice_info *found,
                              md_modes_info *info) {
  int64_t converged = found->notes.run_count;
  md_attribute said[SAID];
  list_said(info, &converged, said);
  for (int i = 0; i < found->notes.run_count; i++) {
    const md_vector_run *run = &found->notes.runs[i];
    if (!run->mode || run->part || run->vectors != 1)
      return md_fail(context, MD_INPUT,
                     "%s: each record of modes must have <eigVal> and a vector on all sites", path);
  }
  for (int i = 0; i < SAID; i++)
    (void)md_vectors_attribute(found, &said[i]); /* files of others say none of it */
  memcpy(info->dims, found->header.dims, sizeof info->dims);
  info->components = MD_FERMION_REALS;
  info->count = found->notes.run_count;
  if (converged < 0 || converged > info->count)
    return md_fail(context, MD_INPUT, "%s: converged must be within 0..%d, got %lld", path,
                   info->count, (long long)converged);
  info->converged = (int)converged;
  info->store = found->header.precision;
  return info->count > 0 && info->count <= MD_MODES_MOST
             ? MD_OK
             : md_fail(context, MD_INPUT, "%s must hold 1 to %d modes, got %d", path, MD_MODES_MOST,
                       info->count);
}

typedef struct reader {
  const char *path;
  const md_geometry *geometry; /* NULL: the file is only described */
  md_modes_info info;          /* as the file has it */
  double *values, *residuals;  /* info.count of them, for the caller to free */
  md_child child;
  md_bundle_sites sites;
  bool unguarded; /* without checksums */
  md_field host;  /* one vector in double */
} reader;

/* Reals of a site, [3], [spin][3] or [slice][spin][3] behind the extents of the lattice; 0: it is
 * none of these. */
static int components_of(const md_h5_found *e) {
  enum { SITE = MD_DIMS + 1 };
  const int inner = e->rank - SITE;
  const long long *extent = e->extent + SITE;
  if (inner < 0 || inner > 3) return 0;
  if (inner > 0 && extent[inner - 1] != MD_FERMION_REALS / 2) return 0;
  if (inner > 1 && extent[inner - 2] != 4) return 0;
  if (inner > 2 && !(extent[0] > 1 && extent[0] <= MD_MAX_COMPONENTS / (4 * MD_FERMION_REALS)))
    return 0;
  return MD_FERMION_REALS * (inner > 1 ? 4 : 1) * (inner > 2 ? (int)extent[0] : 1);
}

/* Extents, count and precision of the dataset; false when it cannot be one of modes. */
static bool take_shape(const md_h5_found *e, md_modes_info *info) {
  const int rank = e->rank;
  bool fits = (info->components = components_of(e)) > 0;
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
  md_attribute attributes[2 + SAID + 3] = {
      {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version},
      {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims},
      [2 + SAID] = {"scale", MD_ATTRIBUTE_REAL, 1, &r->sites.scale},
      {"eigenvalues", MD_ATTRIBUTE_REAL, info->count, r->values},
      {"residuals", MD_ATTRIBUTE_REAL, info->count, r->residuals}};
  list_said(info, &converged, attributes + 2);
  MD_TRY(md_child_attributes(context, &r->child, group, false, attributes,
                             sizeof attributes / sizeof *attributes));
  if (version != MD_BUNDLE_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", r->path,
                   MD_BUNDLE_VERSION, (long long)version);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != info->dims[d])
      return md_fail(context, MD_INPUT, "%s: attribute dims must be the extents of %s", r->path,
                     vectors);
  if (converged < 0 || converged > info->count || !(r->sites.scale > 0.0 && r->sites.scale <= 1.0))
    return md_fail(context, MD_INPUT, "%s: attributes converged or scale have no sensible value",
                   r->path);
  info->converged = (int)converged;
  return MD_OK;
}

static md_status describe(md_context *context, reader *r) {
  md_child_request request = {.what = MD_CHILD_EXTENTS};
  strcpy(request.name, vectors);
  MD_TRY(md_child_ask(context, &r->child, &request));
  if (!take_shape(r->child.shared, &r->info))
    return md_fail(
        context, MD_INPUT,
        "%s: dataset %s must have the shape [mode][t][z][y][x/2][3], with spin [4][3] and slices "
        "[Ls][4][3], of compound {r, i}, or without [3] of {scale, r[3], i[3]}, at most %d modes",
        r->path, vectors, MD_MODES_MOST);
  const size_t bytes = (size_t)r->info.count * sizeof(double);
  r->values = malloc(2 * bytes);
  if (!r->values) return md_fail_memory(context, 2 * bytes, "eigenvalues");
  r->residuals = r->values + r->info.count;
  MD_TRY(get_attributes(context, r));
  r->host.components = r->info.components;
  r->sites.mode_count = r->info.count;
  r->sites.store = r->info.store;
  const md_h5_shape shape = md_bundle_shape(&r->sites);
  MD_TRY(md_child_open_sites(context, &r->child, vectors, r->info.dims, &shape));
  r->unguarded = r->child.number > 0;
  return MD_OK;
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
  for (size_t i = md_counts(context); i < sizeof texts / sizeof *texts; i++) /* without links */
    if (strcmp(texts[i].found, texts[i].wanted) != 0)
      return md_fail(context, MD_INPUT,
                     "the modes of %s must have the %s of this run, '%s', got '%s'; find its modes "
                     "with minidirac eigen",
                     path, texts[i].name, texts[i].wanted, texts[i].found);
  return MD_OK;
}

/* Starts a child that has the vectors open. To be stopped. Local. */
static md_status start(md_context *context, reader *r) {
  const size_t values = MD_MODES_MOST * sizeof(double);
  r->sites = (md_bundle_sites){.name = vectors, .field = {&r->host}};
  const size_t bytes = r->geometry ? md_bundle_slab_bytes(&r->sites) : 0;
  MD_TRY(md_child_start(context, r->path, bytes > values ? bytes : values, &r->child));
  return describe(context, r);
}

static void stop(reader *r) {
  md_child_stop(&r->child);
  free(r->values);
}

static md_status describe_vectors(md_context *context, const char *path, md_lattice_info *found,
                                  md_modes_info *info) {
  memset(info, 0, sizeof *info);
  MD_TRY(md_lattice_describe(context, path, found));
  return take_vectors(context, path, found, info);
}

md_status md_modes_describe(md_context *context, const char *path, md_modes_info *info) {
  if (md_vectors_recognised(context, path)) {
    md_lattice_info found;
    const md_status status = describe_vectors(context, path, &found, info);
    md_lattice_info_destroy(&found);
    return status;
  }
  reader r = {.path = path};
  const md_status status = start(context, &r);
  if (status == MD_OK) *info = r.info;
  stop(&r);
  return md_agree(context, status);
}

/* Members by themselves: what lies between them is anything. */
static bool is_same(const md_modes_info *a, const md_modes_info *b) {
  return memcmp(a->dims, b->dims, sizeof a->dims) == 0 && a->components == b->components &&
         a->count == b->count && a->converged == b->converged &&
         memcmp(&a->tolerance, &b->tolerance, sizeof a->tolerance) == 0 && a->store == b->store &&
         strcmp(a->label.lattice_checksum, b->label.lattice_checksum) == 0 &&
         strcmp(a->label.action, b->label.action) == 0 &&
         strcmp(a->label.boundary, b->label.boundary) == 0;
}

/* Local. */
static md_status read_vectors(md_context *context, reader *r, const md_modes_info *info,
                              md_modes *modes, double *norms) {
  if (!is_same(&r->info, info))
    return md_fail(context, MD_INPUT, "%s changed while it was read", r->path);
  if (r->unguarded && !md_counts(context)) md_h5_warn_of_sums(context, r->path);
  memcpy(modes->values, r->values, (size_t)modes->count * sizeof *modes->values);
  memcpy(modes->residuals, r->residuals, (size_t)modes->count * sizeof *modes->residuals);
  for (int i = 0; i < modes->count && !md_counts(context); i++) {
    MD_TRY(md_bundle_read_lead(context, &r->child, 0, &r->sites, i, &norms[i]));
    MD_TRY(md_field_convert(context, &modes->vectors[i], &r->host));
  }
  return MD_OK;
}

/* The vectors of a scidac file. Collective. */
static md_status read_scidac(md_context *context, reader *r, md_modes *modes, double *norms) {
  md_lattice_info found;
  md_status status = describe_vectors(context, r->path, &found, &r->info);
  if (status == MD_OK && found.notes.run_count < modes->count)
    status = md_fail(context, MD_INPUT, "%s changed while it was read", r->path);
  bool summed = true;
  for (int i = 0; i < modes->count && status == MD_OK; i++)
    summed = summed && found.notes.runs[i].checksum.kind != MD_CHECKSUM_NONE;
  if (status == MD_OK && !summed && !md_counts(context))
    md_warn(context, "%s has no checksum: its vectors cannot be verified", r->path);
  for (int i = 0; i < modes->count && status == MD_OK; i++) {
    const md_vector_run *run = &found.notes.runs[i];
    modes->values[i] = 0.25 * run->value;
    modes->residuals[i] = 0.25 * run->residual;
    if (md_counts(context)) continue;
    status = md_vectors_read_mode(context, r->path, &found, i, &r->host);
    for (int64_t k = 0; k < r->host.sites * r->host.components && status == MD_OK; k++) {
      const double value =
          ((double *)r->host.data)[k / r->host.sites * r->host.stride + k % r->host.sites];
      norms[i] += value * value;
    }
    if (status == MD_OK)
      status = md_agree(context, md_field_convert(context, &modes->vectors[i], &r->host));
  }
  md_lattice_info_destroy(&found);
  return status;
}

md_status md_modes_read(md_context *context, const char *path, const md_geometry *geometry,
                        const md_modes_label *wanted, const md_modes_info *info, int count,
                        md_space space, md_modes *modes) {
  const md_field_shape shape = {info->store, space, info->components, 1, true, false};
  const md_field_shape host = host_shape(info->components);
  reader r = {.path = path, .geometry = geometry, .child = {.socket = -1}};
  const int *d = info->dims, *g = geometry->global;
  *modes = (md_modes){0};
  if (memcmp(d, g, sizeof info->dims) != 0)
    return md_fail(context, MD_INPUT,
                   "%s is of a %dx%dx%dx%d lattice, needed is one of %dx%dx%dx%d", path, d[0], d[1],
                   d[2], d[3], g[0], g[1], g[2], g[3]);
  MD_TRY(check_label(context, path, &info->label, wanted));
  double *norms = calloc((size_t)count, sizeof *norms);
  md_status status = norms ? MD_OK : md_fail_memory(context, (size_t)count * 8, "modes");
  if (status == MD_OK) status = md_field_create(context, geometry, &host, MD_EVEN, &r.host);
  if (status == MD_OK) status = md_modes_create(context, geometry, &shape, count, modes);
  if (info->store == MD_FIXED) modes->roundoff = 0.5 / MD_FIXED8_STEPS;
  const bool scidac = md_vectors_recognised(context, path);
  if (scidac) {
    status = md_agree(context, status);
    if (status == MD_OK) status = read_scidac(context, &r, modes, norms);
  } else {
    if (status == MD_OK) status = start(context, &r);
    if (status == MD_OK) status = read_vectors(context, &r, info, modes, norms);
    stop(&r);
    status = md_agree(context, status);
  }
  if (status == MD_OK && !md_counts(context)) status = check_numbers(context, path, modes, norms);
  free(norms);
  md_field_destroy(&r.host);
  if (status != MD_OK) md_modes_destroy(modes);
  return status;
}
