#include "base/device.cuh"

extern "C" {
#include "lattice/fields/cuda/device_field.h"
}
#include "lattice/fields/cuda/pieces.cuh"

/* Reals of any precision through one kernel: conversions are rare beside stencils. */
struct field_view {
  void *data;
  float *scale;
  int64_t sites, stride;
  int precision, components, n_rhs;
};

static field_view view_of(const md_field *f) {
  return {f->data, f->scale, f->sites, f->stride, f->precision, f->components, f->n_rhs};
}

static __device__ int64_t index_of(const field_view &f, int64_t site, int c, int r) {
  return f.n_rhs == 1 ? c * f.stride + site
                      : ((site * (f.components / 2) + c / 2) * f.n_rhs + r) * 2 + c % 2;
}

static __device__ double load(const field_view &f, int64_t at) {
  switch (f.precision) {
  case MD_DOUBLE:
    return ((const double *)f.data)[at];
  case MD_SINGLE:
    return ((const float *)f.data)[at];
  case MD_HALF:
    return __half2float(((const __half *)f.data)[at]);
  case MD_FIXED:
    return load_real(((const fixed16 *)f.data)[at]);
  default:
    return __bfloat162float(((const __nv_bfloat16 *)f.data)[at]);
  }
}

static __device__ void store(const field_view &f, int64_t at, double value) {
  switch (f.precision) {
  case MD_DOUBLE:
    ((double *)f.data)[at] = value;
    break;
  case MD_SINGLE:
    ((float *)f.data)[at] = (float)value;
    break;
  case MD_HALF:
    ((__half *)f.data)[at] = __float2half_rn((float)value);
    break;
  case MD_FIXED:
    ((fixed16 *)f.data)[at] = store_real<fixed16>((float)value);
    break;
  default:
    ((__nv_bfloat16 *)f.data)[at] = __float2bfloat16_rn((float)value);
    break;
  }
}

/* What a stored number is a multiple of. */
static __device__ double unit_of(const field_view &f, int64_t site) {
  if (f.scale) return f.scale[site];
  return f.precision == MD_FIXED ? 1.0 / fixed_steps : 1.0;
}

/* Thread (r, i) of a block converts right-hand side r of the block's i-th site; a site's scale
 * belongs to all of them. */
static __global__ void convert(field_view out, coefficients factor, field_view in) {
  __shared__ float shared[256];
  const piece_place at = place_of<1, false>(in.sites, in.n_rhs, blockIdx.x);
  const int64_t site = at.site;
  const int r = at.rhs;
  const double scale = unit_of(in, site);
  const auto value = [&](int c) {
    return factor.of[r] * (scale * load(in, index_of(in, site, c, r)));
  };
  double unit = out.scale ? 1.0 : unit_of(out, site);
  if (out.scale) {
    float *row = shared + threadIdx.y * blockDim.x, largest = 0.0f;
    for (int c = 0; c < in.components; c++) largest = larger(largest, (float)value(c));
    row[r] = largest;
    __syncthreads();
    for (int j = 0; j < in.n_rhs; j++) largest = larger(largest, row[j]);
    const float chosen =
        out.precision == MD_FIXED ? scale_of<fixed16>(largest) : scale_of<__half>(largest);
    if (at.active && r == 0) out.scale[site] = chosen;
    unit = chosen;
  }
  if (!at.active) return;
  const double inverse = 1.0 / unit;
  for (int c = 0; c < in.components; c++) store(out, index_of(out, site, c, r), inverse * value(c));
}

/* The same to a narrower type, by types that are known beforehand: in a solver it decides what an
 * update costs. The same bits too, as scales of half are powers of two. */
template <class S, class From, bool ONE>
static __global__ void narrow(linear_view<S> out, coefficients factor, linear_view<From> in,
                              int64_t sites, int n_rhs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  From u[1][6];
  float v[1][6];
  load_piece<ONE>(in, at, u);
#pragma unroll
  for (int c = 0; c < 6; c++) v[0][c] = (float)(factor.of[at.rhs] * u[0][c]);
  store_piece<ONE>(out, at, v);
}

template <class S, class From>
static void launch_narrow(md_field *out, const coefficients &factor, const md_field *in) {
  const dim3 block = block_of(in);
  const auto kernel = in->n_rhs == 1 ? narrow<S, From, true> : narrow<S, From, false>;
  kernel<<<all_blocks(in, block), block, 0, md_stream()>>>(
      linear_view_of<S>(out), factor, linear_view_of<From>(in), in->sites, in->n_rhs);
}

extern "C" md_status md_device_convert(md_context *context, md_field *out, const double *factor,
                                       const md_field *in) {
  const dim3 block = block_of(in);
  const coefficients factors = coefficients_of(factor, in->n_rhs);
  const bool fermion = in->components == MD_FERMION_REALS;
  const bool from_double = fermion && in->precision == MD_DOUBLE;
  if (from_double && out->precision == MD_SINGLE)
    launch_narrow<float, double>(out, factors, in);
  else if (from_double && out->precision == MD_HALF)
    launch_narrow<__half, double>(out, factors, in);
  else if (fermion && in->precision == MD_SINGLE && out->precision == MD_HALF)
    launch_narrow<__half, float>(out, factors, in);
  else
    convert<<<all_blocks(in, block), block, 0, md_stream()>>>(view_of(out), factors, view_of(in));
  return md_cuda_launched(context, "conversion of a field");
}

/* out += factor in */
template <bool ONE>
static __global__ void add_single(linear_view<double> out, coefficients factor,
                                  linear_view<float> in, int64_t sites, int n_rhs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  float u[1][6];
  double v[1][6], w[1][6];
  load_piece<ONE>(in, at, u);
  load_piece<ONE>(out, at, v);
#pragma unroll
  for (int c = 0; c < 6; c++) w[0][c] = u[0][c];
  add_times<ONE>(v, factor.of, at, w);
  store_piece<ONE>(out, at, v);
}

extern "C" md_status md_device_add_single(md_context *context, md_field *out, const double *factor,
                                          const md_field *in) {
  const dim3 block = block_of(in);
  const auto kernel = in->n_rhs == 1 ? add_single<true> : add_single<false>;
  kernel<<<all_blocks(in, block), block, 0, md_stream()>>>(
      linear_view_of<double>(out), coefficients_of(factor, in->n_rhs), linear_view_of<float>(in),
      in->sites, in->n_rhs);
  return md_cuda_launched(context, "sum of fields");
}

static size_t bytes_of(const md_field *f) {
  return (size_t)md_field_planes(f) * (size_t)f->stride * (size_t)md_field_entry(f) *
         md_precision_bytes(f->precision);
}

extern "C" md_status md_device_transfer(md_context *context, md_field *out, const md_field *in) {
  md_status (*const copy)(md_context *, void *, const void *, size_t) =
      in->space == MD_HOST ? md_device_upload : md_device_download;
  MD_TRY(copy(context, out->data, in->data, bytes_of(in)));
  return in->scale ? copy(context, out->scale, in->scale, (size_t)in->stride * sizeof(float))
                   : MD_OK;
}
