#include "dirac/tensor/stacked_finish.cuh"

/* Packing `stacked` with neighbours gathered from global memory: a warp takes eight output sites,
 * one after another; lane 4g+t looks up the neighbours t and t+4 of site g. */
namespace stacked {

enum { GATHER_WARPS = 4, GROUP = 8 };

struct group {
  int64_t site;     /* of this lane's g */
  int forward, backward;
  uint32_t ratios;  /* half: packed, see ratios_of */
  int unit;         /* half: biased exponent of the largest source scale */
};

template <typename T>
__device__ inline group group_of(const md_tensor_call &call, int64_t first, const lane &at) {
  const int64_t entry = min(first + at.g, call.count - 1);
  group s = {call.list ? call.list[entry] : entry, 0, 0, 0, 127};
  s.forward = __ldcs(call.neighbour + at.t * call.sites + s.site);
  s.backward = __ldcs(call.neighbour + (at.t + 4) * call.sites + s.site);
  if constexpr (storage<T>::scaled)
    s.ratios = ratios_of(call.source_scale[s.forward], call.source_scale[s.backward], &s.unit);
  return s;
}

/* One site: all its right-hand sides, tile by tile. The half scale is shared by all of them, so
 * with more than one tile the products are formed twice: for the largest, then to be stored. */
template <typename T, int TILE, bool FULL, bool EPILOGUE>
__device__ inline void gather_site(const md_tensor_call &call, int64_t site, const char *forward,
                                   const char *backward, uint32_t ratios, int unit,
                                   const typename storage<T>::links &links, const lane &at) {
  using number = typename storage<T>::number;
  const int number_bytes = sizeof(number), colour_bytes = call.n_rhs * number_bytes;
  const int64_t site_at = site * 3 * colour_bytes;
  const factors f = factors_of(ratios, at.g);
  const bool measure_first = storage<T>::scaled && call.n_rhs > TILE;
  uint32_t largest = 0;
  for (int pass = measure_first ? 0 : 1; pass < 2; pass++)
    for (int first = 0; first < call.n_rhs; first += TILE) {
      const int count = call.n_rhs - first, skip = first * number_bytes;
      const int64_t mine = site_at + at.t * colour_bytes + skip; /* t == 3: not used */
      typename storage<T>::accumulator c[4];
      product<T, TILE, FULL>(c, links, forward + skip, backward + skip, colour_bytes, count, f, at);
      const char *x_row = static_cast<const char *>(call.x) + (at.t < 3 ? mine : site_at);
      const int common =
          combine<T, TILE, FULL, EPILOGUE>(c, call, site, x_row, unit, count, at);
      float factor = 1.0f;
      if constexpr (storage<T>::scaled) {
        const uint32_t here = largest_of(c, at);
        largest = measure_first ? max(largest, pass == 0 ? here : 0u) : here;
        if (pass == 0) continue;
        const float scale = scale_of(largest, common, &factor);
        if (first == 0 && at.g == 0 && at.t == 0) call.out_scale[site] = scale;
      }
      if (at.t < 3)
        store_rows<T, TILE, FULL>(static_cast<char *>(call.out) + mine,
                                  narrow(T{}, c[0] * factor, c[1] * factor),
                                  narrow(T{}, c[2] * factor, c[3] * factor), count, at);
    }
}

template <typename T, int TILE, bool FULL, bool EPILOGUE>
__global__ void __launch_bounds__(32 * GATHER_WARPS) gather(md_tensor_call call) {
  const lane at;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * GATHER_WARPS + threadIdx.x / 32;
  const int64_t first = warp * GROUP;
  if (first >= call.count) return;
  const group mine = group_of<T>(call, first, at);
  const int64_t source_bytes = static_cast<int64_t>(call.n_rhs) * 3 * sizeof(typename storage<T>::number);
  const int64_t link_bytes = 72 * sizeof(typename storage<T>::number);
  const char *source = static_cast<const char *>(call.source);
#pragma unroll 2
  for (int n = 0; n < GROUP; n++) {
    if (first + n >= call.count) return;
    const int from = 4 * n + at.t;
    const int64_t site = __shfl_sync(0xffffffffu, mine.site, from);
    const int forward = __shfl_sync(0xffffffffu, mine.forward, from);
    const int backward = __shfl_sync(0xffffffffu, mine.backward, from);
    const uint32_t ratios = __shfl_sync(0xffffffffu, mine.ratios, from);
    const int unit = __shfl_sync(0xffffffffu, mine.unit, from);
    const auto links = storage<T>::load_links(
        static_cast<const char *>(call.links) + site * link_bytes, at.slot);
    gather_site<T, TILE, FULL, EPILOGUE>(call, site, source + forward * source_bytes,
                                         source + backward * source_bytes, ratios, unit, links, at);
  }
}

template <typename T, int TILE, bool FULL>
cudaError_t launch_gather(const md_tensor_call *call) {
  const int64_t sites_per_block = GATHER_WARPS * GROUP;
  const unsigned blocks =
      static_cast<unsigned>((call->count + sites_per_block - 1) / sites_per_block);
  if (blocks == 0) return cudaSuccess;
  if (call->x)
    gather<T, TILE, FULL, true><<<blocks, 32 * GATHER_WARPS, 0, md_stream()>>>(*call);
  else
    gather<T, TILE, FULL, false><<<blocks, 32 * GATHER_WARPS, 0, md_stream()>>>(*call);
  return cudaGetLastError();
}

template <typename T> cudaError_t gather_rhs(const md_tensor_call *call) {
  if (call->n_rhs % 16 == 0) return launch_gather<T, 16, true>(call);
  if (call->n_rhs == 8) return launch_gather<T, 8, true>(call);
  return launch_gather<T, 16, false>(call);
}

} // namespace stacked

md_status md_tensor_gather(md_context *context, const md_tensor_call *call) {
  cudaError_t error;
  switch (call->precision) {
  case MD_DOUBLE: error = stacked::gather_rhs<double>(call); break;
  case MD_HALF: error = stacked::gather_rhs<__half>(call); break;
  default: error = stacked::gather_rhs<__nv_bfloat16>(call); break;
  }
  return md_cuda_status(context, error, "stacked kernel");
}
