#pragma once

#include <math_constants.h>

#include "base/device_peers.cuh"
#include "lattice/fields/cuda/unit_sum.cuh"

extern "C" {
#include "lattice/fields/rank_sums.h"
}

/* Sums over ranks without the host: every rank writes its part into the memory of every other, each
 * half of a number beside the tick of the sum, so that no fence stands between data and flag (the
 * low-latency protocol of NCCL: Z. Hu et al., arXiv:2507.04786). Sums are whole numbers of units,
 * so that the order does not matter. A part is kept for two ticks: a rank that is at tick n + 2 has
 * seen all ranks begin n + 1, which they do after they have read what belongs to n. */
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

static __device__ inline void send_word(md_rank_word *to, double value, unsigned tick) {
  const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(to), "r"((unsigned)bits),
               "r"(tick), "r"((unsigned)(bits >> 32))
               : "memory");
}
static __device__ inline bool receive_word(const md_rank_word *from, unsigned tick, double *value) {
  unsigned low, low_tick, high, high_tick;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(low), "=r"(low_tick), "=r"(high), "=r"(high_tick)
               : "l"(from)
               : "memory");
  *value = __longlong_as_double((long long)((unsigned long long)high << 32 | low));
  return low_tick == tick && high_tick == tick;
}

/* word[] of thread 0 becomes the sum over ranks, NaN where a rank did not answer. All threads of
 * the block call it together, one block for each right-hand side. */
static __device__ inline void add_ranks(const rank_sums &s, int rhs, long long tick,
                                        double (&word)[MD_RANK_SUM_WORDS]) {
  constexpr int WORDS = MD_RANK_SUM_WORDS;
  if (s.ranks == 1) return;
  __shared__ double mine[WORDS], total[WORDS];
  __shared__ int late;
  const int at = (int)(tick % MD_RANK_SUM_TICKS * MD_MAX_RHS + rhs) * s.ranks;
  const int words = (s.ranks - 1) * WORDS;
  if (threadIdx.x == 0) {
    late = 0;
    for (int w = 0; w < WORDS; w++) mine[w] = total[w] = word[w];
  }
  __syncthreads();
  for (int t = threadIdx.x; t < words; t += blockDim.x) {
    md_rank_part *there = (md_rank_part *)s.of[(s.rank + 1 + t / WORDS) % s.ranks] + at + s.rank;
    send_word(&there->word[t % WORDS], mine[t % WORDS], (unsigned)tick);
  }
  for (int t = threadIdx.x; t < words; t += blockDim.x) {
    const int other = (s.rank + 1 + t / WORDS) % s.ranks;
    const md_rank_part *here = (const md_rank_part *)s.of[s.rank] + at + other;
    double value;
    const auto came = [&] { return receive_word(&here->word[t % WORDS], (unsigned)tick, &value); };
    if (md_wait_until(came, tick, other, s.timeout))
      atomicAdd(&total[t % WORDS], value);
    else
      late = 1;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  s.ticks[rhs] = tick;
  for (int w = 0; w < WORDS; w++) word[w] = late ? CUDART_NAN : total[w];
}
