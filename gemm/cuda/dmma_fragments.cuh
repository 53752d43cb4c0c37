#ifndef MD_GEMM_CUDA_DMMA_FRAGMENTS_CUH
#define MD_GEMM_CUDA_DMMA_FRAGMENTS_CUH

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

__device__ inline void store_pair(const Operands<double> &g, bool vector, int i, int j, double x,
                                  double y) {
  if (i >= g.m || j >= g.n) return;
  double *c = g.c + i * g.ldc + j;
  if (vector && j + 2 <= g.n) {
    double2 r = {g.alpha * x, g.alpha * y};
    if (g.beta != 0.0) {
      const double2 old = *(const double2 *)c;
      r.x += g.beta * old.x, r.y += g.beta * old.y;
    }
    *(double2 *)c = r;
    return;
  }
  store(c, x, g.alpha, g.beta);
  if (j + 1 < g.n) store(c + 1, y, g.alpha, g.beta);
}

/* Lane l holds of each m16n8 tile the rows l / 4 and l / 4 + 8 and the columns 2 (l % 4) and the
 * next one, in the order of Place. */
struct Corner {
  int row, column; /* of the warp's 32 x 32 */
  __device__ Corner(int lane)
      : row(lane / 4 % 4 * 2 + lane / 16), column(lane % 4 / 2 * 2 + lane % 2 * 8) {}
};

__device__ inline void store_elements(const Operands<double> &g, bool vector, int row, int column,
                                      int lane, const double (&sum)[M][N][4]) {
  const Corner corner(lane);
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < N; j++)
        store_pair(g, vector, row + corner.row + i * 16 + h * 8,
                   column + corner.column + j / 2 * 16 + j % 2 * 4, sum[i][j][2 * h],
                   sum[i][j][2 * h + 1]);
}

/* One of the two boxes of a warp's part of C into its slot: swizzled rows of 128 bytes. */
__device__ inline void fill_slot(const Operands<double> &g, uint32_t slot, int lane, int box,
                                 const double (&sum)[M][N][4]) {
  const Corner corner(lane);
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < N / 2; j++) {
        const int row = corner.row + i * 16 + h * 8, chunk = corner.column / 2 + j * 2;
        const double *d = &sum[i][box * 2 + j][2 * h];
        const uint32_t to = slot + row * 128 + (chunk ^ (row % 8)) * 16;
        double2 r = {g.alpha * d[0], g.alpha * d[1]}, old;
        if (g.beta != 0.0) {
          shared_load(old, to);
          r.x += g.beta * old.x, r.y += g.beta * old.y;
        }
        shared_store(to, r);
      }
}

} // namespace md::dmma

#endif
