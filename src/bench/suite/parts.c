#include "base/device.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/timer.h"
#include "bench/bench.h"
#include "bench/dirac/case.h"
#include "bench/gemm/case.h"
#include "bench/solver/case.h"
#include "bench/suite/suite.h"
#include "io/lattice_file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The parts that time kernels by themselves: memory, stencil, halo. */
#define HOST_BYTES 0.3e9 /* of a rank, beyond the caches */
#define DEVICE_BYTES 4e9
#define WINDOW_S 0.02 /* of one repetition */
enum { MANY_RHS = 16, MOST_EXCHANGES = 10000 };

md_status md_suite_copy(md_suite *suite) {
  double gbytes;
  md_stream_bench_head(suite->context);
  for (int s = MD_STREAM_COPY; s <= MD_STREAM_TRIAD; s++)
    MD_TRY(md_stream_bench(suite->context, MD_HOST, (md_stream)s, HOST_BYTES, suite->repetitions,
                           "bench suite", suite->rows, &gbytes));
  if (suite->space != MD_DEVICE) return MD_OK;
  return md_stream_bench(suite->context, MD_DEVICE, MD_STREAM_COPY, DEVICE_BYTES,
                         suite->repetitions, "bench suite", suite->rows, &gbytes);
}

/* Neither the oracle nor the emulation of Tensor Cores is made for speed. */
static bool is_timed(const md_backend *b, md_action action, bool gpu) {
  return !b->unavailable && (gpu || b->space == MD_HOST) && (b->actions & 1u << action) &&
         strcmp(b->name, "cpu_ref") != 0 && strcmp(b->name, "tensor_emu") != 0;
}

/* Whether every rank has a GPU; else one word for all backends that need one. Collective. */
static bool has_gpu(md_suite *suite) {
  char names[MD_BACKEND_WORDS_BYTES] = "";
  if (md_agree(suite->context, md_device_open(suite->context)) == MD_OK) return true;
  for (int k = 0; md_backends()[k]; k++)
    if (md_backends()[k]->space == MD_DEVICE || md_backends()[k]->unavailable)
      md_append(names, sizeof names, "%s%s", *names ? ", " : "", md_backends()[k]->name);
  cJSON *row = cJSON_CreateObject();
  md_report_add(row, "part=%s backends=%s", "hop", names);
  md_rows_skip(suite->skipped, row, NULL, suite->context->message);
  MD_SUITE_LACKS(suite, "no GPU that this build serves (%s left out)", names);
  return false;
}

/* Every wrong result is a check that failed. */
md_status md_suite_hop(md_suite *suite) {
  cJSON *wrong = cJSON_CreateArray(), *row;
  md_dirac_bench bench = {.context = suite->context,
                          .links = &suite->links,
                          .halo = &suite->halo,
                          .physics = &suite->physics,
                          .command = "bench suite",
                          .repetitions = suite->repetitions,
                          .wrong = wrong,
                          .copy_gbytes_per_s = NAN,
                          .rows = suite->rows,
                          .skipped = suite->skipped};
  md_dirac_bench_list list = {
      .packing = {.count = MD_PACKINGS, .all = true},
      .precision = {.value = {MD_DOUBLE, MD_SINGLE, MD_HALF}, .count = 3, .all = true},
      .reconstruct = {.value = {MD_RECONSTRUCT_18, MD_RECONSTRUCT_12},
                      .count = md_action_get(suite->links.action)->special_unitary ? 2 : 1,
                      .all = true},
      .n_rhs = {.value = {1, MANY_RHS}, .count = 2}};
  for (int p = 0; p < MD_PACKINGS; p++) list.packing.value[p] = p;
  const bool gpu = has_gpu(suite);
  md_status status = md_dirac_bench_open(&bench);
  md_dirac_bench_head(suite->context);
  for (int k = 0; md_backends()[k] && status == MD_OK; k++)
    if (is_timed(md_backends()[k], suite->links.action, gpu))
      status = md_dirac_bench_backend(&bench, md_backends()[k], &list);
  cJSON_ArrayForEach(row, wrong) {
    char name[160];
    snprintf(name, sizeof name, "hop agrees with cpu_ref, %s",
             cJSON_GetStringValue(cJSON_GetObjectItem(row, "name")));
    md_suite_check(suite, name, md_suite_real(row, "error"), 0.0, md_suite_real(row, "bound"));
  }
  cJSON_Delete(wrong);
  md_dirac_bench_close(&bench);
  return status;
}

