#pragma once

#include "base/shared_copy.cuh"
#include "dirac/cuda/spin_legs.cuh"

/* The march of four spins (spin_march.h) as a kernel. A computing thread owns a column at one place
 * h of a row of the tile, which in each time slice is an output site, with a source site of the
 * other x beside it. That source site serves the output sites before and after it in t as well, so
 * a thread holds the sums of two output sites: that of this time slice, and that of the slice
 * before, which lacks its forward leg. Two more warps feed: one brings rows of source sites by bulk
 * copies and takes results away, one brings links, a direction of all sites of the tile at a time.
 *
 * Spinors lie in shared memory as in the field. Threads that are served together would meet in the
 * same banks; so they take the chiralities, and in double the spins of each, in an order of their
 * own, which changes signs alone: gamma_mu couples spin K to one of the other chirality by i^Q and
 * that one to K by i^-Q. */

/* Reals of a spinor that a thread reads on end: of a spin, of a chirality. */
template <class S> constexpr int run_reals = sizeof(S) == 8 ? 6 : HALF_SPINOR;

/* The order in which a thread takes the runs of a spinor, and the signs that follow from it. */
template <class S> struct lane_order {
  static constexpr int runs = SPINOR / run_reals<S>;
  int lower;    /* 1: spins 2 and 3 come first */
  int at[runs]; /* first real */
  S sign[3];    /* of legs along x, along y and z, along t */
  __device__ lane_order(int thread, bool adjoint) : lower(thread >> 2 & 1) {
    const int second = runs == 4 ? thread >> 1 & 1 : 0;
#pragma unroll
    for (int r = 0; r < runs; r++)
      at[r] = runs == 2 ? (r ^ lower) * HALF_SPINOR
                        : (r / 2 ^ lower) * HALF_SPINOR + (r % 2 ^ second) * (HALF_SPINOR / 2);
    sign[2] = adjoint ? S(-1) : S(1);
    sign[0] = lower ? -sign[2] : sign[2];
    sign[1] = second ? -sign[0] : sign[0];
  }
};

/* Piece k of a spinor in that order, of 16 bytes. */
template <class S> using run_piece = vector_of<S, 16 / (int)sizeof(S)>;
template <class S>
static __device__ inline run_piece<S> &piece_of_run(S *spinor, const lane_order<S> &order, int k) {
  return *reinterpret_cast<run_piece<S> *>(spinor + order.at[k / run_reals<S>] + k % run_reals<S>);
}
template <class S>
static __device__ inline void load_runs(const S *spinor, const lane_order<S> &order,
                                        S psi[SPINOR]) {
  constexpr int reals = 16 / (int)sizeof(S);
#pragma unroll
  for (int k = 0; k < SPINOR; k += reals) {
    const run_piece<S> piece = piece_of_run(const_cast<S *>(spinor), order, k);
#pragma unroll
    for (int e = 0; e < reals; e++) psi[k + e] = piece.v[e];
  }
}
template <class S>
static __device__ inline void store_runs(S *spinor, const lane_order<S> &order,
                                         const S psi[SPINOR]) {
  constexpr int reals = 16 / (int)sizeof(S);
#pragma unroll
  for (int k = 0; k < SPINOR; k += reals) {
    run_piece<S> piece;
#pragma unroll
    for (int e = 0; e < reals; e++) piece.v[e] = psi[k + e];
    piece_of_run(spinor, order, k) = piece;
  }
}

/* spinor = factor spinor + psi */
template <class S>
static __device__ inline void add_to_runs(S *spinor, const lane_order<S> &order, S factor,
                                          const S psi[SPINOR]) {
  constexpr int reals = 16 / (int)sizeof(S);
#pragma unroll
  for (int k = 0; k < SPINOR; k += reals) {
    run_piece<S> piece = piece_of_run(spinor, order, k);
#pragma unroll
    for (int e = 0; e < reals; e++) piece.v[e] = psi[k + e] + factor * piece.v[e];
    piece_of_run(spinor, order, k) = piece;
  }
}

