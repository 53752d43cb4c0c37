#include "base/text.h"
#include "bench/gemm/case.h"

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

/* "AxB" into an int64_t[2]; this and the following as md_option.parse. */
static md_status read_pair(md_context *context, const char *label, const char *text, void *target) {
  return md_gemm_sizes_read(context, label, text, 2, target);
}

static md_status append(md_context *context, md_gemm_shapes *list, int64_t m, int64_t n,
                        int64_t k) {
  md_gemm_shape *more = realloc(list->shape, ((size_t)list->count + 1) * sizeof *more);
  if (!more) return md_fail_memory(context, ((size_t)list->count + 1) * sizeof *more, "shapes");
  list->shape = more;
  list->shape[list->count++] = (md_gemm_shape){m, n, k};
  return MD_OK;
}

/* "FROM:TO:STEP" or "N": m = n = k */
static md_status read_square(md_context *context, const char *label, const char *text,
                             void *target) {
  long long n[3] = {0, 0, 1}; /* from, to, step */
  const bool one = !strchr(text, ':');
  if (md_number_integers(text, ':', one ? 1 : 3, 1, INT64_MAX, n) != MD_NUMBER_OK ||
      (!one && (n[1] < n[0] || (n[1] - n[0]) / n[2] > 100000)))
    return md_fail(context, MD_INPUT,
                   "%s takes N or FROM:TO:STEP with 1 <= FROM <= TO and up to 100000 steps, "
                   "got '%.200s'",
                   label, text);
  const long long steps = one ? 0 : (n[1] - n[0]) / n[2];
  for (long long k = 0; k <= steps; k++) {
    const int64_t size = n[0] + k * n[2];
    MD_TRY(append(context, target, size, size, size));
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
    MD_TRY(append(context, list, size[0], size[1], size[2]));
  }
  return MD_OK;
}

/* "MxNxK,..." */
static md_status read_shapes(md_context *context, const char *label, const char *text,
                             void *target) {
  return read_words(context, label, text, 3, target);
}

/* "K,...": shapes 1 x 1 x K */
static md_status read_depths(md_context *context, const char *label, const char *text,
                             void *target) {
  return read_words(context, label, text, 1, target);
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
    "bound, and a product that breaks it ends the run with exit code 1.",
    "minidirac bench gemm --shapes 641x639x1023 --kernels cpu_tiled,openblas"};

/* The words of the command line that are put together when all are read. */
typedef struct given {
  md_gemm_shapes shapes, square, depths;
  int64_t rect[2], grid[2]; /* 0: not given */
  long long repeat, seed, panel;
} given;

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
  md_gemm_order *o = target;
  md_gemm_request *r = &o->settings.request;
  snprintf(o->local_kernel, sizeof o->local_kernel, "%s", text);
  return find_kernel(context, label, text, &r->kernel, &r->launch.variant);
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

/* No option that does nothing. */
static md_status check_needs(md_context *context, const md_option *options, int count,
                             const md_gemm_order *o) {
  bool method = false, panel = false, local = false, device = false;
  for (int i = 0; i < o->entry_count; i++) {
    const md_gemm_method *m = o->entries[i].method;
    device =
        device || (m ? o->settings.request.kernel : o->entries[i].kernel)->space == MD_GEMM_DEVICE;
    if (!m) continue;
    method = true;
    panel = panel || !m->from_root;
    local = local || m->local_kernel;
  }
  MD_TRY(md_options_need(context, options, count, "block", method, "a kernel over ranks"));
  MD_TRY(md_options_need(context, options, count, "pitched", device, "a kernel on a device"));
  MD_TRY(md_options_need(context, options, count, "panel", panel, "summa or scalapack"));
  return md_options_need(context, options, count, "local-kernel", local, "block_cyclic or summa");
}

