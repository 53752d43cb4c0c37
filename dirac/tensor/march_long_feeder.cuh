#ifndef MD_DIRAC_TENSOR_MARCH_LONG_FEEDER_CUH
#define MD_DIRAC_TENSOR_MARCH_LONG_FEEDER_CUH

#include "dirac/tensor/march_long_stage.cuh"

namespace stacked {

/* The warps that feed the march with two link fields: each thread brings one row, slice after
 * slice. The columns' surroundings along x, y and z are taken periodic in this rank's lattice:
 * where that is cut, what is brought is not what a hop reads, and call.low and call.high leave out
 * the sites that would. Beyond the ends along t the neighbour table says where a slice lies. */
template <typename T, bool NARROW> struct long_feeder {
  static constexpr bool SCALED = storage<T>::scaled;
  const md_tensor_call &call;
  const md_march_plan &plan;
  const long_stage &memory;
  int plane; /* whose steps the thread feeds, where a slice has two */
  int row;   /* of centre, along, rim, in this order */
  __device__ long_feeder(const md_tensor_call &c, const md_march_plan &p, const long_stage &m,
                         int thread)
      : call(c), plan(p), memory(m) {
    const int in_step = 2 * m.rows + m.rim_rows;
    plane = steps() == 2 && thread >= in_step;
    row = thread - plane * in_step;
  }

  /* The row in the source: its place in the lattice. */
  struct origin {
    int x, y, z;
  };
  /* `count` sites from site `from` on, which go to the start of the row and, in `along`, `after`
   * sites behind them from site `beyond` on. */
  struct strip {
    int from, count, beyond, after, odd;
    float4 scale[MARCH_X / 4];
    float2 before_scale, beyond_scale;
  };

  __device__ int steps() const { return steps_of<T>(plan); }
  __device__ bool of_centre() const { return row < memory.rows; }
  __device__ bool of_along() const { return row >= memory.rows && row < 2 * memory.rows; }
  __device__ bool idle() const { return row >= 2 * memory.rows + memory.rim_rows; }
  /* Relative to the column's corner. */
  __device__ md_rim_place place() const {
    md_rim_place p = md_rim_place_of(&plan, max(row - 2 * memory.rows, 0), plane);
    if (row < 2 * memory.rows) {
      const parts at(row < memory.rows ? row : row - memory.rows, plan.by_y);
      p.y = at.rest, p.z = plane + at.quotient;
    }
    return p;
  }
  static __device__ int around(int x, int extent) {
    return x < 0 ? x + extent : x >= extent ? x - extent : x;
  }
  __device__ origin find_row(const corner &c) const {
    const md_rim_place p = place();
    return {c.x, around(c.y + p.y, call.local[1]), around(c.z + p.z, call.local[2])};
  }
  __device__ int site(const origin &o, int x, int t) const {
    return ((t * call.local[2] + o.z) * call.local[1] + o.y) * (call.local[0] / 2) + x;
  }
  /* A slice beyond the ends, through the three-site hop along t that leads there. */
  __device__ int beyond_end(const origin &o, int t) const {
    const int term = MD_DIRECTIONS + (t < 0 ? 7 : 3);
    return call
        .neighbour[term * call.sites + site(o, o.x, t < 0 ? t + MARCH_REACH : t - MARCH_REACH)];
  }
  __device__ strip find(const origin &o, int t) const {
    strip s = {};
    s.odd = (o.y + o.z + t + call.parity) & 1;
    s.from = t < 0 || t >= call.local[3] ? beyond_end(o, t) : site(o, o.x, t);
    s.count = plan.x;
    const int half = call.local[0] / 2, own = s.from;
    const int before = own + (o.x == 0 ? half : 0),
              beyond = own + plan.x - (o.x + plan.x == half ? half : 0);
    if (of_along())
      s.from = before - 2 + s.odd, s.count = 2 - s.odd, s.beyond = beyond, s.after = 1 + s.odd;
    if constexpr (SCALED) {
#pragma unroll
      for (int i = 0; i < MARCH_X / 4; i++)
        if (4 * i < plan.x)
          s.scale[i] = *reinterpret_cast<const float4 *>(call.source_scale + own + 4 * i);
      if (of_along()) {
        s.before_scale = *reinterpret_cast<const float2 *>(call.source_scale + before - 2);
        s.beyond_scale = *reinterpret_cast<const float2 *>(call.source_scale + beyond);
      }
    }
    return s;
  }
  __device__ void copy(char *to, int from, int count, uint64_t *b) const {
    copy_bulk(to,
              static_cast<const char *>(call.source) + static_cast<int64_t>(from) * plan.site_bytes,
              count * plan.site_bytes, b);
  }
  /* Returns the bytes that b will see arrive. */
  __device__ int copy_sites(const strip &s, char *to, uint64_t *b) const {
    copy(to, s.from, s.count, b);
    if (s.after) copy(to + s.count * plan.site_bytes, s.beyond, s.after, b);
    return (s.count + s.after) * plan.site_bytes;
  }
  __device__ void store_scales(const strip &s, char *to) const {
    if constexpr (SCALED) {
      float *scale = reinterpret_cast<float *>(to);
      const int lead = of_along() ? 2 : 0;
#pragma unroll
      for (int i = 0; i < MARCH_X / 4; i++)
        if (4 * i < plan.x) {
          float2 *pair = reinterpret_cast<float2 *>(scale + lead + 4 * i);
          pair[0] = make_float2(s.scale[i].x, s.scale[i].y);
          pair[1] = make_float2(s.scale[i].z, s.scale[i].w);
        }
      if (of_along()) {
        reinterpret_cast<float2 *>(scale)[0] = s.before_scale;
        reinterpret_cast<float2 *>(scale + 2 + plan.x)[0] = s.beyond_scale;
      }
    }
  }
  /* Bytes to the scales and to the sites of the thread's row in slot 0. */
  __device__ int scales() const {
    return of_centre()  ? memory.centre(row)
           : of_along() ? memory.along(row - memory.rows)
                        : memory.rim(row - 2 * memory.rows);
  }
  __device__ int sites(int odd) const {
    const md_rim_place p = place();
    const int at = scales() + (of_centre()  ? plan.centre
                               : of_along() ? plan.along
                                            : plan.rim)
                                  .scale_bytes;
    const int bank = memory.bank(p.y, p.z);
    return of_along() ? memory.sites_along(at, bank, odd) : memory.sites(at, bank, odd);
  }
  /* Waits until slot i of those that a segment begins with (else i = 0) is free for step `step`,
   * whose turn is `now`. */
  __device__ void wait_for_slot(bool begins, int i, int step, const turn &now) const {
    const int back = begins ? max(min(plan.ring + plan.spare - i, plan.ring), 1) : plan.ring;
    if (back > step) return;
    const turn read = now.before(back, plan.ring);
    barrier_wait(&memory.emptied[read.at], read.phase);
  }

  __device__ void run() const {
    const bool nothing = idle();
    const md_march_ring &ring = of_centre() ? plan.centre : of_along() ? plan.along : plan.rim;
    const int ahead = of_centre() ? MARCH_REACH : 0; /* slices in front of the step's own */
    char *const even = memory.memory + (nothing ? 0 : sites(0));
    char *const odd = memory.memory + (nothing ? 0 : sites(1));
    char *const scale = memory.memory + (nothing ? 0 : scales());
    walk w(plan, call);
    turn now;
    int slot = 0, step = 0;
    while (w.next(plan, call)) {
      const corner at(plan, w.column);
      origin o = {};
      if (!nothing) o = find_row(at);
      if (step == 0) {
        __syncthreads();           /* the barriers are there */
        md_wait_for_predecessor(); /* it wrote the source */
      }
      strip next = {};
      if (!nothing) next = find(o, w.t - ahead);
      for (int t = w.t; t <= w.last; t++)
        for (int k = 0; k < steps(); k++, step++) {
          uint64_t *b = &memory.filled[now.at];
          const bool begins = t == w.t && k == 0, mine = !nothing && k == plane;
          /* The first step of a segment brings all of the centre that it reads. */
          const int slots = begins ? 2 * ahead * steps() + 1 : 1;
          int bytes = 0;
          for (int i = 0; i < slots; i++) {
            wait_for_slot(begins, i, step, now);
            if (!nothing && (k + i) % steps() == plane) {
              bytes += copy_sites(next, (next.odd ? odd : even) + slot, b);
              store_scales(next, scale + slot);
              if (i + 1 < slots) next = find(o, t - ahead + i / steps() + 1);
            }
            slot = after(slot, ring);
          }
          barrier_expect(b, bytes);
          /* In 16 bits it would drive the sources out of L2 before they are read again. */
          if constexpr (std::is_same<T, double>::value)
            if (mine && of_centre()) prefetch_ending<NARROW>(call, plan, site(o, o.x, t));
          if (mine && t < w.last) next = find(o, t + 1 + ahead);
          now.next(plan.ring);
        }
    }
    if (step == 0) __syncthreads();
  }
};

} // namespace stacked

#endif
