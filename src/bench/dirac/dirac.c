#include "base/options.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/dirac/case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GAUGE_SEED = 11 };

typedef struct settings {
  int dims[MD_DIMS];
  const char *kernel, *mode, *csv;
  long long repetitions;
  md_choices backend;
  md_integers counts;
  md_dirac_bench_list list;
  bool ignore_checksum;
} settings;

static void say_head(const md_dirac_bench *bench, const settings *s) {
  md_context *context = bench->context;
  const md_action action = bench->links->action;
  md_backend_request request = {.precision = MD_DOUBLE};
  char words[MD_PHYSICS_WORDS_BYTES];
  md_physics_apply(bench->physics, &request);
  md_physics_words(bench->physics, &request, words, sizeof words);
  const int *d = bench->links->geometry->global, terms = md_action_terms(action);
  const int reals = md_request_reals(&request);
  char flops[64];
  if (md_action_has_spin(action))
    snprintf(flops, sizeof flops, "%d x (8 x 12 + 16 x 66 + 7 x 24)", md_request_slices(&request));
  else
    snprintf(flops, sizeof flops, "%d x 66 + %d x 6", terms, terms - 1);
  md_say(context,
         "%d x %d x %d x %d, %s, %d rank%s x %d thread%s, median of %lld\n"
         "action      %s\n"
         "flops       %d per site and right-hand side: %s\n"
         "bytes       of a site: %d links + n_rhs x (1 read + 1 written) x %d reals;\n"
         "            without reuse: %d links + n_rhs x (%d read + 1 written) x %d reals;\n"
         "            in half and fixed 4 more for the scale of each site read or written\n"
         "seconds     of a hop; a device replays a recording of several, without the host between\n"
         "fraction    bytes/s over triad (host) or copy of the same working set, at least 1 GiB "
         "(device)\n"
         "error       |D v - cpu_ref| / |cpu_ref|, checked before timing\n\n",
         d[0], d[1], d[2], d[3], strcmp(s->mode, "turn") == 0 ? "Deo and Doe in turn" : "Deo alone",
         context->ranks, md_plural(context->ranks), context->threads, md_plural(context->threads),
         s->repetitions, words, md_request_flops(&request), flops, terms, reals, terms, terms,
         reals);
  md_dirac_bench_head(context);
}

/* On a GPU where one of the backends that are asked for keeps its fields there. */
static md_space links_space(md_context *context, const settings *s,
                            const md_physics_options *physics) {
  for (int k = 0; k < s->backend.count; k++) {
    const char *name = md_backends()[s->backend.value[k]]->name;
    if (md_action_links_space(context, name, physics) == MD_DEVICE) return MD_DEVICE;
  }
  return MD_HOST;
}

/* Links of the files, or of the action from uniformly random thin links. */
static md_status make_links(md_context *context, const settings *s,
                            const md_physics_options *physics, const int grid[MD_DIMS],
                            md_action_links *links) {
  md_bench_links_request request = {.command = "bench dirac",
                                    .physics = physics,
                                    .ignore_checksum = s->ignore_checksum,
                                    .dims = s->dims,
                                    .grid = grid,
                                    .space = links_space(context, s, physics),
                                    .seed = GAUGE_SEED};
  for (int i = 0; i < s->list.n_rhs.count; i++)
    if (s->list.n_rhs.value[i] > request.n_rhs) request.n_rhs = (int)s->list.n_rhs.value[i];
  return md_bench_links_make(context, &request, links);
}

/* Everything between reading the options and the report. */
static md_status time_backends(md_dirac_bench *bench, const settings *s, const int grid[MD_DIMS],
                               md_report *report) {
  md_action_links links = {0};
  md_status status = make_links(bench->context, s, bench->physics, grid, &links);
  bench->links = &links;
  if (status == MD_OK) {
    cJSON_AddStringToObject(report->root, "action", md_action_name(links.action));
    md_report_grid(report, links.geometry->grid, links.geometry->grid_asked,
                   links.geometry->grid_reason);
    md_action_links_report(report->root, bench->physics, &links);
    status = md_dirac_bench_open(bench);
  }
  if (status == MD_OK) {
    md_action_links_say(bench->context, bench->physics, &links);
    say_head(bench, s);
  }
  for (int k = 0; k < s->backend.count && status == MD_OK; k++)
    status = md_dirac_bench_backend(bench, md_backends()[s->backend.value[k]], &s->list);
  md_dirac_bench_close(bench);
  md_action_links_destroy(&links);
  return status;
}

static md_status check_kernel(md_context *context, const md_option *options, int count,
                              const settings *s) {
  if (strcmp(s->kernel, "matvec") != 0)
    return md_options_need(context, options, count, "counts", false, "--kernel matvec");
  MD_TRY(md_options_allow(context, options, count, "kernel|counts|repetitions|csv",
                          "--kernel matvec"));
  if (s->repetitions <= MD_MATVEC_REPETITIONS) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "repetitions must lie in 1 to %d with --kernel matvec, got %lld",
                 MD_MATVEC_REPETITIONS, s->repetitions);
}

