#include "dirac/tensor/march_launch.cuh"
#include "dirac/tensor/march_long_feeder.cuh"
#include "dirac/tensor/march_worker.cuh"

/* Packing `stacked` with two link fields as a march along t, see stacked_march.cu. The hops over
 * three sites make the ring of time slices seven deep and the rim three rows wide. Each source
 * site is fetched 1 + 3 (1/x + 2/y + 2/z) times instead of sixteen. */
namespace stacked {

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
  static constexpr int site_bytes = worker_of::site_bytes;
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
      : call(c), plan(p), memory(m), work{c, lane(), {}, {}, {}}, w(p, c), at(p, 0), past(0) {
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
                PARTIAL ? work.assigned(at.x + p.x + n, odd, at.y + p.y, at.z + p.z) : ~0u, source,
                n, ratios, units);
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