/* Bytes of a link that lie together. */
template <class S, int R> constexpr int leg_piece = link_piece_of((int)sizeof(S) * R);
/* The link of the site-th of `sites` sites, whose pieces take turns. */
template <class S, int R>
static __device__ inline void load_leg_link(const char *links, int site, int sites, S u[R]) {
  constexpr int bytes = leg_piece<S, R>, reals = bytes / (int)sizeof(S);
#pragma unroll
  for (int k = 0; k < R; k += reals) {
    const auto piece =
        *reinterpret_cast<const vector_of<S, reals> *>(links + (k / reals * sites + site) * bytes);
#pragma unroll
    for (int e = 0; e < reals; e++) u[k + e] = piece.v[e];
  }
}

/* A ring of slots in shared memory, and the barriers that say that a slot is filled or free. */
struct spin_ring {
  uint64_t *barriers;
  char *slots;
  int size, slot_bytes, slot = 0;
  uint32_t phase = 0;
  __device__ spin_ring(char *barrier, char *at, int ring, int bytes)
      : barriers(reinterpret_cast<uint64_t *>(barrier)), slots(at), size(ring), slot_bytes(bytes) {}
  __device__ uint64_t *filled() const { return barriers + slot; }
  __device__ uint64_t *emptied() const { return barriers + size + slot; }
  __device__ char *at() const { return slots + slot * slot_bytes; }
  __device__ void next() {
    if (++slot == size) slot = 0, phase ^= 1;
  }
  /* So many leave a slot. */
  __device__ void begin(int leaving) const {
    for (int i = 0; i < size; i++) {
      md::barrier_init(barriers + i, 1);
      md::barrier_init(barriers + size + i, leaving);
    }
  }
  __device__ void wait_filled() const { md::barrier_wait(filled(), phase); }
  /* Until what was there `size` steps ago has been used. */
  __device__ void wait_free() const { md::barrier_wait(emptied(), phase ^ 1); }
  /* The thread, or its warp, has used the slot. */
  __device__ void leave() {
    md::barrier_arrive(emptied());
    next();
  }
  __device__ void leave_as_warp() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) md::barrier_arrive(emptied());
    next();
  }
};

/* Shared memory of a block. */
struct spin_memory {
  spin_ring sources, links;
  int *results; /* [slot of sources]: tile and time slice of the results there; slice -1: none */
  uint64_t *x_filled;
  __device__ spin_memory(char *at, const md_spin_march &m)
      : sources(at, at + MD_SPIN_BARRIERS, m.slots, m.slot_bytes),
        links(at + 16 * MD_SPIN_SLOTS, sources.slots + m.slots * m.slot_bytes, m.link_slots,
              m.link_bytes),
        results(reinterpret_cast<int *>(at + 16 * (MD_SPIN_SLOTS + MD_SPIN_LINK_SLOTS))),
        x_filled(reinterpret_cast<uint64_t *>(results + 2 * MD_SPIN_SLOTS)) {}
};

/* Bytes from the start of a field to row r of a tile. */
static __device__ inline int64_t tile_row_at(const md_spin_march &m, const md_spin_tile &tile,
                                             int r, int t) {
  return ((int64_t)md_spin_row(&m, &tile, r, t) * m.half + tile.x) * m.site_bytes;
}

/* Brings the time slices t - 1 to last + 1 of a tile, of the first and the last one the rows of the
 * tile alone; and takes away the results that the computing threads leave in rows of the rim. */
