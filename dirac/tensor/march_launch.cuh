#ifndef MD_DIRAC_TENSOR_MARCH_LAUNCH_CUH
#define MD_DIRAC_TENSOR_MARCH_LAUNCH_CUH

#include "dirac/tensor/march_stage.cuh"
#include "dirac/tensor/stacked_step.cuh"

/* The marching kernel and its launch, for either number of link fields. PARTS names them: `stage`
 * (what lies where in shared memory), `feeder<T, COVER, NARROW>`, `computer<T, RHS, END,
 * COVER>`, how many `warps` compute at most, the `registers` of either, and whether it `waits` for
 * what arrives where the call says so: then its registers and its shared memory must leave a warp
 * of another kernel a place beside it on every multiprocessor. */
namespace stacked {

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

template <typename T, int RHS, typename PARTS>
cudaError_t march_epilogue(const md_tensor_call *call, const md_march_plan *plan) {
  if constexpr (storage<T>::scaled)
    if (call->narrow) return launch_march<T, RHS, ending::narrow_step, PARTS>(call, plan);
  if constexpr (std::is_same<T, double>::value)
    if (call->before) return launch_march<T, RHS, ending::mixed, PARTS>(call, plan);
  if constexpr (storage<T>::fuses) {
    if (call->step) return launch_march<T, RHS, ending::step, PARTS>(call, plan);
    if (call->norm2) return launch_march<T, RHS, ending::summed, PARTS>(call, plan);
  }
  return call->x ? launch_march<T, RHS, ending::combined, PARTS>(call, plan)
                 : launch_march<T, RHS, ending::plain, PARTS>(call, plan);
}

template <typename T, typename PARTS>
cudaError_t march_rhs(const md_tensor_call *call, const md_march_plan *plan) {
  return call->n_rhs == 8 ? march_epilogue<T, 8, PARTS>(call, plan)
                          : march_epilogue<T, 16, PARTS>(call, plan);
}

template <typename PARTS>
md_status march_with(md_context *context, const md_tensor_call *call, const md_march_plan *plan) {
  const auto launch = [&](auto number) { return march_rhs<decltype(number), PARTS>(call, plan); };
  return md_cuda_status(context, by_storage(call->precision, launch), "stacked kernel");
}

} // namespace stacked

#endif
