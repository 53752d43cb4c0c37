#include "dirac/tensor/march_launch.cuh"

/* Packing `stacked` with two link fields as a march along t, see stacked_march.cu. The hops over
 * three sites make the ring of time slices seven deep and the rim three rows wide. Each source
 * site is fetched 1 + 3 (1/x + 2/y + 2/z) times instead of sixteen. */
namespace stacked {

/* A step is a time slice of the column, or, where the slice has two steps, one of its two planes
 * along z: half as much of what surrounds the column is then in shared memory, which leaves place
 * for a larger tile.
 *
 * Shared memory of a block: barriers, then three rings of slots, each slot the rows of one step.
 * `centre` holds the column's own rows, of plan.x sites, of the steps from the one three slices
 * before to the one three slices behind; `rim` those of the rows at up to three places before and
 * beyond the column along y and z that the step reads; `along` for each own row of the step the
 * sites before and beyond it along x. A row of the
 * source has the opposite parity of the output row at its place. With sites counted so that those
 * of output site i along y, z and t are i, and along x, where the output row has x offset o (0 or
 * 1), i+o and i+o+1 forward, i+o-1 and i+o-2 backward, the row of `along` holds -2 (o = 0 only),
 * -1, x, x+1 (o = 1 only). A row is scales, in half, and then sites; the scales of `along` are
 * those of -2 .. x+1.
 *
 * Banks: the four lanes t of a fragment load take 32 bytes each, of the rows along x, y, z and t.
 * Rows start at y + 2 z + o units of 32 bytes past a multiple of 128 where a site has 64 bytes
 * modulo 128, and at y + 3 z + 2 o where it has none; rows of `along` where a row that begins with
 * its first site would have it. Then the four differ modulo 128 bytes for both ways and both
 * hops. */
struct long_stage : block_memory {
  int rows, rim_rows; /* of a slot of the centre and of `along`, and of the rim */
  __device__ long_stage(char *at, const md_march_plan &p)
      : block_memory(at, p), rows(md_own_rows(&p)), rim_rows(md_rim_rows(&p)) {}

