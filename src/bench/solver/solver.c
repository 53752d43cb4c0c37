/* minidirac bench solver: what it takes to reach a true residual, by each way to solve. */
#include "base/interrupt.h"
#include "base/options.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/solver/case.h"
#include "dirac/eigen/eigen.h"
#include "links/run.h"

#include <math.h>
#include <string.h>

enum { GAUGE_SEED = 11, OVERRELAX = 4 };

typedef struct settings {
  md_common_options common;
  const char *lattice, *csv;
  int dims[MD_DIMS];
  bool ignore_checksum;
  long long sweeps, modes;
  double beta, modes_tolerance;
  const char *modes_store;
  md_halo_request halo;
  md_physics_options physics;
  md_reals masses;
  md_integers rhs;
  md_choices solvers, inner; /* md_solver_kind; as MD_BENCH_INNER_WORDS says */
  md_bench_operators operators;
} settings;

static void say_head(const md_solver_bench *bench, const settings *s) {
  const int *d = bench->links->geometry->global;
  const bool thin = !isnan(bench->links->plaquette);
  md_backend_request request = {.precision = MD_DOUBLE};
  char words[MD_PHYSICS_WORDS_BYTES];
  md_physics_apply(&s->physics, &request);
  md_physics_words(&s->physics, &request, words, sizeof words);
  md_action_links_say(bench->context, &s->physics, bench->links);
  md_say(bench->context,
         "%d x %d x %d x %d, plaquette%s %.12f, %s, true residual %g, %d rank%s x %d thread%s, "
         "median of %lld\n"
         "seconds     of the whole solve: source, copies of fields and true residual included\n"
         "ms/i/rhs    those over iterations and right-hand sides; loop: the iterations alone\n"
         "hops        share of the seconds that as many plain stencils take\n"
         "refine      iterations of all shifts after the common ones\n"
         "speed-up    seconds per right-hand side of the mass's first converged line over those\n"
         "GF/s MILC   606 flops a site, iteration and right-hand side, 1187 with long links\n",
         d[0], d[1], d[2], d[3], thin ? "" : " of fat links",
         thin ? bench->links->plaquette : bench->links->fat_plaquette, words, bench->tolerance,
         bench->context->ranks, md_plural(bench->context->ranks), bench->context->threads,
         md_plural(bench->context->threads), bench->repetitions);
  bool shifted = false;
  for (int k = 0; k < s->solvers.count; k++)
    shifted = shifted || s->solvers.value[k] >= MD_BENCH_MULTISHIFT;
  for (int k = 0; k < bench->shifts.count && shifted; k++)
    md_say(bench->context, "%s%.15g%s", k == 0 ? "shifts      " : "", bench->shifts.value[k],
           k + 1 < bench->shifts.count ? "," : "\n");
  md_say(bench->context, "\n");
  md_solver_bench_head(bench);
}

static md_status bench_mass(md_solver_bench *bench, const settings *s, double mass) {
  bench->reference_s = 0.0;
  for (int r = 0; r < s->rhs.count; r++)
    for (int o = 0; o < s->operators.count; o++) {
      memset(bench->cg_s, 0, sizeof bench->cg_s);
      for (int k = 0; k < s->solvers.count; k++)
        for (int i = 0; i < s->inner.count; i++) {
          md_solver_case c = {.kind = (md_solver_kind)s->solvers.value[k],
                              .backend = s->operators.of[o].backend,
                              .request = {.precision = (md_precision)s->inner.value[i],
                                          .reconstruct = s->operators.of[o].reconstruct,
                                          .packing = s->operators.of[o].packing,
                                          .n_rhs = (int)s->rhs.value[r],
                                          .pads = true,
                                          .antiperiodic = true},
                              .mass = mass};
          md_physics_apply(&s->physics, &c.request);
          MD_TRY(md_solver_bench_case(bench, &c));
          MD_TRY(md_interrupt_check(bench->context, bench->command));
        }
    }
  return MD_OK;
}

/* What the solves are, and how. */
typedef struct planned {
  md_solver_bench *bench;
  const settings *s;
} planned;

static md_status find_least(const md_action_links *links, void *user, md_memory_need *need) {
  const planned *p = user;
  p->bench->links = links;
  for (int m = 0; m < p->s->masses.count; m++)
    MD_TRY(bench_mass(p->bench, p->s, p->s->masses.value[m]));
  *need = p->bench->least;
  return MD_OK;
}

