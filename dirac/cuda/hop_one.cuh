#pragma once

#include "base/device.cuh"
#include "dirac/cuda/link.cuh"
#include "dirac/cuda/stencil.h"
#include "lattice/fields/cuda/unit_sum.cuh"

/* One right-hand side: a thread computes the V sites of a slot from 16-byte pieces of links and
 * V-wide pieces of the source planes. Where there are few slots for the many threads of a GPU
 * (SPLIT), four threads share a slot, one direction pair each. */

/* The source vectors of a slot's neighbours, for one right-hand side: V-wide pieces of the planes
 * of a field. In y, z and t the neighbours of V sites are V neighbouring sites; along x they are
 * moved by one site or two. */
template <class S> struct plane_view {
  S *data;
  float *scale;
  int64_t stride;
};
template <class S> static plane_view<S> planes_of(const md_field *f) {
  return f ? plane_view<S>{(S *)f->data, f->scale, f->stride} : plane_view<S>{};
}

/* v[site][c] = f values of V neighbouring sites */
template <class S, int V>
static __device__ inline void load_sites(const plane_view<S> &f, int site, real_of<S> v[V][6]) {
#pragma unroll
  for (int c = 0; c < 6; c++) {
    const vector_of<S, V> piece =
        *reinterpret_cast<const vector_of<S, V> *>(f.data + c * f.stride + site);
#pragma unroll
    for (int i = 0; i < V; i++) v[i][c] = load_real(piece.v[i]);
  }
}

template <class S, int V>
static __device__ inline void load_scales(const plane_view<S> &f, int site, float scale[V]) {
  if constexpr (is_scaled<S>) {
    const vector_of<float, V> piece =
        *reinterpret_cast<const vector_of<float, V> *>(f.scale + site);
#pragma unroll
    for (int i = 0; i < V; i++) scale[i] = piece.v[i];
  }
}

/* The vectors of V neighbouring sites. */
template <class S, int V> struct vectors {
  real_of<S> v[V][6];
  float scale[V] = {};
  __device__ void load(const plane_view<S> &f, int site) {
    load_sites<S, V>(f, site, v);
    load_scales<S, V>(f, site, scale);
  }
  /* Sites that need not be neighbours. */
  __device__ void load_each(const plane_view<S> &f, const int site[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      load_sites<S, 1>(f, site[i], v + i);
      load_scales<S, 1>(f, site[i], scale + i);
    }
  }
  /* This one moved by one site, up: towards lower places, filled up with `last`. */
  __device__ void moved(bool up, const vectors<S, 1> &last, vectors &out) const {
#pragma unroll
    for (int i = 0; i < V; i++) {
#pragma unroll
      for (int c = 0; c < 6; c++)
        out.v[i][c] = up ? (i + 1 < V ? v[(i + 1) % V][c] : last.v[0][c])
                         : (i > 0 ? v[(i + V - 1) % V][c] : last.v[0][c]);
      out.scale[i] = up ? (i + 1 < V ? scale[(i + 1) % V] : last.scale[0])
                        : (i > 0 ? scale[(i + V - 1) % V] : last.scale[0]);
    }
  }
};

/* The far x-neighbours: the near vector moved by one, filled up with one more site. */
template <class S, int V>
static __device__ inline void load_far(const plane_view<S> &in, const md_row &row, int site, int h,
                                       int row_sites, const vectors<S, V> &near,
                                       vectors<S, V> &far) {
  const bool up = row.bits & 1u;
  const int step = up ? site + V : site - 1;
  vectors<S, 1> last;
  last.load(in, h == (up ? row_sites - V : 0) ? row.edge : step);
  near.moved(up, last, far);
}

/* Of the hops along x: the far neighbours, and those of the long links on both sides. Between them
 * lie the near ones; one side lacks two sites, the other one. */
