#ifndef MD_DIRAC_TENSOR_MARCH_FEEDER_CUH
#define MD_DIRAC_TENSOR_MARCH_FEEDER_CUH

#include "dirac/tensor/march_stage.cuh"

namespace stacked {

/* The warps that feed: each thread brings one row of the centre or of the rim, slice after slice.
 * Sites come by bulk copies; scales, in half, pass through registers, asked for a step ahead. What
 * differs between columns is looked up when one begins; from slice to slice an index only moves by
 * call.stride. */
template <bool SCALED, coverage COVER, bool NARROW> struct feeder {
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  int row; /* of the centre, then of the rim; the threads of a warp take every fourth */

  /* Where the row's sites lie in the source, of slice 0. */
  struct origin {
    int base, stride; /* site x 0 of the row; to the next slice */
    int odd;          /* whether the row's output sites of slice 0 have odd x offset */
    int edge[2];      /* of even and odd rows: the neighbour beyond the end, -1 where it is the next
                         site in memory */
  };
  /* `count` sites from site `from` of the source, or of what arrives in direction `away`, go to
   * place `place`, and, unless `end` is -1, that one site to place `end_place`. The scale of the
   * site at end_place is end_scale. */
  struct strip {
    int from, place, count, end, end_place, odd, away;
    float4 scale[MARCH_X / 4];
    float end_scale;
  };

  __device__ bool of_centre() const { return row < memory.centre_rows; }
  __device__ parts place_in_centre() const { return parts(row, plan.by_y); } /* z, y */
  __device__ int site(int x, int y, int z) const {
    return (z * call.local[1] + y) * (call.local[0] / 2) + x;
  }
  __device__ int slice() const { return site(0, 0, call.local[2]); }
  __device__ int neighbour(int direction, int of) const {
    return call.neighbour[direction * call.sites + of];
  }
  __device__ origin find_centre(const corner &at) const {
    const int half = call.local[0] / 2, y = at.y + place_in_centre().rest,
              z = at.z + place_in_centre().quotient;
    origin o = {site(at.x, y, z), slice(), (y + z + call.parity) & 1, {-1, -1}};
    /* Slice `o.odd` has the even rows. */
    if (at.x == 0) o.edge[0] = neighbour(4, o.base + o.odd * slice()) - o.odd * call.stride[0];
    if (at.x + plan.x == half)
      o.edge[1] =
          neighbour(0, o.base + plan.x - 1 + (1 - o.odd) * slice()) - (1 - o.odd) * call.stride[0];
    return o;
  }
  __device__ origin find_rim(const corner &at) const {
    const rim_place place(plan, row - memory.centre_rows);
    const int y = at.y + min(max(place.y, 0), plan.y - 1);
    const int z = at.z + min(max(place.z, 0), plan.z - 1);
    const int base = neighbour(place.direction, site(at.x, y, z));
    const int odd = (at.y + place.y + at.z + place.z + call.parity) & 1;
    return {base, base < call.sites ? slice() : call.stride[place.direction % 4], odd, {}};
  }
  __device__ strip find(const origin &o, int t) const {
    const int last = call.local[3] - 1, odd = (o.odd + t) & 1;
    const int own = o.base + t * o.stride;
    strip s = {own, 0, plan.x, -1, 0, odd, 0, {}, 0.0f};
    int scales = own, end = -1;
    const float *all_scales = call.source_scale;
    if (of_centre() && (t < 0 || t > last)) { /* only the row itself, which t-neighbours read */
      const int direction = t < 0 ? 7 : 3;
      s.from = neighbour(direction, t < 0 ? o.base : own - o.stride);
      s.place = 1 - odd;
      if constexpr (COVER == coverage::waiting) {
        s.away = direction;
        s.from = md_await_arrival(call.arrivals, direction, s.from, row % MARCH_FEEDERS == 0,
                                  memory.told + (t < 0));
        all_scales = call.arrivals.of[direction].scales;
      }
      scales = s.from;
    } else if (of_centre()) {
      const int edge = odd ? o.edge[1] : o.edge[0];
      const bool whole = edge == -1;
      end = whole ? (odd ? own + plan.x : own - 1) : edge + t * call.stride[0];
      s.end = whole ? -1 : end, s.end_place = odd ? plan.x : 0;
      s.from = whole && !odd ? own - 1 : own, s.count = plan.x + whole;
      s.place = whole || odd ? 0 : 1;
    }
    if constexpr (SCALED) {
#pragma unroll
      for (int i = 0; i < MARCH_X / 4; i++)
        if (4 * i < plan.x)
          s.scale[i] = *reinterpret_cast<const float4 *>(all_scales + scales + 4 * i);
      if (end >= 0) s.end_scale = call.source_scale[end];
    }
    return s;
  }
  __device__ void copy(char *to, const void *source, int from, int count, uint64_t *b) const {
    copy_bulk(to, static_cast<const char *>(source) + static_cast<int64_t>(from) * plan.site_bytes,
              count * plan.site_bytes, b);
  }
  /* Returns the bytes that b will see arrive. */
  __device__ int copy_sites(const strip &s, char *to, uint64_t *b) const {
    copy(to + s.place * plan.site_bytes, s.away ? call.arrivals.of[s.away].values : call.source,
         s.from, s.count, b);
    if (s.end >= 0) copy(to + s.end_place * plan.site_bytes, call.source, s.end, 1, b);
    return (s.count + (s.end >= 0)) * plan.site_bytes;
  }
  __device__ void store_scales(const strip &s, char *to) const {
    if constexpr (SCALED) {
      float *scale = reinterpret_cast<float *>(to) + (of_centre() ? CENTRE_LEAD : RIM_LEAD);
#pragma unroll
      for (int i = 0; i < MARCH_X / 4; i++)
        if (4 * i < plan.x) reinterpret_cast<float4 *>(scale)[i] = s.scale[i];
      if (of_centre()) scale[s.end_place ? plan.x : -1] = s.end_scale;
    }
  }
  /* Where the scales and the sites of the thread's row lie in slot 0. */
  __device__ char *place_of_scales() const {
    return memory.memory +
           (of_centre() ? memory.centre_scales(row) : memory.rim_scales(row - memory.centre_rows));
  }
  __device__ char *place(int odd) const {
    if (of_centre()) {
      const parts p = place_in_centre();
      return memory.memory + memory.centre(row, p.rest, p.quotient, odd);
    }
    const rim_place at(plan, row - memory.centre_rows);
    return memory.memory + memory.rim(row - memory.centre_rows, at.y, at.z, odd);
  }
  /* Waits until slot i of the three that a segment begins with (else i = 2) is free for step
   * `step`, whose turn is `now`. */
  __device__ void wait_for_slot(bool begins, int i, int step, const turn &now) const {
    const int back = begins ? max(min(plan.ring + plan.spare - i, plan.ring), 1) : plan.ring;
    if (back > step) return;
    const turn read = now.before(back, plan.ring);
    barrier_wait(&memory.emptied[read.at], read.phase);
  }

  __device__ void run() const {
    const bool idle = row >= memory.centre_rows + memory.rim_rows, mine = of_centre();
    const md_march_ring &ring = mine ? plan.centre : plan.rim;
    char *const even = idle ? memory.memory : place(0), *const odd = idle ? even : place(1);
    char *const scales = idle ? even : place_of_scales();
    walk_of<COVER> w(plan, call);
    turn now;
    int slot = 0, step = 0;
    while (w.next(plan, call)) {
      const corner at(plan, w.column);
      origin o = {};
      if (!idle) o = mine ? find_centre(at) : find_rim(at);
      if (step == 0) {
        __syncthreads();           /* the barriers are there */
        md_wait_for_predecessor(); /* it wrote the source */
      }
      /* A step brings its own slice of the rim and the next one of the centre; the first of a
       * segment also those of the centre before. */
      strip strips[3] = {};
      if (!idle) strips[0] = find(o, w.t - mine);
      if (mine) strips[1] = find(o, w.t), strips[2] = find(o, w.t + 1);
      for (int t = w.t; t <= w.last; t++, step++) {
        const bool begins = t == w.t;
        uint64_t *b = &memory.filled[now.at];
        int bytes = 0, slots[3] = {};
#pragma unroll
        for (int i = 0; i < 3; i++) {
          if (i < 2 && !begins) continue;
          wait_for_slot(begins, i, step, now);
          if (idle || (!mine && begins && i > 0)) continue;
          slots[i] = slot;
          bytes += copy_sites(strips[i], (strips[i].odd ? odd : even) + slot, b);
          slot = after(slot, ring);
        }
        if constexpr (SCALED) {
#pragma unroll
          for (int i = 0; i < 3; i++)
            if (!idle && (i == 2 ? mine || !begins : begins && (mine || i == 0)))
              store_scales(strips[i], scales + slots[i]);
        }
        barrier_expect(b, bytes);
        if (mine) prefetch_ending<NARROW>(call, plan, o.base + t * slice());
        if (!idle && t < w.last) strips[2] = find(o, t + 1 + mine);
        now.next(plan.ring);
      }
    }
    if (step == 0) __syncthreads();
    if constexpr (COVER == coverage::waiting) md_release_successor();
  }
};

} // namespace stacked

#endif
