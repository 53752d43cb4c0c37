#include "gemm/gemm.h"
#include "base/text.h"
#include "gemm/matrix.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  size_t input_bytes, output_bytes;
} PRECISIONS[MD_GEMM_PRECISIONS] = {
    [MD_GEMM_DOUBLE] = {"double", 8, 8}, [MD_GEMM_SINGLE] = {"single", 4, 4},
    [MD_GEMM_TF32] = {"tf32", 4, 4},     [MD_GEMM_HALF] = {"half", 2, 4},
    [MD_GEMM_BF16] = {"bf16", 2, 4},
};

size_t md_gemm_input_bytes(md_gemm_precision precision) {
  return PRECISIONS[precision].input_bytes;
}
size_t md_gemm_output_bytes(md_gemm_precision precision) {
  return PRECISIONS[precision].output_bytes;
}
const char *md_gemm_precision_name(md_gemm_precision precision) {
  return PRECISIONS[precision].name;
}

static md_status check_matrix(md_context *context, const char *name, int64_t rows, int64_t columns,
                              int64_t ld, size_t element_bytes) {
  int64_t bytes;
  if (ld < columns)
    return md_fail(context, MD_INPUT,
                   "leading dimension of %s must be at least its %lld columns, got %lld", name,
                   (long long)columns, (long long)ld);
  if (__builtin_mul_overflow(rows, ld, &bytes) ||
      __builtin_mul_overflow(bytes, (int64_t)element_bytes, &bytes))
    return md_fail(
        context, MD_INPUT,
        "matrix %s of %lld x %lld elements has more bytes than fit 63 bits; take smaller sizes",
        name, (long long)rows, (long long)ld);
  return MD_OK;
}

/* A factor that rounding to the type of C would make another number. */
static md_status check_factor(md_context *context, const char *name, double factor,
                              md_gemm_precision precision) {
  const bool wide = precision == MD_GEMM_DOUBLE;
  const double size = fabs(factor), least = wide ? DBL_MIN : FLT_MIN;
  if (size == 0.0 || (size >= least && size <= (wide ? DBL_MAX : FLT_MAX))) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s must be 0 or have a size from %.3g to %.3g in precision %s, got %g", name,
                 least, wide ? DBL_MAX : FLT_MAX, md_gemm_precision_name(precision), factor);
}

md_status md_gemm_check(md_context *context, const md_gemm_problem *p) {
  if (p->m < 1 || p->n < 1 || p->k < 1)
    return md_fail(context, MD_INPUT, "sizes m, n, k must be at least 1, got %lldx%lldx%lld",
                   (long long)p->m, (long long)p->n, (long long)p->k);
  const size_t input = md_gemm_input_bytes(p->precision);
  MD_TRY(check_factor(context, "alpha", p->alpha, p->precision));
  MD_TRY(check_factor(context, "beta", p->beta, p->precision));
  MD_TRY(check_matrix(context, "A", p->m, p->k, p->lda, input));
  MD_TRY(check_matrix(context, "B", p->k, p->n, p->ldb, input));
  return check_matrix(context, "C", p->m, p->n, p->ldc, md_gemm_output_bytes(p->precision));
}

/* "double, single" for the message. */
static void served(const md_gemm_kernel *kernel, char *text, size_t bytes) {
  text[0] = '\0';
  for (int p = 0; p < MD_GEMM_PRECISIONS; p++)
    if (kernel->precisions & 1u << p)
      md_append(text, bytes, "%s%s", *text ? ", " : "", PRECISIONS[p].name);
}

md_status md_gemm_kernel_check(md_context *context, const md_gemm_kernel *kernel,
                               md_gemm_precision precision) {
  if (kernel->unavailable)
    return md_fail(context, MD_ENVIRONMENT, "GEMM kernel %s is not available: %s", kernel->name,
                   kernel->unavailable);
  if (kernel->serves) MD_TRY(kernel->serves(context));
  if (kernel->precisions & 1u << precision) return MD_OK;
  char text[128];
  served(kernel, text, sizeof text);
  return md_fail(context, MD_INPUT, "GEMM kernel %s takes inputs in %s, not %s", kernel->name, text,
                 md_gemm_precision_name(precision));
}

md_status md_gemm_plan_open(md_context *context, const md_gemm_kernel *kernel,
                            const md_gemm_problem *problem, const md_gemm_launch *launch,
                            md_gemm_plan *plan) {
  *plan = (md_gemm_plan){.kernel = kernel, .problem = *problem, .launch = *launch};
  if (plan->launch.threads < 1) plan->launch.threads = 1;
  MD_TRY(md_gemm_check(context, problem));
  MD_TRY(md_gemm_kernel_check(context, kernel, problem->precision));
  if (kernel->takes) MD_TRY(kernel->takes(context, problem));
  return kernel->open ? kernel->open(context, &plan->problem, &plan->launch, &plan->state) : MD_OK;
}