  /* Bytes from `memory` to the scales of a row of slot 0; slot k follows k times the ring's
   * slot_bytes later. */
  __device__ int centre(int row) const { return MARCH_BARRIERS + row * plan.centre.row_bytes; }
  __device__ int rim(int row) const {
    return MARCH_BARRIERS + plan.centre.bytes + row * plan.rim.row_bytes;
  }
  __device__ int along(int row) const {
    return MARCH_BARRIERS + plan.centre.bytes + plan.rim.bytes + row * plan.along.row_bytes;
  }
  /* Place in banks of the row y, z (of the column's corner) with x offset 0, units of 32 bytes. */
  __device__ int bank(int y, int z) const { return y + (3 - wide()) * z & 3; }
  __device__ int wide() const { return plan.site_bytes % 128 ? 1 : 0; }
  /* Where the sites of a row start whose scales end at `at`. */
  __device__ int sites(int at, int bank, int odd) const {
    return at + (32 * (bank + odd * (2 - wide())) - at & 127);
  }
  __device__ int sites_along(int at, int bank, int odd) const {
    return at + (32 * (bank + odd * (2 - wide())) + (odd - 2) * plan.site_bytes - at & 127);
  }
};

/* Steps of a slice. In 16 bits all tiles have one, and the compiler knows it. */
template <typename T> __device__ inline int steps_of(const md_march_plan &plan) {
  if constexpr (storage<T>::adjacent) return 1;
  return plan.steps;
}

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
    int away; /* direction whose message `from` counts sites of; 0: the source's */
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
    s.away = t < 0 ? 7 : t >= call.local[3] ? 3 : 0;
    s.from = s.away ? beyond_end(o, t) : site(o, o.x, t);
    s.count = plan.x;
    const float *all_scales = call.source_scale;
    const md_halo_arrival &arrival = call.arrivals.of[s.away];
    if (s.away && arrival.values)
      s.from -= static_cast<int>(arrival.zone), all_scales = arrival.scales;
    else
      s.away = 0;
    const int half = call.local[0] / 2, own = s.from;
    const int before = own + (o.x == 0 ? half : 0),
              beyond = own + plan.x - (o.x + plan.x == half ? half : 0);
    if (of_along())
      s.from = before - 2 + s.odd, s.count = 2 - s.odd, s.beyond = beyond, s.after = 1 + s.odd;
    if constexpr (SCALED) {
#pragma unroll
      for (int i = 0; i < MARCH_X / 4; i++)
        if (4 * i < plan.x)
          s.scale[i] = *reinterpret_cast<const float4 *>(all_scales + own + 4 * i);
      if (of_along()) {
        s.before_scale = *reinterpret_cast<const float2 *>(call.source_scale + before - 2);
        s.beyond_scale = *reinterpret_cast<const float2 *>(call.source_scale + beyond);
      }
    }
    return s;
  }
  /* Returns the bytes that b will see arrive. */
  __device__ int copy_sites(const strip &s, char *to, uint64_t *b) const {
    copy_sites_of(plan, to, s.away ? call.arrivals.of[s.away].values : call.source, s.from, s.count,
                  b);
    if (s.after)
      copy_sites_of(plan, to + s.count * plan.site_bytes, call.source, s.beyond, s.after, b);
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
  __device__ void run() const {
    const bool nothing = idle();
    const md_march_ring &ring = of_centre() ? plan.centre : of_along() ? plan.along : plan.rim;
    const int ahead = of_centre() ? MARCH_REACH : 0; /* slices in front of the step's own */
    char *const even = memory.memory + (nothing ? 0 : sites(0));
    char *const odd = memory.memory + (nothing ? 0 : sites(1));
    char *const scale = memory.memory + (nothing ? 0 : scales());
    walk w(plan, call);
    turn now;
    int slot = 0, step = 0, begun = 0;
    while (w.next(plan, call)) {
      const int before = step - begun; /* steps of the segment before */
      begun = step;
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
            wait_for_slot(memory, plan, md_march_back(&plan, begins, i, before), step, now);
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

/* What x offset 1 of the output row adds to the places of a lane's row. In half, where registers
 * run out, the two numbers share one: a single one that came back from memory took a tenth of the
 * computing warps' time. */
template <bool SHARED> struct row_steps {
  int16_t to_inside, to_ends;
  row_steps() = default;
  __device__ row_steps(int inside, int ends)
      : to_inside(static_cast<int16_t>(inside)), to_ends(static_cast<int16_t>(ends)) {}
  __device__ int inside(int odd) const { return odd ? to_inside : 0; }
  __device__ int ends(int odd) const { return odd ? to_ends : 0; }
};
template <> struct row_steps<true> {
  int both;
  row_steps() = default;
  __device__ row_steps(int inside, int ends) : both((inside & 0xffff) | ends << 16) {}
  /* A half with its sign, or zeros. */
  __device__ int inside(int odd) const { return __byte_perm(both, 0, odd ? 0x9910 : 0x4444); }
  __device__ int ends(int odd) const { return __byte_perm(both, 0, odd ? 0xbb32 : 0x4444); }
};

/* A computing warp: plan.warp_sites neighbouring sites of one row a step. */
template <typename T, int RHS, ending END, bool PARTIAL> struct long_computer {
  using worker_of = worker<T, RHS, END, 2>;
  static constexpr int site_bytes = worker_of::site_bytes();
  __device__ int steps() const { return steps_of<T>(plan); }
  /* A row that the lane reads, from the place of the warp's first site on: what does not change
   * from slice to slice. Its sites lie in the centre or the rim; for lanes along x those beyond the
   * ends of the column's row lie in `along`, for others there are none. Bytes in slot 0, for output
   * rows with x offset 0. */
  struct row {
    int inside, ends;
    row_steps<storage<T>::scaled> steps;
    int scales; /* of the lane's site; not (~) that for rows of the rim */
  };
  /* The same in the present slice. Sites from `cut` on, backward those before, are read at `ends`.
   */
  struct line {
    const char *inside, *ends;
    int cut;
    __device__ void advance(int sites) {
      inside += sites * site_bytes, ends += sites * site_bytes, cut -= sites;
    }
  };
  /* The rows of a pass over the tile, in which each warp takes as many sites. */
  struct pass {
    int x, y, z;    /* the warp's first site, relative to the column's corner */
    int site, odd;  /* what it adds to the corner's site and x offset */
    row rows[2][2]; /* of the link fields, forward and backward */
  };
  const md_tensor_call &call;
  const md_march_plan &plan;
  const long_stage &memory;
  worker_of work;
  pass passes[LONG_PASSES];
  walk w;
  corner at;
  int site, odd; /* at the corner, in the present slice */
  turn now;
  int past; /* slot of the step three slices before */

  __device__ long_computer(const md_tensor_call &c, const md_march_plan &p, const long_stage &m)
      : call(c), plan(p), memory(m), work(c), w(p, c), at(p, 0), past(0) {
#pragma unroll
    for (int k = 0; k < LONG_PASSES; k++) find_pass(passes[k], min(k, plan.passes - 1));
  }
  __device__ void find_pass(pass &p, int k) {
    const int first = (k * plan.warps + static_cast<int>(threadIdx.x / 32)) * plan.warp_sites;
    const parts of_row(first, plan.by_x), of_plane(of_row.quotient, plan.by_y);
    p.x = of_row.rest, p.y = of_plane.rest, p.z = of_plane.quotient;
    p.site = site_of(p.x, p.y, p.z), p.odd = p.y + p.z & 1;
#pragma unroll
    for (int i = 0; i < 4; i++) p.rows[i / 2][i % 2] = find_row(p, i / 2, i % 2);
  }
  __device__ row find_row(const pass &p, int f, int way) const {
    const int mu = work.at.t, reach = f ? MARCH_REACH : 1, by = way ? -reach : reach;
    const int y = p.y + (mu == 1 ? by : 0), z = p.z + (mu == 2 ? by : 0);
    const bool outside = y < 0 || y >= plan.y || z < 0 || z >= plan.z;
    const int plane = steps() == 2 ? p.z : 0;
    const auto own_row = [&](int y, int z) { return (steps() == 2 ? 0 : z * plan.y) + y; };
    const int scales =
        outside ? memory.rim(md_rim_row_at(&plan, y, z, plane)) : memory.centre(own_row(y, z));
    const int at = scales + plan.centre.scale_bytes; /* the rim has the same */
    const int bank = memory.bank(y, z), along = memory.along(own_row(p.y, p.z));
    const int lane_at = row_offset<T, RHS>(work.at.g) + p.x * site_bytes;
    const auto inside = [&](int odd) {
      return lane_at + (mu == 0 ? memory.sites(at, bank, odd) + shift(f, way, odd) * site_bytes
                                : memory.sites(at, bank, 1 - odd));
    };
    const auto ends = [&](int odd) {
      const int place = shift(f, way, odd) + 2 - odd - (way ? 0 : plan.x);
      return mu == 0 ? lane_at + memory.sites_along(along + plan.along.scale_bytes, bank, odd) +
                           place * site_bytes
                     : inside(odd);
    };
    const int mine = p.x + min(work.at.g, plan.warp_sites - 1);
    const int scale =
        static_cast<int>(sizeof(float)) * (mine + (mu == 0 ? 2 + shift(f, way, 0) : 0)) +
        (mu == 0 ? along : scales);
    return {
        inside(0), ends(0), {inside(1) - inside(0), ends(1) - ends(0)}, outside ? ~scale : scale};
  }
  /* Of the lanes along x: site i's neighbour is site i + shift. */
  static __device__ int shift(int f, int way, int odd) {
    return odd + (way ? -1 - f : f);
  }
  /* Bytes to the slot of a row. */
  __device__ int slot(const row &r, int f, int way) const {
    const int reach = f ? MARCH_REACH : 1, slice = steps() * plan.centre.slot_bytes;
    /* A row of the rim has no use for it. */
    const int to_plane = steps() == 2 && work.at.t == 2 ? plan.centre.slot_bytes : 0;
    const int by = work.at.t == 3 ? slice : to_plane;
    const unsigned at = past + MARCH_REACH * slice + (way ? -reach : reach) * by;
    /* The smaller: what wrapped below zero is large. */
    const int centre = static_cast<int>(min(at, at - plan.centre.bytes));
    return r.scales < 0 ? now.at * plan.rim.slot_bytes : centre;
  }
  /* And to that of its ends, and of scales. */
  __device__ int slot_of_ends(int inside) const {
    return work.at.t == 0 ? now.at * plan.along.slot_bytes : inside;
  }
  /* The row for sites of x offset `odd`. */
  __device__ line line_of(const pass &p, int f, int way, int odd) const {
    const row &r = p.rows[f][way];
    const int inside = slot(r, f, way), ends = slot_of_ends(inside);
    /* Half a word with its sign, or nothing. */
    return {memory.memory + (r.inside + r.steps.inside(odd) + inside),
            memory.memory + (r.ends + r.steps.ends(odd) + ends),
            (way ? 0 : plan.x) - shift(f, way, odd) - p.x};
  }
  __device__ float scale_of_source(const pass &p, int f, int way, int odd) const {
    const row &r = p.rows[f][way];
    const int place = max(r.scales, ~r.scales) + slot_of_ends(slot(r, f, way));
    return reinterpret_cast<const float *>(memory.memory + place)[work.at.t == 0 ? odd : 0];
  }
  /* Of the warp's sites; the units are returned. */
  __device__ int find_ratios(const pass &p, int odd, uint32_t ratios[2]) const {
    float ahead[2], behind[2];
#pragma unroll
    for (int f = 0; f < 2; f++) {
      ahead[f] = scale_of_source(p, f, 0, odd);
      behind[f] = scale_of_source(p, f, 1, odd);
    }
    const int units = largest_exponent(fmaxf(ahead[0], ahead[1]), fmaxf(behind[0], behind[1]));
#pragma unroll
    for (int f = 0; f < 2; f++) ratios[f] = ratios_to(units, ahead[f], behind[f]);
    return units;
  }
  __device__ int site_of(int x, int y, int z) const {
    return (z * call.local[1] + y) * (call.local[0] / 2) + x;
  }
  /* The output site at the column's corner in time slice t, and its x offset. */
  __device__ void begin_column(int t) {
    at = corner(plan, w.column);
    site = site_of(at.x, at.y, at.z) + t * site_of(0, 0, call.local[2]);
    odd = at.y + at.z + t + call.parity & 1;
  }
  /* A pass over a time slice, whose corner is `site` and `odd`; then the links of site `next` are
   * asked for. */
  __device__ void take(const pass &p, const corner &at, int site, int odd, int next) {
    const int first = site + p.site;
    odd ^= p.odd;
    line lines[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) lines[i / 2][i % 2] = line_of(p, i / 2, i % 2, odd);
    uint32_t ratios[2] = {};
    int units = 127;
    if constexpr (storage<T>::scaled) units = find_ratios(p, odd, ratios);
    for (int n = 0; n < plan.warp_sites; n += batch<T>) {
      const auto source = [&](int f, int of, int way) {
        const line &l = lines[f][way];
        /* A hop of link field f leaves its row from the f + 1 outermost sites alone. */
        const bool outermost = way ? of <= f : of >= batch<T> - 1 - f;
        const bool beyond = way ? of < l.cut : of >= l.cut;
        return (outermost && beyond ? l.ends : l.inside) + of * site_bytes;
      };
      work.some(first + n, n + batch<T> < plan.warp_sites ? first + n + batch<T> : next,
                PARTIAL ? assigned_of<batch<T>>(call, at.x + p.x + n, odd, at.y + p.y, at.z + p.z)
                        : ~0u,
                source, n, ratios, units);
#pragma unroll
      for (int i = 0; i < 4; i++) lines[i / 2][i % 2].advance(batch<T>);
    }
  }
  /* The step's rows are read; what the next one reads begins `slots` slots later. */
  __device__ void end_step(int slots) {
    barrier_arrive(&memory.emptied[now.at]);
    now.next(plan.ring);
    past += slots * plan.centre.slot_bytes;
    if (past >= plan.centre.bytes) past -= plan.centre.bytes;
  }
  __device__ void run() {
    work.begin();
    bool more = w.next(plan, call);
    if (more) {
      begin_column(w.t);
      work.load(site + passes[0].site);
    }
    __syncthreads();           /* the barriers are there */
    md_wait_for_predecessor(); /* it may read out */
    while (more) {
      const pass &last = passes[LONG_PASSES - 1];
      barrier_wait(&memory.filled[now.at], now.phase);
      if (plan.passes == LONG_PASSES) take(passes[0], at, site, odd, site + last.site);
      if (steps() == 2) {
        end_step(1);
        barrier_wait(&memory.filled[now.at], now.phase);
      }
      const corner here_at = at;
      const int here = site, here_odd = odd;
      int slots = 1;
      if (w.t < w.last) {
        w.t++, site += site_of(0, 0, call.local[2]), odd ^= 1;
      } else {
        more = w.next(plan, call), slots = 2 * MARCH_REACH * steps() + 1;
        if (more) begin_column(w.t);
      }
      /* At the end the next links are any that may be read. */
      take(last, here_at, here, here_odd, site + passes[0].site);
      end_step(slots);
    }
    work.leave(plan);
  }
};

struct two_link_fields {
  static constexpr int warps = LONG_WARPS;
  using stage = long_stage;
  /* Feeding steps of planes takes a few more. */
  template <typename T, ending, coverage>
  using registers =
      std::conditional_t<storage<T>::adjacent, register_shares<72, 216>, register_shares<80, 208>>;
  /* Its registers leave no place for the kernels that a march would wait for. */
  static constexpr bool waits = false;
  template <typename T, coverage, bool NARROW> using feeder = long_feeder<T, NARROW>;
  template <typename T, int RHS, ending END, coverage COVER>
  using computer = long_computer<T, RHS, END, COVER == coverage::partial>;
};

} // namespace stacked

md_status md_tensor_march_long(md_context *context, const md_tensor_call *call,
                               const md_march_plan *plan) {
  return stacked::march_with<stacked::two_link_fields>(context, call, plan);
}
