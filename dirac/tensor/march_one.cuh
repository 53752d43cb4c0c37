#pragma once

#include "dirac/tensor/march_launch.cuh"

/* The march along t with one link field. A block owns a column of x*y*z output
 * sites a time slice. Shared memory holds the column's own rows of the time slices t-1, t, t+1
 * (`centre`) and the rows that surround it in slice t (`rim`), and what the next steps add to them.
 * Four warps feed: they copy rows, which are contiguous in memory, with the bulk copy engine while
 * the others compute. Each source site is thus fetched 1 + 1/x + 2/y + 2/z times instead of eight.
 */
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
  /* Returns the bytes that b will see arrive. */
  __device__ int copy_sites(const strip &s, char *to, uint64_t *b) const {
    copy_sites_of(plan, to + s.place * plan.site_bytes,
                  s.away ? call.arrivals.of[s.away].values : call.source, s.from, s.count, b);
    if (s.end >= 0)
      copy_sites_of(plan, to + s.end_place * plan.site_bytes, call.source, s.end, 1, b);
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
  __device__ void run() const {
    const bool idle = row >= memory.centre_rows + memory.rim_rows, mine = of_centre();
    const md_march_ring &ring = mine ? plan.centre : plan.rim;
    char *const even = idle ? memory.memory : place(0), *const odd = idle ? even : place(1);
    char *const scales = idle ? even : place_of_scales();
    walk_of<COVER> w(plan, call);
    turn now;
    int slot = 0, step = 0, begun = 0;
    while (w.next(plan, call)) {
      const int before = step - begun; /* steps of the segment before */
      begun = step;
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
          wait_for_slot(memory, plan, md_march_back(&plan, begins, i, before), step, now);
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

/* Where a computing lane reads the sources of one of its directions, from `memory` for slot 0:
 * sites of even and of odd rows in units of 32 bytes, scales in bytes. Few registers: what does not
 * fit into them comes back from L2 in every step. */
struct source_row {
  enum { past, here, future, rim }; /* of the centre: relative to t */
  unsigned slot : 2, even : 14, odd : 14;
  int scales;
  __device__ source_row(const stage &memory, int x0, int y, int z, int direction) {
    const md_march_plan &plan = memory.plan;
    const int mu = direction % 4, sign = direction < 4 ? 1 : -1;
    const int ny = y + (mu == 1 ? sign : 0), nz = z + (mu == 2 ? sign : 0);
    const bool outside = ny < 0 || ny == plan.y || nz < 0 || nz == plan.z;
    slot = outside ? rim : mu < 3 ? here : sign > 0 ? future : past;
    const int row = !outside       ? nz * plan.y + ny
                    : ny < 0       ? z
                    : ny == plan.y ? plan.z + z
                    : nz < 0       ? 2 * plan.z + y
                                   : 2 * plan.z + plan.y + y;
    /* The row, of output sites with odd x offset or not, as seen from such a site. */
    const auto start = [&](int odd) {
      const int its = mu == 0 ? odd : 1 - odd;
      return outside ? memory.rim(row, ny, nz, its) : memory.centre(row, ny, nz, its);
    };
    /* Along x both neighbours lie in the own row, which is x0 and x0+1 there; else the neighbour
     * has the same x, which is one place further in odd rows of the centre. */
    const int place = x0 + (mu == 0 && sign > 0), further = outside || mu == 0 ? 0 : 1;
    even = (start(0) + place * plan.site_bytes) / 32;
    odd = (start(1) + (place + further) * plan.site_bytes) / 32;
    scales = (outside ? memory.rim_scales(row) : memory.centre_scales(row)) +
             static_cast<int>(sizeof(float)) *
                 ((outside ? RIM_LEAD : CENTRE_LEAD) + x0 - (mu == 0 && sign < 0));
  }
  __device__ int sites(bool in_odd_row) const { return 32 * (in_odd_row ? odd : even); }
};

/* A computing warp: plan.warp_sites neighbouring sites of one row a step, of which its WORKER takes
 * `some` at a time. */
template <typename T, class WORKER, coverage COVER> struct computer {
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  WORKER work;
  __device__ computer(const md_tensor_call &c, const md_march_plan &p, const stage &m)
      : call(c), plan(p), memory(m), work(c) {}
  __device__ void run() {
    work.begin();
    walk_all();
    work.leave(plan);
  }
  __device__ void walk_all() {
    const int first = WORKER::warp() * plan.warp_sites;
    const parts of_x(first, plan.by_x), of_plane(of_x.quotient, plan.by_y);
    const int of_row = of_x.rest, of_y = of_plane.rest, of_z = of_plane.quotient;
    const source_row ahead(memory, of_row, of_y, of_z, work.at.t);
    const source_row behind(memory, of_row, of_y, of_z, work.at.t + 4);
    const int slice = call.local[0] / 2 * call.local[1] * call.local[2];
    walk_of<COVER> w(plan, call);
    if (!w.next(plan, call)) return __syncthreads();
    int x, y, z, site; /* the warp's first site */
    const auto begin = [&] {
      const corner c(plan, w.column);
      x = c.x + of_row, y = c.y + of_y, z = c.z + of_z;
      return (z * call.local[1] + y) * (call.local[0] / 2) + x + w.t * slice;
    };
    site = begin();
    work.load(site);
    __syncthreads();           /* the barriers are there */
    md_wait_for_predecessor(); /* it may read out */
    /* Slots of the slices t-1, t, t+1. */
    int past = 0, here = plan.centre.slot_bytes, future = 2 * here;
    turn now;
    for (bool more = true; more;) {
      const int odd = (y + z + w.t + call.parity) & 1;
      const auto slot = [&](const source_row &s) {
        return s.slot == s.rim      ? now.at * plan.rim.slot_bytes
               : s.slot == s.here   ? here
               : s.slot == s.future ? future
                                    : past;
      };
      const char *forward = memory.memory + slot(ahead), *backward = memory.memory + slot(behind);
      const int along = work.at.t == 0 ? odd : 0;
      const float *ahead_scale = reinterpret_cast<const float *>(forward + ahead.scales) + along;
      const float *behind_scale = reinterpret_cast<const float *>(backward + behind.scales) + along;
      forward += ahead.sites(odd) + work.row_offset();
      backward += behind.sites(odd) + work.row_offset();
      const int in_x = x, in_y = y, in_z = z;
      int next = site + slice, slices = 1;
      if (w.t < w.last) {
        w.t++;
      } else {
        more = w.next(plan, call), slices = 3;
        next = more ? begin() : site; /* at the end: anything that may be read */
      }
      barrier_wait(&memory.filled[now.at], now.phase);
      uint32_t ratios = 0;
      int units = 127;
      for (int n = 0; n < plan.warp_sites; n += WORKER::sites) {
        if constexpr (storage<T>::scaled)
          if (n % 8 == 0) {
            const int mine = n + min(work.at.g, plan.warp_sites - n - 1);
            units = largest_exponent(ahead_scale[mine], behind_scale[mine]);
            ratios = ratios_to(units, ahead_scale[mine], behind_scale[mine]);
          }
        const int site_bytes = work.site_bytes();
        const char *ahead_of = forward + n * site_bytes, *behind_of = backward + n * site_bytes;
        const auto source = [&](int, int of, int way) {
          return (way ? behind_of : ahead_of) + of * site_bytes;
        };
        work.some(site + n, n + WORKER::sites < plan.warp_sites ? site + n + WORKER::sites : next,
                  COVER == coverage::partial
                      ? assigned_of<WORKER::sites>(call, in_x + n, odd, in_y, in_z)
                      : ~0u,
                  source, n % 8, &ratios, units);
      }
      barrier_arrive(&memory.emptied[now.at]);
      now.next(plan.ring);
      for (int i = 0; i < slices; i++)
        past = here, here = future, future = after(future, plan.centre);
      site = next;
    }
  }
};

} // namespace stacked
