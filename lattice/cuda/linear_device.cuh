#ifndef MD_LATTICE_CUDA_LINEAR_DEVICE_CUH
#define MD_LATTICE_CUDA_LINEAR_DEVICE_CUH

#include "base/device.cuh"
#include "lattice/cuda/reduce.cuh"
#include "lattice/cuda/storage.cuh"

extern "C" {
#include "lattice/linear_table.h"
#include "lattice/sum.h"
}
#include <math.h>

/* Vector operations on the device for one storage type S; beside 16-bit operands others may be
 * float. Thread (r, i) of a block has right-hand side r of the block's i-th site. Sums: each block
 * adds its threads in a fixed order, one block adds the blocks in a fixed order, so that a run
 * repeats its bits. */

template <class S> struct linear_view {
  S *data;
  float *scale;
  int64_t stride;
  float *wide; /* the data of an operand in MD_SINGLE beside 16-bit ones, else NULL */
};
template <class S> static linear_view<S> linear_view_of(const md_field *f) {
  if (sizeof(S) == 2 && f->precision == MD_SINGLE) return {NULL, NULL, f->stride, (float *)f->data};
  return {(S *)f->data, f->scale, f->stride, NULL};
}

struct coefficients {
  double of[MD_MAX_RHS];
};
static coefficients coefficients_of(const double *a, int n_rhs) {
  coefficients c;
  for (int r = 0; r < n_rhs; r++) c.of[r] = a ? a[r] : 1.0;
  return c;
}

/* The six reals of a right-hand side at a site. */
template <class S, bool ONE>
static __device__ inline void load_six(const linear_view<S> &f, int64_t site, int n_rhs, int r,
                                       real_of<S> v[6]) {
  if constexpr (sizeof(S) == 2)
    if (f.wide) return load_six<float, ONE>({f.wide, NULL, f.stride, NULL}, site, n_rhs, r, v);
  const real_of<S> scale = is_scaled<S> ? f.scale[site] : 1.0f;
#pragma unroll
  for (int c = 0; c < 3; c++) {
    if constexpr (ONE) {
      v[2 * c] = load_real(f.data[2 * c * f.stride + site]);
      v[2 * c + 1] = load_real(f.data[(2 * c + 1) * f.stride + site]);
    } else {
      const vector_of<S, 2> z =
          *reinterpret_cast<const vector_of<S, 2> *>(f.data + ((site * 3 + c) * n_rhs + r) * 2);
      v[2 * c] = load_real(z.v[0]);
      v[2 * c + 1] = load_real(z.v[1]);
    }
  }
  if (is_scaled<S>)
#pragma unroll
    for (int c = 0; c < 6; c++) v[c] *= scale;
}

/* Stores them, v as they then read back; the threads of the block go through it together. */
template <class S, bool ONE>
static __device__ inline void store_six(const linear_view<S> &f, int64_t site, bool active,
                                        int n_rhs, int r, real_of<S> v[6]) {
  if constexpr (sizeof(S) == 2)
    if (f.wide)
      return store_six<float, ONE>({f.wide, NULL, f.stride, NULL}, site, active, n_rhs, r, v);
  real_of<S> inverse = 1.0f, scale = 1.0f;
  if constexpr (is_scaled<S>) {
    __shared__ float largest_of[1024];
    float largest = 0.0f;
#pragma unroll
    for (int c = 0; c < 6; c++) largest = larger(largest, v[c]);
    if constexpr (!ONE) {
      float *mine = largest_of + threadIdx.y * blockDim.x;
      __syncthreads();
      mine[threadIdx.x] = largest;
      __syncthreads();
      for (int j = 0; j < (int)blockDim.x; j++) largest = larger(largest, mine[j]);
    }
    scale = scale_of<S>(largest);
    inverse = inverse_of_scale<S>(scale);
    if (active && r == 0) f.scale[site] = scale;
  }
  S stored[6];
#pragma unroll
  for (int c = 0; c < 6; c++) {
    stored[c] = store_real<S>(v[c] * inverse);
    v[c] = load_real(stored[c]) * scale;
  }
  if (!active) return;
#pragma unroll
  for (int c = 0; c < 3; c++) {
    if constexpr (ONE) {
      f.data[2 * c * f.stride + site] = stored[2 * c];
      f.data[(2 * c + 1) * f.stride + site] = stored[2 * c + 1];
    } else {
      *reinterpret_cast<vector_of<S, 2> *>(f.data + ((site * 3 + c) * n_rhs + r) *
                                                        2) = {{stored[2 * c], stored[2 * c + 1]}};
    }
  }
}

