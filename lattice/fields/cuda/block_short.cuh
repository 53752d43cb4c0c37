#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_SHORT_CUH
#define MD_LATTICE_FIELDS_CUDA_BLOCK_SHORT_CUH

#include "lattice/fields/cuda/block_rows.cuh"
#include "lattice/fields/cuda/storage.cuh"

/* Products of half and bf16 fields with small matrices on Tensor Cores in these types: the numbers
 * go from memory to the product as they are stored, two reals in a word, without the instructions
 * that unpack them. A matrix has more bits than such a number; it is the sum of several, the
 * smallest first, because the sums inside of an mma are cut off, not rounded. Good to some 22 bits.
 */

namespace md_block_rows {

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

#endif
