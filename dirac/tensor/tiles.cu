#include "base/device.cuh"
#include "dirac/tensor/tensor.h"

#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

/* WMMA tiles of the packings single, diagonal and block8, filled after the maps of packing.h. */
namespace tiles {

enum { SIZE = MD_TILE * MD_TILE, WARPS = 4, MOST_ITEMS = 8, MOST_ENTRIES = 160 };

/* Where a number of a tile comes from: entry `to` (tile * SIZE + place) is sign * number `number`
 * of item `item`. */
struct entry {
  short to;
  signed char item, number, sign;
};

/* The maps turned round, once a block: only the entries that are not padding. */
template <md_packing PACKING> struct maps {
  static constexpr int items = PACKING == MD_PACKING_BLOCK8     ? 8
                               : PACKING == MD_PACKING_DIAGONAL ? 5
                                                                : 1;
  static constexpr int products = PACKING == MD_PACKING_BLOCK8 ? 1 : 4;
  static constexpr int accumulators = PACKING == MD_PACKING_BLOCK8 ? 1 : 2;
  static constexpr int a_tiles = accumulators; /* Re U and Im U apart, or one */
  entry a[MOST_ENTRIES], b[MOST_ENTRIES];
  short result[MOST_ITEMS][MD_FERMION_REALS]; /* place in the tiles C */
  int a_count, b_count;

  /* Called by all threads of the block, ends with a barrier. */
  __device__ void make() {
    if (threadIdx.x == 0) a_count = b_count = 0;
    __syncthreads();
    for (int at = threadIdx.x; at < SIZE; at += blockDim.x) {
      const int i = at / MD_TILE, j = at % MD_TILE;
      for (int tile = 0; tile < a_tiles; tile++) {
        const md_tile_entry e = md_tile_a(PACKING, tile, i, j); /* product 0: Re U, 1: Im U */
        if (e.sign)
          a[atomicAdd(&a_count, 1)] = make_entry(e, tile, at, 2 * (3 * e.row + e.column) + e.part);
      }
      for (int product = 0; product < products; product++) {
        const md_tile_entry e = md_tile_b(PACKING, product, i, j);
        if (e.sign) b[atomicAdd(&b_count, 1)] = make_entry(e, product, at, 2 * e.row + e.part);
      }
      for (int c = 0; c < accumulators; c++) {
        const md_tile_entry e = md_tile_c(PACKING, c, i, j);
        if (e.sign) result[e.item][2 * e.row + e.part] = static_cast<short>(c * SIZE + at);
      }
    }
    __syncthreads();
  }
  __device__ static entry make_entry(md_tile_entry e, int tile, int at, int number) {
    return {static_cast<short>(tile * SIZE + at), static_cast<signed char>(e.item),
            static_cast<signed char>(number), static_cast<signed char>(e.sign)};
  }
};

/* The tiles of one warp in shared memory. */
template <md_packing PACKING> struct __align__(32) warp_tiles {
  __half a[maps<PACKING>::a_tiles * SIZE], b[maps<PACKING>::products * SIZE];
  float c[maps<PACKING>::accumulators * SIZE];

  __device__ void clear() {
    for (int at = threadIdx.x % 32; at < maps<PACKING>::a_tiles * SIZE; at += 32) a[at] = 0.0f;
    for (int at = threadIdx.x % 32; at < maps<PACKING>::products * SIZE; at += 32) b[at] = 0.0f;
  }
};

/* Fills the tiles of `count` items: number_a(item, n) is the n-th real of the matrix, number_b of
 * the vector. */
template <md_packing PACKING, typename A, typename B>
__device__ inline void fill(const maps<PACKING> &map, int count, A number_a, B number_b,
                            warp_tiles<PACKING> *t) {
  for (int n = threadIdx.x % 32; n < map.a_count; n += 32) {
    const entry e = map.a[n];
    if (e.item < count) t->a[e.to] = number_a(e.item, e.number);
  }
  for (int n = threadIdx.x % 32; n < map.b_count; n += 32) {
    const entry e = map.b[n];
    if (e.item >= count) continue;
    const __half v = number_b(e.item, e.number);
    t->b[e.to] = e.sign < 0 ? __hneg(v) : v;
  }
}

/* The accumulators of one warp, and C += A B for all products of a filled set of tiles. */
template <md_packing PACKING> struct accumulators {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>
      c[maps<PACKING>::accumulators];

  __device__ accumulators() {
    for (auto &tile : c) nvcuda::wmma::fill_fragment(tile, 0.0f);
  }
  __device__ void add(const warp_tiles<PACKING> &tiles) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> a[maps<PACKING>::a_tiles];
    fragment<matrix_b, 16, 16, 16, __half, row_major> b;
#pragma unroll
    for (int tile = 0; tile < maps<PACKING>::a_tiles; tile++)
      load_matrix_sync(a[tile], tiles.a + tile * SIZE, MD_TILE);
#pragma unroll
    for (int product = 0; product < maps<PACKING>::products; product++) {
      constexpr bool one = maps<PACKING>::accumulators == 1;
      const int from = one ? 0 : md_tile_part_a(product);
      const int to = one ? 0 : md_tile_accumulator(product);
      load_matrix_sync(b, tiles.b + product * SIZE, MD_TILE);
      mma_sync(c[to], a[from], b, c[to]);
    }
  }
  __device__ void store(warp_tiles<PACKING> &tiles) const {
#pragma unroll
    for (int tile = 0; tile < maps<PACKING>::accumulators; tile++)
      nvcuda::wmma::store_matrix_sync(tiles.c + tile * SIZE, c[tile], MD_TILE,
                                      nvcuda::wmma::mem_row_major);
  }
};

