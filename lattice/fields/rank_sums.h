#pragma once

#include "lattice/fields/field.h"

/* A sum as whole numbers of two units (lattice/fields/cuda/unit_sum.cuh): high + low. */
typedef struct md_unit_sum {
  double high, low;
} md_unit_sum;

/* Parts of a sum that a device keeps for each right-hand side: enough that its blocks seldom meet
 * at one, few enough that a block of as many threads adds them at once. */
enum { MD_SUM_SLOTS = 64 };

/* Sums that kernels leave on a device: MD_SUM_SLOTS parts for each right-hand side,
 * sum[rhs * MD_SUM_SLOTS + slot], whole numbers of the units that `units` holds for each right-hand
 * side, so that the order in which they are added does not matter
 * (lattice/fields/cuda/unit_sum.cuh). Kernels add to them, each block to a slot of its own as far
 * as they go; who reads them sets them to zero. */
typedef struct md_partial_sums {
  md_unit_sum *sum;
  const struct sum_units *units;
} md_partial_sums;

/* One rank's part of a sum over ranks for one right-hand side, in memory that GPUs share
 * (lattice/fields/cuda/rank_sums.cuh). A word is a double in two halves, each beside the tick that
 * it belongs to: 8 bytes travel together, so who finds the tick has its half. */
enum { MD_RANK_SUM_WORDS = 4, MD_RANK_SUM_TICKS = 2 };
typedef struct md_rank_word {
  unsigned low, low_tick, high, high_tick; /* one access of 16 bytes */
} md_rank_word;
typedef struct md_rank_part {
  md_rank_word word[MD_RANK_SUM_WORDS];
} md_rank_part;

/* Each rank's shared memory for sums of up to MD_MAX_RHS right-hand sides: the parts, then its own
 * count of the sums of each right-hand side so far, a long long. */
static inline size_t md_rank_sums_parts_bytes(int ranks) {
  return MD_RANK_SUM_TICKS * (size_t)MD_MAX_RHS * (size_t)ranks * sizeof(md_rank_part);
}
static inline size_t md_rank_sums_bytes(int ranks) {
  return md_rank_sums_parts_bytes(ranks) + MD_MAX_RHS * sizeof(long long);
}
