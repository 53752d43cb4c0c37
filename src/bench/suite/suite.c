#include "bench/suite/suite.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/timer.h"
#include "bench/bench.h"
#include "bench/solver/case.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Solutions by cpu_simd, for L and XL by cuda, in double or refined to it; a true residual of 1e-10
 * leaves 1e-11 of the condensate open. */
/* clang-format off */
static const md_suite_class CLASSES[] = {
    {.name = "XS", .machine = "a look at the report, tests", .dims = {8, 8, 8, 8}, .mass = 0.1,
     .gemm_host = 256, .gemm_device = 1024, .plaquette = 0.59347680621925636,
     .condensate = {0.46360834394249, NAN, 0.17650304578954, 2.86385314819,
                    0.115239037483, 0.102408799759}},
    {.name = "S", .machine = "a laptop", .dims = {16, 16, 16, 16}, .mass = 0.1,
     .gemm_host = 1024, .gemm_device = 4096, .plaquette = 0.59366200567522864,
     .condensate = {0.46737819537382, NAN, 0.18035326591826, 2.864866022254,
                    0.118106526870, 0.104794367466}},
    {.name = "M", .machine = "one GPU", .dims = {32, 32, 32, 64}, .mass = 0.05,
     .gemm_host = 2048, .gemm_device = 8192, .plaquette = 0.59450331045673854,
     .condensate = {0.26613859968526, NAN, 0.09237600511797, NAN, NAN, NAN}},
    {.name = "L", .machine = "a node", .dims = {48, 48, 48, 96}, .mass = 0.02,
     .gemm_host = 4096, .gemm_device = 16384, .plaquette = 0.59443717062540335,
     .condensate = {0.11797398818723, NAN, 0.03786287692914, NAN, NAN, NAN}},
    {.name = "XL", .machine = "several nodes", .dims = {64, 64, 64, 128}, .mass = 0.01,
     .gemm_host = 8192, .gemm_device = 16384, .plaquette = 0.59446883540028395,
     .condensate = {0.06113586865513, NAN, 0.01908252010923, NAN, NAN, NAN}}};
/* clang-format on */

/* minidirac bench suite: every part of the machine on one fixed problem, checked, and one figure of
 * merit. */

static md_status solve_one(md_suite *suite) {
  return md_suite_solve(suite, 1);
}
static md_status solve_many(md_suite *suite) {
  return md_suite_solve(suite, 16);
}

#define PARTS "copy|hop|cg1|cg16|halo|gemm|io"
enum { COPY = 1, HOP = 2, SOLVES = 4 | 8, HALO = 16, IO = 64 }; /* bits of parts, in this order */
static const struct {
  const char *name, *title;
  md_status (*run)(md_suite *suite);
  int least_ranks;
} TABLE[] = {
    {"copy", "memory bandwidth", md_suite_copy, 1},
    {"hop", "Deo by backend, packing and precision", md_suite_hop, 1},
    {"cg1", "solves of one right-hand side", solve_one, 1},
    {"cg16", "solves of 16 right-hand sides at once", solve_many, 1},
    {"halo", "exchange of halos", md_suite_halo, 2},
    {"gemm", "products of square matrices", md_suite_gemm, 1},
    {"io", "writing and reading the links", md_suite_files, 1},
};
enum { PART_COUNT = sizeof TABLE / sizeof *TABLE };

typedef struct settings {
  md_common_options common;
  const char *class, *action, *links_on, *csv;
  long long repetitions;
  md_choices parts;
} settings;

void md_suite_check(md_suite *suite, const char *name, double value, double expected,
                    double tolerance) {
  const bool pass = fabs(value - expected) <= tolerance;
  md_rows_add(NULL, suite->checks, "name=%s value=%g expected=%g tolerance=%g pass=%hhd", name,
              value, expected, tolerance, pass);
  md_say(suite->context, "%s  %s", pass ? "PASS" : "FAIL", name);
  if (expected != 0.0)
    md_say(suite->context, ": %.15g, expected %.15g within %.3g", value, expected, tolerance);
  else if (tolerance > 0.0)
    md_say(suite->context, ": %.3g, at most %.3g", value, tolerance);
  md_say(suite->context, "\n");
  suite->failed = suite->failed || !pass;
}

/* What the parts with solves are. */
typedef struct planned {
  md_suite *suite;
  const md_choices *parts;
} planned;

static md_status find_least(const md_action_links *links, void *user, md_memory_need *need) {
  const planned *p = user;
  md_status status = MD_OK;
  p->suite->links = *links;
  for (int i = 0; i < p->parts->count && status == MD_OK; i++)
    if (1u << p->parts->value[i] & SOLVES) status = TABLE[p->parts->value[i]].run(p->suite);
  p->suite->links = (md_action_links){0};
  *need = p->suite->least;
  return status;
}