/* Blocks for pieces of work; what is more than many is done in further rounds. */
inline unsigned blocks_for(const md_device_facts &gpu, int64_t pieces, int64_t per_block) {
  const int64_t blocks = (pieces + per_block - 1) / per_block, most = 16 * gpu.multiprocessors;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

/* f(PACKING) with a packing of these as a type. */
template <class F> void by_packing(md_packing packing, F f) {
  if (packing == MD_PACKING_SINGLE)
    f(std::integral_constant<md_packing, MD_PACKING_SINGLE>());
  else if (packing == MD_PACKING_DIAGONAL)
    f(std::integral_constant<md_packing, MD_PACKING_DIAGONAL>());
  else
    f(std::integral_constant<md_packing, MD_PACKING_BLOCK8>());
}

/* The hop by packings single, diagonal and block8: a warp takes 1, 5 or 8 sites that follow each
 * other (along x, and on to the next row), and accumulates all terms in the same C. */

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
  const int exponent = static_cast<int>(__float_as_uint(largest) + MD_HALF_CARRY >> 23) - 127;
  const float wanted = ldexpf(common, exponent - 14);
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

/* Bare matrix-vector products; see tensor.h. `skip` is zero: the compiler does not know, and so
 * does every pass anew. */

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
__global__ void __launch_bounds__(32 * WARPS) packed(md_matvec work, int passes, int64_t skip) {
  __shared__ maps<PACKING> map;
  __shared__ warp_tiles<PACKING> all_tiles[WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const __half *matrices = reinterpret_cast<const __half *>(work.matrices);
  const __half *vectors = reinterpret_cast<const __half *>(work.vectors);
  warp_tiles<PACKING> &t = all_tiles[warp];
  t.clear();
  map.make();
  const int64_t groups = (work.count + map.items - 1) / map.items;
  for (int pass = 0; pass < passes; pass++)
    for (int64_t group = static_cast<int64_t>(blockIdx.x) * WARPS + warp + pass * skip;
         group < groups; group += static_cast<int64_t>(gridDim.x) * WARPS) {
      const int64_t first = group * map.items, left = work.count - first;
      const int count = static_cast<int>(left < map.items ? left : map.items);
      const auto number_a = [&](int item, int number) {
        return matrices[(first + item) * MD_MATVEC_MATRIX + number];
      };
      const auto number_b = [&](int item, int number) {
        return vectors[(first + item) * MD_MATVEC_VECTOR + number];
      };
      fill<PACKING>(map, count, number_a, number_b, &t);
      __syncwarp();
      accumulators<PACKING> sum;
      sum.add(t);
      sum.store(t);
      __syncwarp();
      for (int n = lane; n < count * MD_MATVEC_VECTOR; n += 32)
        work.results[first * MD_MATVEC_VECTOR + n] =
            t.c[map.result[n / MD_MATVEC_VECTOR][n % MD_MATVEC_VECTOR]];
      __syncwarp();
    }
}

} // namespace tiles

md_status md_tensor_tiles(md_context *context, const md_tensor_call *call) {
  using namespace tiles;
  const cudaStream_t queue = call->queue ? static_cast<cudaStream_t>(call->queue) : md_stream();
  if (call->count == 0) return MD_OK;
  by_packing(call->packing, [&](auto packing) {
    constexpr md_packing PACKING = packing();
    const unsigned blocks = blocks_for(context->gpu, call->count, WARPS * maps<PACKING>::items);
    const auto kernel =
        call->terms == MD_DIRECTIONS ? hop<PACKING, MD_DIRECTIONS> : hop<PACKING, MD_MOST_TERMS>;
    kernel<<<blocks, 32 * WARPS, 0, queue>>>(*call);
  });
  return md_cuda_launched(context, "WMMA kernel");
}

md_status md_matvec_device(md_context *context, md_packing packing, int passes,
                           const md_matvec *work) {
  using namespace tiles;
  const md_device_facts &gpu = context->gpu;
  if (work->count == 0) return MD_OK;
  if (packing == MD_PACKING_STACKED)
    return md_fail(context, MD_INPUT,
                   "bare products have one vector for each matrix, packing %s needs many; use "
                   "single, diagonal or block8",
                   md_packing_name(packing));
  if (packing == MD_PACKING_NONE)
    cores<<<blocks_for(gpu, work->count, CORE_THREADS), CORE_THREADS, 0, md_stream()>>>(*work,
                                                                                        passes, 0);
  else
    by_packing(packing, [&](auto of) {
      constexpr md_packing PACKING = of();
      packed<PACKING><<<blocks_for(gpu, work->count, maps<PACKING>::items * WARPS), 32 * WARPS, 0,
                        md_stream()>>>(*work, passes, 0);
    });
  return md_cuda_launched(context, "matrix-vector kernel");
}