template <class S, int V>
static __device__ inline void
load_far_and_long(const plane_view<S> &in, const md_row &row, const md_long_row &long_row, int site,
                  int h, int row_sites, const vectors<S, V> &near, vectors<S, V> &far,
                  vectors<S, V> &long_near, vectors<S, V> &long_far) {
  const bool up = row.bits & 1u;
  const int left = up ? row_sites - V - h : h; /* sites between the slot and the row's far end */
  const int first = left > 0 ? (up ? site + V : site - 1) : row.edge;
  const int second = left > 1   ? (up ? site + V + 1 : site - 2)
                     : left > 0 ? row.edge
                                : long_row.beyond;
  const bool at_near_end = h == (up ? 0 : row_sites - V);
  vectors<S, 1> last;
  last.load(in, at_near_end ? long_row.behind : up ? site - 1 : site + V);
  near.moved(!up, last, long_near);
  if constexpr (V == 1) {
    far.load(in, first);
    long_far.load(in, second);
  } else {
    const int pair[2] = {up ? first : second, up ? second : first};
    if (pair[1] == pair[0] + 1 && pair[0] % 2 == 0)
      long_far.load(in, pair[0]);
    else
      long_far.load_each(in, pair);
#pragma unroll
    for (int c = 0; c < 6; c++) last.v[0][c] = up ? long_far.v[0][c] : long_far.v[1][c];
    last.scale[0] = up ? long_far.scale[0] : long_far.scale[1];
    near.moved(up, last, far);
  }
}

/* How the slots of a hop are dealt out. ahead: split, and the links, where they stay in L2, come to
 * shared memory while the predecessor ends. */
enum class sharing { none, split, ahead };

/* Blocks that a multiprocessor is to hold, 0: as the compiler likes. In `ahead` the fewer, the more
 * of a thread's loads are under way; 8 reals gain 7 to 9 % by one block more in double and single,
 * and whole links of fixed would lose one block to the sums of a solver. */
template <class S, int R, int V, sharing SHARING, bool LONG> constexpr int least_blocks() {
  if (SHARING == sharing::ahead) return sizeof(S) == 2 && R < 18 ? 4 : 0;
  if (SHARING != sharing::none || LONG) return 0;
  if (R == 18) return is_fixed<S> && V == 2 ? 8 : 0;
  if (R != 8) return 0;
  return sizeof(S) == 8 ? 7 : sizeof(S) == 4 && V == 2 ? 6 : 0;
}

static __device__ inline int slot_of(const md_slot_range &r, int index) {
  if (r.list) return r.list[index];
  return index + r.first + (index < r.gap_at ? 0 : r.gap);
}

template <class S> struct hop_arguments {
  const void *links;
  const md_row *rows;
  md_slot_range slots;
  md_divisor per_row;
  bool keep_links, backwards;
  plane_view<S> out, in, x; /* x.data NULL: plain assignment */
  plane_view<S> before;     /* as in md_hop_step; data NULL: none */
  real_of<S> a, half_b;
  real_of<S> unit[2];     /* of the fields: what whole links are multiples of in fixed, and links
                             with a phase in every type */
  plane_view<float> wide; /* out in MD_SINGLE beside 16-bit S, `out` is not used then; else NULL */
  const double *step;     /* md_hop_step.by */
  unit_sum *norm2;        /* [MD_SUM_SLOTS], in `units`; NULL: none */
  const sum_units *units;
};

/* unit[f] of hop_arguments; the coordinates of a link with a phase are unpacked, to 1 at most. */
template <class S> static real_of<S> unit_of(const md_stencil *s, int f) {
  const bool whole = s->reals[f] == 18;
  return (whole ? link_unit<S> : 1.0f) * (real_of<S>)s->largest[f];
}

/* What the arguments of this kernel and of that for many right-hand sides have in common. */
template <class ARGUMENTS, class S>
static ARGUMENTS arguments_of(const md_stencil *s, const md_hop_call *call) {
  const md_hop_end end = md_hop_end_of(call);
  const md_hop_step step = md_hop_step_of(call);
  ARGUMENTS a = {};
  a.links = (decltype(a.links))s->links;
  a.rows = s->rows;
  a.per_row = s->slots_per_row;
  a.keep_links = s->keep_links;
  a.backwards = step.backwards;
  a.a = (real_of<S>)end.a;
  a.half_b = (real_of<S>)(MD_HOP_FACTOR * end.b);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) a.unit[f] = unit_of<S>(s, f);
  a.step = step.by;
  if (step.norm2) a.norm2 = step.norm2->sum, a.units = step.norm2->units;
  return a;
}

