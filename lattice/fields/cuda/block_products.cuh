#pragma once

#include "lattice/fields/cuda/block_rows.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* Products and sums of block operations on Tensor Cores in tf32, whose operands have 11 bits of
 * significand: a number of more bits is the sum of two, and a product of two such is three
 * products, good to 22 bits. A product adds its small terms first, because the sums inside of an
 * mma are cut off, not rounded. Index maps: block_rows.cuh. */

namespace md_block_rows {

/* Whether a number of a field is one operand, in tf32 or as it is stored, or else two. */
template <class S> constexpr bool is_short = false;
template <> constexpr bool is_short<__half> = true;
template <> constexpr bool is_short<__nv_bfloat16> = true;

/* x = upper(x) + lower(x); what is not a number stays so in the lower part. */
static __device__ inline float upper(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000u) & ~0x1fffu);
}
static __device__ inline float cut(float x) {
  return __uint_as_float(__float_as_uint(x) & ~0x1fffu);
}
static __device__ inline float lower(float x) {
  return cut(x - upper(x));
}

/* A matrix in lanes in shared memory: its upper and its lower parts. */
template <int Q> struct single_matrix { float2 upper[64 * Q * Q], lower[64 * Q * Q]; };

template <int Q>
static __device__ inline void split_matrices(single_matrix<Q> *to, const staged_matrix<Q> *from,
                                             int count) {
  constexpr int ENTRIES = 64 * Q * Q;
  for (int e = threadIdx.x; e < count * ENTRIES; e += THREADS) {
    const int k = e / ENTRIES, entry = e % ENTRIES;
    const double unit = from[k].unit[8 * (entry / (64 * Q)) + entry % 32 / 4];
    const double2 m = make_double2(unit * from[k].of[entry].x, unit * from[k].of[entry].y);
    const float2 high = make_float2(upper((float)m.x), upper((float)m.y));
    to[k].upper[entry] = high;
    to[k].lower[entry] = make_float2(cut((float)(m.x - high.x)), cut((float)(m.y - high.y)));
  }
  __syncthreads();
}

/* sum += the numbers 8 q + g of (rows times matrix), for the rows 2 t and 2 t + 1 of each of
 * AT_ONCE colours. */
template <int Q, int AT_ONCE>
static __device__ inline void multiply(float (&sum)[AT_ONCE][4], const float2 (&v)[AT_ONCE][2 * Q],
                                       const single_matrix<Q> *matrix, int q) {
  const int first = q * 2 * Q * 32 + threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < 2 * Q; s++) {
    const float2 high = matrix->upper[first + s * 32], low = matrix->lower[first + s * 32];
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++) {
      const float2 z = v[a][s];
      mma(sum[a], low.x, low.y, -low.y, low.x, upper(z.x), upper(z.y));
      mma(sum[a], high.x, high.y, -high.y, high.x, lower(z.x), lower(z.y));
    }
  }
#pragma unroll
  for (int s = 0; s < 2 * Q; s++) {
    const float2 high = matrix->upper[first + s * 32];
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++) {
      const float2 z = v[a][s];
      mma(sum[a], high.x, high.y, -high.y, high.x, upper(z.x), upper(z.y));
    }
  }
}

/* gram_part in single. */
struct single_part {
  float re[2][4], im[2][4];
};
static __device__ inline gram_part in_double(const single_part &sum) {
  gram_part wide;
#pragma unroll
  for (int e = 0; e < 8; e++) {
    wide.re[e / 4][e % 4] = sum.re[e / 4][e % 4];
    wide.im[e / 4][e % 4] = sum.im[e / 4][e % 4];
  }
  return wide;
}

/* What mma adds of a few rows, from zero: by [r][q] the products of numbers 8 q + g, real parts
 * (first two) and imaginary parts, with the real and the imaginary parts of numbers 8 r. */
struct rows_part {
  float re[2][2][4], im[2][2][4];
};

