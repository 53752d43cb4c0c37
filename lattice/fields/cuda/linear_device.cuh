#ifndef MD_LATTICE_FIELDS_CUDA_LINEAR_DEVICE_CUH
#define MD_LATTICE_FIELDS_CUDA_LINEAR_DEVICE_CUH

#include "lattice/fields/cuda/pieces.cuh"

extern "C" {
#include "lattice/fields/linear_table.h"
#include "lattice/fields/sum.h"
}
#include <math.h>

/* Vector operations on the device for one storage type S; beside 16-bit operands others may be
 * float. Sums: each block adds its threads in a fixed order, one block adds the blocks in a fixed
 * order, so that a run repeats its bits. */

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
  double sum[1] = {};
  for (int64_t block = blockIdx.x; block * blockDim.y < sites; block += gridDim.x) {
    const piece_place at = place_of<1, ONE>(sites, n_rhs, block);
    T u[1][6], v[1][6];
    load_piece<ONE>(x, at, u);
    load_piece<ONE>(y, at, v);
    if constexpr (!is_dot(OP)) {
      const T left = (T)a.of[at.rhs], right = (T)b.of[at.rhs];
#pragma unroll
      for (int c = 0; c < 6; c++)
        v[0][c] = OP == COMBINE_COMPLEX ? v[0][c] + left * u[0][c] + right * turned(u[0], c)
                                        : left * u[0][c] + right * v[0][c];
      store_piece<ONE>(y, at, v);
    }
    if constexpr (OP == DOT_IMAGINARY) {
      T w[1][6];
#pragma unroll
      for (int c = 0; c < 6; c++) w[0][c] = turned(u[0], c);
      add_products(sum, at, w, v);
    }
    if constexpr (OP == DOT) add_products(sum, at, u, v);
    if constexpr (OP == COMBINE_NORM2) add_products(sum, at, v, v);
  }
  if constexpr (is_sum(OP))
    add_block<ONE>(sum, place_of<1, ONE>(sites, n_rhs, 0), partial, gridDim.x, blockIdx.x);
}

/* x += a p; p = r + b p */
template <class S, class W, bool ONE>
static __global__ void cg_step(coefficients a, coefficients b, linear_view<W> residual,
                               linear_view<S> p, linear_view<W> x, int64_t sites, int n_rhs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  real_of<S> u[1][6], v[1][6], w[1][6];
  load_piece<ONE>(residual, at, u);
  load_piece<ONE>(p, at, v);
  load_piece<ONE>(x, at, w);
  add_times<ONE>(w, a.of, at, v);
  add_times<ONE>(u, b.of, at, v);
  store_piece<ONE>(x, at, w);
  store_piece<ONE>(p, at, u);
}

template <class X, class Y, linear_operation OP>
static void launch_combine(const double *a, const md_field *x, const double *b, md_field *y,
                           unsigned blocks, double *partial) {
  const dim3 block = block_of(x);
  const size_t shared = !is_sum(OP) ? 0 : shared_of(block);
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
 * of its own; waits and adds over ranks; a failure of the device is met here. */
template <class QUEUE>
static md_status reduce(md_context *context, const md_field *x, int quantities, double *values,
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
  MD_TRY(md_defer(context, md_cuda_status(context, error, "a sum over a field")));
  for (size_t first = 0; first < count; first += n) {
    md_sum sums[MD_MAX_RHS] = {};
    for (size_t r = 0; r < n; r++)
      md_sum_add(&sums[r], error == cudaSuccess ? values[first + r] : NAN);
    MD_TRY(md_sum_finish(context, sums, (int)n, values + first));
  }
  return MD_OK;
}

/* One operation with a sum. */
template <class S, linear_operation OP>
static md_status reduce_one(md_context *context, const double *a, const md_field *x, md_field *y,
                            double *values) {
  return reduce(context, x, 1, values, [&](int, unsigned blocks, double *partial) {
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
  static md_status norm2(md_context *context, const md_field *x, double *norms) {
    return reduce_one<S, DOT>(context, NULL, x, (md_field *)x, norms);
  }
  static md_status dot(md_context *context, const md_field *x, const md_field *y, double *dots) {
    return reduce_one<S, DOT>(context, NULL, x, (md_field *)y, dots);
  }
  static md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
                        double *values) {
    md_field *second = (md_field *)y;
    return reduce(context, y, 2 * count, values, [&](int q, unsigned blocks, double *partial) {
      if (q % 2 == 0)
        run_combine<S, DOT>(NULL, &x[q / 2], NULL, second, blocks, partial);
      else
        run_combine<S, DOT_IMAGINARY>(NULL, &x[q / 2], NULL, second, blocks, partial);
    });
  }
  static void axpy_complex(const double *re, const double *im, const md_field *x, md_field *y) {
    run_combine<S, COMBINE_COMPLEX>(re, x, im, y, all_blocks(x, block_of(x)), NULL);
  }
  static md_status axpy_norm2(md_context *context, const double *a, const md_field *x, md_field *y,
                              double *norms) {
    return reduce_one<S, COMBINE_NORM2>(context, a, x, y, norms);
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