static void check_links(md_suite *suite) {
  md_suite_check(suite, "plaquette", suite->links.plaquette, suite->class->plaquette, 1e-10);
}

/* What runs untimed in front of what is timed. */
_Static_assert(MD_WARM_ITERATIONS == 3, "as WARM_UP says");
#define WARM_UP "3 iterations of each solve, one pass of other parts, none of io"

/* The links, and what they took. */
static md_status set_up(md_suite *suite, const settings *s, md_report *report) {
  const md_suite_class *c = suite->class;
  const double start_s = md_time_s();
  suite->space = md_bench_operators_space(suite->context, &suite->operators, &suite->physics);
  planned p = {suite, &s->parts};
  md_bench_links_request request = {.command = "bench suite",
                                    .physics = &suite->physics,
                                    .dims = c->dims,
                                    .grid = suite->grid,
                                    .space = suite->space,
                                    .seed = MD_SUITE_SEED,
                                    .beta = MD_SUITE_BETA,
                                    .sweeps = MD_SUITE_SWEEPS,
                                    .least = find_least,
                                    .user = &p};
  request.sweeps_in = strcmp(s->links_on, "auto") == 0
                          ? md_bench_links_space(suite->context, &request)
                      : strcmp(s->links_on, "gpu") == 0 ? MD_DEVICE
                                                        : MD_HOST;
  md_say(suite->context,
         "class %s (%s): %dx%dx%dx%d, beta %g, %d sweeps, %s, mass %g; %d rank%s x %d thread%s\n",
         c->name, c->machine, c->dims[0], c->dims[1], c->dims[2], c->dims[3], MD_SUITE_BETA,
         MD_SUITE_SWEEPS, s->action, c->mass, suite->context->ranks,
         md_plural(suite->context->ranks), suite->context->threads,
         md_plural(suite->context->threads));
  MD_TRY(md_bench_links_make(suite->context, &request, &suite->links));
  const double setup_s = md_time_s() - start_s;
  cJSON_AddNumberToObject(report->root, "setup_seconds", setup_s);
  const char *made_on = request.sweeps_in == MD_HOST ? "cpu" : "gpu";
  cJSON_AddStringToObject(report->root, "links_made_on", made_on);
  md_report_grid(report, suite->links.geometry->grid, suite->links.geometry->grid_asked,
                 suite->links.geometry->grid_reason);
  md_action_links_report(report->root, &suite->physics, &suite->links);
  md_say(suite->context, "set-up     %.2f s, links made on the %s; outside of every time below\n",
         setup_s, request.sweeps_in == MD_HOST ? "host" : "GPU");
  check_links(suite);
  md_say(suite->context, "warm-up    untimed: %s\n", WARM_UP);
  cJSON_AddStringToObject(report->root, "warm_up", WARM_UP);
  md_load_read("", &suite->load);
  return MD_OK;
}

/* One part; its rows get its name. */
static md_status run_part(md_suite *suite, int part, cJSON *seconds) {
  const double start_s = md_time_s();
  if (suite->context->ranks < TABLE[part].least_ranks) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "part", TABLE[part].name);
    md_rows_skip(suite->skipped, row, NULL, "one rank has no halo to exchange");
    MD_SUITE_LACKS(suite, "no second rank (%s left out)", TABLE[part].name);
    cJSON_AddNumberToObject(seconds, TABLE[part].name, 0.0);
    return MD_OK;
  }
  md_say(suite->context, "\n%s: %s\n", TABLE[part].name, TABLE[part].title);
  const int before = cJSON_GetArraySize(suite->rows);
  const md_status status = TABLE[part].run(suite);
  int k = 0;
  cJSON *row;
  cJSON_ArrayForEach(row, suite->rows) {
    if (k++ >= before) cJSON_AddStringToObject(row, "part", TABLE[part].name);
  }
  const double part_s = md_time_s() - start_s;
  cJSON_AddNumberToObject(seconds, TABLE[part].name, part_s);
  md_say(suite->context, "%s: %.1f s in all\n", TABLE[part].name, part_s);
  if (status == MD_OK && 1u << part == HOP && k == before && !suite->failed)
    return md_bench_timed_nothing(suite->context, "part hop of bench suite", suite->skipped);
  return status;
}

static md_status run_parts(md_suite *suite, const md_choices *parts, md_report *report) {
  cJSON *seconds = cJSON_AddObjectToObject(report->root, "part_seconds");
  for (int p = 0; p < parts->count; p++) {
    md_progress_piece(suite->context, -1.0, 0.0, "part %d of %d, %s", p + 1, parts->count,
                      TABLE[parts->value[p]].name);
    MD_TRY(run_part(suite, parts->value[p], seconds));
    MD_TRY(md_interrupt_check(suite->context, "bench suite"));
  }
  md_progress_pieces_end(suite->context);
  return MD_OK;
}

