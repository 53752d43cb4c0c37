#pragma once

/* Which elements of a stage and of C a lane of the dmma kernel has, and their way from and to
 * memory.
 *
 * Tiles have rows of 128 bytes with the 128-byte swizzle, which exchanges 16-byte chunk c of row r
 * for c ^ (r % 8). Half a warp reads 4 x 4 elements at a time; which row or column of the tile a
 * lane calls its own is free as long as C agrees, and is chosen so that the 16 lie in 16 different
 * banks (see Place). */
#include "gemm/cuda/hopper.cuh"
#include "gemm/cuda/launch.cuh"

namespace md::dmma {

constexpr int ROWS = 128, COLUMNS = 128, DEPTH = 16, WARP = 32; /* tile, stage, a warp's square */
constexpr int M = 2, N = 4;                                     /* m16 and n8 tiles of a warp */
constexpr int A_BYTES = ROWS * DEPTH * 8, BOX_BYTES = DEPTH * 16 * 8; /* B: boxes 16 columns wide */

__device__ inline void mma(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* Where a lane's elements of a stage stand: byte offsets. Row g of an m16 tile is row
 * g % 4 * 2 + g / 4 of eight, column g of n8 tile p of a box is 4 p + g / 4 * 2 + g % 4 / 2 * 8 +
 * g % 2 of sixteen; depths are t and t + 4 of eight. */
struct Place {
  int a, b; /* at depth t of the first eight, b in the first n8 tile of a box */
  __device__ Place(int y, int x, int lane) {
    const int g = lane / 4, t = lane % 4, row = g % 4 * 2 + g / 4;
    a = (y + row) * 128 + ((t / 2) ^ row) * 16 + t % 2 * 8;
    b = A_BYTES + x / 16 * BOX_BYTES + t * 128 + ((g / 4 + g % 4 / 2 * 4) ^ t) * 16 + g % 2 * 8;
  }
  /* Depths 8 l + 4 e + t; n8 tile p of a box. The swizzle makes sums of chunks exclusive ors. */
  __device__ int a_at(int l, int e) const { return a ^ (l * 64 + e * 32); }
  __device__ int b_at(int p, int e) const { return (b ^ (p * 32 + e * 64)) + e * 512; }
};

__device__ inline void load_fragments(double (&a)[M][4], double (&b)[N][2], const char *stage,
                                      const Place &place, int l) {
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      a[i][e] = *(const double *)(stage + place.a_at(l, e / 2) + i * 2048 + e % 2 * 1024);
#pragma unroll
  for (int j = 0; j < N; j++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      b[j][e] = *(const double *)(stage + place.b_at(j % 2, e) + j / 2 * BOX_BYTES + l * 1024);
}

/* Calls use(row, column, pair) for this lane's pairs of neighbours in `boxes` boxes of a warp's
 * part of C, 16 columns each, from `box` on: of each m16n8 tile lane l holds the rows l / 4 and l /
 * 4 + 8 and the columns 2 (l % 4) and the next one, in the order of Place. */
template <class Use>
__device__ inline void for_pairs(const double (&sum)[M][N][4], int lane, int box, int boxes,
                                 Use use) {
  const int row = lane / 4 % 4 * 2 + lane / 16, column = lane % 4 / 2 * 2 + lane % 2 * 8;
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < N; j++)
        if (j < 2 * boxes)
          use(row + i * 16 + h * 8, column + j / 2 * 16 + j % 2 * 4, &sum[i][box * 2 + j][2 * h]);
}

/* alpha pair + beta old; old is read by `load` only when beta is not 0. */
template <class Load>
__device__ inline double2 result(const Operands<double> &g, const double *pair, Load load) {
  double2 r = {g.alpha * pair[0], g.alpha * pair[1]};
  if (g.beta != 0.0) {
    const double2 old = load();
    r.x += g.beta * old.x, r.y += g.beta * old.y;
  }
  return r;
}

/* A warp's part of C at (row, column), from its registers to where it belongs. */
__device__ inline void store_elements(const Operands<double> &g, bool vector, int row, int column,
                                      int lane, const double (&sum)[M][N][4]) {
  for_pairs(sum, lane, 0, 2, [&](int i, int j, const double *pair) {
    i += row, j += column;
    if (i >= g.m || j >= g.n) return;
    double *c = g.c + i * g.ldc + j;
    if (vector && j + 2 <= g.n) {
      *(double2 *)c = result(g, pair, [c] { return *(const double2 *)c; });
      return;
    }
    store(c, pair[0], g.alpha, g.beta);
    if (j + 1 < g.n) store(c + 1, pair[1], g.alpha, g.beta);
  });
}

/* One of its boxes into the warp's slot: swizzled rows of 128 bytes. */
__device__ inline void fill_slot(const Operands<double> &g, uint32_t slot, int lane, int box,
                                 const double (&sum)[M][N][4]) {
  for_pairs(sum, lane, box, 1, [&](int i, int j, const double *pair) {
    const uint32_t to = slot + i * 128 + ((j / 2) ^ (i % 8)) * 16;
    shared_store(to, result(g, pair, [to] {
                   double2 old;
                   shared_load(old, to);
                   return old;
                 }));
  });
}

} // namespace md::dmma
