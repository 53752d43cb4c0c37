/* The steps of the ladder with 8 x 8 elements of C for one thread.
 * K3: per step in depth a thread takes a column of A and a row of B into registers: 16 reads of
 * shared memory feed 64 multiply-adds, in K2 two feed one.
 * K4: the tile of A stands transposed in shared memory, so that the column of A which a thread
 * takes is contiguous and comes in 16-byte reads. K5: 16-byte accesses also between global memory,
 * registers and C: a quarter of the load and store instructions. Rows that do not start on 16 bytes
 * take a one-float path. K6: warp tiles. The 32 threads of a warp compute 32 x 64 elements as 4 x 8
 * threads, each in four 4 x 4 pieces: a 16-byte read of a row of B by the warp is then 128
 * contiguous bytes and of a column of A 64, free of bank conflicts, and stores of C are whole cache
 * lines. */
#include "gemm/cuda/register_tile.cuh"

using namespace md;

/* Tile of B into bs[DEPTH][TILE], one float per access. */
static __device__ inline void load_b(float (*bs)[TILE], const Operands<float> &g, int l0,
                                     int column) {
  for (int e = threadIdx.x; e < DEPTH * TILE; e += THREADS)
    bs[e / TILE][e % TILE] = at(g.b, g.ldb, g.k, g.n, l0 + e / TILE, column + e % TILE);
}

/* Thread (y, x) of 16 x 16 stores its 8 x 8 elements, one float per access. */
static __device__ inline void store_block(const Operands<float> &g, Tile tile,
                                          const float (&sum)[SIDE][SIDE]) {
  const int i0 = tile.row * TILE + threadIdx.x / 16 * SIDE;
  const int j0 = tile.column * TILE + threadIdx.x % 16 * SIDE;
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j++)
      if (i0 + i < g.m && j0 + j < g.n)
        store(g.c + (i0 + i) * g.ldc + j0 + j, sum[i][j], g.alpha, g.beta);
}

/* Whether rows of A, B and C start on 16 bytes. */
static bool rows_aligned(const Operands<float> &g) {
  return aligned(g.a, g.lda, 4, 16) && aligned(g.b, g.ldb, 4, 16) && aligned(g.c, g.ldc, 4, 16);
}

/* Not transposed the loop over depth stays one: unrolled, the compiler would gather columns of A
 * into wide reads, and that is K4. */
template <bool TRANSPOSED>
static __global__ void __launch_bounds__(THREADS) registers(Operands<float> g) {
  __shared__ __align__(
      TRANSPOSED ? 16 : 4) float as[TRANSPOSED ? DEPTH : TILE][TRANSPOSED ? TILE : DEPTH];
  __shared__ __align__(TRANSPOSED ? 16 : 4) float bs[DEPTH][TILE];
  const auto a_at = [&](int i, int l) -> float & { return TRANSPOSED ? as[l][i] : as[i][l]; };
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, TILE, TILE, BAND);
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  float sum[SIDE][SIDE] = {};
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS)
      a_at(e / DEPTH, e % DEPTH) =
          at(g.a, g.lda, g.m, g.k, tile.row * TILE + e / DEPTH, l0 + e % DEPTH);
    load_b(bs, g, l0, tile.column * TILE);
    __syncthreads();
#pragma unroll(TRANSPOSED ? DEPTH : 1)
    for (int l = 0; l < DEPTH; l++) {
      float a[SIDE], b[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; i++) a[i] = a_at(y * SIDE + i, l);
#pragma unroll
      for (int j = 0; j < SIDE; j++) b[j] = bs[l][x * SIDE + j];
      outer_product(sum, a, b);
    }
    __syncthreads();
  }
  store_block(g, tile, sum);
}

