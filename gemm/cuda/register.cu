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
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/launch.cuh"

using namespace md;

/* 256 threads compute a 128 x 128 tile of C, eight deep at a time, 8 x 8 elements each; k7 has
 * shapes of its own. */
constexpr int TILE = 128, DEPTH = 8, SIDE = 8, THREADS = 256, BAND = 8;

/* sum += a b^T of a column of A and a row of B, both in registers. */
template <int M, int N>
static __device__ inline void outer_product(float (&sum)[M][N], const float (&a)[M],
                                            const float (&b)[N]) {
#pragma unroll
  for (int e = 0; e < M * N; e++) sum[e / N][e % N] += a[e / N] * b[e % N];
}

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
static bool rows_aligned(const md_gemm_call *call) {
  const Operands<float> g = operands<float>(call);
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
static md_status run_vectors(md_context *context, const md_gemm_call *call) {
  return rows_aligned(call)
             ? run_step<STEP, float, vectors<Place, true>, TILE, TILE, THREADS>(context, call)
             : run_step<STEP, float, vectors<Place, false>, TILE, TILE, THREADS>(context, call);
}

/* K7: software pipeline. Tiles travel from global to shared memory by cp.async, STAGES - 1 ahead of
 * their use, and a thread reads the next column of A and row of B while it multiplies with the
 * present ones. A is transposed on the way by 4-byte copies, which also leave its alignment free.
 * Shapes: 128x128 (8 x 8 per thread, two blocks per multiprocessor), and the larger tiles with
 * 16 x 8 per thread, which read shared memory a quarter less for each multiply-add. */
template <int ROWS_, int COLUMNS_, int WARP_ROWS_, int WARP_COLUMNS_, int STAGES_, int BLOCKS_>
struct Shape {
  static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = 16, STAGES = STAGES_;
  static constexpr int BLOCKS = BLOCKS_; /* per multiprocessor */
  static constexpr int WARP_ROWS = WARP_ROWS_, WARP_COLUMNS = WARP_COLUMNS_;
  static constexpr int M = WARP_ROWS / 4, N = WARP_COLUMNS / 8; /* of a thread, 4 x 8 in a warp */
  static constexpr int ACROSS = COLUMNS / WARP_COLUMNS;
  static constexpr int LDA = ROWS + 4; /* 4-byte copies of 8 columns x 4 rows hit 32 banks */
  static constexpr int STAGE = DEPTH * (LDA + COLUMNS);
  static constexpr int BYTES = STAGES * STAGE * (int)sizeof(float);
  static_assert(ROWS / WARP_ROWS * ACROSS * 32 == THREADS, "eight warps");
};

/* One stage: A transposed into [DEPTH][LDA], B behind it into [DEPTH][COLUMNS]. */
template <class S, bool vector>
static __device__ inline void load_stage(uint32_t to, const Operands<float> &g, int row, int column,
                                         int l0) {
  const int l = threadIdx.x % 8, i0 = threadIdx.x / 8;
  const float *from = g.a + (row + i0) * g.lda + l0 + l;
#pragma unroll
  for (int i = 0; i < S::ROWS; i += THREADS / 8, from += THREADS / 8 * g.lda)
#pragma unroll
    for (int d = 0; d < S::DEPTH; d += 8)
      copy_async<4>(to + ((l + d) * S::LDA + i0 + i) * 4, from + d,
                    row + i0 + i < g.m && l0 + l + d < g.k ? 4 : 0);
  copy_tile_async<float, S::DEPTH, S::COLUMNS, S::COLUMNS, THREADS, vector ? 4 : 1>(
      to + S::DEPTH * S::LDA * 4, g.b, g.ldb, g.k, g.n, l0, column);
}

template <class S>
static __device__ inline void load_fragments(float (&a)[S::M], float (&b)[S::N], const float *as,
                                             const float *bs, int l) {
#pragma unroll
  for (int i = 0; i < S::M; i += 4) *(float4 *)&a[i] = *(const float4 *)&as[l * S::LDA + i * 4];
#pragma unroll
  for (int j = 0; j < S::N; j += 4) *(float4 *)&b[j] = *(const float4 *)&bs[l * S::COLUMNS + j * 8];
}

template <class S, bool vector>
static __global__ void __launch_bounds__(THREADS, S::BLOCKS) pipeline(Operands<float> g) {
  extern __shared__ __align__(16) float shared[];
  const uint32_t base = shared_address(shared);
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, S::ROWS, S::COLUMNS, BAND);
  const int row = tile.row * S::ROWS, column = tile.column * S::COLUMNS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / S::ACROSS * S::WARP_ROWS + lane / 8 * 4;
  const int x = warp % S::ACROSS * S::WARP_COLUMNS + lane % 8 * 4;
  const int steps = (g.k + S::DEPTH - 1) / S::DEPTH;

  for (int s = 0; s < S::STAGES - 1; s++) {
    load_stage<S, vector>(base + s * S::STAGE * 4, g, row, column, s * S::DEPTH);
    commit_group();
  }
  wait_group<S::STAGES - 2>();
  __syncthreads();

  __align__(16) float sum[S::M][S::N] = {}, a[2][S::M], b[2][S::N];
  const float *as = shared + y, *bs = shared + S::DEPTH * S::LDA + x;
  int read = 0, write = S::STAGES - 1;
  load_fragments<S>(a[0], b[0], as, bs, 0);
  for (int step = 0; step < steps; step++) {
#pragma unroll
    for (int l = 0; l < S::DEPTH; l++) {
      if (l == S::DEPTH - 1) { /* the next stage must be there, the last one is free */
        wait_group<S::STAGES - 2>();
        __syncthreads();
        read = read + 1 < S::STAGES ? read + 1 : 0;
      }
      const int offset = read * S::STAGE;
      load_fragments<S>(a[(l + 1) % 2], b[(l + 1) % 2], as + offset, bs + offset,
                        (l + 1) % S::DEPTH);
      if (l == 0) {
        load_stage<S, vector>(base + write * S::STAGE * 4, g, row, column,
                              (step + S::STAGES - 1) * S::DEPTH);
        commit_group();
        write = write + 1 < S::STAGES ? write + 1 : 0;
      }
      outer_product(sum, a[l % 2], b[l % 2]);
    }
  }
  wait_group<0>();
#pragma unroll
  for (int i = 0; i < S::M; i++)
#pragma unroll
    for (int j = 0; j < S::N; j += 4)
      store4<vector>(g, row + y + i / 4 * 16 + i % 4, column + x + j * 8, &sum[i][j]);
}

