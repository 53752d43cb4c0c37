#pragma once

#include <utility>

#include "dirac/cuda/spin_legs.cuh"
#include "dirac/cuda/spin_march.cuh"

/* H of quarks with four spins. A column is a slice of a right-hand side, number slice * n_rhs + rhs
 * of its site; thread (j, i) of a block computes column j of the block's share at its i-th site, so
 * that neighbouring threads share the links of a site, which a bulk copy brings to shared memory
 * (STAGED), or, with few columns, are neighbouring sites (tiles of 32).
 *
 * Sites lie together (lattice/fields/field.h). A spinor of one right-hand side is 24 reals side by
 * side, read by 16 bytes at a time: each line that a warp touches is used whole, though by loads
 * behind each other, between which it stays in L1. The order of sites (tables.c) keeps the sites of
 * a block in a box, whose inner neighbours come from L1 too. */

/* The spinor of a column, complex number k of it at at(k). */
struct spinor_place {
  int64_t first;
  int step;
  __device__ int64_t at(int k) const { return 2 * (first + (int64_t)k * step); }
};
static __device__ inline spinor_place place_of_spinor(int site, int column, int columns,
                                                      int n_rhs) {
  const int slice = n_rhs == 1 ? column : column / n_rhs, rhs = column - slice * n_rhs;
  return {(int64_t)site * columns * HALF_SPINOR + slice * HALF_SPINOR * n_rhs + rhs, n_rhs};
}

/* A spinor as it is stored, loads that a thread may have under way. */
template <class S, bool ONE> struct stored_spinor {
  static constexpr int reals = ONE ? 16 / (int)sizeof(S) : 2;
  vector_of<S, reals> piece[SPINOR / reals];
};
template <class S, bool ONE>
static __device__ inline stored_spinor<S, ONE> fetch_spinor(const S *data, const spinor_place &p) {
  constexpr int reals = stored_spinor<S, ONE>::reals;
  stored_spinor<S, ONE> stored;
#pragma unroll
  for (int k = 0; k < SPINOR; k += reals)
    stored.piece[k / reals] = *reinterpret_cast<const vector_of<S, reals> *>(
        data + (ONE ? 2 * p.first + k : p.at(k / 2)));
  return stored;
}
template <class S, bool ONE>
static __device__ inline void unpack_spinor(const stored_spinor<S, ONE> &stored,
                                            real_of<S> psi[SPINOR]) {
  constexpr int reals = stored_spinor<S, ONE>::reals;
#pragma unroll
  for (int k = 0; k < SPINOR; k++) psi[k] = load_real(stored.piece[k / reals].v[k % reals]);
}

template <class S, bool ONE>
static __device__ inline void store_spinor(S *data, const spinor_place &p,
                                           const real_of<S> psi[SPINOR]) {
  constexpr int reals = ONE ? 16 / (int)sizeof(S) : 2;
#pragma unroll
  for (int k = 0; k < SPINOR; k += reals) {
    vector_of<S, reals> piece;
#pragma unroll
    for (int e = 0; e < reals; e++) piece.v[e] = store_real<S>(psi[k + e]);
    *reinterpret_cast<vector_of<S, reals> *>(data + (ONE ? 2 * p.first + k : p.at(k / 2))) = piece;
  }
}

/* Where a thread computes. */
struct spin_place {
  int site, h, row_sites, column;
};

/* What a leg needs of the neighbour. */
template <class S, bool ONE> struct neighbour {
  stored_spinor<S, ONE> spinor;
  float scale;
};
template <class S, bool ONE, int D>
static __device__ inline neighbour<S, ONE>
fetch_neighbour(const spin_arguments<S> &a, const spin_place &at, const md_row &row) {
  const int from = D == 0   ? at.site
                   : D == 1 ? along(row, NULL, at.site, at.h, at.row_sites, 1)
                            : across(row, D, at.h);
  return {fetch_spinor<S, ONE>(a.in, place_of_spinor(from, at.column, a.columns, a.n_rhs)),
          is_scaled<S> ? a.in_scale[from] : 1.0f};
}

template <class S, int R, bool ONE, bool STAGED, int D>
static __device__ inline void add_neighbour(const spin_arguments<S> &a, const md_row &row,
                                            const S *links, const neighbour<S, ONE> &from,
                                            real_of<S> sum[SPINOR]) {
  using T = real_of<S>;
  T psi[SPINOR], stored[R], u[18];
  unpack_spinor<S, ONE>(from.spinor, psi);
  load_link<S, R, STAGED>(links, D, link_policy(a.keep_links), stored);
  full_link<R>(stored, u);
  T factor = from.scale;
  if (R != 18 && row.bits >> (1 + D) & 1u) factor = -factor;
  add_direction_leg<D>(psi, u, factor, a.adjoint ? T(-1) : T(1), row.bits & 1u, sum);
}