static void report_problem(md_report *report, const md_suite *suite, const settings *s) {
  cJSON *root = report->root;
  cJSON_AddStringToObject(root, "class", suite->class->name);
  md_report_integers(root, "dims", suite->class->dims, MD_DIMS);
  md_report_add(root, "action=%s mass=%g tolerance=%g beta=%g sweeps=%d seed=%d", s->action,
                suite->class->mass, MD_SUITE_TOLERANCE, MD_SUITE_BETA, MD_SUITE_SWEEPS,
                MD_SUITE_SEED);
  md_backend_request request = {0};
  md_physics_apply(&suite->physics, &request);
  md_kappa_report(root, request.action, suite->class->mass);
  md_twist_report(root, &request);
  cJSON_AddBoolToObject(root, "golden", true); /* every class has a golden plaquette */
  const md_action action = md_physics_action(&suite->physics);
  cJSON_AddBoolToObject(root, "golden_condensate", !isnan(suite->class->condensate[action]));
}

/* The rows of all parts with one head, that of CSV; the caller's. */
static cJSON *common_rows(const cJSON *rows) {
  static const char *const keys[] = {"part",        "work",        "format",      "kernel",
                                     "space",       "solver",      "backend",     "packing",
                                     "precision",   "inner",       "reconstruct", "rhs",
                                     "m",           "n",           "k",           "ranks",
                                     "transport",   "iterations",  "repetitions", "seconds_median",
                                     "seconds_min", "seconds_max", "gflops",      "gbytes_per_s"};
  cJSON *all = cJSON_CreateArray();
  for (const cJSON *row = rows->child; row; row = row->next) {
    cJSON *one = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
      const cJSON *cell = cJSON_GetObjectItemCaseSensitive(row, keys[i]);
      if (!cell && strcmp(keys[i], "gflops") == 0) cell = cJSON_GetObjectItem(row, "gflops_kernel");
      cJSON_AddItemToObject(one, keys[i], cell ? cJSON_Duplicate(cell, true) : cJSON_CreateNull());
    }
    cJSON_AddItemToArray(all, one);
  }
  return all;
}

/* The part that writes files is the last: what keeps it from that is told now. */
static md_status check_scratch(md_suite *suite, const settings *s) {
  md_made_files made = {0};
  bool writes = false;
  for (int p = 0; p < s->parts.count; p++)
    writes = writes || TABLE[s->parts.value[p]].run == md_suite_files;
  if (!writes) return MD_OK;
  suite->owner = getpid();
  md_broadcast(suite->context, &suite->owner, sizeof suite->owner);
  return md_options_check_made(suite->context, &s->common, &made,
                               md_suite_files_list(suite, &made));
}

static md_status check_parts(md_context *context, const md_choices *parts) {
  for (int i = 0; i < parts->count; i++)
    for (int j = 0; j < i; j++)
      if (parts->value[i] == parts->value[j])
        return md_fail(context, MD_INPUT, "--parts must name each part once, got %s twice",
                       TABLE[parts->value[i]].name);
  return MD_OK;
}

static unsigned mask_of(const md_choices *parts) {
  unsigned mask = 0;
  for (int p = 0; p < parts->count; p++) mask |= 1u << parts->value[p];
  return mask;
}

/* No option that does nothing. */
static md_status check_needs(md_context *context, const md_option *options, int count,
                             const md_choices *parts) {
  const unsigned given = mask_of(parts);
  const struct {
    const char *names, *needed;
    unsigned by;
  } needs[] = {{"inner|seconds", "--parts cg1 or cg16", SOLVES},
               {"transport|check-halo|tune", "--parts hop, cg1, cg16 or halo", HOP | SOLVES | HALO},
               {"repetitions", "--parts copy, hop, cg1 or cg16", COPY | HOP | SOLVES},
               {"scratch", "--parts io", IO}};
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
    MD_TRY(md_options_need(context, options, count, needs[i].names, given & needs[i].by,
                           needs[i].needed));
  return MD_OK;
}

