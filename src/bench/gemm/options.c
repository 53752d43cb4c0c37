#include "bench/gemm/options.h"

#include <string.h>

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

/* The words of the command line before they are understood. */
typedef struct reader {
  md_context *context;
  md_gemm_order *order;
  const char *shapes, *square, *rect, *depths, *kernels, *precisions, *check, *block, *grid;
  const char *local_kernel, *host_memory;
  long long repeat, seed, panel;
  bool pitched;
} reader;

static md_status read_options(reader *b, int argc, char **argv) {
  md_option options[] = {
      {.name = "shapes",
       .type = MD_OPTION_TEXT,
       .target = &b->shapes,
       .argument = "MxNxK,...",
       .help = "sizes [1024x1024x1024]"},
      {.name = "square",
       .type = MD_OPTION_TEXT,
       .target = &b->square,
       .argument = "FROM:TO:STEP",
       .help = "a sweep of m = n = k, or one N"},
      {.name = "rect",
       .type = MD_OPTION_TEXT,
       .target = &b->rect,
       .argument = "MxN",
       .help = "m and n of a sweep over --k"},
      {.name = "k",
       .type = MD_OPTION_TEXT,
       .target = &b->depths,
       .argument = "K,...",
       .help = "the depths of --rect"},
      {.name = "kernels",
       .type = MD_OPTION_TEXT,
       .target = &b->kernels,
       .argument = "NAMES",
       .help = "names between commas, or all [all]"},
      {.name = "precision",
       .type = MD_OPTION_TEXT,
       .target = &b->precisions,
       .argument = "NAMES",
       .help = "of A and B: double single tf32 half bf16, between commas [single]"},
      {.name = "alpha",
       .type = MD_OPTION_REAL,
       .target = &b->order->settings.alpha,
       .argument = "X",
       .help = "[1]"},
      {.name = "beta",
       .type = MD_OPTION_REAL,
       .target = &b->order->settings.beta,
       .argument = "X",
       .help = "[0]"},
      {.name = "repeat",
       .type = MD_OPTION_INTEGER,
       .target = &b->repeat,
       .argument = "N",
       .help = "timed products of each kernel [5]",
       .low = 1,
       .high = 1000000},
      {.name = "check",
       .type = MD_OPTION_TEXT,
       .target = &b->check,
       .argument = "on|off|SIZE",
       .help = "every element; or up to SIZE^3, sampled rows above [1024]"},
      {.name = "baseline",
       .type = MD_OPTION_CHOICE,
       .target = &b->order->baseline,
       .help = "the sequential product behind 'speedup', one thread [cpu_tiled]",
       .choices = "cpu_tiled|naive|off"},
      {.name = "process-grid",
       .type = MD_OPTION_TEXT,
       .target = &b->grid,
       .argument = "RxC",
       .help = "ranks over rows and columns of C [most square]"},
      {.name = "block",
       .type = MD_OPTION_TEXT,
       .target = &b->block,
       .argument = "RxC",
       .help = "blocks that rows and columns are dealt out in [64x64]"},
      {.name = "panel",
       .type = MD_OPTION_INTEGER,
       .target = &b->panel,
       .argument = "N",
       .help = "block of k for summa and scalapack [256]",
       .low = 1,
       .high = 2147483647},
      {.name = "local-kernel",
       .type = MD_OPTION_TEXT,
       .target = &b->local_kernel,
       .argument = "NAME",
       .help = "of each rank's own products [cpu_tiled]"},
      {.name = "host-memory",
       .type = MD_OPTION_CHOICE,
       .target = &b->host_memory,
       .help = "of the matrices on rank 0 [pageable]",
       .choices = "pageable|pinned|registered"},
      {.name = "pitched",
       .type = MD_OPTION_FLAG,
       .target = &b->pitched,
       .help = "device matrices with aligned rows"},
      {.name = "seed",
       .type = MD_OPTION_INTEGER,
       .target = &b->seed,
       .argument = "N",
       .help = "of the matrices [987654]",
       .low = 0,
       .high = 9.2e18},
      {.name = "csv",
       .type = MD_OPTION_TEXT,
       .target = &b->order->csv,
       .argument = "FILE",
       .help = "the rows as a table",
       .file = MD_FILE_REPORT},
      MD_COMMON_OPTIONS(b->order->common),
  };
  return md_options_read(b->context, &TEXT, options, sizeof options / sizeof *options,
                         &b->order->common, argc, argv);
}