/* Adds the threads of a block for each right-hand side: partial[r * most + block]. */
template <bool ONE>
static __device__ inline void add_block(double value, double *partial, int most, int block) {
  if constexpr (ONE) {
    value = add_threads(value);
    if (threadIdx.y == 0) partial[block] = value;
  } else {
    extern __shared__ double sums[];
    double *mine = sums + threadIdx.x;
    const int width = (int)blockDim.x;
    mine[threadIdx.y * width] = value;
    for (int left = (int)blockDim.y; left > 1; left = (left + 1) / 2) {
      __syncthreads();
      const int other = (int)threadIdx.y + (left + 1) / 2;
      if (other < left) mine[threadIdx.y * width] += mine[other * width];
    }
    if (threadIdx.y == 0) partial[(int64_t)threadIdx.x * most + block] = mine[0];
  }
}

/* values[r] = the sum of r's partial sums; one block each. */
static __global__ void add_partials(const double *partial, int count, double *values) {
  double sum = 0.0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[blockIdx.x * count + i];
  sum = add_threads(sum);
  if (threadIdx.x == 0) values[blockIdx.x] = sum;
}

enum linear_operation { COMBINE, COMBINE_COMPLEX, COMBINE_NORM2, DOT, DOT_IMAGINARY };

static __host__ __device__ constexpr bool is_dot(linear_operation op) {
  return op == DOT || op == DOT_IMAGINARY;
}
static __host__ __device__ constexpr bool is_sum(linear_operation op) {
  return is_dot(op) || op == COMBINE_NORM2;
}
/* i times six reals. */
template <class T> static __device__ inline T turned(const T v[6], int c) {
  return c % 2 ? v[c - 1] : -v[c + 1];
}

/* COMBINE: y = a x + b y; COMBINE_COMPLEX: y = (a + i b) x + y; COMBINE_NORM2: as COMBINE, and
 * |y|^2; DOT: Re <x, y>; DOT_IMAGINARY: Im <x, y> = Re <i x, y>. */
template <class X, class Y, bool ONE, linear_operation OP>
static __global__ void combine(coefficients a, coefficients b, linear_view<X> x, linear_view<Y> y,
                               int64_t sites, int n_rhs, double *partial) {
  using T = real_of<X>;
  const int r = threadIdx.x;
  double sum = 0.0;
  for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < sites;
       first += (int64_t)gridDim.x * blockDim.y) {
    const bool active = first + threadIdx.y < sites;
    const int64_t site = active ? first + threadIdx.y : sites - 1;
    T u[6], v[6];
    load_six<X, ONE>(x, site, n_rhs, r, u);
    load_six<Y, ONE>(y, site, n_rhs, r, v);
    if constexpr (!is_dot(OP)) {
      const T left = (T)a.of[r], right = (T)b.of[r];
#pragma unroll
      for (int c = 0; c < 6; c++)
        v[c] = OP == COMBINE_COMPLEX ? v[c] + left * u[c] + right * turned(u, c)
                                     : left * u[c] + right * v[c];
      store_six<Y, ONE>(y, site, active, n_rhs, r, v);
    }
    if (is_sum(OP) && active)
#pragma unroll
      for (int c = 0; c < 6; c++)
        sum += (double)(OP == DOT             ? u[c]
                        : OP == DOT_IMAGINARY ? turned(u, c)
                                              : v[c]) *
               (double)v[c];
  }
  if constexpr (is_sum(OP)) add_block<ONE>(sum, partial, gridDim.x, blockIdx.x);
}

/* x += a p; p = r + b p */
template <class S, class W, bool ONE>
static __global__ void cg_step(coefficients a, coefficients b, linear_view<W> residual,
                               linear_view<S> p, linear_view<W> x, int64_t sites, int n_rhs) {
  using T = real_of<S>;
  const int r = threadIdx.x;
  const int64_t first = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const bool active = first < sites;
  const int64_t site = active ? first : sites - 1;
  T u[6], v[6], w[6];
  load_six<W, ONE>(residual, site, n_rhs, r, u);
  load_six<S, ONE>(p, site, n_rhs, r, v);
  load_six<W, ONE>(x, site, n_rhs, r, w);
  const T alpha = (T)a.of[r], beta = (T)b.of[r];
#pragma unroll
  for (int c = 0; c < 6; c++) {
    w[c] += alpha * v[c];
    v[c] = u[c] + beta * v[c];
  }
  store_six<W, ONE>(x, site, active, n_rhs, r, w);
  store_six<S, ONE>(p, site, active, n_rhs, r, v);
}

