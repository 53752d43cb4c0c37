#ifndef MD_GEMM_MATRIX_H
#define MD_GEMM_MATRIX_H

#include "gemm/gemm.h"

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
/* The same, the whole matrix. */
void md_gemm_fill_whole(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision,
                        int64_t rows, int64_t columns, void *data, int64_t ld);

#endif
