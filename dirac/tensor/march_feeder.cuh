#ifndef MD_DIRAC_TENSOR_MARCH_FEEDER_CUH
#define MD_DIRAC_TENSOR_MARCH_FEEDER_CUH

#include "dirac/tensor/march_stage.cuh"

namespace stacked {

/* The warps that feed: each thread copies one row of the centre or of the rim. Where it lies is
 * looked up before the wait for a freed slot. */
template <bool SCALED> struct feeder {
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  int row; /* of the centre, then of the rim; the threads of a warp copy every fourth */

  /* `count` sites from site `from` on go to place `place`; a centre row that ends at the edge of
   * the lattice also gets the one neighbour beyond. */
  struct job {
    int from, place, count, end_from, end_place;
  };

  __device__ int site(int x, int y, int z, int t) const {
    return ((t * call.local[2] + z) * call.local[1] + y) * (call.local[0] / 2) + x;
  }
  __device__ int neighbour(int direction, int of) const {
    return call.neighbour[direction * call.sites + of];
  }
  /* The column's row of slice t, -1 and T included, and the neighbour at its end where the slice
   * is one of this rank's. */
  __device__ job centre_job(const corner &at, int t) const {
    const int last = call.local[3] - 1, half = call.local[0] / 2;
    const int y = at.y + row % plan.y, z = at.z + row / plan.y;
    const int odd = (y + z + t + call.parity) & 1;
    const int inside = site(at.x, y, z, min(max(t, 0), last));
    if (t < 0 || t > last) return {neighbour(t < 0 ? 7 : 3, inside), 1 - odd, plan.x, -1, 0};
    if (!(odd ? at.x + plan.x == half : at.x == 0))
      return {inside - (1 - odd), 0, plan.x + 1, -1, 0};
    return {inside, 1 - odd, plan.x, odd ? neighbour(0, inside + plan.x - 1) : neighbour(4, inside),
            odd ? plan.x : 0};
  }
  __device__ job rim_job(const corner &at, int t) const {
    const rim_place place(plan, row - memory.centre_rows);
    const int y = at.y + min(max(place.y, 0), plan.y - 1);
    const int z = at.z + min(max(place.z, 0), plan.z - 1);
    return {neighbour(place.direction, site(at.x, y, z, t)), 0, plan.x, -1, 0};
  }
  __device__ void copy(char *to, int from, int count, uint64_t *b) const {
    copy_bulk(to,
              static_cast<const char *>(call.source) + static_cast<int64_t>(from) * plan.site_bytes,
              count * plan.site_bytes, b);
  }
  /* The x aligned scales of a row in pieces of 16 bytes, and the one at its end. */
  __device__ void copy_scales(const job &j, float *to) const {
    const bool whole = j.count > plan.x, before = whole && j.from % 4; /* the end is in the row */
    const int from = j.from + before, end = whole ? (before ? j.from : from + plan.x) : j.end_from;
    const bool first = whole ? before : j.end_place == 0;
    for (int i = 0; i < plan.x; i += 4) copy_async<16>(to + 4 + i, call.source_scale + from + i);
    if (end >= 0) copy_async<4>(to + (first ? 3 : 4 + plan.x), call.source_scale + end);
  }
  __device__ void centre(const job &j, int number, uint64_t *b) const {
    const int at = memory.centre_row(number, row), y = row % plan.y, z = row / plan.y;
    char *to = memory.centre(at, y + 2 * z + 3 * number);
    copy(to + j.place * plan.site_bytes, j.from, j.count, b);
    if (j.end_from >= 0) copy(to + j.end_place * plan.site_bytes, j.end_from, 1, b);
    if constexpr (SCALED) copy_scales(j, memory.centre_scale(at));
  }
  __device__ void rim(const job &j, int number, int step, uint64_t *b) const {
    const int at = memory.rim_row(step, row - memory.centre_rows);
    const rim_place place(plan, row - memory.centre_rows);
    copy(memory.rim(at, place.y + 2 * place.z + 3 * number), j.from, j.count, b);
    if constexpr (SCALED) copy_scales(j, memory.rim_scale(at));
  }
  /* Bytes that slice t brings: centre with its ends, or without outside of this rank. */
  __device__ int centre_bytes(int t) const {
    const bool inside = t >= 0 && t < call.local[3];
    return memory.centre_rows * (plan.x + (inside ? 1 : 0)) * plan.site_bytes;
  }

  __device__ void run() const {
    const bool mine = row < memory.centre_rows;
    const bool idle = row >= memory.centre_rows + memory.rim_rows;
    const int rim_bytes = memory.rim_rows * plan.x * plan.site_bytes, ring = memory.ring;
    walk w(plan, call.local[3]);
    int step = 0, number = 0; /* steps and centre slices so far */
    while (w.next(plan, call.local[3])) {
      const corner at(plan, w.column);
      for (int t = w.t; t <= w.last; t++, step++) {
        const bool first = t == w.segment_first;
        job ahead = {}, before = {}, here = {};
        if (mine) ahead = centre_job(at, t + 1);
        if (mine && first) before = centre_job(at, t - 1), here = centre_job(at, t);
        if (!mine && !idle) ahead = rim_job(at, t);
        /* The slots that this step overwrites were read last a ring of steps ago; a new segment
         * also takes those of the step before. */
        if (step >= ring) barrier_wait(&memory.emptied[step % ring], (step / ring - 1) & 1);
        if (first && step > 0)
          barrier_wait(&memory.emptied[(step - 1) % ring], ((step - 1) / ring) & 1);
        uint64_t *b = &memory.filled[step % ring];
        if (row == 0)
          barrier_expect(b, rim_bytes + centre_bytes(t + 1) +
                                (first ? centre_bytes(t) + centre_bytes(t - 1) : 0));
        if (mine && first) centre(before, number, b), centre(here, number + 1, b);
        if (first) number += 2;
        if (mine) centre(ahead, number, b);
        if (!mine && !idle) rim(ahead, number - 1, step, b);
        number++;
        if constexpr (SCALED) barrier_arrive_copies(b);
      }
    }
  }
};

} // namespace stacked

#endif