template <class S> static md_status run_shape(md_context *context, const md_gemm_call *call) {
  const Operands<float> g = operands<float>(call);
  const bool vector = aligned(g.b, g.ldb, 4, 16) && aligned(g.c, g.ldc, 4, 16);
  const auto kernel = vector ? pipeline<S, true> : pipeline<S, false>;
  unsigned blocks;
  MD_TRY(grid_for(context, call->problem, S::ROWS, S::COLUMNS, &blocks));
  MD_TRY(md_cuda_allow_shared(context, kernel, S::BYTES, "shared memory for GEMM kernel k7"));
  kernel<<<blocks, THREADS, S::BYTES, stream_of(call)>>>(g);
  return md_cuda_launched(context, "GEMM kernel k7");
}

static const char *const variants[] = {"128x128", "256x128", "128x256", nullptr};

static md_status run_pipeline(md_context *context, const md_gemm_call *call) {
  constexpr decltype(md_gemm_kernel::run) of[] = {run_shape<Shape<128, 128, 32, 64, 3, 2>>,
                                                  run_shape<Shape<256, 128, 64, 64, 3, 1>>,
                                                  run_shape<Shape<128, 256, 64, 64, 3, 1>>};
  return of[call->launch->variant](context, call);
}

const md_gemm_kernel md_gemm_k3 =
    entry("k3", SINGLE, run_step<3, float, registers<false>, TILE, TILE, THREADS>);
const md_gemm_kernel md_gemm_k4 =
    entry("k4", SINGLE, run_step<4, float, registers<true>, TILE, TILE, THREADS>);
const md_gemm_kernel md_gemm_k5 = entry("k5", SINGLE, run_vectors<5, Square>);
const md_gemm_kernel md_gemm_k6 = entry("k6", SINGLE, run_vectors<6, Pieces>);
const md_gemm_kernel md_gemm_k7 = entry("k7", SINGLE, run_pipeline, variants);
