/* Conversions and copies of fields on the device. */
#include "lattice/fields/cuda/pieces.cuh"

extern "C" {
#include "lattice/fields/spaces.h"
}

/* Reals of any precision through one kernel: conversions are rare beside stencils. */
struct field_view {
  void *data;
  float *scale;
  int64_t sites, stride;
  md_precision precision;
  int components, n_rhs;
  bool planar;
};

static field_view view_of(const md_field *f) {
  return {f->data,      f->scale,      f->sites, f->stride,
          f->precision, f->components, f->n_rhs, md_field_planar(f)};
}

static __device__ int64_t index_of(const field_view &f, int64_t site, int c, int r) {
  return f.planar ? c * f.stride + site
                  : ((site * (f.components / 2) + c / 2) * f.n_rhs + r) * 2 + c % 2;
}

static __device__ double load(const field_view &f, int64_t at) {
  return with_type(f.precision,
                   [&](auto s) { return (double)load_real(((const decltype(s) *)f.data)[at]); });
}

static __device__ void store(const field_view &f, int64_t at, double value) {
  with_type(f.precision, [&](auto s) {
    using S = decltype(s);
    ((S *)f.data)[at] = store_real<S>((real_of<S>)value);
  });
}

/* What a stored number is a multiple of. */
static __device__ double unit_of(const field_view &f, int64_t site) {
  if (f.scale) return f.scale[site];
  return f.precision == MD_FIXED ? 1.0 / fixed_steps : 1.0;
}

/* Thread (r, i) of a block converts right-hand side r of the block's i-th site; a site's scale
 * belongs to all of them. `out` without scales may have more of them or fewer. */
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
  if (!at.active || r >= out.n_rhs) return;
  const double inverse = 1.0 / unit;
  for (int c = 0; c < in.components; c++) store(out, index_of(out, site, c, r), inverse * value(c));
}

/* The same to a narrower type, by types that are known beforehand: in a solver it decides what an
 * update costs. The same bits too, as scales of half are powers of two. */
template <class S, class From, bool ONE, int C>
static __global__ void narrow(linear_view<S> out, coefficients factor, linear_view<From> in,
                              int64_t sites, int n_rhs, int pairs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  store_site<ONE, C>(out, at, pairs, [&](float(&v)[1][C], int g) {
    From u[1][C];
    load_piece<ONE>(from_pair<ONE, C>(in, at, g), at, u);
#pragma unroll
    for (int c = 0; c < C; c++) v[0][c] = (float)(factor.of[at.rhs] * u[0][c]);
  });
}

template <class S, class From>
static void launch_narrow(md_field *out, const coefficients &factor, const md_field *in) {
  const dim3 block = block_of(in);
  with_layout(in, [&](auto one, auto reals) {
    narrow<S, From, one(), reals()><<<all_blocks(in, block), block, 0, md_stream()>>>(
        linear_view_of<S>(out), factor, linear_view_of<From>(in), in->sites, in->n_rhs,
        in->components / 2);
  });
}

extern "C" md_status md_device_convert(md_context *context, md_field *out, const double *factor,
                                       const md_field *in) {
  const bool alike = in->n_rhs == out->n_rhs && md_field_planar(in) == md_field_planar(out);
  md_field to = alike ? md_widened(out) : *out;
  const md_field from = alike ? md_widened(in) : *in;
  const dim3 block = block_of(&from);
  const coefficients factors = coefficients_of(factor, in->n_rhs, from);
  const bool from_double = alike && in->precision == MD_DOUBLE;
  if (from_double && out->precision == MD_SINGLE)
    launch_narrow<float, double>(&to, factors, &from);
  else if (from_double && out->precision == MD_HALF)
    launch_narrow<__half, double>(&to, factors, &from);
  else if (alike && in->precision == MD_SINGLE && out->precision == MD_HALF)
    launch_narrow<__half, float>(&to, factors, &from);
  else
    convert<<<all_blocks(&from, block), block, 0, md_stream()>>>(view_of(&to), factors,
                                                                 view_of(&from));
  return md_cuda_launched(context, "conversion of a field");
}

/* out += factor in */
template <bool ONE, int C>
static __global__ void add_single(linear_view<double> out, coefficients factor,
                                  linear_view<float> in, int64_t sites, int n_rhs, int pairs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  store_site<ONE, C>(out, at, pairs, [&](double(&v)[1][C], int g) {
    float u[1][C];
    double w[1][C];
    load_piece<ONE>(from_pair<ONE, C>(in, at, g), at, u);
    load_piece<ONE>(from_pair<ONE, C>(out, at, g), at, v);
#pragma unroll
    for (int c = 0; c < C; c++) w[0][c] = u[0][c];
    add_times<ONE>(v, factor.of, at, w);
  });
}

extern "C" md_status md_device_add_single(md_context *context, md_field *out, const double *factor,
                                          const md_field *in) {
  const md_field u = md_widened(in), v = md_widened(out);
  const dim3 block = block_of(&u);
  with_layout(&u, [&](auto one, auto reals) {
    add_single<one(), reals()><<<all_blocks(&u, block), block, 0, md_stream()>>>(
        linear_view_of<double>(&v), coefficients_of(factor, in->n_rhs, u),
        linear_view_of<float>(&u), u.sites, u.n_rhs, u.components / 2);
  });
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

/* A thread for each real of the array, whose order is that of the sites of both parities together.
 */
template <bool OUT>
static __global__ void copy_array(field_view even, field_view odd, double *array, int lx, int ly,
                                  int lz, int64_t count) {
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= count) return;
  const int64_t volume = 2 * even.sites, element = e / even.components;
  const int64_t place = element % volume, row = place / lx;
  const int64_t sum = place % lx + row % ly + row / ly % lz + row / ly / lz;
  const field_view &f = sum & 1 ? odd : even;
  double *there = (double *)f.data +
                  index_of(f, place / 2, (int)(e % even.components), (int)(element / volume));
  *(OUT ? array + e : there) = *(OUT ? there : array + e);
}