#define HALO_COLUMNS                                                                               \
  "backend=%-10s precision|prec=%-6s rhs=%4d ranks=%d transport=%-10s |MB~sent=%12.4f bytes=%g "   \
  "seconds_median|seconds=%11.3e seconds_min=%g seconds_max=%g repetitions=%d "                    \
  "gbytes_per_s|GB/s=%9.2f"

static void add_exchange(md_suite *suite, const md_dirac *dirac, const md_statistics *seconds,
                         int count) {
  double bytes = (double)md_halo_bytes(dirac->halo);
  md_maximum(suite->context, &bytes, 1);
  md_rows_add(suite->context, suite->rows, HALO_COLUMNS, dirac->backend->name,
              md_precision_name(dirac->request.precision), dirac->request.n_rhs,
              suite->context->ranks, md_halo_transport(dirac->halo), 1e-6 * bytes, bytes,
              seconds->median, seconds->min, seconds->max, count, 1e-9 * bytes / seconds->median);
}

static md_status halo_case(md_suite *suite, int n_rhs) {
  enum { SAMPLES = 15 };
  double times_s[SAMPLES];
  md_statistics seconds;
  md_backend_request request = {.precision = MD_DOUBLE, .n_rhs = n_rhs, .antiperiodic = true};
  md_dirac dirac;
  md_field fields[MD_PARITIES] = {0}, *field = &fields[MD_ODD];
  md_physics_apply(&suite->physics, &request);
  MD_TRY(md_dirac_create_over(suite->context, suite->links.field, "auto", &request, &suite->halo,
                              &dirac));
  md_status status =
      md_agree(suite->context, md_dirac_field(suite->context, &dirac, MD_ODD, field));
  md_hop_work work = {&dirac, fields, MD_HOP_EXCHANGE, 1, NULL};
  if (status == MD_OK)
    status = md_time_samples(suite->context, field->space, md_hop_pass, &work, WINDOW_S,
                             MOST_EXCHANGES, "bench suite", SAMPLES, times_s, &seconds);
  if (status == MD_OK) status = md_agree(suite->context, md_halo_verify(dirac.halo));
  if (status == MD_OK) add_exchange(suite, &dirac, &seconds, SAMPLES);
  md_field_destroy(field);
  md_dirac_destroy(&dirac);
  return status;
}

md_status md_suite_halo(md_suite *suite) {
  md_rows_head(suite->context, HALO_COLUMNS);
  MD_TRY(halo_case(suite, 1));
  return halo_case(suite, MANY_RHS);
}

enum { MOST_ITERATIONS = 20000 };

static const char *word_of(const cJSON *row, const char *key) {
  return cJSON_GetObjectItem(row, key)->valuestring;
}

/* Holds a solve to its tolerance and the golden number, and keeps the fastest that passes. */
static void judge(md_suite *suite, cJSON *row) {
  const double golden = suite->class->condensate[suite->links.action];
  const double residual = md_suite_real(row, "relative_residual"), rhs = md_suite_real(row, "rhs");
  const bool failed = suite->failed;
  char what[96], name[160];
  snprintf(what, sizeof what, "%s %s reconstruct %s inner %s rhs %g", word_of(row, "backend"),
           word_of(row, "packing"), word_of(row, "reconstruct"), word_of(row, "inner"), rhs);
  suite->failed = false;
  snprintf(name, sizeof name, "true residual, %s", what);
  md_suite_check(suite, name, residual, 0.0, MD_SUITE_TOLERANCE);
  snprintf(name, sizeof name, "condensate, %s", what);
  if (!isnan(golden))
    md_suite_check(suite, name, md_suite_real(row, "condensate"), golden, 1e-8 * fabs(golden));
  const double merit = rhs / md_suite_real(row, "seconds_median");
  if (!suite->failed && merit > suite->merit) {
    suite->merit = merit;
    suite->merit_row = row;
  }
  suite->failed = suite->failed || failed;
}

