/* fp64 Tensor Cores: mma.m16n8k8, fed by the tensor copy engine. A block computes 128 x 128 of C,
 * each of its sixteen warps 32 x 32. It has a multiprocessor to itself and takes tile after tile,
 * and its warps meet at no barrier: one may be six stages ahead of another, storing C or already
 * at the next tile.
 *
 * All that the warps do besides multiplying is two reads of shared memory for a product: the
 * copies cost them nothing, and an 8-byte read brings an operand straight into
 * the register where the instruction wants it. Tiles have rows of 128 bytes with the 128-byte
 * swizzle, which exchanges 16-byte chunk c of row r for c ^ (r % 8). Half a warp reads 4 x 4
 * elements at a time; which row or column of the tile a lane calls its own is free as long as C
 * agrees, and is chosen so that the 16 lie in 16 different banks (see Place). */
#include "gemm/cuda/hopper.cuh"
#include "gemm/cuda/tensor_map.cuh"
#include "gemm/cuda/workspace.cuh"

using namespace md;

namespace {

constexpr int ROWS = 128, COLUMNS = 128, DEPTH = 16, STAGES = 6, BAND = 16;
constexpr int THREADS = 512; /* that multiply; one more warpgroup keeps the copy engine busy */
constexpr int M = 2, N = 4;  /* m16 and n8 tiles of a warp */
constexpr int A_BYTES = ROWS * DEPTH * 8, BOX_BYTES = DEPTH * 16 * 8; /* B: boxes 16 columns wide */
constexpr int STAGE_BYTES = A_BYTES + COLUMNS / 16 * BOX_BYTES;
constexpr int BYTES = STAGES * STAGE_BYTES + 1024; /* 1024: to align the stages by hand */

struct Job {
  Operands<double> g;
  int tiles, steps;
  bool vector; /* rows of C start on 16 bytes */
};

__device__ inline void mma(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* Where a lane's elements of a stage stand: byte offsets. Row g of an m16 tile is row
 * g % 4 * 2 + g / 4 of eight, column g of n8 tile p of a box is 4 p + g / 4 * 2 + g % 4 / 2 * 8 +
 * g % 2 of sixteen; depths are t and t + 4 of eight. */
struct Place {
  int a[2][2], b[2][2]; /* [depth 8 of 16][depth 4 of 8], [n8 tile of a box][depth 4 of 8] */
  __device__ Place(int y, int x, int lane) {
    const int g = lane / 4, t = lane % 4, row = g % 4 * 2 + g / 4;
#pragma unroll
    for (int l = 0; l < 2; l++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        a[l][e] = (y + row) * 128 + ((4 * l + 2 * e + t / 2) ^ row) * 16 + t % 2 * 8;
#pragma unroll
    for (int p = 0; p < 2; p++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        b[p][e] = A_BYTES + x / 16 * BOX_BYTES + (t + 4 * e) * 128 +
                  ((2 * p + g / 4 + g % 4 / 2 * 4) ^ (t + 4 * e)) * 16 + g % 2 * 8;
  }
};

__device__ inline void load_fragments(double (&a)[M][4], double (&b)[N][2], const char *stage,
                                      const Place &place, int l) {
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      a[i][e] = *(const double *)(stage + place.a[l][e / 2] + i * 2048 + e % 2 * 1024);
#pragma unroll
  for (int j = 0; j < N; j++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      b[j][e] = *(const double *)(stage + place.b[j % 2][e] + j / 2 * BOX_BYTES + l * 1024);
}

/* The ring of stages, and the barriers that say full and empty. */
struct Ring {
  uint32_t data, full, empty; /* shared addresses */
  int stage = 0, phase = 0;
  __device__ void next() {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
};

/* One thread loads all depths of the block's tiles, one after the other. */
__device__ void produce(const Job &job, const CUtensorMap *a, const CUtensorMap *b, Ring ring) {
  for (int t = blockIdx.x; t < job.tiles; t += gridDim.x) {
    const Tile tile = tile_of(t, job.g.m, job.g.n, ROWS, COLUMNS, BAND);
    for (int step = 0; step < job.steps; step++, ring.next()) {
      const uint32_t to = ring.data + ring.stage * STAGE_BYTES, full = ring.full + ring.stage * 8;
      barrier_wait(ring.empty + ring.stage * 8, ring.phase ^ 1);
      barrier_expect(full, STAGE_BYTES);
      tensor_copy(to, a, step * DEPTH, tile.row * ROWS, full);
      for (int j = 0; j < COLUMNS / 16; j++)
        tensor_copy(to + A_BYTES + j * BOX_BYTES, b, tile.column * COLUMNS + j * 16, step * DEPTH,
                    full);
    }
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

/* Lane l holds of each m16n8 tile the rows l / 4 and l / 4 + 8 and the columns 2 (l % 4) and the
 * next one, in the order of Place. */
__device__ inline void store_tile(const Job &job, Tile tile, int y, int x, int lane,
                                  const double (&sum)[M][N][4]) {
  const int row = tile.row * ROWS + y + lane / 4 % 4 * 2 + lane / 16;
  const int column = tile.column * COLUMNS + x + lane % 4 / 2 * 2 + lane % 2 * 8;
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < N; j++)
        store_pair(job, row + i * 16 + h * 8, column + j / 2 * 16 + j % 2 * 4, sum[i][j][2 * h],
                   sum[i][j][2 * h + 1]);
}

__device__ void consume(const Job &job, const char *stages, Ring ring) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / 4 * 32, x = warp % 4 * 32;
  const Place place(y, x, lane);
  for (int t = blockIdx.x; t < job.tiles; t += gridDim.x) {
    double sum[M][N][4] = {}, a[M][4], b[N][2];
    for (int step = 0; step < job.steps; step++, ring.next()) {
      barrier_wait(ring.full + ring.stage * 8, ring.phase);
      const char *stage = stages + ring.stage * STAGE_BYTES;
#pragma unroll
      for (int l = 0; l < 2; l++) {
        load_fragments(a, b, stage, place, l);
        if (l == 1) { /* all is read: hand the stage back before the last products */
          __syncwarp();
          if (lane == 0) barrier_arrive(ring.empty + ring.stage * 8);
        }
#pragma unroll
        for (int i = 0; i < M; i++)
#pragma unroll
          for (int j = 0; j < N; j++) mma(sum[i][j], a[i], b[j]);
      }
    }
    store_tile(job, tile_of(t, job.g.m, job.g.n, ROWS, COLUMNS, BAND), y, x, lane, sum);
  }
}

__global__ void __launch_bounds__(THREADS + 128, 1)
    multiply(const __grid_constant__ Job job, const __grid_constant__ CUtensorMap map_a,
             const __grid_constant__ CUtensorMap map_b) {
  extern __shared__ char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * STAGES];
  const uint32_t begin = (uint32_t)__cvta_generic_to_shared(shared);
  Ring ring;
  ring.data = (begin + 1023) / 1024 * 1024;
  ring.full = (uint32_t)__cvta_generic_to_shared(barriers), ring.empty = ring.full + STAGES * 8;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(ring.full + s * 8, 1);
      barrier_init(ring.empty + s * 8, THREADS / 32);
    }
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x < THREADS) {
    claim_registers<112>(); /* of the 5 x 96 that the block starts with: 4 x 112 + 24 fit */
    consume(job, shared + (ring.data - begin), ring);
  } else {
    release_registers<24>();
    if (threadIdx.x == THREADS) produce(job, &map_a, &map_b, ring);
  }
}

md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
              void *state, const void *a, const void *b, void *c) {
  unsigned tiles;
  MD_TRY(grid_for(context, p, ROWS, COLUMNS, &tiles));
  cudaStream_t stream = (cudaStream_t)launch->stream;
  Job job = {operands<double>(p, a, b, c), (int)tiles, (int)((p->k + DEPTH - 1) / DEPTH),
             aligned(c, p->ldc, 8, 16)};
  MD_TRY(pad_operands(context, (Workspace *)state, stream, 2, false, &job.g));
  CUtensorMap map_a, map_b;
  MD_TRY(tensor_map(context, &map_a, job.g.a, job.g.m, job.g.k, job.g.lda, ROWS));
  MD_TRY(tensor_map(context, &map_b, job.g.b, job.g.k, job.g.n, job.g.ldb, DEPTH));
  MD_TRY(status_of(
      context, cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES),
      "reserve shared memory for dmma"));
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const int blocks = min(processors, job.tiles);
  multiply<<<blocks, THREADS + 128, BYTES, stream>>>(job, map_a, map_b);
  return launched(context, "dmma");
}

} // namespace

const md_gemm_kernel md_gemm_dmma = {"dmma",
                                     "fp64 Tensor Cores, m16n8k8, tensor copies, tile after tile",
                                     MD_GEMM_DEVICE,
                                     DOUBLE,
                                     "fp64",
                                     nullptr,
                                     nullptr,
                                     needs_hopper,
                                     open_workspace,
                                     close_workspace,
                                     run};
