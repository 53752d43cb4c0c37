#include "gemm/matrix.h"
#include "base/memory.h"
#include "base/random.h"
#include "gemm/element.h"

#include <math.h>
#include <stdlib.h>

void md_gemm_fill(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision, int64_t rows,
                  int64_t columns, const md_gemm_subset *row_subset,
                  const md_gemm_subset *column_subset, void *data, int64_t ld) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; i++) {
    md_random random = md_random_at(seed, operand, (uint64_t)md_gemm_global(row_subset, i));
    for (int64_t j = 0; j < columns; j++) {
      const uint64_t column = (uint64_t)md_gemm_global(column_subset, j);
      if (j == 0 || column % 4 == 0 || column / 4 + 1 != random.block) {
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
  const md_gemm_subset all_rows = {rows, 1, 0}, all_columns = {columns, 1, 0};
  md_gemm_fill(seed, operand, precision, rows, columns, &all_rows, &all_columns, data, ld);
}

md_gemm_distance md_gemm_compare(md_gemm_precision precision, int64_t rows, int64_t columns,
                                 const void *x, int64_t ldx, const void *y, int64_t ldy) {
  md_gemm_distance largest = {0.0, 0.0};
  for (int64_t i = 0; i < rows; i++) {
    md_gemm_distance row = {0.0, 0.0};
    for (int64_t j = 0; j < columns; j++) {
      const double value = md_gemm_load(precision, y, i * ldy + j);
      row.difference += fabs(md_gemm_load(precision, x, i * ldx + j) - value);
      row.norm += fabs(value);
    }
    if (!(row.difference <= largest.difference)) largest.difference = row.difference;
    if (!(row.norm <= largest.norm)) largest.norm = row.norm;
    if (isnan(row.difference) || isnan(row.norm)) return row;
  }
  return largest;
}

static double roundoff(md_gemm_precision precision) {
  if (precision == MD_GEMM_DOUBLE) return 0x1p-53;
  return precision == MD_GEMM_SINGLE ? 0x1p-24 : 0x1p-23;
}

md_status md_gemm_bound(md_context *context, const md_gemm_problem *p, const void *a, const void *b,
                        const void *c, double *bound) {
  void *memory;
  MD_TRY(md_allocate(context, (size_t)p->k * sizeof(double), "row sums of B", &memory));
  double *row_sums = memory, largest = 0.0;
#pragma omp parallel for schedule(static)
  for (int64_t l = 0; l < p->k; l++) {
    row_sums[l] = 0.0;
    for (int64_t j = 0; j < p->n; j++)
      row_sums[l] += fabs(md_gemm_load(p->precision, b, l * p->ldb + j));
  }
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t i = 0; i < p->m; i++) {
    double sum = 0.0;
    for (int64_t l = 0; l < p->k; l++)
      sum += fabs(md_gemm_load(p->precision, a, i * p->lda + l)) * row_sums[l];
    sum *= fabs(p->alpha);
    for (int64_t j = 0; p->beta != 0.0 && j < p->n; j++)
      sum += fabs(p->beta * md_gemm_load(md_gemm_output(p->precision), c, i * p->ldc + j));
    if (sum > largest) largest = sum;
  }
  const double nu = (double)(p->k + 2) * roundoff(p->precision);
  *bound = nu < 1.0 ? nu / (1.0 - nu) * largest : INFINITY;
  free(memory);
  return MD_OK;
}