/* Where neighbouring threads have a site each, one in 16 bits, whose spinors leave room, fetches
 * the next neighbour before it multiplies this one; rebuilding links of fewer reals takes it. */
template <class S, int R, bool ONE, bool STAGED>
constexpr bool fetches_ahead = ONE && !STAGED && sizeof(S) == 2 && R == 18;

template <class S, int R, bool ONE, bool STAGED, int... D>
static __device__ inline void
add_neighbours(std::integer_sequence<int, D...>, const spin_arguments<S> &a, const spin_place &at,
               const md_row &row, const S *links, real_of<S> sum[SPINOR]) {
  constexpr int ahead = fetches_ahead<S, R, ONE, STAGED> ? 1 : 0;
  neighbour<S, ONE> from[1 + ahead];
  if constexpr (ahead) from[0] = fetch_neighbour<S, ONE, 0>(a, at, row);
  const auto walk = [&](auto direction) {
    constexpr int d = decltype(direction)::value, next = d + ahead;
    if constexpr (next < 8) from[next % (1 + ahead)] = fetch_neighbour<S, ONE, next>(a, at, row);
    add_neighbour<S, R, ONE, STAGED, d>(a, row, links, from[d % (1 + ahead)], sum);
  };
  (walk(std::integral_constant<int, D>()), ...);
}

/* v = the matrix times v, or its transpose, of the slices of a site, which the threads of a block
 * have: spinors go through shared memory, each in a stride that meets all banks. */
template <class T> constexpr int spinor_stride = SPINOR + 16 / (int)sizeof(T);
template <class T>
static __device__ inline void multiply_site(const wall_steps<T> &m, bool adjoint, int n_rhs,
                                            char *shared, T v[SPINOR]) {
  constexpr int stride = spinor_stride<T>, reals = 16 / (int)sizeof(T);
  const int column = (int)threadIdx.x, slice = n_rhs == 1 ? column : column / n_rhs;
  T *const site = (T *)shared + (int)(threadIdx.y * blockDim.x) * stride;
  const auto piece = [&](int k) -> spinor_piece<T> & {
    return *reinterpret_cast<spinor_piece<T> *>(site + column * stride + k);
  };
  __syncthreads(); /* what is there has been read */
#pragma unroll
  for (int k = 0; k < SPINOR; k++) piece(k - k % reals).v[k % reals] = v[k];
  __syncthreads();
  multiply_slices(m, adjoint, slice, site + (column - slice * n_rhs) * stride, n_rhs * stride);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < SPINOR; k++) v[k] = piece(k - k % reals).v[k % reals];
}

/* out = a x + b sum, x multiplied by the matrix where WALLS, or where there is no x the sum, with a
 * new scale where all columns of the site are in the block. */
template <class S, bool ONE, bool WALLS>
static __device__ inline void finish_spinor(const spin_arguments<S> &a, const spin_place &at,
                                            bool active, char *shared, real_of<S> sum[SPINOR]) {
  using T = real_of<S>;
  const spinor_place place = place_of_spinor(at.site, at.column, a.columns, a.n_rhs);
#pragma unroll
  for (int c = 0; c < SPINOR; c++) sum[c] *= a.half_b;
  if (WALLS && !a.x) multiply_site(a.matrix, a.adjoint, a.n_rhs, shared, sum);
  if (a.x) {
    T x[SPINOR];
    unpack_spinor<S, ONE>(fetch_spinor<S, ONE>(a.x, place), x);
    if constexpr (WALLS) multiply_site(a.matrix, a.adjoint, a.n_rhs, shared, x);
    const T factor = is_scaled<S> ? a.a * (T)a.x_scale[at.site] : a.a;
#pragma unroll
    for (int c = 0; c < SPINOR; c++) sum[c] += factor * x[c];
  }
  if constexpr (is_scaled<S>) {
    float largest = 0.0f;
#pragma unroll
    for (int c = 0; c < SPINOR; c++) largest = larger_component<S>(largest, sum[c]);
    if (blockDim.x > 1) largest = site_largest<S>(largest, (float *)shared);
    const float scale = scale_of<S>(largest), inverse = inverse_of_scale<S>(scale);
    if (active && threadIdx.x == 0) a.out_scale[at.site] = scale;
#pragma unroll
    for (int c = 0; c < SPINOR; c++) sum[c] *= inverse;
  }
  if (active) store_spinor<S, ONE>(a.out, place, sum);
}

/* Threads of a block: a scale wants all columns of a site in one. */
constexpr int spin_threads = MD_SPIN_THREADS;
template <bool ONE, bool STAGED>
constexpr int most_spin_threads = !ONE     ? 2 * spin_threads
                                  : STAGED ? spin_threads
                                           : spin_threads / 2;
template <class S, int R, bool ONE, bool STAGED> constexpr int least_spins() {
  if (!ONE) return 1;
  if (fetches_ahead<S, R, ONE, STAGED>) return is_scaled<S> ? 5 : 4;
  return (sizeof(S) == 8 ? 2 : 3) * (spin_threads / most_spin_threads<ONE, STAGED>);
}

