#include "dirac/tensor/matvec.h"

void md_matvec_host(const md_matvec *work) {
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < work->count; n++) {
    const uint16_t *u = work->matrices + n * MD_MATVEC_MATRIX;
    const uint16_t *v = work->vectors + n * MD_MATVEC_VECTOR;
    for (int row = 0; row < 3; row++) {
      float re = 0.0f, im = 0.0f;
      for (int column = 0; column < 3; column++) {
        const float a = md_float_of_half(u[2 * (3 * row + column)]);
        const float b = md_float_of_half(u[2 * (3 * row + column) + 1]);
        const float x = md_float_of_half(v[2 * column]), y = md_float_of_half(v[2 * column + 1]);
        re += a * x - b * y;
        im += a * y + b * x;
      }
      work->results[n * MD_MATVEC_VECTOR + 2 * row] = re;
      work->results[n * MD_MATVEC_VECTOR + 2 * row + 1] = im;
    }
  }
}
