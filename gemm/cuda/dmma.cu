/* fp64 Tensor Cores: mma.m16n8k8. A block computes 128 x 64 of C, 64 x 32 per warp; two blocks
 * share a multiprocessor. A block takes tile after tile, and its loads by cp.async run on into the
 * next tile: nothing waits while C is stored.
 *
 * Which index of depth goes to which lane is free as long as A and B agree, and so is the order of
 * columns as long as C agrees. Here lane l takes depths 2 (l % 4) and the next one, and columns
 * 2 (l / 4) and the next one of a pair of n8 tiles: fragments of A and B come in 16-byte reads, and
 * a lane ends up with four neighbours of C. */
#include "gemm/cuda/async.cuh"
#include "gemm/cuda/launch.cuh"

using namespace md;

namespace {

constexpr int ROWS = 128, COLUMNS = 64, DEPTH = 16, STAGES = 3, THREADS = 128, BAND = 16;
constexpr int LDA = DEPTH + 8, LDB = COLUMNS + 2; /* paddings: quarter warps hit all banks */
constexpr int M = 4, N = 4;                       /* m16 and n8 tiles of a warp */
constexpr int STAGE = ROWS * LDA + DEPTH * LDB, BYTES = STAGES * STAGE * (int)sizeof(double);

struct Job {
  Operands<double> g;
  int tiles, steps;
  bool vector; /* rows of C start on 16 bytes */
};

/* Not volatile: the compiler is to spread address arithmetic and copies between products. */
__device__ inline void mma(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* The stream of stages that a block loads: all depths of its tiles, one after the other. */
template <int WIDTH> struct Stream {
  int tile, step = 0, row = 0, column = 0;
  __device__ Stream(const Job &job) : tile(blockIdx.x) { place(job); }
  __device__ void place(const Job &job) {
    const Tile t = tile_of(tile, job.g.m, job.g.n, ROWS, COLUMNS, BAND);
    row = t.row * ROWS, column = t.column * COLUMNS;
  }
  /* Queues the next stage at shared address `to` as one group, an empty one after the end. */
  __device__ void load(const Job &job, uint32_t to) {
    if (tile < job.tiles) {
      const Operands<double> &g = job.g;
      copy_tile_async<double, ROWS, DEPTH, LDA, THREADS, WIDTH>(to, g.a, g.lda, g.m, g.k, row,
                                                                step * DEPTH);
      copy_tile_async<double, DEPTH, COLUMNS, LDB, THREADS, WIDTH>(
          to + ROWS * LDA * (int)sizeof(double), g.b, g.ldb, g.k, g.n, step * DEPTH, column);
      if (++step == job.steps) {
        step = 0, tile += gridDim.x;
        place(job);
      }
    }
    commit_group();
  }
};

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

__device__ inline void store_pair(const Job &job, int i, int j, double x, double y) {
  const Operands<double> &g = job.g;
  if (i >= g.m || j >= g.n) return;
  double *c = g.c + i * g.ldc + j;
  if (job.vector && j + 2 <= g.n) {
    double2 r = {g.alpha * x, g.alpha * y};
    if (g.beta != 0.0) {
      const double2 old = *(const double2 *)c;
      r.x += g.beta * old.x, r.y += g.beta * old.y;
    }
    *(double2 *)c = r;
    return;
  }
  store(c, x, g.alpha, g.beta);
  if (j + 1 < g.n) store(c + 1, y, g.alpha, g.beta);
}

/* Lanes 2 q and 2 q + 1 hold columns j .. j+3 and j+4 .. j+7 of a row: they swap halves, so that a
 * store of the two fills a 32-byte sector. j: of lane 2 q. */
__device__ inline void store_eight(const Job &job, int i, int j, double v0, double v1, double v2,
                                   double v3) {
  const bool odd = threadIdx.x % 2;
  const double x = __shfl_xor_sync(0xffffffffu, odd ? v0 : v2, 1);
  const double y = __shfl_xor_sync(0xffffffffu, odd ? v1 : v3, 1);
  store_pair(job, i, j + odd * 2, odd ? x : v0, odd ? y : v1);
  store_pair(job, i, j + 4 + odd * 2, odd ? v2 : x, odd ? v3 : y);
}

template <int WIDTH>
__global__ void __launch_bounds__(THREADS, 2) multiply(const __grid_constant__ Job job) {
  extern __shared__ __align__(16) double shared[];
  const uint32_t base = shared_address(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / 2 * 64 + lane / 4, x = warp % 2 * 32;
  const double *as = shared + y * LDA + lane % 4 * 2;
  const double *bs = shared + ROWS * LDA + lane % 4 * 2 * LDB + x + lane / 4 * 2;
  Stream<WIDTH> stream(job);
  for (int s = 0; s < STAGES - 1; s++) stream.load(job, base + s * STAGE * 8);
  int read = 0, write = STAGES - 1;
  for (int t = blockIdx.x; t < job.tiles; t += gridDim.x) {
    double sum[M][N][4] = {}, a[2][M][4], b[2][N][2];
    for (int step = 0; step < job.steps; step++) {
      wait_group<STAGES - 2>();
      __syncthreads(); /* this stage is there, and all have done with the one before */
      load_fragments(a[0], b[0], as + read * STAGE, bs + read * STAGE, 0);
      stream.load(job, base + write * STAGE * 8);
      load_fragments(a[1], b[1], as + read * STAGE, bs + read * STAGE, 8);
#pragma unroll
      for (int l = 0; l < 2; l++)
#pragma unroll
        for (int i = 0; i < M; i++)
#pragma unroll
          for (int j = 0; j < N; j++) mma(sum[i][j], a[l][i], b[l][j]);
      read = read + 1 < STAGES ? read + 1 : 0;
      write = write + 1 < STAGES ? write + 1 : 0;
    }
    const Tile tile = tile_of(t, job.g.m, job.g.n, ROWS, COLUMNS, BAND);
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < N; j += 2)
          store_eight(job, tile.row * ROWS + y + i * 16 + h * 8,
                      tile.column * COLUMNS + x + j * 8 + lane % 4 / 2 * 8, sum[i][j][2 * h],
                      sum[i][j + 1][2 * h], sum[i][j][2 * h + 1], sum[i][j + 1][2 * h + 1]);
  }
  wait_group<0>();
}

md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch, void *,
              const void *a, const void *b, void *c) {
  unsigned tiles;
  MD_TRY(grid_for(context, p, ROWS, COLUMNS, &tiles));
  const Job job = {operands<double>(p, a, b, c), (int)tiles, (int)((p->k + DEPTH - 1) / DEPTH),
                   aligned(c, p->ldc, 8, 16)};
  const bool wide = aligned(a, p->lda, 8, 16) && aligned(b, p->ldb, 8, 16);
  const auto kernel = wide ? multiply<2> : multiply<1>;
  MD_TRY(status_of(context,
                   cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES),
                   "reserve shared memory for dmma"));
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const int blocks = min(2 * processors, job.tiles);
  kernel<<<blocks, THREADS, BYTES, (cudaStream_t)launch->stream>>>(job);
  return launched(context, "dmma");
}

} // namespace

const md_gemm_kernel md_gemm_dmma = stateless(
    "dmma", "fp64 Tensor Cores, m16n8k8, cp.async stages, tile after tile", DOUBLE, "fp64", run);