template <class S, int R, bool ONE, bool STAGED, bool WALLS>
__global__ void __launch_bounds__(most_spin_threads<ONE, STAGED>, least_spins<S, R, ONE, STAGED>())
    hop_spins(spin_arguments<S> a) {
  extern __shared__ __align__(16) char memory[];
  const int box = (int)blockIdx.x / a.shares; /* those of a site follow each other */
  const int first = box * (int)blockDim.y, left = a.count - first;
  md_release_successor();
  if (STAGED) fetch_links<S, 8 * R>(a.links, a.first + first, min(left, (int)blockDim.y), memory);
  const int column = ((int)blockIdx.x - box * a.shares) * (int)blockDim.x + (int)threadIdx.x;
  const int index = (int)threadIdx.y < left ? first + (int)threadIdx.y : a.count - 1;
  const bool active = (int)threadIdx.y < left && column < a.columns;
  const int slot = a.first + index;
  spin_place at = {a.order[slot], 0, (int)a.per_row.by, min(column, a.columns - 1)};
  const int row_number = md_quotient(at.site, a.per_row);
  at.h = at.site - row_number * at.row_sites;
  const md_row row = a.rows[row_number];
  const S *links = STAGED ? (const S *)memory + (index - first) * (8 * R)
                          : a.links + (int64_t)(slot >> 5) * (32 * 8 * R) +
                                (slot & 31) * (link_piece<S, R, 1> / (int)sizeof(S));
  real_of<S> sum[SPINOR] = {};
  md_wait_for_predecessor(); /* it wrote the source, and may read out */
  add_neighbours<S, R, ONE, STAGED>(std::make_integer_sequence<int, 8>(), a, at, row, links, sum);
  finish_spinor<S, ONE, WALLS>(a, at, active, memory, sum);
}

/* WALLS: the threads of a block have all columns of their sites. */
template <class S, int R, bool ONE, bool STAGED, bool WALLS = false>
static void launch_spins(const md_stencil *s, spin_arguments<S> &a, void *queue) {
  constexpr int site_bytes = STAGED ? 8 * R * (int)sizeof(S) : 0;
  constexpr int most_bytes = (48 << 10) - 128; /* with the barrier of fetch_links */
  const bool whole = is_scaled<S> || WALLS || s->columns_of_block > a.columns;
  const int share = whole ? a.columns : s->columns_of_block;
  a.shares = (a.columns + share - 1) / share;
  constexpr int threads = most_spin_threads<true, STAGED>;
  int sites = share < threads ? threads / share : 1;
  while (sites > 1 && sites * site_bytes > most_bytes) sites /= 2;
  constexpr size_t number = WALLS ? spinor_stride<real_of<S>> * sizeof(real_of<S>) : sizeof(float);
  const size_t links = (size_t)sites * site_bytes, exchanged = (size_t)sites * share * number;
  const size_t shared = links > exchanged ? links : exchanged;
  const dim3 grid((unsigned)((a.count + sites - 1) / sites * a.shares));
  const auto kernel = hop_spins<S, R, ONE, STAGED, WALLS>;
  if (shared > most_bytes)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (a.count > 0) md_launch_early_on(queue, kernel, grid, dim3(share, sites), shared, a);
}

template <class S, int R> static int hop_spins_reals(const md_stencil *s, const md_hop_call *call) {
  auto a = ordered_arguments_of<spin_arguments<S>, S>(s, call);
  a.half_b = (real_of<S>)md_hop_end_of(call).b;
  a.adjoint = md_hop_step_of(call).adjoint;
  a.columns = call->out->components / SPINOR * a.n_rhs;
  a.out = (S *)call->out->data;
  a.matrix = wall_steps_of<real_of<S>>(md_hop_step_of(call).matrix, call->out->precision);
  const bool walls = a.matrix.slices > 0;
  if constexpr (sizeof(S) > 2)
    if (s->march.x > 0) return launch_spin_march<S, R>(s->march, call->range, a, call->queue);
  if (walls && a.n_rhs > 1)
    launch_spins<S, R, false, true, true>(s, a, call->queue);
  else if (walls)
    launch_spins<S, R, true, true, true>(s, a, call->queue);
  else if (a.n_rhs > 1)
    launch_spins<S, R, false, true>(s, a, call->queue);
  else if (s->tile == 1)
    launch_spins<S, R, true, true>(s, a, call->queue);
  else
    launch_spins<S, R, true, false>(s, a, call->queue);
  return (int)cudaGetLastError();
}

template <class S> int hop_spins_any(const md_stencil *s, const md_hop_call *call) {
  return s->reals[0] == 18   ? hop_spins_reals<S, 18>(s, call)
         : s->reals[0] == 12 ? hop_spins_reals<S, 12>(s, call)
                             : hop_spins_reals<S, 8>(s, call);
}
