/* minidirac bench solver: what it takes to reach a true residual, by each way to solve. */
#include "base/options.h"
#include "bench/bench.h"
#include "bench/solver/case.h"
#include "io/lattice_file.h"
#include "lattice/gauge/gauge_start.h"
#include "lattice/gauge/heatbath.h"
#include "lattice/halo/halo_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16, TEXT_BYTES = 256, GAUGE_SEED = 11 };

typedef struct settings {
  md_common_options common;
  const char *lattice, *masses_text, *rhs_text, *solvers_text, *operators, *inner_text,
      *shifts_text, *csv;
  int dims[MD_DIMS];
  long long sweeps, repetitions, max_iterations;
  double beta, tolerance;
  md_halo_request halo;
  double masses[MOST_WORDS], rhs[MOST_WORDS], shifts[MD_MAX_SHIFTS];
  int mass_count, rhs_count, solver_count, inner_count, operator_count, shift_count;
  md_solver_kind solvers[MOST_WORDS];
  md_precision inner[MOST_WORDS]; /* MD_DOUBLE: none */
  struct {
    char backend[TEXT_BYTES];
    md_packing packing;
    md_reconstruct reconstruct;
  } operator_of[MOST_WORDS];
} settings;

static md_status fail_list(md_context *context, const char *option, const char *rule,
                           const char *text) {
  return md_fail(context, MD_INPUT, "--%s must be %s, got '%s'; see minidirac bench solver --help",
                 option, rule, text);
}

/* Numbers a,b,... within [low, high]. */
static md_status read_numbers(md_context *context, const char *option, const char *rule,
                              const char *text, double low, double high, double *values, int most,
                              int *count) {
  char copy[TEXT_BYTES];
  const char *words[MD_MAX_SHIFTS];
  *count = md_words(text, copy, sizeof copy, words, most);
  for (int i = 0; i < *count; i++) {
    char *end;
    values[i] = strtod(words[i], &end);
    if (*end || !(values[i] >= low && values[i] <= high))
      return fail_list(context, option, rule, text);
  }
  return *count > 0 ? MD_OK : fail_list(context, option, rule, text);
}

/* BACKEND[:PACKING[:REALS]] */
static md_status read_operator(md_context *context, settings *s, const char *word) {
  const char *rule = "a list of BACKEND, BACKEND:PACKING or BACKEND:PACKING:REALS";
  const int k = s->operator_count++;
  char *backend = s->operator_of[k].backend;
  strcpy(backend, word); /* a word of a text of TEXT_BYTES */
  char *packing = strchr(backend, ':'), *reals = packing ? strchr(packing + 1, ':') : NULL;
  if (packing) *packing++ = '\0';
  if (reals) *reals++ = '\0';
  const int p = packing ? md_packing_of(packing) : MD_PACKING_NONE;
  const int r = reals ? md_reconstruct_of(reals) : MD_RECONSTRUCT_18;
  if (p < 0 || r < 0) return fail_list(context, "operators", rule, word);
  s->operator_of[k].packing = (md_packing)p;
  s->operator_of[k].reconstruct = (md_reconstruct)r;
  bool known = strcmp(backend, "auto") == 0;
  for (const md_backend *const *b = md_backends(); *b && !known; b++)
    known = strcmp((*b)->name, backend) == 0;
  return known ? MD_OK : fail_list(context, "operators", rule, word);
}

static md_status read_words(md_context *context, settings *s) {
  char copy[TEXT_BYTES];
  const char *words[MOST_WORDS];
  s->solver_count = md_words(s->solvers_text, copy, sizeof copy, words, MOST_WORDS);
  for (int i = 0; i < s->solver_count; i++) {
    const int kind = md_solver_kind_of(words[i]);
    if (kind < 0)
      s->solver_count = -1;
    else
      s->solvers[i] = (md_solver_kind)kind;
  }
  if (s->solver_count < 1)
    return fail_list(context, "solvers", "a list of cg, block, multishift, refined and separate",
                     s->solvers_text);
  s->inner_count = md_words(s->inner_text, copy, sizeof copy, words, MOST_WORDS);
  for (int i = 0; i < s->inner_count; i++) {
    const int precision = strcmp(words[i], "none") == 0 ? MD_DOUBLE : md_precision_of(words[i]);
    if (precision < 0 || strcmp(words[i], "double") == 0)
      s->inner_count = -1;
    else
      s->inner[i] = (md_precision)precision;
  }
  if (s->inner_count < 1)
    return fail_list(context, "inner", "a list of none and precisions below double", s->inner_text);
  const int count = md_words(s->operators, copy, sizeof copy, words, MOST_WORDS);
  if (count < 1) return fail_list(context, "operators", "a list of names", s->operators);
  for (int i = 0; i < count; i++) MD_TRY(read_operator(context, s, words[i]));
  return MD_OK;
}

