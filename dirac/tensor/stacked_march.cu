#include "dirac/tensor/march_feeder.cuh"
#include "dirac/tensor/stacked_step.cuh"

/* Packing `stacked` as a march along t. A block owns a column of x*y*z output sites a time slice.
 * Shared memory holds the column's own rows of the time slices t-1, t, t+1 (`centre`) and the rows
 * that surround it in slice t (`rim`), and what the next steps add to them. Four warps feed: they
 * copy rows, which are contiguous in memory, with the bulk copy engine while the others compute.
 * Each source site is thus fetched 1 + 1/x + 2/y + 2/z times instead of eight. */
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

/* A computing warp: plan.warp_sites neighbouring sites of one row a step, batch after batch, the
 * links of the next batch under way. */
template <typename T, int RHS, ending END, bool PARTIAL> struct computer {
  using number = typename storage<T>::number;
  using real = typename storage<T>::accumulator;
  using link_set = typename storage<T>::links;
  static constexpr int site_bytes = RHS * 3 * sizeof(number), colour_bytes = RHS * sizeof(number);
  static constexpr int link_bytes = 72 * sizeof(number);
  const md_tensor_call &call;
  const md_march_plan &plan;
  const stage &memory;
  const lane at;
  link_set links[batch<T>];
  real step[2];           /* of the lane's two rows; ending::step only */
  norm_adder<T> norms[2]; /* ending::summed and step only */

  __device__ link_set load(int site) const {
    return storage<T>::load_links(
        static_cast<const char *>(call.links) + static_cast<int64_t>(site) * link_bytes, at.slot);
  }
  /* A batch of sites from `site` on, of which those in `assigned` are stored; then the links of as
   * many from `next` on are asked for. ratios, units: lane 4g+t has those of site g of a group, in
   * which the batch begins at `first`. */
  __device__ void some(int site, int next, unsigned assigned, const char *forward,
                       const char *backward, int first, uint32_t ratios, int units) {
    const int mine = at.g % batch<T>;
    int unit = 127;
    if constexpr (storage<T>::scaled) unit = __shfl_sync(0xffffffffu, units, 4 * (first + mine));
    sums<T> c;
#pragma unroll
    for (int n = 0; n < batch<T>; n++) {
      factors f = {};
#pragma unroll
      for (int i = 0; i < 4; i++) c[n][i] = 0;
      if constexpr (storage<T>::scaled)
        f = factors_of(__shfl_sync(0xffffffffu, ratios, 4 * (first + n) + at.t), at.g);
      product<T, RHS, true>(c[n], links[n], forward + n * site_bytes, backward + n * site_bytes,
                            colour_bytes, RHS, f, at);
    }
#pragma unroll
    for (int n = 0; n < batch<T>; n++) links[n] = load(next + n);
    const int64_t start = static_cast<int64_t>(site) * site_bytes + min(at.t, 2) * colour_bytes;
    const auto place = [&](int n) { return start + n * site_bytes; };
    if constexpr (END == ending::step)
      return take_step<T, RHS>(norms, c, call, site + mine, unit, step, place, assigned, at);
    const int common =
        combine<T, RHS, true, END == ending::combined>(c, call, site + mine, unit, place, RHS, at);
    if constexpr (END == ending::summed) add_norms<T>(norms, c, common, assigned, at);
    float factor = 1.0f;
    if constexpr (storage<T>::scaled) {
      const float scale = scale_of(largest_of<T>(c, at), common, &factor);
      if (at.t == 0 && at.g < batch<T> && assigned >> mine & 1u)
        call.out_scale[site + mine] = scale;
    }
    store<T, RHS, true>(c, call, factor, place, assigned, RHS, at);
  }
  /* Bits of the sites x .. that are assigned in the row y, z. */
  __device__ unsigned assigned(int x, int odd, int y, int z) const {
    if (y < call.low[1] || y >= call.high[1] || z < call.low[2] || z >= call.high[2]) return 0;
    unsigned bits = ~0u;
    if (2 * x + odd < call.low[0]) bits &= ~1u;
    const int beyond = call.high[0] - 2 * x - odd; /* of the batch's reals along x */
    if (beyond < 2 * batch<T>) bits &= (1u << (beyond + 1) / 2) - 1;
    return bits;
  }
  __device__ void run() {
    if constexpr (leaves_norms<END>) {
      md_wait_for_predecessor(); /* it wrote step and units, and may read norms */
      begin_norms<T, RHS>(norms, call, at);
    }
    if constexpr (END == ending::step)
      for (int row = 0; row < RHS / 8; row++)
        step[row] = static_cast<real>(call.step[rhs_of_row<T, RHS>(row, at)]);
    walk_all();
    const int warp = static_cast<int>(threadIdx.x / 32);
    if constexpr (leaves_norms<END>)
      leave_norms<T, RHS>(norms, call, static_cast<int>(blockIdx.x) * plan.warps + warp, at);
  }
  __device__ void walk_all() {
    const int first = threadIdx.x / 32 * plan.warp_sites;
    const int of_row = first % plan.x, of_y = first / plan.x % plan.y,
              of_z = first / plan.x / plan.y;
    const source_row ahead(memory, of_row, of_y, of_z, at.t);
    const source_row behind(memory, of_row, of_y, of_z, at.t + 4);
    const int slice = call.local[0] / 2 * call.local[1] * call.local[2];
    walk w(plan, call);
    if (!w.next(plan, call)) return;
    int x, y, z, site; /* the warp's first site */
    const auto begin = [&] {
      const corner c(plan, w.column);
      x = c.x + first % plan.x, y = c.y + first / plan.x % plan.y,
      z = c.z + first / plan.x / plan.y;
      return (z * call.local[1] + y) * (call.local[0] / 2) + x + w.t * slice;
    };
    site = begin();
#pragma unroll
    for (int n = 0; n < batch<T>; n++) links[n] = load(site + n);
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
      const int along = at.t == 0 ? odd : 0;
      const float *ahead_scale = reinterpret_cast<const float *>(forward + ahead.scales) + along;
      const float *behind_scale = reinterpret_cast<const float *>(backward + behind.scales) + along;
      forward += ahead.sites(odd), backward += behind.sites(odd);
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
            const int mine = n + min(at.g, plan.warp_sites - n - 1);
            units = largest_exponent(ahead_scale[mine], behind_scale[mine]);
            ratios = ratios_to(units, ahead_scale[mine], behind_scale[mine]);
          }
        some(site + n, n + batch<T> < plan.warp_sites ? site + n + batch<T> : next,
             PARTIAL ? assigned(in_x + n, odd, in_y, in_z) : ~0u, forward + n * site_bytes,
             backward + n * site_bytes, n % 8, ratios, units);
      }
      barrier_arrive(&memory.emptied[now.at]);
      now.next(plan.ring);
      for (int i = 0; i < slices; i++)
        past = here, here = future, future = after(future, plan.centre);
      site = next;
    }
  }
};