static dim3 block_of(const md_field *f) {
  const int sites = 256 / f->n_rhs;
  return dim3((unsigned)f->n_rhs, (unsigned)(sites > 0 ? sites : 1));
}
static unsigned all_blocks(const md_field *f, dim3 block) {
  return (unsigned)((f->sites + block.y - 1) / block.y);
}

template <class X, class Y, linear_operation OP>
static void launch_combine(const double *a, const md_field *x, const double *b, md_field *y,
                           unsigned blocks, double *partial) {
  const dim3 block = block_of(x);
  const size_t shared = !is_sum(OP) ? 0 : block.x * block.y * sizeof(double);
  const coefficients as = coefficients_of(a, x->n_rhs), bs = coefficients_of(b, x->n_rhs);
  const linear_view<X> u = linear_view_of<X>(x);
  const linear_view<Y> v = linear_view_of<Y>(y);
  if (x->n_rhs == 1)
    combine<X, Y, true, OP>
        <<<blocks, block, shared, md_stream()>>>(as, bs, u, v, x->sites, 1, partial);
  else
    combine<X, Y, false, OP>
        <<<blocks, block, shared, md_stream()>>>(as, bs, u, v, x->sites, x->n_rhs, partial);
}

/* By the operands' types: S, or float beside a 16-bit S. */
template <class S, linear_operation OP>
static void run_combine(const double *a, const md_field *x, const double *b, md_field *y,
                        unsigned blocks, double *partial) {
  if constexpr (sizeof(S) == 2) {
    if (x->precision == MD_SINGLE) return launch_combine<float, S, OP>(a, x, b, y, blocks, partial);
    if (y->precision == MD_SINGLE) return launch_combine<S, float, OP>(a, x, b, y, blocks, partial);
  }
  launch_combine<S, S, OP>(a, x, b, y, blocks, partial);
}

template <class S, class W>
static void launch_cg_step(const double *a, const double *b, const md_field *r, md_field *p,
                           md_field *x) {
  const dim3 block = block_of(x);
  const unsigned blocks = all_blocks(x, block);
  const coefficients as = coefficients_of(a, x->n_rhs), bs = coefficients_of(b, x->n_rhs);
  const linear_view<W> vr = linear_view_of<W>(r), vx = linear_view_of<W>(x);
  const linear_view<S> vp = linear_view_of<S>(p);
  if (x->n_rhs == 1)
    cg_step<S, W, true><<<blocks, block, 0, md_stream()>>>(as, bs, vr, vp, vx, x->sites, 1);
  else
    cg_step<S, W, false><<<blocks, block, 0, md_stream()>>>(as, bs, vr, vp, vx, x->sites, x->n_rhs);
}

/* values[q * n_rhs + r], the q-th of `quantities` sums, which `queue` leaves in blocks for a place
 * of its own; waits and adds over ranks. NaN when the device failed. */
template <class QUEUE>
static void reduce(const md_context *context, const md_field *x, int quantities, double *values,
                   QUEUE queue) {
  const unsigned most = 1056, all = all_blocks(x, block_of(x)), blocks = all < most ? all : most;
  const size_t n = (size_t)x->n_rhs, count = n * quantities;
  double *partial = NULL;
  cudaError_t error =
      cudaMallocAsync((void **)&partial, (blocks + 1) * count * sizeof(double), md_stream());
  if (error == cudaSuccess) {
    for (int q = 0; q < quantities; q++) queue(q, blocks, partial + q * blocks * n);
    add_partials<<<(unsigned)count, 256, 0, md_stream()>>>(partial, (int)blocks,
                                                           partial + blocks * count);
    cudaMemcpyAsync(values, partial + blocks * count, count * sizeof(double),
                    cudaMemcpyDeviceToHost, md_stream());
    cudaFreeAsync(partial, md_stream());
    error = cudaStreamSynchronize(md_stream());
  }
  if (error == cudaSuccess) error = cudaPeekAtLastError();
  for (size_t first = 0; first < count; first += n) {
    md_sum sums[MD_MAX_RHS] = {};
    for (size_t r = 0; r < n; r++)
      md_sum_add(&sums[r], error == cudaSuccess ? values[first + r] : NAN);
    md_sum_finish(context, sums, (int)n, values + first);
  }
}

