#include "base/options.h"
#include "bench/bench.h"
#include "bench/dirac/case.h"
#include "bench/dirac/matvec.h"
#include "lattice/gauge/gauge_start.h"
#include "lattice/halo/halo_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16, TEXT_BYTES = 256, GAUGE_SEED = 11 };

/* Choices of one option, as the numbers that the request takes. */
typedef struct choices {
  int value[MOST_WORDS], count;
  bool all; /* what the backend serves, else what was named */
} choices;

typedef struct settings {
  int dims[MD_DIMS];
  const char *kernel, *counts, *backends, *packings, *precisions, *reconstructs, *rhs, *mode, *csv;
  long long repetitions;
  choices packing, precision, reconstruct, n_rhs;
  bool wanted[MOST_WORDS]; /* backends, in the table's order */
} settings;

/* Words of `text` by their numbers; "all" is every number below `most`. */
static md_status read_choices(md_context *context, const char *option, const char *text,
                              int (*number_of)(const char *word), int most, choices *result) {
  char copy[TEXT_BYTES];
  const char *words[MOST_WORDS];
  *result = (choices){0};
  if (strcmp(text, "all") == 0) {
    result->all = true;
    for (; result->count < most; result->count++) result->value[result->count] = result->count;
    return MD_OK;
  }
  const int count = md_words(text, copy, sizeof copy, words, MOST_WORDS);
  if (count < 0)
    return md_fail(context, MD_INPUT, "--%s must be a list a,b,c of at most %d words, got '%s'",
                   option, MOST_WORDS, text);
  for (int i = 0; i < count; i++) {
    const int number = number_of(words[i]);
    if (number < 0)
      return md_fail(context, MD_INPUT, "--%s does not know '%s'; see minidirac bench dirac --help",
                     option, words[i]);
    result->value[result->count++] = number;
  }
  return MD_OK;
}

static int rhs_of(const char *word) {
  char *end;
  const long n = strtol(word, &end, 10);
  return *end == '\0' && n >= 1 && n <= MD_MAX_RHS ? (int)n : -1;
}

/* Marks the wanted backends of the table; an unknown name is an error. */
static md_status read_backends(md_context *context, const char *text, bool wanted[MOST_WORDS]) {
  char copy[TEXT_BYTES];
  const char *words[MOST_WORDS];
  const bool all = strcmp(text, "all") == 0;
  const int count = all ? 0 : md_words(text, copy, sizeof copy, words, MOST_WORDS);
  if (count < 0)
    return md_fail(context, MD_INPUT, "--backends must be a list a,b,c, got '%s'", text);
  for (int k = 0; k < MOST_WORDS && md_backends()[k]; k++) wanted[k] = all;
  for (int i = 0; i < count; i++) {
    int k = 0;
    while (md_backends()[k] && strcmp(md_backends()[k]->name, words[i]) != 0) k++;
    if (!md_backends()[k] || k == MOST_WORDS)
      return md_fail(context, MD_INPUT,
                     "--backends does not know '%s'; the README's table lists the names", words[i]);
    wanted[k] = true;
  }
  return MD_OK;
}

static md_status read_settings(md_context *context, settings *s) {
  enum { PACKINGS = MD_PACKING_STACKED + 1, RECONSTRUCTS = MD_RECONSTRUCT_8 + 1 };
  MD_TRY(read_backends(context, s->backends, s->wanted));
  MD_TRY(read_choices(context, "packings", s->packings, md_packing_of, PACKINGS, &s->packing));
  MD_TRY(read_choices(context, "precisions", s->precisions, md_precision_of, MD_PRECISIONS,
                      &s->precision));
  MD_TRY(read_choices(context, "reconstructs", s->reconstructs, md_reconstruct_of, RECONSTRUCTS,
                      &s->reconstruct));
  return read_choices(context, "rhs", s->rhs, rhs_of, 0, &s->n_rhs);
}

/* False for a number that "all" leaves out: the flags of a backend of this build lack it. */
static bool meant(const choices *c, int i, const md_backend *b, unsigned flags) {
  return !c->all || b->unavailable || (flags & 1u << c->value[i]);
}

