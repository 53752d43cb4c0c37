/* wgmma for TF32 inputs, in the frame of wgmma_ring.cuh. For this type the instruction wants its
 * operand in shared memory along K. Row-major A lies so, row-major B does not: the kernel computes
 * C^T = B^T A^T, in which A is that operand and B^T the one that may come in registers. The narrow
 * side of a tile are columns of C, the wide one its rows. The copy engine rounds both to TF32.
 *
 * A stage of B is 32 deep and four boxes of 32 columns wide. Which columns a lane calls its own is
 * free as long as C agrees, and is chosen so that reads of B and writes of C hit 32 banks: see
 * Lane. */
#include "gemm/cuda/wgmma_ring.cuh"

using namespace md;

namespace {

constexpr int DEPTH = 32, COLUMNS = 32, BOX_OF_B = DEPTH * 128; /* a box of B: columns, bytes */
constexpr int CHUNK = 64;                                       /* rows of A in one box */

/* Rows l / 4 and l / 4 + 8 of warp w's 16 rows of B^T, h = 0 and 1: column 4 c + l / 4 % 4 of box
 * w / 2, where c is 2 (w % 2) + h for l < 16 and exchanges with 5 for the others: with the
 * swizzle, c ^ depth differs for the four depths of a read, c ^ 2 depth for the rows of a write. */
struct Lane {
  int box, depth, within, chunk[2];
  __device__ Lane() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    box = warp / 2, depth = lane % 4, within = lane / 4 % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) chunk[h] = (warp % 2 * 2 + h) ^ (lane < 16 ? 0 : 5);
  }
  __device__ int column(int h) const {
    return box * COLUMNS + chunk[h] * 4 + within;
  }
};

/* A stage's share of a lane in the order of wgmma_tf32, four for each 8 of the depth. */
__device__ inline void load_fragments(float (&x)[16], uint32_t stage, const Lane &lane) {
#pragma unroll
  for (int l = 0; l < 4; l++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int row = lane.depth + e / 2 * 4; /* of eight */
      shared_load(x[l * 4 + e],
                  stage + (l * 8 + row) * 128 + (lane.chunk[e % 2] ^ row) * 16 + lane.within * 4);
    }
}

struct WorkTf32 {
  using T = float;
  static constexpr bool ACROSS = true; /* the wide side are rows of C */
  static constexpr int TOGETHER = 2;   /* boxes of C filled at a time, two warps each */

  static md_status map(md_context *context, TensorPlan *plan, const Operands<float> &g) {
    MD_TRY(map_operand(context, plan, 0, g.a, g.m, g.k, g.lda, CHUNK, MapType::TO_TF32));
    return map_operand(context, plan, 1, g.b, g.k, g.n, g.ldb, DEPTH, MapType::TO_TF32);
  }

  template <class D>
  static __device__ void produce_stage(const Ring<D> &ring, const CUtensorMap *a,
                                       const CUtensorMap *b, const Place &place, int step,
                                       int rank) {
    for (int j = 0; j < NARROW / COLUMNS; j++)
      fetch(ring.narrow() + j * BOX_OF_B, b, place.narrow + j * COLUMNS, step * DEPTH,
            ring.full_now(), !place.share_wide, j / 2 == rank);
    for (int i = 0; i < WIDE / CHUNK; i++)
      fetch(ring.wide() + i * CHUNK_BYTES, a, step * DEPTH, place.wide + i * CHUNK, ring.full_now(),
            place.share_wide, i / 2 == rank);
  }

  /* Products of the present stage with its fragments in `now`; meanwhile those of the next stage
   * are read into `next`, once the products before have let go of it. */
  template <class D>
  static __device__ void multiply_stage(float (&d)[128], const float (&now)[16], float (&next)[16],
                                        Ring<D> &ring, uint32_t &used, const Lane &lane, int half,
                                        bool first, bool last) {
    wgmma_fence();
#pragma unroll
    for (int l = 0; l < 4; l++)
      wgmma_tf32(d, now + l * 4, swizzled(ring.wide() + l * 32, 0), !first || l > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (!first) free_stage(used);
    used = ring.empty_now();
    ring.next();
    if (last) return;
    barrier_wait(ring.full_now(), ring.phase);
    load_fragments(next, ring.narrow() + (half * 2 + lane.box) * BOX_OF_B, lane);
  }

  template <class D>
  static __device__ void multiply_tile(float (&d)[128], Ring<D> &ring, int steps, int half) {
    const Lane lane;
    float even[16], odd[16];
    uint32_t used = 0;
    barrier_wait(ring.full_now(), ring.phase);
    load_fragments(even, ring.narrow() + (half * 2 + lane.box) * BOX_OF_B, lane);
    for (int step = 0; step < steps; step += 2) {
      multiply_stage(d, even, odd, ring, used, lane, half, step == 0, step + 1 == steps);
      if (step + 1 < steps)
        multiply_stage(d, odd, even, ring, used, lane, half, false, step + 2 == steps);
    }
    wgmma_wait<0>();
    free_stage(used);
  }

  static __device__ int row(const Place &place, int) {
    return place.wide;
  }
  static __device__ int column(const Place &place, int half) {
    return place.narrow + half * 64;
  }
  static constexpr __device__ int box_row(int box) {
    return box / 2 * BOX_ROWS;
  }
  static constexpr __device__ int box_column(int box) {
    return box % 2 * BOX_COLUMNS;
  }

  /* Accumulators: rows of C^T as Lane has them, columns 8 j + 2 (l % 4) and the next one. */
  template <class D>
  static __device__ void fill(const Operands<float> &g, const float (&d)[128],
                              const Buffers<D> &buffers, int box) {
    const Lane lane;
    const uint32_t buffer = buffers.of(box + lane.box);
#pragma unroll
    for (int e = 0; e < BOX_ROWS / 2; e++) {
      const int i = e / 4 * 8 + lane.depth * 2 + e % 2, h = e / 2 % 2;
      const uint32_t to = buffer + i * 128 + (lane.chunk[h] ^ (i % 8)) * 16 + lane.within * 4;
      float r = g.alpha * d[box / 2 * (BOX_ROWS / 2) + e], old;
      if (g.beta != 0.0f) {
        shared_load(old, to);
        r += g.beta * old;
      }
      shared_store(to, r);
    }
  }

  /* Where rows of C do not start on 16 bytes. */
  static __device__ void store_elements(const Operands<float> &g, const float (&d)[128], int row,
                                        int column) {
    const Lane lane;
#pragma unroll
    for (int e = 0; e < 128; e++) {
      const int i = row + e / 4 * 8 + lane.depth * 2 + e % 2;
      const int j = column + lane.column(e / 2 % 2);
      if (i < g.m && j < g.n) store(g.c + i * g.ldc + j, d[e], g.alpha, g.beta);
    }
  }
};

} // namespace

md_status md::open_wgmma_tf32(md_context *context, const md_gemm_problem *p, void **state) {
  return open_ring<WorkTf32>(context, p, state);
}

md_status md::run_wgmma_tf32(md_context *context, const md_gemm_problem *p,
                             const md_gemm_launch *launch, TensorPlan *plan, const void *a,
                             const void *b, void *c) {
  return run_ring<WorkTf32>(context, p, launch, plan, a, b, c);
}