static md_status make_links(md_solver_bench *bench, const settings *s, md_action_links *links) {
  md_context *context = bench->context;
  planned p = {bench, s};
  const md_bench_links_request request = {
      .command = "bench solver",
      .physics = &s->physics,
      .lattice = s->lattice,
      .ignore_checksum = s->ignore_checksum,
      .dims = s->dims,
      .grid = s->common.grid,
      .space = md_bench_operators_space(context, &s->operators, &s->physics),
      .sweeps_in = MD_HOST, /* overrelaxed: GPUs differ */
      .seed = GAUGE_SEED,
      .beta = s->beta,
      .sweeps = s->sweeps,
      .overrelax = OVERRELAX,
      .least = find_least,
      .user = &p};
  return md_bench_links_make(context, &request, links);
}

/* What the search runs on: the first of the operators that keeps its fields on a GPU, with a block
 * of vectors at once, else one vector at a time on the host. */
static void choose_search(md_context *context, const settings *s, md_solver_modes *wanted) {
  enum { BLOCK_ON_DEVICE = 16 };
  const md_backend *found;
  wanted->backend = "cpu_simd", wanted->packing = MD_PACKING_NONE, wanted->block = 1;
  for (int o = 0; o < s->operators.count; o++) {
    md_backend_request request = {
        .precision = MD_DOUBLE, .packing = s->operators.of[o].packing, .n_rhs = BLOCK_ON_DEVICE};
    md_physics_apply(&s->physics, &request);
    if (md_backend_find(context, s->operators.of[o].backend, &request, &found) != MD_OK ||
        found->space != MD_DEVICE)
      continue;
    wanted->backend = found->name, wanted->packing = request.packing;
    wanted->block = BLOCK_ON_DEVICE;
    return;
  }
}

static md_status find_modes(md_solver_bench *bench, const settings *s, md_report *report) {
  const bool spins = md_action_has_spin(md_physics_action(&s->physics));
  md_solver_modes wanted = {.mass = spins ? s->masses.value[0] : 0.0,
                            .count = (int)s->modes,
                            .tolerance = s->modes_tolerance,
                            .store = (md_precision)md_precision_of(s->modes_store),
                            .physics = &s->physics};
  if (s->modes == 0) return MD_OK;
  choose_search(bench->context, s, &wanted);
  MD_TRY(md_solver_bench_modes(bench, &wanted));
  cJSON *object = cJSON_AddObjectToObject(report->root, "modes");
  md_report_add(object, "count=%d store=%s backend=%s packing=%s block=%d tolerance=%g seconds=%g",
                bench->modes.count, s->modes_store, wanted.backend, md_packing_name(wanted.packing),
                wanted.block, s->modes_tolerance, bench->modes_s);
  md_report_reals(object, "eigenvalues", bench->modes.values, bench->modes.count);
  bench->sources = cJSON_AddArrayToObject(report->root, "time_to_solution");
  bench->break_even = cJSON_AddArrayToObject(report->root, "break_even");
  return MD_OK;
}

static md_status time_solves(md_solver_bench *bench, const settings *s, md_report *report) {
  md_action_links links = {0};
  md_status status = make_links(bench, s, &links);
  if (status == MD_OK) {
    bench->links = &links;
    cJSON_AddStringToObject(report->root, "action", md_action_name(links.action));
    md_report_geometry(report, links.geometry);
    md_action_links_report(report->root, &s->physics, &links);
    status = find_modes(bench, s, report);
  }
  if (status == MD_OK) say_head(bench, s);
  for (int m = 0; m < s->masses.count && status == MD_OK; m++)
    status = bench_mass(bench, s, s->masses.value[m]);
  md_modes_destroy(&bench->modes);
  md_action_links_destroy(&links);
  return status;
}

/* No option that does nothing. */
static md_status check_needs(md_context *context, const md_option *options, int count,
                             const settings *s) {
  bool shifts = false, preconditioned = false;
  for (int k = 0; k < s->solvers.count; k++) {
    const int kind = s->solvers.value[k];
    shifts = shifts || kind >= MD_BENCH_MULTISHIFT;
    preconditioned = preconditioned || (kind < MD_BENCH_DEFLATED &&
                                        md_solvers()[kind]->takes & MD_TAKES_PRECONDITION);
  }
  const struct {
    const char *names, *needed;
    bool there;
  } needs[] = {
      {"ignore-checksum", "--lattice FILE or --fat FILE", s->lattice || s->physics.fat_file},
      {"sweeps", "--dims AxBxCxD", s->dims[0] != 0},
      {"beta", "--sweeps N", s->sweeps > 0},
      {"modes-tol|modes-store|n-sources", "--modes N", s->modes > 0},
      {"shifts", "--solvers multishift, refined or separate", shifts},
      {"precondition|degree", "--solvers fcg or gcr", preconditioned}};
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
    MD_TRY(
        md_options_need(context, options, count, needs[i].names, needs[i].there, needs[i].needed));
  return MD_OK;
}

