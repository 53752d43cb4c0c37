#include "gemm/matrix.h"
#include "base/random.h"
#include "gemm/element.h"

void md_gemm_fill(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision, int64_t rows,
                  int64_t columns, const md_gemm_subset *row_subset,
                  const md_gemm_subset *column_subset, void *data, int64_t ld) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; i++) {
    md_random random = md_random_at(seed, operand, (uint64_t)md_gemm_global(row_subset, i));
    for (int64_t j = 0; j < columns; j++) {
      const uint64_t column = (uint64_t)md_gemm_global(column_subset, j);
      if (column / 4 + 1 != random.block) {
        random.block = column / 4; /* the generator yields four words a block */
        random.left = 0;
        md_random_bits(&random);
      }
      const double unit = ((double)(random.word[column % 4] >> 12) + 0.5) * 0x1p-52;
      md_gemm_store(precision, data, i * ld + j, 2.0 * unit - 1.0);
    }
  }
}

void md_gemm_fill_whole(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision,
                        int64_t rows, int64_t columns, void *data, int64_t ld) {
  const md_gemm_subset all_rows = {rows, 1, 0, 0}, all_columns = {columns, 1, 0, 0};
  md_gemm_fill(seed, operand, precision, rows, columns, &all_rows, &all_columns, data, ld);
}
