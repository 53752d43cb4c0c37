#include "bench/gemm/shapes.h"
#include "bench/small/case.h"

#include <stdlib.h>
#include <string.h>

typedef struct copy_call {
  md_small_bench *bench;
  const md_small_matrix *from, *to;
} copy_call;

static md_status copy_host(md_context *context, void *user, void *stream) {
  const copy_call *c = user;
  const int64_t count = c->from->rows * c->from->columns;
  const float *from = c->from->host;
  float *to = c->to->host;
  (void)stream;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t i = 0; i < count; i++) to[i] = from[i];
  return MD_OK;
}

static md_status copy_device(md_context *context, void *user, void *stream) {
  const copy_call *c = user;
  (void)stream;
  md_gemm_device_matrix to = c->from->device; /* as many elements, maybe of another shape */
  to.data = c->to->device.data;
  return md_gemm_device_copy(context, &to, &c->from->device);
}

/* Plain copies on host and device: the yardstick of the run. */
static md_status time_copies(md_small_bench *bench) {
  const md_small_matrix *from = &bench->matrix[0];
  copy_call call = {bench, from, &bench->matrix[1]};
  const double bytes = 2.0 * (double)(from->rows * from->columns) * MD_SMALL_BYTES;
  for (int space = MD_GEMM_HOST; space <= MD_GEMM_DEVICE; space++) {
    const bool host = space == MD_GEMM_HOST;
    const char *name = host ? "host" : "device";
    if (strcmp(bench->space, host ? "device" : "host") == 0 || !(host || bench->has_device))
      continue;
    const md_small_case copy = {
        .space = (md_gemm_space)space, .call = host ? copy_host : copy_device, .user = &call};
    md_bench_statistics seconds;
    MD_TRY(md_small_time(bench, &copy, &seconds));
    bench->copy_gbytes_per_s[space] = 1e-9 * bytes / seconds.median;
    cJSON_AddNumberToObject(bench->report.root,
                            host ? "copy_host_gbytes_per_s" : "copy_gbytes_per_s",
                            bench->copy_gbytes_per_s[space]);
    md_say(bench->context, "copy on the %s: %.2f GB/s\n", name, bench->copy_gbytes_per_s[space]);
  }
  return MD_OK;
}

/* "AxB" with each from 1 to the kind's most. */
static md_status read_size(md_context *context, const char *label, const char *text, int64_t most,
                           int64_t size[2]) {
  MD_TRY(md_gemm_sizes_read(context, label, text, 2, size));
  if (size[0] <= most && size[1] <= most) return MD_OK;
  return md_fail(context, MD_INPUT, "%s takes sizes up to %lld, got '%.200s'", label,
                 (long long)most, text);
}

static md_status read_dims(md_context *context, const char *label, const char *text, void *target) {
  md_small_bench *bench = target;
  return read_size(context, label, text, bench->kind->most, bench->size);
}

/* "32x8,16x4,...", or all: 32xY and 16xY for Y in 1..32. */
static md_status read_blocks(md_context *context, const char *label, const char *text,
                             void *target) {
  md_small_bench *bench = target;
  char copy[1024];
  const char *words[MD_SMALL_MOST_BLOCKS];
  int64_t size[2];
  bench->block_count = MD_SMALL_MOST_BLOCKS;
  for (int b = 0; b < MD_SMALL_MOST_BLOCKS; b++) {
    bench->block[b][0] = b < 32 ? 32 : 16;
    bench->block[b][1] = b % 32 + 1;
  }
  if (strcmp(text, "all") == 0) return MD_OK;
  bench->block_count = md_words(text, copy, sizeof copy, words, MD_SMALL_MOST_BLOCKS);
  if (bench->block_count < 1)
    return md_fail(context, MD_INPUT, "%s takes up to %d XxY between commas, or all, got '%.60s'",
                   label, MD_SMALL_MOST_BLOCKS, text);
  for (int b = 0; b < bench->block_count; b++) {
    MD_TRY(read_size(context, label, words[b], bench->kind->most_block, size));
    if (size[0] * size[1] > 1024)
      return md_fail(context, MD_INPUT, "a block has up to 1024 threads, got '%s'", words[b]);
    bench->block[b][0] = (int)size[0];
    bench->block[b][1] = (int)size[1];
  }
  return MD_OK;
}