template <class S> struct spin_feeder {
  const spin_arguments<S> &a;
  const md_spin_march &m;
  spin_ring ring;
  int *results;
  int step = 0;

  __device__ void copy(char *to, int site, int count) const {
    md::copy_bulk(to, reinterpret_cast<const char *>(a.in) + (int64_t)site * m.site_bytes,
                  count * m.site_bytes, ring.filled());
  }
  __device__ void copy_centre(const md_spin_tile &tile, int r, int at, int t, int last) const {
    const int number = md_spin_row(&m, &tile, r, min(max(at, t), last));
    const md_row row = a.rows[number];
    const bool up = row.bits & 1u, beyond = at < t || at > last; /* there it is the other way */
    char *const to = ring.at() + r * m.centre_bytes;
    if (beyond) {
      copy(to + (up ? m.site_bytes : 0), across(row, at < t ? 7 : 6, tile.x), m.x);
      return;
    }
    const md_spin_centre centre = md_spin_centre_of(&m, tile.x, up);
    copy(to + centre.place * m.site_bytes, number * m.half + centre.from, centre.count);
    if (centre.edge_place >= 0) copy(to + centre.edge_place * m.site_bytes, row.edge, 1);
  }
  __device__ void copy_rim(const md_spin_tile &tile, int r, int at) const {
    const md_spin_rim place = md_spin_rim_of(&m, r);
    const md_row row = a.rows[md_spin_row(&m, &tile, place.of, at)];
    copy(ring.at() + m.y * m.z * m.centre_bytes + r * m.rim_bytes,
         across(row, place.direction, tile.x), m.x);
  }
  /* Waits for the slot and sends the results in it away. */
  __device__ void take_results(int lane) const {
    ring.wait_free();
    const int column = results[2 * ring.slot], t = results[2 * ring.slot + 1];
    if (t < 0) return;
    const md_spin_tile tile = md_spin_tile_of(&m, column);
    for (int r = lane; r < m.y * m.z; r += 32)
      md::store_bulk(reinterpret_cast<char *>(a.out) + tile_row_at(m, tile, r, t),
                     ring.at() + m.result_bytes + r * m.rim_bytes, m.x * m.site_bytes);
    md::commit_stores();
  }
  __device__ void run(const md_spin_tile &tile, int t, int last) {
    const int lane = (int)threadIdx.x % 32, rows = m.y * m.z;
    for (int at = t - 1; at <= last + 1; at++, step++, ring.next()) {
      const bool inner = at >= t && at <= last;
      const int around = inner ? 2 * (m.y + m.z) : 0;
      if (step >= ring.size) take_results(lane);
      __syncwarp();
      if (lane == 0) {
        results[2 * ring.slot] = tile.column;
        results[2 * ring.slot + 1] = at > t ? at - 1 : -1;
        md::barrier_expect(ring.filled(), (rows * (m.x + inner) + around * m.x) * m.site_bytes);
      }
      __syncwarp();
      /* Without a rim the rows of the tile fill the slot, and new results may come at once. */
      if (!inner) md::wait_for_reads();
      for (int r = lane; r < rows; r += 32) {
        copy_centre(tile, r, at, t, last);
        if (a.x && at > t)
          md::prefetch_bulk(reinterpret_cast<const char *>(a.x) + tile_row_at(m, tile, r, at - 1),
                            m.x * m.site_bytes);
      }
      md::wait_for_reads();
      __syncwarp();
      for (int r = lane; r < around; r += 32) copy_rim(tile, r, at);
    }
  }
  __device__ void end() {
    for (int left = step < ring.size ? ring.size - step : 0; left > 0; left--) ring.next();
    for (int n = min(step, ring.size); n > 0; n--, ring.next()) take_results((int)threadIdx.x % 32);
    md::wait_for_reads();
  }
};

/* Brings the links in the order in which they are used. */
template <class S> struct spin_link_feeder {
  const spin_arguments<S> &a;
  const md_spin_march &m;
  spin_ring ring;
  int step = 0;

  __device__ void bring(int column, int t, int direction) {
    if (step >= ring.size) ring.wait_free();
    md::barrier_expect(ring.filled(), m.link_bytes);
    md::copy_bulk(ring.at(),
                  reinterpret_cast<const char *>(a.links) +
                      (((int64_t)column * m.lt + t) * 8 + direction) * m.link_bytes,
                  m.link_bytes, ring.filled());
    step++;
    ring.next();
  }
  __device__ void run(int column, int t, int last) {
    for (int at = t - 1; at <= last + 1; at++) {
      const bool inner = at >= t && at <= last;
      for (int d = 2; d < 6 && inner; d++) bring(column, at, d);
      if (at > t) bring(column, at - 1, 6);
      for (int d = 0; d < 2 && inner; d++) bring(column, at, d);
      if (at < last) bring(column, at + 1, 7);
    }
  }
};