md_status md_bench_dirac(md_context *context, int argc, char **argv) {
  settings s = {.dims = {16, 16, 16, 16}, .kernel = "stencil", .mode = "single", .repetitions = 15};
  md_halo_request halo = {0};
  md_physics_options physics = MD_PHYSICS_DEFAULTS;
  md_common_options common = {0};
  char backends[MD_BACKEND_WORDS_BYTES];
  md_option options[] = {
      MD_OPTION(DIMS, "dims", s.dims, "AxBxCxD", "lattice x,y,z,t [16x16x16x16]", .low = 2,
                .high = 32766, .group = MD_GROUP_TIMED),
      MD_OPTION(CHOICE, "kernel", &s.kernel, NULL,
                "stencil, or bare 3x3 products by each packing [stencil]",
                .choices = "stencil|matvec"),
      MD_OPTION(INTEGERS, "counts", &s.counts, "N,M",
                "matvec: products at once [1920,2560,65536,1048576,16777216]",
                .initial = "1920,2560,65536,1048576,16777216", .low = 1, .high = 0x1p32),
      MD_OPTION(CHOICES, "backends", &s.backend, "A,B", "see docs/backends.md [all]",
                .choices = md_backend_words("", backends) + 1, .initial = "all"),
      MD_OPTION(CHOICES, "packings", &s.list.packing, "A,B", "of Tensor Core backends [all]",
                .choices = &(MD_PACKING_WORDS)[1], .initial = "all"),
      MD_OPTION(CHOICES, "precisions", &s.list.precision, "A,B",
                "storage of links and fermions [all]", .choices = &(MD_PRECISION_WORDS)[1],
                .initial = "all"),
      MD_OPTION(CHOICES, "reconstructs", &s.list.reconstruct, "A,B",
                "reals a link is stored in [all]", .choices = &(MD_RECONSTRUCT_WORDS)[1],
                .initial = "all"),
      MD_OPTION(INTEGERS, "rhs", &s.list.n_rhs, "N,M", "right-hand sides at once [1,8,16]",
                .initial = "1,8,16", .low = 1, .high = MD_MAX_RHS),
      MD_OPTION(CHOICE, "mode", &s.mode, NULL, "Deo alone, or Deo and Doe in turn [single]",
                .choices = "single|turn"),
      MD_IGNORE_CHECKSUM_OPTION(s.ignore_checksum),
      MD_REPETITIONS_OPTION(s.repetitions, "timed samples of each configuration [15]"),
      MD_HALO_OPTIONS(halo, common),
      MD_PHYSICS_OPTIONS(physics),
      MD_CSV_OPTION(s.csv),
      MD_COMMON_OPTIONS(common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"bench dirac", "time the stencil of each backend, checked first",
                                NULL,
                                "minidirac bench dirac --backends cpu_simd --precisions "
                                "double,single --rhs 1"};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &common, argc, argv));
  if (common.help) return MD_OK;
  const bool matvec = strcmp(s.kernel, "matvec") == 0;
  MD_TRY(check_kernel(context, options, COUNT, &s));
  MD_TRY(md_physics_check(context, &physics));
  MD_TRY(md_options_need(context, options, COUNT, "ignore-checksum", physics.fat_file != NULL,
                         "--fat FILE and --long FILE"));
  if (physics.fat_file && md_option_seen(options, COUNT, "dims"))
    return md_fail(context, MD_INPUT,
                   "the extents are those of --fat and --long; leave --dims out");
  MD_TRY(md_report_open(context, "bench dirac", &report));
  md_dirac_bench bench = {.context = context,
                          .halo = &halo,
                          .physics = &physics,
                          .command = "bench dirac",
                          .turn = strcmp(s.mode, "turn") == 0,
                          .repetitions = (int)s.repetitions,
                          .copy_gbytes_per_s = NAN,
                          .copy_min = NAN,
                          .copy_max = NAN,
                          .rows = cJSON_CreateArray(),
                          .skipped = cJSON_CreateArray()};
  md_status status = matvec ? md_bench_matvec(context, &s.counts, (int)s.repetitions, bench.rows)
                            : time_backends(&bench, &s, common.grid, &report);
  md_report_add(report.root,
                "copy_gbytes_per_s=%g copy_gbytes_per_s_min=%g copy_gbytes_per_s_max=%g "
                "copy_bytes=%g",
                bench.copy_gbytes_per_s, bench.copy_min, bench.copy_max, bench.copy_bytes);
  cJSON_AddItemToObject(report.root, "rows", bench.rows);
  cJSON_AddItemToObject(report.root, "skipped", bench.skipped);
  if (status == MD_OK && !matvec && bench.rows->child)
    md_say(context, "\ncopy bandwidth %.2f GB/s at %.3g MB per rank\n", bench.copy_gbytes_per_s,
           1e-6 * bench.copy_bytes);
  if (status == MD_OK && !bench.rows->child)
    status = md_bench_timed_nothing(context, "bench dirac", bench.skipped);
  md_bench_say_transport(report.root, bench.rows);
  return md_report_finish(context, &report, bench.rows, s.csv, common.json, status);
}
