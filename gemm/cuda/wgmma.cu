/* Hopper: warpgroup matrix multiply fed by the tensor copy engine, 16-bit inputs, fp32 sums, in the
 * frame of wgmma_ring.cuh. The narrow side of a tile are rows of C, the wide one its columns: a
 * block computes 128 x 256, a warpgroup 64 x 256 by one instruction per 16 of the depth. Row-major
 * B needs no transposition: the instruction takes 16-bit operands along N too. */
#include "gemm/cuda/wgmma_ring.cuh"

using namespace md;

namespace {

template <class T_> struct Work16 {
  using T = T_;
  static constexpr bool ACROSS = false;        /* the wide side are columns of C */
  static constexpr int DEPTH = 64, CHUNK = 64; /* elements of 128 bytes, lines of a chunk */
  static constexpr int TOGETHER = 1;           /* boxes of C filled at a time */

  static md_status map(md_context *context, TensorPlan *plan, const Operands<T, float> &g) {
    MD_TRY(map_operand(context, plan, 0, g.a, g.m, g.k, g.lda, CHUNK));
    return map_operand(context, plan, 1, g.b, g.k, g.n, g.ldb, DEPTH);
  }

  template <class D>
  static __device__ void produce_stage(const Ring<D> &ring, const CUtensorMap *a,
                                       const CUtensorMap *b, const Place &place, int step,
                                       int rank) {
    for (int i = 0; i < NARROW / CHUNK; i++)
      fetch(ring.narrow() + i * CHUNK_BYTES, a, step * DEPTH, place.narrow + i * CHUNK,
            ring.full_now(), !place.share_wide, i == rank);
    for (int j = 0; j < WIDE / CHUNK; j++)
      fetch(ring.wide() + j * CHUNK_BYTES, b, place.wide + j * CHUNK, step * DEPTH, ring.full_now(),
            place.share_wide, j / 2 == rank);
  }

  template <class D>
  static __device__ void multiply_tile(float (&d)[128], Ring<D> &ring, int steps, int half) {
    uint32_t used = 0; /* the empty barrier of the stage before */
    for (int step = 0; step < steps; step++, ring.next()) {
      barrier_wait(ring.full_now(), ring.phase);
      wgmma_fence();
#pragma unroll
      for (int l = 0; l < 4; l++) /* 32 bytes deep each */
        wgmma<T>(d, swizzled(ring.narrow() + half * CHUNK_BYTES + l * 32, 0),
                 swizzled(ring.wide() + l * 16 * 128, CHUNK_BYTES), step + l);
      wgmma_commit();
      wgmma_wait<1>(); /* the step before has read its stage */
      if (step > 0) free_stage(used);
      used = ring.empty_now();
    }
    wgmma_wait<0>();
    free_stage(used);
  }

  static __device__ int row(const Place &place, int half) {
    return place.narrow + half * 64;
  }
  static __device__ int column(const Place &place, int) {
    return place.wide;
  }
  static constexpr __device__ int box_row(int) {
    return 0;
  }
  static constexpr __device__ int box_column(int box) {
    return box * BOX_COLUMNS;
  }

  /* Accumulator layout of m64n256: warp w has rows 16 w .. 16 w + 15, lane l row l / 4 (and + 8)
   * and the column pairs 8 j + 2 (l % 4). */
  template <class D>
  static __device__ void fill(const Operands<T, float> &g, const float (&d)[128],
                              const Buffers<D> &buffers, int box) {
    const int lane = threadIdx.x % 32, i0 = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < BOX_COLUMNS; j += 8) {
        const int e = (box * BOX_COLUMNS + j) / 2 + h * 2, i = i0 + h * 8, q = j + lane % 4 * 2;
        const uint32_t to = buffers.of(box) + i * 128 + ((q / 4) ^ (i % 8)) * 16 + q % 4 * 4;
        float2 r = {g.alpha * d[e], g.alpha * d[e + 1]}, old;
        if (g.beta != 0.0f) {
          shared_load(old, to);
          r.x += g.beta * old.x, r.y += g.beta * old.y;
        }
        shared_store(to, r);
      }
  }

  /* Where rows of C do not start on 16 bytes. */
  static __device__ void store_elements(const Operands<T, float> &g, const float (&d)[128], int row,
                                        int column) {
    const int lane = threadIdx.x % 32, i0 = row + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const int j0 = column + lane % 4 * 2;
#pragma unroll
    for (int e = 0; e < 128; e++) {
      const int i = i0 + e / 2 % 2 * 8, j = j0 + e / 4 * 8 + e % 2;
      if (i < g.m && j < g.n) store(g.c + i * g.ldc + j, d[e], g.alpha, g.beta);
    }
  }
};

/* wgmma for TF32 inputs, in the frame of wgmma_ring.cuh. For this type the instruction wants its
 * operand in shared memory along K. Row-major A lies so, row-major B does not: the kernel computes
 * C^T = B^T A^T, in which A is that operand and B^T the one that may come in registers. The narrow
 * side of a tile are columns of C, the wide one its rows. The copy engine rounds both to TF32.
 *
 * A stage of B is 32 deep and four boxes of 32 columns wide. Which columns a lane calls its own is
 * free as long as C agrees, and is chosen so that reads of B and writes of C hit 32 banks: see
 * Lane. */
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

/* f(Work()) with the work on inputs of a precision. */
template <class F> auto with_work(md_gemm_precision precision, F f) {
  return precision == MD_GEMM_HALF   ? f(Work16<__half>())
         : precision == MD_GEMM_BF16 ? f(Work16<__nv_bfloat16>())
                                     : f(WorkTf32());
}

md_status open(md_context *context, const md_gemm_problem *p, const md_gemm_launch *,
               void **state) {
  return with_work(p->precision,
                   [&](auto work) { return open_ring<decltype(work)>(context, p, state); });
}

md_status run(md_context *context, const md_gemm_call *call) {
  return with_work(call->problem->precision,
                   [&](auto work) { return run_ring<decltype(work)>(context, call); });
}

} // namespace

const md_gemm_kernel md_gemm_wgmma =
    entry("wgmma", 1u << MD_GEMM_HALF | 1u << MD_GEMM_BF16 | 1u << MD_GEMM_TF32, run, nullptr, open,
          close_tensor_plan, [](md_context *context) { return needs_hopper(context, "wgmma"); });
