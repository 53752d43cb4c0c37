#include "dirac/tensor/march_one.cuh"
#include "dirac/tensor/spins.cuh"

/* Packing `stacked` of quarks with four spins as a march along t, in 16 bits: a site has 48 bytes
 * for each slice and right-hand side. */
namespace stacked {

/* What a computing warp does, a site at a time. */
template <typename T, bool ONE, int FOURS, ending END, bool WALLS>
struct spin_marcher : spin_worker<T, ONE, FOURS, false, END, WALLS> {
  using base = spin_worker<T, ONE, FOURS, false, END, WALLS>;
  static constexpr int sites = 1;
  __device__ explicit spin_marcher(const md_tensor_call &c) : base(c) {}
  /* Of lane 0, so that the compiler keeps what follows from it once for all lanes: that leaves
   * registers to the tiles. */
  static __device__ int warp() {
    return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  }
  __device__ void begin() {
    if constexpr (leaves_norms<END>) md_wait_for_predecessor(); /* it wrote step and units */
    this->begin_ending();
  }
  __device__ void leave(const md_march_plan &plan) const {
    this->leave_norm(static_cast<int>(blockIdx.x) * plan.warps + warp());
  }
  static __device__ int row_offset() { return 0; }
  /* As that of `worker`. */
  template <typename SOURCE>
  __device__ void some(int site, int next, unsigned assigned, SOURCE source, int first,
                       const uint32_t *ratios, int units) {
    factors f = {};
    int unit = 127;
    if constexpr (storage<T>::scaled) {
      f = factors_of(__shfl_sync(0xffffffffu, *ratios, 4 * first + this->at.t), this->at.g);
      unit = of_site(units, first);
    }
    this->run(site, source(0, 0, 0), source(0, 0, 1), f, unit, assigned & 1u,
              [&] { this->load(next); });
  }
};

template <bool ONE, bool WALLS> struct with_spin {
  static constexpr int warps = MARCH_WARPS;
  static constexpr bool waits = false;
  using stage = stacked::stage;
  template <typename T, ending END, coverage COVER> using registers = register_shares<64, 104>;
  template <typename T, coverage COVER, bool NARROW>
  using feeder = stacked::feeder<storage<T>::scaled, COVER, NARROW>;
  template <typename T, int FOURS, ending END, coverage COVER>
  using computer = stacked::computer<T, spin_marcher<T, ONE, FOURS, END, WALLS>, COVER>;
};

template <typename T, bool ONE, int FOURS, bool WALLS = false>
cudaError_t march_columns(const md_tensor_call *call, const md_march_plan *plan) {
  if constexpr (ONE && !WALLS)
    if (call->walls.slices > 0) return march_columns<T, ONE, FOURS, true>(call, plan);
  using parts = with_spin<ONE, WALLS>;
  if constexpr (WALLS && storage<T>::scaled) {
    if (call->step) return launch_march<T, FOURS, ending::narrow_step, parts>(call, plan);
    if (call->norm2) return launch_march<T, FOURS, ending::summed, parts>(call, plan);
  }
  return call->x ? launch_march<T, FOURS, ending::combined, parts>(call, plan)
                 : launch_march<T, FOURS, ending::plain, parts>(call, plan);
}

template <typename T, bool ONE>
cudaError_t march_fours(const md_tensor_call *call, const md_march_plan *plan) {
  const int fours = call->slices * call->n_rhs / MD_SPIN_FOUR;
  return fours == 1   ? march_columns<T, ONE, 1>(call, plan)
         : fours == 2 ? march_columns<T, ONE, 2>(call, plan)
         : fours == 3 ? march_columns<T, ONE, 3>(call, plan)
                      : march_columns<T, ONE, 4>(call, plan);
}

template <typename T>
cudaError_t march_spins(const md_tensor_call *call, const md_march_plan *plan) {
  return call->n_rhs == 1 ? march_fours<T, true>(call, plan) : march_fours<T, false>(call, plan);
}

} // namespace stacked

md_status md_tensor_march_spins(md_context *context, const md_tensor_call *call,
                                const md_march_plan *plan) {
  const cudaError_t error = call->precision == MD_HALF
                                ? stacked::march_spins<__half>(call, plan)
                                : stacked::march_spins<__nv_bfloat16>(call, plan);
  return md_cuda_status(context, error, "stacked kernel");
}
