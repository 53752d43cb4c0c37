#include "bench/gemm/options.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
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

static const md_command_text TEXT = {
    "bench gemm",
    "C <- alpha A B + beta C by every kernel: checked against the definition, then timed.",
    "Kernels are named NAME or NAME:VARIANT. One rank: naive cpu_tiled openblas k0 ... k7 "
    "wmma_simple\n"
    "wmma_tiled wgmma dmma cublas. Over ranks: block_cyclic summa scalapack. 'all' takes those of "
    "the\n"
    "run (one rank or many) that this build and machine have for the precision.\n"
    "error and bound are relative in the infinity norm; every element is held to its own rounding\n"
    "bound, and a product that breaks it ends the run with exit code 1."};

/* The words of the command line before they are put together. */
typedef struct reader {
  md_context *context;
  md_gemm_order *order;
  md_gemm_shapes shapes, square, depths;
  int64_t rect[2], block[2], grid[2]; /* 0: not given */
  md_choices precisions;
  const char *host_memory;
  long long repeat, seed, panel;
  bool pitched;
} reader;

static md_status read_check(md_context *context, const char *label, const char *text,
                            void *target) {
  int64_t *size = target;
  long long value = strcmp(text, "on") == 0 ? INT64_MAX : 0;
  if (value == 0 && strcmp(text, "off") != 0 &&
      md_number_integer(text, 1, INT64_MAX, &value) != MD_NUMBER_OK)
    return md_fail(context, MD_INPUT, "%s takes on, off or a size of at least 1, got '%.200s'",
                   label, text);
  *size = value;
  return MD_OK;
}

/* md_gemm_find; a refusal says where the name stands: the option, or the line of the deck. */
static md_status find_kernel(md_context *context, const char *label, const char *name,
                             const md_gemm_kernel **kernel, int *variant) {
  char message[sizeof context->message];
  const md_status status = md_gemm_find(context, name, kernel, variant);
  if (status == MD_OK) return MD_OK;
  memcpy(message, context->message, sizeof message);
  return md_fail(context, status, "%s: %s", label, message);
}

static md_status read_local_kernel(md_context *context, const char *label, const char *text,
                                   void *target) {
  md_gemm_settings *s = target;
  return find_kernel(context, label, text, &s->local_kernel, &s->local_variant);
}

static md_status read_kernels(md_context *context, const char *label, const char *text,
                              void *target) {
  md_gemm_order *o = target;
  char copy[1024];
  const char *words[MD_GEMM_MOST_ENTRIES];
  o->entry_count = 0;
  o->all = strcmp(text, "all") == 0;
  for (int i = 0; o->all && context->ranks == 1 && md_gemm_kernels()[i]; i++)
    o->entries[o->entry_count++].kernel = md_gemm_kernels()[i];
  for (int i = 0; o->all && context->ranks > 1 && md_gemm_methods()[i]; i++)
    o->entries[o->entry_count++].method = md_gemm_methods()[i];
  if (o->all) return MD_OK;
  o->entry_count = md_words(text, copy, sizeof copy, words, MD_GEMM_MOST_ENTRIES);
  if (o->entry_count < 1)
    return md_fail(context, MD_INPUT, "%s takes names between commas, got '%.60s'", label, text);
  for (int i = 0; i < o->entry_count; i++) {
    md_gemm_entry *e = &o->entries[i];
    e->method = md_gemm_method_find(words[i]);
    if (!e->method) MD_TRY(find_kernel(context, label, words[i], &e->kernel, &e->variant));
  }
  return MD_OK;
}

enum { WORDS_BYTES = 64 };
/* As the choices of an option. */
static const char *precision_words(char text[WORDS_BYTES]) {
  text[0] = 0;
  for (int p = 0; p < MD_GEMM_PRECISIONS; p++)
    md_append(text, WORDS_BYTES, "%s%s", p ? "|" : "",
              md_gemm_precision_name((md_gemm_precision)p));
  return text;
}

