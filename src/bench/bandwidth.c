#include "base/device.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "base/timer.h"
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *md_stream_name(md_stream stream) {
  return stream == MD_STREAM_COPY ? "copy" : "triad";
}

double md_stream_bytes(const md_stream_arrays *arrays) {
  return (double)arrays->count * sizeof(double) * (arrays->stream == MD_STREAM_COPY ? 2 : 3);
}

md_status md_stream_create(md_context *context, md_space space, md_stream stream, double bytes,
                           md_stream_arrays *arrays) {
  const int used = stream == MD_STREAM_COPY ? 2 : 3;
  *arrays =
      (md_stream_arrays){.space = space, .stream = stream, .count = (size_t)(bytes / 8 / used) + 1};
  md_status (*const allocate)(md_context *, size_t, const char *, void **) =
      space == MD_DEVICE ? md_device_allocate : md_allocate;
  md_status status = MD_OK;
  if (space == MD_DEVICE && stream != MD_STREAM_COPY)
    return md_fail(context, MD_INPUT, "a device is measured by copy, not by %s",
                   md_stream_name(stream));
  for (int k = 0; k < used && status == MD_OK; k++)
    status = allocate(context, arrays->count * sizeof(double), "bandwidth array",
                      (void **)&arrays->array[k]);
  if (status != MD_OK) {
    md_stream_destroy(arrays);
    return status;
  }
  if (space == MD_DEVICE) return MD_OK;
  for (int k = 0; k < used; k++) {
    double *const a = arrays->array[k];
#pragma omp parallel for schedule(static) num_threads(context->threads)
    for (size_t i = 0; i < arrays->count; i++) a[i] = k;
  }
  return MD_OK;
}

void md_stream_destroy(md_stream_arrays *arrays) {
  void (*const release)(void *) = arrays->space == MD_DEVICE ? md_device_free : free;
  for (int k = 0; k < 3; k++) release(arrays->array[k]);
  *arrays = (md_stream_arrays){0};
}

static md_status copy(md_context *context, void *user) {
  const md_stream_arrays *s = user;
  if (s->space == MD_DEVICE)
    return md_device_copy(context, s->array[0], s->array[1], s->count * sizeof(double));
  double *const a = s->array[0];
  const double *const b = s->array[1];
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (size_t i = 0; i < s->count; i++) a[i] = b[i];
  return MD_OK;
}

static md_status triad(md_context *context, void *user) {
  const md_stream_arrays *s = user;
  double *const restrict a = s->array[0];
  const double *const restrict b = s->array[1], *const restrict c = s->array[2];
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (size_t i = 0; i < s->count; i++) a[i] = b[i] + 3.0 * c[i];
  return MD_OK;
}

md_status md_stream_pass(md_context *context, void *user) {
  return (((const md_stream_arrays *)user)->stream == MD_STREAM_COPY ? copy : triad)(context, user);
}

/* Waits for what is queued on a device. */
static md_status finish(md_context *context, md_space space) {
  return space == MD_DEVICE ? md_device_synchronise(context) : MD_OK;
}

md_status md_time_work(md_context *context, md_space space, md_timed_work work, void *user,
                       int passes, double *time_s) {
  md_status status = finish(context, space);
  md_barrier(context);
  const double start_s = md_time_s();
  for (int k = 0; k < passes && status == MD_OK; k++) status = work(context, user);
  const md_status finished = finish(context, space);
  *time_s = (md_time_s() - start_s) / passes;
  md_maximum(context, time_s, 1);
  return md_agree(context, status != MD_OK ? status : finished);
}

md_status md_passes_for(md_context *context, md_space space, md_timed_work work, void *user,
                        double window_s, int most, int *passes) {
  double time_s;
  MD_TRY(md_time_work(context, space, work, user, 1, &time_s));
  MD_TRY(md_time_work(context, space, work, user, 1, &time_s));
  const double wanted = ceil(window_s / fmax(time_s, 1e-9));
  *passes = wanted > most ? most : wanted < 1.0 ? 1 : (int)wanted;
  return MD_OK;
}

md_status md_time_samples(md_context *context, md_space space, md_timed_work work, void *user,
                          double window_s, int most, const char *command, int count,
                          double *samples, md_statistics *seconds) {
  int passes;
  MD_TRY(md_passes_for(context, space, work, user, window_s, most, &passes));
  for (int k = 0; k < count; k++) {
    MD_TRY(md_time_work(context, space, work, user, passes, &samples[k]));
    MD_TRY(md_interrupt_check(context, command));
  }
  *seconds = md_statistics_of(samples, count);
  return MD_OK;
}

