#include "dirac/tensor/march_one.cuh"
#include "dirac/tensor/spins.cuh"

/* Packing `stacked` of quarks with four spins as a march along t, with one right-hand side in 16
 * bits: a site has 48 bytes for each slice. */
namespace stacked {

/* What a computing warp does, a site at a time. */
template <typename T, int TILES, ending END>
struct spin_marcher : spin_worker<T, true, TILES, false, END == ending::combined> {
  using base = spin_worker<T, true, TILES, false, END == ending::combined>;
  static constexpr int sites = 1;
  __device__ explicit spin_marcher(const md_tensor_call &c) : base(c) {}
  __device__ void begin() const {}
  __device__ void leave(const md_march_plan &) const {}
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

struct with_spin {
  static constexpr int warps = MARCH_WARPS;
  static constexpr bool waits = false;
  using stage = stacked::stage;
  template <typename T, ending END, coverage COVER> using registers = register_shares<64, 104>;
  template <typename T, coverage COVER, bool NARROW>
  using feeder = stacked::feeder<storage<T>::scaled, COVER, NARROW>;
  template <typename T, int TILES, ending END, coverage COVER>
  using computer = stacked::computer<T, spin_marcher<T, TILES, END>, COVER>;
};

template <typename T, int TILES>
cudaError_t march_spins(const md_tensor_call *call, const md_march_plan *plan) {
  return call->x ? launch_march<T, TILES, ending::combined, with_spin>(call, plan)
                 : launch_march<T, TILES, ending::plain, with_spin>(call, plan);
}

} // namespace stacked

md_status md_tensor_march_spins(md_context *context, const md_tensor_call *call,
                                const md_march_plan *plan) {
  const auto launch = [&](auto number) {
    return call->slices <= MD_SPIN_TILE ? stacked::march_spins<decltype(number), 1>(call, plan)
                                        : stacked::march_spins<decltype(number), 2>(call, plan);
  };
  const cudaError_t error = call->precision == MD_HALF ? launch(__half()) : launch(__nv_bfloat16());
  return md_cuda_status(context, error, "stacked kernel");
}
