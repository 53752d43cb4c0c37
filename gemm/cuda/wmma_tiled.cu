/* WMMA with shared memory: a block computes 128 x 256 of C, each of eight warps 64 x 64 as 4 x 4
 * fragments, so that a fragment of A or B that was read once enters four products. Tiles come by
 * cp.async, several stages ahead; rows in shared memory are padded by 16 bytes, which spreads the
 * rows of a fragment over all banks. */
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/wmma.cuh"

using namespace md;
using namespace nvcuda;

namespace {

constexpr int ROWS = 128, COLUMNS = 256, WARP = 64, THREADS = 256, BAND = 8, SIDE = WARP / 16;

template <class T> struct Shape {
  using Storage = typename Fragments<T>::Storage;
  static constexpr int WIDTH = 16 / (int)sizeof(Storage); /* elements of a 16-byte copy */
  static constexpr int DEPTH = 8 * WIDTH, STAGES = 3;
  static constexpr int LDA = DEPTH + WIDTH, LDB = COLUMNS + WIDTH;
  static constexpr int STAGE = ROWS * LDA + DEPTH * LDB;
  static constexpr int BYTES = STAGES * STAGE * (int)sizeof(Storage);
};

template <class T>
__device__ inline void load_stage(uint32_t to, const Operands<typename Shape<T>::Storage, float> &g,
                                  int row, int column, int l0) {
  using S = Shape<T>;
  using E = typename S::Storage;
  copy_tile_async<E, ROWS, S::DEPTH, S::LDA, THREADS, S::WIDTH>(to, g.a, g.lda, g.m, g.k, row, l0);
  copy_tile_async<E, S::DEPTH, COLUMNS, S::LDB, THREADS, S::WIDTH>(
      to + ROWS * S::LDA * (int)sizeof(E), g.b, g.ldb, g.k, g.n, l0, column);
}

/* as, bs: this warp's rows and columns of the stage. */
template <class T>
__device__ inline void
load_fragments(typename Fragments<T>::A (&a)[SIDE], typename Fragments<T>::B (&b)[SIDE],
               const typename Shape<T>::Storage *as, const typename Shape<T>::Storage *bs, int l) {
#pragma unroll
  for (int i = 0; i < SIDE; i++)
    Fragments<T>::load(a[i], as + i * 16 * Shape<T>::LDA + l, Shape<T>::LDA);
#pragma unroll
  for (int j = 0; j < SIDE; j++)
    Fragments<T>::load(b[j], bs + l * Shape<T>::LDB + j * 16, Shape<T>::LDB);
}

/* Through shared memory, a 16 x 16 tile per warp at a time: fragments hide their layout. */
template <class T>
__device__ inline void store_tile(const Operands<typename Shape<T>::Storage, float> &g,
                                  typename Fragments<T>::Sum &sum, float *out, bool vector, int i,
                                  int j) {
  constexpr int LD = 20;
  wmma::store_matrix_sync(out, sum, LD, wmma::mem_row_major);
  __syncwarp();
  for (int e = threadIdx.x % 32; e < 64; e += 32) {
    const int r = e / 4, s = e % 4 * 4;
    if (vector)
      store4<true>(g, i + r, j + s, out + r * LD + s);
    else
      store4<false>(g, i + r, j + s, out + r * LD + s);
  }
  __syncwarp();
}

template <class T>
__global__ void __launch_bounds__(THREADS, 1)
    tiled(Operands<typename Shape<T>::Storage, float> g, bool vector) {
  using S = Shape<T>;
  using F = Fragments<T>;
  using E = typename S::Storage;
  extern __shared__ __align__(128) char shared[];
  const uint32_t base = shared_address(shared);
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, ROWS, COLUMNS, BAND);
  const int row = tile.row * ROWS, column = tile.column * COLUMNS, warp = threadIdx.x / 32;
  const int y = warp / 4 * WARP, x = warp % 4 * WARP;
  const int steps = (g.k + S::DEPTH - 1) / S::DEPTH;
  for (int s = 0; s < S::STAGES - 1; s++) {
    load_stage<T>(base + s * S::STAGE * (int)sizeof(E), g, row, column, s * S::DEPTH);
    commit_group();
  }
  typename F::Sum sum[SIDE][SIDE];
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j++) wmma::fill_fragment(sum[i][j], 0.0f);
  typename F::A a[2][SIDE];
  typename F::B b[2][SIDE];
  for (int step = 0; step < steps; step++) {
    wait_group<S::STAGES - 2>();
    __syncthreads(); /* this stage is there, and all have done with the one before */
    const E *as = (const E *)shared + step % S::STAGES * S::STAGE + y * S::LDA;
    const E *bs = (const E *)shared + step % S::STAGES * S::STAGE + ROWS * S::LDA + x;
    load_fragments<T>(a[0], b[0], as, bs, 0);
    load_stage<T>(base + (step + S::STAGES - 1) % S::STAGES * S::STAGE * (int)sizeof(E), g, row,
                  column, (step + S::STAGES - 1) * S::DEPTH);
    commit_group();
#pragma unroll
    for (int l = 0; l < S::DEPTH / F::DEPTH; l++) {
      if (l + 1 < S::DEPTH / F::DEPTH)
        load_fragments<T>(a[(l + 1) % 2], b[(l + 1) % 2], as, bs, (l + 1) * F::DEPTH);
#pragma unroll
      for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++)
          wmma::mma_sync(sum[i][j], a[l % 2][i], b[l % 2][j], sum[i][j]);
    }
  }
  wait_group<0>();
  __syncthreads();
  float *out = (float *)shared + warp * 16 * 20;
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j++)
      store_tile<T>(g, sum[i][j], out, vector, row + y + i * 16, column + x + j * 16);
}

template <class T>
md_status run_type(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                   void *state, const void *a, const void *b, void *c) {
  using S = Shape<T>;
  unsigned blocks;
  MD_TRY(grid_for(context, p, ROWS, COLUMNS, &blocks));
  cudaStream_t stream = (cudaStream_t)launch->stream;
  auto g = operands<typename S::Storage, float>(p, a, b, c);
  MD_TRY(pad_operands(context, (Workspace *)state, stream, S::WIDTH, false, &g));
  MD_TRY(status_of(
      context,
      cudaFuncSetAttribute(tiled<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::BYTES),
      "reserve shared memory for wmma_tiled"));
  tiled<T><<<blocks, THREADS, S::BYTES, stream>>>(g, aligned(c, p->ldc, 4, 16));
  return launched(context, "wmma_tiled");
}

md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
              void *state, const void *a, const void *b, void *c) {
  switch (p->precision) {
  case MD_GEMM_HALF:
    return run_type<__half>(context, p, launch, state, a, b, c);
  case MD_GEMM_BF16:
    return run_type<__nv_bfloat16>(context, p, launch, state, a, b, c);
  default:
    return run_type<wmma::precision::tf32>(context, p, launch, state, a, b, c);
  }
}

} // namespace

const md_gemm_kernel md_gemm_wmma_tiled = {"wmma_tiled",
                                           "shared memory, 4x4 fragments per warp, cp.async stages",
                                           MD_GEMM_DEVICE,
                                           TENSOR_INPUTS,
                                           "fp32",
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           open_workspace,
                                           close_workspace,
                                           run};
