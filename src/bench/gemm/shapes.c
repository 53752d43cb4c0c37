#include "bench/gemm/shapes.h"
#include "base/memory_need.h"
#include "base/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One number >= 1 that ends at `end` (a separator or the end of the text). */
static bool read_size(const char **text, char end, int64_t *size) {
  char *after;
  errno = 0;
  *size = strtoll(*text, &after, 10);
  if (after == *text || **text == ' ' || **text == '+' || errno != 0 || *size < 1 || *after != end)
    return false;
  *text = end ? after + 1 : after;
  return true;
}

md_status md_gemm_sizes_read(md_context *context, const char *option, const char *text, int count,
                             int64_t *sizes) {
  const char *at = text;
  for (int i = 0; i < count; i++)
    if (!read_size(&at, i + 1 < count ? 'x' : '\0', &sizes[i]))
      return md_fail(context, MD_INPUT, "--%s takes %s with sizes from 1 to 2^63 - 1, got '%s'",
                     option,
                     count == 3   ? "MxNxK"
                     : count == 2 ? "AxB"
                                  : "a number",
                     text);
  return MD_OK;
}

static md_status append(md_context *context, md_gemm_shapes *list, int64_t m, int64_t n,
                        int64_t k) {
  md_gemm_shape *more = realloc(list->shape, ((size_t)list->count + 1) * sizeof *more);
  if (!more) return md_fail_memory(context, ((size_t)list->count + 1) * sizeof *more, "shapes");
  list->shape = more;
  list->shape[list->count++] = (md_gemm_shape){m, n, k};
  return MD_OK;
}

static md_status read_square(md_context *context, const char *text, md_gemm_shapes *list) {
  const char *at = text;
  int64_t from, to, step;
  if (!strchr(text, ':')) {
    MD_TRY(md_gemm_sizes_read(context, "square", text, 1, &from));
    return append(context, list, from, from, from);
  }
  if (!read_size(&at, ':', &from) || !read_size(&at, ':', &to) || !read_size(&at, '\0', &step) ||
      to < from || (to - from) / step > 100000)
    return md_fail(context, MD_INPUT,
                   "--square takes N or FROM:TO:STEP with 1 <= FROM <= TO and up to 100000 steps, "
                   "got '%s'",
                   text);
  for (int64_t size = from; size <= to; size += step)
    MD_TRY(append(context, list, size, size, size));
  return MD_OK;
}

enum { MOST_WORDS = 512, TEXT_BYTES = 8192 };

/* Calls for each word of "a,b,c". */
static md_status read_words(md_context *context, const char *option, const char *text,
                            const int64_t *rect, md_gemm_shapes *list) {
  char copy[TEXT_BYTES];
  const char *words[MOST_WORDS];
  const int count = md_words(text, copy, sizeof copy, words, MOST_WORDS);
  if (count < 0)
    return md_fail(context, MD_INPUT,
                   "--%s takes 1 to %d words between commas, none of them empty, got '%.60s'",
                   option, MOST_WORDS, text);
  for (int i = 0; i < count; i++) {
    int64_t size[3];
    MD_TRY(md_gemm_sizes_read(context, option, words[i], rect ? 1 : 3, size));
    MD_TRY(rect ? append(context, list, rect[0], rect[1], size[0])
                : append(context, list, size[0], size[1], size[2]));
  }
  return MD_OK;
}

md_status md_gemm_shapes_read(md_context *context, const char *shapes, const char *square,
                              const char *rect, const char *depths, md_gemm_shapes *list) {
  if (!rect != !depths)
    return md_fail(context, MD_INPUT, "--rect MxN and --k K,... go together; got --%s alone",
                   rect ? "rect" : "k");
  if (shapes) MD_TRY(read_words(context, "shapes", shapes, NULL, list));
  if (square) MD_TRY(read_square(context, square, list));
  if (rect) {
    int64_t size[2];
    MD_TRY(md_gemm_sizes_read(context, "rect", rect, 2, size));
    MD_TRY(read_words(context, "k", depths, size, list));
  }
  return MD_OK;
}

md_status md_bench_memory_check(md_context *context, double bytes) {
  return md_memory_check(context, (size_t)fmin(bytes, 0x1p60), "bench with matrices of this size");
}