/* Every combination of one backend. */
static md_status bench_backend(md_dirac_bench *bench, const settings *s, const md_backend *b) {
  for (int i = 0; i < s->packing.count; i++)
    for (int j = 0; j < s->precision.count; j++)
      for (int k = 0; k < s->reconstruct.count; k++) {
        if (!meant(&s->packing, i, b, b->packings) || !meant(&s->precision, j, b, b->precisions) ||
            !meant(&s->reconstruct, k, b, b->reconstructs))
          continue;
        md_backend_request request = {.precision = (md_precision)s->precision.value[j],
                                      .reconstruct = (md_reconstruct)s->reconstruct.value[k],
                                      .packing = (md_packing)s->packing.value[i],
                                      .antiperiodic = true};
        for (int l = 0; l < s->n_rhs.count; l++) {
          request.n_rhs = s->n_rhs.value[l];
          MD_TRY(md_dirac_bench_case(bench, b, &request));
        }
      }
  return MD_OK;
}

static md_status bench_backends(md_dirac_bench *bench, const settings *s) {
  for (int k = 0; k < MOST_WORDS && md_backends()[k]; k++)
    if (s->wanted[k]) MD_TRY(bench_backend(bench, s, md_backends()[k]));
  return MD_OK;
}

static void say_head(md_context *context, const settings *s) {
  const int *d = s->dims;
  md_say(context,
         "%d x %d x %d x %d, %s, %d ranks x %d threads, median of %lld\n"
         "flops       570 a site and right-hand side: 8 x 66 + 7 x 6\n"
         "bytes       of a site: 8 links + n_rhs x (1 read + 1 written) x 6 reals;\n"
         "            without reuse: 8 links + n_rhs x (8 read + 1 written) x 6 reals;\n"
         "            in half and fixed 4 more for the scale of each site read or written\n"
         "seconds     of a hop; a device replays a recording of several, without the host between\n"
         "fraction    bytes/s over triad (host) or copy (device) of the same working set\n"
         "error       |D v - cpu_ref| / |cpu_ref|, checked before timing\n\n"
         "%-10s %-8s %-6s %3s %4s %11s %10s %9s %9s %8s %9s\n",
         d[0], d[1], d[2], d[3], strcmp(s->mode, "turn") == 0 ? "Deo and Doe in turn" : "Deo alone",
         context->ranks, context->threads, s->repetitions, "backend", "packing", "prec", "rec",
         "rhs", "seconds", "GFLOP/s", "GB/s", "bandwidth", "fraction", "error");
}

/* Everything between reading the options and the report. */
static md_status run(md_dirac_bench *bench, const settings *s, const int grid[MD_DIMS],
                     md_report *report) {
  md_context *context = bench->context;
  md_layout_request layout = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge = {0};
  for (int d = 0; d < MD_DIMS; d++) {
    layout.global[d] = s->dims[d];
    layout.grid[d] = grid[d];
  }
  MD_TRY(md_geometry_create(context, &layout, &geometry));
  md_report_grid(report, geometry->grid);
  md_status status = md_agree(context, md_gauge_create(context, geometry, &gauge));
  if (status == MD_OK) status = md_gauge_start_hot(context, &gauge, GAUGE_SEED);
  bench->geometry = geometry;
  bench->gauge = &gauge;
  if (status == MD_OK) status = md_dirac_bench_open(bench);
  if (status == MD_OK) {
    say_head(context, s);
    status = bench_backends(bench, s);
  }
  md_dirac_bench_close(bench);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  return status;
}

