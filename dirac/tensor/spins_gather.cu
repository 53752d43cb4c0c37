#include "dirac/tensor/spins.cuh"

/* Packing `stacked` of quarks with four spins, neighbours gathered from global memory: a warp takes
 * a group of eight output sites, of which lane 4g+t looks up the neighbours t and t+4 of site g. */
namespace stacked {

template <typename T, bool ONE, int FOURS, bool PASSES, ending END, bool WALLS>
__global__ void __launch_bounds__(32 * GATHER_WARPS, storage<T>::adjacent ? 4 : 3)
    gather_spins(const __grid_constant__ md_tensor_call call) {
  spin_worker<T, ONE, FOURS, PASSES, END, WALLS> work(call);
  if constexpr (WALLS) __syncthreads(); /* the matrix is there */
  md_release_successor();
  const int64_t group =
      (static_cast<int64_t>(blockIdx.x) * GATHER_WARPS + threadIdx.x / 32) * GROUP;
  if (group >= call.count) return;
  const lane &at = work.at;
  const int64_t entry = min(group + at.g, call.count - 1);
  const int site = call.list ? call.list[entry] : static_cast<int>(entry);
  const int ahead = __ldcs(call.neighbour + at.t * call.sites + site);
  const int behind = __ldcs(call.neighbour + (at.t + 4) * call.sites + site);
  work.load(__shfl_sync(0xffffffffu, site, 0));
  md_wait_for_predecessor(); /* it wrote the source, and may read out */
  work.begin_ending();
  const int left = static_cast<int>(min(call.count - group, static_cast<int64_t>(GROUP)));
  uint32_t ratios = 0;
  int units = 127;
  if constexpr (storage<T>::scaled) {
    const float of_ahead = call.source_scale[ahead], of_behind = call.source_scale[behind];
    units = largest_exponent(of_ahead, of_behind);
    ratios = ratios_to(units, of_ahead, of_behind);
  }
  const char *source = static_cast<const char *>(call.source);
  const int64_t site_bytes = work.site_bytes();
  for (int n = 0; n < left; n++) {
    const int from = 4 * n + at.t;
    const int64_t forward = __shfl_sync(0xffffffffu, ahead, from);
    const int64_t backward = __shfl_sync(0xffffffffu, behind, from);
    factors f = {};
    if constexpr (storage<T>::scaled) f = factors_of(__shfl_sync(0xffffffffu, ratios, from), at.g);
    work.run(of_site(site, n), source + forward * site_bytes, source + backward * site_bytes, f,
             of_site(units, n), true, [&] { work.load(of_site(site, min(n + 1, GROUP - 1))); });
  }
  work.leave_norm(static_cast<int>(blockIdx.x) * GATHER_WARPS + threadIdx.x / 32);
}

template <typename T, bool ONE, int FOURS, bool PASSES, bool WALLS>
auto kernel_for(const md_tensor_call *call) {
  if constexpr (WALLS && storage<T>::scaled && !PASSES) {
    if (call->step) return gather_spins<T, ONE, FOURS, PASSES, ending::narrow_step, WALLS>;
    if (call->norm2) return gather_spins<T, ONE, FOURS, PASSES, ending::summed, WALLS>;
  }
  return call->x ? gather_spins<T, ONE, FOURS, PASSES, ending::combined, WALLS>
                 : gather_spins<T, ONE, FOURS, PASSES, ending::plain, WALLS>;
}

template <typename T, bool ONE, int FOURS, bool PASSES = false>
cudaError_t launch_spins(const md_tensor_call *call) {
  if constexpr (ONE && FOURS <= 4)
    if (call->walls.slices > 0)
      return launch_groups(call, kernel_for<T, ONE, FOURS, PASSES, true>(call));
  return launch_groups(call, kernel_for<T, ONE, FOURS, PASSES, false>(call));
}

/* In double the tiles of a site share nothing but its links. Slices that march have the tiles of
 * the march here too, so that norms have the same bits; for others whole tiles are faster. */
template <typename T> cudaError_t gather_columns(const md_tensor_call *call) {
  const int columns = call->slices * call->n_rhs;
  const int width = columns % MD_SPIN_FOUR ? MD_SPIN_TILE : MD_SPIN_FOUR;
  const int fours = (columns + width - 1) / width * (width / MD_SPIN_FOUR);
  if constexpr (!storage<T>::adjacent)
    return launch_spins<T, false, 2, true>(call);
  else if (call->n_rhs > 1)
    return fours <= 2 ? launch_spins<T, false, 2>(call) : launch_spins<T, false, 4, true>(call);
  else
    return fours == 1   ? launch_spins<T, true, 1>(call)
           : fours == 2 ? launch_spins<T, true, 2>(call)
           : fours == 3 ? launch_spins<T, true, 3>(call)
           : fours == 4 ? launch_spins<T, true, 4>(call)
                        : launch_spins<T, true, MD_MOST_SLICES / MD_SPIN_FOUR>(call);
}

} // namespace stacked

md_status md_tensor_gather_spins(md_context *context, const md_tensor_call *call) {
  const auto launch = [&](auto number) { return stacked::gather_columns<decltype(number)>(call); };
  return md_cuda_status(context, stacked::by_storage(call->precision, launch), "stacked kernel");
}
