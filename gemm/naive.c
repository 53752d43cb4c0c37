#include "gemm/element.h"
#include "gemm/kernels.h"

/* The oracle: the definition, in the order i, j, k, with double sums whatever the inputs. Nobody
 * optimises it; every other kernel is compared with it. */
static md_status run(md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch,
                     void *state, const void *a, const void *b, void *c) {
  (void)context, (void)launch, (void)state;
  const md_gemm_precision in = p->precision, out = md_gemm_output(in);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      double sum = 0.0;
      for (int64_t l = 0; l < p->k; l++)
        sum += md_gemm_load(in, a, i * p->lda + l) * md_gemm_load(in, b, l * p->ldb + j);
      sum *= p->alpha;
      if (p->beta != 0.0) sum += p->beta * md_gemm_load(out, c, i * p->ldc + j);
      md_gemm_store(out, c, i * p->ldc + j, sum);
    }
  return MD_OK;
}

static int alone(int asked) {
  (void)asked;
  return 1;
}

const md_gemm_kernel md_gemm_naive = {
    .name = "naive",
    .idea = "three loops i, j, k with double sums: the oracle",
    .space = MD_GEMM_HOST,
    .precisions = (1u << MD_GEMM_PRECISIONS) - 1,
    .accumulation = "fp64",
    .run = run,
    .threads = alone,
};
