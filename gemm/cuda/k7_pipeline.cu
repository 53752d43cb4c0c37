/* K7: software pipeline. Tiles travel from global to shared memory by cp.async, STAGES - 1 ahead of
 * their use, and a thread reads the next column of A and row of B while it multiplies with the
 * present ones. A is transposed on the way by 4-byte copies, which also leave its alignment free.
 * Shapes: 128x128 (8 x 8 per thread, two blocks per multiprocessor), and the larger tiles with
 * 16 x 8 per thread, which read shared memory a quarter less for each multiply-add. */
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/register_tile.cuh"

using namespace md;

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

template <class S>
static md_status launch_shape(md_context *context, const md_gemm_problem *p, cudaStream_t stream,
                              const Operands<float> &g) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, S::ROWS, S::COLUMNS, &blocks));
  const bool vector = aligned(g.b, g.ldb, 4, 16) && aligned(g.c, g.ldc, 4, 16);
  const auto kernel = vector ? pipeline<S, true> : pipeline<S, false>;
  MD_TRY(md_cuda_status(
      context, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::BYTES),
      "shared memory for GEMM kernel k7"));
  kernel<<<blocks, THREADS, S::BYTES, stream>>>(g);
  return md_cuda_launched(context, "GEMM kernel k7");
}

static const char *const variants[] = {"128x128", "256x128", "128x256", nullptr};

static md_status launch_pipeline(md_context *context, const md_gemm_problem *p,
                                 const md_gemm_launch *launch, void *, const void *a, const void *b,
                                 void *c) {
  const Operands<float> g = operands<float>(p, a, b, c);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  switch (launch->variant) {
  case 1:
    return launch_shape<Shape<256, 128, 64, 64, 3, 1>>(context, p, stream, g);
  case 2:
    return launch_shape<Shape<128, 256, 64, 64, 3, 1>>(context, p, stream, g);
  default:
    return launch_shape<Shape<128, 128, 32, 64, 3, 2>>(context, p, stream, g);
  }
}

const md_gemm_kernel md_gemm_k7 = entry("k7", "cp.async stages and double-buffered registers",
                                        SINGLE, "as inputs", launch_pipeline, variants);
