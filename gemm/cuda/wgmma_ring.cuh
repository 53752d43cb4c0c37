#pragma once

/* The frame of the wgmma kernels. A block computes a tile with two warpgroups; a third keeps the
 * copy engine busy. Operands go round a ring of stages in shared memory, 128 bytes deep each and
 * 128-byte swizzled: 128 lines of the narrow operand and 256 of the wide one, in chunks of
 * 8 KiB; a barrier per stage says full, another one empty. Two blocks with tiles that share the
 * wide operand (or, in a last single line of tiles, the narrow one) form a cluster: each fetches
 * half of what they share and multicasts it. The grid is as large as the chip, blocks take tile
 * after tile, so that copies for the next tile run while C is stored. C goes through buffers in
 * shared memory by the copy engine, which stores whole lines while the registers are already free
 * for the next tile, and reads them ahead where beta asks for them. Built for sm_90a only.
 *
 * A kernel is a struct Work with the type T of its operands and static functions: map makes their
 * tensor maps, produce_stage fetches a stage, multiply_tile sums a tile, row, column, box_row and
 * box_column say where C goes, fill writes boxes of it, store_elements single elements. */
#include "gemm/cuda/hopper.cuh"

namespace md {

constexpr int NARROW = 128, WIDE = 256, CLUSTER = 2; /* sides of a tile */
constexpr int CHUNK_BYTES = 8192, NARROW_BYTES = NARROW * 128;
constexpr int STAGE_BYTES = NARROW_BYTES + WIDE * 128;
/* What the copy engine takes of C at once: 64 rows of 128 bytes. A warpgroup has eight of them. */
constexpr int BOX_ROWS = 64, BOX_COLUMNS = 32, BOX_BYTES = BOX_ROWS * 128, TILE_BOXES = 8;
constexpr int RING_THREADS = 384;

/* How shared memory is divided. A long sum wants stages, a short one buffers for C. */
template <int STAGES_, int BOXES_> struct Division {
  static constexpr int STAGES = STAGES_, BOXES = BOXES_; /* boxes of each of two warpgroups */
  static constexpr int BYTES = STAGES * STAGE_BYTES + 2 * BOXES * BOX_BYTES + 1024; /* to align */
};
using Long = Division<4, 2>;
using Short = Division<3, 4>;

template <class D> struct Ring : Stages<D::STAGES> {
  __device__ uint32_t narrow() const { return this->data + this->stage * STAGE_BYTES; }
  __device__ uint32_t wide() const { return narrow() + NARROW_BYTES; }
};

template <class T> struct Job {
  Operands<T, float> g;
  int steps;             /* stages of a sum */
  int narrow, wide;      /* m and n, or n and m */
  int clusters, sharing; /* of all clusters of two tiles, the first `sharing` share the wide side */
  int band;              /* of tiles: see tile_of */
  bool boxes;            /* the copy engine can write C: rows start and end on 16 bytes */
};

/* First line of a block's t-th tile along both sides. */
struct Place {
  int narrow, wide;
  bool share_wide;
};
template <class T> __device__ inline Place place_of(const Job<T> &job, int t, int rank) {
  const int paired = (job.narrow + NARROW - 1) / (CLUSTER * NARROW) * CLUSTER * NARROW;
  if (t >= job.sharing) return {paired, ((t - job.sharing) * CLUSTER + rank) * WIDE, false};
  const Tile tile = tile_of(t, paired, job.wide, CLUSTER * NARROW, WIDE, job.band);
  return {(tile.row * CLUSTER + rank) * NARROW, tile.column * WIDE, true};
}

/* A box of an operand; of one that both blocks need, `mine` says which of the two fetches it. */
__device__ inline void fetch(uint32_t to, const CUtensorMap *map, int inner, int outer,
                             uint32_t barrier, bool shared, bool mine) {
  if (!shared)
    tensor_copy(to, map, inner, outer, barrier);
  else if (mine)
    tensor_multicast(to, map, inner, outer, barrier, (1 << CLUSTER) - 1);
}

template <class Work, class D>
__device__ void produce(const Job<typename Work::T> &job, const CUtensorMap *a,
                        const CUtensorMap *b, Ring<D> ring, int rank) {
  for (int t = blockIdx.x / CLUSTER; t < job.clusters; t += gridDim.x / CLUSTER) {
    const Place place = place_of(job, t, rank);
    for (int step = 0; step < job.steps; step++, ring.next()) {
      barrier_wait(ring.empty_now(), ring.phase ^ 1);
      barrier_expect(ring.full_now(), STAGE_BYTES);
      Work::produce_stage(ring, a, b, place, step, rank);
    }
  }
}

/* The buffers of one warpgroup, and the barriers that say that old elements of C have come. Box b
 * of a tile always goes through buffer b % BOXES, each an even number of times per tile. */
template <class D> struct Buffers {
  uint32_t data, loaded;
  int name; /* of the warpgroup's barrier */
  __device__ uint32_t of(int box) const { return data + box % D::BOXES * BOX_BYTES; }
  __device__ void load(const CUtensorMap *c, int box, int inner, int outer) const {
    barrier_expect(loaded + box % D::BOXES * 8, BOX_BYTES);
    tensor_copy(of(box), c, inner, outer, loaded + box % D::BOXES * 8);
  }
  __device__ void wait(int box) const {
    barrier_wait(loaded + box % D::BOXES * 8, box / D::BOXES % 2);
  }
};

/* Before a tile's sums: thread 0 asks for the first boxes of C. */
template <class Work, class D>
__device__ void load_boxes(const CUtensorMap *c, const Buffers<D> &buffers, int row, int column) {
  wait_for_reads();
#pragma unroll
  for (int box = 0; box < D::BOXES; box++)
    buffers.load(c, box, column + Work::box_column(box), row + Work::box_row(box));
}

/* Boxes that were filled together; the next ones to go through their buffers are asked for. */
template <class Work, class D>
__device__ inline void send_boxes(const CUtensorMap *c, const Buffers<D> &buffers, int box, int row,
                                  int column, bool adds) {
#pragma unroll
  for (int s = box; s < box + Work::TOGETHER; s++)
    tensor_store(c, column + Work::box_column(s), row + Work::box_row(s), buffers.of(s));
  if (!adds || box + D::BOXES >= TILE_BOXES) return;
  wait_for_reads();
#pragma unroll
  for (int s = box + D::BOXES; s < box + D::BOXES + Work::TOGETHER; s++)
    buffers.load(c, s, column + Work::box_column(s), row + Work::box_row(s));
}

template <class Work, class D>
__device__ void store_boxes(const Job<typename Work::T> &job, const CUtensorMap *c,
                            const float (&d)[128], const Buffers<D> &buffers, int row, int column) {
  const bool speaker = threadIdx.x % 128 == 0, adds = job.g.beta != 0.0f;
#pragma unroll
  for (int box = 0; box < TILE_BOXES; box += Work::TOGETHER) {
    if (adds) {
#pragma unroll
      for (int s = 0; s < Work::TOGETHER; s++) buffers.wait(box + s);
    } else {
      if (speaker) wait_for_reads_but<D::BOXES - Work::TOGETHER>();
      warpgroup_sync(buffers.name);
    }
    Work::fill(job.g, d, buffers, box);
    fence_for_copies();
    warpgroup_sync(buffers.name);
    if (speaker) send_boxes<Work>(c, buffers, box, row, column, adds);
  }
}

/* One warpgroup: `half` picks lines 0..63 or 64..127 of the narrow side. */
template <class Work, class D>
__device__ void consume(const Job<typename Work::T> &job, const CUtensorMap *c, Ring<D> ring,
                        Buffers<D> buffers, int rank, int half) {
  float d[128];
  for (int t = blockIdx.x / CLUSTER; t < job.clusters; t += gridDim.x / CLUSTER) {
    const Place place = place_of(job, t, rank);
    const int row = Work::row(place, half), column = Work::column(place, half);
    if (job.boxes && job.g.beta != 0.0f && threadIdx.x % 128 == 0)
      load_boxes<Work>(c, buffers, row, column);
    Work::multiply_tile(d, ring, job.steps, half);
    if (job.boxes)
      store_boxes<Work>(job, c, d, buffers, row, column);
    else
      Work::store_elements(job.g, d, row, column);
  }
}

template <class Work, class D>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(RING_THREADS, 1)
    multiply(const __grid_constant__ Job<typename Work::T> job,
             const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             const __grid_constant__ CUtensorMap c) {
  extern __shared__ char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * D::STAGES + 2 * D::BOXES];
  Ring<D> ring;
  ring.data = (shared_address(shared) + 1023) / 1024 * 1024;
  ring.full = shared_address(barriers);
  const int rank = cluster_rank(), group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < D::STAGES; s++) {
      barrier_init(ring.full + s * 8, 1);
      barrier_init(ring.full + (D::STAGES + s) * 8, 2 * CLUSTER); /* the consumers of every block */
    }
    for (int s = 0; s < 2 * D::BOXES; s++) barrier_init(ring.full + (2 * D::STAGES + s) * 8, 1);
    fence_barrier_init();
  }
  cluster_sync();
  if (group == 0) {
    release_registers<40>();
    if (threadIdx.x == 0) produce<Work>(job, &a, &b, ring, rank);
  } else {
    claim_registers<232>();
    const int half = group - 1;
    const Buffers<D> buffers = {ring.data + D::STAGES * STAGE_BYTES + half * D::BOXES * BOX_BYTES,
                                ring.full + (2 * D::STAGES + half * D::BOXES) * 8, group};
    consume<Work>(job, &c, ring, buffers, rank, half);
  }
  wait_for_reads();
  __syncwarp();   /* thread 0 comes late */
  cluster_sync(); /* nobody leaves while another block may still signal its barriers */
}

