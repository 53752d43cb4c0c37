#pragma once

#include "dirac/cuda/hop_one.cuh"

/* Many right-hand sides: thread (j, i) of a block computes B right-hand sides of the block's i-th
 * site, so that a link serves n_rhs/B neighbouring threads, B products each. The order of sites
 * keeps those of a block and of the blocks beside it close in four dimensions. With few right-hand
 * sides the threads load the links where they use them; with many (STAGED) there are few sites to
 * a block, and a bulk copy brings all their links to shared memory ahead. */

template <class S> struct many_arguments {
  const S *links;
  const md_row *rows;
  const int32_t *order;
  int first, count, n_rhs; /* slots first .. first + count - 1 */
  bool keep_links, backwards;
  md_divisor per_row;
  const S *in, *x; /* x NULL: plain assignment */
  const S *before; /* as in md_hop_step; NULL: none */
  S *out;
  float *wide; /* out in MD_SINGLE beside 16-bit S, `out` is not used then; else NULL */
  const float *in_scale, *x_scale;
  float *out_scale;
  real_of<S> a, half_b;
  const double *step; /* md_hop_step.by */
  unit_sum *norm2;    /* [rhs][MD_SUM_SLOTS], in units[rhs]; NULL: none */
  const sum_units *units;
  const md_long_row *long_rows; /* for long links */
  real_of<S> unit[2];           /* as in hop_arguments */
};

/* Complex numbers of one load, and the b-th right-hand side of a thread: the loads of the threads
 * of a site lie side by side. */
template <class S, int B>
constexpr int load_width = B < 8 / (int)sizeof(S) ? B : 8 / (int)sizeof(S);
template <class S, int B> static __device__ inline int rhs_of(int b) {
  constexpr int width = load_width<S, B>;
  return (b / width * (int)blockDim.x + (int)threadIdx.x) * width + b % width;
}

/* v[b][c] of one site: the thread's right-hand sides */
template <class S, int B>
static __device__ inline void load_block(const S *data, int64_t site, int n_rhs,
                                         real_of<S> v[B][6]) {
  constexpr int width = load_width<S, B>;
#pragma unroll
  for (int c = 0; c < 3; c++) {
#pragma unroll
    for (int b = 0; b < B; b += width) {
      const auto piece = *reinterpret_cast<const vector_of<S, 2 * width> *>(
          data + ((site * 3 + c) * n_rhs + rhs_of<S, B>(b)) * 2);
#pragma unroll
      for (int e = 0; e < 2 * width; e++) v[b + e / 2][2 * c + e % 2] = load_real(piece.v[e]);
    }
  }
}

template <class S, int B>
static __device__ inline void store_block(S *data, int64_t site, int n_rhs,
                                          const real_of<S> v[B][6]) {
  constexpr int width = load_width<S, B>;
#pragma unroll
  for (int c = 0; c < 3; c++) {
#pragma unroll
    for (int b = 0; b < B; b += width) {
      vector_of<S, 2 * width> piece;
#pragma unroll
      for (int e = 0; e < 2 * width; e++) piece.v[e] = store_real<S>(v[b + e / 2][2 * c + e % 2]);
      *reinterpret_cast<vector_of<S, 2 * width> *>(
          data + ((site * 3 + c) * n_rhs + rhs_of<S, B>(b)) * 2) = piece;
    }
  }
}

/* to += the right-hand sides of a site of `wide`, and stores the sum there. */
template <class S, int B>
static __device__ inline void add_to_wide(float to[B][6], float *wide, int64_t site, int n_rhs,
                                          bool active) {
#pragma unroll
  for (int c = 0; c < 3; c++) {
#pragma unroll
    for (int b = 0; b < B; b++) {
      float2 *p = reinterpret_cast<float2 *>(wide) + (site * 3 + c) * n_rhs + rhs_of<S, B>(b);
      const float2 old = *p;
      to[b][2 * c] += old.x;
      to[b][2 * c + 1] += old.y;
      if (active) *p = make_float2(to[b][2 * c], to[b][2 * c + 1]);
    }
  }
}

