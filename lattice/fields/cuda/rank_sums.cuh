#ifndef MD_LATTICE_FIELDS_CUDA_RANK_SUMS_CUH
#define MD_LATTICE_FIELDS_CUDA_RANK_SUMS_CUH

#include <math_constants.h>

#include "base/device_peers.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

extern "C" {
#include "lattice/fields/rank_sums.h"
}

/* Sums over ranks without the host: every rank writes its part into the memory of every other and
 * raises a flag there. Sums are whole numbers of units, so that the order does not matter. A part
 * is kept for two ticks: a rank that is at tick n + 2 has seen all ranks begin n + 1, which they do
 * after they have read what belongs to n. */
struct rank_sums {
  int ranks, rank;  /* ranks 1: nothing is exchanged */
  void *const *of;  /* part [tick % MD_RANK_SUM_TICKS][rhs][rank] in the memory of each rank */
  long long *ticks; /* [rhs], of this rank: kernels count on by themselves, also when replayed */
  md_peer_timeout *timeout;
};

/* For kernels that call add_ranks once in each block; peers NULL: one rank's sums. */
static inline rank_sums rank_sums_over(const md_context *context, const md_device_peers *peers) {
  if (!peers) return {1, 0, NULL, NULL, NULL};
  return {context->ranks, context->rank, peers->of_on_device,
          (long long *)((char *)peers->mine + md_rank_sums_parts_bytes(context->ranks)),
          peers->timeout};
}
/* The sum that add_ranks is about to make: early, so that nobody waits for memory there. */
static __device__ inline long long next_tick(const rank_sums &s, int rhs) {
  return s.ranks == 1 ? 0 : __ldcg(&s.ticks[rhs]) + 1;
}

/* word[] of thread 0 becomes the sum over ranks, NaN where a rank did not answer. All threads of
 * the block call it together, blocks of at least `ranks` threads, one for each right-hand side. */
static __device__ inline void add_ranks(const rank_sums &s, int rhs, long long tick,
                                        double (&word)[MD_RANK_SUM_WORDS]) {
  if (s.ranks == 1) return;
  __shared__ double mine[MD_RANK_SUM_WORDS];
  __shared__ int late;
  const int at = (int)(tick % MD_RANK_SUM_TICKS * MD_MAX_RHS + rhs) * s.ranks, other = threadIdx.x;
  if (threadIdx.x == 0) {
    late = 0;
    for (int w = 0; w < MD_RANK_SUM_WORDS; w++) mine[w] = word[w];
  }
  __syncthreads();
  if (other < s.ranks) {
    md_rank_part *there = (md_rank_part *)s.of[other] + at + s.rank;
    for (int w = 0; w < MD_RANK_SUM_WORDS; w++) there->word[w] = mine[w];
    md_raise_flag(&there->tick, tick);
    const md_rank_part *here = (const md_rank_part *)s.of[s.rank] + at + other;
    if (!md_wait_for_flag(&here->tick, tick, other, s.timeout)) late = 1;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  s.ticks[rhs] = tick;
  for (int w = 0; w < MD_RANK_SUM_WORDS; w++) word[w] = late ? CUDART_NAN : 0.0;
  for (int r = 0; r < s.ranks && !late; r++) {
    const md_rank_part *part = (const md_rank_part *)s.of[s.rank] + at + r;
    for (int w = 0; w < MD_RANK_SUM_WORDS; w++) word[w] += *(volatile const double *)&part->word[w];
  }
}

#endif
