#ifndef MD_DIRAC_TENSOR_TILES_CUH
#define MD_DIRAC_TENSOR_TILES_CUH

#include "base/device.cuh"
#include "dirac/tensor/kernels.h"

#include <cuda_fp16.h>
#include <mma.h>

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

} // namespace tiles

#endif
