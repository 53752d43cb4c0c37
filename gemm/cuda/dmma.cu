/* fp64 Tensor Cores: mma.m16n8k8, 128 x 128 of C per block, 64 x 32 per warp, the pipeline of K7.
 *
 * Which index of depth goes to which lane is free as long as A and B agree, and so is the order of
 * columns as long as C agrees. Here lane l takes depths 2 (l % 4) and the next one, and columns
 * 2 (l / 4) and the next one of a pair of n8 tiles: fragments of A and B come in 16-byte reads, and
 * a lane ends up with four neighbours of C. */
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/launch.cuh"

using namespace md;

namespace {

constexpr int ROWS = 128, COLUMNS = 128, DEPTH = 16, STAGES = 4, THREADS = 256, BAND = 8;
constexpr int LDA = DEPTH + 8, LDB = COLUMNS + 2; /* paddings: quarter warps hit all banks */
constexpr int M = 4, N = 4;                       /* m16 and n8 tiles of a warp */
constexpr int STAGE = ROWS * LDA + DEPTH * LDB, BYTES = STAGES * STAGE * (int)sizeof(double);

__device__ inline void mma(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

template <int WIDTH>
__device__ inline void load_stage(uint32_t to, const Operands<double> &g, int row, int column,
                                  int l0) {
  copy_tile_async<double, ROWS, DEPTH, LDA, THREADS, WIDTH>(to, g.a, g.lda, g.m, g.k, row, l0);
  copy_tile_async<double, DEPTH, COLUMNS, LDB, THREADS, WIDTH>(
      to + ROWS * LDA * (int)sizeof(double), g.b, g.ldb, g.k, g.n, l0, column);
}

/* as, bs: this lane's first element. */
__device__ inline void load_fragments(double (&a)[M][4], double (&b)[N][2], const double *as,
                                      const double *bs, int l) {
#pragma unroll
  for (int i = 0; i < M; i++) {
    const double2 upper = *(const double2 *)&as[i * 16 * LDA + l];
    const double2 lower = *(const double2 *)&as[(i * 16 + 8) * LDA + l];
    a[i][0] = upper.x, a[i][1] = lower.x, a[i][2] = upper.y, a[i][3] = lower.y;
  }
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    const double2 first = *(const double2 *)&bs[l * LDB + j * 8];
    const double2 second = *(const double2 *)&bs[(l + 1) * LDB + j * 8];
    b[j][0] = first.x, b[j + 1][0] = first.y, b[j][1] = second.x, b[j + 1][1] = second.y;
  }
}

__device__ inline void store_four(const Operands<double> &g, bool vector, int i, int j,
                                  const double (&v)[4]) {
  if (i >= g.m) return;
  double *c = g.c + i * g.ldc + j;
  if (vector && j + 4 <= g.n) {
    double2 r[2] = {{g.alpha * v[0], g.alpha * v[1]}, {g.alpha * v[2], g.alpha * v[3]}};
    for (int q = 0; q < 2; q++) {
      if (g.beta != 0.0) {
        const double2 old = ((double2 *)c)[q];
        r[q].x += g.beta * old.x, r[q].y += g.beta * old.y;
      }
      ((double2 *)c)[q] = r[q];
    }
    return;
  }
  for (int q = 0; q < 4; q++)
    if (j + q < g.n) store(c + q, v[q], g.alpha, g.beta);
}

template <int WIDTH>
__global__ void __launch_bounds__(THREADS, 1) multiply(Operands<double> g, bool vector) {
  extern __shared__ __align__(16) double shared[];
  const uint32_t base = shared_address(shared);
  const Tile tile = tile_of(blockIdx.x, g.m, g.n, ROWS, COLUMNS, BAND);
  const int row = tile.row * ROWS, column = tile.column * COLUMNS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / 4 * 64 + lane / 4, x = warp % 4 * 32;
  const int steps = (g.k + DEPTH - 1) / DEPTH;
  for (int s = 0; s < STAGES - 1; s++) {
    load_stage<WIDTH>(base + s * STAGE * 8, g, row, column, s * DEPTH);
    commit_group();
  }
  wait_group<STAGES - 2>();
  __syncthreads();

  double sum[M][N][4] = {}, a[2][M][4], b[2][N][2];
  const double *as = shared + y * LDA + lane % 4 * 2;
  const double *bs = shared + ROWS * LDA + lane % 4 * 2 * LDB + x + lane / 4 * 2;
  int read = 0, write = STAGES - 1;
  load_fragments(a[0], b[0], as, bs, 0);
  for (int step = 0; step < steps; step++) {
#pragma unroll
    for (int l = 0; l < DEPTH; l += 8) {
      if (l == DEPTH - 8) { /* the next stage must be there, the last one is free */
        wait_group<STAGES - 2>();
        __syncthreads();
        read = (read + 1) % STAGES;
      }
      load_fragments(a[(l / 8 + 1) % 2], b[(l / 8 + 1) % 2], as + read * STAGE, bs + read * STAGE,
                     (l + 8) % DEPTH);
      if (l == 0) {
        load_stage<WIDTH>(base + write * STAGE * 8, g, row, column, (step + STAGES - 1) * DEPTH);
        commit_group();
        write = (write + 1) % STAGES;
      }
#pragma unroll
      for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++) mma(sum[i][j], a[l / 8 % 2][i], b[l / 8 % 2][j]);
    }
  }
  wait_group<0>();
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < N; j += 2)
        store_four(g, vector, row + y + i * 16 + h * 8, column + x + j * 8 + lane % 4 * 4,
                   {sum[i][j][2 * h], sum[i][j + 1][2 * h], sum[i][j][2 * h + 1],
                    sum[i][j + 1][2 * h + 1]});
}

md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch, void *,
              const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, ROWS, COLUMNS, &blocks));
  const bool wide = aligned(a, p->lda, 8, 16) && aligned(b, p->ldb, 8, 16);
  const auto kernel = wide ? multiply<2> : multiply<1>;
  MD_TRY(status_of(context,
                   cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES),
                   "reserve shared memory for dmma"));
  kernel<<<blocks, THREADS, BYTES, (cudaStream_t)launch->stream>>>(operands<double>(p, a, b, c),
                                                                   aligned(c, p->ldc, 8, 16));
  return launched(context, "dmma");
}

} // namespace

const md_gemm_kernel md_gemm_dmma =
    stateless("dmma", "fp64 Tensor Cores, m16n8k8, cp.async stages", DOUBLE, "fp64", run);