/* Largest piece of 16, 8 or 4 bytes that divides the links of a slot in a direction pair. */
constexpr int link_piece_of(int pair_bytes) {
  return pair_bytes % 16 == 0 ? 16 : pair_bytes % 8 == 0 ? 8 : 4;
}
template <class S, int R, int V>
constexpr int link_piece = link_piece_of(2 * R * V * (int)sizeof(S));

template <int BYTES>
using chunk_of =
    typename std::conditional<BYTES == 16, uint4,
                              typename std::conditional<BYTES == 8, uint2, uint32_t>::type>::type;

/* v *= what the products still lack: the scale, the unit of whole links (others are unpacked), the
 * sign unless the links hold it; and for a link with a phase that, and its unit. */
template <class S, int R>
static __device__ inline void apply_factor(const real_of<S> u[R], real_of<S> v[6], float scale,
                                           real_of<S> unit, unsigned minus) {
  if constexpr (has_phase<R>) {
    complex_of<real_of<S>> z = phase_of(u[R - 1]);
    real_of<S> factor = is_scaled<S> ? scale * unit : unit;
    if (minus) factor = -factor;
    z = {factor * z.re, factor * z.im};
    turn_vector(z, v);
  } else if constexpr (is_scaled<S> || R != 18) {
    real_of<S> factor = is_scaled<S> ? scale : 1.0f;
    if (R == 18 && is_fixed<S>) factor *= unit;
    if (R != 18 && minus) factor = -factor;
#pragma unroll
    for (int c = 0; c < 6; c++) v[c] *= factor;
  }
}

/* to += factor * the V sites of f */
template <class S, int V>
static __device__ inline void add_sites(real_of<S> to[V][6], real_of<S> factor,
                                        const plane_view<S> &f, int site) {
  real_of<S> x[V][6];
  float scale[V];
  load_sites<S, V>(f, site, x);
  load_scales<S, V>(f, site, scale);
#pragma unroll
  for (int e = 0; e < V * 6; e++)
    to[e / 6][e % 6] += (is_scaled<S> ? factor * scale[e / 6] : factor) * x[e / 6][e % 6];
}

/* Stores acc at the V sites of out with new scales; acc then holds what reads back. */
template <class S, int V>
static __device__ inline void store_sites(const plane_view<S> &out, int site,
                                          real_of<S> acc[V][6]) {
  vector_of<S, V> stored[6];
  vector_of<float, V> scales;
#pragma unroll
  for (int i = 0; i < V; i++) {
    real_of<S> inverse = 1.0f;
    if constexpr (is_scaled<S>) {
      float largest = 0.0f;
#pragma unroll
      for (int c = 0; c < 6; c++) largest = larger_component<S>(largest, acc[i][c]);
      scales.v[i] = scale_of<S>(largest);
      inverse = inverse_of_scale<S>(scales.v[i]);
    }
#pragma unroll
    for (int c = 0; c < 6; c++) {
      stored[c].v[i] = store_real<S>(acc[i][c] * inverse);
      acc[i][c] = load_real(stored[c].v[i]) * (is_scaled<S> ? scales.v[i] : 1.0f);
    }
  }
  if constexpr (is_scaled<S>) *reinterpret_cast<vector_of<float, V> *>(out.scale + site) = scales;
#pragma unroll
  for (int c = 0; c < 6; c++)
    *reinterpret_cast<vector_of<S, V> *>(out.data + c * out.stride + site) = stored[c];
}

/* out = a x + b/2 acc, out += step (a x + b/2 acc), or what md_hop_step says of `before`, at the V
 * sites; acc becomes what is stored. */