static bool takes(const settings *s, md_solver_kind kind) {
  for (int k = 0; k < s->solvers.count; k++)
    if (s->solvers.value[k] == (int)kind) return true;
  return false;
}

static md_status read_settings(md_context *context, settings *s, md_solver_bench *bench, int argc,
                               char **argv) {
  *s = (settings){.beta = 6.0,
                  .modes_tolerance = 1e-8,
                  .modes_store = "single",
                  .physics = MD_PHYSICS_DEFAULTS};
  md_option options[] = {
      MD_OPTION(TEXT, "lattice", &s->lattice, "FILE", "lattice file of any format, or --dims",
                .file = MD_FILE_INPUT, .group = MD_GROUP_INPUT),
      MD_IGNORE_CHECKSUM_OPTION(s->ignore_checksum),
      MD_OPTION(DIMS, "dims", s->dims, "AxBxCxD", "links made here", .low = 2, .high = 32766),
      MD_OPTION(INTEGER, "sweeps", &s->sweeps, "N",
                "of heatbath for --dims; 0: random links, far from a thermal spectrum [0]",
                .low = 0, .high = 1e6),
      MD_OPTION(REAL, "beta", &s->beta, "B", "of the sweeps [6.0]", .low = 0.0, .high = 1e6),
      MD_OPTION(REALS, "mass", &s->masses, "M,N", "quark masses [0.05]", .initial = "0.05",
                .group = MD_GROUP_TIMED),
      MD_OPTION(CHOICES, "solvers", &s->solvers, "A,B", "ways to solve, or all [cg]",
                .choices = &(MD_BENCH_WORDS)[1], .initial = "cg"),
      MD_OPTION(PARSED, "operators", &s->operators, "A,B", "BACKEND[:PACKING[:REALS]] [auto]",
                .parse = md_bench_operators_read, .initial = "auto"),
      MD_OPTION(CHOICES, "inner", &s->inner, "A,B",
                "precisions of the iterations, none: double, or auto [all but that]",
                .choices = MD_BENCH_INNER_WORDS, .initial = "all"),
      MD_PRECONDITION_OPTIONS(bench->how),
      MD_OPTION(INTEGERS, "rhs", &s->rhs, "N,M", "right-hand sides at once [1]", .initial = "1",
                .low = 1, .high = MD_MAX_RHS, .group = MD_GROUP_TIMED),
      MD_OPTION(INTEGER, "modes", &s->modes, "N",
                "find the N lowest modes first; 'deflated' is CG with them [0]", .low = 0,
                .high = MD_EIGEN_MOST),
      MD_OPTION(REAL, "modes-tol", &s->modes_tolerance, "T", "on their residuals [1e-8]",
                .low = 1e-20, .high = 0.1),
      MD_OPTION(CHOICE, "modes-store", &s->modes_store, NULL,
                "precision that they are kept in [single]", .choices = "double|single|half"),
      MD_OPTION(INTEGERS, "n-sources", &bench->n_sources, "N,M",
                "sources that share the time of the search [16,48,192]", .initial = "16,48,192",
                .low = 1, .high = 1e6),
      MD_OPTION(REALS, "shifts", &bench->shifts, "A,B", "of M^dag M [0,0.0025,0.01,0.04,0.16,0.64]",
                .initial = "0,0.0025,0.01,0.04,0.16,0.64", .low = 0.0, .high = 1e6),
      MD_OPTION(REAL, "tol", &bench->tolerance, "T",
                "true residual norm(b - M x) / norm(b) in double [1e-12]", .low = 1e-15,
                .high = 0.1, .group = MD_GROUP_SOLVER),
      MD_OPTION(INTEGER, "max-iter", &bench->max_iterations, "N", "iterations at most [20000]",
                .low = 1, .high = 1e7),
      MD_REPETITIONS_OPTION(bench->repetitions, "timed solves of each line [3]"),
      MD_HALO_OPTIONS(s->halo, s->common),
      MD_PHYSICS_OPTIONS(s->physics),
      MD_REUNITARIZE_OPTION(s->physics.reunitarize),
      MD_CSV_OPTION(s->csv),
      MD_COMMON_OPTIONS(s->common)};
  enum { COUNT = sizeof options / sizeof *options };
  char help[MD_SOLVER_HELP_BYTES];
  const md_command_text text = {
      "bench solver", "Time to the same true residual by each way to solve.",
      md_solver_help(
          "",
          "deflated: cg with the modes of --modes, which adds it to the list;\n"
          "multishift: all shifts in one Krylov space; refined: and CG for those that miss --tol;\n"
          "separate: every shift by itself. The sources are random. Exit 1 if a line missed --tol.",
          help),
      "minidirac bench solver --lattice inputs/beta6.0_8x8x8x8.h5 --rhs 1,16 --inner none,single"};
  MD_TRY(md_options_read(context, &text, options, COUNT, &s->common, argc, argv));
  if (s->common.help) return MD_OK;
  MD_TRY(check_needs(context, options, COUNT, s));
  if (s->inner.all) s->inner.count--; /* but for auto */
  MD_TRY(md_solver_options_read(context, &bench->how, false, false, s->modes > 0));
  const bool files = s->lattice || s->physics.fat_file;
  if (!files == (s->dims[0] == 0))
    return md_fail(context, MD_INPUT,
                   "bench solver needs --lattice FILE (or --fat FILE and --long FILE) or --dims "
                   "AxBxCxD, one of the two");
  if (s->physics.reunitarize && !s->lattice)
    return md_fail(context, MD_INPUT,
                   "--reunitarize is for the links of --lattice FILE; leave it out");
  const bool deflated = s->modes == 0 || takes(s, MD_BENCH_DEFLATED);
  if (!deflated && s->solvers.count == MD_LIST_MOST)
    return md_fail(context, MD_INPUT, "--solvers with --modes takes %d names at most, got %d",
                   MD_LIST_MOST - 1, s->solvers.count);
  if (!deflated) s->solvers.value[s->solvers.count++] = MD_BENCH_DEFLATED;
  int others = 0; /* which deflated solves are compared with, and so come first */
  for (int k = 0; k < s->solvers.count; k++)
    if (s->solvers.value[k] != MD_BENCH_DEFLATED) s->solvers.value[others++] = s->solvers.value[k];
  while (others < s->solvers.count) s->solvers.value[others++] = MD_BENCH_DEFLATED;
  if (s->modes == 0 && !s->solvers.all && takes(s, MD_BENCH_DEFLATED))
    return md_fail(context, MD_INPUT,
                   "deflated solves need --modes N; add it, or leave deflated out of --solvers");
  const md_action action = md_physics_action(&s->physics);
  for (int m = 0; m < s->masses.count; m++)
    MD_TRY(md_physics_check_mass(context, "mass", action, s->masses.value[m]));
  if (s->modes > 0 && md_action_has_spin(action) && s->masses.count > 1)
    return md_fail(context, MD_INPUT,
                   "modes of action %s belong to a mass: --modes takes one of --mass, got %d",
                   s->physics.action, s->masses.count);
  return md_physics_check(context, &s->physics);
}

