#include "dirac/tensor/tiles.cuh"

/* The hop by packings single, diagonal and block8: a warp takes 1, 5 or 8 sites that follow each
 * other (along x, and on to the next row), and accumulates all terms in the same C. */
namespace tiles {

/* What one warp knows of its sites. */
template <int TERMS> struct sites {
  int site[MOST_ITEMS];
  int source[TERMS][MOST_ITEMS];
  __half ratio[TERMS][MOST_ITEMS]; /* source scale over the largest of all */
  float scale[MOST_ITEMS];         /* the largest */
  int count;
};

/* Lane m looks up site m of the group. */
template <int TERMS>
__device__ inline void look_up(const md_tensor_call &call, int64_t first, int items,
                               sites<TERMS> *s) {
  const int m = threadIdx.x % 32;
  if (m == 0) s->count = static_cast<int>(min(static_cast<int64_t>(items), call.count - first));
  if (m >= items || first + m >= call.count) return;
  const int64_t site = call.list ? call.list[first + m] : first + m;
  float scale[TERMS], largest = 0.0f;
  s->site[m] = static_cast<int>(site);
  for (int d = 0; d < TERMS; d++) {
    const int from = call.neighbour[d * call.sites + site];
    s->source[d][m] = from;
    scale[d] = call.source_scale[from];
    largest = fmaxf(largest, scale[d]);
  }
  for (int d = 0; d < TERMS; d++) s->ratio[d][m] = __float2half_rn(scale[d] / largest);
  s->scale[m] = largest;
}

/* Factor 1/2, epilogue, new scale, store: one lane for each site. */
__device__ inline void finish(const md_tensor_call &call, int64_t site, float scale, float v[6]) {
  const float half_scale = static_cast<float>(MD_HOP_FACTOR) * scale;
  float common = half_scale, factor = 1.0f;
  if (call.x) {
    const __half *x = static_cast<const __half *>(call.x);
    common = fmaxf(common, call.x_scale[site]);
    factor = static_cast<float>(call.b) * (half_scale / common);
    const float factor_x = static_cast<float>(call.a) * (call.x_scale[site] / common);
    for (int c = 0; c < MD_FERMION_REALS; c++)
      v[c] = factor * v[c] + factor_x * __half2float(x[c * call.out_stride + site]);
  }
  float largest = 0.0f;
  for (int c = 0; c < MD_FERMION_REALS; c++) largest = fmaxf(largest, fabsf(v[c]));
  int exponent = 0; /* largest in [2^(e-1), 2^e) */
  frexpf(largest, &exponent);
  const float wanted = ldexpf(common, exponent - 15);
  const float new_scale = largest > 0.0f ? fmaxf(wanted, MD_SCALE_OF_ZERO) : MD_SCALE_OF_ZERO;
  __half *out = static_cast<__half *>(call.out);
  for (int c = 0; c < MD_FERMION_REALS; c++)
    out[c * call.out_stride + site] = __float2half_rn(v[c] * (common / new_scale));
  call.out_scale[site] = new_scale;
}

template <md_packing PACKING, int TERMS>
__global__ void __launch_bounds__(32 * WARPS) hop(md_tensor_call call) {
  __shared__ maps<PACKING> map;
  __shared__ warp_tiles<PACKING> all_tiles[WARPS];
  __shared__ sites<TERMS> all_sites[WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const __half *links = static_cast<const __half *>(call.links);
  const __half *source = static_cast<const __half *>(call.source);
  warp_tiles<PACKING> &t = all_tiles[warp];
  sites<TERMS> &s = all_sites[warp];
  t.clear();
  map.make();
  const int64_t groups = (call.count + map.items - 1) / map.items;
  for (int64_t group = static_cast<int64_t>(blockIdx.x) * WARPS + warp; group < groups;
       group += static_cast<int64_t>(gridDim.x) * WARPS) {
    look_up(call, group * map.items, map.items, &s);
    __syncwarp();
    accumulators<PACKING> sum;
    for (int d = 0; d < TERMS; d++) {
      const auto link = [&](int item, int number) {
        const int64_t at = static_cast<int64_t>(s.site[item]) * TERMS + d;
        return __hmul(s.ratio[d][item], links[at * MD_LINK_REALS + number]);
      };
      const auto vector = [&](int item, int number) {
        return source[number * call.in_stride + s.source[d][item]];
      };
      fill<PACKING>(map, s.count, link, vector, &t);
      __syncwarp();
      sum.add(t);
      __syncwarp();
    }
    sum.store(t);
    __syncwarp();
    if (lane < s.count) {
      float v[MD_FERMION_REALS];
      for (int c = 0; c < MD_FERMION_REALS; c++) v[c] = t.c[map.result[lane][c]];
      finish(call, s.site[lane], s.scale[lane], v);
    }
    __syncwarp();
  }
}

/* Further groups in further rounds. */
template <md_packing PACKING>
cudaError_t launch(const md_device_facts &gpu, const md_tensor_call *call) {
  const int64_t per_block = WARPS * maps<PACKING>::items;
  const int64_t blocks = (call->count + per_block - 1) / per_block;
  if (blocks == 0) return cudaSuccess;
  const int64_t most = 16 * gpu.multiprocessors;
  const unsigned grid = static_cast<unsigned>(blocks < most ? blocks : most);
  const auto kernel =
      call->terms == MD_DIRECTIONS ? hop<PACKING, MD_DIRECTIONS> : hop<PACKING, MD_MOST_TERMS>;
  const cudaStream_t queue = call->queue ? static_cast<cudaStream_t>(call->queue) : md_stream();
  kernel<<<grid, 32 * WARPS, 0, queue>>>(*call);
  return cudaGetLastError();
}

} // namespace tiles

md_status md_tensor_tiles(md_context *context, const md_tensor_call *call) {
  cudaError_t error;
  switch (call->packing) {
  case MD_PACKING_SINGLE:
    error = tiles::launch<MD_PACKING_SINGLE>(context->gpu, call);
    break;
  case MD_PACKING_DIAGONAL:
    error = tiles::launch<MD_PACKING_DIAGONAL>(context->gpu, call);
    break;
  default:
    error = tiles::launch<MD_PACKING_BLOCK8>(context->gpu, call);
    break;
  }
  return md_cuda_status(context, error, "WMMA kernel");
}