/* Largest component of a site over its right-hand sides, which sit in neighbouring threads. */
template <class S> static __device__ inline float site_largest(float largest, float *shared) {
  __syncthreads(); /* staged links have been read */
  float *mine = shared + threadIdx.y * blockDim.x;
  mine[threadIdx.x] = largest;
  __syncthreads();
  for (int j = 0; j < (int)blockDim.x; j++) largest = larger_component<S>(largest, mine[j]);
  return largest;
}

/* The thread's entries of a row of steps; ones for NULL. */
template <class S, int B>
static __device__ inline void load_steps(const double *row, real_of<S> step[B]) {
#pragma unroll
  for (int b = 0; b < B; b++) step[b] = row ? (real_of<S>)row[rhs_of<S, B>(b)] : real_of<S>(1);
}

/* to[rhs] += a step[rhs] * the right-hand sides of f at a site */
template <class S, int B>
static __device__ inline void add_block(real_of<S> to[B][6], real_of<S> a, const real_of<S> step[B],
                                        const S *f, const float *scale, int site, int n_rhs) {
  using T = real_of<S>;
  T x[B][6];
  load_block<S, B>(f, site, n_rhs, x);
  const T factor = is_scaled<S> ? a * (T)scale[site] : a;
#pragma unroll
  for (int e = 0; e < B * 6; e++) to[e / 6][e % 6] += factor * step[e / 6] * x[e / 6][e % 6];
}

/* Stores the sites of the thread block with new scales, unless they are in `wide` already, and
 * leaves its norms; `shared` holds a unit_sum for each site and right-hand side. */
template <class S, int B>
static __device__ inline void finish_block(const many_arguments<S> &a, int block, int site,
                                           bool active, char *shared, real_of<S> acc[B][6]) {
  using T = real_of<S>;
  T scale = 1.0f, inverse = 1.0f;
  const bool wide = sizeof(S) == 2 && a.wide;
  if constexpr (is_scaled<S>)
    if (!wide) {
      float largest = 0.0f;
#pragma unroll
      for (int b = 0; b < B; b++)
#pragma unroll
        for (int c = 0; c < 6; c++) largest = larger_component<S>(largest, acc[b][c]);
      scale = scale_of<S>(site_largest<S>(largest, (float *)shared));
      inverse = inverse_of_scale<S>(scale);
      if (active && threadIdx.x == 0) a.out_scale[site] = scale;
    }
#pragma unroll
  for (int b = 0; b < B; b++)
#pragma unroll
    for (int c = 0; c < 6; c++) acc[b][c] *= inverse;
  if (active && !wide) store_block<S, B>(a.out, site, a.n_rhs, acc);
  if (!a.norm2) return;
  __syncthreads();
  unit_sum *sums = (unit_sum *)shared;
#pragma unroll
  for (int b = 0; b < B; b++) {
    double norm2 = 0.0;
#pragma unroll
    for (int c = 0; c < 6; c++) {
      const T stored = wide ? acc[b][c] : load_real(store_real<S>(acc[b][c])) * scale;
      norm2 += (double)stored * (double)stored;
    }
    const int r = rhs_of<S, B>(b);
    sums[threadIdx.y * a.n_rhs + r] = unit_sum_of<one_word<S>>(active ? norm2 : 0.0, a.units[r]);
  }
  __syncthreads();
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int r = thread; r < a.n_rhs; r += blockDim.x * blockDim.y) {
    unit_sum sum = {};
    for (int i = 0; i < (int)blockDim.y; i++) {
      sum.high += sums[i * a.n_rhs + r].high;
      if (!one_word<S>) sum.low += sums[i * a.n_rhs + r].low;
    }
    add_to_slot<one_word<S>>(a.norm2, r, block, sum);
  }
}

/* Blocks that a multiprocessor is to hold, 0: as the compiler likes. Half is short of warps, and a
 * few registers decide between six and seven blocks, five and six; RL as in hop_many. */
template <class S, int R, int B, bool STAGED, int RL> constexpr int least_many() {
  if (!std::is_same<S, __half>::value || B < 4 || has_phase<RL>) return 0;
  return R == 18 ? 7 : R == 12 && !STAGED ? 6 : 0;
}