/* Where the neighbours of a thread's place lie in a slot. */
struct spin_sources {
  int own;       /* at place h of its row */
  int across[4]; /* at h along y and z, by direction - 2 */
  bool inside[4];
  __device__ spin_sources(const md_spin_march &m, int row, int in_row_bytes) {
    const int rows = m.y * m.z;
    own = row * m.centre_bytes + in_row_bytes;
#pragma unroll
    for (int d = 0; d < 4; d++) {
      const int to = md_spin_neighbour(&m, row, d + 2);
      inside[d] = to < rows;
      across[d] = in_row_bytes + (to < rows ? to * m.centre_bytes
                                            : rows * m.centre_bytes + (to - rows) * m.rim_bytes);
    }
  }
};

/* What a computing thread does. */
template <class S, int R> struct spin_marcher {
  const spin_arguments<S> &a;
  const md_spin_march &m;
  spin_ring ring, links;
  lane_order<S> order;
  bool active;
  uint64_t *x_filled;
  uint32_t x_phase = 0;
  int column;

  /* The next leg, whose link is the next of its ring. */
  template <int D> __device__ void add(const char *spinor, int site, uint32_t bits, S sum[SPINOR]) {
    S psi[SPINOR], stored[R], u[18];
    links.wait_filled();
    load_runs(reinterpret_cast<const S *>(spinor), order, psi);
    load_leg_link<S, R>(links.at(), site, m.sites, stored);
    full_link<R>(stored, u);
    const S factor = R != 18 && bits >> (1 + D) & 1u ? S(-1) : S(1);
    add_direction_leg<D>(psi, u, factor, order.sign[D < 2 ? 0 : D < 6 ? 1 : 2], bits & 1u, sum);
    links.leave_as_warp();
  }
  /* x of a time slice of the tile, if there is one, is to come where its results will lie, in
   * `slot`, as soon as all threads have read the rim there. */
  __device__ void ask_for_x(const md_spin_tile &tile, int t, char *slot) const {
    const int thread = (int)threadIdx.x, rows = m.y * m.z;
    if (!a.x) return;
    md::meet(m.computing);
    if (thread >= 32) return;
    if (thread == 0) md::barrier_expect(x_filled, rows * m.x * m.site_bytes);
    __syncwarp();
    for (int r = thread; r < rows; r += 32)
      md::copy_bulk(slot + m.result_bytes + r * m.rim_bytes,
                    reinterpret_cast<const char *>(a.x) + tile_row_at(m, tile, r, t),
                    m.x * m.site_bytes, x_filled);
  }
  /* Leaves a x + b sum at `own`, the thread's place for results, x multiplied by the matrix if
   * there is one, or where there is no x the sum. */
  __device__ void finish(S *own, S sum[SPINOR]) {
    const bool walls = a.matrix.slices > 0;
#pragma unroll
    for (int c = 0; c < SPINOR; c++) sum[c] *= a.half_b;
    if (a.x) {
      md::barrier_wait(x_filled, x_phase);
      x_phase ^= 1;
    } else {
      md::meet(m.computing); /* the rim has been read */
      if (active) store_runs(own, order, sum);
      if (walls) md::meet(m.computing);
    }
    if (walls && active)
      multiply_slices(a.matrix, a.adjoint, column, own - column * SPINOR, SPINOR);
    if (a.x) {
      if (walls) md::meet(m.computing);
      if (active) add_to_runs(own, order, a.a, sum);
    }
    md::fence_for_copies();
  }
  /* The output sites of a tile's time slices t to last. */
  __device__ void run(const md_spin_tile &tile, int t, int last) {
    const int thread = min((int)threadIdx.x, m.threads - 1);
    const int of_row = md_quotient(thread, m.by_row), in_row = thread - of_row * (int)m.by_row.by;
    const int h = md_quotient(in_row, m.by_columns), link = of_row * m.x + h;
    column = in_row - h * m.columns;
    const spin_sources from(m, of_row, in_row * m.spinor_bytes);
    const int result = m.result_bytes + of_row * m.rim_bytes + in_row * m.spinor_bytes;
    const auto bits_of = [&](int at) { return a.rows[md_spin_row(&m, &tile, of_row, at)].bits; };
    uint32_t bits_before = 0, bits = bits_of(t) ^ 1u;
    S now[SPINOR] = {}, before[SPINOR] = {};
    for (int at = t - 1; at <= last + 1; at++) {
      const uint32_t bits_next = at < last ? bits_of(at + 1) : bits ^ 1u;
      ring.wait_filled();
      char *const slot = ring.at();
      const int shift = bits & 1u ? m.site_bytes : 0; /* of the far neighbour, and across */
      const char *const near = slot + from.own + m.site_bytes - shift;
      const auto beside = [&](int d) {
        return slot + from.across[d - 2] + (from.inside[d - 2] ? shift : 0);
      };
      const bool inner = at >= t && at <= last;
      if (inner) {
        add<2>(beside(2), link, bits, now);
        add<3>(beside(3), link, bits, now);
        add<4>(beside(4), link, bits, now);
        add<5>(beside(5), link, bits, now);
      }
      if (at > t) {
        ask_for_x(tile, at - 1, slot);
        add<6>(near, link, bits_before, before);
      }
      if (inner) {
        add<0>(near, link, bits, now);
        add<1>(slot + from.own + shift, link, bits, now);
      }
      if (at > t) finish(reinterpret_cast<S *>(slot + result), before);
#pragma unroll
      for (int c = 0; c < SPINOR; c++) before[c] = now[c], now[c] = S(0);
      if (at < last) add<7>(near, link, bits_next, now);
      bits_before = bits, bits = bits_next;
      ring.leave();
    }
  }
};

