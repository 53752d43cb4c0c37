#include "gemm/matrix.h"
#include "base/memory.h"
#include "base/random_math.h"
#include "base/statistics.h"

#include <omp.h>
#include <stdlib.h>

void md_gemm_fill(uint64_t seed, md_gemm_operand operand, md_gemm_precision precision, int64_t rows,
                  int64_t columns, const md_gemm_subset *row_subset,
                  const md_gemm_subset *column_subset, void *data, int64_t ld) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; i++) {
    md_random random = md_random_begin(seed, operand, (uint64_t)md_gemm_global(row_subset, i));
    for (int64_t j = 0; j < columns; j++) {
      const uint64_t column = (uint64_t)md_gemm_global(column_subset, j);
      if (column / 4 + 1 != random.block) {
        random.block = column / 4; /* the generator yields four words a block */
        random.left = 0;
        md_random_next_bits(&random);
      }
      const double unit = ((double)(random.word[column % 4] >> 12) + 0.5) * 0x1p-52;
      md_gemm_store(precision, data, i * ld + j, 2.0 * unit - 1.0);
    }
  }
}

static double gamma_of(const md_gemm_problem *p) {
  const double roundoff = p->precision == MD_GEMM_DOUBLE   ? 0x1p-53
                          : p->precision == MD_GEMM_SINGLE ? 0x1p-24
                                                           : 0x1p-23;
  const double nu = (double)(p->k + 2) * roundoff;
  /* Of a sum of any length: C. Jeannerod, S. Rump, SIAM J. Matrix Anal. Appl. 34 (2013) 338. */
  const double sum = 1.0 + (double)p->k * roundoff, two = (1.0 + roundoff) * (1.0 + roundoff);
  return nu < 0.5 ? nu / (1.0 - nu) : sum * two - 1.0;
}

/* value[j] and modulus[j] <- row i of alpha A B + beta C and of its moduli. */
static void reference_row(const md_gemm_problem *p, const void *a, const void *b, const void *c0,
                          int64_t i, double *value, double *modulus) {
  for (int64_t j = 0; j < p->n; j++) value[j] = modulus[j] = 0.0;
  for (int64_t l = 0; l < p->k; l++) {
    const double factor = md_gemm_load(p->precision, a, i * p->lda + l);
    for (int64_t j = 0; j < p->n; j++) {
      const double term = factor * md_gemm_load(p->precision, b, l * p->ldb + j);
      value[j] += term;
      modulus[j] += fabs(term);
    }
  }
  for (int64_t j = 0; j < p->n; j++) {
    value[j] *= p->alpha;
    modulus[j] *= fabs(p->alpha);
    if (p->beta == 0.0) continue;
    const double old = p->beta * md_gemm_load(md_gemm_output(p->precision), c0, i * p->ldc + j);
    value[j] += old;
    modulus[j] += fabs(old);
  }
}

static void add_row(const md_gemm_problem *p, const void *c, int64_t i, const double *value,
                    const double *modulus, md_gemm_row_sums *sums) {
  const double gamma = gamma_of(p), least = p->precision == MD_GEMM_DOUBLE ? 0x1p-1074 : 0x1p-149;
  const double underflow = 0.5 * ((double)(p->k + 2) * least);
  for (int64_t j = 0; j < p->n; j++) {
    const double computed = md_gemm_load(md_gemm_output(p->precision), c, i * p->ldc + j);
    const double deviation = fabs(computed - value[j]), bound = gamma * modulus[j] + underflow;
    sums->difference += deviation;
    sums->norm += fabs(value[j]);
    sums->bound += bound;
    md_raise(&sums->excess, deviation / bound);
  }
}

md_status md_gemm_verify_rows(md_context *context, const md_gemm_problem *block, const void *a,
                              const void *b, const void *c0, const void *c, const int64_t *rows,
                              int64_t samples, md_gemm_row_sums *sums) {
  const size_t row = 2 * (size_t)block->n, threads = (size_t)omp_get_max_threads();
  void *memory;
  MD_TRY(md_allocate(context, row * threads * sizeof(double), "reference rows", &memory));
#pragma omp parallel for schedule(dynamic)
  for (int64_t s = 0; s < samples; s++) {
    double *value = (double *)memory + row * (size_t)omp_get_thread_num();
    reference_row(block, a, b, c0, rows[s], value, value + block->n);
    add_row(block, c, rows[s], value, value + block->n, &sums[s]);
  }
  free(memory);
  return MD_OK;
}

md_gemm_error md_gemm_error_of(const md_gemm_row_sums *sums, int64_t samples) {
  md_gemm_row_sums largest = {0};
  for (int64_t s = 0; s < samples; s++) {
    md_raise(&largest.difference, sums[s].difference);
    md_raise(&largest.norm, sums[s].norm);
    md_raise(&largest.bound, sums[s].bound);
    md_raise(&largest.excess, sums[s].excess);
  }
  const double scale = largest.norm > 0.0 ? 1.0 / largest.norm : 1.0; /* zero result: absolute */
  return (md_gemm_error){largest.difference * scale, largest.bound * scale, largest.excess};
}

int64_t md_gemm_sample_rows(int64_t m, int64_t samples, int64_t *rows) {
  if (samples >= m) {
    for (int64_t i = 0; i < m; i++) rows[i] = i;
    return m;
  }
  for (int64_t s = 0; s < samples; s++) rows[s] = samples > 1 ? s * (m - 1) / (samples - 1) : 0;
  return samples;
}
