#pragma once

#include "base/shared_copy.cuh"
#include "dirac/tensor/stacked_finish.cuh"
#include "lattice/halo/arrivals.cuh"

#include <type_traits>

/* What the feeding and the computing warps of the marching kernel agree on: the order of the work,
 * the barriers, and where rows lie in shared memory. */
namespace stacked {

using md::barrier_arrive, md::barrier_expect, md::barrier_init, md::barrier_wait, md::copy_bulk;

/* n = quotient * d + rest */
struct parts {
  int quotient, rest;
  __device__ parts(int n, const md_divisor &d)
      : quotient(md_quotient(n, d)), rest(n - quotient * static_cast<int>(d.by)) {}
};

/* Segment after segment of a block's share, time slices t to last of a column. With call.ends the
 * first and the last slices of a column count as two columns of that many slices. */
struct walk {
  md_march_walk at;
  int column, t, last;
  static __device__ int columns(const md_march_plan &plan) {
    return plan.columns[0] * plan.columns[1] * plan.columns[2];
  }
  __device__ walk(const md_march_plan &, const md_tensor_call &call)
      : at(md_march_begin(&call.share, static_cast<int>(blockIdx.x))), column(0), t(0), last(0) {}
  /* The next segment; false at the end. */
  __device__ bool next(const md_march_plan &plan, const md_tensor_call &call) {
    if (!md_march_next(&call.share, static_cast<int>(blockIdx.x), &at, &column, &t, &last))
      return false;
    const bool upper = call.ends && column >= columns(plan);
    if (upper) column -= columns(plan);
    const int shift = upper ? call.high[3] - call.ends : call.low[3];
    t += shift, last += shift;
    return true;
  }
};

/* The same for a march that waits for what lies beyond the ends along t, of which the slice beyond
 * the upper end arrives first. It would stand still at slice 0. So its first whole columns are
 * walked without slice 0, call.late[0] of them, and of these the first call.late[1] without their
 * last slice too; where no column is whole, the piece that the block's share ends with comes first,
 * without slice 0. The slices that were left out come last of all. */
struct waiting_walk {
  /* Segment n of this block. A function of its own, as it is called rarely and would cost the
   * callers' loops registers. */
  struct __align__(16) segment {
    int column, t, last;
    int found; /* 0: there are fewer */
  };
  static __device__ __noinline__ segment find(const md_march_plan &plan, const md_tensor_call &call,
                                              int n) {
    const int block = static_cast<int>(blockIdx.x), length = call.local[3];
    const int blocks = call.share.blocks, full = call.share.full;
    /* The share as column * length + t from the first column that is left; where it begins and ends
     * as seen from its first column. */
    const int rest = (walk::columns(plan) - full * blocks) * length;
    const int low = rest * block / blocks, high = rest * (block + 1) / blocks;
    const int begin = low % length, end = begin + high - low;
    const int pieces = full + (high > low) + (end > length);
    /* With whole columns pieces 0 .. without_first - 1 are cut, else piece `cut`, unless -1. */
    const int without_first = min(call.late[0], full);
    const int without_last = length > 2 ? min(call.late[1], full) : 0;
    const bool begins = end > length ? end - length > 1 : begin == 0 && end > 1;
    const int cut = full == 0 && begins ? pieces - 1 : -1;
    const int late = n - pieces;
    int k = n;
    if (late >= 0)
      k = cut >= 0 ? cut : late < without_last ? late : late - without_last;
    else if (cut >= 0)
      k = n == 0 ? cut : n <= cut ? n - 1 : n;
    segment s;
    s.found = n < pieces + (cut >= 0 ? 1 : without_first + without_last);
    s.column = k < full ? k * blocks + block : full * blocks + low / length + k - full;
    s.t = k == full ? begin : 0;
    s.last = (k < full ? length : k == full ? min(length, end) : end - length) - 1;
    if (late >= 0 && cut < 0 && late < without_last)
      s.t = s.last;
    else if (late >= 0)
      s.last = s.t;
    else {
      if (k < without_first || k == cut) s.t++;
      if (k < without_last) s.last--;
    }
    return s;
  }
  int begun, column, t, last;
  __device__ waiting_walk(const md_march_plan &, const md_tensor_call &)
      : begun(0), column(0), t(0), last(0) {}
  __device__ bool next(const md_march_plan &plan, const md_tensor_call &call) {
    const segment s = find(plan, call, begun++);
    if (s.found) column = s.column, t = s.t, last = s.last;
    return s.found;
  }
};

/* What a march assigns, which decides how it walks: all sites; some of those of a time slice, or of
 * the time slices; all, waiting for what lies beyond the ends along t. */
enum class coverage { whole, partial, waiting };
template <coverage COVER>
using walk_of = std::conditional_t<COVER == coverage::waiting, waiting_walk, walk>;

/* Registers of a thread that feeds and of one that computes; 0: those that all begin with. */
template <int FEEDER, int COMPUTER> struct register_shares {
  static constexpr int feeder = FEEDER, computer = COMPUTER;
};

/* First site of a column in units of sites along x. */
struct corner {
  int x, y, z;
  __device__ corner(const md_march_plan &plan, int column) {
    const parts of_layer(column, plan.by_layer), of_band(of_layer.rest, plan.by_band);
    const parts of_row(of_band.rest, plan.by_columns);
    x = of_row.rest * plan.x;
    y = (of_layer.quotient * plan.band + of_row.quotient) * plan.y;
    z = of_band.quotient * plan.z;
  }
};

/* What begins the shared memory of a block: barriers for each step under way. Every thread arrives
 * for itself, which costs less than gathering its warp, and racecheck follows it. */
struct block_memory {
  const md_march_plan &plan;
  char *memory;
  uint64_t *filled, *emptied;
  __device__ block_memory(char *at, const md_march_plan &p)
      : plan(p), memory(at), filled(reinterpret_cast<uint64_t *>(at)),
        emptied(filled + MARCH_RING) {}
};

/* Shared memory of a block: barriers, then two rings of slots, each slot the rows of one time
 * slice: `centre` with ring + 2 + spare slots, `rim` with ring. A row is scales, in half, and then
 * sites. Centre rows hold x+1 sites: the row of an output site of odd x offset starts at
 * place 0 and ends with the neighbour beyond, that of even offset starts with the neighbour before;
 * rim rows hold x.
 *
 * Banks: the four lanes t of a fragment load take 32 bytes each, of the row itself and of its
 * neighbours along y, z, t. The sites start at (3 - skew) y + 3 z (+ skew if odd) units of 32 bytes
 * past a multiple of 128, rim rows of even offset a site further: then the four are different
 * modulo 128 bytes for rows of both kinds and for both ways along the axes, where a site has 0 or
 * 64 bytes modulo 128, with skew 2 or 1. */
struct stage : block_memory {
  int *told; /* whether what lies beyond each end along t has arrived */
  int centre_rows, rim_rows, skew;
  __device__ stage(char *at, const md_march_plan &p)
      : block_memory(at, p), told(reinterpret_cast<int *>(emptied + MARCH_RING)),
        centre_rows(p.y * p.z), rim_rows(2 * (p.y + p.z)), skew(p.site_bytes % 128 ? 1 : 2) {}
  __device__ int shifted(int at, int y, int z, int bytes) const {
    return at + (32 * ((3 - skew) * y + 3 * z) + bytes - at & 127);
  }
  /* Bytes from `memory` to the scales of a row of slot 0, and to its sites where the row's output
   * sites have odd x offset or not; slot k follows k times the ring's slot_bytes later. */
  __device__ int centre_scales(int row) const {
    return MARCH_BARRIERS + row * plan.centre.row_bytes;
  }
  __device__ int rim_scales(int row) const {
    return MARCH_BARRIERS + plan.centre.bytes + row * plan.rim.row_bytes;
  }
  __device__ int centre(int row, int y, int z, int odd) const {
    return shifted(centre_scales(row) + plan.centre.scale_bytes, y, z, odd ? 32 * skew : 0);
  }
  __device__ int rim(int row, int y, int z, int odd) const {
    return shifted(rim_scales(row) + plan.rim.scale_bytes, y, z, odd ? 32 * skew : plan.site_bytes);
  }
};

/* Scales in front of that of the row's first site. */
enum { CENTRE_LEAD = 4, RIM_LEAD = 0 };

/* A position in a ring, as bytes from its slot 0. */
__device__ inline int after(int slot, const md_march_ring &ring) {
  return slot + ring.slot_bytes == ring.bytes ? 0 : slot + ring.slot_bytes;
}

/* A step's pair of barriers and the parity of the phase that they are in. */
struct turn {
  int at = 0;
  uint32_t phase = 0;
  __device__ void next(int ring) {
    if (++at == ring) at = 0, phase ^= 1;
  }
  /* That of `steps` steps ago, at most ring. */
  __device__ turn before(int steps, int ring) const {
    return at >= steps ? turn{at - steps, phase} : turn{at - steps + ring, phase ^ 1};
  }
};

/* Waits until what the step `back` steps before step `step`, whose turn is `now`, has read is free.
 */
__device__ inline void wait_for_slot(const block_memory &memory, const md_march_plan &plan,
                                     int back, int step, const turn &now) {
  if (back > step) return;
  const turn read = now.before(back, plan.ring);
  barrier_wait(&memory.emptied[read.at], read.phase);
}

/* Brings `count` sites of a field from site `from` on; b will see them arrive. */
__device__ inline void copy_sites_of(const md_march_plan &plan, char *to, const void *field,
                                     int from, int count, uint64_t *b) {
  copy_bulk(to, static_cast<const char *>(field) + static_cast<int64_t>(from) * plan.site_bytes,
            count * plan.site_bytes, b);
}

/* Asks L2 for what the end of a hop reads at the output row whose first site is `site`: x, and
 * where a step is taken the field that it adds to, which is of the arithmetic type unless NARROW.
 * The computing warps read them last of all, with nothing left to do meanwhile. */
template <bool NARROW>
__device__ inline void prefetch_ending(const md_tensor_call &call, const md_march_plan &plan,
                                       int site) {
  const int64_t start = static_cast<int64_t>(site) * plan.site_bytes;
  const int bytes = plan.x * plan.site_bytes;
  const int wider = NARROW || call.precision == MD_DOUBLE ? 1 : 2;
  if (call.x) md::prefetch_bulk(static_cast<const char *>(call.x) + start, bytes);
  if (call.step)
    md::prefetch_bulk(static_cast<const char *>(call.before ? call.before : call.out) +
                          wider * start,
                      wider * bytes);
}

/* A rim row: its place (y, z) relative to the column's corner and the direction that leads there
 * from the edge of the column. */
struct rim_place {
  int y, z, direction;
  __device__ rim_place(const md_march_plan &plan, int r) {
    if (r < 2 * plan.z) {
      z = r < plan.z ? r : r - plan.z;
      y = r < plan.z ? -1 : plan.y;
      direction = r < plan.z ? 5 : 1;
    } else {
      const int q = r - 2 * plan.z;
      y = q < plan.y ? q : q - plan.y;
      z = q < plan.y ? -1 : plan.z;
      direction = q < plan.y ? 6 : 2;
    }
  }
};

} // namespace stacked