template <typename T, int RHS, ending END, bool PARTIAL>
__global__ void __launch_bounds__(32 * (MARCH_WARPS + MARCH_FEEDERS))
    march(const __grid_constant__ md_tensor_call call, const __grid_constant__ md_march_plan plan) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 /* not launched elsewhere */
  extern __shared__ __align__(128) char shared[];
  const stage memory(shared, plan);
  md_release_successor();
  if (threadIdx.x == 0)
    for (int i = 0; i < plan.ring; i++) {
      barrier_init(&memory.filled[i], 32 * MARCH_FEEDERS);
      barrier_init(&memory.emptied[i], 32 * plan.warps);
    }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  const int warp = threadIdx.x / 32, feeding = warp - plan.warps;
  if (feeding >= 0) /* the rows are dealt out to the warps in turn */
    feeder<storage<T>::scaled>{call, plan, memory,
                               static_cast<int>(threadIdx.x % 32) * MARCH_FEEDERS + feeding}
        .run();
  else
    computer<T, RHS, END, PARTIAL>{call, plan, memory, lane(), {}, {}, {}}.run();
#endif
}

/* PARTIAL: some sites of a time slice are not assigned. */
template <typename T, int RHS, ending END, bool PARTIAL>
cudaError_t launch_part(const md_tensor_call *call, const md_march_plan *plan) {
  const auto kernel = march<T, RHS, END, PARTIAL>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared_bytes);
  if (error != cudaSuccess) return error;
  md_launch_early_on(call->queue, kernel, dim3(plan->blocks),
                     dim3(32 * (plan->warps + MARCH_FEEDERS)), plan->shared_bytes, *call, *plan);
  return cudaGetLastError();
}

template <typename T, int RHS, ending END>
cudaError_t launch_march(const md_tensor_call *call, const md_march_plan *plan) {
  bool partial = false;
  for (int d = 0; d < 3; d++) partial |= call->high[d] - call->low[d] < call->local[d];
  return partial ? launch_part<T, RHS, END, true>(call, plan)
                 : launch_part<T, RHS, END, false>(call, plan);
}

template <typename T, int RHS>
cudaError_t march_epilogue(const md_tensor_call *call, const md_march_plan *plan) {
  if (call->step) return launch_march<T, RHS, ending::step>(call, plan);
  if (call->norm2) return launch_march<T, RHS, ending::summed>(call, plan);
  return call->x ? launch_march<T, RHS, ending::combined>(call, plan)
                 : launch_march<T, RHS, ending::plain>(call, plan);
}

template <typename T> cudaError_t march_rhs(const md_tensor_call *call, const md_march_plan *plan) {
  return call->n_rhs == 8 ? march_epilogue<T, 8>(call, plan) : march_epilogue<T, 16>(call, plan);
}

} // namespace stacked

md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan) {
  cudaError_t error;
  switch (call->precision) {
  case MD_DOUBLE:
    error = stacked::march_rhs<double>(call, plan);
    break;
  case MD_HALF:
    error = stacked::march_rhs<__half>(call, plan);
    break;
  default:
    error = stacked::march_rhs<__nv_bfloat16>(call, plan);
    break;
  }
  return md_cuda_status(context, error, "stacked kernel");
}

md_march_room md_tensor_march_room(const md_context *context) {
  md_march_room room = {};
  if (context->device_code < 90) return room;
  cudaDeviceGetAttribute(&room.multiprocessors, cudaDevAttrMultiProcessorCount, context->device);
  cudaDeviceGetAttribute(&room.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                         context->device);
  return room;
}
