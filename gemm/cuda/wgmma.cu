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

md_status open(md_context *context, const md_gemm_problem *p, const md_gemm_launch *,
               void **state) {
  switch (p->precision) {
  case MD_GEMM_HALF:
    return open_ring<Work16<__half>>(context, p, state);
  case MD_GEMM_BF16:
    return open_ring<Work16<__nv_bfloat16>>(context, p, state);
  default:
    return open_wgmma_tf32(context, p, state);
  }
}

md_status multiply_rings(md_context *context, const md_gemm_problem *p,
                         const md_gemm_launch *launch, void *state, const void *a, const void *b,
                         void *c) {
  TensorPlan *plan = (TensorPlan *)state;
  switch (p->precision) {
  case MD_GEMM_HALF:
    return run_ring<Work16<__half>>(context, p, launch, plan, a, b, c);
  case MD_GEMM_BF16:
    return run_ring<Work16<__nv_bfloat16>>(context, p, launch, plan, a, b, c);
  default:
    return run_wgmma_tf32(context, p, launch, plan, a, b, c);
  }
}

md_status serves(md_context *context) {
  return needs_hopper(context, "wgmma");
}

} // namespace

const md_gemm_kernel md_gemm_wgmma =
    entry("wgmma", "warpgroup multiply, tensor copies, ring of stages, clusters",
          1u << MD_GEMM_HALF | 1u << MD_GEMM_BF16 | 1u << MD_GEMM_TF32, "fp32", multiply_rings,
          nullptr, open, close_tensor_plan, serves);
