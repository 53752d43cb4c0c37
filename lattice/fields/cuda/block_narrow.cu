/* Launches of block_narrow.cuh by the precisions of the fields. */
#include "lattice/fields/cuda/block_device.cuh"
#include "lattice/fields/cuda/block_narrow.cuh"

namespace {

using namespace md_block_rows;

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

template <int Q, class Y, class X, bool HAS_X, bool HAS_Z, bool GRAM>
md_status launch(md_context *context, device_block *d, md_field *y, const md_block_step *s,
                 double *partial) {
  constexpr size_t matrices = (1 + HAS_X + HAS_Z) * 64 * Q * Q * sizeof(double2);
  constexpr size_t sums = MD_BLOCK_GRAM_BYTES, bytes = GRAM && matrices < sums ? sums : matrices;
  auto *kernel = update_sites<Q, Y, X, HAS_X, HAS_Z, GRAM>;
  if (bytes > 48 * 1024)
    MD_TRY(md_cuda_status(
        context,
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
        "shared memory of a block update"));
  MD_TRY(md_cuda_status(
      context,
      cudaMemcpyAsync(d->matrices, d->staging, matrices, cudaMemcpyHostToDevice, md_stream()),
      "copy of block matrices"));
  const narrow_view<X> no_x = {};
  const narrow_view<float> no_z = {};
  kernel<<<d->blocks, THREADS, bytes, md_stream()>>>(
      narrow_view_of<Y>(y), HAS_X ? narrow_view_of<X>(s->x) : no_x,
      HAS_Z ? narrow_view_of<float>(s->z) : no_z, d->matrices, s->backwards, partial);
  return md_cuda_launched(context, "update of a block");
}

/* y single and x of the operator's type, or the other way round; the sums in the same pass as far
 * as the registers hold them. */
template <int Q, class S>
md_status launch_with(md_context *context, device_block *d, md_field *y, const md_block_step *s,
                      double *partial) {
  constexpr bool GRAM = Q <= 2;
  if (y->precision == MD_SINGLE && s->x && !s->z)
    return launch<Q, float, S, true, false, GRAM>(context, d, y, s, partial);
  if (s->x && s->z) return launch<Q, S, float, true, true, GRAM>(context, d, y, s, partial);
  if (s->x) return launch<Q, S, float, true, false, GRAM>(context, d, y, s, partial);
  return launch<Q, S, float, false, false, GRAM>(context, d, y, s, partial);
}

} // namespace

void md_block_narrow_gram(const device_block *d, const md_field *x, double *partial) {
  with_type(x->precision, [&](auto type) {
    multiply_self<<<dim3(d->blocks, d->tiles), THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(
        narrow_view_of<decltype(type)>(x), partial);
  });
}

md_status md_block_narrow_update(md_context *context, device_block *d, md_field *y,
                                 const md_block_step *s, double *partial) {
  const bool wide = y->precision == MD_SINGLE && s->x && !s->z;
  return with_type(wide ? s->x->precision : y->precision, [&](auto type) {
    using S = decltype(type);
    const int groups = md_block_groups(d->n);
    if (groups == 1) return launch_with<1, S>(context, d, y, s, partial);
    if (groups == 2) return launch_with<2, S>(context, d, y, s, partial);
    return launch_with<4, S>(context, d, y, s, partial);
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
    multiply_pair<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(
        narrow_view_of<decltype(type)>(x), narrow_view_of<float>(y), side, partial);
  });
}