md_status md_suite_solve(md_suite *suite, int n_rhs) {
  md_solver_bench bench = {.context = suite->context,
                           .command = "bench suite",
                           .links = &suite->links,
                           .halo = &suite->halo,
                           .tolerance = MD_SUITE_TOLERANCE,
                           .max_iterations = MOST_ITERATIONS,
                           .repetitions = suite->repetitions,
                           .seconds = suite->seconds,
                           .how = {.solver = "cg", .precondition = "none"},
                           .rows = suite->rows,
                           .skipped = suite->skipped,
                           .least = suite->least};
  md_solver_bench_head(&bench);
  for (int o = 0; o < suite->operators.count; o++)
    for (int i = 0; i < suite->inner.count; i++) {
      md_solver_case c = {.kind = MD_BENCH_CG,
                          .backend = suite->operators.of[o].backend,
                          .request = {.precision = (md_precision)suite->inner.value[i],
                                      .reconstruct = suite->operators.of[o].reconstruct,
                                      .packing = suite->operators.of[o].packing,
                                      .n_rhs = n_rhs,
                                      .pads = true,
                                      .antiperiodic = true},
                          .mass = suite->class->mass};
      const int before = cJSON_GetArraySize(suite->rows), missed = bench.missed;
      md_physics_apply(&suite->physics, &c.request);
      MD_TRY(md_solver_bench_case(&bench, &c));
      if (cJSON_GetArraySize(suite->rows) > before)
        judge(suite, cJSON_GetArrayItem(suite->rows, before));
      else if (bench.missed > missed)
        md_suite_check(suite, "solves that broke down", 1.0, 0.0, 0.0);
      MD_TRY(md_interrupt_check(suite->context, "bench suite"));
    }
  suite->least = bench.least;
  return MD_OK;
}

/* The part that multiplies matrices: bench gemm, asked for squares that a machine does in
 * seconds. */
enum { WORD = 64 };

/* Those of the `kernels` that are there; *worst is raised to the largest error over its bound. */
static md_status multiply(md_suite *suite, int size, const char *kernels, const char *precisions,
                          double *worst) {
  char shape[WORD], threads[WORD], chosen[2 * WORD], types[WORD];
  char *words[] = {"bench gemm", shape,        threads,          chosen,
                   types,        "--repeat=5", "--baseline=off", "--quiet"};
  snprintf(shape, sizeof shape, "--shapes=%dx%dx%d", size, size, size);
  snprintf(threads, sizeof threads, "--threads=%d", suite->context->threads);
  snprintf(chosen, sizeof chosen, "--kernels=%s", kernels);
  snprintf(types, sizeof types, "--precision=%s", precisions);
  return md_gemm_bench_rows(suite->context, suite->context->quiet ? 8 : 7, words, suite->rows,
                            worst);
}

/* On a device the kernels made for speed; the steps of the ladder below them are for bench gemm. */
md_status md_suite_gemm(md_suite *suite) {
  const bool alone = suite->context->ranks == 1;
  double worst = 0.0;
  MD_TRY(multiply(suite, suite->class->gemm_host,
                  alone ? "cpu_tiled,openblas" : "block_cyclic,summa", "double,single", &worst));
  if (alone && suite->space == MD_DEVICE)
    MD_TRY(multiply(suite, suite->class->gemm_device, "k7,wmma_tiled,wgmma,dmma,cublas",
                    "double,single,half", &worst));
  md_suite_check(suite, "largest rounding error of a product over its bound", worst, 0.0, 1.0);
  return MD_OK;
}

/* The part that writes and reads: the links of the class in double precision. Each format is
 * written and read up to FILE_SAMPLES times, but not again once that has taken ENOUGH_S. */
enum { FILE_SAMPLES = 3, FORMATS = 2 };
static const char *const formats[FORMATS] = {"hdf5", "ildg"};
#define ENOUGH_S 5.0

#define FILE_COLUMNS                                                                               \
  "work=%-6s format=%-6s |MB=%11.2f ranks=%d bytes=%g seconds_median|seconds=%11.4f "              \
  "seconds_min=%g seconds_max=%g repetitions=%d gbytes_per_s|GB/s=%9.2f"