#define WINDOW_S 0.02 /* of one repetition */

#define COLUMNS                                                                                    \
  "kernel=%-6s |MB=%12.3f space=%s bytes=%g ranks=%d threads=%d seconds_median|seconds=%12.3e "    \
  "seconds_min=%g seconds_max=%g repetitions=%d gbytes_per_s|GB/s=%10.2f"

void md_stream_bench_head(const md_context *context) {
  md_say(context,
         "%d rank%s x %d thread%s; copy a[i] = b[i] counts 16 bytes, triad a[i] = b[i] + "
         "s c[i] 24;\nMB of the arrays of one rank, GB/s of all\n\n",
         context->ranks, md_plural(context->ranks), context->threads, md_plural(context->threads));
  md_rows_head(context, COLUMNS);
}

md_status md_stream_bench(md_context *context, md_space space, md_stream stream, double bytes,
                          int repetitions, const char *command, cJSON *rows, double *gbytes_per_s) {
  double *samples = NULL;
  md_stream_arrays arrays = {0};
  md_statistics s;
  md_status status =
      md_allocate(context, (size_t)repetitions * sizeof *samples, "times", (void **)&samples);
  if (status == MD_OK) status = md_stream_create(context, space, stream, bytes, &arrays);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_time_samples(context, space, md_stream_pass, &arrays, WINDOW_S,
                             MD_STREAM_MOST_PASSES, command, repetitions, samples, &s);
  if (status == MD_OK) {
    const double moved = md_stream_bytes(&arrays);
    *gbytes_per_s = 1e-9 * moved * context->ranks / s.median;
    md_rows_add(context, rows, COLUMNS, md_stream_name(stream), 1e-6 * moved,
                space == MD_DEVICE ? "device" : "host", moved, context->ranks, context->threads,
                s.median, s.min, s.max, repetitions, *gbytes_per_s);
  }
  free(samples);
  md_stream_destroy(&arrays);
  return status;
}

static md_status time_sizes(md_context *context, const md_reals *sizes, md_space space,
                            int repetitions, md_report *report, cJSON *rows) {
  double largest = 0.0, copy = NAN, gbytes;
  for (int i = 0; i < sizes->count; i++) largest = fmax(largest, sizes->value[i]);
  md_memory_need need = {0};
  *(space == MD_DEVICE ? &need.device : &need.host) = (int64_t)(1e6 * largest);
  MD_TRY(md_memory_require(context, &need, "bench copy"));
  md_stream_bench_head(context);
  for (int i = 0; i < sizes->count; i++)
    for (int s = MD_STREAM_COPY; s <= MD_STREAM_TRIAD; s++) {
      if (space == MD_DEVICE && s != MD_STREAM_COPY) continue;
      MD_TRY(md_stream_bench(context, space, (md_stream)s, 1e6 * sizes->value[i], repetitions,
                             "bench copy", rows, &gbytes));
      if (s == MD_STREAM_COPY && sizes->value[i] == largest) copy = gbytes;
    }
  cJSON_AddNumberToObject(report->root, "copy_gbytes_per_s", copy);
  return MD_OK;
}

md_status md_bench_copy(md_context *context, int argc, char **argv) {
  const char *space = "host", *csv = NULL;
  long long repetitions = 15;
  md_reals sizes = {0};
  md_common_options common = {0};
  md_option options[] = {
      MD_OPTION(
          REALS, "sizes", &sizes, "A,B", "megabytes of the arrays of a rank [0.1,1,10,40,100,300]",
          .initial = "0.1,1,10,40,100,300", .low = 1e-3, .high = 1e6, .group = MD_GROUP_TIMED),
      MD_OPTION(CHOICE, "space", &space, NULL, "whose memory [host]", .choices = "host|device"),
      MD_REPETITIONS_OPTION(repetitions, "timed samples of each size [15]"), MD_CSV_OPTION(csv),
      MD_COMMON_OPTIONS_WITHOUT_LATTICE(common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"bench copy", "memory bandwidth by working set",
                                "copy_gbytes_per_s of the report is that of the largest size.",
                                "minidirac bench copy --sizes 1,100"};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &common, argc, argv));
  if (common.help) return MD_OK;
  MD_TRY(md_report_open(context, "bench copy", &report));
  cJSON *rows = cJSON_CreateArray();
  md_status status = time_sizes(context, &sizes, strcmp(space, "device") == 0 ? MD_DEVICE : MD_HOST,
                                (int)repetitions, &report, rows);
  cJSON_AddItemToObject(report.root, "rows", rows);
  return md_report_finish(context, &report, rows, csv, common.json, status);
}