/* As add_rows in double. TRIANGLE: entries of i >= 8 > j are not needed. */
template <bool SHORT, bool TRIANGLE>
static __device__ inline void add_rows(rows_part &part, const float (&x)[2][4],
                                       const float (&y)[2][4]) {
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int q = 0; q < 2; q++) {
      if (TRIANGLE && q > r) continue;
      const float *of = x[q], *to = y[r];
      float(&re)[4] = part.re[r][q], (&im)[4] = part.im[r][q];
      if constexpr (SHORT) {
        mma(re, of[0], of[2], of[1], of[3], to[0], to[1]);
        mma(im, of[0], of[2], of[1], of[3], to[2], to[3]);
      } else {
        float big[4], small[4], big_to[4], small_to[4];
#pragma unroll
        for (int c = 0; c < 4; c++) {
          big[c] = upper(of[c]), small[c] = lower(of[c]);
          big_to[c] = upper(to[c]), small_to[c] = lower(to[c]);
        }
        mma(re, small[0], small[2], small[1], small[3], big_to[0], big_to[1]);
        mma(im, small[0], small[2], small[1], small[3], big_to[2], big_to[3]);
        mma(re, big[0], big[2], big[1], big[3], small_to[0], small_to[1]);
        mma(im, big[0], big[2], big[1], big[3], small_to[2], small_to[3]);
        mma(re, big[0], big[2], big[1], big[3], big_to[0], big_to[1]);
        mma(im, big[0], big[2], big[1], big[3], big_to[2], big_to[3]);
      }
    }
}

/* Rounded to the rows before, which an mma would cut off. */
template <bool TRIANGLE>
static __device__ inline void add_part(single_part &sum, const rows_part &part) {
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int q = 0; q < 2; q++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        if (TRIANGLE && q > r) continue;
        sum.re[r][2 * q + e] += part.re[r][q][e] + part.im[r][q][2 + e];
        sum.im[r][2 * q + e] += part.im[r][q][e] - part.re[r][q][2 + e];
      }
}

/* Products of half and bf16 fields with small matrices on Tensor Cores in these types: the numbers
 * go from memory to the product as they are stored, two reals in a word, without the instructions
 * that unpack them. A matrix has more bits than such a number; it is the sum of several, the
 * smallest first, because the sums inside of an mma are cut off, not rounded. Good to some 22 bits.
 */

template <class S> constexpr int significant_bits = 11;
template <> constexpr int significant_bits<__nv_bfloat16> = 8;

/* A matrix in lanes in shared memory, columns in units of powers of two, so that half has the range
 * for them: lane 4 g + t has, for columns 8 q + g and rows 2 Q t + 2 s and 2 Q t + 2 s + 1, what
 * mma takes as its left operand. The right one's words are the rows' numbers 2 s and 2 s + 1. */
template <int Q, class S> struct short_matrix {
  static constexpr int PARTS = (22 + significant_bits<S> - 1) / significant_bits<S>;
  static constexpr int ENTRIES = 32 * Q * Q;
  uint4 part[PARTS][ENTRIES]; /* [q][s][lane] */
  float unit[8 * Q];
};

template <class S> static __device__ inline uint32_t word_of(S low, S high) {
  const vector_of<S, 2> both = {{low, high}};
  uint32_t word;
  memcpy(&word, &both, sizeof word);
  return word;
}

/* From zr, zi: the real part of a product has zr mr - zi mi, the imaginary one zr mi + zi mr. */
template <int Q, class S>
static __device__ inline void split_matrices(short_matrix<Q, S> *to, const staged_matrix<Q> *from,
                                             int count) {
  constexpr int ENTRIES = short_matrix<Q, S>::ENTRIES;
  for (int e = threadIdx.x; e < count * ENTRIES; e += THREADS) {
    const int k = e / ENTRIES, entry = e % ENTRIES, pair = entry / 32 * 64 + entry % 32;
    const double2 first = from[k].of[pair], second = from[k].of[pair + 32];
    double rest[4] = {first.x, first.y, second.x, second.y};
#pragma unroll
    for (int part = 0; part < short_matrix<Q, S>::PARTS; part++) {
      S v[4];
#pragma unroll
      for (int c = 0; c < 4; c++) {
        v[c] = store_real<S>((float)rest[c]);
        rest[c] -= load_real(v[c]);
      }
      to[k].part[part][entry] = make_uint4(word_of(v[0], -v[1]), word_of(v[1], v[0]),
                                           word_of(v[2], -v[3]), word_of(v[3], v[2]));
    }
  }
  for (int e = threadIdx.x; e < count * 8 * Q; e += THREADS)
    to[e / (8 * Q)].unit[e % (8 * Q)] = (float)from[e / (8 * Q)].unit[e % (8 * Q)];
  __syncthreads();
}

} // namespace md_block_rows
