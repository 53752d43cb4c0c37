/* Tensor Cores in their simplest form: a warp computes one 16 x 16 tile of C, its fragments of A
 * and B come straight from global memory. Operands that are no multiple of the tile are copied
 * into padded ones first. */
#include "gemm/cuda/wmma.cuh"

using namespace md;
using namespace nvcuda;

template <class T>
static __global__ void simple(Operands<typename Fragments<T>::Storage, float> g) {
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

template <class T>
static md_status run_type(md_context *context, const md_gemm_problem *p,
                          const md_gemm_launch *launch, void *state, const void *a, const void *b,
                          void *c) {
  using S = typename Fragments<T>::Storage;
  unsigned tiles;
  MD_TRY(grid_for(context, p, 16, 16, &tiles));
  cudaStream_t stream = (cudaStream_t)launch->stream;
  Operands<S, float> g = operands<S, float>(p, a, b, c);
  MD_TRY(pad_operands(context, (Workspace *)state, stream, 16, true, &g));
  simple<T><<<(tiles + 7) / 8, 256, 0, stream>>>(g);
  return md_cuda_launched(context, "GEMM kernel wmma_simple");
}

const md_gemm_kernel md_gemm_wmma_simple = entry(
    "wmma_simple", "a 16x16 tile per warp, straight from global memory", TENSOR_INPUTS, "fp32",
    run_inputs<run_type<__half>, run_type<__nv_bfloat16>, run_type<wmma::precision::tf32>>, nullptr,
    open_workspace, close_workspace);
