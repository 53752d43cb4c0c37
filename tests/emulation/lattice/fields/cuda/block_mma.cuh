#ifndef MD_LATTICE_FIELDS_CUDA_BLOCK_MMA_CUH
#define MD_LATTICE_FIELDS_CUDA_BLOCK_MMA_CUH

/* In the place of the file of that name: the products as the emulation forms them. */
#include "emulated.h"

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

} // namespace md_block_rows

#endif
