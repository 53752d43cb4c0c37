#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "bench/bandwidth/bandwidth.h"
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
                          int repetitions, cJSON *rows, double *gbytes_per_s) {
  double *samples = NULL;
  md_stream_arrays arrays = {0};
  md_statistics s;
  md_status status =
      md_allocate(context, (size_t)repetitions * sizeof *samples, "times", (void **)&samples);
  if (status == MD_OK) status = md_stream_create(context, space, stream, bytes, &arrays);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_time_samples(context, space, md_stream_pass, &arrays, WINDOW_S,
                             MD_STREAM_MOST_PASSES, "bench copy", repetitions, samples, &s);
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
  md_status status = time_sizes(context, &sizes, strcmp(space, "device") == 0 ? MD_DEVICE : MD_HOST,
                                (int)repetitions, &report, rows);
  cJSON_AddItemToObject(report.root, "rows", rows);
  return md_report_finish(context, &report, rows, csv, common.json, status);
}
