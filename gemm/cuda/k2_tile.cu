/* K2: a block's tiles of A and B are read once into shared memory and used by all of its threads.
 * One thread per element of C; the block is ROWS x COLUMNS, the tile as deep as its short side. */
#include "gemm/cuda/launch.cuh"

using namespace md;

template <class T, int ROWS, int COLUMNS> static __global__ void tile(Operands<T> g) {
  constexpr int DEPTH = ROWS < COLUMNS ? ROWS : COLUMNS;
  __shared__ T as[ROWS][DEPTH], bs[DEPTH][COLUMNS];
  const int across = (g.n + COLUMNS - 1) / COLUMNS;
  const int y = threadIdx.y, x = threadIdx.x;
  const int i = blockIdx.x / across * ROWS + y, j = blockIdx.x % across * COLUMNS + x;
  T sum = 0;
  for (int l0 = 0; l0 < g.k; l0 += DEPTH) {
    if (x < DEPTH) as[y][x] = at(g.a, g.lda, g.m, g.k, i, l0 + x);
    if (y < DEPTH) bs[y][x] = at(g.b, g.ldb, g.k, g.n, l0 + y, j);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < DEPTH; l++) sum += as[y][l] * bs[l][x];
    __syncthreads();
  }
  if (i < g.m && j < g.n) store(g.c + i * g.ldc + j, sum, g.alpha, g.beta);
}

template <class T, int ROWS, int COLUMNS>
static md_status launch_tile(md_context *context, const md_gemm_problem *p, cudaStream_t stream,
                             const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, ROWS, COLUMNS, &blocks));
  tile<T, ROWS, COLUMNS><<<blocks, dim3(COLUMNS, ROWS), 0, stream>>>(operands<T>(p, a, b, c));
  return md_cuda_launched(context, "GEMM kernel k2");
}

static const char *const variants[] = {"16x16", "8x8", "32x32", "16x32", "8x16", nullptr};

template <class T>
static md_status run_type(md_context *context, const md_gemm_problem *p,
                          const md_gemm_launch *launch, const void *a, const void *b, void *c) {
  cudaStream_t stream = (cudaStream_t)launch->stream;
  switch (launch->variant) {
  case 1:
    return launch_tile<T, 8, 8>(context, p, stream, a, b, c);
  case 2:
    return launch_tile<T, 32, 32>(context, p, stream, a, b, c);
  case 3:
    return launch_tile<T, 16, 32>(context, p, stream, a, b, c);
  case 4:
    return launch_tile<T, 8, 16>(context, p, stream, a, b, c);
  default:
    return launch_tile<T, 16, 16>(context, p, stream, a, b, c);
  }
}

static md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *, const void *a, const void *b, void *c) {
  return p->precision == MD_GEMM_DOUBLE ? run_type<double>(context, p, launch, a, b, c)
                                        : run_type<float>(context, p, launch, a, b, c);
}

const md_gemm_kernel md_gemm_k2 = stateless("k2", "tiles of A and B in shared memory",
                                            SINGLE | DOUBLE, "as inputs", run, variants);