template <class S, int V>
static __device__ inline void finish_sites(const hop_arguments<S> &h, int site,
                                           real_of<S> acc[V][6]) {
  using T = real_of<S>;
  const bool mixes = sizeof(S) != 2 && h.before.data;
  const T step = h.step ? (T)*h.step : T(1);
  const T of_x = mixes ? (T)h.step[MD_MAX_RHS] : step * h.a;
#pragma unroll
  for (int e = 0; e < V * 6; e++) acc[e / 6][e % 6] *= step * h.half_b;
  if (h.x.data) add_sites<S, V>(acc, of_x, h.x, site);
  bool stored = false;
  if constexpr (sizeof(S) == 2)
    if (h.wide.data) {
      add_sites<float, V>(acc, 1.0f, h.wide, site);
      store_sites<float, V>(h.wide, site, acc);
      stored = true;
    }
  if (!stored) {
    if (mixes)
      add_sites<S, V>(acc, (T)h.step[2 * MD_MAX_RHS], h.before, site);
    else if (h.step)
      add_sites<S, V>(acc, T(1), h.out, site);
    store_sites<S, V>(h.out, site, acc);
  }
}

/* Leaves the block's sum of |acc|^2 at the sites of the active threads. */
template <class S, int V>
static __device__ inline void leave_norm2(const hop_arguments<S> &h, int block, bool active,
                                          const real_of<S> acc[V][6]) {
  const sum_units units = *h.units;
  unit_adder<one_word<S>> norm2;
  norm2.begin(units);
#pragma unroll
  for (int i = 0; i < V; i++) {
    double term = 0.0;
#pragma unroll
    for (int c = 0; c < 6; c++) term += (double)acc[i][c] * (double)acc[i][c];
    norm2.add(active ? term : 0.0);
  }
  const unit_sum sum = add_threads<one_word<S>>(norm2.sum(units));
  if (threadIdx.x == 0 && threadIdx.y == 0) add_to_slot<one_word<S>>(h.norm2, 0, block, sum);
}

/* acc += U v for one direction of the pair and all V sites */
template <class S, int R, int V>
static __device__ inline void add_direction(const S raw[2 * R * V], int side, unsigned bits,
                                            int direction, const float scale[V], real_of<S> unit,
                                            real_of<S> v[V][6], real_of<S> acc[V][6]) {
  using T = real_of<S>;
#pragma unroll
  for (int i = 0; i < V; i++) {
    T u[R];
#pragma unroll
    for (int r = 0; r < R; r++) u[r] = load_real(raw[(side * R + r) * V + i]);
    unpack_link<S, R>(u);
    apply_factor<S, R>(u, v[i], scale[i], unit, bits >> (1 + direction) & 1u);
    add_link_product<R>(u, v[i], acc[i]);
  }
}

/* The stored links of a slot in a direction pair, for the V sites of both its directions. */
template <class S, int R, int V>
static __device__ inline void load_pair(const chunk_of<link_piece<S, R, V>> *links, uint64_t policy,
                                        S raw[2 * R * V]) {
  using chunk = chunk_of<link_piece<S, R, V>>;
#pragma unroll
  for (int c = 0; c < (int)(2 * R * V * sizeof(S) / sizeof(chunk)); c++)
    reinterpret_cast<chunk *>(raw)[c] = load_once(links + c * 32, policy);
}

/* The kernels for actions with long links, of RL reals, have these beside. */
template <class S, int RL> struct long_arguments : hop_arguments<S> {
  const md_long_row *long_rows;
};
template <class ARGUMENTS> constexpr int long_reals = 0;
template <class S, int RL> constexpr int long_reals<long_arguments<S, RL>> = RL;