/* The neighbour of a site in stored order, from one row record; x along h is apart. */
template <class ROW> static __device__ inline int across(const ROW &row, int direction, int h) {
  return row.base[(direction / 2 + 2) % 3 + direction % 2 * 3] + h;
}

/* The neighbour of the site h of its row along x, near or far, one or three sites away: `step` rows
 * of h on the far side, -1 on the near side. */
static __device__ inline int along(const md_row &row, const md_long_row *long_row, int site, int h,
                                   int row_sites, int step) {
  const bool up = row.bits & 1u;
  const int left = up ? row_sites - 1 - h : h;
  if (step < 0) return left + 1 < row_sites ? (up ? site - 1 : site + 1) : long_row->behind;
  if (left >= step) return up ? site + step : site - step;
  return step == 1 || left == 1 ? row.edge : long_row->beyond;
}

/* Copies the links of the block's sites, SITE_REALS each, from `slot` on, to shared memory and
 * waits for them. */
template <class S, int SITE_REALS>
static __device__ inline void fetch_links(const S *links, int slot, int sites, char *shared) {
  constexpr unsigned site_bytes = SITE_REALS * sizeof(S);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* no copy engine that a block may use */
  constexpr int words = site_bytes / 16;
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int w = thread; w < sites * words; w += blockDim.x * blockDim.y) {
    const uint4 *from = (const uint4 *)(links + (int64_t)(slot + w / words) * SITE_REALS);
    ((uint4 *)shared)[w] = from[w % words];
  }
  __syncthreads();
#else
  __shared__ alignas(8) uint64_t barrier;
  const unsigned flag = (unsigned)__cvta_generic_to_shared(&barrier);
  const unsigned target = (unsigned)__cvta_generic_to_shared(shared);
  if (threadIdx.y == 0 && threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(flag));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(flag),
                 "r"(sites * site_bytes));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(target),
                 "l"(links + (int64_t)slot * SITE_REALS), "r"(sites * site_bytes), "r"(flag)
                 : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred done;\nwait:\n"
               "mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
               "@!done bra wait;\n}" ::"r"(flag)
               : "memory");
#endif
}

/* The stored reals of one direction, from the site's links in shared memory or from a slot's in
 * device memory, where the chunks of 32 slots take turns. */
template <class S, int R, bool STAGED>
static __device__ inline void load_link(const void *links, int direction, uint64_t policy,
                                        real_of<S> u[R]) {
  using chunk = chunk_of<link_piece<S, R, 1>>;
  constexpr int reals = sizeof(chunk) / sizeof(S), chunks = 2 * R / reals, step = STAGED ? 1 : 32;
  const int side = direction % 2;
  const chunk *p = (const chunk *)links + direction / 2 * chunks * step;
#pragma unroll
  for (int c = 0; c < chunks; c++) {
    if ((c + 1) * reals <= side * R || c * reals >= (side + 1) * R) continue;
    alignas(16) S raw[reals];
    *reinterpret_cast<chunk *>(raw) = STAGED ? p[c] : load_once(p + c * step, policy);
#pragma unroll
    for (int e = 0; e < reals; e++) {
      const int r = c * reals + e - side * R;
      if (r >= 0 && r < R) u[r] = load_real(raw[e]);
    }
  }
  unpack_link<S, R>(u);
}

/* The matrix of a link with a phase, times that, `factor`, and the sign. */
template <class S, int R>
static __device__ inline void load_phased(const void *links, int direction, uint64_t policy,
                                          real_of<S> factor, bool minus, real_of<S> u[18]) {
  using T = real_of<S>;
  T stored[R];
  load_link<S, R, false>(links, direction, policy, stored);
  full_link<R>(stored, u);
  const complex_of<T> z = phase_of(stored[R - 1]);
  if (minus) factor = -factor;
#pragma unroll
  for (int row = 0; row < 3; row++)
    turn_vector(complex_of<T>{factor * z.re, factor * z.im}, u + 6 * row);
}

