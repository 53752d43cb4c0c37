/* Hopper: warpgroup matrix multiply fed by the tensor copy engine, 16-bit or TF32 inputs, fp32
 * sums.
 *
 * A block computes 128 x 256 of C: one warpgroup keeps the copy engine busy, two multiply, 64 rows
 * each. Tiles of A (128 x 64, contiguous along K) and B (64 x 256, contiguous along N: row-major B
 * needs no transposition; for TF32 the instruction wants it along K, and B is transposed while it
 * is rounded) go round a ring of stages in shared memory, 128-byte swizzled; a barrier per stage
 * says full, another one empty. Two blocks with neighbouring tile rows form a cluster: each fetches
 * half of the B tile that both need and multicasts it. The grid is as large as the chip, blocks
 * take tile after tile, so that copies for the next tile run while C is stored. Built for sm_90a
 * only. */
#include "gemm/cuda/hopper.cuh"
#include "gemm/cuda/tensor_map.cuh"
#include "gemm/cuda/workspace.cuh"

using namespace md;

namespace {

constexpr int ROWS = 128, COLUMNS = 256, CLUSTER = 2;
constexpr int A_BYTES = ROWS * 128, B_BYTES = COLUMNS * 128, STAGE_BYTES = A_BYTES + B_BYTES;
/* A stage is 128 bytes deep: 64 16-bit numbers or 32 floats. B comes in chunks of 64 columns. */
template <class T> constexpr int DEPTH = 128 / (int)sizeof(T);
template <class T> constexpr bool TF32 = std::is_same<T, float>::value;
constexpr int CHUNK = 64, CHUNK_BYTES = 128 * CHUNK;
constexpr int BOX = 32, BOX_BYTES = 64 * BOX * 4; /* what the copy engine takes of C at once */
constexpr int THREADS = 384;

/* How shared memory is divided. A long sum wants stages, a short one buffers for C. */
template <int STAGES_, int BOXES_> struct Division {
  static constexpr int STAGES = STAGES_, BOXES = BOXES_; /* boxes of each of two warpgroups */
  static constexpr int BYTES = STAGES * STAGE_BYTES + 2 * BOXES * BOX_BYTES + 1024; /* to align */
};
using Long = Division<4, 2>;
using Short = Division<3, 4>;

template <class D> struct Ring {
  uint32_t data, full, empty; /* shared addresses: stages, two rows of barriers */
  int stage = 0, phase = 0;
  __device__ void next() {
    if (++stage == D::STAGES) stage = 0, phase ^= 1;
  }
  __device__ uint32_t a() const { return data + stage * STAGE_BYTES; }
  __device__ uint32_t b() const { return a() + A_BYTES; }
  __device__ uint32_t full_now() const { return full + stage * 8; }
  __device__ uint32_t empty_now() const { return empty + stage * 8; }
};

template <class T> struct Job {
  Operands<T, float> g;
  int steps, tiles; /* tiles of a cluster: 256 x 256 */
  int band;         /* of tiles: see tile_of */
  bool boxes;       /* C can be written by the copy engine: rows start and end on 16 bytes */
};

template <class T, class D>
__device__ void produce(const Job<T> &job, const CUtensorMap *a, const CUtensorMap *b, Ring<D> ring,
                        int rank) {
  for (int t = blockIdx.x / CLUSTER; t < job.tiles; t += gridDim.x / CLUSTER) {
    const Tile tile = tile_of(t, job.g.m, job.g.n, CLUSTER * ROWS, COLUMNS, job.band);
    const int row = (tile.row * CLUSTER + rank) * ROWS;
    const int column = tile.column * COLUMNS + rank * COLUMNS / CLUSTER;
    for (int step = 0; step < job.steps; step++, ring.next()) {
      barrier_wait(ring.empty_now(), ring.phase ^ 1);
      barrier_expect(ring.full_now(), STAGE_BYTES);
      tensor_copy(ring.a(), a, step * DEPTH<T>, row, ring.full_now());
      for (int j = 0; j < COLUMNS / CLUSTER; j += CHUNK) {
        const uint32_t to = ring.b() + (rank * COLUMNS / CLUSTER + j) / CHUNK * CHUNK_BYTES;
        const int across = column + j, depth = step * DEPTH<T>;
        tensor_multicast(to, b, TF32<T> ? depth : across, TF32<T> ? across : depth, ring.full_now(),
                         (1 << CLUSTER) - 1);
      }
    }
  }
}

/* Accumulator layout of m64n256: warp w has rows 16 w .. 16 w + 15, lane l row l / 4 (and + 8) and
 * the column pairs 8 j + 2 (l % 4). */
template <class T>
__device__ inline float2 scaled(const Operands<T, float> &g, float x, float y, int i, int j) {
  float2 r = {g.alpha * x, g.alpha * y};
  if (g.beta != 0.0f && i < g.m) {
    const float *c = g.c + i * g.ldc + j;
    if (j < g.n) r.x += g.beta * c[0];
    if (j + 1 < g.n) r.y += g.beta * c[1];
  }
  return r;
}

/* By the copy engine, 64 x 32 at a time, through BOXES buffers in shared memory (128-byte swizzle):
 * whole lines go to memory while the registers are already free for the next tile. */
template <int BOXES, class T>
__device__ void store_boxes(const Job<T> &job, const CUtensorMap *c, const float (&d)[128],
                            uint32_t buffers, int half, int row, int column) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const int i0 = thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int box = 0; box < COLUMNS / BOX; box++) {
    const uint32_t buffer = buffers + (half * BOXES + box % BOXES) * BOX_BYTES;
    if (thread == 0) tensor_store_wait<BOXES - 1>();
    warpgroup_sync(1 + half);
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < BOX; j += 8) {
        const int e = (box * BOX + j) / 2 + h * 2, i = i0 + h * 8, q = j + lane % 4 * 2;
        const float2 r = scaled(job.g, d[e], d[e + 1], row + i, column + box * BOX + q);
        const uint32_t to = buffer + i * 128 + ((q / 4) ^ (i % 8)) * 16 + q % 4 * 4;
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(r.x), "f"(r.y) : "memory");
      }
    fence_to_copy_engine();
    warpgroup_sync(1 + half);
    if (thread == 0) tensor_store(c, column + box * BOX, row, buffer);
  }
}

