#include "dirac/tensor/march_feeder.cuh"
#include "dirac/tensor/march_launch.cuh"
#include "dirac/tensor/march_worker.cuh"

/* Packing `stacked` with one link field as a march along t. A block owns a column of x*y*z output
 * sites a time slice. Shared memory holds the column's own rows of the time slices t-1, t, t+1
 * (`centre`) and the rows that surround it in slice t (`rim`), and what the next steps add to them.
 * Four warps feed: they copy rows, which are contiguous in memory, with the bulk copy engine while
 * the others compute. Each source site is thus fetched 1 + 1/x + 2/y + 2/z times instead of eight.
 */
namespace stacked {

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

/* A computing warp: plan.warp_sites neighbouring sites of one row a step. */
template <typename T, int RHS, ending END, coverage COVER> struct computer {
  using worker_of = worker<T, RHS, END, 1>;
  static constexpr int site_bytes = worker_of::site_bytes;
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  worker_of work;
  __device__ computer(const md_tensor_call &c, const md_march_plan &p, const stage &m)
      : call(c), plan(p), memory(m), work{c, lane(), {}, {}, {}} {}
  __device__ void run() {
    work.begin();
    walk_all();
    work.leave(plan);
  }
  __device__ void walk_all() {
    const int first = threadIdx.x / 32 * plan.warp_sites;
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
      forward += ahead.sites(odd) + row_offset<T, RHS>(work.at.g);
      backward += behind.sites(odd) + row_offset<T, RHS>(work.at.g);
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
      for (int n = 0; n < plan.warp_sites; n += batch<T>) {
        if constexpr (storage<T>::scaled)
          if (n % 8 == 0) {
            const int mine = n + min(work.at.g, plan.warp_sites - n - 1);
            units = largest_exponent(ahead_scale[mine], behind_scale[mine]);
            ratios = ratios_to(units, ahead_scale[mine], behind_scale[mine]);
          }
        const char *ahead_of = forward + n * site_bytes, *behind_of = backward + n * site_bytes;
        const auto source = [&](int, int of, int way) {
          return (way ? behind_of : ahead_of) + of * site_bytes;
        };
        work.some(site + n, n + batch<T> < plan.warp_sites ? site + n + batch<T> : next,
                  COVER == coverage::partial ? work.assigned(in_x + n, odd, in_y, in_z) : ~0u,
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

struct one_link_field {
  static constexpr int warps = MARCH_WARPS;
  static constexpr bool waits = true;
  using stage = stacked::stage;
  template <typename T, ending END, coverage COVER>
  using registers =
      std::conditional_t<COVER == coverage::waiting || (storage<T>::scaled && !leaves_norms<END>),
                         register_shares<0, 0>, register_shares<64, 104>>;
  template <typename T, coverage COVER, bool NARROW>
  using feeder = stacked::feeder<storage<T>::scaled, COVER, NARROW>;
  template <typename T, int RHS, ending END, coverage COVER>
  using computer = stacked::computer<T, RHS, END, COVER>;
};

} // namespace stacked

md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan) {
  return plan->fields == 1 ? stacked::march_with<stacked::one_link_field>(context, call, plan)
                           : md_tensor_march_long(context, call, plan);
}
