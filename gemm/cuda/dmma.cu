/* fp64 Tensor Cores: mma.m16n8k8, fed by the tensor copy engine. A block computes 128 x 128 of C,
 * each of its sixteen warps 32 x 32. It has a multiprocessor to itself and takes tile after tile,
 * and its warps meet at no barrier: one may be some stages ahead of another, storing C or already
 * at the next tile.
 *
 * All that the warps do besides multiplying is two reads of shared memory for a product: the
 * copies cost them nothing, and an 8-byte read brings an operand straight into the register where
 * the instruction wants it (Place). */
#include "gemm/cuda/hopper.cuh"

using namespace md;

namespace {

/* Which elements of a stage and of C a lane of the dmma kernel has, and their way from and to
 * memory.
 *
 * Tiles have rows of 128 bytes with the 128-byte swizzle, which exchanges 16-byte chunk c of row r
 * for c ^ (r % 8). Half a warp reads 4 x 4 elements at a time; which row or column of the tile a
 * lane calls its own is free as long as C agrees, and is chosen so that the 16 lie in 16 different
 * banks (see Place). */
constexpr int ROWS = 128, COLUMNS = 128, DEPTH = 16, WARP = 32; /* tile, stage, a warp's square */
constexpr int M = 2, N = 4;                                     /* m16 and n8 tiles of a warp */
constexpr int A_BYTES = ROWS * DEPTH * 8, BOX_BYTES = DEPTH * 16 * 8; /* B: boxes 16 columns wide */

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
  int a, b; /* at depth t of the first eight, b in the first n8 tile of a box */
  __device__ Place(int y, int x, int lane) {
    const int g = lane / 4, t = lane % 4, row = g % 4 * 2 + g / 4;
    a = (y + row) * 128 + ((t / 2) ^ row) * 16 + t % 2 * 8;
    b = A_BYTES + x / 16 * BOX_BYTES + t * 128 + ((g / 4 + g % 4 / 2 * 4) ^ t) * 16 + g % 2 * 8;
  }
  /* Depths 8 l + 4 e + t; n8 tile p of a box. The swizzle makes sums of chunks exclusive ors. */
  __device__ int a_at(int l, int e) const { return a ^ (l * 64 + e * 32); }
  __device__ int b_at(int p, int e) const { return (b ^ (p * 32 + e * 64)) + e * 512; }
};

__device__ inline void load_fragments(double (&a)[M][4], double (&b)[N][2], const char *stage,
                                      const Place &place, int l) {
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      a[i][e] = *(const double *)(stage + place.a_at(l, e / 2) + i * 2048 + e % 2 * 1024);
#pragma unroll
  for (int j = 0; j < N; j++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      b[j][e] = *(const double *)(stage + place.b_at(j % 2, e) + j / 2 * BOX_BYTES + l * 1024);
}

/* Calls use(row, column, pair) for this lane's pairs of neighbours in `boxes` boxes of a warp's
 * part of C, 16 columns each, from `box` on: of each m16n8 tile lane l holds the rows l / 4 and l /
 * 4 + 8 and the columns 2 (l % 4) and the next one, in the order of Place. */
template <class Use>
__device__ inline void for_pairs(const double (&sum)[M][N][4], int lane, int box, int boxes,
                                 Use use) {
  const int row = lane / 4 % 4 * 2 + lane / 16, column = lane % 4 / 2 * 2 + lane % 2 * 8;
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < N; j++)
        if (j < 2 * boxes)
          use(row + i * 16 + h * 8, column + j / 2 * 16 + j % 2 * 4, &sum[i][box * 2 + j][2 * h]);
}

/* alpha pair + beta old; old is read by `load` only when beta is not 0. */
template <class Load>
__device__ inline double2 result(const Operands<double> &g, const double *pair, Load load) {
  double2 r = {g.alpha * pair[0], g.alpha * pair[1]};
  if (g.beta != 0.0) {
    const double2 old = load();
    r.x += g.beta * old.x, r.y += g.beta * old.y;
  }
  return r;
}

/* A warp's part of C at (row, column), from its registers to where it belongs. */
__device__ inline void store_elements(const Operands<double> &g, bool vector, int row, int column,
                                      int lane, const double (&sum)[M][N][4]) {
  for_pairs(sum, lane, 0, 2, [&](int i, int j, const double *pair) {
    i += row, j += column;
    if (i >= g.m || j >= g.n) return;
    double *c = g.c + i * g.ldc + j;
    if (vector && j + 2 <= g.n) {
      *(double2 *)c = result(g, pair, [c] { return *(const double2 *)c; });
      return;
    }
    store(c, pair[0], g.alpha, g.beta);
    if (j + 1 < g.n) store(c + 1, pair[1], g.alpha, g.beta);
  });
}

/* One of its boxes into the warp's slot: swizzled rows of 128 bytes. */
__device__ inline void fill_slot(const Operands<double> &g, uint32_t slot, int lane, int box,
                                 const double (&sum)[M][N][4]) {
  for_pairs(sum, lane, box, 1, [&](int i, int j, const double *pair) {
    const uint32_t to = slot + i * 128 + ((j / 2) ^ (i % 8)) * 16;
    shared_store(to, result(g, pair, [to] {
                   double2 old;
                   shared_load(old, to);
                   return old;
                 }));
  });
}