/* FOLLOWS: as in md_hop_call; a template, because a branch would cost registers. */
template <class S, int R, int V, sharing SHARING, class ARGUMENTS, bool FOLLOWS>
__global__ void __launch_bounds__(128,
                                  least_blocks<S, R, V, SHARING, (long_reals<ARGUMENTS> > 0)>())
    hop_one(ARGUMENTS a) {
  using T = real_of<S>;
  constexpr bool SPLIT = SHARING != sharing::none, AHEAD = SHARING == sharing::ahead;
  constexpr int RL = long_reals<ARGUMENTS>;
  constexpr bool LONG = RL > 0, PHASED = has_phase<RL>;
  constexpr int piece = link_piece<S, R, V>, chunks = 2 * R * V * (int)sizeof(S) / piece;
  constexpr int pairs = LONG ? 8 : 4;
  const T near_unit = LONG ? a.unit[0] : link_unit<S>;
  using chunk = chunk_of<piece>;
  md_release_successor();
  const int block = a.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const int place = block * blockDim.x + threadIdx.x;
  const int index =
      min(place, a.slots.count - 1); /* those beyond repeat the last slot, store nothing */
  const bool active = place < a.slots.count && threadIdx.y == 0;
  const int slot = slot_of(a.slots, index);
  const int site = slot * V, row_number = md_quotient(slot, a.per_row);
  const int h = (slot - row_number * (int)a.per_row.by) * V;
  const int row_sites = (int)a.per_row.by * V;
  const md_row row = a.rows[row_number];
  const uint64_t policy = link_policy(a.keep_links);
  constexpr int slot_bytes = 8 * V * (R + RL) * (int)sizeof(S);
  constexpr int tile_chunks = PHASED ? slot_bytes / piece : pairs * chunks;
  static_assert(!PHASED || slot_bytes % piece == 0, "a tile is not a whole number of chunks");
  const chunk *links =
      (const chunk *)a.links + (int64_t)(slot >> 5) * (tile_chunks * 32) + (slot & 31);
  T acc[V][6] = {};
  __shared__ chunk early[AHEAD ? chunks : 1][4][32];
  if constexpr (AHEAD)
#pragma unroll
    for (int c = 0; c < chunks; c++)
      start_load(&early[c][threadIdx.y][threadIdx.x], links + (threadIdx.y * chunks + c) * 32,
                 policy);
  if constexpr (!FOLLOWS) md_wait_for_predecessor(); /* it wrote the source, and may read out */
  if (AHEAD) finish_loads();
#pragma unroll
  for (int mu = 0; mu < 4; mu++) {
    if (SPLIT && mu != (int)threadIdx.y) continue;
    alignas(16) S raw[2 * R * V];
    if constexpr (AHEAD)
#pragma unroll
      for (int c = 0; c < chunks; c++)
        reinterpret_cast<chunk *>(raw)[c] = early[AHEAD ? c : 0][threadIdx.y][threadIdx.x];
    else
      load_pair<S, R, V>(links + mu * chunks * 32, policy, raw);
    vectors<S, V> v, w, long_v, long_w;
    v.load(a.in, mu == 0 ? site : row.base[(mu + 2) % 3] + h);
    if constexpr (LONG) {
      const md_long_row far = a.long_rows[row_number];
      if (mu == 0) {
        load_far_and_long<S, V>(a.in, row, far, site, h, row_sites, v, w, long_v, long_w);
      } else {
        w.load(a.in, row.base[mu + 2] + h);
        long_v.load(a.in, far.base[(mu + 2) % 3] + h);
        long_w.load(a.in, far.base[mu + 2] + h);
      }
    } else if (mu == 0) {
      load_far<S, V>(a.in, row, site, h, row_sites, v, w);
    } else {
      w.load(a.in, row.base[mu + 2] + h);
    }
    add_direction<S, R, V>(raw, 0, row.bits, 2 * mu, v.scale, near_unit, v.v, acc);
    add_direction<S, R, V>(raw, 1, row.bits, 2 * mu + 1, w.scale, near_unit, w.v, acc);
    if constexpr (PHASED) {
      using long_chunk = chunk_of<link_piece<S, RL, V>>;
      alignas(16) S far_raw[2 * RL * V];
      const S *tile = (const S *)a.links + (int64_t)(slot >> 5) * (32 * V * 8 * (R + RL));
      const S *pair = tile + 32 * V * (8 * R + 2 * RL * mu);
      load_pair<S, RL, V>((const long_chunk *)pair + (slot & 31), policy, far_raw);
      add_direction<S, RL, V>(far_raw, 0, row.bits, 8 + 2 * mu, long_v.scale, a.unit[1], long_v.v,
                              acc);
      add_direction<S, RL, V>(far_raw, 1, row.bits, 9 + 2 * mu, long_w.scale, a.unit[1], long_w.v,
                              acc);
    } else if constexpr (LONG) {
      load_pair<S, R, V>(links + (4 + mu) * chunks * 32, policy, raw);
      add_direction<S, R, V>(raw, 0, row.bits, 8 + 2 * mu, long_v.scale, a.unit[1], long_v.v, acc);
      add_direction<S, R, V>(raw, 1, row.bits, 9 + 2 * mu, long_w.scale, a.unit[1], long_w.v, acc);
    }
  }
  if (SPLIT) add_to_first_warp<V * 6>(&acc[0][0]);
  if (active) finish_sites<S, V>(a, site, acc);
  if (a.norm2) leave_norm2<S, V>(a, block, active, acc);
}

