/* Vector operations on the device for one storage type S; beside 16-bit operands others may be
 * float. Where the caller has no guess of a sum it takes two passes: one finds the largest term of
 * any site, which sets the units for the other (unit_sum.cuh). Both results do not depend on how
 * the lattice is cut. */
#include "lattice/fields/cuda/long_sites.cuh"

extern "C" {
#include "lattice/fields/spaces.h"
#include "lattice/fields/sum.h"
}
#include <math.h>

/* total[r] = the sum of r's parts; a block of MD_SUM_SLOTS threads each. */
static __global__ void add_parts(const unit_sum *part, unit_sum *total) {
  const unit_sum sum = add_threads(load_sum(&part[blockIdx.x * MD_SUM_SLOTS + threadIdx.x]));
  if (threadIdx.x == 0) store_sum(&total[blockIdx.x], sum);
}

/* Units for sums of `terms` terms of which none is larger than largest[r]. */
static __global__ void choose_units(const double *largest, double terms, int count,
                                    sum_units *units) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) units[i] = units_for(largest[i] * terms, 0);
}

/* largest[rhs] = the largest of the block's values of each right-hand side and of what is there. */
template <bool ONE>
static __device__ inline void keep_largest(unsigned long long value, int n_rhs,
                                           unsigned long long *largest) {
  __shared__ unsigned long long of_block[MD_MAX_RHS];
  const int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
  if (thread < n_rhs) of_block[thread] = 0;
  __syncthreads();
  if constexpr (ONE)
    for (int left = 16; left > 0; left /= 2)
      value = max(value, __shfl_down_sync(0xffffffffu, value, left));
  if (!ONE || thread % 32 == 0) atomicMax(&of_block[ONE ? 0 : threadIdx.x], value);
  __syncthreads();
  if (thread < n_rhs) atomicMax(&largest[thread], of_block[thread]);
}

/* What dot leaves of <x, y>: the real part, or the imaginary one behind it. */
enum dot_parts { DOT = 1, DOT_COMPLEX = 2 };

/* i times the component of neighbouring (re, im) pairs. */
template <class T> static __device__ inline T turned(const T *v, int c) {
  return c % 2 ? v[c - 1] : -v[c + 1];
}

/* y = a x + b y */
template <bool ONE, int C, class X, class Y>
static __global__ void combine(coefficients a, coefficients b, linear_view<X> x, linear_view<Y> y,
                               int64_t sites, int n_rhs, int pairs) {
  using T = real_of<X>;
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  store_site<ONE, C>(y, at, pairs, [&](T(&v)[1][C], int g) {
    T u[1][C];
    load_piece<ONE>(from_pair<ONE, C>(x, at, g), at, u);
    load_piece<ONE>(from_pair<ONE, C>(y, at, g), at, v);
    const T left = (T)a.of[at.rhs], right = (T)b.of[at.rhs];
#pragma unroll
    for (int c = 0; c < C; c++) v[0][c] = left * u[0][c] + right * v[0][c];
  });
}

/* So many fields x[k] and their coefficients of[2 k n_rhs + r] and of[(2 k + 1) n_rhs + r], real
 * and imaginary parts: as many as the arguments of a kernel hold. */
enum { ADDED_AT_ONCE = 8, ADDED_NUMBERS = MD_MAX_RHS };
template <class X> struct added_fields {
  int count, n_rhs;
  linear_view<X> x[ADDED_AT_ONCE];
  double of[2 * ADDED_NUMBERS];
};

/* y += sum_k (re[k] + i im[k]) x[k] */
template <bool ONE, int C, class X, class Y>
static __global__ void add_complex(const __grid_constant__ added_fields<X> all, linear_view<Y> y,
                                   int64_t sites, int n_rhs, int pairs) {
  using T = real_of<X>;
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  store_site<ONE, C>(y, at, pairs, [&](T(&v)[1][C], int g) {
    const double *of = all.of + at.rhs % all.n_rhs;
    load_piece<ONE>(from_pair<ONE, C>(y, at, g), at, v);
    for (int k = 0; k < all.count; k++, of += 2 * all.n_rhs) {
      const T re = (T)of[0], im = (T)of[all.n_rhs];
      T u[1][C];
      load_piece<ONE>(from_pair<ONE, C>(all.x[k], at, g), at, u);
#pragma unroll
      for (int c = 0; c < C; c++) v[0][c] = v[0][c] + re * u[0][c] + im * turned(u[0], c);
    }
  });
}

