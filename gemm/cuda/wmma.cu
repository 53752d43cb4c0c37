/* WMMA: Tensor Cores by fragments of 16 x 16 tiles of C in fp32, row-major A and B, 16 deep for
 * 16-bit inputs and 8 for TF32. */
#include "base/shared_copy.cuh"
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/launch.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace md;
using namespace nvcuda;

namespace {

enum : unsigned { TENSOR_INPUTS = 1u << MD_GEMM_HALF | 1u << MD_GEMM_BF16 | 1u << MD_GEMM_TF32 };

/* Fragments from shared memory. For fp16 the compiler turns load_matrix_sync into LDSM, but for
 * bf16 and TF32 it emits generic loads of single words; the PTX instruction that names the address
 * space does not. Registers are those of the fragment's storage. */
#define MD_WMMA_LOAD(operand, shape, type)                                                         \
  asm volatile("wmma.load." operand ".sync.aligned.row." shape ".shared." type                     \
               " {%0, %1, %2, %3}, [%4], %5;"                                                      \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                                    \
               : "r"(shared_address(from)), "r"(ld))

template <class Use, int K, class T>
__device__ inline void load_shared(wmma::fragment<Use, 16, 16, K, T, wmma::row_major> &fragment,
                                   const void *from, int ld) {
  constexpr bool a = std::is_same<Use, wmma::matrix_a>::value;
  uint32_t *x = (uint32_t *)fragment.x;
  if constexpr (std::is_same<T, __half>::value)
    wmma::load_matrix_sync(fragment, (const __half *)from, ld);
  else if constexpr (std::is_same<T, __nv_bfloat16>::value && a)
    MD_WMMA_LOAD("a", "m16n16k16", "bf16");
  else if constexpr (std::is_same<T, __nv_bfloat16>::value)
    MD_WMMA_LOAD("b", "m16n16k16", "bf16");
  else if constexpr (a)
    MD_WMMA_LOAD("a", "m16n16k8", "tf32");
  else
    MD_WMMA_LOAD("b", "m16n16k8", "tf32");
}
#undef MD_WMMA_LOAD

/* TF32 operands are rounded; the hardware would cut them off. */
template <class Fragment> __device__ inline void round_tf32(Fragment &fragment) {
#pragma unroll
  for (int e = 0; e < fragment.num_elements; e++)
    fragment.x[e] = wmma::__float_to_tf32(fragment.x[e]);
}

template <class T> struct Fragments {
  static constexpr bool tf32 = std::is_same<T, wmma::precision::tf32>::value;
  static constexpr int DEPTH = tf32 ? 8 : 16;
  using Storage = typename std::conditional<tf32, float, T>::type;
  using A = wmma::fragment<wmma::matrix_a, 16, 16, DEPTH, T, wmma::row_major>;
  using B = wmma::fragment<wmma::matrix_b, 16, 16, DEPTH, T, wmma::row_major>;
  using Sum = wmma::fragment<wmma::accumulator, 16, 16, DEPTH, float>;

  template <class Fragment>
  static __device__ void load(Fragment &fragment, const Storage *from, int ld) {
    wmma::load_matrix_sync(fragment, from, ld);
    if constexpr (tf32) round_tf32(fragment);
  }
  template <class Fragment>
  static __device__ void load_from_shared(Fragment &fragment, const Storage *from, int ld) {
    load_shared(fragment, from, ld);
    if constexpr (tf32) round_tf32(fragment);
  }
};

using Run = decltype(md_gemm_kernel::run);

/* md_gemm_kernel.run by the type of the inputs. */
template <Run of_half, Run of_bf16, Run of_tf32>
md_status run_inputs(md_context *context, const md_gemm_call *call) {
  const md_gemm_precision precision = call->problem->precision;
  const Run run = precision == MD_GEMM_HALF   ? of_half
                  : precision == MD_GEMM_BF16 ? of_bf16
                                              : of_tf32;
  return run(context, call);
}

/* Tensor Cores in their simplest form: a warp computes one 16 x 16 tile of C, its fragments of A
 * and B come straight from global memory. Operands that are no multiple of the tile are copied
 * into padded ones first. */
template <class T> __global__ void simple(Operands<typename Fragments<T>::Storage, float> g) {
  using F = Fragments<T>;
  __shared__ float out[8][16 * 16]; /* a tile per warp */
  const int warp = threadIdx.x / 32;
  const int across = (g.n + 15) / 16, tile = blockIdx.x * 8 + warp;
  const int i = tile / across * 16, j = tile % across * 16;
  if (i >= g.m) return;
  typename F::Sum sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int l = 0; l < g.k; l += F::DEPTH) {
    typename F::A a;
    typename F::B b;
    F::load(a, g.a + i * g.lda + l, (int)g.lda);
    F::load(b, g.b + l * g.ldb + j, (int)g.ldb);
    wmma::mma_sync(sum, a, b, sum);
  }
  wmma::store_matrix_sync(out[warp], sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int e = threadIdx.x % 32; e < 256; e += 32)
    if (i + e / 16 < g.m && j + e % 16 < g.n)
      store(g.c + (i + e / 16) * g.ldc + j + e % 16, out[warp][e], g.alpha, g.beta);
}