/* RL: reals of the long links, 0: none. */
template <class S, int R, int B, bool STAGED, int RL>
__global__ void __launch_bounds__(128, least_many<S, R, B, STAGED, RL>())
    hop_many(many_arguments<S> a) {
  using T = real_of<S>;
  constexpr int FIELDS = RL > 0 ? 2 : 1, site_reals = 8 * (R + RL);
  constexpr bool PHASED = has_phase<RL>;
  extern __shared__ __align__(16) char memory[];
  const int block = a.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const int first = block * blockDim.y, left = a.count - first;
  md_release_successor();
  if (STAGED)
    fetch_links<S, site_reals>(a.links, a.first + first, min(left, (int)blockDim.y), memory);
  const bool active = (int)threadIdx.y < left;
  const int index = active ? first + (int)threadIdx.y : a.count - 1;
  const int slot = a.first + index, site = a.order[slot];
  const int row_sites = (int)a.per_row.by;
  const int row_number = md_quotient(site, a.per_row), h = site - row_number * row_sites;
  const md_row row = a.rows[row_number];
  const uint64_t policy = link_policy(a.keep_links);
  const S *links = STAGED ? (const S *)memory + (active ? (int)threadIdx.y : left - 1) * site_reals
                          : a.links + (int64_t)(slot >> 5) * 32 * site_reals;
  const S *far_links = links + 32 * 8 * R; /* those with a phase are never staged */
  if (!STAGED) links += (slot & 31) * (link_piece<S, R, 1> / (int)sizeof(S));
  if (PHASED) far_links += (slot & 31) * (link_piece < S, PHASED ? RL : R, 1 > / (int)sizeof(S));
  T acc[B][6] = {};
  md_wait_for_predecessor(); /* it wrote the source, and may read out */
#pragma unroll
  for (int d = 0; d < 8 * FIELDS; d++) {
    const int direction = d % 8;
    const md_long_row *long_row = d < 8 ? NULL : a.long_rows + row_number;
    int from;
    if (direction == 0)
      from = d < 8 ? site : along(row, long_row, site, h, row_sites, -1);
    else if (direction == 1)
      from = along(row, long_row, site, h, row_sites, d < 8 ? 1 : 2);
    else
      from = d < 8 ? across(row, direction, h) : across(*long_row, direction, h);
    T v[B][6], stored[R], u[18];
    load_block<S, B>(a.in, from, a.n_rhs, v);
    if constexpr (PHASED)
      if (d >= 8) {
        const T factor = is_scaled<S> ? a.unit[1] * a.in_scale[from] : a.unit[1];
        load_phased<S, RL>(far_links, direction, policy, factor, row.bits >> (1 + d) & 1u, u);
      }
    if (!PHASED || d < 8) {
      load_link<S, R, STAGED>(links, d, policy, stored);
      full_link<R>(stored, u);
      T factor = is_scaled<S> ? a.in_scale[from] : 1.0f;
      if (R == 18 && is_fixed<S>) factor *= FIELDS == 1 ? link_unit<S> : a.unit[d / 8];
      if (R != 18 && row.bits >> (1 + d) & 1u) factor = -factor;
      if (is_scaled<S> || R != 18)
#pragma unroll
        for (int r = 0; r < 18; r++) u[r] *= factor;
    }
#pragma unroll
    for (int b = 0; b < B; b++) add_link_product<18>(u, v[b], acc[b]);
  }
  const bool mixes = sizeof(S) != 2 && a.before;
  T step[B];
  load_steps<S, B>(a.step, step);
#pragma unroll
  for (int e = 0; e < B * 6; e++) acc[e / 6][e % 6] *= step[e / 6] * a.half_b;
  if (mixes) load_steps<S, B>(a.step + MD_MAX_RHS, step);
  if (a.x) add_block<S, B>(acc, mixes ? T(1) : a.a, step, a.x, a.x_scale, site, a.n_rhs);
  if constexpr (sizeof(S) == 2)
    if (a.wide) add_to_wide<S, B>(acc, a.wide, site, a.n_rhs, active);
  if (a.step && !(sizeof(S) == 2 && a.wide)) {
    load_steps<S, B>(mixes ? a.step + 2 * MD_MAX_RHS : NULL, step);
    add_block<S, B>(acc, T(1), step, mixes ? a.before : a.out, a.out_scale, site, a.n_rhs);
  }
  finish_block<S, B>(a, block, site, active, memory, acc);
}