/* The terms of a sum, site by site: Re <x, y>, and of DOT_COMPLEX Im <x, y> = Re <i x, y>. With
 * `largest` not NULL largest[rhs] becomes the largest |term|, as bits: those of numbers >= 0 are in
 * the order of the numbers, infinity and NaN above all. Else the blocks leave sums. What belongs to
 * the imaginary part lies n_rhs entries on. */
template <bool ONE, dot_parts PARTS, int C, class X, class Y>
static __global__ void multiply(linear_view<X> x, linear_view<Y> y, int64_t sites, int n_rhs,
                                unsigned long long *largest, block_sums to, int pairs) {
  using T = real_of<X>;
  const int rhs = ONE ? 0 : (int)threadIdx.x;
  unsigned long long most[PARTS] = {};
  unit_adder<> sum[PARTS];
  for (int part = 0; part < PARTS && !largest; part++)
    sum[part].begin(to.units[part * n_rhs + rhs]);
  for (int64_t block = blockIdx.x; block * blockDim.y < sites; block += gridDim.x) {
    const piece_place at = place_of<1, ONE>(sites, n_rhs, block);
    double term[1], all[PARTS] = {};
    for (int g = 0; g < (C == MD_WHOLE ? 1 : pairs); g++) {
      T u[1][C], v[1][C], w[1][C];
      load_piece<ONE>(from_pair<ONE, C>(x, at, g), at, u);
      load_piece<ONE>(from_pair<ONE, C>(y, at, g), at, v);
#pragma unroll
      for (int part = 0; part < PARTS; part++) {
#pragma unroll
        for (int c = 0; c < C; c++) w[0][c] = part == 0 ? u[0][c] : turned(u[0], c);
        products_of(term, at, w, v);
        all[part] += term[0];
      }
    }
#pragma unroll
    for (int part = 0; part < PARTS; part++)
      if (largest)
        most[part] = max(most[part], (unsigned long long)__double_as_longlong(fabs(all[part])));
      else
        sum[part].add(all[part]);
  }
#pragma unroll
  for (int part = 0; part < PARTS; part++) {
    if (part > 0) __syncthreads(); /* both go through the same shared memory */
    const block_sums here = {to.sum + part * n_rhs * MD_SUM_SLOTS, to.units + part * n_rhs};
    unit_sum value[1];
    if (largest)
      keep_largest<ONE>(most[part], n_rhs, largest + part * n_rhs);
    else
      value[0] = sum[part].sum(here.units[rhs]),
      add_block<ONE, false>(value, place_of<1, ONE>(sites, n_rhs, 0), here, blockIdx.x);
  }
}

/* x += a p; p = r + b p; of fields with scales C is MD_WHOLE. */
template <class S, class W, bool ONE, int C>
static __global__ void cg_step(coefficients a, coefficients b, linear_view<W> residual,
                               linear_view<S> p, linear_view<W> x, int64_t sites, int n_rhs,
                               int pairs) {
  const piece_place at = place_of<1, ONE>(sites, n_rhs, blockIdx.x);
  for (int g = 0; g < (C == MD_WHOLE ? 1 : pairs); g++) {
    real_of<S> u[1][C], v[1][C], w[1][C];
    load_piece<ONE>(from_pair<ONE, C>(residual, at, g), at, u);
    load_piece<ONE>(from_pair<ONE, C>(p, at, g), at, v);
    load_piece<ONE>(from_pair<ONE, C>(x, at, g), at, w);
    add_times<ONE>(w, a.of, at, v);
    add_times<ONE>(u, b.of, at, v);
    store_piece<ONE>(from_pair<ONE, C>(x, at, g), at, w);
    store_piece<ONE>(from_pair<ONE, C>(p, at, g), at, u);
  }
}

/* f(number of x, number of y) by the operands' types, which are S, or float beside a 16-bit S. */
template <class S, class F> static void with_types(const md_field *x, const md_field *y, F f) {
  if constexpr (sizeof(S) == 2) {
    if (x->precision == MD_SINGLE) return f(0.0f, S());
    if (y->precision == MD_SINGLE) return f(S(), 0.0f);
  }
  f(S(), S());
}
/* f(view of x, view of y, ONE, C) by them and by the operands' layout. */
template <class S, class F> static void with_operands(const md_field *x, const md_field *y, F f) {
  with_types<S>(x, y, [&](auto of_x, auto of_y) {
    with_layout(x, [&](auto one, auto reals) {
      f(linear_view_of<decltype(of_x)>(x), linear_view_of<decltype(of_y)>(y), one, reals);
    });
  });
}
/* The same of long sites: f(view of x, view of y, G, R). */
template <class S, class F> static void with_long(const md_field *x, const md_field *y, F f) {
  with_types<S>(x, y, [&](auto of_x, auto of_y) {
    with_groups(x, [&](auto lanes, auto rounds) {
      f(long_view_of<decltype(of_x)>(x), long_view_of<decltype(of_y)>(y), lanes, rounds);
    });
  });
}