template <class S, int R>
__global__ void
__launch_bounds__((sizeof(S) == 8 ? MD_SPIN_IN_DOUBLE : MD_SPIN_IN_SINGLE) + MD_SPIN_FEEDERS, 1)
    march_spins(const __grid_constant__ spin_arguments<S> a,
                const __grid_constant__ md_spin_march m) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 /* not launched elsewhere */
  extern __shared__ __align__(128) char rings[];
  const spin_memory shared(rings, m);
  md_release_successor();
  if (threadIdx.x == 0) {
    shared.sources.begin(m.computing);
    shared.links.begin(m.computing / 32);
    md::barrier_init(shared.x_filled, 1);
  }
  md::fence_barrier_init();
  __syncthreads();
  md_march_walk walk = md_march_begin(&m.share, (int)blockIdx.x);
  const auto next = [&](int *column, int *t, int *last) {
    return md_spin_march_next(&m, (int)blockIdx.x, &walk, column, t, last);
  };
  const int feeder = ((int)threadIdx.x - m.computing) / 32;
  int column, t, last;
  if ((int)threadIdx.x < m.computing) {
    spin_marcher<S, R> marcher = {a,
                                  m,
                                  shared.sources,
                                  shared.links,
                                  lane_order<S>((int)threadIdx.x, a.adjoint),
                                  (int)threadIdx.x < m.threads,
                                  shared.x_filled};
    md_wait_for_predecessor(); /* it may read out */
    while (next(&column, &t, &last)) marcher.run(md_spin_tile_of(&m, column), t, last);
  } else if (feeder == 0) {
    spin_feeder<S> sources = {a, m, shared.sources, shared.results};
    md_wait_for_predecessor(); /* it wrote the source */
    while (next(&column, &t, &last)) sources.run(md_spin_tile_of(&m, column), t, last);
    sources.end();
  } else if (threadIdx.x % 32 == 0) {
    spin_link_feeder<S> links = {a, m, shared.links};
    while (next(&column, &t, &last)) links.run(column, t, last);
  }
#endif
}

template <class S, int R>
static int launch_spin_march(const md_spin_march &whole, md_range range, const spin_arguments<S> &a,
                             void *queue) {
  const md_spin_march m = md_spin_march_part(&whole, range);
  const auto kernel = march_spins<S, R>;
  if (m.share.blocks == 0) return 0;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, m.shared_bytes);
  if (error != cudaSuccess) return (int)error;
  md_launch_early_on(queue, kernel, dim3((unsigned)m.share.blocks),
                     dim3((unsigned)(m.computing + MD_SPIN_FEEDERS)), (size_t)m.shared_bytes, a, m);
  return (int)cudaGetLastError();
}
