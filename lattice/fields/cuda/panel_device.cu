/* The device side of panel.h. A block of threads takes sites in chunks: it brings a tile of the
 * many vectors to shared memory as complex doubles, whatever their precision, and multiplies it
 * with all that the few need of it, so that each number of the many is read once for 16 of the few.
 */
#include "lattice/fields/cuda/unit_sum.cuh"

#include "base/device.cuh"
#include "lattice/fields/cuda/storage.cuh"

extern "C" {
#include "lattice/fields/panel_space.h"
}
#include <new>

namespace {

constexpr int THREADS = 256;
constexpr int VECTORS = 32, SITES = 16, COLUMNS = 16; /* of a tile */
constexpr int COLOURS = 3, COMPONENTS = 6;

/* The many: pointers in device memory. */
template <class S> struct vectors {
  const S *const *data;
  const float *const *scale;
  int64_t stride, sites;
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

template <class S>
static __device__ inline void load_tile(const vectors<S> &x, int first, int64_t site, tile &to) {
  for (int e = threadIdx.x; e < VECTORS * COMPONENTS * SITES; e += THREADS) {
    const int s = e % SITES, c = e / SITES % COMPONENTS, k = e / (SITES * COMPONENTS);
    double value = 0.0;
    if (first + k < x.count && site + s < x.sites) {
      value = (double)load_real(x.data[first + k][c * x.stride + site + s]);
      if constexpr (is_scaled<S>) value *= (double)x.scale[first + k][site + s];
    }
    ((double *)&to.of[k][c / 2][s])[c % 2] = value;
  }
}

static __device__ inline double2 load_number(const columns &y, int r, int64_t site, int colour) {
  const double *at = y.data[r] + site * y.site_step + colour * y.colour_step;
  return make_double2(at[0], at[y.part_step]);
}

/* Adds to sums[4 (k n + r)] what panel_space.h says; r: columns of a tile, a power of two. */
template <class S>
static __global__ void __launch_bounds__(THREADS)
    multiply_columns(vectors<S> x, columns y, int r, const sum_units *units, double *sums) {
  __shared__ tile xs;
  __shared__ double2 ys[SITES][COLOURS][COLUMNS];
  const int first = blockIdx.y * VECTORS, column = blockIdx.z * r + column_of(r);
  const int k = threadIdx.x / COLUMNS;
  const sum_units u = units[column < y.count ? column : 0];
  unit_adder<> sum[2][2]; /* of vectors k and k + 16: real and imaginary part */
#pragma unroll
  for (int m = 0; m < 4; m++) sum[m / 2][m % 2].begin(u);
  for (int64_t site = (int64_t)blockIdx.x * SITES; site < x.sites;
       site += (int64_t)gridDim.x * SITES) {
    load_tile(x, first, site, xs);
    for (int e = threadIdx.x; e < SITES * COLOURS * r; e += THREADS) {
      const int i = e % r, c = e / r % COLOURS, s = e / r / COLOURS, at = blockIdx.z * r + i;
      const bool there = at < y.count && site + s < x.sites;
      ys[s][c][i] = there ? load_number(y, at, site + s, c) : make_double2(0.0, 0.0);
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
template <class S>
static __global__ void __launch_bounds__(THREADS)
    add_columns(vectors<S> x, columns y, int r, const double2 *c, bool assign) {
  __shared__ tile xs;
  __shared__ double2 cs[VECTORS][COLUMNS];
  const int column = blockIdx.z * r + column_of(r), s = threadIdx.x / COLUMNS;
  for (int64_t site = (int64_t)blockIdx.x * SITES; site < x.sites;
       site += (int64_t)gridDim.x * SITES) {
    double2 sum[COLOURS] = {};
    for (int first = 0; first < x.count; first += VECTORS) {
      load_tile(x, first, site, xs);
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
      double *to = y.data[column] + (site + s) * y.site_step + i * y.colour_step;
      to[0] = assign ? sum[i].x : to[0] + sum[i].x;
      to[y.part_step] = assign ? sum[i].y : to[y.part_step] + sum[i].y;
    }
  }
}

/* What a call needs on the device, in one piece: pointers, then what the kernel reads, then what it
 * writes; the host's copy of the first two. */
struct call_space {
  char *device, *host;
  size_t bytes, used;
  int multiprocessors; /* of the GPU */
};

cudaError_t make_space(const md_context *context, call_space *s, size_t host_bytes, size_t more) {
  s->multiprocessors = context->gpu.multiprocessors;
  s->used = 0;
  s->bytes = host_bytes;
  s->device = NULL;
  s->host = new (std::nothrow) char[host_bytes];
  if (!s->host) return cudaErrorMemoryAllocation;
  return cudaMallocAsync((void **)&s->device, host_bytes + more, md_stream());
}

/* Parts begin at multiples of 16 bytes. */
size_t part_bytes(size_t count, size_t bytes) {
  return (count * bytes + 15) / 16 * 16;
}

/* The next part of the host's copy, and where it will be on the device. */
template <class T> T *next_part(call_space *s, size_t count, T **device) {
  T *host = (T *)(s->host + s->used);
  *device = (T *)(s->device + s->used);
  s->used += part_bytes(count, sizeof(T));
  return host;
}

cudaError_t upload(const call_space *s) {
  return cudaMemcpyAsync(s->device, s->host, s->bytes, cudaMemcpyHostToDevice, md_stream());
}

cudaError_t end(call_space *s, cudaError_t error) {
  if (s->device) cudaFreeAsync(s->device, md_stream());
  if (error == cudaSuccess) error = cudaStreamSynchronize(md_stream());
  delete[] s->host;
  return error == cudaSuccess ? cudaPeekAtLastError() : error;
}

template <class S> vectors<S> put_vectors(call_space *s, int count, const md_field *x) {
  const S **data;
  const float **scale;
  const S **host_data = next_part(s, count, &data);
  for (int k = 0; k < count; k++) host_data[k] = (const S *)x[k].data;
  const float **host_scale = next_part(s, count, &scale);
  for (int k = 0; k < count; k++) host_scale[k] = x[k].scale;
  return {data, scale, x->stride, x->sites, count};
}

columns put_columns(call_space *s, int fields, md_field *y) {
  const int n = y->n_rhs, count = n == 1 ? fields : n;
  double **data, **host = next_part(s, count, &data);
  for (int i = 0; i < count; i++)
    host[i] = n == 1 ? (double *)y[i].data : (double *)y->data + 2 * i;
  if (n == 1) return {data, 1, 2 * y->stride, y->stride, count};
  return {data, 2 * COLOURS * (int64_t)n, 2 * (int64_t)n, 1, count};
}

/* Columns of a tile: the smallest power of two that holds them, COLUMNS at most. */
int tile_columns(int count) {
  int r = 1;
  while (r < count && r < COLUMNS) r *= 2;
  return r;
}

dim3 grid_of(const call_space *s, int64_t sites, int tiles, int column_tiles) {
  const int64_t chunks = (sites + SITES - 1) / SITES;
  const int64_t wanted = 8 * (int64_t)s->multiprocessors / (tiles * column_tiles) + 1;
  return dim3((unsigned)(chunks < wanted ? chunks : wanted), (unsigned)tiles,
              (unsigned)column_tiles);
}

template <class S> struct panel {
  static cudaError_t dots(call_space *s, int count, const md_field *x, md_field *y,
                          const md_panel_units *units, double *sums) {
    const vectors<S> many = put_vectors<S>(s, count, x);
    const columns few = put_columns(s, 1, y);
    sum_units *device_units, *host_units = next_part(s, few.count, &device_units);
    for (int i = 0; i < few.count; i++) host_units[i] = {units[i].high, units[i].low};
    double *to = (double *)(s->device + s->bytes);
    const size_t bytes = 4 * (size_t)count * few.count * sizeof *sums;
    const int r = tile_columns(few.count);
    const cudaError_t error = upload(s);
    if (error != cudaSuccess) return error;
    cudaMemsetAsync(to, 0, bytes, md_stream());
    multiply_columns<S>
        <<<grid_of(s, x->sites, (count + VECTORS - 1) / VECTORS, (few.count + r - 1) / r), THREADS,
           0, md_stream()>>>(many, few, r, device_units, to);
    return cudaMemcpyAsync(sums, to, bytes, cudaMemcpyDeviceToHost, md_stream());
  }
  static cudaError_t add(call_space *s, int count, const md_field *x, const double *c, int fields,
                         md_field *y, bool assign) {
    const vectors<S> many = put_vectors<S>(s, count, x);
    const columns few = put_columns(s, fields, y);
    double2 *device_c, *host_c = next_part(s, (size_t)count * few.count, &device_c);
    memcpy(host_c, c, (size_t)count * few.count * sizeof *host_c);
    const int r = tile_columns(few.count);
    const cudaError_t error = upload(s);
    if (error != cudaSuccess) return error;
    add_columns<S><<<grid_of(s, x->sites, 1, (few.count + r - 1) / r), THREADS, 0, md_stream()>>>(
        many, few, r, device_c, assign);
    return cudaSuccess;
  }
};

/* Bytes of the pointers of a call. */
size_t pointer_bytes(int count, int few) {
  return 2 * part_bytes(count, sizeof(void *)) + part_bytes(few, sizeof(void *));
}

md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
               const md_panel_units *units, double *sums) {
  call_space s;
  const size_t few = (size_t)y->n_rhs, products = 4 * (size_t)count * few;
  cudaError_t error =
      make_space(context, &s, pointer_bytes(count, y->n_rhs) + few * sizeof(sum_units),
                 products * sizeof *sums);
  md_field *of = (md_field *)y; /* which is not written */
  if (error == cudaSuccess) switch (x->precision) {
    case MD_DOUBLE:
      error = panel<double>::dots(&s, count, x, of, units, sums);
      break;
    case MD_SINGLE:
      error = panel<float>::dots(&s, count, x, of, units, sums);
      break;
    case MD_HALF:
      error = panel<__half>::dots(&s, count, x, of, units, sums);
      break;
    case MD_BF16:
      error = panel<__nv_bfloat16>::dots(&s, count, x, of, units, sums);
      break;
    default:
      error = panel<fixed16>::dots(&s, count, x, of, units, sums);
    }
  error = end(&s, error);
  for (size_t i = 0; error != cudaSuccess && i < products; i++) sums[i] = NAN;
  return md_cuda_status(context, error, "inner products of many vectors");
}

md_status add(md_context *context, int count, const md_field *x, const double *c, int fields,
              md_field *y, bool assign) {
  call_space s;
  const int few = y->n_rhs == 1 ? fields : y->n_rhs;
  cudaError_t error = make_space(
      context, &s, pointer_bytes(count, few) + (size_t)count * (size_t)few * sizeof(double2), 0);
  if (error == cudaSuccess) switch (x->precision) {
    case MD_DOUBLE:
      error = panel<double>::add(&s, count, x, c, fields, y, assign);
      break;
    case MD_SINGLE:
      error = panel<float>::add(&s, count, x, c, fields, y, assign);
      break;
    case MD_HALF:
      error = panel<__half>::add(&s, count, x, c, fields, y, assign);
      break;
    case MD_BF16:
      error = panel<__nv_bfloat16>::add(&s, count, x, c, fields, y, assign);
      break;
    default:
      error = panel<fixed16>::add(&s, count, x, c, fields, y, assign);
    }
  return md_cuda_status(context, end(&s, error), "a sum of many vectors");
}

} // namespace

extern "C" const md_panel_space md_panel_device = {dots, add};