constexpr int THREADS = 512; /* that multiply; one more warpgroup keeps the copy engine busy */
constexpr int STAGE_BYTES = A_BYTES + COLUMNS / 16 * BOX_BYTES;
constexpr int C_BOX_BYTES = WARP * 128; /* half of a warp's part of C: 32 rows of 16 columns */

constexpr int BRIEF_DEPTH = 256; /* up to which the write of C is worth hiding */

/* How shared memory is divided. A long sum wants stages. A short one is bound by the write of C,
 * which the copy engine does beside the next tile's products when it finds C in shared memory. */
template <int STAGES_, bool SLOTS_> struct Division {
  static constexpr int STAGES = STAGES_;
  static constexpr bool SLOTS = SLOTS_; /* of one box for each warp */
  static constexpr int BYTES = STAGES * STAGE_BYTES + THREADS / 32 * SLOTS * C_BOX_BYTES + 1024;
};
using Long = Division<6, false>;
using Short = Division<5, true>;

struct Job {
  Operands<double> g;
  int tiles, steps;
  int band;    /* of tiles: see tile_of */
  bool vector; /* rows of C start on 16 bytes */
  bool boxes;  /* and end there: the copy engine can write C */
};

/* Behind the stages a slot for each warp's part of C, and behind their barriers those that say that
 * old elements of C have come. */
template <class D> struct Ring : Stages<D::STAGES> {
  __device__ uint32_t loaded(int warp) const { return this->full + (2 * D::STAGES + warp) * 8; }
  __device__ uint32_t slot(int warp) const {
    return this->data + D::STAGES * STAGE_BYTES + warp * C_BOX_BYTES;
  }
};

/* One thread loads all depths of the block's tiles, one after the other. */
template <class D>
__device__ void produce(const Job &job, const CUtensorMap *a, const CUtensorMap *b, Ring<D> ring) {
  for (int t = blockIdx.x; t < job.tiles; t += gridDim.x) {
    const Tile tile = tile_of(t, job.g.m, job.g.n, ROWS, COLUMNS, job.band);
    for (int step = 0; step < job.steps; step++, ring.next()) {
      const uint32_t to = ring.data + ring.stage * STAGE_BYTES, full = ring.full_now();
      barrier_wait(ring.empty_now(), ring.phase ^ 1);
      barrier_expect(full, STAGE_BYTES);
      tensor_copy(to, a, step * DEPTH, tile.row * ROWS, full);
      for (int j = 0; j < COLUMNS / 16; j++)
        tensor_copy(to + A_BYTES + j * BOX_BYTES, b, tile.column * COLUMNS + j * 16, step * DEPTH,
                    full);
    }
  }
}

/* Where a warp puts its part of tile t. Laundered: what is needed before and after the sums is
 * computed twice, for the sums leave no registers to keep it in. */
struct Target {
  int row, column;
  __device__ Target(const Job &job, int t) {
    asm volatile("" : "+r"(t));
    const int warp = threadIdx.x / 32;
    const Tile tile = tile_of(t, job.g.m, job.g.n, ROWS, COLUMNS, job.band);
    row = tile.row * ROWS + warp / 4 * WARP, column = tile.column * COLUMNS + warp % 4 * WARP;
  }
};

/* Old elements of C into the warp's slot, when beta asks for them; by lane 0. */
template <class D>
__device__ inline void load_slot(const Ring<D> &ring, const CUtensorMap *c, const Target &target,
                                 int box) {
  const uint32_t loaded = ring.loaded(threadIdx.x / 32), slot = ring.slot(threadIdx.x / 32);
  wait_for_reads();
  barrier_expect(loaded, C_BOX_BYTES);
  tensor_copy(slot, c, target.column + box * 16, target.row, loaded);
}

/* A warp's part of C by the copy engine through the warp's own slot: it waits for no other. */
template <class D>
__device__ inline void store_boxes(const Job &job, const Ring<D> &ring, const CUtensorMap *c,
                                   const Target &target, int &phase, const double (&sum)[M][N][4]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool adds = job.g.beta != 0.0;
#pragma unroll
  for (int box = 0; box < 2; box++) {
    if (adds)
      barrier_wait(ring.loaded(warp), phase), phase ^= 1;
    else if (lane == 0)
      wait_for_reads();
    __syncwarp();
    fill_slot(job.g, ring.slot(warp), lane, box, sum);
    fence_for_copies();
    __syncwarp();
    if (lane != 0) continue;
    tensor_store(c, target.column + box * 16, target.row, ring.slot(warp));
    if (adds && box == 0) load_slot(ring, c, target, 1);
  }
}

/* A warp is done with a stage. That all reads of it were begun is not enough: they may wait behind
 * stores of C for longer than the copy engine, which no order of generic accesses binds, takes to
 * put the next box in their place. So a stage is handed back when the next one has come: by then
 * the products of the first were issued, and they had their operands. */