static md_status read_check(reader *b) {
  if (!b->check) return MD_OK;
  if (strcmp(b->check, "off") == 0) {
    b->order->settings.check_size = 0;
    return MD_OK;
  }
  if (strcmp(b->check, "on") == 0) {
    b->order->settings.check_size = INT64_MAX;
    return MD_OK;
  }
  if (md_gemm_sizes_read(b->context, "check", b->check, 1, &b->order->settings.check_size) == MD_OK)
    return MD_OK;
  return md_fail(b->context, MD_INPUT, "--check takes on, off or a size of at least 1, got '%s'",
                 b->check);
}

static md_status read_grid(reader *b) {
  int64_t size[2] = {0, 0};
  const int *four = b->order->common.grid;
  if (b->grid && four[0])
    return md_fail(b->context, MD_INPUT, "--grid and --process-grid say the same; give one");
  if (b->grid) MD_TRY(md_gemm_sizes_read(b->context, "process-grid", b->grid, 2, size));
  if (four[0]) {
    if (four[2] != 1 || four[3] != 1)
      return md_fail(b->context, MD_INPUT,
                     "a GEMM runs on a two-dimensional grid RxCx1x1, got %dx%dx%dx%d", four[0],
                     four[1], four[2], four[3]);
    size[0] = four[0], size[1] = four[1];
  }
  if (size[0] > INT32_MAX || size[1] > INT32_MAX) size[0] = size[1] = INT32_MAX;
  return md_gemm_grid_make(b->context, (int)size[0], (int)size[1], &b->order->settings.grid);
}

static md_status read_precisions(reader *b) {
  char copy[256];
  const char *words[MD_GEMM_MOST_PRECISIONS];
  const int count = md_words(b->precisions, copy, sizeof copy, words, MD_GEMM_MOST_PRECISIONS);
  for (int i = 0; i < count; i++) {
    const int precision = md_gemm_precision_of(words[i]);
    if (precision < 0)
      return md_fail(b->context, MD_INPUT,
                     "--precision must be one of double, single, tf32, half, bf16, got '%s'",
                     words[i]);
    b->order->precision[i] = (md_gemm_precision)precision;
  }
  b->order->precision_count = count;
  return count > 0 ? MD_OK
                   : md_fail(b->context, MD_INPUT,
                             "--precision takes names between commas, got "
                             "'%.60s'",
                             b->precisions);
}

static md_status read_kernels(reader *b) {
  b->order->all = strcmp(b->kernels, "all") == 0;
  if (b->order->all) {
    if (b->context->ranks == 1)
      for (int i = 0; md_gemm_kernels()[i]; i++)
        b->order->entries[b->order->entry_count++].kernel = md_gemm_kernels()[i];
    for (int i = 0; md_gemm_methods()[i] && b->context->ranks > 1; i++)
      b->order->entries[b->order->entry_count++].method = md_gemm_methods()[i];
    return MD_OK;
  }
  char copy[1024];
  const char *words[MD_GEMM_MOST_ENTRIES];
  b->order->entry_count = md_words(b->kernels, copy, sizeof copy, words, MD_GEMM_MOST_ENTRIES);
  if (b->order->entry_count < 1)
    return md_fail(b->context, MD_INPUT, "--kernels takes names between commas, got '%.60s'",
                   b->kernels);
  for (int i = 0; i < b->order->entry_count; i++) {
    md_gemm_entry *e = &b->order->entries[i];
    e->method = md_gemm_method_find(words[i]);
    if (!e->method) MD_TRY(md_gemm_find(b->context, words[i], &e->kernel, &e->variant));
  }
  return MD_OK;
}

static md_status interpret(reader *b) {
  md_gemm_settings *s = &b->order->settings;
  int64_t block[2] = {64, 64};
  if (!b->shapes && !b->square && !b->rect && !b->depths) b->shapes = "1024x1024x1024";
  MD_TRY(
      md_gemm_shapes_read(b->context, b->shapes, b->square, b->rect, b->depths, &b->order->list));
  MD_TRY(read_check(b));
  if (b->block) MD_TRY(md_gemm_sizes_read(b->context, "block", b->block, 2, block));
  MD_TRY(read_grid(b));
  MD_TRY(read_precisions(b));
  MD_TRY(read_kernels(b));
  MD_TRY(md_gemm_find(b->context, b->local_kernel, &s->local_kernel, &s->local_variant));
  s->block[0] = block[0], s->block[1] = block[1], s->block[2] = b->panel;
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
  order->settings.check_size = 1024;
  reader b = {.context = context,
              .order = order,
              .kernels = "all",
              .precisions = "single",
              .local_kernel = "cpu_tiled",
              .host_memory = "pageable",
              .repeat = 5,
              .seed = 987654,
              .panel = 256};
  MD_TRY(read_options(&b, argc, argv));
  return order->common.help ? MD_OK : md_agree(context, interpret(&b));
}