extern "C" md_status md_device_array(md_context *context, md_field *of, double *array, bool out) {
  const int *l = of->geometry->local;
  const int64_t count = of->geometry->local_volume * of->components * of->n_rhs;
  cudaPointerAttributes lies = {};
  if (cudaPointerGetAttributes(&lies, array) != cudaSuccess) cudaGetLastError();
  const bool on_device = lies.type == cudaMemoryTypeDevice || lies.type == cudaMemoryTypeManaged;
  if (!on_device || lies.device != context->gpu.number)
    return md_fail(context, MD_INPUT,
                   "an array must be memory of GPU %d, on which the context works, got that of %s",
                   context->gpu.number, on_device ? "another GPU" : "the host");
  MD_TRY(md_cuda_status(context, cudaDeviceSynchronize(), "work on an array"));
  (out ? copy_array<true>
       : copy_array<false>)<<<(unsigned)((count + 255) / 256), 256, 0, md_stream()>>>(
      view_of(&of[MD_EVEN]), view_of(&of[MD_ODD]), array, l[0], l[1], l[2], count);
  MD_TRY(md_cuda_launched(context, "copy of an array"));
  return md_device_synchronise(context);
}

/* Columns: a block of threads turns a tile of 16 sites, 16 columns and six components in shared
 * memory, so that it reads and writes whole lines on both sides. */
namespace turning {

constexpr int THREADS = 256, SITES = 16, COLUMNS = 16, COMPONENTS = MD_WHOLE;
constexpr int TILE = SITES * COLUMNS * COMPONENTS;

struct column_pointers {
  double *of[MD_MAX_RHS];
};

/* Element e of a tile as it lies in columns, site fastest, and in the block: part, column, pair,
 * site. */
struct place {
  int s, c, r;
};
static __device__ inline place in_columns(int e) {
  return {e % SITES, e / SITES % COMPONENTS, e / (SITES * COMPONENTS)};
}
static __device__ inline place in_block(int e) {
  const int pair = e / (2 * COLUMNS) % (COMPONENTS / 2);
  return {e / (COLUMNS * COMPONENTS), 2 * pair + e % 2, e / 2 % COLUMNS};
}

/* `count` columns are there; a join sets the others of the block's n to zero. C: components of a
 * site where the compiler knows them, or 0. */
template <bool JOIN, int C>
static __global__ void __launch_bounds__(THREADS)
    turn(double *block, int n, column_pointers columns, int count, int64_t site_step,
         int64_t component_step, int64_t sites, int all) {
  __shared__ double tile[COLUMNS][COMPONENTS][SITES + 1];
  const int64_t site = (int64_t)blockIdx.x * SITES;
  const int first = (int)blockIdx.y * COLUMNS, from = C ? 0 : (int)blockIdx.z * COMPONENTS;
  const int components = C ? C : all;
  const auto in_range = [&](const place &p, int most) {
    return first + p.r < most && site + p.s < sites && (C || from + p.c < components);
  };
  const auto column = [&](const place &p) {
    return columns.of[first + p.r] + (from + p.c) * component_step + (site + p.s) * site_step;
  };
  const auto of_block = [&](const place &p) {
    const int64_t row = (site + p.s) * (components / 2) + (from + p.c) / 2;
    return block + (row * n + first + p.r) * 2 + p.c % 2;
  };
  for (int e = threadIdx.x; e < TILE; e += THREADS) {
    const place p = JOIN ? in_columns(e) : in_block(e);
    tile[p.r][p.c][p.s] = in_range(p, count) ? *(JOIN ? column(p) : of_block(p)) : 0.0;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < TILE; e += THREADS) {
    const place p = JOIN ? in_block(e) : in_columns(e);
    if (in_range(p, JOIN ? n : count)) *(JOIN ? of_block(p) : column(p)) = tile[p.r][p.c][p.s];
  }
}

template <bool JOIN>
static md_status launch(md_context *context, int count, const md_field *columns,
                        const md_field *block) {
  column_pointers pointers = {};
  for (int r = 0; r < count; r++) pointers.of[r] = (double *)columns[r].data;
  const int wanted = JOIN ? block->n_rhs : count;
  const dim3 grid((unsigned)((block->sites + SITES - 1) / SITES),
                  (unsigned)((wanted + COLUMNS - 1) / COLUMNS),
                  (unsigned)((block->components + COMPONENTS - 1) / COMPONENTS));
  if (wanted == 0) return MD_OK;
  const auto kernel = block->components == COMPONENTS ? turn<JOIN, COMPONENTS> : turn<JOIN, 0>;
  const bool planar = count > 0 && md_field_planar(&columns[0]);
  kernel<<<grid, THREADS, 0, md_stream()>>>(
      (double *)block->data, block->n_rhs, pointers, count, planar ? 1 : block->components,
      planar ? columns[0].stride : 1, block->sites, block->components);
  return md_cuda_launched(context, "a copy between vectors and a block of them");
}

} // namespace turning

extern "C" md_status md_device_join(md_context *context, int count, const md_field *columns,
                                    md_field *block) {
  return turning::launch<true>(context, count, columns, block);
}

extern "C" md_status md_device_split(md_context *context, const md_field *block, int count,
                                     md_field *columns) {
  return turning::launch<false>(context, count, columns, block);
}