md_status md_bench_dirac(md_context *context, int argc, char **argv) {
  settings s = {.dims = {16, 16, 16, 16},
                .kernel = "stencil",
                .counts = "1920,2560,65536,1048576,16777216",
                .backends = "all",
                .packings = "all",
                .precisions = "all",
                .reconstructs = "all",
                .rhs = "1,8,16",
                .mode = "single",
                .repetitions = 15};
  md_halo_request halo = {.transport = "auto"};
  md_common_options common = {0};
  md_option options[] = {{.name = "dims",
                          .type = MD_OPTION_DIMS,
                          .target = s.dims,
                          .argument = "AxBxCxD",
                          .help = "lattice x,y,z,t [16x16x16x16]",
                          .low = 2,
                          .high = 32766},
                         {.name = "kernel",
                          .type = MD_OPTION_CHOICE,
                          .target = &s.kernel,
                          .choices = "stencil|matvec",
                          .help = "stencil, or bare 3x3 products by each packing [stencil]"},
                         {.name = "counts",
                          .type = MD_OPTION_TEXT,
                          .target = &s.counts,
                          .argument = "N,M",
                          .help = "matvec: products at once [1920,2560,65536,1048576,16777216]"},
                         {.name = "backends",
                          .type = MD_OPTION_TEXT,
                          .target = &s.backends,
                          .argument = "A,B",
                          .help = "names of the README's table [all]"},
                         {.name = "packings",
                          .type = MD_OPTION_TEXT,
                          .target = &s.packings,
                          .argument = "A,B",
                          .help = "none, single, diagonal, block8, stacked [all]"},
                         {.name = "precisions",
                          .type = MD_OPTION_TEXT,
                          .target = &s.precisions,
                          .argument = "A,B",
                          .help = "double, single, half, bf16, fixed [all]"},
                         {.name = "reconstructs",
                          .type = MD_OPTION_TEXT,
                          .target = &s.reconstructs,
                          .argument = "A,B",
                          .help = "reals of a link: 18, 12, 8 [all]"},
                         {.name = "rhs",
                          .type = MD_OPTION_TEXT,
                          .target = &s.rhs,
                          .argument = "N,M",
                          .help = "right-hand sides at once [1,8,16]"},
                         {.name = "mode",
                          .type = MD_OPTION_CHOICE,
                          .target = &s.mode,
                          .choices = "single|turn",
                          .help = "Deo alone, or Deo and Doe in turn [single]"},
                         {.name = "repetitions",
                          .type = MD_OPTION_INTEGER,
                          .target = &s.repetitions,
                          .argument = "N",
                          .help = "timed samples of each configuration [15]",
                          .low = 1,
                          .high = 1e6},
                         MD_HALO_OPTIONS(halo),
                         {.name = "csv",
                          .type = MD_OPTION_TEXT,
                          .target = &s.csv,
                          .argument = "FILE",
                          .help = "the rows as CSV"},
                         MD_COMMON_OPTIONS(common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"bench dirac", "time the stencil of each backend, checked first",
                                NULL};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &common, argc, argv));
  if (common.help) return MD_OK;
  MD_TRY(read_settings(context, &s));
  MD_TRY(md_report_open(context, "bench dirac", &report));
  md_dirac_bench bench = {.context = context,
                          .halo = &halo,
                          .turn = strcmp(s.mode, "turn") == 0,
                          .repetitions = (int)s.repetitions,
                          .copy_gbytes_per_s = NAN,
                          .rows = cJSON_CreateArray(),
                          .skipped = cJSON_CreateArray()};
  const bool matvec = strcmp(s.kernel, "matvec") == 0;
  md_status status = matvec ? md_bench_matvec(context, s.counts, (int)s.repetitions, bench.rows)
                            : run(&bench, &s, common.grid, &report);
  cJSON_AddNumberToObject(report.root, "copy_gbytes_per_s", bench.copy_gbytes_per_s);
  cJSON_AddNumberToObject(report.root, "copy_bytes", bench.copy_bytes);
  cJSON_AddItemToObject(report.root, "rows", bench.rows);
  cJSON_AddItemToObject(report.root, "skipped", bench.skipped);
  if (status == MD_OK && !matvec)
    md_say(context, "\ncopy bandwidth %.2f GB/s at %.3g MB a rank\n", bench.copy_gbytes_per_s,
           1e-6 * bench.copy_bytes);
  if (status == MD_OK) status = md_report_csv(context, bench.rows, s.csv);
  const md_status written = md_report_close(context, &report, status == MD_OK ? common.json : NULL);
  return status != MD_OK ? status : written;
}