static md_status check(md_context *context, settings *s) {
  if (!s->lattice == (s->dims[0] == 0))
    return md_fail(context, MD_INPUT,
                   "bench solver needs --lattice FILE or --dims AxBxCxD, one of "
                   "the two");
  MD_TRY(read_words(context, s));
  MD_TRY(read_numbers(context, "mass", "a list of numbers from 1e-6 to 100", s->masses_text, 1e-6,
                      100.0, s->masses, MOST_WORDS, &s->mass_count));
  MD_TRY(read_numbers(context, "rhs", "a list of counts from 1 to 128", s->rhs_text, 1.0,
                      MD_MAX_RHS, s->rhs, MOST_WORDS, &s->rhs_count));
  return read_numbers(context, "shifts", "a list of numbers >= 0", s->shifts_text, 0.0, 1e6,
                      s->shifts, MD_MAX_SHIFTS, &s->shift_count);
}

/* Links of the file, or a heatbath from unit links, or for no sweeps uniform ones. */
static md_status make_links(md_context *context, const settings *s, md_geometry **geometry,
                            md_gauge *gauge) {
  if (s->lattice) {
    md_lattice_info info = {0};
    const md_status status =
        md_lattice_load(context, s->lattice, s->common.grid, false, geometry, gauge, &info);
    md_lattice_info_destroy(&info);
    return status;
  }
  md_layout_request layout = {0};
  memcpy(layout.global, s->dims, sizeof layout.global);
  memcpy(layout.grid, s->common.grid, sizeof layout.grid);
  MD_TRY(md_geometry_create(context, &layout, geometry));
  MD_TRY(md_agree(context, md_gauge_create(context, *geometry, gauge)));
  if (s->sweeps == 0) return md_gauge_start_hot(context, gauge, GAUGE_SEED);
  md_heatbath *heatbath = NULL;
  MD_TRY(md_gauge_start_cold(context, gauge));
  MD_TRY(md_heatbath_create(context, gauge, &heatbath));
  md_status status = MD_OK;
  for (long long k = 0; k < s->sweeps && status == MD_OK; k++) {
    status = md_heatbath_sweep(heatbath, s->beta, GAUGE_SEED, (uint64_t)k);
    for (int o = 0; o < 4 && status == MD_OK; o++) status = md_overrelaxation_sweep(heatbath);
  }
  md_heatbath_destroy(heatbath);
  return status;
}

static void say_head(const md_solver_bench *bench, const settings *s, double plaquette) {
  const int *d = bench->geometry->global;
  md_say(bench->context,
         "%d x %d x %d x %d, plaquette %.12f, true residual %g, %d ranks x %d threads, median of "
         "%d\n"
         "seconds     of the whole solve: source, copies of fields and true residual included\n"
         "ms/i/rhs    those over iterations and right-hand sides; loop: the iterations alone\n"
         "hops        share of the seconds that as many plain stencils take\n"
         "refine      iterations of all shifts after the common ones\n"
         "speed-up    seconds per right-hand side of the mass's first line over those\n",
         d[0], d[1], d[2], d[3], plaquette, bench->tolerance, bench->context->ranks,
         bench->context->threads, bench->repetitions);
  bool shifted = false;
  for (int k = 0; k < s->solver_count; k++) shifted = shifted || s->solvers[k] > MD_BENCH_BLOCK;
  if (shifted) md_say(bench->context, "shifts      %s\n", s->shifts_text);
  md_say(bench->context, "\n");
  md_solver_bench_head(bench);
}

static md_status bench_mass(md_solver_bench *bench, const settings *s, double mass) {
  bench->reference_s = 0.0;
  for (int r = 0; r < s->rhs_count; r++)
    for (int o = 0; o < s->operator_count; o++)
      for (int k = 0; k < s->solver_count; k++)
        for (int i = 0; i < s->inner_count; i++) {
          const md_solver_case c = {.kind = s->solvers[k],
                                    .backend = s->operator_of[o].backend,
                                    .request = {.precision = s->inner[i],
                                                .reconstruct = s->operator_of[o].reconstruct,
                                                .packing = s->operator_of[o].packing,
                                                .n_rhs = (int)s->rhs[r],
                                                .antiperiodic = true},
                                    .mass = mass};
          MD_TRY(md_solver_bench_case(bench, &c));
        }
  return MD_OK;
}

static md_status run(md_solver_bench *bench, const settings *s, md_report *report) {
  md_context *context = bench->context;
  md_geometry *geometry = NULL;
  md_gauge gauge = {0};
  md_gauge_observables observables;
  md_status status = make_links(context, s, &geometry, &gauge);
  if (status == MD_OK) status = md_gauge_observe(context, &gauge, &observables);
  if (status == MD_OK) {
    bench->geometry = geometry;
    bench->gauge = &gauge;
    md_report_grid(report, geometry->grid);
    md_report_integers(report->root, "dims", geometry->global, MD_DIMS);
    cJSON_AddNumberToObject(report->root, "plaquette", observables.plaquette);
    say_head(bench, s, observables.plaquette);
  }
  for (int m = 0; m < s->mass_count && status == MD_OK; m++)
    status = bench_mass(bench, s, s->masses[m]);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  return status;
}

