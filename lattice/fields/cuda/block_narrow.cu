/* Launches of block_narrow.cuh by the precisions of the fields. */
#include "lattice/fields/cuda/block_device.cuh"
#include "lattice/fields/cuda/block_narrow.cuh"

#include <type_traits>

namespace {

using namespace md_block_rows;

template <class S> constexpr bool is_single = false;
template <> constexpr bool is_single<float> = true;

/* f(S()) with the storage type of a precision. */
template <class F> auto with_type(md_precision precision, F f) {
  switch (precision) {
  case MD_HALF:
    return f(__half());
  case MD_BF16:
    return f(__nv_bfloat16());
  case MD_FIXED:
    return f(fixed16());
  default:
    return f(0.0f);
  }
}

/* A kernel may need more shared memory than it gets unasked. */
template <class Kernel> md_status allow(md_context *context, Kernel kernel, size_t bytes) {
  if (bytes <= 48 * 1024) return MD_OK;
  return md_cuda_status(
      context,
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
      "shared memory of a block update");
}

md_status send(md_context *context, const device_block *d, size_t bytes) {
  return md_cuda_status(
      context, cudaMemcpyAsync(d->matrices, d->staging, bytes, cudaMemcpyHostToDevice, md_stream()),
      "copy of block matrices");
}

/* The sums in the same pass as far as the registers hold them. */
template <int Q, class S, bool HAS_X>
md_status launch_update(md_context *context, device_block *d, md_field *y, const md_block_step *s,
                        double *partial) {
  constexpr bool GRAM = Q <= 2;
  constexpr size_t matrices = (1 + HAS_X) * 64 * Q * Q * sizeof(double2);
  constexpr size_t sums = MD_BLOCK_GRAM_BYTES, bytes = GRAM && matrices < sums ? sums : matrices;
  auto *kernel = update_sites<Q, S, HAS_X, GRAM>;
  MD_TRY(allow(context, kernel, bytes));
  MD_TRY(send(context, d, matrices));
  kernel<<<d->blocks, THREADS, bytes, md_stream()>>>(narrow_view_of<S>(y),
                                                     narrow_view_of<S>(HAS_X ? s->x : y),
                                                     d->matrices, s->backwards, partial);
  return md_cuda_launched(context, "update of a block");
}

template <int Q, class S>
md_status launch_add(md_context *context, device_block *d, md_field *z, int count,
                     const md_field *x) {
  const size_t bytes = count * 64 * Q * Q * sizeof(double2);
  narrow_views<S> views = {};
  for (int k = 0; k < count; k++) views.of[k] = narrow_view_of<S>(&x[k]);
  MD_TRY(allow(context, add_sites<Q, S>, bytes));
  MD_TRY(send(context, d, bytes));
  add_sites<Q, S><<<d->blocks, THREADS, bytes, md_stream()>>>(narrow_view_of<float>(z), views,
                                                              count, d->matrices);
  return md_cuda_launched(context, "sum of blocks");
}

/* f(number of groups of eight right-hand sides as a type) */
template <class F> auto with_groups(int n, F f) {
  const int groups = md_block_groups(n);
  if (groups == 1) return f(std::integral_constant<int, 1>());
  if (groups == 2) return f(std::integral_constant<int, 2>());
  return f(std::integral_constant<int, 4>());
}

} // namespace

/* In single the sums are good to more than tf32 gives: what is left of D p where p is nearly an
 * eigenvector of a small eigenvalue. */
void md_block_narrow_gram(const device_block *d, const md_field *x, double *partial) {
  const dim3 grid(d->blocks, d->tiles);
  with_type(x->precision, [&](auto type) {
    using S = decltype(type);
    if constexpr (is_single<S>)
      multiply_self<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(narrow_view_of<S>(x),
                                                                         partial);
    else
      multiply_narrow<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(narrow_view_of<S>(x),
                                                                           partial);
  });
}

md_status md_block_narrow_update(md_context *context, device_block *d, md_field *y,
                                 const md_block_step *s, double *partial) {
  return with_type(y->precision, [&](auto type) {
    using S = decltype(type);
    return with_groups(d->n, [&](auto groups) {
      constexpr int Q = decltype(groups)::value;
      if (s->x) return launch_update<Q, S, true>(context, d, y, s, partial);
      return launch_update<Q, S, false>(context, d, y, s, partial);
    });
  });
}

md_status md_block_narrow_add(md_context *context, device_block *d, md_field *z, int count,
                              const md_field *x) {
  return with_type(x->precision, [&](auto type) {
    using S = decltype(type);
    return with_groups(d->n, [&](auto groups) {
      return launch_add<decltype(groups)::value, S>(context, d, z, count, x);
    });
  });
}

void md_block_pairs(const device_block *d, const md_field *x, const md_field *y, double *partial) {
  const int side = (d->n + SIDE - 1) / SIDE;
  const dim3 grid(d->blocks, side * side);
  if (x->precision == MD_DOUBLE) {
    multiply_pair<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(view_of(x), view_of(y), side,
                                                                       partial);
    return;
  }
  with_type(x->precision, [&](auto type) {
    using S = decltype(type);
    multiply_pair<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(
        narrow_view_of<S>(x), narrow_view_of<S>(y), side, partial);
  });
}