/* Four neighbours of row i from column j, zeros outside. vector: rows start on 16 bytes. */
template <bool vector>
static __device__ inline float4 four_at(const float *x, int64_t ld, int rows, int columns, int i,
                                        int j) {
  if (vector && i < rows && j + 4 <= columns) return *(const float4 *)(x + i * ld + j);
  return {at(x, ld, rows, columns, i, j), at(x, ld, rows, columns, i, j + 1),
          at(x, ld, rows, columns, i, j + 2), at(x, ld, rows, columns, i, j + 3)};
}

/* Tiles of A (transposed on the way, rows padded by 4 against bank conflicts) and of B. */
template <bool vector>
static __device__ inline void load_vectors(float (*as)[TILE + 4], float (*bs)[TILE],
                                           const Operands<float> &g, Tile tile, int l0) {
  const int i = threadIdx.x / 2, l = threadIdx.x % 2 * 4;
  const float4 a = four_at<vector>(g.a, g.lda, g.m, g.k, tile.row * TILE + i, l0 + l);
  as[l][i] = a.x, as[l + 1][i] = a.y, as[l + 2][i] = a.z, as[l + 3][i] = a.w;
  const int r = threadIdx.x / 32, j = threadIdx.x % 32 * 4;
  *(float4 *)&bs[r][j] = four_at<vector>(g.b, g.ldb, g.k, g.n, l0 + r, tile.column * TILE + j);
}

/* Where the 8 x 8 elements of a thread stand in the tile. */
struct Square {
  const int y = threadIdx.x / 16 * SIDE, x = threadIdx.x % 16 * SIDE;
  static __device__ int row(int i) { return i; }
  static __device__ int column(int j) { return j; }
};
struct Pieces {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4;
  static __device__ int row(int i) { return i / 4 * 16 + i % 4; }
  static __device__ int column(int j) { return j / 4 * 32 + j % 4; }
};

template <class Place, bool vector>
static __global__ void __launch_bounds__(THREADS) vectors(Operands<float> g) {
  __shared__ __align__(16) float as[DEPTH][TILE + 4], bs[DEPTH][TILE];
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, TILE, TILE, BAND);
  const Place place;
  const int y = place.y, x = place.x;
  float sum[SIDE][SIDE] = {};
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    load_vectors<vector>(as, bs, g, tile, l0);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < DEPTH; l++) {
      float a[SIDE], b[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; i++) a[i] = as[l][y + Place::row(i)];
#pragma unroll
      for (int j = 0; j < SIDE; j++) b[j] = bs[l][x + Place::column(j)];
      outer_product(sum, a, b);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j += 4)
      store4<vector>(g, tile.row * TILE + y + Place::row(i),
                     tile.column * TILE + x + Place::column(j), &sum[i][j]);
}

template <int STEP, class Place>
static md_status run_vectors(md_context *context, const md_gemm_problem *p,
                             const md_gemm_launch *launch, void *state, const void *a,
                             const void *b, void *c) {
  return (rows_aligned(operands<float>(p, a, b, c))
              ? run_step<STEP, float, vectors<Place, true>, TILE, TILE, THREADS>
              : run_step<STEP, float, vectors<Place, false>, TILE, TILE, THREADS>)(context, p,
                                                                                   launch, state, a,
                                                                                   b, c);
}

const md_gemm_kernel md_gemm_k3 =
    entry("k3", "8x8 elements per thread, column of A and row of B in registers", SINGLE,
          "as inputs", run_step<3, float, registers<false>, TILE, TILE, THREADS>);
const md_gemm_kernel md_gemm_k4 =
    entry("k4", "tile of A transposed in shared memory", SINGLE, "as inputs",
          run_step<4, float, registers<true>, TILE, TILE, THREADS>);
const md_gemm_kernel md_gemm_k5 =
    entry("k5", "16-byte accesses to global memory", SINGLE, "as inputs", run_vectors<5, Square>);
const md_gemm_kernel md_gemm_k6 = entry("k6", "warp tiles of 32x64, conflict-free reads", SINGLE,
                                        "as inputs", run_vectors<6, Pieces>);
