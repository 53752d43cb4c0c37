#ifndef MD_GEMM_VERIFY_H
#define MD_GEMM_VERIFY_H

#include "gemm/gemm.h"
#include <math.h>

/* How far a product is from the definition summed in double, and how far rounding lets it be.
 *
 * Element (i, j) may deviate by gamma_(k+2) (|alpha| |A| |B| + |beta| |C|)_ij whatever the order
 * of its sum, gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms,
 * 2nd ed., section 3.5). u is the unit roundoff of the accumulation; for 16-bit and TF32 inputs
 * 2^-23, since Tensor Cores truncate their sums. */
typedef struct md_gemm_row_sums {
  double difference; /* sum over j of |computed - reference| */
  double norm;       /* of |reference| */
  double bound;      /* of the bound above */
  double excess;     /* largest deviation of one element in units of its own bound */
} md_gemm_row_sums;

/* *largest <- the larger of the two; NaN counts as largest and stays. */
static inline void md_gemm_raise(double *largest, double value) {
  if (!isnan(*largest) && !(value <= *largest)) *largest = value;
}

/* Adds to sums[s], s < samples, the row rows[s] of the block: c0 is C before the product (not
 * read for beta == 0), c after it. Local, OpenMP over rows; host memory. */
md_status md_gemm_verify_rows(md_context *context, const md_gemm_problem *block, const void *a,
                              const void *b, const void *c0, const void *c, const int64_t *rows,
                              int64_t samples, md_gemm_row_sums *sums);

/* Relative to the norm of the reference, both in the infinity norm. */
typedef struct md_gemm_error {
  double relative_error, relative_bound;
  double excess; /* <= 1: every element is within its bound; NaN where an element is NaN */
} md_gemm_error;
md_gemm_error md_gemm_error_of(const md_gemm_row_sums *sums, int64_t samples);

/* `samples` rows out of `m`, evenly spread, the first and the last among them; all for
 * samples >= m. Returns how many were stored. */
int64_t md_gemm_sample_rows(int64_t m, int64_t samples, int64_t *rows);

#endif