md_status md_bench_solver(md_context *context, int argc, char **argv) {
  settings s;
  md_report report;
  md_solver_bench bench = {.context = context,
                           .command = "bench solver",
                           .halo = &s.halo,
                           .how = {.solver = "fcg", .precondition = "none"},
                           .tolerance = 1e-12,
                           .max_iterations = 20000,
                           .repetitions = 3};
  MD_TRY(read_settings(context, &s, &bench, argc, argv));
  if (s.common.help) return MD_OK;
  MD_TRY(md_report_open(context, "bench solver", &report));
  bench.rows = cJSON_AddArrayToObject(report.root, "rows");
  bench.skipped = cJSON_AddArrayToObject(report.root, "skipped");
  bench.choices = cJSON_AddArrayToObject(report.root, "choices");
  cJSON_AddNumberToObject(report.root, "tolerance", bench.tolerance);
  md_report_reals(report.root, "shifts", bench.shifts.value, bench.shifts.count);
  md_status status = time_solves(&bench, &s, &report);
  if (status == MD_OK && !bench.rows->child && bench.missed == 0)
    status = md_bench_timed_nothing(context, "bench solver", bench.skipped);
  md_bench_say_transport(report.root, bench.rows);
  status = md_report_finish(context, &report, bench.rows, s.csv, s.common.json, status);
  if (status == MD_OK && bench.missed > 0)
    status =
        md_fail(context, MD_UNREACHED,
                "every line must reach a true residual of %g, which %d missed; raise %s--tol%s",
                bench.tolerance, bench.missed, bench.ran_out ? "--max-iter or " : "",
                bench.unrefined_missed && !takes(&s, MD_BENCH_REFINED) ? ", or add 'refined'" : "");
  return status;
}
