#include "dirac/tensor/march_launch.cuh"
#include "dirac/tensor/march_long_feeder.cuh"
#include "dirac/tensor/march_worker.cuh"

/* Packing `stacked` with two link fields as a march along t, see stacked_march.cu. The hops over
 * three sites make the ring of time slices seven deep and the rim three rows wide. Each source
 * site is fetched 2 + 3 (1/x + 2/y + 2/z) times instead of sixteen. */
namespace stacked {

/* A computing warp: plan.warp_sites neighbouring sites of one row a step. */
template <typename T, int RHS, ending END, bool PARTIAL> struct long_computer {
  using worker_of = worker<T, RHS, END, 2>;
  static constexpr int site_bytes = worker_of::site_bytes;
  enum { of_rim = 7 };
  /* Where site i of the row lies: i sites behind `low`, or behind `high` from site `cut` on. */
  struct line {
    int low, high, cut;
    __device__ int site(int i) const { return (i >= cut ? high : low) + i * site_bytes; }
  };
  /* A row that the lane reads, as seen from a warp's output row: what does not change from slice to
   * slice. */
  struct row {
    int low, high, scales;       /* in slot 0, for output rows with x offset 0 */
    int16_t low_step, high_step; /* what x offset 1 adds */
    int16_t slice;               /* of the centre, 0 .. 6 for t-3 .. t+3, or of_rim */
  };
  /* The rows of a pass over the tile, in which each warp takes as many sites. */
  struct pass {
    int x, y, z;    /* the warp's first site, relative to the column's corner */
    row rows[2][2]; /* of the link fields, forward and backward */
  };
  const md_tensor_call &call;
  const md_march_plan &plan;
  const long_stage &memory;
  worker_of work;
  pass passes[LONG_PASSES];
  walk w;
  corner at;
  turn now;
  int past; /* slot of slice t-3 */

  __device__ long_computer(const md_tensor_call &c, const md_march_plan &p, const long_stage &m)
      : call(c), plan(p), memory(m), work{c, lane(), {}, {}, {}}, w(p, c), at(p, 0), past(0) {
#pragma unroll
    for (int k = 0; k < LONG_PASSES; k++) find_pass(passes[k], min(k, plan.passes - 1));
  }
  __device__ void find_pass(pass &p, int k) {
    const int first = (k * plan.warps + static_cast<int>(threadIdx.x / 32)) * plan.warp_sites;
    p.x = first % plan.x, p.y = first / plan.x % plan.y, p.z = first / plan.x / plan.y;
#pragma unroll
    for (int i = 0; i < 4; i++) p.rows[i / 2][i % 2] = find_row(p, i / 2, i % 2);
  }
  __device__ row find_row(const pass &p, int f, int way) const {
    const int mu = work.at.t, reach = f ? MARCH_REACH : 1, by = way ? -reach : reach;
    const int y = p.y + (mu == 1 ? by : 0), z = p.z + (mu == 2 ? by : 0);
    const bool outside = y < 0 || y >= plan.y || z < 0 || z >= plan.z;
    const int scales =
        outside ? memory.rim(long_rim_place::row(plan, y, z)) : memory.centre(z * plan.y + y);
    const int at = scales + plan.centre.scale_bytes; /* the rim has the same */
    const int bank = memory.bank(y, z), along = memory.along(p.z * plan.y + p.y);
    const auto find_line = [&](int odd) {
      const int start = memory.sites(at, bank, mu == 0 ? odd : 1 - odd);
      if (mu != 0) return line{start, start, 0};
      const int further = shift(f, way, odd), inside = start + further * site_bytes;
      const int ends = memory.sites_along(along + plan.along.scale_bytes, bank, odd) +
                       (further + 2 - odd) * site_bytes;
      return way ? line{ends, inside, 0} : line{inside, ends - plan.x * site_bytes, 0};
    };
    const line even = find_line(0), odd = find_line(1);
    row r = {even.low, even.high, scales};
    if (mu == 0) r.scales = along + static_cast<int>(sizeof(float)) * (2 + shift(f, way, 0));
    r.low_step = static_cast<int16_t>(odd.low - even.low);
    r.high_step = static_cast<int16_t>(odd.high - even.high);
    r.slice = static_cast<int16_t>(outside ? of_rim : MARCH_REACH + (mu == 3 ? by : 0));
    return r;
  }
  /* Of the lanes along x: site i's neighbour is site i + shift. */
  static __device__ int shift(int f, int way, int odd) {
    return odd + (way ? -1 - f : f);
  }
  /* Bytes to the slot of a row. */
  __device__ int slot(const row &r) const {
    if (r.slice == of_rim) return now.at * plan.rim.slot_bytes;
    const int slot = past + r.slice * plan.centre.slot_bytes;
    return slot < plan.centre.bytes ? slot : slot - plan.centre.bytes;
  }
  /* And to that of the row's ends, and scales, where lanes along x have them. */
  __device__ int slot_along(int otherwise) const {
    return work.at.t == 0 ? now.at * plan.along.slot_bytes : otherwise;
  }
  /* The row for sites of x offset `odd`; cut is meant for lanes along x, others have one line. */
  __device__ line line_of(const pass &p, int f, int way, int odd) const {
    const row &r = p.rows[f][way];
    const int own = slot(r), along = slot_along(own), by = shift(f, way, odd);
    return {r.low + (odd ? r.low_step : 0) + (way ? along : own),
            r.high + (odd ? r.high_step : 0) + (way ? own : along), way ? -by : plan.x - by};
  }
  __device__ const float *find_scales(const pass &p, int f, int way, int odd) const {
    const row &r = p.rows[f][way];
    const int bytes = r.scales + slot_along(slot(r));
    return reinterpret_cast<const float *>(memory.memory + bytes) + (work.at.t == 0 ? odd : 0);
  }
  /* Of the warp's sites; the units are returned. */
  __device__ int find_ratios(const pass &p, int odd, uint32_t ratios[2]) const {
    const int mine = p.x + min(work.at.g, plan.warp_sites - 1);
    float ahead[2], behind[2];
#pragma unroll
    for (int f = 0; f < 2; f++) {
      ahead[f] = find_scales(p, f, 0, odd)[mine];
      behind[f] = find_scales(p, f, 1, odd)[mine];
    }
    const int units = largest_exponent(fmaxf(ahead[0], ahead[1]), fmaxf(behind[0], behind[1]));
#pragma unroll
    for (int f = 0; f < 2; f++) ratios[f] = ratios_to(units, ahead[f], behind[f]);
    return units;
  }
  /* The output site at which a pass over time slice t begins. */
  __device__ int site(const pass &p, int t) const {
    return ((t * call.local[2] + at.z + p.z) * call.local[1] + at.y + p.y) * (call.local[0] / 2) +
           at.x + p.x;
  }
  /* Time slice t of the column; then the links of site `next` are asked for. */
  __device__ void take(const pass &p, int t, int first, int next) {
    const int odd = (at.y + p.y + at.z + p.z + t + call.parity) & 1;
    line lines[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) lines[i / 2][i % 2] = line_of(p, i / 2, i % 2, odd);
    uint32_t ratios[2] = {};
    int units = 127;
    if constexpr (storage<T>::scaled) units = find_ratios(p, odd, ratios);
    for (int n = 0; n < plan.warp_sites; n += batch<T>) {
      const auto source = [&](int f, int of, int way) {
        return memory.memory + lines[f][way].site(p.x + n + of);
      };
      work.some(first + n, n + batch<T> < plan.warp_sites ? first + n + batch<T> : next,
                PARTIAL ? work.assigned(at.x + p.x + n, odd, at.y + p.y, at.z + p.z) : ~0u, source,
                n, ratios, units);
    }
  }
  __device__ void run() {
    work.begin();
    bool more = w.next(plan, call);
    if (more) {
      at = corner(plan, w.column);
      work.load(site(passes[0], w.t));
    }
    md_wait_for_predecessor(); /* it may read out */
    while (more) {
      const int t = w.t, first = site(passes[0], t), second = site(passes[LONG_PASSES - 1], t);
      barrier_wait(&memory.filled[now.at], now.phase);
      const bool again = plan.passes == LONG_PASSES;
      if (again) take(passes[0], t, first, second);
      const corner here = at;
      int slices = 1;
      if (w.t < w.last) {
        w.t++;
      } else {
        more = w.next(plan, call), slices = 2 * MARCH_REACH + 1;
        if (more) at = corner(plan, w.column);
      }
      const int next = site(passes[0], w.t); /* at the end: anything that may be read */
      const corner then = at;
      at = here;
      take(passes[LONG_PASSES - 1], t, second, next);
      at = then;
      barrier_arrive(&memory.emptied[now.at]);
      now.next(plan.ring);
      past += slices * plan.centre.slot_bytes;
      if (past >= plan.centre.bytes) past -= plan.centre.bytes;
    }
    work.leave(plan);
  }
};

struct two_link_fields {
  static constexpr int warps = LONG_WARPS;
  using stage = long_stage;
  template <bool SCALED> using feeder = long_feeder<SCALED>;
  template <typename T, int RHS, ending END, bool PARTIAL>
  using computer = long_computer<T, RHS, END, PARTIAL>;
};

} // namespace stacked

md_status md_tensor_march_long(md_context *context, const md_tensor_call *call,
                               const md_march_plan *plan) {
  return stacked::march_with<stacked::two_link_fields>(context, call, plan);
}
