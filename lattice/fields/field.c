#include "base/device.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "lattice/fields/columns.h"
#include "lattice/fields/reals.h"
#include "lattice/fields/spaces.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

/* Of 64-byte aligned planes, in entries, the same in every space. Where their distance would be a
 * multiple of 4 KiB, the planes of one site would meet in one set of the first cache; a hop of four
 * spins works with all planes of some rows at a time, and an odd number of lines spreads them over
 * the sets of the second one, WAY_LINES of them. */
static int64_t plane_stride(int64_t sites, size_t bytes, int planes) {
  enum { PAGE = 4096, WAY_LINES = 2048, LEAST_PART = 16 };
  const int64_t line = MD_ALIGNMENT / (int64_t)bytes, lines = (sites + line - 1) / line;
  if (lines * MD_ALIGNMENT % PAGE != 0) return lines * line;
  if (planes <= MD_FERMION_REALS) return (lines + 1) * line;
  const int64_t spread = WAY_LINES / planes, most = lines / LEAST_PART;
  return (lines + ((spread < most ? spread : most) | 1)) * line;
}

/* The threads that will compute on a site touch its memory first. */
static void touch(md_field *f) {
  const size_t entry = (size_t)md_field_entry(f) * md_precision_bytes(f->precision);
  const int planes = md_field_planes(f);
#pragma omp parallel
  {
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const int64_t begin = f->stride * thread / threads;
    const int64_t sites = f->stride * (thread + 1) / threads - begin;
    for (int c = 0; c < planes; c++)
      memset((char *)f->data + (size_t)(c * f->stride + begin) * entry, 0, (size_t)sites * entry);
    for (int64_t i = begin; f->scale && i < begin + sites; i++) f->scale[i] = MD_SCALE_OF_ZERO;
  }
}

/* The descriptor without memory, and the bytes of its data and scales. */
static md_field describe(const md_geometry *geometry, const md_field_shape *shape, int parity,
                         size_t *data_bytes, size_t *scale_bytes) {
  md_field field = {.precision = shape->precision,
                    .space = shape->space,
                    .parity = parity,
                    .components = shape->components,
                    .n_rhs = shape->n_rhs,
                    .together = shape->together,
                    .sites = geometry->sites,
                    .halo = geometry->halo_sites,
                    .geometry = geometry};
  const size_t bytes = md_precision_bytes(shape->precision);
  const int64_t all = field.sites + field.halo;
  const bool scaled = shape->scaled && md_precision_scaled(shape->precision);
  field.stride = md_shape_planar(shape) ? plane_stride(all, bytes, md_field_planes(&field)) : all;
  *data_bytes = (size_t)md_field_planes(&field) * (size_t)field.stride *
                (size_t)md_field_entry(&field) * bytes;
  *scale_bytes = scaled ? (size_t)field.stride * sizeof(float) : 0;
  return field;
}

int64_t md_field_bytes(const md_geometry *geometry, const md_field_shape *shape) {
  size_t data = 0, scales = 0;
  (void)describe(geometry, shape, 0, &data, &scales);
  return (int64_t)(data + MD_ALIGNMENT + scales);
}

md_status md_field_create(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int parity, md_field *field) {
  size_t used = 0, scale_bytes = 0;
  *field = (md_field){0}; /* may be destroyed also where the shape is refused */
  if (shape->n_rhs < 1 || shape->n_rhs > MD_MAX_RHS)
    return md_fail(context, MD_INPUT, "a field holds 1 to %d right-hand sides, got %d", MD_MAX_RHS,
                   shape->n_rhs);
  if (shape->components < 2 || shape->components > MD_MAX_COMPONENTS || shape->components % 2)
    return md_fail(context, MD_INPUT,
                   "a site of a field holds an even number of reals, 2 to %d, got %d",
                   MD_MAX_COMPONENTS, shape->components);
  *field = describe(geometry, shape, parity, &used, &scale_bytes);
  md_status (*const allocate)(md_context *, size_t, const char *, void **) =
      shape->space == MD_DEVICE ? md_device_allocate : md_allocate;
  md_status status = allocate(context, used + MD_ALIGNMENT, "lattice field", &field->data);
  if (status == MD_OK)
    status = allocate(context, scale_bytes, "scales of sites", (void **)&field->scale);
  if (status != MD_OK)
    md_field_destroy(field);
  else if (md_counts(context))
    return MD_OK;
  else if (shape->space == MD_HOST) {
    touch(field);
    memset((char *)field->data + used, 0, MD_ALIGNMENT);
  } else if (field->scale)
    md_linear_zero(field);
  return status;
}

void md_field_destroy(md_field *field) {
  void (*const release)(void *) = field->space == MD_DEVICE ? md_device_free : free;
  release(field->data);
  release(field->scale);
  *field = (md_field){0};
}