static double one_of(const double *a) {
  return a ? a[0] : 1.0;
}

/* One of the two passes of a sum. */
struct sum_pass {
  unsigned blocks;
  unsigned long long *largest;
  block_sums to;
  const double *by;
};

/* out = a x + b y of long sites, out like y; with SUMS the pass of |out|^2 that sums, too. */
template <class S, bool SUMS>
static void queue_combine_long(const double *a, const md_field *x, const double *b,
                               const md_field *y, const md_field *out, const sum_pass &p) {
  with_long<S>(x, y, [&](auto of_x, auto of_y, auto lanes, auto rounds) {
    using T = real_of<S>;
    using number = typename decltype(of_y)::number;
    const unsigned blocks = SUMS ? p.blocks : long_blocks<lanes()>(x);
    combine_long<typename decltype(of_x)::number, number, lanes(), rounds(), SUMS>
        <<<blocks, LONG_THREADS, 0, md_stream()>>>((T)one_of(a), (T)one_of(b), of_x, of_y,
                                                   long_view_of<number>(out), x->sites,
                                                   x->components, p.to);
  });
}

template <class S>
static void queue_combine(const double *a, const md_field *x, const double *b, md_field *y) {
  if (is_long(x)) return queue_combine_long<S, false>(a, x, b, y, y, sum_pass());
  const md_field u = md_widened(x), v = md_widened(y);
  const dim3 block = block_of(&u);
  const coefficients as = coefficients_of(a, x->n_rhs, u), bs = coefficients_of(b, x->n_rhs, u);
  with_operands<S>(&u, &v, [&](auto of_x, auto of_y, auto one, auto reals) {
    combine<one(), reals()><<<all_blocks(&u, block), block, 0, md_stream()>>>(
        as, bs, of_x, of_y, u.sites, u.n_rhs, u.components / 2);
  });
}

/* For as many x as the arguments hold; how many these are. */
template <class S>
static int queue_add_complex(int count, const double (*re)[MD_MAX_RHS],
                             const double (*im)[MD_MAX_RHS], const md_field *x, md_field *y) {
  const int n = x->n_rhs, room = ADDED_NUMBERS / n;
  const int most = room < ADDED_AT_ONCE ? room : ADDED_AT_ONCE, some = count < most ? count : most;
  const md_field u = md_widened(x), v = md_widened(y);
  const dim3 block = block_of(&u);
  with_operands<S>(&u, &v, [&](auto of_x, auto of_y, auto one, auto reals) {
    using number = std::remove_pointer_t<decltype(of_x.data)>;
    added_fields<number> all = {};
    all.count = some, all.n_rhs = n;
    for (int k = 0; k < some; k++) {
      const md_field wide = md_widened(&x[k]);
      all.x[k] = linear_view_of<number>(&wide);
      for (int r = 0; r < n; r++)
        all.of[2 * k * n + r] = re[k][r], all.of[(2 * k + 1) * n + r] = im[k][r];
    }
    add_complex<one(), reals()><<<all_blocks(&u, block), block, 0, md_stream()>>>(
        all, of_y, u.sites, u.n_rhs, u.components / 2);
  });
  return some;
}

template <class S, dot_parts PARTS>
static void queue_multiply(const md_field *x, const md_field *y, const sum_pass &p) {
  if (PARTS == DOT && is_long(x))
    return with_long<S>(x, y, [&](auto of_x, auto of_y, auto lanes, auto rounds) {
      multiply_long<typename decltype(of_x)::number, typename decltype(of_y)::number, lanes(),
                    rounds()><<<p.blocks, LONG_THREADS, 0, md_stream()>>>(
          of_x, of_y, x->sites, x->components, p.largest, p.to);
    });
  const md_field u = md_widened(x), v = md_widened(y);
  const dim3 block = block_of(&u);
  with_operands<S>(&u, &v, [&](auto of_x, auto of_y, auto one, auto reals) {
    multiply<one(), PARTS, reals()><<<p.blocks, block, shared_of(block), md_stream()>>>(
        of_x, of_y, u.sites, u.n_rhs, p.largest, p.to, u.components / 2);
  });
}

