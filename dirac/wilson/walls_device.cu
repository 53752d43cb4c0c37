/* The matrices of the fifth dimension on a device. They are polynomials c0 + c1 (X + r X^2 + ...
 * + r^(n-2) X^(n-1)) with X^n = w, as all of md_wall_matrices are, so that they are applied by a
 * recursion over the slices, in which a field is read from memory once and written once; where that
 * would make roundings larger (|r| > 1), term by term. */
#include "base/device.cuh"
#include "lattice/fields/cuda/storage.cuh"

extern "C" {
#include "dirac/wilson/wilson.h"
}
#include <math.h>

namespace {

constexpr int THREADS = 256, PAIRS = 12; /* complex numbers of a slice and right-hand side */

template <class T> struct number { T re, im; };

struct polynomial {
  int slices;
  double c0, c1, r, w;
};

polynomial polynomial_of(const md_wall_matrix *m, int slices) {
  polynomial p = {slices, 1.0, 0.0, 0.0, 0.0};
  if (!m) return p;
  p.c0 = m->m[0];
  if (slices == 1 || m->m[1] == 0.0) return p;
  p.c1 = m->m[1];
  p.r = slices > 2 ? m->m[2] / m->m[1] : 0.0;
  p.w = m->m[(slices - 1) * slices] / m->m[1];
  return p;
}

template <class S> struct wall_arguments {
  const S *in;
  S *out;
  const float *in_scale;
  float *out_scale;
  int64_t sites;
  int slices, n_rhs;
  real_of<S> c0, c1, r, w, closing; /* w r^(n-1) */
  real_of<S> factor[2];             /* of spins 0 and 1, and 2 and 3 */
  bool adjoint, add, dense;
};

/* emit(s, y) for each slice s of one number of a site, y what is to be stored: (re, im). */
template <class S, class F>
__device__ inline void visit(const wall_arguments<S> &a, int64_t site, int item, F emit) {
  using T = real_of<S>;
  const bool lower = item >= PAIRS / 2 * a.n_rhs, reversed = !lower != a.adjoint;
  const int row = PAIRS * a.n_rhs, last = a.slices - 1;
  const T scale = is_scaled<S> ? a.in_scale[site] : 1.0f,
          factor = scale * (lower ? a.factor[1] : a.factor[0]);
  const auto load = [&](const S *data, int s) {
    const auto at = (site * a.slices + (reversed ? last - s : s)) * row + item;
    const auto v = reinterpret_cast<const vector_of<S, 2> *>(data)[at];
    return number<T>{load_real(v.v[0]), load_real(v.v[1])};
  };
  number<T> t = {T(0), T(0)};
  const auto add_times = [&](T by, int s) {
    const number<T> other = load(a.in, s);
    t.re += by * other.re, t.im += by * other.im;
  };
  T power = a.w;
  for (int s = 0; s < last && power != T(0); s++, power *= a.r) add_times(power, s);
  const T old_scale = is_scaled<S> && a.add ? a.out_scale[site] : 1.0f;
  number<T> x = load(a.in, last);
  for (int s = last; s >= 0; s--) {
    number<T> y = {factor * (a.c0 * x.re + a.c1 * t.re), factor * (a.c0 * x.im + a.c1 * t.im)};
    if (a.add) {
      const number<T> old = load(a.out, s);
      y.re += old_scale * old.re, y.im += old_scale * old.im;
    }
    emit((site * a.slices + (reversed ? last - s : s)) * row + item, y);
    if (s == 0) break;
    const number<T> next = load(a.in, s - 1);
    if (a.dense) {
      t = {T(0), T(0)}, power = T(1);
      for (int k = s; k < s + last; k++, power *= a.r)
        add_times(k > last ? a.w * power : power, k > last ? k - a.slices : k);
    } else {
      t = {x.re + a.r * t.re - a.closing * next.re, x.im + a.r * t.im - a.closing * next.im};
    }
    x = next;
  }
}

/* A row of threads takes the numbers of a slice of its site. */
template <class S> __global__ void __launch_bounds__(THREADS) apply(wall_arguments<S> a) {
  using T = real_of<S>;
  const int64_t place = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const int64_t site = place < a.sites ? place : a.sites - 1;
  const int items = PAIRS * a.n_rhs;
  T inverse = 1.0f;
  float scale = 1.0f;
  if constexpr (is_scaled<S>) {
    __shared__ float shared[THREADS];
    float largest = 0.0f, *row = shared + threadIdx.y * blockDim.x;
    for (int item = threadIdx.x; item < items; item += blockDim.x)
      visit(a, site, item, [&](int64_t, const number<T> &y) {
        largest = larger_component<S>(larger_component<S>(largest, y.re), y.im);
      });
    row[threadIdx.x] = largest;
    __syncthreads();
    for (int j = 0; j < (int)blockDim.x; j++) largest = larger_component<S>(largest, row[j]);
    scale = scale_of<S>(largest);
    inverse = inverse_of_scale<S>(scale);
  }
  for (int item = threadIdx.x; place < a.sites && item < items; item += blockDim.x)
    visit(a, site, item, [&](int64_t at, const number<T> &y) {
      reinterpret_cast<vector_of<S, 2> *>(a.out)[at] = {
          {store_real<S>(y.re * inverse), store_real<S>(y.im * inverse)}};
    });
  if constexpr (is_scaled<S>) {
    __syncthreads(); /* until then other threads of the site read by the old scale */
    if (place < a.sites && threadIdx.x == 0) a.out_scale[site] = scale;
  }
}

} // namespace

extern "C" void md_wall_apply_device(const md_wall_matrix *m, const md_wall_way *way,
                                     const md_field *in, md_field *out) {
  const int slices = in->components / (2 * PAIRS), items = PAIRS * in->n_rhs;
  const polynomial p = polynomial_of(m, slices);
  const int across = items < THREADS ? items : THREADS;
  const dim3 block((unsigned)across, (unsigned)(THREADS / across));
  const unsigned blocks = (unsigned)((in->sites + block.y - 1) / block.y);
  with_type(in->precision, [&](auto s) {
    using S = decltype(s);
    using T = real_of<S>;
    wall_arguments<S> a = {};
    a.in = (const S *)in->data, a.in_scale = in->scale;
    a.out = (S *)out->data, a.out_scale = out->scale;
    a.sites = in->sites, a.slices = slices, a.n_rhs = in->n_rhs;
    a.c0 = (T)p.c0, a.c1 = (T)p.c1, a.r = (T)p.r, a.w = (T)p.w;
    a.closing = (T)(p.w * pow(p.r, slices - 1));
    a.factor[0] = (T)way->factor;
    a.factor[1] = (T)(way->gamma5 ? -way->factor : way->factor);
    a.adjoint = way->adjoint, a.add = way->add, a.dense = m && m->dense;
    apply<S><<<blocks, block, 0, md_stream()>>>(a);
  });
}

extern "C" void md_wall_copy_half_device(const md_field *from, int from_slice, bool lower,
                                         md_field *to, int to_slice) {
  const size_t half = (size_t)PAIRS * from->n_rhs * sizeof(double); /* PAIRS reals */
  const auto place = [&](const md_field *f, int slice) {
    return (char *)f->data + (2 * slice + lower) * half;
  };
  const auto pitch = [&](const md_field *f) { return f->components / (2 * PAIRS) * 2 * half; };
  cudaMemcpy2DAsync(place(to, to_slice), pitch(to), place(from, from_slice), pitch(from), half,
                    (size_t)from->sites, cudaMemcpyDeviceToDevice, md_stream());
}