static md_status read_options(reader *b, int argc, char **argv) {
  char precisions[WORDS_BYTES];
  md_option options[] = {
      MD_OPTION(PARSED, "shapes", &b->shapes, "MxNxK,...", "sizes [1024x1024x1024]",
                .parse = md_gemm_shapes_read),
      MD_OPTION(PARSED, "square", &b->square, "FROM:TO:STEP", "a sweep of m = n = k, or one N",
                .parse = md_gemm_square_read),
      MD_OPTION(PARSED, "rect", b->rect, "MxN", "m and n of a sweep over --k",
                .parse = md_gemm_pair_read),
      MD_OPTION(PARSED, "k", &b->depths, "K,...", "the depths of --rect",
                .parse = md_gemm_depths_read),
      MD_OPTION(PARSED, "kernels", b->order, "NAMES", "names between commas, or all [all]",
                .parse = read_kernels, .initial = "all"),
      MD_OPTION(CHOICES, "precision", &b->precisions, "NAMES", "of A and B [single]",
                .choices = precision_words(precisions), .initial = "single"),
      MD_OPTION(REAL, "alpha", &b->order->settings.alpha, "X", "[1]"),
      MD_OPTION(REAL, "beta", &b->order->settings.beta, "X", "[0]"),
      MD_OPTION(INTEGER, "repeat", &b->repeat, "N", "timed products of each kernel [5]", .low = 1,
                .high = 1000000),
      MD_OPTION(PARSED, "check", &b->order->settings.check_size, "on|off|SIZE",
                "every element; or up to SIZE^3, sampled rows above [1024]", .parse = read_check,
                .initial = "1024"),
      MD_OPTION(CHOICE, "baseline", &b->order->baseline, NULL,
                "the sequential product behind 'speedup', one thread [cpu_tiled]",
                .choices = "cpu_tiled|naive|off"),
      MD_OPTION(PARSED, "process-grid", b->grid, "RxC",
                "ranks over rows and columns of C [most square]", .parse = md_gemm_pair_read),
      MD_OPTION(PARSED, "block", b->block, "RxC",
                "blocks that rows and columns are dealt out in [64x64]", .parse = md_gemm_pair_read,
                .initial = "64x64"),
      MD_OPTION(INTEGER, "panel", &b->panel, "N", "block of k for summa and scalapack [256]",
                .low = 1, .high = 2147483647),
      MD_OPTION(PARSED, "local-kernel", &b->order->settings, "NAME",
                "of each rank's own products [cpu_tiled]", .parse = read_local_kernel,
                .initial = "cpu_tiled"),
      MD_OPTION(CHOICE, "host-memory", &b->host_memory, NULL,
                "of the matrices on rank 0 [pageable]", .choices = "pageable|pinned|registered"),
      MD_OPTION(FLAG, "pitched", &b->pitched, NULL, "device matrices with aligned rows"),
      MD_OPTION(INTEGER, "seed", &b->seed, "N", "of the matrices [987654]", .low = 0,
                .high = 9.2e18),
      MD_CSV_OPTION(b->order->csv),
      MD_COMMON_OPTIONS(b->order->common),
  };
  return md_options_read(b->context, &TEXT, options, sizeof options / sizeof *options,
                         &b->order->common, argc, argv);
}

static md_status read_grid(reader *b) {
  int64_t size[2] = {b->grid[0], b->grid[1]};
  const int *four = b->order->common.grid;
  if (b->grid[0] && four[0])
    return md_fail(b->context, MD_INPUT, "--grid and --process-grid say the same; give one");
  if (four[0]) {
    if (four[2] != 1 || four[3] != 1)
      return md_fail(b->context, MD_INPUT,
                     "a GEMM runs on a two-dimensional grid RxCx1x1, got %dx%dx%dx%d", four[0],
                     four[1], four[2], four[3]);
    size[0] = four[0], size[1] = four[1];
  }
  b->order->grid_asked = size[0] != 0;
  if (size[0] > INT32_MAX || size[1] > INT32_MAX) size[0] = size[1] = INT32_MAX;
  return md_gemm_grid_make(b->context, (int)size[0], (int)size[1], &b->order->settings.grid);
}

/* The list of the run: --shapes, then --square, then --rect with each --k. */
static md_status join_shapes(reader *b) {
  md_gemm_shapes *list = &b->order->list;
  if (!b->rect[0] != !b->depths.count)
    return md_fail(b->context, MD_INPUT, "--rect MxN and --k K,... go together; got --%s alone",
                   b->rect[0] ? "rect" : "k");
  const md_gemm_shapes *const parts[] = {&b->shapes, &b->square, &b->depths};
  for (int p = 0; p < 3; p++)
    for (int i = 0; i < parts[p]->count; i++) {
      const md_gemm_shape *shape = &parts[p]->shape[i];
      const bool rect = parts[p] == &b->depths;
      MD_TRY(md_gemm_shapes_append(b->context, list, rect ? b->rect[0] : shape->m,
                                   rect ? b->rect[1] : shape->n, shape->k));
    }
  return list->count > 0 ? MD_OK : md_gemm_shapes_append(b->context, list, 1024, 1024, 1024);
}

static md_status interpret(reader *b) {
  md_gemm_settings *s = &b->order->settings;
  MD_TRY(join_shapes(b));
  MD_TRY(read_grid(b));
  b->order->precision_count = b->precisions.count;
  for (int p = 0; p < b->precisions.count && p < MD_GEMM_MOST_PRECISIONS; p++)
    b->order->precision[p] = (md_gemm_precision)b->precisions.value[p];
  s->block[0] = b->block[0], s->block[1] = b->block[1], s->block[2] = b->panel;
  s->repeat = (int)b->repeat;
  s->seed = (uint64_t)b->seed;
  s->threads = b->context->threads;
  s->host_memory = strcmp(b->host_memory, "pageable") == 0 ? MD_GEMM_PAGEABLE
                   : strcmp(b->host_memory, "pinned") == 0 ? MD_GEMM_PINNED
                                                           : MD_GEMM_REGISTERED;
  s->place.pitched = b->pitched;
  return MD_OK;
}

md_status md_gemm_order_read(md_context *context, int argc, char **argv, md_gemm_order *order) {
  *order = (md_gemm_order){.baseline = "cpu_tiled"};
  order->settings.alpha = 1.0;
  reader b = {.context = context,
              .order = order,
              .host_memory = "pageable",
              .repeat = 5,
              .seed = 987654,
              .panel = 256};
  md_status status = read_options(&b, argc, argv);
  if (status == MD_OK && !order->common.help) status = md_agree(context, interpret(&b));
  free(b.shapes.shape);
  free(b.square.shape);
  free(b.depths.shape);
  return status;
}
