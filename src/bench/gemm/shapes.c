#include "bench/gemm/shapes.h"
#include "base/memory_need.h"
#include "base/number.h"
#include "base/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

md_status md_gemm_sizes_read(md_context *context, const char *label, const char *text, int count,
                             int64_t *sizes) {
  long long values[3];
  if (md_number_integers(text, 'x', count, 1, INT64_MAX, values) != MD_NUMBER_OK)
    return md_fail(context, MD_INPUT, "%s takes %s with sizes from 1 to 2^63 - 1, got '%.200s'",
                   label,
                   count == 3   ? "MxNxK"
                   : count == 2 ? "AxB"
                                : "a number",
                   text);
  for (int i = 0; i < count; i++) sizes[i] = values[i];
  return MD_OK;
}

md_status md_gemm_pair_read(md_context *context, const char *label, const char *text,
                            void *target) {
  return md_gemm_sizes_read(context, label, text, 2, target);
}

md_status md_gemm_shapes_append(md_context *context, md_gemm_shapes *list, int64_t m, int64_t n,
                                int64_t k) {
  md_gemm_shape *more = realloc(list->shape, ((size_t)list->count + 1) * sizeof *more);
  if (!more) return md_fail_memory(context, ((size_t)list->count + 1) * sizeof *more, "shapes");
  list->shape = more;
  list->shape[list->count++] = (md_gemm_shape){m, n, k};
  return MD_OK;
}

md_status md_gemm_square_read(md_context *context, const char *label, const char *text,
                              void *target) {
  long long n[3] = {0}; /* from, to, step */
  const bool one = !strchr(text, ':');
  if (md_number_integers(text, ':', one ? 1 : 3, 1, INT64_MAX, n) != MD_NUMBER_OK ||
      (!one && (n[1] < n[0] || (n[1] - n[0]) / n[2] > 100000)))
    return md_fail(context, MD_INPUT,
                   "%s takes N or FROM:TO:STEP with 1 <= FROM <= TO and up to 100000 steps, "
                   "got '%.200s'",
                   label, text);
  if (one) return md_gemm_shapes_append(context, target, n[0], n[0], n[0]);
  const long long steps = (n[1] - n[0]) / n[2];
  for (long long k = 0; k <= steps; k++) {
    const int64_t size = n[0] + k * n[2];
    MD_TRY(md_gemm_shapes_append(context, target, size, size, size));
  }
  return MD_OK;
}

enum { MOST_WORDS = 512, TEXT_BYTES = 8192 };

/* Appends each word of "a,b,c", sizes with `count` numbers. */
static md_status read_words(md_context *context, const char *label, const char *text, int count,
                            md_gemm_shapes *list) {
  char copy[TEXT_BYTES];
  const char *words[MOST_WORDS];
  const int found = md_words(text, copy, sizeof copy, words, MOST_WORDS);
  if (found < 0)
    return md_fail(context, MD_INPUT,
                   "%s takes 1 to %d words between commas, none of them empty, got '%.60s'", label,
                   MOST_WORDS, text);
  for (int i = 0; i < found; i++) {
    int64_t size[3] = {1, 1, 1};
    MD_TRY(md_gemm_sizes_read(context, label, words[i], count, size + 3 - count));
    MD_TRY(md_gemm_shapes_append(context, list, size[0], size[1], size[2]));
  }
  return MD_OK;
}

md_status md_gemm_shapes_read(md_context *context, const char *label, const char *text,
                              void *target) {
  return read_words(context, label, text, 3, target);
}

md_status md_gemm_depths_read(md_context *context, const char *label, const char *text,
                              void *target) {
  return read_words(context, label, text, 1, target);
}

md_status md_bench_memory_check(md_context *context, double bytes) {
  return md_memory_check(context, (size_t)fmin(bytes, 0x1p60), "bench with matrices of this size");
}
