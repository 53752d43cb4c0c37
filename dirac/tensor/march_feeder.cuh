#ifndef MD_DIRAC_TENSOR_MARCH_FEEDER_CUH
#define MD_DIRAC_TENSOR_MARCH_FEEDER_CUH

#include "dirac/tensor/march_stage.cuh"

namespace stacked {

/* The warps that feed: each thread copies one row of the centre or of the rim, step after step.
 * Where it lies is looked up before the wait for a freed slot. */
template <bool SCALED> struct feeder {
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  int row, y, z, direction; /* y, z relative to the corner; direction into the rim from inside */
  bool rim, leads;          /* leads: announces the bytes of a step */

  /* `count` sites from site `from` on go to place `place`; a centre row that ends at the edge of
   * the lattice also gets the one neighbour beyond. */
  struct job {
    int from, place, count, end_from, end_place;
  };

  __device__ feeder(const md_tensor_call &c, const md_march_plan &p, const stage &m, int thread)
      : call(c), plan(p), memory(m), row(thread), y(thread % p.y), z(thread / p.y), direction(0),
        rim(thread >= m.centre_rows()), leads(thread == 0) {
    if (!rim) return;
    row -= m.centre_rows(); /* in order: y = -1, y = plan.y, z = -1, z = plan.z */
    const int q = row - 2 * plan.z;
    if (q < 0) {
      y = row < plan.z ? -1 : plan.y, z = row % plan.z, direction = row < plan.z ? 5 : 1;
    } else {
      y = q % plan.y, z = q < plan.y ? -1 : plan.z, direction = q < plan.y ? 6 : 2;
    }
  }
  __device__ int site(int x, int sy, int sz, int t) const {
    return ((t * call.local[2] + sz) * call.local[1] + sy) * (call.local[0] / 2) + x;
  }
  __device__ int neighbour(int d, int of) const { return call.neighbour[d * call.sites + of]; }

  /* The column's row of slice t, -1 and T included, and the neighbour at its end where the slice
   * is one of this rank's. */
  __device__ job centre_job(const corner &at, int t) const {
    const int last = call.local[3] - 1, half = call.local[0] / 2;
    const int odd = (at.y + y + at.z + z + t + call.parity) & 1;
    const int inside = site(at.x, at.y + y, at.z + z, min(max(t, 0), last));
    if (t < 0 || t > last) return {neighbour(t < 0 ? 7 : 3, inside), 1 - odd, plan.x, -1, 0};
    if (!(odd ? at.x + plan.x == half : at.x == 0))
      return {inside - (1 - odd), 0, plan.x + 1, -1, 0};
    return {inside, 1 - odd, plan.x, odd ? neighbour(0, inside + plan.x - 1) : neighbour(4, inside),
            odd ? plan.x : 0};
  }
  __device__ job rim_job(const corner &at, int t) const {
    const int from = site(at.x, at.y + min(max(y, 0), plan.y - 1),
                          at.z + min(max(z, 0), plan.z - 1), t);
    return {neighbour(direction, from), 0, plan.x, -1, 0};
  }
  __device__ void copy(char *to, int from, int count, uint64_t *b) const {
    copy_bulk(to,
              static_cast<const char *>(call.source) + static_cast<int64_t>(from) * plan.site_bytes,
              count * plan.site_bytes, b);
  }
  /* The x aligned scales in pieces of 16 bytes, and the one at the end. */
  __device__ void copy_scales(const job &j, float *to) const {
    const bool whole = j.count > plan.x, before = whole && j.from % 4; /* the end is in the row */
    const int from = j.from + before, end = whole ? (before ? j.from : from + plan.x) : j.end_from;
    const bool first = whole ? before : j.end_place == 0;
    for (int i = 0; i < plan.x; i += 4) copy_async<16>(to + 4 + i, call.source_scale + from + i);
    if (end >= 0) copy_async<4>(to + (first ? 3 : 4 + plan.x), call.source_scale + end);
  }
  /* number: of the centre slice that the row is or surrounds */
  __device__ void send(const job &j, int slot, int number, uint64_t *b) const {
    char *to = memory.row(rim, slot, row, y + 2 * z + 3 * number);
    copy(to + j.place * plan.site_bytes, j.from, j.count, b);
    if (j.end_from >= 0) copy(to + j.end_place * plan.site_bytes, j.end_from, 1, b);
    if constexpr (SCALED) copy_scales(j, memory.scale(rim, slot, row));
  }
  /* Bytes that slice t brings: centre with its ends, or without outside of this rank. */
  __device__ int centre_bytes(int t) const {
    const bool inside = t >= 0 && t < call.local[3];
    return memory.centre_rows() * (plan.x + (inside ? 1 : 0)) * plan.site_bytes;
  }

  __device__ void run() const {
    const bool idle = rim && row >= memory.rim_rows(), centre = !rim;
    const int rim_bytes = memory.rim_rows() * plan.x * plan.site_bytes;
    walk w(plan, call.local[3]);
    ring_place step = {0, 0}, before = {0, 1}, slice = {0, 0};
    int number = 0; /* centre slices so far */
    while (w.next(plan, call.local[3])) {
      const corner at(plan, w.column);
      for (int t = w.t; t <= w.last; t++) {
        const bool first = t == w.t;
        job now = {}, below = {}, here = {};
        if (!idle) now = rim ? rim_job(at, t) : centre_job(at, t + 1);
        if (centre && first) below = centre_job(at, t - 1), here = centre_job(at, t);
        /* The slots that this step overwrites were read last a ring of steps ago; a new segment
         * also takes those of the step before. */
        barrier_wait(&memory.emptied[step.slot], step.phase ^ 1);
        if (first) barrier_wait(&memory.emptied[before.slot], before.phase);
        uint64_t *b = &memory.filled[step.slot];
        if (leads)
          barrier_expect(b, rim_bytes + centre_bytes(t + 1) +
                                (first ? centre_bytes(t) + centre_bytes(t - 1) : 0));
        for (int n = first ? 0 : 2; n < 3; n++, number++, slice.advance(plan.depth + 3))
          if (centre) send(n == 0 ? below : n == 1 ? here : now, slice.slot, number, b);
        if (!centre && !idle) send(now, step.slot, number - 2, b);
        if constexpr (SCALED) barrier_arrive_copies(b);
        before = step, step.advance(plan.depth + 1);
      }
    }
  }
};

} // namespace stacked

#endif