template <class T> md_status run_simple(md_context *context, const md_gemm_call *call) {
  using S = typename Fragments<T>::Storage;
  unsigned tiles;
  MD_TRY(grid_for(context, call->problem, 16, 16, &tiles));
  const cudaStream_t stream = stream_of(call);
  Operands<S, float> g = operands<S, float>(call);
  MD_TRY(pad_operands(context, (Workspace *)call->state, stream, 16, true, &g));
  simple<T><<<(tiles + 7) / 8, 256, 0, stream>>>(g);
  return md_cuda_launched(context, "GEMM kernel wmma_simple");
}

/* WMMA with shared memory: a block computes 128 x 256 of C, each of eight warps 64 x 64 as 4 x 4
 * fragments, so that a fragment of A or B that was read once enters four products. Tiles come by
 * cp.async, three stages ahead; rows in shared memory are padded by 16 bytes, which spreads the
 * rows of a fragment over all banks. All eight warps meet at one barrier per stage: whatever they
 * would do there together would leave the Tensor Cores idle, so that copies stand between products
 * and the first fragments of the next stage are read before the last products of this one. */
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
  for (int e = 0; e < SIDE * SIDE; e++) wmma::fill_fragment(sum[e / SIDE][e % SIDE], 0.0f);

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
      for (int e = 0; e < SIDE * SIDE; e++)
        wmma::mma_sync(sum[e / SIDE][e % SIDE], slice[l % 2].a[e / SIDE], slice[l % 2].b[e % SIDE],
                       sum[e / SIDE][e % SIDE]);
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

template <class T> md_status run_tiled(md_context *context, const md_gemm_call *call) {
  using S = Shape<T>;
  unsigned blocks;
  MD_TRY(grid_for(context, call->problem, ROWS, COLUMNS, &blocks));
  const cudaStream_t stream = stream_of(call);
  auto g = operands<typename S::E, float>(call);
  MD_TRY(pad_operands(context, (Workspace *)call->state, stream, S::WIDTH, false, &g));
  MD_TRY(md_cuda_allow_shared(context, tiled<T>, S::BYTES,
                              "shared memory for GEMM kernel wmma_tiled"));
  tiled<T><<<blocks, THREADS, S::BYTES, stream>>>(g, aligned(g.c, g.ldc, 4, 16));
  return md_cuda_launched(context, "GEMM kernel wmma_tiled");
}

/* Half takes most. */
md_status find_shared(md_context *context) {
  constexpr int bytes = Shape<__half>::BYTES;
  static_assert(bytes >= Shape<__nv_bfloat16>::BYTES &&
                bytes >= Shape<wmma::precision::tf32>::BYTES);
  MD_TRY(md_device_open(context));
  if (context->gpu.block_shared_bytes >= bytes) return MD_OK;
  return md_fail(
      context, MD_ENVIRONMENT,
      "GEMM kernel wmma_tiled needs %d bytes of shared memory for a block, the GPU of rank "
      "%d has %d; take wmma_simple or cublas",
      bytes, context->rank, context->gpu.block_shared_bytes);
}

} // namespace

const md_gemm_kernel md_gemm_wmma_simple = entry(
    "wmma_simple", TENSOR_INPUTS,
    run_inputs<run_simple<__half>, run_simple<__nv_bfloat16>, run_simple<wmma::precision::tf32>>,
    nullptr, open_workspace, close_workspace);
const md_gemm_kernel md_gemm_wmma_tiled =
    entry("wmma_tiled", TENSOR_INPUTS,
          run_inputs<run_tiled<__half>, run_tiled<__nv_bfloat16>, run_tiled<wmma::precision::tf32>>,
          nullptr, open_workspace, close_workspace, find_shared);
