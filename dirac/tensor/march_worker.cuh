#ifndef MD_DIRAC_TENSOR_MARCH_WORKER_CUH
#define MD_DIRAC_TENSOR_MARCH_WORKER_CUH

#include "dirac/tensor/march_stage.cuh"
#include "dirac/tensor/stacked_step.cuh"

namespace stacked {

/* What a computing warp of the marching kernels does with sources that lie in shared memory: batch
 * after batch of neighbouring sites of one row, the links of the next batch under way. */
template <typename T, int RHS, ending END, int FIELDS> struct worker {
  using number = typename storage<T>::number;
  using real = typename storage<T>::accumulator;
  using link_set = typename storage<T>::links;
  static constexpr int site_bytes = RHS * 3 * sizeof(number), colour_bytes = RHS * sizeof(number);
  static constexpr int field_bytes = 72 * sizeof(number), link_bytes = FIELDS * field_bytes;
  const md_tensor_call &call;
  const lane at;
  link_set links[FIELDS][batch<T>];
  real step[2];           /* of the lane's two rows, where END takes a step */
  norm_adder<T> norms[2]; /* where END leaves norms */

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
    const int64_t start = static_cast<int64_t>(site) * site_bytes + min(at.t, 2) * colour_bytes;
    const auto place = [&](int n) { return start + n * site_bytes; };
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
  /* Bits of the sites x .. that are assigned in the row y, z. */
  __device__ unsigned assigned(int x, int odd, int y, int z) const {
    if (y < call.low[1] || y >= call.high[1] || z < call.low[2] || z >= call.high[2]) return 0;
    unsigned bits = ~0u;
    const int before = call.low[0] - 2 * x - odd, beyond = call.high[0] - 2 * x - odd; /* in x */
    if (before > 0) bits <<= (before + 1) / 2;
    if (beyond < 2 * batch<T>) bits &= (1u << max(beyond + 1, 0) / 2) - 1;
    return bits;
  }
  /* Before the first batch and after the last. */
  __device__ void begin() {
    if constexpr (leaves_norms<END>) {
      md_wait_for_predecessor(); /* it wrote step and units, and may read norms */
      begin_norms<T, RHS>(norms, call, at);
    }
    if constexpr (takes_step<END> && END != ending::mixed)
      for (int row = 0; row < RHS / 8; row++)
        step[row] = static_cast<real>(call.step[rhs_of_row<T, RHS>(row, at)]);
  }
  __device__ void leave(const md_march_plan &plan) const {
    const int warp = static_cast<int>(threadIdx.x / 32);
    if constexpr (leaves_norms<END>)
      leave_norms<T, RHS>(norms, call, static_cast<int>(blockIdx.x) * plan.warps + warp, at);
  }
};

} // namespace stacked

#endif
