#pragma once

extern "C" {
#include "lattice/fields/rank_sums.h"
}
#include <math.h>
#include <string.h>

/* The sum over a warp of value l % N in lane l, N a power of two: lanes first share out the values
 * and then add, so that a step moves half of what the one before moved. */
template <int N> static __device__ inline double add_lanes(double (&value)[N]) {
  const int lane = (int)(threadIdx.y * blockDim.x + threadIdx.x) % 32;
#pragma unroll
  for (int n = N / 2; n > 0; n /= 2) {
#pragma unroll
    for (int i = 0; i < n; i++) { /* lanes with bit n keep the upper half */
      const bool upper = lane & n;
      const double sent = upper ? value[i] : value[i + n];
      value[i] = (upper ? value[i + n] : value[i]) + __shfl_xor_sync(0xffffffffu, sent, n);
    }
  }
#pragma unroll
  for (int distance = N; distance < 32; distance *= 2)
    value[0] += __shfl_xor_sync(0xffffffffu, value[0], distance);
  return value[0];
}

/* The sums of N values over the threads of a block of whole warps, in a fixed order; in thread 0.
 * All threads of the block call it together. */
template <int N> static __device__ inline void add_threads(double (&value)[N]) {
  __shared__ double warps[N][32];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int count = blockDim.x * blockDim.y / 32;
  const double of_warp = add_lanes(value);
  __syncthreads(); /* a sum before this one has been read */
  if (thread % 32 < N) warps[thread % 32][thread / 32] = of_warp;
  __syncthreads();
  if (thread >= 32) return;
#pragma unroll
  for (int i = 0; i < N; i++) value[i] = thread < count ? warps[i][thread] : 0.0;
  const double of_block = add_lanes(value);
#pragma unroll
  for (int i = 0; i < N; i++) value[i] = __shfl_sync(0xffffffffu, of_block, i);
}

/* value[] of the threads (x, 0) += those of (x, 1), (x, 2) and (x, 3), in a block of 32 x 4. All
 * threads of the block call it together. */
template <int N, class T> static __device__ inline void add_to_first_warp(T *value) {
  __shared__ T partial[3][N][32];
  if (threadIdx.y > 0)
#pragma unroll
    for (int i = 0; i < N; i++) partial[threadIdx.y - 1][i][threadIdx.x] = value[i];
  __syncthreads();
  if (threadIdx.y == 0)
#pragma unroll
    for (int i = 0; i < N; i++)
      value[i] +=
          partial[0][i][threadIdx.x] + partial[1][i][threadIdx.x] + partial[2][i][threadIdx.x];
}

/* Sums whose bits do not depend on the order of their terms, so not on how a lattice is cut into
 * threads, blocks and ranks (J. Demmel and H. Nguyen, IEEE Trans. Computers 64 (2015) 2060;
 * P. Ahrens, J. Demmel and H. Nguyen, ACM Trans. Math. Softw. 46 (2020) 22): a term is rounded to a
 * whole number of units, what that loses to a whole number of much smaller units, and both are
 * added as such. Doubles hold such sums exactly, whatever is added first.
 *
 * The units follow from a guess of the sum. A sum that exceeds the guess by more than 2^SLACK is as
 * accurate as any other, but its last bits then depend on the order, which blocks that add to slots
 * change from run to run. Within it the error is that of rounding each term to 2^-(51 + 22 - SLACK)
 * of the guess, with one word to 2^-(51 - SLACK). */

enum { SLACK = 14 };

/* 1.5 * 2^52 units each: a double near it has steps of one unit. */
struct sum_units {
  double high, low;
};
/* The whole units of a sum, as values: high + low is the sum. */
using unit_sum = md_unit_sum;

/* 1.5 * 2^exponent, put together from its bits: a thread on which a whole kernel waits calls it. */
static __host__ __device__ inline double three_halves(int exponent) {
  const unsigned long long bits = (unsigned long long)(exponent + 1023) << 52 | 1ull << 51;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static __host__ __device__ inline sum_units units_for(double guess, int slack = SLACK) {
  enum { LOW_BELOW_HIGH = 22 }; /* up to 2^29 terms */
  unsigned long long bits;
  memcpy(&bits, &guess, sizeof bits);
  int exponent = isfinite(guess) && guess > 0.0 ? (int)(bits >> 52) - 1023 : 0;
  exponent = exponent < -900 ? -900 : exponent > 900 ? 900 : exponent;
  return {three_halves(exponent + slack + 2), three_halves(exponent + slack + 2 - LOW_BELOW_HIGH)};
}

/* A term that is never half way between two units: rounding to even would look at the sum. */
static __device__ inline double off_halves(double term) {
  return __longlong_as_double(__double_as_longlong(term) | 1);
}

/* Whether one word is exact enough for sums of the squares of numbers of type S. */
template <class S> constexpr bool one_word = sizeof(S) == 2;

/* A sum under way: begins as the units, each addition rounds its term to them. With ONE_WORD what
 * that loses is dropped: for terms of 16-bit numbers. */
template <bool ONE_WORD = false> struct unit_adder {
  double high, low;
  __device__ void begin(const sum_units &u) { high = u.high, low = u.low; }
  __device__ void add(double term) {
    const double whole = off_halves(term), next = high + whole;
    if constexpr (!ONE_WORD) low += off_halves(whole - (next - high));
    high = next;
  }
  __device__ unit_sum sum(const sum_units &u) const {
    return {high - u.high, ONE_WORD ? 0.0 : low - u.low};
  }
};

template <bool ONE_WORD = false>
static __device__ inline unit_sum unit_sum_of(double term, const sum_units &u) {
  unit_adder<ONE_WORD> a;
  a.begin(u);
  a.add(term);
  return a.sum(u);
}

/* The sum over the threads of a block of whole warps; in thread 0. All threads call it together. */
template <bool ONE_WORD = false> static __device__ inline unit_sum add_threads(unit_sum s) {
  if constexpr (ONE_WORD) {
    double v[1] = {s.high};
    add_threads(v);
    return {v[0], 0.0};
  } else {
    double v[2] = {s.high, s.low};
    add_threads(v);
    return {v[0], v[1]};
  }
}

/* A sum in memory, as one access of 16 bytes. */
static __device__ inline unit_sum load_sum(const unit_sum *from) {
  const double2 v = *reinterpret_cast<const double2 *>(from);
  return {v.x, v.y};
}
static __device__ inline void store_sum(unit_sum *to, unit_sum s) {
  *reinterpret_cast<double2 *>(to) = make_double2(s.high, s.low);
}
/* Adds a block's sum for a right-hand side to a slot of `sums`, [rhs][MD_SUM_SLOTS]. Exact, so that
 * it does not matter which block comes first. */
template <bool ONE_WORD = false>
static __device__ inline void add_to_slot(unit_sum *sums, int rhs, int block, unit_sum s) {
  unit_sum *slot = sums + rhs * MD_SUM_SLOTS + block % MD_SUM_SLOTS;
  atomicAdd(&slot->high, s.high);
  if (!ONE_WORD) atomicAdd(&slot->low, s.low);
}
