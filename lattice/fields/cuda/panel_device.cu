/* The device side of panel.h. A block of threads takes sites in chunks: it brings a tile of the
 * many vectors to shared memory as complex doubles, whatever their precision, and multiplies it
 * with all that the few need of it, so that each number of the many is read once for 16 of the few.
 */
#include "lattice/fields/cuda/unit_sum.cuh"

#include "base/device.cuh"
#include "lattice/fields/cuda/storage.cuh"

extern "C" {
#include "lattice/fields/spaces.h"
}
#include <new>

namespace {

constexpr int THREADS = 256;
constexpr int VECTORS = 32, SITES = 16, COLUMNS = 16; /* of a tile */
constexpr int COLOURS = 3, COMPONENTS = 6;            /* of a site that a tile has at once */

/* The many: pointers in device memory. */
template <class S> struct vectors {
  const S *const *data;
  const float *const *scale;
  int64_t site_step, component_step, sites;
  int count;
};

/* The few: real `part` of `colour` at a site is part * part_step + ... away from its column. */
struct columns {
  double *const *data;
  int64_t site_step, colour_step, part_step;
  int count;
};

struct tile {
  double2 of[VECTORS][COLOURS][SITES + 1]; /* one more: columns of banks apart */
};

/* Threads of a tile: columns next to each other, R of them, then the parts of what they share. */
static __device__ inline int column_of(int r) {
  return threadIdx.x % r;
}
static __device__ inline int part_of(int r) {
  return threadIdx.x / r % (COLUMNS / r);
}

/* Components from `from` on of `all`; WHOLE: there are no more than a tile has. */
template <bool WHOLE, class S>
static __device__ inline void load_tile(const vectors<S> &x, int first, int64_t site, int from,
                                        int all, tile &to) {
  for (int e = threadIdx.x; e < VECTORS * COMPONENTS * SITES; e += THREADS) {
    const int s = e % SITES, c = e / SITES % COMPONENTS, k = e / (SITES * COMPONENTS);
    double value = 0.0;
    if (first + k < x.count && site + s < x.sites && (WHOLE || from + c < all)) {
      const int64_t at = (WHOLE ? c : from + c) * x.component_step + (site + s) * x.site_step;
      value = (double)load_real(x.data[first + k][at]);
      if constexpr (is_scaled<S>) value *= (double)x.scale[first + k][site + s];
    }
    ((double *)&to.of[k][c / 2][s])[c % 2] = value;
  }
}

static __device__ inline double2 load_number(const columns &y, int r, int64_t site, int colour) {
  const double *at = y.data[r] + site * y.site_step + colour * y.colour_step;
  return make_double2(at[0], at[y.part_step]);
}

/* Adds to sums[4 (k n + r)] what spaces.h says; r: columns of a tile, a power of two. */
template <class S, bool WHOLE>
static __global__ void __launch_bounds__(THREADS)
    multiply_columns(vectors<S> x, columns y, int r, const sum_units *units, double *sums,
                     int components) {
  __shared__ tile xs;
  __shared__ double2 ys[SITES][COLOURS][COLUMNS];
  const int first = blockIdx.y * VECTORS, column = blockIdx.z * r + column_of(r);
  const int k = threadIdx.x / COLUMNS;
  const sum_units u = units[column < y.count ? column : 0];
  unit_adder<> sum[2][2]; /* of vectors k and k + 16: real and imaginary part */
#pragma unroll
  for (int m = 0; m < 4; m++) sum[m / 2][m % 2].begin(u);
  for (int64_t site = (int64_t)blockIdx.x * SITES; site < x.sites;
       site += (int64_t)gridDim.x * SITES)
    for (int from = 0; from < (WHOLE ? 1 : components); from += COMPONENTS) {
      load_tile<WHOLE>(x, first, site, from, components, xs);
      for (int e = threadIdx.x; e < SITES * COLOURS * r; e += THREADS) {
        const int i = e % r, c = e / r % COLOURS, s = e / r / COLOURS, at = blockIdx.z * r + i;
        const bool there =
            at < y.count && site + s < x.sites && (WHOLE || from + 2 * c < components);
        ys[s][c][i] = there ? load_number(y, at, site + s, from / 2 + c) : make_double2(0.0, 0.0);
      }
      __syncthreads();
      for (int s = part_of(r); s < SITES; s += COLUMNS / r) {
#pragma unroll
        for (int m = 0; m < 2; m++) {
          double re = 0.0, im = 0.0;
#pragma unroll
          for (int c = 0; c < COLOURS; c++) {
            const double2 v = xs.of[k + m * THREADS / COLUMNS][c][s], w = ys[s][c][column_of(r)];
            re += v.x * w.x + v.y * w.y;
            im += v.x * w.y - v.y * w.x;
          }
          sum[m][0].add(re);
          sum[m][1].add(im);
        }
      }
      __syncthreads();
    }
#pragma unroll
  for (int m = 0; m < 4; m++) {
    const int vector = first + k + m / 2 * THREADS / COLUMNS;
    unit_sum s = sum[m / 2][m % 2].sum(u);
    for (int distance = r; distance < COLUMNS; distance *= 2) { /* over the parts */
      s.high += __shfl_xor_sync(0xffffffffu, s.high, distance);
      s.low += __shfl_xor_sync(0xffffffffu, s.low, distance);
    }
    if (part_of(r) > 0 || vector >= x.count || column >= y.count) continue;
    double *to = sums + 4 * ((int64_t)vector * y.count + column) + 2 * (m % 2);
    atomicAdd(to, s.high); /* exact: it does not matter which block comes first */
    atomicAdd(to + 1, s.low);
  }
}

/* Columns += (or =) the vectors times c, [vector][column]. Sums over vectors in a fixed order. */
template <class S, bool WHOLE>
static __global__ void __launch_bounds__(THREADS)
    add_columns(vectors<S> x, columns y, int r, const double2 *c, bool assign, int components) {
  __shared__ tile xs;
  __shared__ double2 cs[VECTORS][COLUMNS];
  const int column = blockIdx.z * r + column_of(r), s = threadIdx.x / COLUMNS;
  for (int64_t site = (int64_t)blockIdx.x * SITES; site < x.sites;
       site += (int64_t)gridDim.x * SITES)
    for (int from = 0; from < (WHOLE ? 1 : components); from += COMPONENTS) {
      double2 sum[COLOURS] = {};
      for (int first = 0; first < x.count; first += VECTORS) {
        load_tile<WHOLE>(x, first, site, from, components, xs);
        for (int e = threadIdx.x; e < VECTORS * r; e += THREADS) {
          const int k = first + e / r, at = blockIdx.z * r + e % r;
          const bool there = k < x.count && at < y.count;
          cs[e / r][e % r] = there ? c[(int64_t)k * y.count + at] : make_double2(0.0, 0.0);
        }
        __syncthreads();
        for (int k = part_of(r); k < VECTORS; k += COLUMNS / r) {
          const double2 a = cs[k][column_of(r)];
#pragma unroll
          for (int i = 0; i < COLOURS; i++) {
            const double2 v = xs.of[k][i][s];
            sum[i].x += a.x * v.x - a.y * v.y;
            sum[i].y += a.x * v.y + a.y * v.x;
          }
        }
        __syncthreads();
      }
#pragma unroll
      for (int i = 0; i < COLOURS; i++) {
        for (int distance = r; distance < COLUMNS; distance *= 2) {
          sum[i].x += __shfl_xor_sync(0xffffffffu, sum[i].x, distance);
          sum[i].y += __shfl_xor_sync(0xffffffffu, sum[i].y, distance);
        }
        if (part_of(r) > 0 || column >= y.count || site + s >= x.sites) continue;
        if (!WHOLE && from + 2 * i >= components) continue;
        double *to = y.data[column] + (site + s) * y.site_step + (from / 2 + i) * y.colour_step;
        to[0] = assign ? sum[i].x : to[0] + sum[i].x;
        to[y.part_step] = assign ? sum[i].y : to[y.part_step] + sum[i].y;
      }
    }
}

/* What a call needs on the device, in one piece, which the host fills: 16 bytes for each number of
 * the payload, pointers to the data of the many, to their scales and to the few; behind it what the
 * kernel writes. */
struct call {
  size_t payload_bytes, bytes;
  int count;
  char *device;
  columns few;
};

cudaError_t open(call *s, int count, const md_field *x, int fields, const md_field *y,
                 size_t payload, const void *from, size_t more) {
  const int n = y->n_rhs, pairs = y->components / 2;
  const size_t few = n == 1 ? fields : n, pointers = 2 * (size_t)count + few;
  *s = {16 * payload, 16 * payload + (pointers + 1) / 2 * 16, count, NULL, {}};
  char *host = new (std::nothrow) char[s->bytes];
  if (!host) return cudaErrorMemoryAllocation;
  void **at = (void **)(host + s->payload_bytes);
  memcpy(host, from, s->payload_bytes);
  for (int k = 0; k < count; k++) at[k] = x[k].data, at[count + k] = x[k].scale;
  for (size_t i = 0; i < few; i++)
    at[2 * count + i] = n == 1 ? (double *)y[i].data : (double *)y->data + 2 * i;
  cudaError_t error = cudaMallocAsync((void **)&s->device, s->bytes + more, md_stream());
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(s->device, host, s->bytes, cudaMemcpyHostToDevice, md_stream());
  delete[] host; /* pageable: it has been read */
  double *const *data = (double *const *)(s->device + s->payload_bytes) + 2 * count;
  if (md_field_planar(y))
    s->few = {data, 1, 2 * y->stride, y->stride, (int)few};
  else
    s->few = {data, 2 * pairs * (int64_t)n, 2 * (int64_t)n, 1, (int)few};
  return error;
}

template <class S> vectors<S> many_of(const call &s, const md_field *x) {
  const S *const *data = (const S *const *)(s.device + s.payload_bytes);
  const bool planar = md_field_planar(x);
  return {data,
          (const float *const *)(data + s.count),
          planar ? 1 : x->components,
          planar ? x->stride : 1,
          x->sites,
          s.count};
}

cudaError_t end(call *s, cudaError_t error) {
  if (s->device) cudaFreeAsync(s->device, md_stream());
  if (error == cudaSuccess) error = cudaStreamSynchronize(md_stream());
  return error == cudaSuccess ? cudaPeekAtLastError() : error;
}

/* Columns of a tile: the smallest power of two that holds them, COLUMNS at most. */
int tile_columns(int count) {
  int r = 1;
  while (r < count && r < COLUMNS) r *= 2;
  return r;
}

dim3 grid_of(const md_context *context, int64_t sites, int tiles, int columns) {
  const int column_tiles = (columns - 1) / tile_columns(columns) + 1;
  const int64_t chunks = (sites + SITES - 1) / SITES;
  const int64_t wanted = 8 * (int64_t)context->gpu.multiprocessors / (tiles * column_tiles) + 1;
  return dim3((unsigned)(chunks < wanted ? chunks : wanted), (unsigned)tiles,
              (unsigned)column_tiles);
}

md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
               const md_panel_units *units, double *sums) {
  static_assert(sizeof *units == 16 && sizeof(sum_units) == 16, "read as each other");
  const size_t few = (size_t)y->n_rhs, products = 4 * (size_t)count * few;
  call s;
  cudaError_t error = open(&s, count, x, 1, y, few, units, products * sizeof *sums);
  double *to = (double *)(s.device + s.bytes);
  if (error == cudaSuccess) {
    cudaMemsetAsync(to, 0, products * sizeof *sums, md_stream());
    with_type(x->precision, [&](auto type) {
      using S = decltype(type);
      const auto kernel =
          y->components == COMPONENTS ? multiply_columns<S, true> : multiply_columns<S, false>;
      kernel<<<grid_of(context, x->sites, (count + VECTORS - 1) / VECTORS, s.few.count), THREADS, 0,
               md_stream()>>>(many_of<S>(s, x), s.few, tile_columns(s.few.count),
                              (sum_units *)s.device, to, y->components);
    });
    error = cudaMemcpyAsync(sums, to, products * sizeof *sums, cudaMemcpyDeviceToHost, md_stream());
  }
  error = end(&s, error);
  for (size_t i = 0; error != cudaSuccess && i < products; i++) sums[i] = NAN;
  return md_cuda_status(context, error, "inner products of many vectors");
}

md_status add(md_context *context, int count, const md_field *x, const double *c, int fields,
              md_field *y, bool assign) {
  const size_t few = y->n_rhs == 1 ? fields : y->n_rhs;
  call s;
  const cudaError_t error = open(&s, count, x, fields, y, count * few, c, 0);
  if (error == cudaSuccess)
    with_type(x->precision, [&](auto type) {
      using S = decltype(type);
      const auto kernel =
          y->components == COMPONENTS ? add_columns<S, true> : add_columns<S, false>;
      kernel<<<grid_of(context, x->sites, 1, s.few.count), THREADS, 0, md_stream()>>>(
          many_of<S>(s, x), s.few, tile_columns(s.few.count), (double2 *)s.device, assign,
          y->components);
    });
  return md_cuda_status(context, end(&s, error), "a sum of many vectors");
}

} // namespace

extern "C" const md_panel_space md_panel_device = {dots, add};
