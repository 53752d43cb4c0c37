#pragma once

#include "dirac/tensor/march.h"
#include "dirac/tensor/stacked_finish.cuh"

/* The matrix of the fifth dimension on Tensor Cores, for one right-hand side in 16 bits with up to
 * 4 FOURS slices, in tiles as in packing.h: md_spin_place_of. The slices of one spin that a warp
 * has, lane 4g+t colour t of slice g of each tile, are transposed to the columns of B. A is the
 * matrix in two pieces, rounded and what rounding left (packing.h: md_wall_entry_of), so that it is
 * exact to twice the digits of the storage type; what it multiplies is rounded once. */
namespace stacked {

/* Tile k of columns in fours: whole, with eight columns and four spins for each lane, or not. */
constexpr __host__ __device__ int tiles_of(int fours) {
  return (fours + 1) / 2;
}
constexpr __host__ __device__ bool is_whole(int fours, int k) {
  return 2 * k + 1 < fours;
}

template <typename T, int FOURS> struct wall_matrix {
  static constexpr int TILES = tiles_of(FOURS);
  static_assert(TILES <= 2, "K of one instruction");
  struct table {
    uint32_t a[2][TILES][32][4]; /* for spins 0 and 1, and 2 and 3; registers of a lane */
  };
  static_assert(sizeof(table) <= MARCH_WALL_BYTES, "what the plan leaves for it");
  table &shared;

  /* The block must meet before `apply`. */
  __device__ wall_matrix(const md_tensor_walls &walls, bool adjoint, const lane &at)
      : shared(of_block()) {
    const int thread = static_cast<int>(threadIdx.x);
    for (int lower = 0; lower < 2 && thread < 32; lower++)
      for (int n = 0; n < 4 * TILES; n++) {
        float v[2];
        for (int e = 0; e < 2; e++) {
          const md_wall_entry entry = md_wall_entry_of(FOURS, lower, thread, n, e);
          v[e] = 0.0f;
          if (entry.to < 0 || entry.from < 0) continue;
          v[e] = md_tensor_wall(&walls, (lower == 1) != adjoint, entry.to, entry.from);
          if (entry.piece) v[e] -= rounded(v[e]);
        }
        shared.a[lower][n / 4][thread][n % 4] = narrow(T{}, v[0], v[1]);
      }
  }
  static __device__ table &of_block() {
    __shared__ __align__(16) table of;
    return of;
  }
  static __device__ float rounded(float v) { return widen(T{}, narrow(T{}, v, 0.0f)).x; }
  static __device__ uint32_t transposed(uint32_t v) {
    uint32_t result;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(v));
    return result;
  }
  /* Multiplies spins s and s + 2, s < 2, of the lane's colour: of[k] are its numbers of tile k, and
   * take(k, n, re, im) gets what becomes of number n. */
  template <class TAKE>
  __device__ void apply(int s, const uint32_t (&of)[TILES][4], TAKE take) const {
    constexpr int last = TILES - 1;
    constexpr bool whole = is_whole(FOURS, last);
    uint32_t b[TILES];
    float c[4] = {};
    if (!whole) b[last] = transposed(of[last][s]);
#pragma unroll
    for (int lower = 0; lower < 2; lower++) {
#pragma unroll
      for (int k = 0; k < TILES; k++)
        if (is_whole(FOURS, k)) {
          b[k] = transposed(of[k][s + 2 * lower]);
          c[2 * k] = c[2 * k + 1] = 0;
        }
#pragma unroll
      for (int n = 0; n < TILES; n++)
        md_block_rows::mma(c,
                           *reinterpret_cast<const uint4 *>(shared.a[lower][n][threadIdx.x % 32]),
                           b[0], b[last], T{});
#pragma unroll
      for (int k = 0; k < TILES; k++)
        if (is_whole(FOURS, k)) take(k, s + 2 * lower, c[2 * k], c[2 * k + 1]);
    }
    if (!whole) take(last, s, c[2 * last], c[2 * last + 1]);
  }
};
struct no_matrix {
  __device__ no_matrix(const md_tensor_walls &, bool, const lane &) {}
};

} // namespace stacked