/* One operation with a sum. */
template <class S, linear_operation OP>
static void reduce_one(const md_context *context, const double *a, const md_field *x, md_field *y,
                       double *values) {
  reduce(context, x, 1, values, [&](int, unsigned blocks, double *partial) {
    run_combine<S, OP>(a, x, NULL, y, blocks, partial);
  });
}

template <class S> struct linear_device {
  static void zero(md_field *x) {
    const double none[MD_MAX_RHS] = {};
    cudaMemsetAsync(x->data, 0,
                    (size_t)md_field_planes(x) * x->stride * md_field_entry(x) * sizeof(S),
                    md_stream());
    if (!x->scale) return;
    cudaMemsetAsync(x->scale, 0, x->sites * sizeof(float), md_stream()); /* one may be NaN */
    axpy(none, x, x);
  }
  static void copy(md_field *out, const md_field *in) {
    const size_t entry = (size_t)md_field_entry(in) * sizeof(S);
    cudaMemcpy2DAsync(out->data, out->stride * entry, in->data, in->stride * entry,
                      in->sites * entry, md_field_planes(in), cudaMemcpyDeviceToDevice,
                      md_stream());
    if (in->scale)
      cudaMemcpyAsync(out->scale, in->scale, in->sites * sizeof(float), cudaMemcpyDeviceToDevice,
                      md_stream());
  }
  static void axpy(const double *a, const md_field *x, md_field *y) {
    run_combine<S, COMBINE>(a, x, NULL, y, all_blocks(x, block_of(x)), NULL);
  }
  static void xpby(const md_field *x, const double *b, md_field *y) {
    run_combine<S, COMBINE>(NULL, x, b, y, all_blocks(x, block_of(x)), NULL);
  }
  static void axpby(const double *a, const md_field *x, const double *b, md_field *y) {
    run_combine<S, COMBINE>(a, x, b, y, all_blocks(x, block_of(x)), NULL);
  }
  static void norm2(const md_context *context, const md_field *x, double *norms) {
    reduce_one<S, DOT>(context, NULL, x, (md_field *)x, norms);
  }
  static void dot(const md_context *context, const md_field *x, const md_field *y, double *dots) {
    reduce_one<S, DOT>(context, NULL, x, (md_field *)y, dots);
  }
  static void dots(const md_context *context, int count, const md_field *x, const md_field *y,
                   double *values) {
    md_field *second = (md_field *)y;
    reduce(context, y, 2 * count, values, [&](int q, unsigned blocks, double *partial) {
      if (q % 2 == 0)
        run_combine<S, DOT>(NULL, &x[q / 2], NULL, second, blocks, partial);
      else
        run_combine<S, DOT_IMAGINARY>(NULL, &x[q / 2], NULL, second, blocks, partial);
    });
  }
  static void axpy_complex(const double *re, const double *im, const md_field *x, md_field *y) {
    run_combine<S, COMBINE_COMPLEX>(re, x, im, y, all_blocks(x, block_of(x)), NULL);
  }
  static void axpy_norm2(const md_context *context, const double *a, const md_field *x, md_field *y,
                         double *norms) {
    reduce_one<S, COMBINE_NORM2>(context, a, x, y, norms);
  }
  static void cg_update(const double *a, const double *b, const md_field *r, md_field *p,
                        md_field *x) {
    if constexpr (sizeof(S) == 2)
      if (x->precision == MD_SINGLE) return launch_cg_step<S, float>(a, b, r, p, x);
    launch_cg_step<S, S>(a, b, r, p, x);
  }
  static void cg_updates(int count, const double *const *a, const double *const *b,
                         const md_field *r, md_field *const *p, md_field *const *x) {
    for (int k = 0; k < count; k++) cg_update(a[k], b[k], r, p[k], x[k]);
  }
};

template <class S> constexpr md_linear_table linear_table_of() {
  using L = linear_device<S>;
  return {L::zero, L::copy,       L::axpy,      L::xpby,       L::axpby, L::norm2,
          L::dot,  L::axpy_norm2, L::cg_update, L::cg_updates, L::dots,  L::axpy_complex};
}

#endif
