#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One matrix of md_links_fold, for the host and for device code that packs links: u = phase F, or
 * phase F^dag when backward. `field`: 18 planes of doubles, `stride` apart; F is that of `site`. */
#ifdef __CUDACC__
#define MD_FOLD static __host__ __device__ inline
#else
#define MD_FOLD static inline
#endif

MD_FOLD void md_fold_matrix(const double *field, int64_t stride, int64_t site, bool backward,
                            double phase_re, double phase_im, double u[18]) {
  for (int row = 0; row < 3; row++)
    for (int column = 0; column < 3; column++) {
      const int at = 2 * (backward ? 3 * column + row : 3 * row + column);
      const double re = field[at * stride + site];
      const double bare_im = field[(at + 1) * stride + site], im = backward ? -bare_im : bare_im;
      u[2 * (3 * row + column)] = phase_re * re - phase_im * im;
      u[2 * (3 * row + column) + 1] = phase_re * im + phase_im * re;
    }
}
