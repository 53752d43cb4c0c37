/* Launches of block_narrow.cuh by the precisions of the fields. */
#include "lattice/fields/cuda/block_narrow.cuh"

#include <math.h>

#include <algorithm>

namespace {

using namespace md_block_rows;

/* A matrix as staged_matrix has it. Zeros, and columns that are not finite, in units of one. */
template <int Q> void stage(int n, const double *matrix, staged_matrix<Q> *to) {
  double inverse[8 * Q];
  for (int j = 0; j < 8 * Q; j++) {
    double largest = 0.0;
    for (int i = 0; i < n && j < n; i++)
      for (int part = 0; part < 2; part++)
        largest = std::max(largest, fabs(matrix[2 * (i * n + j) + part]));
    const bool some = largest > 0x1p-1000 && largest < 0x1p1000;
    to->unit[j] = some ? ldexp(1.0, ilogb(largest) - 14) : 1.0;
    inverse[j] = 1.0 / to->unit[j];
  }
  for (int e = 0; e < 64 * Q * Q; e++) {
    const int lane = e % 32, q = e / (64 * Q), i = 2 * Q * (lane % 4) + e / 32 % (2 * Q);
    const int j = 8 * q + lane / 4;
    const double *m = matrix + 2 * (i * n + j);
    to->of[e] = i < n && j < n ? make_double2(inverse[j] * m[0], inverse[j] * m[1])
                               : make_double2(0.0, 0.0);
  }
}

/* The sums in the same pass as far as the registers hold them. */
template <int Q, class S, int N, bool HAS_X, summed_with SUMS>
md_status launch_update(md_context *context, device_block *d, md_field *y, const md_block_step *s,
                        const md_field *with, double *partial) {
  constexpr size_t matrices = (1 + HAS_X) * sizeof(matrix_of<Q, S>), sums = MD_BLOCK_GRAM_BYTES;
  constexpr size_t bytes = SUMS != NOTHING && matrices < sums ? sums : matrices;
  auto *kernel = update_sites<Q, S, N, HAS_X, SUMS>;
  staged_matrix<Q> *staged = (staged_matrix<Q> *)d->staging;
  stage(d->n, s->b, staged);
  if (HAS_X) stage(d->n, s->a, staged + 1);
  MD_TRY(md_block_prepare(context, d, kernel, bytes, (1 + HAS_X) * sizeof *staged));
  kernel<<<d->blocks, THREADS, bytes, md_stream()>>>(
      narrow_view_of<S, N>(y), narrow_view_of<S, N>(HAS_X ? s->x : y),
      narrow_view_of<S, N>(s->to ? s->to : y), narrow_view_of<S, N>(with ? with : y),
      (staged_matrix<Q> *)d->matrices, s->backwards, partial);
  return md_cuda_launched(context, "update of a block");
}

template <int Q, class S, int N>
md_status launch_add(md_context *context, device_block *d, md_field *z, int count,
                     const md_field *x, const double *c, const md_block_part *part) {
  const size_t bytes = count * sizeof(matrix_of<Q, S>);
  const int64_t pieces = z->sites / ROWS;
  staged_matrix<Q> *staged = (staged_matrix<Q> *)d->staging;
  narrow_views<S, N> views = {};
  for (int k = 0; k < count; k++) {
    views.of[k] = narrow_view_of<S, N>(&x[k]);
    stage(d->n, c + 2 * (size_t)k * d->n * d->n, staged + k);
  }
  MD_TRY(md_block_prepare(context, d, add_sites<Q, S, N>, bytes, count * sizeof *staged));
  add_sites<Q, S, N><<<d->blocks, THREADS, bytes, md_stream()>>>(
      narrow_view_of<float, N>(z), views, count, (staged_matrix<Q> *)d->matrices,
      pieces * part->index / part->count, pieces * (part->index + 1) / part->count);
  return md_cuda_launched(context, "sum of blocks");
}

/* f(Q, N) with n <= 8 Q, and N = n where that is 8 Q, else 0, as types. */
template <class F> auto with_columns(int n, F f) {
  using std::integral_constant;
  const int groups = md_block_groups(n);
  const bool whole = n == 8 * groups;
  const integral_constant<int, 0> any;
  const integral_constant<int, 1> one;
  const integral_constant<int, 2> two;
  const integral_constant<int, 4> four;
  if (groups == 1) return whole ? f(one, integral_constant<int, 8>()) : f(one, any);
  if (groups == 2) return whole ? f(two, integral_constant<int, 16>()) : f(two, any);
  return whole ? f(four, integral_constant<int, 32>()) : f(four, any);
}

} // namespace

/* In single the sums are good to more than tf32 gives: what is left of D p where p is nearly an
 * eigenvector of a small eigenvalue. */
void md_block_narrow_gram(const device_block *d, const md_field *x, double *partial) {
  const dim3 grid(d->blocks, d->tiles);
  with_narrow_type(x->precision, [&](auto type) {
    using S = decltype(type);
    if constexpr (std::is_same<S, float>::value)
      multiply_self<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(narrow_view_of<S>(x),
                                                                         partial);
    else
      with_columns(d->n, [&](auto, auto columns) {
        constexpr int N = columns() % SIDE == 0 ? columns() : 0;
        const auto view = narrow_view_of<S, N>(x);
        multiply_narrow<true>
            <<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(view, view, 0, partial);
      });
  });
}

md_status md_block_narrow_update(md_context *context, device_block *d, md_field *y,
                                 const md_block_step *s, const md_field *with, double *partial) {
  return with_narrow_type(y->precision, [&](auto type) {
    using S = decltype(type);
    return with_columns(d->n, [&](auto groups, auto columns) {
      constexpr int Q = groups(), N = columns();
      constexpr summed_with SUMS = Q <= 2 ? ITSELF : NOTHING;
      if constexpr (Q <= 2 && sizeof(S) == 2)
        if (with) return launch_update<Q, S, N, true, ANOTHER>(context, d, y, s, with, partial);
      if (s->x) return launch_update<Q, S, N, true, SUMS>(context, d, y, s, NULL, partial);
      return launch_update<Q, S, N, false, SUMS>(context, d, y, s, NULL, partial);
    });
  });
}

md_status md_block_narrow_add(md_context *context, device_block *d, md_field *z, int count,
                              const md_field *x, const double *c, const md_block_part *part) {
  return with_narrow_type(x->precision, [&](auto type) {
    using S = decltype(type);
    return with_columns(d->n, [&](auto groups, auto columns) {
      return launch_add<groups(), S, columns()>(context, d, z, count, x, c, part);
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
  with_narrow_type(x->precision, [&](auto type) {
    using S = decltype(type);
    if constexpr (std::is_same<S, float>::value)
      multiply_pair<<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(
          narrow_view_of<S>(x), narrow_view_of<S>(y), side, partial);
    else
      with_columns(d->n, [&](auto, auto columns) {
        constexpr int N = columns() % SIDE == 0 ? columns() : 0;
        multiply_narrow<false><<<grid, THREADS, MD_BLOCK_GRAM_BYTES, md_stream()>>>(
            narrow_view_of<S, N>(x), narrow_view_of<S, N>(y), side, partial);
      });
  });
}
