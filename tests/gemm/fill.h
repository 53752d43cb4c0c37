#pragma once

#include "gemm/matrix.h"

/* md_gemm_fill of a whole matrix. */
static inline void fill_whole(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision,
                              int64_t rows, int64_t columns, void *data, int64_t ld) {
  const md_gemm_subset all_rows = {rows, 1, 0, 0}, all_columns = {columns, 1, 0, 0};
  md_gemm_fill(seed, operand, precision, rows, columns, &all_rows, &all_columns, data, ld);
}
