#include "bench/gemm/report.h"
#include "bench/suite/suite.h"

#include <stdio.h>

/* The part that multiplies matrices: bench gemm, asked for squares. */
enum { MOST_WORDS = 16, WORD = 64 };

static bool has_openblas(md_context *context) {
  const md_gemm_kernel *kernel;
  int variant;
  return md_gemm_find(context, "openblas", &kernel, &variant) == MD_OK && !kernel->unavailable;
}

md_status md_suite_gemm(md_suite *suite) {
  const bool device = suite->space == MD_DEVICE && suite->context->ranks == 1;
  const int size = device ? suite->class->gemm_device : suite->class->gemm_host;
  char shape[WORD], threads[WORD], *words[MOST_WORDS];
  double worst = 0.0;
  int count = 0;
  snprintf(shape, sizeof shape, "--shapes=%dx%dx%d", size, size, size);
  snprintf(threads, sizeof threads, "--threads=%d", suite->context->threads);
  words[count++] = "bench gemm";
  words[count++] = shape;
  words[count++] = threads;
  words[count++] = device                         ? "--kernels=all"
                   : suite->context->ranks > 1    ? "--kernels=block_cyclic,summa"
                   : has_openblas(suite->context) ? "--kernels=cpu_tiled,openblas"
                                                  : "--kernels=cpu_tiled";
  words[count++] = device ? "--precision=double,single,half" : "--precision=double,single";
  words[count++] = "--repeat=5";
  words[count++] = "--baseline=off";
  if (suite->context->quiet) words[count++] = "--quiet";
  MD_TRY(md_gemm_bench_rows(suite->context, count, words, suite->rows, &worst));
  md_suite_check(suite, "largest rounding error of a product over its bound", worst, 0.0, 1.0);
  return MD_OK;
}