/* Element by element, where rows of C do not start on 16 bytes. */
template <class T>
__device__ void store_elements(const Job<T> &job, const float (&d)[128], int row, int column) {
  const Operands<T, float> &g = job.g;
  const int lane = threadIdx.x % 32, i0 = row + threadIdx.x % 128 / 32 * 16 + lane / 4;
  const int j0 = column + lane % 4 * 2;
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 8) {
      const int i = i0 + h * 8;
      const float2 r = scaled(g, d[j / 2 + h * 2], d[j / 2 + h * 2 + 1], i, j0 + j);
      if (i < g.m && j0 + j < g.n) g.c[i * g.ldc + j0 + j] = r.x;
      if (i < g.m && j0 + j + 1 < g.n) g.c[i * g.ldc + j0 + j + 1] = r.y;
    }
}

/* One warpgroup: `half` picks rows 0..63 or 64..127 of the tile. */
template <class T, class D>
__device__ void consume(const Job<T> &job, const CUtensorMap *c, Ring<D> ring, int rank, int half) {
  float d[128];
  const bool speaker = threadIdx.x % 128 < CLUSTER; /* thread r frees the stage in block r */
  for (int t = blockIdx.x / CLUSTER; t < job.tiles; t += gridDim.x / CLUSTER) {
    uint32_t used = 0; /* the empty barrier of the stage before */
    for (int step = 0; step < job.steps; step++, ring.next()) {
      barrier_wait(ring.full_now(), ring.phase);
      wgmma_fence();
#pragma unroll
      for (int l = 0; l < 4; l++) /* 32 bytes deep each */
        wgmma<T>(d, swizzled(ring.a() + half * (A_BYTES / 2) + l * 32, 0),
                 TF32<T> ? swizzled(ring.b() + l * 32, 0)
                         : swizzled(ring.b() + l * 16 * 128, CHUNK_BYTES),
                 step + l);
      wgmma_commit();
      wgmma_wait<1>(); /* the step before has read its stage */
      if (step > 0 && speaker) barrier_arrive_at(used, threadIdx.x % 128);
      used = ring.empty_now();
    }
    wgmma_wait<0>();
    if (speaker) barrier_arrive_at(used, threadIdx.x % 128);
    const Tile tile = tile_of(t, job.g.m, job.g.n, CLUSTER * ROWS, COLUMNS, job.band);
    const int row = (tile.row * CLUSTER + rank) * ROWS + half * 64;
    if (job.boxes)
      store_boxes<D::BOXES>(job, c, d, ring.data + D::STAGES * STAGE_BYTES, half, row,
                            tile.column * COLUMNS);
    else
      store_elements(job, d, row, tile.column * COLUMNS);
  }
}

