/* Preloaded into the program by bench_gemm.sh: the last element of a product of OpenBLAS is wrong,
 * or, with SPOILED=nan, no number. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#pragma GCC visibility push(default) /* what takes the place of a function of the library */

typedef void product(int order, int a_kind, int b_kind, int m, int n, int k, float alpha,
                     const float *a, int lda, const float *b, int ldb, float beta, float *c,
                     int ldc);
product cblas_sgemm;

void cblas_sgemm(int order, int a_kind, int b_kind, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
  product *right = (product *)(uintptr_t)dlsym(RTLD_NEXT, "cblas_sgemm");
  float *last = c + (int64_t)(m - 1) * ldc + n - 1;
  right(order, a_kind, b_kind, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  *last = getenv("SPOILED") ? NAN : *last + 0.01F;
}