static md_status read_settings(md_context *context, md_suite *suite, settings *s, int argc,
                               char **argv) {
  md_option options[] = {
      MD_OPTION(CHOICE, "class", &s->class, NULL,
                "size of the problem: XS a test, S a laptop, M a GPU, L a node, XL several nodes "
                "(required)",
                .choices = MD_SUITE_CLASS_WORDS, .required = true, .group = MD_GROUP_TIMED),
      MD_OPTION(CHOICES, "parts", &s->parts, "A,B",
                "what to time; without all of them there is no figure of merit [all]",
                .choices = PARTS, .initial = "all"),
      MD_OPTION(CHOICE, "action", &s->action, NULL, "of the stencil and the solves [naive]",
                .choices = "naive|hisq|wilson|domainwall|mobius"),
      MD_OPTION(CHOICE, "links-on", &s->links_on, NULL,
                "where the heatbath makes the links, auto: a GPU where there is one [auto]",
                .choices = "auto|cpu|gpu"),
      MD_OPTION(PARSED, "operators", &suite->operators, "A,B",
                "of the solves, BACKEND[:PACKING[:REALS]] [auto]", .parse = md_bench_operators_read,
                .initial = "auto"),
      MD_OPTION(CHOICES, "inner", &suite->inner, "A,B",
                "precisions of the solves' iterations, none: double [none,single,half]",
                .choices = MD_BENCH_INNER_WORDS, .initial = "none,single,half"),
      MD_OPTION(INTEGER, "repetitions", &s->repetitions, "N",
                "timed samples of each solve, stencil and copy [3]", .low = 1, .high = 1000),
      MD_OPTION(REAL, "seconds", &suite->seconds, "S",
                "each solve repeats until S are timed, at least 60 for an official figure [0]",
                .high = 1e6),
      MD_OPTION(TEXT, "scratch", &suite->scratch, "FOLDER",
                "where files are written and read, then removed [.]", .group = MD_GROUP_OUTPUT),
      MD_CSV_OPTION(s->csv),
      MD_HALO_OPTIONS(suite->halo, s->common),
      MD_COMMON_OPTIONS(s->common)};
  const md_command_text text = {
      "bench suite", "A fixed problem of one class, every part timed and checked: PASS or FAIL.",
      "The figure of merit is the number of right-hand sides solved to a true residual of 1e-10 "
      "per\n"
      "second by the fastest solve that passes its checks. docs/suite.md has the rules: what may "
      "be\n"
      "tuned and what may not. Exit 1 for FAIL.",
      "minidirac bench suite --class S --json suite.json"};
  MD_TRY(md_options_read(context, &text, options, sizeof options / sizeof *options, &s->common,
                         argc, argv));
  if (suite->inner.all) suite->inner.count--; /* but for auto */
  suite->repetitions = (int)s->repetitions;
  suite->physics.action = s->action;
  if (md_action_get(md_physics_action(&suite->physics))->walls)
    suite->physics.slices = MD_SUITE_SLICES;
  suite->grid = s->common.grid;
  if (s->common.help) return MD_OK;
  MD_TRY(check_parts(context, &s->parts));
  MD_TRY(check_needs(context, options, sizeof options / sizeof *options, &s->parts));
  return check_scratch(suite, s);
}

static md_status time_parts(md_suite *suite, const settings *s, md_report *report) {
  report_problem(report, suite, s);
  md_status status = set_up(suite, s, report);
  if (status == MD_OK) status = run_parts(suite, &s->parts, report);
  if (status == MD_OK && !suite->rows->child && !suite->failed && !(mask_of(&s->parts) & SOLVES))
    status = md_bench_timed_nothing(suite->context, "bench suite", suite->skipped);
  if (status == MD_OK)
    md_suite_report_figure(suite, report, s->parts.count == PART_COUNT,
                           mask_of(&s->parts) & SOLVES);
  md_action_links_destroy(&suite->links);
  return status;
}

md_status md_bench_suite(md_context *context, int argc, char **argv) {
  md_suite suite = {.context = context, .physics = MD_PHYSICS_DEFAULTS, .scratch = "."};
  settings s = {.action = "naive", .links_on = "auto", .repetitions = 3};
  md_report report;
  MD_TRY(read_settings(context, &suite, &s, argc, argv));
  if (s.common.help) return MD_OK;
  suite.class = &CLASSES[md_choice_of(MD_SUITE_CLASS_WORDS, s.class)];
  MD_TRY(md_report_open(context, "bench suite", &report));
  suite.checks = cJSON_AddArrayToObject(report.root, "checks");
  suite.rows = cJSON_AddArrayToObject(report.root, "rows");
  suite.skipped = cJSON_AddArrayToObject(report.root, "skipped");
  md_status status = time_parts(&suite, &s, &report);
  cJSON *rows = common_rows(suite.rows);
  md_bench_say_transport(report.root, suite.rows);
  status = md_report_finish(context, &report, rows, s.csv, s.common.json, status);
  cJSON_Delete(rows);
  if (status == MD_OK && suite.failed)
    status = md_fail(context, MD_UNREACHED,
                     "every check of class %s must pass, some failed; the report's checks name "
                     "them",
                     suite.class->name);
  if (status == MD_OK && suite.unsolved)
    status = md_fail(context, MD_ENVIRONMENT,
                     "a suite with solves must have one that ran, none did; the report's 'skipped' "
                     "says why, --operators and --inner what is tried");
  return status;
}