/* Numbers of p, x and r. */
template <class S, class W, class Z>
static void queue_cg_step_long(const double *a, const double *b, const md_field *r, md_field *p,
                               md_field *x) {
  with_groups(x, [&](auto lanes, auto rounds) {
    using T = real_of<S>;
    cg_step_long<S, W, Z, lanes(), rounds()>
        <<<long_blocks<lanes()>(x), LONG_THREADS, 0, md_stream()>>>(
            (T)a[0], (T)b[0], long_view_of<Z>(r), long_view_of<S>(p), long_view_of<W>(x), x->sites,
            x->components);
  });
}
template <class S, class W>
static void queue_cg_step(const double *a, const double *b, const md_field *r, md_field *p,
                          md_field *x) {
  const md_field u = md_widened(x), v = md_widened(p), w = md_widened(r);
  const dim3 block = block_of(&u);
  const coefficients as = coefficients_of(a, x->n_rhs, u), bs = coefficients_of(b, x->n_rhs, u);
  with_layout(&u, [&](auto one, auto reals) {
    if constexpr (reals() == MD_WHOLE || !is_scaled<S>)
      cg_step<S, W, one(), reals()><<<all_blocks(&u, block), block, 0, md_stream()>>>(
          as, bs, linear_view_of<W>(&w), linear_view_of<S>(&v), linear_view_of<W>(&u), u.sites,
          u.n_rhs, u.components / 2);
  });
}

/* Memory of one call of `reduce`, in one piece. */
struct sum_space {
  unsigned blocks;
  size_t n, count; /* right-hand sides, as md_widened says; sums */
  sum_units *units;
  double *by;             /* [MD_MAX_RHS], what comes with the units */
  unit_sum *total, *part; /* [sum]; [sum][MD_SUM_SLOTS] */
  unsigned long long *largest;
};

static cudaError_t make_space(const md_context *context, const md_field *x, int quantities,
                              sum_space *s) {
  const md_field u = md_widened(x);
  const unsigned most = (is_long(x) ? 32 : 8) * context->gpu.multiprocessors;
  const unsigned all = all_blocks(&u, block_of(&u));
  s->blocks = all < most ? all : most;
  s->n = (size_t)u.n_rhs, s->count = s->n * quantities;
  const size_t bytes = s->count * (sizeof *s->units + sizeof *s->total + sizeof *s->largest +
                                   MD_SUM_SLOTS * sizeof *s->part) +
                       MD_MAX_RHS * sizeof *s->by;
  const cudaError_t error = cudaMallocAsync((void **)&s->units, bytes, md_stream());
  if (error != cudaSuccess) s->units = NULL;
  s->by = (double *)(s->units + s->count);
  s->total = (unit_sum *)(s->by + MD_MAX_RHS);
  s->part = s->total + s->count;
  s->largest = (unsigned long long *)(s->part + s->count * MD_SUM_SLOTS);
  return error;
}

/* What the q-th pass reads and writes. */
static sum_pass pass_of(const sum_space &s, int q, bool largest) {
  const size_t at = q * s.n;
  return {
      s.blocks, largest ? s.largest + at : NULL, {s.part + at * MD_SUM_SLOTS, s.units + at}, s.by};
}

/* Units from the largest terms, which passes of `queue` find. Ranks agree on them; every rank goes
 * through it, whatever it has met. */
template <class QUEUE>
static cudaError_t find_units(md_context *context, const md_field *x, const sum_space &s,
                              int quantities, cudaError_t error, QUEUE queue) {
  double *host = (double *)alloca(s.count * sizeof(double));
  if (error == cudaSuccess) {
    cudaMemsetAsync(s.largest, 0, s.count * sizeof *s.largest, md_stream());
    for (int q = 0; q < quantities; q++) queue(q, pass_of(s, q, true));
  }
  if (context->ranks > 1) {
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(host, s.largest, s.count * sizeof(double), cudaMemcpyDeviceToHost,
                              md_stream());
    if (error == cudaSuccess) error = cudaStreamSynchronize(md_stream());
    md_sum_largest(context, host, (int)s.count);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(s.largest, host, s.count * sizeof(double), cudaMemcpyHostToDevice,
                              md_stream());
  }
  if (error != cudaSuccess) return error;
  const double terms = (double)(x->geometry->volume / MD_PARITIES) * (is_long(x) ? 32 : 1);
  choose_units<<<(unsigned)(s.count + 255) / 256, 256, 0, md_stream()>>>(
      (const double *)s.largest, terms, (int)s.count, s.units);
  return cudaSuccess;
}

