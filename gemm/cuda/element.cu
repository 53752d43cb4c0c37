/* The steps of the ladder with one thread for one element of C.
 * K0: neighbours of a warp walk down a column, so that every load of A and every store of C touches
 * 32 rows.
 * K1: they walk along a row, so that loads of B and stores of C are whole cache lines, and a load
 * of A is one broadcast. K2: a block's tiles of A and B are read once into shared memory and used
 * by all of its threads; the block is ROWS x COLUMNS, the tile as deep as its short side. */
#include "gemm/cuda/launch.cuh"

using namespace md;

template <class T, bool ALONG_ROW> static __global__ void element(Operands<T> g) {
  const int across = (g.n + 15) / 16;
  const int i = blockIdx.x / across * 16 + (ALONG_ROW ? threadIdx.y : threadIdx.x);
  const int j = blockIdx.x % across * 16 + (ALONG_ROW ? threadIdx.x : threadIdx.y);
  if (i >= g.m || j >= g.n) return;
  T sum = 0;
  for (int l = 0; l < g.k; l++) sum += g.a[i * g.lda + l] * g.b[l * g.ldb + j];
  store(g.c + i * g.ldc + j, sum, g.alpha, g.beta);
}

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

/* A step for both types of C. */
template <int STEP, auto of_single, auto of_double, int ROWS, int COLUMNS>
static md_status run_types(md_context *context, const md_gemm_call *call) {
  return call->problem->precision == MD_GEMM_DOUBLE
             ? run_step<STEP, double, of_double, ROWS, COLUMNS, COLUMNS, ROWS>(context, call)
             : run_step<STEP, float, of_single, ROWS, COLUMNS, COLUMNS, ROWS>(context, call);
}

static const char *const variants[] = {"16x16", "8x8", "32x32", "16x32", "8x16", nullptr};

template <int ROWS, int COLUMNS>
constexpr auto tiled =
    run_types<2, tile<float, ROWS, COLUMNS>, tile<double, ROWS, COLUMNS>, ROWS, COLUMNS>;

static md_status run_tile(md_context *context, const md_gemm_call *call) {
  constexpr decltype(md_gemm_kernel::run) of[] = {tiled<16, 16>, tiled<8, 8>, tiled<32, 32>,
                                                  tiled<16, 32>, tiled<8, 16>};
  return of[call->launch->variant](context, call);
}

const md_gemm_kernel md_gemm_k0 = entry(
    "k0", SINGLE | DOUBLE, run_types<0, element<float, false>, element<double, false>, 16, 16>);
const md_gemm_kernel md_gemm_k1 =
    entry("k1", SINGLE | DOUBLE, run_types<1, element<float, true>, element<double, true>, 16, 16>);
const md_gemm_kernel md_gemm_k2 = entry("k2", SINGLE | DOUBLE, run_tile, variants);
