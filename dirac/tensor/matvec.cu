extern "C" {
#include "dirac/tensor/matvec.h"
}
#include "dirac/tensor/tiles.cuh"

/* Bare matrix-vector products; see matvec.h. `skip` is zero: the compiler does not know, and so
 * does every pass anew. */
namespace {

constexpr int CORE_THREADS = 128;

__global__ void __launch_bounds__(CORE_THREADS) cores(md_matvec work, int passes, int64_t skip) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * CORE_THREADS;
  for (int pass = 0; pass < passes; pass++)
    for (int64_t n = static_cast<int64_t>(blockIdx.x) * CORE_THREADS + threadIdx.x + pass * skip;
         n < work.count; n += stride) {
      const __half2 *u = reinterpret_cast<const __half2 *>(work.matrices) + 9 * n;
      const __half2 *v = reinterpret_cast<const __half2 *>(work.vectors) + 3 * n;
      const float2 v0 = __half22float2(v[0]), v1 = __half22float2(v[1]), v2 = __half22float2(v[2]);
      const float2 in[3] = {v0, v1, v2};
#pragma unroll
      for (int row = 0; row < 3; row++) {
        float2 sum = {0.0f, 0.0f};
#pragma unroll
        for (int column = 0; column < 3; column++) {
          const float2 a = __half22float2(u[3 * row + column]);
          sum.x += a.x * in[column].x - a.y * in[column].y;
          sum.y += a.x * in[column].y + a.y * in[column].x;
        }
        reinterpret_cast<float2 *>(work.results)[3 * n + row] = sum;
      }
    }
}

template <md_packing PACKING>
__global__ void __launch_bounds__(32 * tiles::WARPS)
    packed(md_matvec work, int passes, int64_t skip) {
  __shared__ tiles::maps<PACKING> map;
  __shared__ tiles::warp_tiles<PACKING> all_tiles[tiles::WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const __half *matrices = reinterpret_cast<const __half *>(work.matrices);
  const __half *vectors = reinterpret_cast<const __half *>(work.vectors);
  tiles::warp_tiles<PACKING> &t = all_tiles[warp];
  t.clear();
  map.make();
  const int64_t groups = (work.count + map.items - 1) / map.items;
  for (int pass = 0; pass < passes; pass++)
    for (int64_t group = static_cast<int64_t>(blockIdx.x) * tiles::WARPS + warp + pass * skip;
         group < groups; group += static_cast<int64_t>(gridDim.x) * tiles::WARPS) {
      const int64_t first = group * map.items, left = work.count - first;
      const int count = static_cast<int>(left < map.items ? left : map.items);
      const auto number_a = [&](int item, int number) {
        return matrices[(first + item) * MD_MATVEC_MATRIX + number];
      };
      const auto number_b = [&](int item, int number) {
        return vectors[(first + item) * MD_MATVEC_VECTOR + number];
      };
      tiles::fill<PACKING>(map, count, number_a, number_b, &t);
      __syncwarp();
      tiles::accumulators<PACKING> sum;
      sum.add(t);
      sum.store(t);
      __syncwarp();
      for (int n = lane; n < count * MD_MATVEC_VECTOR; n += 32)
        work.results[first * MD_MATVEC_VECTOR + n] =
            t.c[map.result[n / MD_MATVEC_VECTOR][n % MD_MATVEC_VECTOR]];
      __syncwarp();
    }
}

/* Further products in further rounds. */
unsigned blocks_for(const md_device_facts &gpu, int64_t pieces, int64_t per_block) {
  const int64_t blocks = (pieces + per_block - 1) / per_block, most = 16 * gpu.multiprocessors;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

template <md_packing PACKING>
void launch(const md_device_facts &gpu, const md_matvec *work, int passes) {
  const unsigned blocks = blocks_for(gpu, work->count, tiles::maps<PACKING>::items * tiles::WARPS);
  packed<PACKING><<<blocks, 32 * tiles::WARPS, 0, md_stream()>>>(*work, passes, 0);
}

} // namespace

md_status md_matvec_device(md_context *context, md_packing packing, int passes,
                           const md_matvec *work) {
  if (work->count == 0) return MD_OK;
  const md_device_facts &gpu = context->gpu;
  switch (packing) {
  case MD_PACKING_NONE:
    cores<<<blocks_for(gpu, work->count, CORE_THREADS), CORE_THREADS, 0, md_stream()>>>(*work,
                                                                                        passes, 0);
    break;
  case MD_PACKING_SINGLE:
    launch<MD_PACKING_SINGLE>(gpu, work, passes);
    break;
  case MD_PACKING_DIAGONAL:
    launch<MD_PACKING_DIAGONAL>(gpu, work, passes);
    break;
  case MD_PACKING_BLOCK8:
    launch<MD_PACKING_BLOCK8>(gpu, work, passes);
    break;
  default:
    return md_fail(context, MD_INPUT,
                   "bare products have one vector for each matrix, packing %s needs many; use "
                   "single, diagonal or block8",
                   md_packing_name(packing));
  }
  return md_cuda_launched(context, "matrix-vector kernel");
}