/* LEADS: has a kernel of its own for call->follows, which only hides some of the time of a halo. */
template <class S, int R, int V, sharing SHARING, class ARGUMENTS, bool LEADS = true>
static void launch_one(const ARGUMENTS &a, const md_hop_call *call) {
  const dim3 threads = SHARING == sharing::none ? dim3(128) : dim3(32, 4);
  const int blocks = (a.slots.count + (int)threads.x - 1) / (int)threads.x;
  const auto kernel = LEADS && call->follows ? hop_one<S, R, V, SHARING, ARGUMENTS, LEADS>
                                             : hop_one<S, R, V, SHARING, ARGUMENTS, false>;
  if (blocks > 0) md_launch_early_on(call->queue, kernel, dim3(blocks), threads, 0, a);
}

/* The kernel for long links of RL reals; `ahead` has room for the links of one field only. Those
 * with a phase spare compile time where it costs little: single sites, where rows do not end at
 * multiples of two, are rare, and one kernel serves all numbers of them; few slots do not lead. */
template <class S, int R, int V, int RL>
static void launch_long(const md_stencil *s, const hop_arguments<S> &a, const md_hop_call *call) {
  constexpr bool whole = RL == 18, common = whole || V > 1 || sizeof(S) == 8;
  using arguments = long_arguments<S, RL>;
  const arguments b = {a, s->long_rows};
  if (!common || a.slots.count > s->few_slots || a.norm2)
    launch_one<S, R, V, sharing::none, arguments, common>(b, call);
  else if constexpr (common)
    launch_one<S, R, V, sharing::split, arguments, whole>(b, call);
}

template <class S, int R, int V>
static void launch_one_or_split(const md_stencil *s, const hop_arguments<S> &a,
                                const md_hop_call *call) {
  if (s->long_rows) {
    if constexpr (R == 18) {
      const int reals = s->reals[1];
      if (reals == 18) launch_long<S, R, V, 18>(s, a, call);
      if (reals == 13) launch_long<S, R, V, 13>(s, a, call);
      if (reals == 9) launch_long<S, R, V, 9>(s, a, call);
    }
  } else if (a.slots.count > s->few_slots || a.norm2) /* with sums it has not been measured */
    launch_one<S, R, V, sharing::none>(a, call);
  else if (a.keep_links)
    launch_one<S, R, V, sharing::ahead>(a, call);
  else
    launch_one<S, R, V, sharing::split>(a, call);
}

template <class S, int R> static int hop_one_reals(const md_stencil *s, const md_hop_call *call) {
  auto a = arguments_of<hop_arguments<S>, S>(s, call);
  a.slots = s->range[call->range];
  if (sizeof(S) == 2 && call->out->precision == MD_SINGLE)
    a.wide = planes_of<float>(call->out);
  else
    a.out = planes_of<S>(call->out);
  a.in = planes_of<S>(call->in);
  a.x = planes_of<S>(md_hop_end_of(call).x);
  a.before = planes_of<S>(md_hop_step_of(call).before);
  if (s->sites_per_slot == 1) launch_one_or_split<S, R, 1>(s, a, call);
  if constexpr (sizeof(S) <= 4)
    if (s->sites_per_slot == 2) launch_one_or_split<S, R, 2>(s, a, call);
  return (int)cudaGetLastError();
}

/* In fixed the integers of whole links would fill the conversion unit; with 12 and 8 reals there
 * are fewer, and issue slots are short. */
template <class S> static int hop_one_any(const md_stencil *s, const md_hop_call *call) {
  return s->reals[0] == 18   ? hop_one_reals<typename by_mantissa<S>::type, 18>(s, call)
         : s->reals[0] == 12 ? hop_one_reals<S, 12>(s, call)
                             : hop_one_reals<S, 8>(s, call);
}