void md_fields_destroy(md_field *const *fields, size_t count) {
  for (size_t i = 0; i < count; i++) md_field_destroy(fields[i]);
}

/* What a stored number is a multiple of. */
static double unit_of(const md_field *f, int64_t site) {
  if (f->scale) return f->scale[site];
  return f->precision == MD_FIXED ? 1.0 / MD_FIXED_STEPS : 1.0;
}

void md_field_get(const md_field *f, int64_t site, int rhs, double *out) {
  const double scale = unit_of(f, site);
  for (int c = 0; c < f->components; c++) {
    md_load_reals(f->precision, f->data, md_field_at(f, site, c, rhs), 1, &out[c]);
    out[c] *= scale;
  }
}

/* The site in units of its scale. */
static void store_site(md_field *f, int64_t site, const double *in) {
  const double inverse = 1.0 / unit_of(f, site);
  for (int r = 0; r < f->n_rhs; r++)
    for (int c = 0; c < f->components; c++) {
      const double value = inverse * in[r * f->components + c];
      md_store_reals(f->precision, f->data, md_field_at(f, site, c, r), 1, &value);
    }
}

void md_field_set(md_field *f, int64_t site, const double *in) {
  const int n = f->components * f->n_rhs;
  if (f->scale) {
    int32_t largest = 0;
    for (int c = 0; c < n; c++) largest = md_larger_bits(largest, (float)in[c]);
    f->scale[site] = md_scale_of_bits(f->precision, largest);
  }
  store_site(f, site, in);
}

static bool is_unscaled(const md_field *f) {
  return f->precision == MD_DOUBLE || f->precision == MD_SINGLE;
}

/* `lanes` reals that follow each other, each with its factor; add: single to double. */
static void convert_run(const md_field *out, int64_t to, const double *lane, const md_field *in,
                        int64_t from, int lanes, bool add) {
#define CONVERT(TO, ASSIGN, FROM)                                                                  \
  for (int l = 0; l < lanes; l++)                                                                  \
  ((TO *)out->data)[to + l] ASSIGN(TO)(lane[l] * (double)((const FROM *)in->data)[from + l])
  if (add)
    CONVERT(double, +=, float);
  else if (out->precision == MD_DOUBLE && in->precision == MD_DOUBLE)
    CONVERT(double, =, double);
  else if (out->precision == MD_DOUBLE)
    CONVERT(double, =, float);
  else if (in->precision == MD_DOUBLE)
    CONVERT(float, =, double);
  else
    CONVERT(float, =, float);
#undef CONVERT
}

/* Between double and single, as they lie: what mixed CG does at each update. Runs are as long as
 * their factors fit in a table, over the ends of sites and components. */
static md_status convert_unscaled(md_field *out, const double *factor, const md_field *in,
                                  bool add) {
  double lane[2 * MD_MAX_RHS];
  const int period = in->n_rhs == 1 ? 1 : 2 * in->n_rhs, most = 2 * MD_MAX_RHS / period * period;
  const int64_t reals = in->sites * md_field_entry(in); /* of a plane */
  for (int l = 0; l < most; l++) lane[l] = factor ? factor[l % period / 2] : 1.0;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < reals; i += most)
    for (int c = 0; c < md_field_planes(in); c++)
      convert_run(out, c * out->stride + i, lane, in, c * in->stride + i,
                  (int)(reals - i < most ? reals - i : most), add);
  return MD_OK;
}

static md_status convert_on_host(md_context *context, md_field *out, const double *factor,
                                 const md_field *in) {
  double *buffers = NULL;
  if (is_unscaled(out) && is_unscaled(in) && md_field_planar(out) == md_field_planar(in)) {
    if (factor || in->precision != out->precision) return convert_unscaled(out, factor, in, false);
    md_linear_copy(out, in);
    return MD_OK;
  }
  const size_t reals = ((size_t)in->components * (size_t)in->n_rhs + 7) / 8 * 8; /* whole lines */
  MD_TRY(md_allocate(context, (size_t)context->threads * reals * sizeof(double),
                     "conversion buffer", (void **)&buffers));
#pragma omp parallel num_threads(context->threads)
  {
    double *site = buffers + (size_t)omp_get_thread_num() * reals;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < in->sites; i++) {
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, i, r, site + r * in->components);
        for (int c = 0; factor && c < in->components; c++)
          site[r * in->components + c] *= factor[r];
      }
      md_field_set(out, i, site);
    }
  }
  free(buffers);
  return MD_OK;
}

