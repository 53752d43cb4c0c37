#pragma once

#include "dirac/tensor/march_stage.cuh"

namespace stacked {

/* Bits of the N sites x .. that are assigned in the row y, z. */
template <int N>
__device__ inline unsigned assigned_of(const md_tensor_call &call, int x, int odd, int y, int z) {
  if (y < call.low[1] || y >= call.high[1] || z < call.low[2] || z >= call.high[2]) return 0;
  unsigned bits = ~0u;
  const int before = call.low[0] - 2 * x - odd, beyond = call.high[0] - 2 * x - odd; /* in x */
  if (before > 0) bits <<= (before + 1) / 2;
  if (beyond < 2 * N) bits &= (1u << max(beyond + 1, 0) / 2) - 1;
  return bits;
}

/* What a computing warp of the marching kernels does with sources that lie in shared memory: batch
 * after batch of neighbouring sites of one row, the links of the next batch under way. */
template <typename T, int RHS, ending END, int FIELDS> struct worker {
  using number = typename storage<T>::number;
  using real = typename storage<T>::accumulator;
  using link_set = typename storage<T>::links;
  static constexpr int sites = batch<T>, colour_bytes = RHS * sizeof(number);
  static constexpr int of_site = 3 * colour_bytes;
  static constexpr int field_bytes = 72 * sizeof(number), link_bytes = FIELDS * field_bytes;
  const md_tensor_call &call;
  const lane at;
  link_set links[FIELDS][batch<T>];
  real step[2];           /* of the lane's two rows, where END takes a step */
  norm_adder<T> norms[2]; /* where END leaves norms */

  __device__ explicit worker(const md_tensor_call &c) : call(c), at(), links{}, step{}, norms{} {}
  static __device__ int warp() { return static_cast<int>(threadIdx.x / 32); }
  static __device__ constexpr int site_bytes() { return of_site; }
  __device__ int row_offset() const { return stacked::row_offset<T, RHS>(at.g); }
  /* Asks for the links of the batch that begins at `site`. */
  __device__ void load(int site) {
    const char *first = static_cast<const char *>(call.links) +
                        static_cast<int64_t>(site) * static_cast<int64_t>(link_bytes);
#pragma unroll
    for (int n = 0; n < batch<T>; n++)
#pragma unroll
      for (int f = 0; f < FIELDS; f++)
        links[f][n] = storage<T>::load_links(first + n * link_bytes + f * field_bytes, at.slot);
  }
  /* A batch of sites from `site` on, of which those in `assigned` are stored; then the links of as
   * many from `next` on are asked for. source(f, n, way): where site n reads the lane's direction
   * of link field f, forward (way 0) or backward. ratios, units: lane 4g+t has those of site g of
   * a group, in which the batch begins at `first`. */
  template <typename SOURCE>
  __device__ void some(int site, int next, unsigned assigned, SOURCE source, int first,
                       const uint32_t ratios[FIELDS], int units) {
    const int mine = at.g % batch<T>;
    int unit = 127;
    if constexpr (storage<T>::scaled) unit = __shfl_sync(0xffffffffu, units, 4 * (first + mine));
    sums<T> c;
#pragma unroll
    for (int n = 0; n < batch<T>; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) c[n][i] = 0;
#pragma unroll
      for (int f = 0; f < FIELDS; f++) {
        factors of_links = {};
        if constexpr (storage<T>::scaled)
          of_links = factors_of(__shfl_sync(0xffffffffu, ratios[f], 4 * (first + n) + at.t), at.g);
        product<T, RHS, true>(c[n], links[f][n], source(f, n, 0), source(f, n, 1), colour_bytes,
                              RHS, of_links, at);
      }
    }
    constexpr bool late = takes_step<END> && !storage<T>::adjacent;
    if constexpr (!late) load(next);
    const int64_t start = static_cast<int64_t>(site) * of_site + min(at.t, 2) * colour_bytes;
    const auto place = [&](int n) { return start + n * of_site; };
    if constexpr (takes_step<END>) {
      take_any_step<T, RHS, END>(norms, c, call, site + mine, unit, step, place, assigned, at);
      if constexpr (late) load(next);
      return;
    }
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
  /* Before the first batch and after the last. */
  __device__ void begin() {
    if constexpr (leaves_norms<END>)
      md_wait_for_predecessor(); /* it wrote step and units, and may read norms */
    begin_ending<T, RHS, END>(norms, step, call, at);
  }
  __device__ void leave(const md_march_plan &plan) const {
    const int warp = static_cast<int>(threadIdx.x / 32);
    if constexpr (leaves_norms<END>)
      leave_norms<T, RHS>(norms, call, static_cast<int>(blockIdx.x) * plan.warps + warp, at);
  }
};

/* The marching kernel and its launch, for either number of link fields. PARTS names them: `stage`
 * (what lies where in shared memory), `feeder<T, COVER, NARROW>`, `computer<T, RHS, END,
 * COVER>`, how many `warps` compute at most, the `registers` of either, and whether it `waits` for
 * what arrives where the call says so: then its registers and its shared memory must leave a warp
 * of another kernel a place beside it on every multiprocessor. */

/* Registers of a thread from here on, 0: as before. The feeding warps hand some of theirs to the
 * computing ones, which would otherwise keep a few numbers in local memory. All warps of a group of
 * four go through it together. The instruction exists for sm_90a alone. */
template <int MOST> __device__ inline void lower_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (MOST > 0) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(MOST));
#endif
}
template <int MOST> __device__ inline void raise_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (MOST > 0) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MOST));
#endif
}