md_status md_gemm_plan_run(md_context *context, const md_gemm_plan *plan, const void *a,
                           const void *b, void *c) {
  const md_gemm_call call = {&plan->problem, &plan->launch, plan->state, a, b, c};
  return plan->kernel->run(context, &call);
}

void md_gemm_plan_close(md_gemm_plan *plan) {
  if (plan->kernel && plan->kernel->close && plan->state) plan->kernel->close(plan->state);
  *plan = (md_gemm_plan){0};
}

md_status md_gemm(md_context *context, const md_gemm_kernel *kernel, const md_gemm_problem *problem,
                  const md_gemm_launch *launch, const void *a, const void *b, void *c) {
  md_gemm_plan plan;
  md_status status = md_gemm_plan_open(context, kernel, problem, launch, &plan);
  if (status == MD_OK) status = md_gemm_plan_run(context, &plan, a, b, c);
  md_gemm_plan_close(&plan);
  return status;
}

#if !MINIDIRAC_HAVE_CUDA
#define MD_ROW(kernel)                                                                             \
  const md_gemm_kernel md_gemm_##kernel = {.name = #kernel,                                        \
                                           .space = MD_GEMM_DEVICE,                                \
                                           .precisions = (1u << MD_GEMM_PRECISIONS) - 1,           \
                                           .unavailable = MD_GEMM_NO_CUDA};
MD_GEMM_DEVICE_KERNELS(MD_ROW)
#undef MD_ROW
#endif

#define MD_ROW(kernel) &md_gemm_##kernel,
static const md_gemm_kernel *const KERNELS[] = {MD_GEMM_HOST_KERNELS(MD_ROW)
                                                    MD_GEMM_DEVICE_KERNELS(MD_ROW) NULL};
#undef MD_ROW

const md_gemm_kernel *const *md_gemm_kernels(void) {
  return KERNELS;
}

static md_status unknown_variant(md_context *context, const md_gemm_kernel *kernel,
                                 const char *variant) {
  char text[256] = "";
  for (int v = 0; kernel->variants && kernel->variants[v]; v++)
    md_append(text, sizeof text, "%s%s", v ? ", " : "", kernel->variants[v]);
  return md_fail(context, MD_INPUT, "GEMM kernel %s has no variant '%s'; its variants: %s",
                 kernel->name, variant, *text ? text : "none");
}

md_status md_gemm_find(md_context *context, const char *name, const md_gemm_kernel **kernel,
                       int *variant) {
  const size_t length = strcspn(name, ":");
  const char *wanted = name[length] == ':' ? name + length + 1 : NULL;
  *variant = 0;
  for (int i = 0; KERNELS[i]; i++) {
    *kernel = KERNELS[i];
    if (strlen(KERNELS[i]->name) != length || strncmp(KERNELS[i]->name, name, length) != 0)
      continue;
    if (!wanted || KERNELS[i]->unavailable) return MD_OK;
    for (int v = 0; KERNELS[i]->variants && KERNELS[i]->variants[v]; v++)
      if (strcmp(KERNELS[i]->variants[v], wanted) == 0) {
        *variant = v;
        return MD_OK;
      }
    return unknown_variant(context, KERNELS[i], wanted);
  }
  *kernel = NULL;
  md_suggestion nearest = md_suggest(name);
  for (int i = 0; KERNELS[i]; i++)
    md_suggest_name(&nearest, KERNELS[i]->name, strlen(KERNELS[i]->name));
  char text[512] = "";
  for (int i = 0; KERNELS[i]; i++)
    md_append(text, sizeof text, "%s%s", i ? ", " : "", KERNELS[i]->name);
  return md_fail(context, MD_INPUT, "GEMM kernel must be one of %s, got '%.100s'%s", text, name,
                 nearest.text);
}

/* The oracle: the definition, in the order i, j, k, with double sums whatever the inputs. Nobody
 * optimises it; every other kernel is compared with it. */
static md_status multiply_naive(md_context *context, const md_gemm_call *call) {
  const md_gemm_problem *p = call->problem;
  (void)context;
  const md_gemm_precision in = p->precision, out = md_gemm_output(in);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      double sum = 0.0;
      for (int64_t l = 0; l < p->k; l++)
        sum +=
            md_gemm_load(in, call->a, i * p->lda + l) * md_gemm_load(in, call->b, l * p->ldb + j);
      sum *= p->alpha;
      if (p->beta != 0.0) sum += p->beta * md_gemm_load(out, call->c, i * p->ldc + j);
      md_gemm_store(out, call->c, i * p->ldc + j, sum);
    }
  return MD_OK;
}

static int alone(int asked) {
  (void)asked;
  return 1;
}

const md_gemm_kernel md_gemm_naive = {
    .name = "naive",
    .space = MD_GEMM_HOST,
    .precisions = (1u << MD_GEMM_PRECISIONS) - 1,
    .run = multiply_naive,
    .threads = alone,
};
