#ifndef MD_GEMM_MATRIX_H
#define MD_GEMM_MATRIX_H

#include "gemm/gemm.h"

/* Test matrices and how far a product may be off. All local, host memory. */

/* Which of the three, so that one seed gives three independent matrices. */
typedef enum md_gemm_operand { MD_GEMM_A = 1, MD_GEMM_B, MD_GEMM_C } md_gemm_operand;

/* A regular subset of the rows or columns of a global matrix: local index l is the global index
 * ((l / block) * stride + offset) * block + l % block. All of them: {length, 1, 0}. */
typedef struct md_gemm_subset {
  int64_t block, stride, offset;
} md_gemm_subset;

static inline int64_t md_gemm_global(const md_gemm_subset *subset, int64_t local) {
  return (local / subset->block * subset->stride + subset->offset) * subset->block +
         local % subset->block;
}

/* data (rows x columns local elements, ld) <- uniform in (-1, 1), rounded to the storage type, a
 * function of (seed, operand, global row, global column) alone: every rank can make its own part,
 * or any row and column that it wants to check. */
void md_gemm_fill(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision, int64_t rows,
                  int64_t columns, const md_gemm_subset *row_subset,
                  const md_gemm_subset *column_subset, void *data, int64_t ld);
/* The same, the whole matrix. */
void md_gemm_fill_whole(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision,
                        int64_t rows, int64_t columns, void *data, int64_t ld);

/* || X - Y ||_inf and || Y ||_inf (largest row sum of moduli), NaN when any element is. */
typedef struct md_gemm_distance {
  double difference, norm;
} md_gemm_distance;
md_gemm_distance md_gemm_compare(md_gemm_precision precision, int64_t rows, int64_t columns,
                                 const void *x, int64_t ldx, const void *y, int64_t ldy);

/* Upper bound of || C - exact ||_inf for sums in any order: gamma_(k+2) || |alpha| |A| |B| +
 * |beta| |C| ||_inf, gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed., section 3.5), with the unit roundoff u of the accumulation; u = 2^-23 for
 * 16-bit and TF32 inputs, whose Tensor Core sums are truncated. c: before the product. */
md_status md_gemm_bound(md_context *context, const md_gemm_problem *problem, const void *a,
                        const void *b, const void *c, double *bound);

#endif