static md_status read_settings(md_context *context, settings *s, int argc, char **argv) {
  *s = (settings){.masses_text = "0.05",
                  .rhs_text = "1",
                  .solvers_text = "cg",
                  .operators = "auto",
                  .inner_text = "none,single,half,bf16,fixed",
                  .shifts_text = "0,0.0025,0.01,0.04,0.16,0.64",
                  .repetitions = 3,
                  .max_iterations = 20000,
                  .beta = 6.0,
                  .tolerance = 1e-12,
                  .halo = {.transport = "auto"}};
  /* clang-format off */
  md_option options[] = {
      {.name = "lattice", .type = MD_OPTION_TEXT, .target = &s->lattice, .argument = "FILE",
       .help = "lattice file of any format, or --dims"},
      {.name = "dims", .type = MD_OPTION_DIMS, .target = s->dims, .argument = "AxBxCxD",
       .help = "links made here", .low = 2, .high = 32766},
      {.name = "sweeps", .type = MD_OPTION_INTEGER, .target = &s->sweeps, .argument = "N",
       .help = "of heatbath for --dims; 0: random links, far from a thermal spectrum [0]",
       .low = 0, .high = 1e6},
      {.name = "beta", .type = MD_OPTION_REAL, .target = &s->beta, .argument = "B",
       .help = "of the sweeps [6.0]", .low = 0.0, .high = 1e6},
      {.name = "mass", .type = MD_OPTION_TEXT, .target = &s->masses_text, .argument = "M,N",
       .help = "quark masses [0.05]"},
      {.name = "solvers", .type = MD_OPTION_TEXT, .target = &s->solvers_text, .argument = "A,B",
       .help = "cg, block, multishift, refined, separate [cg]"},
      {.name = "operators", .type = MD_OPTION_TEXT, .target = &s->operators, .argument = "A,B",
       .help = "BACKEND[:PACKING[:REALS]] [auto]"},
      {.name = "inner", .type = MD_OPTION_TEXT, .target = &s->inner_text, .argument = "A,B",
       .help = "precisions of the iterations, none: double [none,single,half,bf16,fixed]"},
      {.name = "rhs", .type = MD_OPTION_TEXT, .target = &s->rhs_text, .argument = "N,M",
       .help = "right-hand sides at once [1]"},
      {.name = "shifts", .type = MD_OPTION_TEXT, .target = &s->shifts_text, .argument = "A,B",
       .help = "of M^dag M [0,0.0025,0.01,0.04,0.16,0.64]"},
      {.name = "tol", .type = MD_OPTION_REAL, .target = &s->tolerance, .argument = "T",
       .help = "true residual norm(b - M x) / norm(b) in double [1e-12]", .low = 1e-15,
       .high = 0.1},
      {.name = "max-iter", .type = MD_OPTION_INTEGER, .target = &s->max_iterations,
       .argument = "N", .help = "iterations at most [20000]", .low = 1, .high = 1e7},
      {.name = "repetitions", .type = MD_OPTION_INTEGER, .target = &s->repetitions,
       .argument = "N", .help = "timed solves of each line [3]", .low = 1, .high = 1e6},
      MD_HALO_OPTIONS(s->halo),
      {.name = "csv", .type = MD_OPTION_TEXT, .target = &s->csv, .argument = "FILE",
       .help = "the rows as CSV"},
      MD_COMMON_OPTIONS(s->common)};
  /* clang-format on */
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {
      "bench solver", "Time to the same true residual by each way to solve.",
      "cg: right-hand sides in step, mixed with --inner; block: one Krylov space for all of them;\n"
      "multishift: all shifts in one Krylov space; refined: and CG for those that miss --tol;\n"
      "separate: every shift by itself. The sources are random. Exit 1 if a line missed --tol."};
  MD_TRY(md_options_read(context, &text, options, COUNT, &s->common, argc, argv));
  return s->common.help ? MD_OK : check(context, s);
}

md_status md_bench_solver(md_context *context, int argc, char **argv) {
  settings s;
  md_report report;
  MD_TRY(read_settings(context, &s, argc, argv));
  if (s.common.help) return MD_OK;
  MD_TRY(md_agree(context, md_report_open(context, "bench solver", &report)));
  md_solver_bench bench = {.context = context,
                           .halo = &s.halo,
                           .tolerance = s.tolerance,
                           .max_iterations = (int)s.max_iterations,
                           .repetitions = (int)s.repetitions,
                           .shifts = s.shifts,
                           .n_shifts = s.shift_count,
                           .rows = cJSON_AddArrayToObject(report.root, "rows"),
                           .skipped = cJSON_AddArrayToObject(report.root, "skipped")};
  cJSON_AddNumberToObject(report.root, "tolerance", s.tolerance);
  md_report_reals(report.root, "shifts", s.shifts, s.shift_count);
  md_status status = run(&bench, &s, &report);
  if (status == MD_OK) status = md_report_csv(context, bench.rows, s.csv);
  const md_status written =
      md_report_close(context, &report, status == MD_OK ? s.common.json : NULL);
  if (status == MD_OK) status = written;
  if (status == MD_OK && bench.missed > 0)
    status = md_fail(context, MD_UNREACHED,
                     "every line must reach a true residual of %g, which %d missed; raise "
                     "--max-iter or --tol, or add 'refined'",
                     s.tolerance, bench.missed);
  return status;
}