template <class S, int R, int B, bool STAGED, int RL>
static void launch_many(const many_arguments<S> &a, void *queue) {
  const int lanes = a.n_rhs / B, sites = lanes < 128 ? 128 / lanes : 1;
  const int blocks = (a.count + sites - 1) / sites;
  const size_t sums = (size_t)sites * a.n_rhs * sizeof(unit_sum); /* for norms and scales */
  const size_t links = STAGED ? (size_t)sites * 8 * (R + RL) * sizeof(S) : 0;
  if (blocks > 0)
    md_launch_early_on(queue, hop_many<S, R, B, STAGED, RL>, dim3(blocks), dim3(lanes, sites),
                       sums > links ? sums : links, a);
}

template <class S, int R, int B, int RL>
static void launch_many_from(const md_stencil *s, many_arguments<S> &a, void *queue) {
  if (s->tile == 1)
    launch_many<S, R, B, true, RL>(a, queue);
  else
    launch_many<S, R, B, false, RL>(a, queue);
}

/* Links with a phase spare compile time: they lie in tiles of 32 for any number of right-hand
 * sides, and by twos those do not go. */
template <class S, int R, int B>
static void launch_many_of(const md_stencil *s, many_arguments<S> &a, void *queue) {
  const int reals = s->reals[1];
  if (reals == 0) {
    launch_many_from<S, R, B, 0>(s, a, queue);
  } else if constexpr (R == 18) {
    constexpr int by = B == 2 && sizeof(S) < 8 ? 1 : B;
    if (reals == 18) launch_many_from<S, R, B, 18>(s, a, queue);
    if (reals == 13) launch_many<S, R, by, false, 13>(a, queue);
    if (reals == 9) launch_many<S, R, by, false, 9>(a, queue);
  }
}

/* What the arguments of this kernel and of that for four spins have in common. */
template <class ARGUMENTS, class S>
static ARGUMENTS ordered_arguments_of(const md_stencil *s, const md_hop_call *call) {
  const md_hop_end end = md_hop_end_of(call);
  auto a = arguments_of<ARGUMENTS, S>(s, call);
  a.order = s->order;
  a.first = s->range[call->range].first;
  a.count = s->range[call->range].count;
  a.n_rhs = call->out->n_rhs;
  a.in = (const S *)call->in->data;
  a.in_scale = call->in->scale;
  a.x = end.x ? (const S *)end.x->data : NULL;
  a.x_scale = end.x ? end.x->scale : NULL;
  a.out_scale = call->out->scale;
  return a;
}

template <class S, int R> static int hop_many_reals(const md_stencil *s, const md_hop_call *call) {
  const md_hop_step step = md_hop_step_of(call);
  auto a = ordered_arguments_of<many_arguments<S>, S>(s, call);
  a.before = step.before ? (const S *)step.before->data : NULL;
  if (sizeof(S) == 2 && call->out->precision == MD_SINGLE)
    a.wide = (float *)call->out->data;
  else
    a.out = (S *)call->out->data;
  a.long_rows = s->long_rows;
  constexpr int most = sizeof(S) < 8 ? 4 : 2; /* two 16-byte loads a colour at most */
  if (a.n_rhs % most == 0)
    launch_many_of<S, R, most>(s, a, call->queue);
  else if (a.n_rhs % 2 == 0)
    launch_many_of<S, R, 2>(s, a, call->queue);
  else
    launch_many_of<S, R, 1>(s, a, call->queue);
  return (int)cudaGetLastError();
}

template <class S> static int hop_many_any(const md_stencil *s, const md_hop_call *call) {
  return s->reals[0] == 18   ? hop_many_reals<S, 18>(s, call)
         : s->reals[0] == 12 ? hop_many_reals<S, 12>(s, call)
                             : hop_many_reals<S, 8>(s, call);
}