static md_status read_options(md_small_bench *bench, int argc, char **argv) {
  const md_small_kind *kind = bench->kind;
  const md_option blocks = MD_OPTION(PARSED, "blocks", bench, "XxY,...", kind->blocks_help,
                                     .parse = read_blocks, .initial = kind->blocks);
  md_option options[] = {blocks,
                         MD_OPTION(PARSED, "dims", bench, kind->dims_argument, kind->dims_help,
                                   .parse = read_dims, .initial = kind->dims),
                         MD_OPTION(CHOICE, "type", &bench->type, NULL,
                                   "of the elements, 4 bytes each [both]",
                                   .choices = "integer|single|both"),
                         MD_OPTION(CHOICE, "space", &bench->space, NULL,
                                   "whose kernels; both: a missing device is passed over [both]",
                                   .choices = "host|device|both"),
                         MD_OPTION(INTEGER, "repeat", &bench->repeat, "N",
                                   "timed runs of each [10]", .low = 1, .high = 1000000),
                         MD_OPTION(INTEGER, "seed", &bench->seed, "N", "of the elements [987654]",
                                   .low = 0, .high = 9.2e18),
                         MD_CSV_OPTION(bench->csv),
                         MD_COMMON_OPTIONS(bench->common)};
  const int skip = kind->blocks ? 0 : 1, count = sizeof options / sizeof *options - skip;
  return md_options_read(bench->context, &kind->text, options + skip, count, &bench->common, argc,
                         argv);
}

/* The device where this build and machine have one; without, its kernels are left out with a note,
 * or, where they alone were asked for, MD_ENVIRONMENT says why. */
static md_status open_device(md_small_bench *bench) {
  md_context *context = bench->context;
  if (context->ranks != 1)
    return md_fail(context, MD_INPUT, "%s runs on one rank, got %d; start it without mpirun",
                   bench->kind->text.command, context->ranks);
  if (strcmp(bench->space, "host") == 0) return MD_OK;
  const md_status found = md_gemm_device_open(context, &bench->device);
  bench->has_device = found == MD_OK;
  if (found == MD_OK) return MD_OK;
  if (strcmp(bench->space, "both") == 0) {
    md_say(context, "host only, %s\n", context->message);
    return MD_OK;
  }
  char why[sizeof context->message];
  memcpy(why, context->message, sizeof why);
  return md_fail(context, MD_ENVIRONMENT, "--space device: %s; or take --space host", why);
}

static md_status run(md_small_bench *bench) {
  md_context *context = bench->context;
  MD_TRY(bench->kind->prepare(bench));
  MD_TRY(time_copies(bench));
  for (int t = 0; t < MD_SMALL_TYPES; t++) {
    const char *name = md_small_type_name((md_small_type)t);
    if (strcmp(bench->type, "both") == 0 || strcmp(bench->type, name) == 0)
      MD_TRY(bench->kind->run_type(bench, (md_small_type)t));
  }
  if (bench->rows->child) return MD_OK;
  return md_fail(
      context, MD_ENVIRONMENT,
      "%s timed nothing: this build and machine have no kernel for --type %s --space %s; "
      "take --type both --space host",
      bench->kind->text.command, bench->type, bench->space);
}

md_status md_small_command(md_context *context, const md_small_kind *kind, int argc, char **argv) {
  md_small_bench bench = {.context = context,
                          .kind = kind,
                          .repeat = 10,
                          .seed = 987654,
                          .type = "both",
                          .space = "both",
                          .copy_gbytes_per_s = {NAN, NAN}};
  MD_TRY(read_options(&bench, argc, argv));
  if (bench.common.help) return MD_OK;
  md_status status = open_device(&bench);
  if (status == MD_OK) status = md_report_open(context, kind->text.command, &bench.report);
  if (status == MD_OK) {
    bench.rows = cJSON_AddArrayToObject(bench.report.root, "rows");
    if (bench.has_device) cJSON_AddStringToObject(bench.report.root, "device", bench.device.name);
    status = md_report_finish(context, &bench.report, bench.rows, bench.csv, bench.common.json,
                              run(&bench));
  }
  for (int m = 0; m < MD_SMALL_MATRICES; m++) {
    free(bench.matrix[m].host);
    md_gemm_device_free(&bench.matrix[m].device);
  }
  if (bench.has_device) md_gemm_device_close(&bench.device);
  return status;
}