/* The device converts: a field of the host goes there, or a result comes from there, as it is. */
static inline md_status convert_with_device(md_context *context, md_field *out,
                                            const double *factor, const md_field *in) {
  const md_field *host = in->space == MD_HOST ? in : out;
  const md_field_shape shape = {host->precision, MD_DEVICE,           host->components,
                                host->n_rhs,     host->scale != NULL, host->together};
  if (in->space == out->space) return md_device_convert(context, out, factor, in);
  const bool alike = in->precision == out->precision && md_field_planar(in) == md_field_planar(out);
  if (alike && !factor) return md_device_transfer(context, out, in);
  md_field staged;
  MD_TRY(md_field_create(context, host->geometry, &shape, host->parity, &staged));
  md_status status;
  if (host == in) {
    status = md_device_transfer(context, &staged, in);
    if (status == MD_OK) status = md_device_convert(context, out, factor, &staged);
  } else {
    status = md_device_convert(context, &staged, factor, in);
    if (status == MD_OK) status = md_device_transfer(context, out, &staged);
  }
  md_field_destroy(&staged);
  return status;
}

/* Fields of one shape, but for the precision. */
static md_status check_shapes(md_context *context, const md_field *out, const md_field *in) {
  if (out->sites == in->sites && out->components == in->components && out->n_rhs == in->n_rhs &&
      out->parity == in->parity)
    return MD_OK;
  return md_fail(context, MD_INPUT,
                 "fields must have one shape to be converted, got %d reals x %d rhs and %d x %d",
                 in->components, in->n_rhs, out->components, out->n_rhs);
}

md_status md_field_add_single(md_context *context, md_field *out, const double *factor,
                              const md_field *in) {
  MD_TRY(check_shapes(context, out, in));
  if (out->precision != MD_DOUBLE || in->precision != MD_SINGLE)
    return md_fail(context, MD_INPUT, "a single field can be added to a double one, got %s and %s",
                   md_precision_name(in->precision), md_precision_name(out->precision));
  if (MINIDIRAC_HAVE_CUDA && out->space == MD_DEVICE)
    return md_device_add_single(context, out, factor, in);
  return convert_unscaled(out, factor, in, true);
}

md_status md_field_convert(md_context *context, md_field *out, const md_field *in) {
  return md_field_convert_times(context, out, NULL, in);
}

md_status md_field_convert_times(md_context *context, md_field *out, const double *factor,
                                 const md_field *in) {
  MD_TRY(check_shapes(context, out, in));
  if (md_counts(context)) return MD_OK;
  if (MINIDIRAC_HAVE_CUDA && (in->space == MD_DEVICE || out->space == MD_DEVICE))
    return convert_with_device(context, out, factor, in);
  return convert_on_host(context, out, factor, in);
}

/* In MD_FIXED the largest value of a site is MD_FIXED_STEPS of its scale, whose product with a
 * float is exact in double. */
md_status md_field_restore(md_context *context, md_field *out, const md_field *in) {
  MD_TRY(check_shapes(context, out, in));
  if (out->precision != MD_FIXED || !out->scale) return md_field_convert(context, out, in);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < in->sites; i++) {
    double site[MD_MAX_RHS * MD_MAX_COMPONENTS], largest = 0.0;
    for (int r = 0; r < in->n_rhs; r++) md_field_get(in, i, r, site + r * in->components);
    for (int c = 0; c < in->components * in->n_rhs; c++) largest = fmax(largest, fabs(site[c]));
    out->scale[i] = fmaxf((float)(largest / MD_FIXED_STEPS), MD_SCALE_OF_ZERO);
    store_site(out, i, site);
  }
  return MD_OK;
}

/* n right-hand sides of a field on the host, both MD_DOUBLE. */
static void copy_rhs(md_field *out, int to, const md_field *in, int from, int n) {
  double *const there = out->data;
  const double *const here = in->data;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < in->sites; i++)
    for (int c = 0; c < in->components; c++)
      for (int r = 0; r < n; r++)
        there[md_field_at(out, i, c, to + r)] = here[md_field_at(in, i, c, from + r)];
}

/* The first right-hand sides that both have, and zeros in those that `out` has beyond; MD_DOUBLE,
 * in one space. */
static md_status resize(md_context *context, md_field *out, const md_field *in) {
  const int n = out->n_rhs < in->n_rhs ? out->n_rhs : in->n_rhs;
  if (md_counts(context)) return MD_OK;
  if (out->n_rhs > n) md_linear_zero(out);
  if (MINIDIRAC_HAVE_CUDA && out->space == MD_DEVICE)
    return md_device_convert(context, out, NULL, in);
  copy_rhs(out, 0, in, 0, n);
  return MD_OK;
}

/* In MD_DOUBLE, beside a field whose other numbers it has. */
static md_status create_beside(md_context *context, const md_field *other, int n_rhs,
                               md_field *field) {
  const md_field_shape shape = {MD_DOUBLE, other->space, other->components,
                                n_rhs,     false,        other->together};
  return md_field_create(context, other->geometry, &shape, other->parity, field);
}

