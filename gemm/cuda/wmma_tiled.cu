/* WMMA with shared memory: a block computes 128 x 256 of C, each of eight warps 64 x 64 as 4 x 4
 * fragments, so that a fragment of A or B that was read once enters four products. Tiles come by
 * cp.async, three stages ahead; rows in shared memory are padded by 16 bytes, which spreads the
 * rows of a fragment over all banks. All eight warps meet at one barrier per stage: whatever they
 * would do there together would leave the Tensor Cores idle, so that copies stand between products
 * and the first fragments of the next stage are read before the last products of this one. */
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/wmma.cuh"

using namespace md;
using namespace nvcuda;

namespace {

constexpr int ROWS = 128, COLUMNS = 256, WARP = 64, THREADS = 256, BAND = 8, SIDE = WARP / 16;
constexpr int STAGES = 4;

template <class T> struct Shape {
  using E = typename Fragments<T>::Storage;
  static constexpr int WIDTH = 16 / (int)sizeof(E); /* elements of a 16-byte copy */
  static constexpr int DEPTH = 8 * WIDTH, SLICES = DEPTH / Fragments<T>::DEPTH;
  static constexpr int LDA = DEPTH + WIDTH, LDB = COLUMNS + WIDTH;
  static constexpr int STAGE = ROWS * LDA + DEPTH * LDB; /* A, B behind it */
  static constexpr int BYTES = STAGES * STAGE * (int)sizeof(E);
};

/* What a thread copies of each stage. */
template <class T> struct Stream {
  using S = Shape<T>;
  using E = typename S::E;
  TileCopy<E, ROWS, S::DEPTH, S::LDA, THREADS, S::WIDTH> a;
  TileCopy<E, S::DEPTH, COLUMNS, S::LDB, THREADS, S::WIDTH> b;
  int64_t ldb;
  __device__ Stream(const Operands<E, float> &g, int row, int column)
      : a(g.a, g.lda, g.m, g.k, row, 0), b(g.b, g.ldb, g.k, g.n, 0, column), ldb(g.ldb) {}
  /* A part of the next stage; the last one closes the group and moves on. */
  __device__ void load(uint32_t to, int part, int parts) {
    a.issue(to, part, parts);
    b.issue(to + ROWS * S::LDA * (int)sizeof(E), part, parts);
    if (part + 1 < parts) return;
    commit_group();
    a.move_columns(S::DEPTH);
    b.move_rows(S::DEPTH, ldb);
  }
};

template <class T> struct Slice { /* 16-bit: 16 of the depth, TF32: 8 */
  typename Fragments<T>::A a[SIDE];
  typename Fragments<T>::B b[SIDE];
  /* as, bs: this warp's rows and columns of the stage. */
  __device__ void load(const typename Shape<T>::E *as, const typename Shape<T>::E *bs, int l) {
#pragma unroll
    for (int i = 0; i < SIDE; i++)
      Fragments<T>::load_from_shared(a[i], as + i * 16 * Shape<T>::LDA + l * Fragments<T>::DEPTH,
                                     Shape<T>::LDA);
#pragma unroll
    for (int j = 0; j < SIDE; j++)
      Fragments<T>::load_from_shared(b[j], bs + l * Fragments<T>::DEPTH * Shape<T>::LDB + j * 16,
                                     Shape<T>::LDB);
  }
};

/* Through shared memory, a 16 x 16 tile per warp at a time: fragments hide their layout. */
template <class T>
__device__ inline void store_tile(const Operands<typename Shape<T>::E, float> &g,
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
    tiled(Operands<typename Shape<T>::E, float> g, bool vector) {
  using S = Shape<T>;
  using E = typename S::E;
  extern __shared__ __align__(128) char shared[];
  const uint32_t base = shared_address(shared);
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, ROWS, COLUMNS, BAND);
  const int row = tile.row * ROWS, column = tile.column * COLUMNS, warp = threadIdx.x / 32;
  const int y = warp / 4 * WARP, x = warp % 4 * WARP;
  const int steps = (g.k + S::DEPTH - 1) / S::DEPTH;
  Stream<T> stream(g, row, column);
  for (int s = 0; s < STAGES - 1; s++) stream.load(base + s * S::STAGE * (int)sizeof(E), 0, 1);
  typename Fragments<T>::Sum sum[SIDE][SIDE];
#pragma unroll
  for (int i = 0; i < SIDE; i++)
#pragma unroll
    for (int j = 0; j < SIDE; j++) wmma::fill_fragment(sum[i][j], 0.0f);

  Slice<T> slice[2];
  const E *as = (const E *)shared + y * S::LDA, *bs = (const E *)shared + ROWS * S::LDA + x;
  int read = 0, write = STAGES - 1;
  wait_group<STAGES - 2>();
  __syncthreads();
  slice[0].load(as, bs, 0);
  for (int step = 0; step < steps; step++) {
#pragma unroll
    for (int l = 0; l < S::SLICES; l++) {
      if (l == S::SLICES - 1) { /* the next stage must be there, this one is used up */
        wait_group<STAGES - 2>();
        __syncthreads();
        read = read + 1 < STAGES ? read + 1 : 0;
      }
      slice[(l + 1) % 2].load(as + read * S::STAGE, bs + read * S::STAGE, (l + 1) % S::SLICES);
#pragma unroll
      for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++)
          wmma::mma_sync(sum[i][j], slice[l % 2].a[i], slice[l % 2].b[j], sum[i][j]);
      if (l < S::SLICES - 1)
        stream.load(base + write * S::STAGE * (int)sizeof(E), l, S::SLICES - 1);
    }
    write = write + 1 < STAGES ? write + 1 : 0;
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
  auto g = operands<typename S::E, float>(p, a, b, c);
  MD_TRY(pad_operands(context, (Workspace *)state, stream, S::WIDTH, false, &g));
  MD_TRY(md_cuda_status(
      context,
      cudaFuncSetAttribute(tiled<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::BYTES),
      "shared memory for GEMM kernel wmma_tiled"));
  tiled<T><<<blocks, THREADS, S::BYTES, stream>>>(g, aligned(c, p->ldc, 4, 16));
  return md_cuda_launched(context, "GEMM kernel wmma_tiled");
}

} // namespace

const md_gemm_kernel md_gemm_wmma_tiled = entry(
    "wmma_tiled", "shared memory, 4x4 fragments per warp, cp.async stages", TENSOR_INPUTS, "fp32",
    run_inputs<run_type<__half>, run_type<__nv_bfloat16>, run_type<wmma::precision::tf32>>, nullptr,
    open_workspace, close_workspace);