static void add_times(md_suite *suite, const char *work, const char *format, double times_s[],
                      int count) {
  const double bytes = (double)suite->links.geometry->volume * MD_DIMS * MD_LINK_REALS * 8;
  const md_statistics s = md_statistics_of(times_s, count);
  md_rows_add(suite->context, suite->rows, FILE_COLUMNS, work, format, 1e-6 * bytes,
              suite->context->ranks, bytes, s.median, s.min, s.max, count, 1e-9 * bytes / s.median);
}

static md_status write_once(md_suite *suite, const char *path, const md_lattice_format *format,
                            double *time_s) {
  const bool thin = md_action_get(suite->links.action)->fields == 1;
  const md_lattice_output output = {
      .format = format,
      .precision = MD_DOUBLE,
      .label = {.kind = thin ? MD_LINKS_THIN : MD_LINKS_FAT, .bare = true}};
  md_barrier(suite->context);
  const double start_s = md_time_s();
  MD_TRY(md_lattice_save_as(suite->context, path, &output, &suite->links.field[0]));
  *time_s = md_time_s() - start_s;
  md_maximum(suite->context, time_s, 1);
  return MD_OK;
}

static md_status read_once(md_suite *suite, const char *path, double *time_s, double *plaquette) {
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_lattice_info info = {0};
  const md_status status = md_lattice_load_links(suite->context, path, NULL, suite->grid, false,
                                                 &geometry, &gauge, &info);
  *time_s = info.read_s;
  *plaquette = info.observables.plaquette;
  md_maximum(suite->context, time_s, 1);
  md_lattice_info_destroy(&info);
  if (status != MD_OK) return status;
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  return md_interrupt_check(suite->context, "bench suite");
}

static md_status time_format(md_suite *suite, const char *path, const char *name) {
  const md_lattice_format *format;
  double write_s[FILE_SAMPLES], read_s[FILE_SAMPLES], all_s = 0.0, plaquette = 0.0;
  int count = 0;
  char check[64];
  md_gauge_observables here;
  MD_TRY(md_lattice_format_find(suite->context, path, name, &format));
  for (; count < FILE_SAMPLES && all_s < ENOUGH_S; count++) {
    MD_TRY(write_once(suite, path, format, &write_s[count]));
    MD_TRY(read_once(suite, path, &read_s[count], &plaquette));
    all_s += write_s[count] + read_s[count]; /* of the slowest rank: the same on all */
  }
  add_times(suite, "write", name, write_s, count);
  add_times(suite, "read", name, read_s, count);
  MD_TRY(md_gauge_observe(suite->context, &suite->links.field[0], &here));
  snprintf(check, sizeof check, "plaquette read back, %s", name);
  md_suite_check(suite, check, plaquette, here.plaquette, 1e-13);
  return MD_OK;
}

static void name_of(const md_suite *suite, const char *format, char path[PATH_MAX]) {
  snprintf(path, PATH_MAX, "%.3800s/minidirac-suite-%lld.%s", suite->scratch, suite->owner, format);
}

md_status md_suite_files_list(const md_suite *suite, md_made_files *files) {
  char path[PATH_MAX];
  for (int f = 0; f < FORMATS; f++) {
    name_of(suite, formats[f], path);
    MD_TRY(md_made_files_add(suite->context, files, "--scratch", path, MD_FILE_RESULT));
  }
  return MD_OK;
}

md_status md_suite_files(md_suite *suite) {
  md_rows_head(suite->context, FILE_COLUMNS);
  for (int f = 0; f < FORMATS; f++) {
    char path[PATH_MAX];
    name_of(suite, formats[f], path);
    const md_status status = time_format(suite, path, formats[f]);
    if (suite->context->rank == 0) unlink(path);
    const bool full = status == MD_ENVIRONMENT && !md_interrupt_name(suite->context);
    if (status != MD_INPUT && !full) {
      MD_TRY(status);
      continue;
    }
    /* What this run wrote is no bad input: links that are no numbers, a file that was damaged, or
     * one for which there was no room. */
    char check[64];
    md_say(suite->context, "%s\n", suite->context->message);
    snprintf(check, sizeof check, "links written and read back, %s", formats[f]);
    md_suite_check(suite, check, 1.0, 0.0, 0.0);
  }
  return MD_OK;
}