/* Blocks of a multiprocessor, which must be said where registers change hands; 0: not said, and the
 * compiler's own choice. */
template <typename T, ending END, coverage COVER, typename PARTS>
constexpr int said_blocks =
    COVER == coverage::waiting || PARTS::template registers<T, END, COVER>::feeder > 0;

template <typename T, int RHS, ending END, coverage COVER, typename PARTS>
__global__ void __launch_bounds__(32 * (PARTS::warps + MARCH_FEEDERS),
                                  (said_blocks<T, END, COVER, PARTS>))
    march(const __grid_constant__ md_tensor_call call, const __grid_constant__ md_march_plan plan) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 /* not launched elsewhere */
  extern __shared__ __align__(128) char shared[];
  const typename PARTS::stage memory(shared, plan);
  /* A successor would take the place of those that send what a march waits for. */
  if constexpr (COVER != coverage::waiting) md_release_successor();
  if (threadIdx.x == 0) {
    for (int i = 0; i < plan.ring; i++) {
      barrier_init(&memory.filled[i], 32 * MARCH_FEEDERS);
      barrier_init(&memory.emptied[i], 32 * plan.warps);
    }
    if constexpr (COVER == coverage::waiting) memory.told[0] = memory.told[1] = 0;
  }
  /* The threads of the block meet when each has found its first segment. */
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const int warp = threadIdx.x / 32, feeding = warp - plan.warps;
  using registers = typename PARTS::template registers<T, END, COVER>;
  if (feeding >= 0) { /* the rows are dealt out to the warps in turn */
    lower_registers<registers::feeder>();
    typename PARTS::template feeder<T, COVER, END == ending::narrow_step>{
        call, plan, memory, static_cast<int>(threadIdx.x % 32) * MARCH_FEEDERS + feeding}
        .run();
  } else {
    raise_registers<registers::computer>();
    typename PARTS::template computer<T, RHS, END, COVER>(call, plan, memory).run();
  }
#endif
}

/* The first step of a segment brings three or seven time slices instead of one. A march that waits
 * has an order of its own (waiting_walk), which asks for the blocks and their whole columns alone.
 */
template <coverage COVER>
md_march_share share_of(const md_tensor_call *call, const md_march_plan *plan) {
  const int columns = plan->columns[0] * plan->columns[1] * plan->columns[2];
  const int slices = call->ends ? call->ends : call->high[3] - call->low[3];
  if constexpr (COVER == coverage::waiting) {
    md_march_share share = {};
    share.blocks = md_march_even_blocks(columns, slices, plan->blocks);
    share.full = columns / share.blocks;
    return share;
  }
  return md_march_share_out(call->ends ? 2 * columns : columns, slices, plan->blocks,
                            plan->fields == 1 ? 1.0 : 2.0);
}

template <typename T, int RHS, ending END, coverage COVER, typename PARTS>
cudaError_t launch_part(const md_tensor_call *call, const md_march_plan *plan) {
  const auto kernel = march<T, RHS, END, COVER, PARTS>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared_bytes);
  if (error != cudaSuccess) return error;
  md_tensor_call shared = *call;
  shared.share = share_of<COVER>(call, plan);
  md_launch_early_on(call->queue, kernel, dim3(shared.share.blocks),
                     dim3(32 * (plan->warps + MARCH_FEEDERS)), plan->shared_bytes, shared, *plan);
  return cudaGetLastError();
}

template <typename T, int RHS, ending END, typename PARTS>
cudaError_t launch_march(const md_tensor_call *call, const md_march_plan *plan) {
  bool partial = false;
  for (int d = 0; d < 3; d++) partial |= call->high[d] - call->low[d] < call->local[d];
  if constexpr (PARTS::waits)
    if (call->arrivals.timeout)
      return launch_part<T, RHS, END, coverage::waiting, PARTS>(call, plan);
  return partial ? launch_part<T, RHS, END, coverage::partial, PARTS>(call, plan)
                 : launch_part<T, RHS, END, coverage::whole, PARTS>(call, plan);
}

template <typename PARTS>
md_status march_with(md_context *context, const md_tensor_call *call, const md_march_plan *plan) {
  const auto launch = [&](auto number) {
    using T = decltype(number);
    return by_ending<T>(call, [&](auto end) {
      return call->n_rhs == 8 ? launch_march<T, 8, end(), PARTS>(call, plan)
                              : launch_march<T, 16, end(), PARTS>(call, plan);
    });
  };
  return md_cuda_status(context, by_storage(call->precision, launch), "stacked kernel");
}

} // namespace stacked