md_status md_field_resize(md_context *context, md_field *out, const md_field *in) {
  const md_field *more = out->n_rhs > in->n_rhs ? out : in, *fewer = more == out ? in : out;
  const bool wide = more->precision == MD_DOUBLE;
  md_field staged = {0};
  if (in->n_rhs == out->n_rhs) return md_field_convert(context, out, in);
  if (wide && out->space == in->space) return resize(context, out, in);
  md_status status = create_beside(context, more, wide ? fewer->n_rhs : more->n_rhs, &staged);
  if (status == MD_OK) status = md_field_resize(context, &staged, in);
  if (status == MD_OK) status = md_field_resize(context, out, &staged);
  md_field_destroy(&staged);
  return status;
}

void md_field_copy_rhs(md_field *out, int to, const md_field *in, int from) {
  copy_rhs(out, to, in, from, 1);
}

/* All right-hand sides of `part` from or, if `puts`, to those of `all` from `first` on. */
static md_status move_rhs(md_context *context, md_field *part, md_field *all, int first,
                          bool puts) {
  const size_t bytes = 2 * sizeof(double) * (size_t)part->n_rhs;
  const size_t pitch = 2 * sizeof(double) * (size_t)all->n_rhs;
  const md_device_rows rows = {(size_t)part->sites * (size_t)part->components / 2, bytes,
                               puts ? pitch : bytes, puts ? bytes : pitch};
  double *from = (double *)all->data + 2 * (int64_t)first;
  if (md_counts(context)) return MD_OK;
  if (MINIDIRAC_HAVE_CUDA && part->space == MD_DEVICE)
    return puts ? md_device_download_rows(context, from, part->data, &rows)
                : md_device_upload_rows(context, part->data, from, &rows);
  copy_rhs(puts ? all : part, puts ? first : 0, puts ? part : all, puts ? 0 : first, part->n_rhs);
  return MD_OK;
}

/* A field that can be the part itself. */
static bool is_part(const md_field *f, int count) {
  return f->space == MD_HOST && f->precision == MD_DOUBLE && f->n_rhs == count;
}

md_status md_field_take(md_context *context, md_field *out, const md_field *in, int first,
                        int count) {
  md_field part = {0}, all = *in;
  if (count == in->n_rhs) return md_field_resize(context, out, in);
  if (is_part(out, count)) return move_rhs(context, out, &all, first, false);
  md_status status = create_beside(context, out, count, &part);
  if (status == MD_OK) status = move_rhs(context, &part, &all, first, false);
  if (status == MD_OK) status = md_field_resize(context, out, &part);
  md_field_destroy(&part);
  return status;
}

md_status md_field_put(md_context *context, md_field *out, int first, int count,
                       const md_field *in) {
  md_field part = {0}, own = *in;
  if (count == out->n_rhs) return md_field_resize(context, out, in);
  if (is_part(in, count)) return move_rhs(context, &own, out, first, true);
  md_status status = create_beside(context, in, count, &part);
  if (status == MD_OK) status = md_field_resize(context, &part, in);
  if (status == MD_OK) status = move_rhs(context, &part, out, first, true);
  md_field_destroy(&part);
  return status;
}

/* Host; what md_columns_join and md_columns_split do. */
static md_status turn(const md_field *block, int count, const md_field *columns, bool join) {
  enum { TOGETHER = 16 }; /* sites: what they have in a block stays in the cache for all columns */
  const int n = join ? block->n_rhs : count;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < block->sites; first += TOGETHER) {
    const int64_t left = block->sites - first, end = first + (left < TOGETHER ? left : TOGETHER);
    for (int r = 0; r < n; r++)
      for (int c = 0; c < block->components; c++) {
        double *column = r < count ? (double *)columns[r].data + c * columns[r].stride : NULL;
        for (int64_t i = first; i < end; i++) {
          double *at = (double *)block->data + md_field_at(block, i, c, r);
          if (join)
            *at = column ? column[i] : 0.0;
          else
            column[i] = *at;
        }
      }
  }
  return MD_OK;
}

md_status md_columns_join(md_context *context, int count, const md_field *columns,
                          md_field *block) {
  if (MINIDIRAC_HAVE_CUDA && block->space == MD_DEVICE)
    return md_device_join(context, count, columns, block);
  return turn(block, count, columns, true);
}

md_status md_columns_split(md_context *context, const md_field *block, int count,
                           md_field *columns) {
  if (MINIDIRAC_HAVE_CUDA && block->space == MD_DEVICE)
    return md_device_split(context, block, count, columns);
  return turn(block, count, columns, false);
}
