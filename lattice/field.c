#include "lattice/field.h"
#include "base/memory.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* 64-byte aligned planes whose distance is no multiple of 4 KiB, so that the planes of one site
 * do not meet in one cache set. */
static int64_t plane_stride(int64_t sites, size_t bytes) {
  const int64_t line = MD_ALIGNMENT / (int64_t)bytes;
  int64_t stride = (sites + line - 1) / line * line;
  if (stride * (int64_t)bytes % 4096 == 0) stride += line;
  return stride;
}

/* The threads that will compute on a site touch its memory first. */
static void touch(md_field *f) {
  const size_t entry = (size_t)md_field_entry(f) * md_precision_bytes(f->precision);
  const int planes = md_field_planes(f);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < f->stride; i++) {
    for (int c = 0; c < planes; c++)
      memset((char *)f->data + ((size_t)c * (size_t)f->stride + (size_t)i) * entry, 0, entry);
    if (f->scale) f->scale[i] = MD_SCALE_OF_ZERO;
  }
}

md_status md_field_create(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int parity, md_field *field) {
  if (shape->n_rhs < 1 || shape->n_rhs > MD_MAX_RHS)
    return md_fail(context, MD_INPUT, "a field holds 1 to %d right-hand sides, got %d", MD_MAX_RHS,
                   shape->n_rhs);
  *field = (md_field){.precision = shape->precision,
                      .space = shape->space,
                      .parity = parity,
                      .components = shape->components,
                      .n_rhs = shape->n_rhs,
                      .sites = geometry->sites,
                      .halo = geometry->halo_sites,
                      .geometry = geometry};
  const size_t bytes = md_precision_bytes(shape->precision);
  const int64_t all = field->sites + field->halo;
  field->stride = shape->n_rhs == 1 ? plane_stride(all, bytes) : all;
  const size_t size = (size_t)md_field_planes(field) * (size_t)field->stride *
                      (size_t)md_field_entry(field) * bytes;
  if (shape->space == MD_DEVICE)
    return md_fail(context, MD_ENVIRONMENT,
                   "device fields need a build with CUDA; configure with -DMINIDIRAC_CUDA=ON");
  md_status status = md_allocate(context, size, "lattice field", &field->data);
  if (status == MD_OK && shape->scaled && shape->precision == MD_HALF)
    status = md_allocate(context, (size_t)field->stride * sizeof(float), "half-precision scales",
                         (void **)&field->scale);
  if (status == MD_OK)
    touch(field);
  else
    md_field_destroy(field);
  return status;
}

void md_field_destroy(md_field *field) {
  free(field->data);
  free(field->scale);
  *field = (md_field){0};
}

static double load(const md_field *f, int64_t at) {
  switch (f->precision) {
  case MD_DOUBLE:
    return ((const double *)f->data)[at];
  case MD_SINGLE:
    return ((const float *)f->data)[at];
  case MD_HALF:
    return md_float_of_half(((const uint16_t *)f->data)[at]);
  default:
    return md_float_of_bf16(((const uint16_t *)f->data)[at]);
  }
}

static void store(const md_field *f, int64_t at, double value) {
  switch (f->precision) {
  case MD_DOUBLE:
    ((double *)f->data)[at] = value;
    break;
  case MD_SINGLE:
    ((float *)f->data)[at] = (float)value;
    break;
  case MD_HALF:
    ((uint16_t *)f->data)[at] = md_half_of_float((float)value);
    break;
  default:
    ((uint16_t *)f->data)[at] = md_bf16_of_float((float)value);
    break;
  }
}

void md_field_get(const md_field *f, int64_t site, int rhs, double *out) {
  const double scale = f->scale ? f->scale[site] : 1.0;
  for (int c = 0; c < f->components; c++) out[c] = scale * load(f, md_field_at(f, site, c, rhs));
}

float md_field_scale_of(float largest) {
  int exponent;
  if (!(largest > 0.0f) || isinf(largest)) return MD_SCALE_OF_ZERO;
  frexpf(largest, &exponent); /* largest in [2^(e-1), 2^e) */
  return ldexpf(1.0f, exponent - 15 > -126 ? exponent - 15 : -126);
}

void md_field_set(md_field *f, int64_t site, const double *in) {
  const int n = f->components * f->n_rhs;
  double inverse = 1.0;
  if (f->scale) {
    float largest = 0.0f;
    for (int c = 0; c < n; c++) largest = fmaxf(largest, fabsf((float)in[c]));
    f->scale[site] = md_field_scale_of(largest);
    inverse = 1.0 / f->scale[site];
  }
  for (int r = 0; r < f->n_rhs; r++)
    for (int c = 0; c < f->components; c++)
      store(f, md_field_at(f, site, c, r), inverse * in[r * f->components + c]);
}

md_status md_field_convert(md_context *context, md_field *out, const md_field *in) {
  if (out->sites != in->sites || out->components != in->components || out->n_rhs != in->n_rhs ||
      out->parity != in->parity)
    return md_fail(context, MD_INPUT,
                   "fields must have one shape to be converted, got %d reals x %d rhs and %d x %d",
                   in->components, in->n_rhs, out->components, out->n_rhs);
  double *buffers = NULL;
  const size_t reals = ((size_t)in->components * (size_t)in->n_rhs + 7) / 8 * 8; /* whole lines */
  MD_TRY(md_allocate(context, (size_t)context->threads * reals * sizeof(double),
                     "conversion buffer", (void **)&buffers));
#pragma omp parallel num_threads(context->threads)
  {
    double *site = buffers + (size_t)omp_get_thread_num() * reals;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < in->sites; i++) {
      for (int r = 0; r < in->n_rhs; r++) md_field_get(in, i, r, site + r * in->components);
      md_field_set(out, i, site);
    }
  }
  free(buffers);
  return MD_OK;
}

void md_field_copy_rhs(md_field *out, int to, const md_field *in, int from) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < in->sites; i++)
    for (int c = 0; c < in->components; c++)
      ((double *)out->data)[md_field_at(out, i, c, to)] =
          ((const double *)in->data)[md_field_at(in, i, c, from)];
}
