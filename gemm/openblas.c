#include "gemm/blas_threads.h"
#include "gemm/kernels.h"

#ifdef MINIDIRAC_HAVE_OPENBLAS
#include <cblas.h>
#include <limits.h>
#include <stdlib.h>

static const md_blas_library LIBRARY = {openblas_set_num_threads, openblas_get_num_threads,
                                        openblas_get_parallel};

static int threads(int asked) {
  return md_blas_threads(&LIBRARY, asked);
}

/* The state is where the thread ran before. */
static md_status open_library(md_context *context, const md_gemm_problem *p,
                              const md_gemm_launch *launch, void **state) {
  const int64_t sizes[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc};
  for (int i = 0; i < 6; i++)
    if (sizes[i] > INT_MAX)
      return md_fail(context, MD_INPUT, "openblas takes sizes up to %d, got %lld", INT_MAX,
                     (long long)sizes[i]);
  *state = calloc(1, sizeof(md_blas_place));
  if (!*state) return md_fail_memory(context, sizeof(md_blas_place), "openblas");
  md_blas_enter(&LIBRARY, launch->threads, *state);
  return MD_OK;
}

static void close_library(void *state) {
  md_blas_leave(state);
  free(state);
}

static md_status multiply(md_context *context, const md_gemm_problem *p,
                          const md_gemm_launch *launch, void *state, const void *a, const void *b,
                          void *c) {
  (void)context, (void)launch, (void)state;
  const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
  const int lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;
  if (p->precision == MD_GEMM_DOUBLE)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, p->alpha, a, lda, b, ldb,
                p->beta, c, ldc);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, (float)p->alpha, a, lda, b, ldb,
                (float)p->beta, c, ldc);
  return MD_OK;
}
#define AVAILABILITY                                                                               \
  .open = open_library, .close = close_library, .run = multiply, .threads = threads
#else
#define AVAILABILITY                                                                               \
  .unavailable = "this build found no OpenBLAS; on Debian or Ubuntu: apt-get install "             \
                 "libopenblas-dev, then configure again"
#endif

const md_gemm_kernel md_gemm_openblas = {
    .name = "openblas",
    .idea = "the library reference on the host",
    .space = MD_GEMM_HOST,
    .precisions = 1u << MD_GEMM_DOUBLE | 1u << MD_GEMM_SINGLE,
    .accumulation = "as inputs",
    AVAILABILITY,
};
