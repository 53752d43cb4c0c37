#pragma once

/* In the place of the file of that name: the products as the emulation forms them. */
#include "emulated.h"

#include "lattice/fields/cuda/storage.cuh"

namespace md_block_rows {

static inline void mma(double (&d)[4], const double (&a)[4], double b0, double b1) {
  const double operands[] = {a[0], a[1], a[2], a[3], b0, b1};
  double product[4];
  emulated_mma(operands, product);
  for (int c = 0; c < 4; c++) d[c] += product[c];
}

/* Sums are cut off, not rounded, as on a GPU. */
static inline float cut_off(double sum) {
  const float nearest = (float)sum;
  return fabs(nearest) > fabs(sum) ? nextafterf(nearest, 0.0f) : nearest;
}

static inline void mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
  const float all[] = {a0, a1, a2, a3, b0, b1};
  double operands[6], product[4];
  for (int e = 0; e < 6; e++) operands[e] = __uint_as_float(__float_as_uint(all[e]) & ~0x1fffu);
  emulated_mma(operands, product);
  for (int c = 0; c < 4; c++) d[c] = cut_off(d[c] + product[c]);
}

/* The two numbers of a word of type S. */
template <class S> static inline void unpack(uint32_t word, double (&to)[2]) {
  vector_of<S, 2> both;
  memcpy((void *)&both, &word, sizeof both);
  for (int e = 0; e < 2; e++) to[e] = load_real(both.v[e]);
}

/* As two products, of the columns in the words' lower and upper halves of a.x, a.y and b0, and of
 * a.z, a.w and b1: what is in column t and t + 4 of the one above stands in one lane. */
template <class S>
static inline void mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1, S) {
  const uint32_t words[2][3] = {{a.x, a.y, b0}, {a.z, a.w, b1}};
  double product[2][4];
  for (int part = 0; part < 2; part++) {
    double of[3][2];
    for (int w = 0; w < 3; w++) unpack<S>(words[part][w], of[w]);
    emulated_mma({of[0][0], of[1][0], of[0][1], of[1][1], of[2][0], of[2][1]}, product[part]);
  }
  for (int c = 0; c < 4; c++) d[c] = cut_off(d[c] + (product[0][c] + product[1][c]));
}

} // namespace md_block_rows