/* Units from a guess of each sum, the same on all ranks; and `by`, unless NULL. */
static cudaError_t take_units(const sum_space &s, int n_rhs, const double *guess,
                              const double *by) {
  const size_t bytes = s.count * sizeof(sum_units), more = by ? n_rhs * sizeof *by : 0;
  sum_units *host = (sum_units *)alloca(bytes + more);
  if (by) memcpy(host + s.count, by, more);
  for (size_t i = 0; i < s.count; i++)
    host[i] = units_for(guess[i / s.n * n_rhs + i % s.n % n_rhs]);
  return cudaMemcpyAsync(s.units, host, bytes + more, cudaMemcpyHostToDevice, md_stream());
}

/* values[q * n_rhs + r], the q-th of `quantities` sums, whose passes `queue` launches; waits and
 * adds over ranks; a failure of the device is met here. guess: of the values, or NULL. by: what
 * passes find in the space and come for even where this rank has failed, without sums, as other
 * ranks wait for what they send; NULL: they need not. */
template <class QUEUE>
static md_status reduce(md_context *context, const md_field *x, int quantities, const double *guess,
                        double *values, QUEUE queue, const double *by = NULL) {
  sum_space s;
  cudaError_t error = make_space(context, x, quantities, &s);
  double *host = (double *)alloca(2 * s.count * sizeof(double));
  if (!guess)
    error = find_units(context, x, s, quantities, error, queue);
  else if (error == cudaSuccess)
    error = take_units(s, x->n_rhs, guess, by);
  if (error == cudaSuccess) {
    cudaMemsetAsync(s.part, 0, s.count * MD_SUM_SLOTS * sizeof *s.part, md_stream());
    for (int q = 0; q < quantities; q++) queue(q, pass_of(s, q, false));
    add_parts<<<(unsigned)s.count, MD_SUM_SLOTS, 0, md_stream()>>>(s.part, s.total);
    cudaMemcpyAsync(host, s.total, s.count * sizeof *s.total, cudaMemcpyDeviceToHost, md_stream());
  } else if (by) {
    queue(0, sum_pass());
  }
  if (s.units) cudaFreeAsync(s.units, md_stream());
  if (error == cudaSuccess) error = cudaStreamSynchronize(md_stream());
  if (error == cudaSuccess) error = cudaPeekAtLastError();
  MD_TRY(md_defer(context, md_cuda_status(context, error, "a sum over a field")));
  for (int q = 0; q < quantities; q++) {
    md_sum sums[MD_MAX_RHS] = {};
    for (size_t r = 0; r < s.n; r++)
      for (size_t w = 0; w < 2; w++)
        md_sum_add(&sums[r % x->n_rhs], error == cudaSuccess ? host[2 * (q * s.n + r) + w] : NAN);
    MD_TRY(md_sum_finish(context, sums, x->n_rhs, values + q * x->n_rhs));
  }
  return MD_OK;
}