template <class T, class D>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ Job<T> job, const __grid_constant__ CUtensorMap a,
             const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c) {
  extern __shared__ char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * D::STAGES];
  Ring<D> ring;
  ring.data = ((uint32_t)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
  ring.full = (uint32_t)__cvta_generic_to_shared(barriers), ring.empty = ring.full + D::STAGES * 8;
  const int rank = cluster_rank(), group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < D::STAGES; s++) {
      barrier_init(ring.full + s * 8, 1);
      barrier_init(ring.empty + s * 8, 2 * CLUSTER); /* the consumers of every block */
    }
    fence_barrier_init();
  }
  cluster_sync();
  if (group == 0) {
    release_registers<40>();
    if (threadIdx.x == 0) produce(job, &a, &b, ring, rank);
  } else {
    claim_registers<232>();
    consume(job, &c, ring, rank, group - 1);
  }
  tensor_store_wait<0>();
  __syncwarp();   /* thread 0 comes late */
  cluster_sync(); /* nobody leaves while another block may still signal its barriers */
}

template <class T>
md_status run_type(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                   Workspace *workspace, const void *a, const void *b, void *c) {
  unsigned blocks;
  MD_TRY(grid_for(context, p, CLUSTER * ROWS, COLUMNS, &blocks));
  cudaStream_t stream = (cudaStream_t)launch->stream;
  const bool brief = p->k <= Short::STAGES * DEPTH<T>;
  Job<T> job = {operands<T, float>(p, a, b, c), (int)((p->k + DEPTH<T> - 1) / DEPTH<T>),
                (int)blocks, brief ? 2 : 8, aligned(c, p->ldc, 4, 16) && p->n % 4 == 0};
  if constexpr (TF32<T>)
    MD_TRY(tf32_operands(context, workspace, stream, &job.g));
  else
    MD_TRY(pad_operands(context, workspace, stream, 8, false, &job.g));
  CUtensorMap map_a, map_b, map_c = {};
  MD_TRY(tensor_map(context, &map_a, job.g.a, job.g.m, job.g.k, job.g.lda, ROWS));
  if (TF32<T>)
    MD_TRY(tensor_map(context, &map_b, job.g.b, job.g.n, job.g.k, job.g.ldb, CHUNK));
  else
    MD_TRY(tensor_map(context, &map_b, job.g.b, job.g.k, job.g.n, job.g.ldb, DEPTH<T>));
  if (job.boxes) MD_TRY(tensor_map(context, &map_c, job.g.c, job.g.m, job.g.n, job.g.ldc, 64));
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const auto kernel = brief ? multiply<T, Short> : multiply<T, Long>;
  const int bytes = brief ? Short::BYTES : Long::BYTES;
  MD_TRY(status_of(context,
                   cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                   "reserve shared memory for wgmma"));
  const int clusters = min(processors / CLUSTER, job.tiles);
  kernel<<<clusters * CLUSTER, THREADS, bytes, stream>>>(job, map_a, map_b, map_c);
  return launched(context, "wgmma");
}

md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
              void *state, const void *a, const void *b, void *c) {
  switch (p->precision) {
  case MD_GEMM_HALF:
    return run_type<__half>(context, p, launch, (Workspace *)state, a, b, c);
  case MD_GEMM_BF16:
    return run_type<__nv_bfloat16>(context, p, launch, (Workspace *)state, a, b, c);
  default:
    return run_type<float>(context, p, launch, (Workspace *)state, a, b, c);
  }
}

} // namespace

const md_gemm_kernel md_gemm_wgmma = {"wgmma",
                                      "warpgroup multiply, tensor copies, ring of stages, clusters",
                                      MD_GEMM_DEVICE,
                                      1u << MD_GEMM_HALF | 1u << MD_GEMM_BF16 | 1u << MD_GEMM_TF32,
                                      "fp32",
                                      nullptr,
                                      nullptr,
                                      needs_hopper,
                                      open_workspace,
                                      close_workspace,
                                      run};