__device__ inline void hand_back(uint32_t empty) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

template <class D>
__device__ void consume(const Job &job, const CUtensorMap *c, const char *stages, Ring<D> ring) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int y = warp / 4 * WARP, x = warp % 4 * WARP;
  const Place place(y, x, lane);
  const bool by_engine = D::SLOTS && job.boxes;
  int phase = 0;
  for (int t = blockIdx.x; t < job.tiles; t += gridDim.x) {
    if constexpr (D::SLOTS)
      if (by_engine && job.g.beta != 0.0 && lane == 0) load_slot(ring, c, Target(job, t), 0);
    double sum[M][N][4] = {}, a[M][4], b[N][2];
    uint32_t used = 0; /* empty barrier of the stage before */
    for (int step = 0; step < job.steps; step++, ring.next()) {
      barrier_wait(ring.full_now(), ring.phase);
      if (step > 0) hand_back(used);
      used = ring.empty_now();
      const char *stage = stages + ring.stage * STAGE_BYTES;
#pragma unroll
      for (int l = 0; l < 2; l++) {
        load_fragments(a, b, stage, place, l);
#pragma unroll
        for (int e = 0; e < M * N; e++) mma(sum[e / N][e % N], a[e / N], b[e % N]);
      }
    }
    hand_back(used);
    const Target target(job, t);
    if constexpr (D::SLOTS)
      if (by_engine) store_boxes(job, ring, c, target, phase, sum);
    if (!by_engine) store_elements(job.g, job.vector, target.row, target.column, lane, sum);
  }
  wait_for_reads(); /* before shared memory goes */
}

template <class D>
__global__ void __launch_bounds__(THREADS + 128, 1)
    multiply(const __grid_constant__ Job job, const __grid_constant__ CUtensorMap map_a,
             const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c) {
  extern __shared__ char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * D::STAGES + THREADS / 32];
  const uint32_t begin = shared_address(shared);
  Ring<D> ring;
  ring.data = (begin + 1023) / 1024 * 1024;
  ring.full = shared_address(barriers);
  if (threadIdx.x == 0) {
    for (int s = 0; s < D::STAGES; s++) {
      barrier_init(ring.full + s * 8, 1);
      barrier_init(ring.full + (D::STAGES + s) * 8, THREADS / 32);
    }
    for (int warp = 0; warp < THREADS / 32; warp++) barrier_init(ring.loaded(warp), 1);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x < THREADS) {
    claim_registers<112>(); /* of the 5 x 96 that the block starts with: 4 x 112 + 32 fit */
    consume(job, &map_c, shared + (ring.data - begin), ring);
  } else {
    release_registers<32>();
    if (threadIdx.x == THREADS) produce(job, &map_a, &map_b, ring);
  }
}

bool brief(const md_gemm_problem *p) {
  return p->k <= BRIEF_DEPTH;
}

md_status open(md_context *context, const md_gemm_problem *p, const md_gemm_launch *,
               void **state) {
  return brief(p) ? open_tensor_plan(context, multiply<Short>, Short::BYTES, state)
                  : open_tensor_plan(context, multiply<Long>, Long::BYTES, state);
}

md_status run(md_context *context, const md_gemm_call *call) {
  const md_gemm_problem *p = call->problem;
  unsigned tiles;
  MD_TRY(grid_for(context, p, ROWS, COLUMNS, &tiles));
  TensorPlan *plan = (TensorPlan *)call->state;
  const cudaStream_t stream = stream_of(call);
  Job job;
  job.g = operands<double>(call);
  job.tiles = (int)tiles, job.steps = (int)((p->k + DEPTH - 1) / DEPTH);
  job.band = brief(p) ? 4 : 16; /* brief sums are bound by the write of C: whole rows of it */
  job.vector = aligned(job.g.c, p->ldc, 8, 16);
  job.boxes = job.vector && p->n % 2 == 0;
  MD_TRY(pad_operands(context, &plan->workspace, stream, 2, false, &job.g));
  MD_TRY(map_operand(context, plan, 0, job.g.a, job.g.m, job.g.k, job.g.lda, ROWS));
  MD_TRY(map_operand(context, plan, 1, job.g.b, job.g.k, job.g.n, job.g.ldb, DEPTH));
  if (job.boxes) MD_TRY(map_operand(context, plan, 2, job.g.c, job.g.m, job.g.n, job.g.ldc, WARP));
  const auto kernel = brief(p) ? multiply<Short> : multiply<Long>;
  kernel<<<min(plan->processors, job.tiles), THREADS + 128, brief(p) ? Short::BYTES : Long::BYTES,
           stream>>>(job, plan->map[0], plan->map[1], plan->map[2]);
  return md_cuda_launched(context, "GEMM kernel dmma");
}

} // namespace

const md_gemm_kernel md_gemm_dmma =
    entry("dmma", DOUBLE, run, nullptr, open, close_tensor_plan,
          [](md_context *context) { return needs_hopper(context, "dmma"); });