static md_status read_options(md_context *context, md_gemm_order *o, given *w, int argc,
                              char **argv) {
  md_gemm_request *r = &o->settings.request;
  md_option options[] = {
      MD_OPTION(PARSED, "shapes", &w->shapes, "MxNxK,...", "sizes [1024x1024x1024]",
                .parse = read_shapes, .group = MD_GROUP_TIMED),
      MD_OPTION(PARSED, "square", &w->square, "FROM:TO:STEP", "a sweep of m = n = k, or one N",
                .parse = read_square),
      MD_OPTION(PARSED, "rect", w->rect, "MxN", "m and n of a sweep over --k", .parse = read_pair),
      MD_OPTION(PARSED, "k", &w->depths, "K,...", "the depths of --rect", .parse = read_depths),
      MD_OPTION(PARSED, "kernels", o, "NAMES", "names between commas, or all [all]",
                .parse = read_kernels, .initial = "all"),
      MD_OPTION(CHOICES, "precision", &o->precisions, "NAMES", "of A and B [single]",
                .choices = MD_GEMM_PRECISION_WORDS, .initial = "single"),
      MD_OPTION(REAL, "alpha", &r->problem.alpha, "X", "[1]"),
      MD_OPTION(REAL, "beta", &r->problem.beta, "X", "[0]"),
      MD_OPTION(INTEGER, "repeat", &w->repeat, "N", "timed products of each kernel [5]", .low = 1,
                .high = 1000000),
      MD_OPTION(PARSED, "check", &o->settings.check_size, "on|off|SIZE",
                "every element; or up to SIZE^3, sampled rows above [1024]", .parse = read_check,
                .initial = "1024"),
      MD_OPTION(CHOICE, "baseline", &o->baseline, NULL,
                "the sequential product behind 'speedup', one thread [cpu_tiled]",
                .choices = "cpu_tiled|naive|off"),
      MD_OPTION(PARSED, "process-grid", w->grid, "RxC",
                "ranks over rows and columns of C [most square]", .parse = read_pair,
                .group = MD_GROUP_MACHINE),
      MD_OPTION(DIMS, "grid", o->common.grid, "RxCx1x1", "the same as --process-grid RxC", .low = 1,
                .high = 1 << 20),
      MD_OPTION(PARSED, "block", r->block, "RxC",
                "blocks that rows and columns are dealt out in [64x64]", .parse = read_pair,
                .initial = "64x64"),
      MD_OPTION(INTEGER, "panel", &w->panel, "N", "block of k for summa and scalapack [256]",
                .low = 1, .high = 2147483647),
      MD_OPTION(PARSED, "local-kernel", o, "NAME", "of each rank's own products [cpu_tiled]",
                .parse = read_local_kernel, .initial = "cpu_tiled"),
      MD_OPTION(CHOICE, "host-memory", &o->host_memory, NULL, "of the matrices [pageable]",
                .choices = MD_GEMM_MEMORY_WORDS),
      MD_OPTION(FLAG, "pitched", &r->place.pitched, NULL, "device matrices with aligned rows"),
      MD_OPTION(INTEGER, "seed", &w->seed, "N", "of the matrices [987654]", .low = 0,
                .high = 0x1p53, .group = MD_GROUP_TIMED),
      MD_CSV_OPTION(o->csv),
      MD_COMMON_OPTIONS_WITHOUT_LATTICE(o->common),
  };
  const int count = sizeof options / sizeof *options;
  MD_TRY(md_options_read(context, &TEXT, options, count, &o->common, argc, argv));
  return o->common.help ? MD_OK : check_needs(context, options, count, o);
}

static md_status read_grid(md_context *context, md_gemm_order *o, const given *w) {
  int64_t size[2] = {w->grid[0], w->grid[1]};
  const int *four = o->common.grid;
  if (size[0] && four[0])
    return md_fail(context, MD_INPUT, "--grid and --process-grid say the same; give one");
  if (four[0]) {
    if (four[2] != 1 || four[3] != 1)
      return md_fail(context, MD_INPUT,
                     "a GEMM runs on a two-dimensional grid RxCx1x1, got %dx%dx%dx%d", four[0],
                     four[1], four[2], four[3]);
    size[0] = four[0], size[1] = four[1];
  }
  o->grid_asked = size[0] != 0;
  if (size[0] > INT32_MAX || size[1] > INT32_MAX)
    return md_fail(context, MD_INPUT,
                   "process grid must hold every rank once: %lldx%lld does not make %d rank%s",
                   (long long)size[0], (long long)size[1], context->ranks,
                   md_plural(context->ranks));
  return md_gemm_grid_make(context, (int)size[0], (int)size[1], &o->settings.request.grid);
}

/* The list of the run: --shapes, then --square, then --rect with each --k. */
static md_status join_shapes(md_context *context, md_gemm_shapes *list, const given *w) {
  if (!w->rect[0] != !w->depths.count)
    return md_fail(context, MD_INPUT, "--rect MxN and --k K,... go together; got --%s alone",
                   w->rect[0] ? "rect" : "k");
  const md_gemm_shapes *const parts[] = {&w->shapes, &w->square, &w->depths};
  for (int p = 0; p < 3; p++)
    for (int i = 0; i < parts[p]->count; i++) {
      const md_gemm_shape *shape = &parts[p]->shape[i];
      const int64_t m = p == 2 ? w->rect[0] : shape->m, n = p == 2 ? w->rect[1] : shape->n;
      MD_TRY(append(context, list, m, n, shape->k));
    }
  return list->count > 0 ? MD_OK : append(context, list, 1024, 1024, 1024);
}

static md_status interpret(md_context *context, md_gemm_order *o, const given *w) {
  md_gemm_settings *s = &o->settings;
  s->request.block[2] = w->panel;
  s->request.launch.threads = context->threads;
  s->repeat = (int)w->repeat;
  s->seed = (uint64_t)w->seed;
  s->host_memory = (md_gemm_host_memory)md_choice_of(MD_GEMM_MEMORY_WORDS, o->host_memory);
  MD_TRY(join_shapes(context, &o->list, w));
  return read_grid(context, o, w);
}

md_status md_gemm_order_read(md_context *context, int argc, char **argv, md_gemm_order *order) {
  *order = (md_gemm_order){.baseline = "cpu_tiled", .host_memory = "pageable"};
  order->settings.request.problem.alpha = 1.0;
  given w = {.repeat = 5, .seed = 987654, .panel = 256};
  md_status status = read_options(context, order, &w, argc, argv);
  if (status == MD_OK && !order->common.help)
    status = md_agree(context, interpret(context, order, &w));
  MD_FREE(w.shapes.shape, w.square.shape, w.depths.shape);
  return status;
}