template <class S> struct linear_device {
  static void copy(md_field *out, const md_field *in) {
    const size_t entry = (size_t)md_field_entry(out) * sizeof(S), planes = md_field_planes(out);
    if (in) {
      if (planes == 1) /* whose pitch may be beyond what a copy of planes takes */
        cudaMemcpyAsync(out->data, in->data, in->sites * entry, cudaMemcpyDeviceToDevice,
                        md_stream());
      else
        cudaMemcpy2DAsync(out->data, out->stride * entry, in->data, in->stride * entry,
                          in->sites * entry, planes, cudaMemcpyDeviceToDevice, md_stream());
      if (in->scale)
        cudaMemcpyAsync(out->scale, in->scale, in->sites * sizeof(float), cudaMemcpyDeviceToDevice,
                        md_stream());
      return;
    }
    const double none[MD_MAX_RHS] = {};
    cudaMemsetAsync(out->data, 0, planes * out->stride * entry, md_stream());
    if (!out->scale) return;
    cudaMemsetAsync(out->scale, 0, out->sites * sizeof(float), md_stream()); /* one may be NaN */
    axpby(none, out, NULL, out);
  }
  static void axpby(const double *a, const md_field *x, const double *b, md_field *y) {
    queue_combine<S>(a, x, b, y);
  }
  static void add_complex(int count, const double (*re)[MD_MAX_RHS], const double (*im)[MD_MAX_RHS],
                          const md_field *x, md_field *y) {
    for (int k = 0; k < count;) k += queue_add_complex<S>(count - k, re + k, im + k, x + k, y);
  }
  static md_status dot(md_context *context, const md_field *x, const md_field *y,
                       const double *guess, double *dots) {
    return reduce(context, x, 1, guess, dots,
                  [&](int, const sum_pass &p) { queue_multiply<S, DOT>(x, y, p); });
  }
  static md_status dots(md_context *context, int count, const md_field *x, const md_field *y,
                        const double *guess, double *values) {
    return reduce(context, y, 2 * count, guess, values, [&](int q, const sum_pass &p) {
      if (q % 2 == 0) queue_multiply<S, DOT_COMPLEX>(&x[q / 2], y, p); /* and what q + 1 is */
    });
  }
  static md_status axpby_norm2(md_context *context, const double *a, const md_field *x,
                               const double *b, md_field *y, const double *guess, double *norms) {
    if (guess && is_long(x))
      return reduce(context, y, 1, guess, norms,
                    [&](int, const sum_pass &p) { queue_combine_long<S, true>(a, x, b, y, y, p); });
    axpby(a, x, b, y);
    return md_linear_norm2(context, y, guess, norms);
  }
  static void cg_update(const double *a, const double *b, const md_field *r, md_field *p,
                        md_field *x) {
    const bool lengthy = is_long(x), alike = r->precision == x->precision;
    if (alike ? !lengthy && is_scaled<S> && x->components != MD_WHOLE
              : !lengthy || r->precision != p->precision) {
      axpby(a, p, NULL, x);
      return axpby(NULL, r, b, p);
    }
    if constexpr (sizeof(S) == 2)
      if (x->precision == MD_SINGLE)
        return !lengthy ? queue_cg_step<S, float>(a, b, r, p, x)
               : alike  ? queue_cg_step_long<S, float, float>(a, b, r, p, x)
                        : queue_cg_step_long<S, float, S>(a, b, r, p, x);
    if (lengthy) return queue_cg_step_long<S, S, S>(a, b, r, p, x);
    queue_cg_step<S, S>(a, b, r, p, x);
  }
  static void cg_updates(int count, int steps, const double *const *a, const double *const *b,
                         const md_field *const *r, md_field *const *p, md_field *const *x) {
    for (int k = 0; k < count; k++)
      for (int j = 0; j < steps; j++)
        cg_update(a[k * steps + j], b[k * steps + j], r[j], p[k], x[k]);
  }
  static bool cg_direction(const double *b, const md_field *r, const md_field *p, md_field *next) {
    if (!is_long(p)) return false;
    queue_combine_long<S, false>(NULL, r, b, p, next, sum_pass());
    return true;
  }
  static bool cg_add(int count, const double (*a)[MD_MAX_RHS], const md_field *p, md_field *x) {
    if (!is_long(x)) return false;
    with_long<S>(p, x, [&](auto of_p, auto of_x, auto lanes, auto rounds) {
      using number = typename decltype(of_p)::number;
      long_directions<number> d = {};
      d.count = count;
      for (int k = 0; k < count; k++)
        d.a[k] = (real_of<S>)a[k][0], d.p[k] = long_view_of<number>(&p[k]);
      add_long<number, typename decltype(of_x)::number, lanes(), rounds()>
          <<<long_blocks<lanes()>(x), LONG_THREADS, 0, md_stream()>>>(d, of_x, x->sites,
                                                                      x->components);
    });
    return true;
  }
  static constexpr md_linear_table table = {copy,        axpby,      add_complex,  dot,   dots,
                                            axpby_norm2, cg_updates, cg_direction, cg_add};
};

extern "C" md_status md_device_norm2_of(md_context *context, const md_field *y, const double *by,
                                        md_linear_queue queue, void *user, const double *guess,
                                        double *norms) {
  md_status queued = MD_OK;
  const md_status status = reduce(
      context, y, 1, guess, norms,
      [&](int, const sum_pass &p) {
        const md_partial_sums sums = {p.to.sum, p.to.units};
        queued = queue(user, by ? p.by : NULL, p.to.sum ? &sums : NULL);
      },
      by ? by : guess);
  return status == MD_OK ? queued : status;
}

extern "C" const md_linear_table md_linear_device[MD_PRECISIONS] = {
    linear_device<double>::table, linear_device<float>::table, linear_device<__half>::table,
    linear_device<__nv_bfloat16>::table, linear_device<fixed16>::table};
