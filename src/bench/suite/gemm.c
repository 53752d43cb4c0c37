#include "base/device.h"
#include "bench/gemm/report.h"
#include "bench/suite/suite.h"
#include "gemm/gemm.h"

#include <stdio.h>
#include <string.h>

/* The part that multiplies matrices: bench gemm, asked for squares that a machine does in
 * seconds. */
enum { MOST_WORDS = 16, WORD = 64 };

/* `kernels` of bench gemm; *worst is raised to the largest error over its bound. */
static md_status multiply(md_suite *suite, int size, const char *kernels, const char *precisions,
                          double *worst) {
  char shape[WORD], threads[WORD], chosen[2 * WORD], types[WORD], *words[MOST_WORDS];
  double error = 0.0;
  int count = 0;
  snprintf(shape, sizeof shape, "--shapes=%dx%dx%d", size, size, size);
  snprintf(threads, sizeof threads, "--threads=%d", suite->context->threads);
  snprintf(chosen, sizeof chosen, "--kernels=%s", kernels);
  snprintf(types, sizeof types, "--precision=%s", precisions);
  words[count++] = "bench gemm";
  words[count++] = shape;
  words[count++] = threads;
  words[count++] = chosen;
  words[count++] = types;
  words[count++] = "--repeat=5";
  words[count++] = "--baseline=off";
  if (suite->context->quiet) words[count++] = "--quiet";
  MD_TRY(md_gemm_bench_rows(suite->context, count, words, suite->rows, &error));
  if (!(error <= *worst)) *worst = error;
  return MD_OK;
}

static bool has_openblas(md_context *context) {
  const md_gemm_kernel *kernel;
  int variant;
  return md_gemm_find(context, "openblas", &kernel, &variant) == MD_OK && !kernel->unavailable;
}

/* The kernels made for speed; the steps of the ladder below them are for bench gemm. */
static md_status multiply_on_device(md_suite *suite, double *worst) {
  static const char *const fast[] = {"k7", "wmma_tiled", "wgmma", "dmma", "cublas"};
  static const md_gemm_precision precisions[] = {MD_GEMM_DOUBLE, MD_GEMM_SINGLE, MD_GEMM_HALF};
  MD_TRY(md_agree(suite->context, md_device_open(suite->context)));
  for (int p = 0; p < 3; p++) {
    char kernels[WORD] = "";
    for (size_t k = 0; k < sizeof fast / sizeof *fast; k++) {
      const md_gemm_kernel *kernel;
      int variant;
      if (md_gemm_find(suite->context, fast[k], &kernel, &variant) != MD_OK ||
          md_gemm_kernel_check(suite->context, kernel, precisions[p]) != MD_OK)
        continue;
      if (*kernels) strcat(kernels, ",");
      strcat(kernels, fast[k]);
    }
    if (*kernels)
      MD_TRY(multiply(suite, suite->class->gemm_device, kernels,
                      md_gemm_precision_name(precisions[p]), worst));
  }
  return MD_OK;
}

md_status md_suite_gemm(md_suite *suite) {
  const bool alone = suite->context->ranks == 1;
  double worst = 0.0;
  MD_TRY(multiply(suite, suite->class->gemm_host,
                  !alone                         ? "block_cyclic,summa"
                  : has_openblas(suite->context) ? "cpu_tiled,openblas"
                                                 : "cpu_tiled",
                  "double,single", &worst));
  if (alone && suite->space == MD_DEVICE) MD_TRY(multiply_on_device(suite, &worst));
  md_suite_check(suite, "largest rounding error of a product over its bound", worst, 0.0, 1.0);
  return MD_OK;
}