/* A consumer is done with a stage: thread r of the warpgroup frees it in block r. */
__device__ inline void free_stage(uint32_t empty) {
  if (threadIdx.x % 128 < CLUSTER) barrier_arrive_at(empty, threadIdx.x % 128);
}

/* Whether the write of C takes longer than the sums. */
inline bool brief(const md_gemm_problem *p) {
  return p->k * (int64_t)md_gemm_input_bytes(p->precision) <= 768;
}

template <class Work>
md_status open_ring(md_context *context, const md_gemm_problem *p, void **state) {
  return brief(p) ? open_tensor_plan(context, multiply<Work, Short>, Short::BYTES, state)
                  : open_tensor_plan(context, multiply<Work, Long>, Long::BYTES, state);
}

template <class Work> md_status run_ring(md_context *context, const md_gemm_call *call) {
  using T = typename Work::T;
  const md_gemm_problem *p = call->problem;
  TensorPlan *plan = (TensorPlan *)call->state;
  unsigned tiles;
  MD_TRY(grid_for(context, p, NARROW, NARROW, &tiles)); /* no fewer than there are */
  const cudaStream_t stream = stream_of(call);
  Job<T> job;
  job.g = operands<T, float>(call);
  MD_TRY(pad_operands(context, &plan->workspace, stream, 16 / sizeof(T), false, &job.g));
  job.steps = (int)((p->k * sizeof(T) + 127) / 128);
  job.narrow = Work::ACROSS ? job.g.n : job.g.m, job.wide = Work::ACROSS ? job.g.m : job.g.n;
  const int lines = (job.narrow + NARROW - 1) / NARROW, columns = (job.wide + WIDE - 1) / WIDE;
  job.sharing = lines / CLUSTER * columns;
  job.clusters = job.sharing + (lines % CLUSTER ? (columns + CLUSTER - 1) / CLUSTER : 0);
  /* Brief sums are bound by the write of C: whole rows of it at a time. */
  job.band = !brief(p) ? 8 : Work::ACROSS ? 64 : 2;
  job.boxes = aligned(job.g.c, p->ldc, 4, 16) && p->n % 4 == 0;
  MD_TRY(Work::map(context, plan, job.g));
  if (job.boxes)
    MD_TRY(map_operand(context, plan, 2, job.g.c, job.g.m, job.g.n, job.g.ldc, BOX_ROWS));
  const auto kernel = brief(p) ? multiply<Work, Short> : multiply<Work, Long>;
  const int clusters = min(plan->processors / CLUSTER, job.clusters);
  kernel<<<clusters * CLUSTER, RING_THREADS, brief(p) ? Short::BYTES : Long::BYTES, stream>>>(
      job, plan->map[0], plan->map[1], plan->map[2]);
  return md_cuda_launched(context, "GEMM kernel wgmma");
}

} // namespace md
