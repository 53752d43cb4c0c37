#pragma once

#include "base/precision.h"
#include "gemm/gemm.h"
#include <math.h>

/* Single elements of a matrix in its storage type, as double. For the oracle and the checks; no
 * kernel that is timed for its speed goes through here. */

static inline double md_gemm_load(md_gemm_precision precision, const void *data, int64_t at) {
  switch (precision) {
  case MD_GEMM_DOUBLE:
    return ((const double *)data)[at];
  case MD_GEMM_HALF:
    return md_float_of_half(((const uint16_t *)data)[at]);
  case MD_GEMM_BF16:
    return md_float_of_bf16(((const uint16_t *)data)[at]);
  default:
    return ((const float *)data)[at];
  }
}

/* The value rounded to what the kernel sees: TF32 operands keep 10 mantissa bits. */
static inline void md_gemm_store(md_gemm_precision precision, void *data, int64_t at,
                                 double value) {
  switch (precision) {
  case MD_GEMM_DOUBLE:
    ((double *)data)[at] = value;
    return;
  case MD_GEMM_HALF:
    ((uint16_t *)data)[at] = md_half_of_float((float)value);
    return;
  case MD_GEMM_BF16:
    ((uint16_t *)data)[at] = md_bf16_of_float((float)value);
    return;
  case MD_GEMM_TF32: {
    union {
      float f;
      uint32_t u;
    } v = {(float)value};
    v.u = (v.u + 0xfffu + ((v.u >> 13) & 1u)) & ~0x1fffu;
    ((float *)data)[at] = v.f;
    return;
  }
  default:
    ((float *)data)[at] = (float)value;
  }
}

/* The type of C that belongs to inputs of `precision`. */
static inline md_gemm_precision md_gemm_output(md_gemm_precision precision) {
  return precision == MD_GEMM_DOUBLE ? MD_GEMM_DOUBLE : MD_GEMM_SINGLE;
}

/* Test matrices in host memory. All local. */

/* Which of the three, so that one seed gives three independent matrices. */
typedef enum md_gemm_operand { MD_GEMM_A = 1, MD_GEMM_B, MD_GEMM_C } md_gemm_operand;

/* A regular subset of the rows or columns of a global matrix: local index l is the global index
 * ((l / block) * stride + offset) * block + l % block with l = local + first, the block-cyclic
 * map of process `offset` out of `stride`. All of them: {length, 1, 0, 0}. */
typedef struct md_gemm_subset {
  int64_t block, stride, offset, first;
} md_gemm_subset;

static inline int64_t md_gemm_global(const md_gemm_subset *subset, int64_t local) {
  const int64_t l = local + subset->first;
  return (l / subset->block * subset->stride + subset->offset) * subset->block + l % subset->block;
}

/* data (rows x columns local elements, ld) <- uniform in (-1, 1), rounded to the storage type, a
 * function of (seed, operand, global row, global column) alone: every rank can make its own part,
 * or any row and column that it wants to check. */
void md_gemm_fill(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision, int64_t rows,
                  int64_t columns, const md_gemm_subset *row_subset,
                  const md_gemm_subset *column_subset, void *data, int64_t ld);

/* How far a product is from the definition summed in double, and how far rounding lets it be.
 *
 * Element (i, j) may deviate by gamma_(k+2) (|alpha| |A| |B| + |beta| |C|)_ij whatever the order
 * of its sum, gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms,
 * 2nd ed., section 3.5), and by half the least number of C's type for each product that may
 * underflow, k + 2. u is the unit roundoff of the accumulation; for 16-bit and TF32 inputs 2^-23,
 * since Tensor Cores truncate their sums. */
typedef struct md_gemm_row_sums {
  double difference; /* sum over j of |computed - reference| */
  double norm;       /* of |reference| */
  double bound;      /* of the bound above */
  double excess;     /* largest deviation of one element in units of its own bound */
} md_gemm_row_sums;

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
