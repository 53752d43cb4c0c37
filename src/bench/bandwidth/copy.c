#include "base/interrupt.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "base/timer.h"
#include "bench/bandwidth/bandwidth.h"
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_S 0.02 /* of one repetition */

typedef struct measurement {
  md_space space;
  md_stream stream;
  double bytes; /* of one pass on one rank */
  int repetitions;
  double median_s, min_s, max_s;
} measurement;

/* Times m->stream through about m->bytes per rank, and says how many they were. Collective. */
static md_status measure(md_context *context, measurement *m) {
  double *samples = NULL;
  md_stream_arrays arrays = {0};
  int passes;
  md_status status =
      md_allocate(context, (size_t)m->repetitions * sizeof *samples, "times", (void **)&samples);
  if (status == MD_OK) status = md_stream_create(context, m->space, m->stream, m->bytes, &arrays);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_stream_passes_for(context, &arrays, m->stream, WINDOW_S, &passes);
  for (int k = 0; k < m->repetitions && status == MD_OK; k++) {
    status = md_time_stream(context, &arrays, m->stream, passes, &samples[k]);
    if (status == MD_OK) status = md_interrupt_check(context, "bench copy");
  }
  if (status == MD_OK) {
    m->bytes = md_stream_bytes(&arrays, m->stream);
    m->median_s = md_median(samples, m->repetitions);
    m->min_s = samples[0];
    m->max_s = samples[m->repetitions - 1];
  }
  free(samples);
  md_stream_destroy(&arrays);
  return status;
}

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
                          int repetitions, cJSON *rows, double *gbytes_per_s) {
  measurement m = {.space = space, .stream = stream, .bytes = bytes, .repetitions = repetitions};
  MD_TRY(measure(context, &m));
  *gbytes_per_s = 1e-9 * m.bytes * context->ranks / m.median_s;
  md_rows_add(context, rows, COLUMNS, md_stream_name(stream), 1e-6 * m.bytes,
              space == MD_DEVICE ? "device" : "host", m.bytes, context->ranks, context->threads,
              m.median_s, m.min_s, m.max_s, repetitions, *gbytes_per_s);
  return MD_OK;
}

static md_status run(md_context *context, const md_reals *sizes, md_space space, int repetitions,
                     md_report *report, cJSON *rows) {
  double largest = 0.0, copy = NAN, gbytes;
  md_stream_bench_head(context);
  for (int i = 0; i < sizes->count; i++)
    for (int s = MD_STREAM_COPY; s <= MD_STREAM_TRIAD; s++) {
      if (space == MD_DEVICE && s != MD_STREAM_COPY) continue;
      MD_TRY(md_stream_bench(context, space, (md_stream)s, 1e6 * sizes->value[i], repetitions, rows,
                             &gbytes));
      if (s != MD_STREAM_COPY || sizes->value[i] < largest) continue;
      largest = sizes->value[i];
      copy = gbytes;
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
      MD_OPTION(REALS, "sizes", &sizes, "A,B",
                "megabytes of the arrays of a rank [0.1,1,10,40,100,300]",
                .initial = "0.1,1,10,40,100,300", .low = 1e-3, .high = 1e6),
      MD_OPTION(CHOICE, "space", &space, NULL, "whose memory [host]", .choices = "host|device"),
      MD_REPETITIONS_OPTION(repetitions, "timed samples of each size [15]"), MD_CSV_OPTION(csv),
      MD_COMMON_OPTIONS(common)};
  enum { COUNT = sizeof options / sizeof *options };
  const md_command_text text = {"bench copy", "memory bandwidth by working set",
                                "copy_gbytes_per_s of the report is that of the largest size."};
  md_report report;
  MD_TRY(md_options_read(context, &text, options, COUNT, &common, argc, argv));
  if (common.help) return MD_OK;
  MD_TRY(md_report_open(context, "bench copy", &report));
  cJSON *rows = cJSON_CreateArray();
  md_status status = run(context, &sizes, strcmp(space, "device") == 0 ? MD_DEVICE : MD_HOST,
                         (int)repetitions, &report, rows);
  cJSON_AddItemToObject(report.root, "rows", rows);
  return md_report_finish(context, &report, rows, csv, common.json, status);
}
