/* K1: one thread, one element of C; neighbours of a warp walk along a row, so that loads of B and
 * stores of C are whole cache lines, and a load of A is one broadcast. */
#include "gemm/cuda/launch.cuh"

using namespace md;

template <class T> static __global__ void coalesced(Operands<T> g) {
  const int across = (g.n + 15) / 16;
  const int i = blockIdx.x / across * 16 + threadIdx.y, j = blockIdx.x % across * 16 + threadIdx.x;
  if (i >= g.m || j >= g.n) return;
  T sum = 0;
  for (int l = 0; l < g.k; l++) sum += g.a[i * g.lda + l] * g.b[l * g.ldb + j];
  store(g.c + i * g.ldc + j, sum, g.alpha, g.beta);
}

static md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *, const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, 16, 16, &blocks));
  const dim3 block(16, 16);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (p->precision == MD_GEMM_DOUBLE)
    coalesced<<<blocks, block, 0, stream>>>(operands<double>(p, a, b, c));
  else
    coalesced<<<blocks, block, 0, stream>>>(operands<float>(p, a, b, c));
  return md_cuda_launched(context, "GEMM kernel k1");
}

const md_gemm_kernel md_gemm_k1 =
    stateless("k1", "one thread per element, a warp walks along a row: coalesced", SINGLE | DOUBLE,
              "as inputs", run);
