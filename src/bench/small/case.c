#include "bench/small/case.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"
#include "bench/gemm/shapes.h"

#include <stdlib.h>
#include <string.h>

md_status md_small_open(md_small_bench *bench, md_context *context, const md_small_options *options,
                        const char *command, md_report *report) {
  *bench = (md_small_bench){.context = context, .options = *options, .report = report};
  bench->copy_gbytes_per_s[MD_GEMM_HOST] = bench->copy_gbytes_per_s[MD_GEMM_DEVICE] = NAN;
  if (context->ranks != 1)
    return md_fail(context, MD_INPUT, "%s runs on one rank, got %d; start it without mpirun",
                   command, context->ranks);
  const bool host_only = strcmp(options->space, "host") == 0;
  const md_status found = host_only ? MD_OK : md_gemm_device_open(context, &bench->device);
  if (found != MD_OK && strcmp(options->space, "device") == 0) return found;
  bench->has_device = !host_only && found == MD_OK;
  if (found != MD_OK) md_say(context, "host only, %s\n", context->message);
  const md_status status = md_report_open(context, command, report);
  if (status != MD_OK && bench->has_device) md_gemm_device_close(&bench->device);
  if (status != MD_OK) return status;
  bench->rows = cJSON_AddArrayToObject(report->root, "rows");
  if (bench->has_device) cJSON_AddStringToObject(report->root, "device", bench->device.name);
  return MD_OK;
}

md_status md_small_close(md_small_bench *bench, md_status status, md_report *report,
                         const char *json) {
  if (bench->has_device) md_gemm_device_close(&bench->device);
  if (status == MD_OK) status = md_report_csv(bench->context, bench->rows, bench->options.csv);
  const md_status written = md_report_close(bench->context, report, status == MD_OK ? json : NULL);
  return status != MD_OK ? status : written;
}

const char *md_small_type_name(md_small_type type) {
  return type == MD_SMALL_INTEGER ? "integer" : "single";
}

bool md_small_wants(const md_small_bench *bench, md_small_type type) {
  const char *asked = bench->options.type;
  return strcmp(asked, "both") == 0 || strcmp(asked, md_small_type_name(type)) == 0;
}

bool md_small_takes(const md_small_bench *bench, const char *name, md_gemm_space space,
                    const char *unavailable) {
  if (space == MD_GEMM_HOST) return strcmp(bench->options.space, "device") != 0;
  if (bench->has_device && unavailable) md_say(bench->context, "%s: %s\n", name, unavailable);
  return bench->has_device && !unavailable;
}

static size_t bytes_of(const md_small_matrix *matrix) {
  return (size_t)(matrix->rows * matrix->columns) * MD_SMALL_BYTES;
}

md_status md_small_make(md_small_bench *bench, int64_t rows, int64_t columns, const char *what,
                        md_small_matrix *matrix) {
  *matrix = (md_small_matrix){.rows = rows, .columns = columns};
  MD_TRY(md_allocate(bench->context, bytes_of(matrix), what, &matrix->host));
  memset(matrix->host, 0, bytes_of(matrix));
  if (!bench->has_device) return MD_OK;
  return md_gemm_device_allocate(bench->context, rows, columns, MD_SMALL_BYTES, false,
                                 &matrix->device);
}

void md_small_free(md_small_matrix *matrix) {
  free(matrix->host);
  md_gemm_device_free(&matrix->device);
  *matrix = (md_small_matrix){0};
}

/* The host's part to the device's. */
static md_status put(md_small_bench *bench, const md_small_matrix *matrix) {
  if (!bench->has_device) return MD_OK;
  return md_gemm_device_put(bench->context, &matrix->device, matrix->host, matrix->columns);
}

md_status md_small_fill(md_small_bench *bench, md_small_matrix *matrix, md_small_type type,
                        uint64_t purpose, int32_t magnitude) {
  const uint64_t seed = (uint64_t)bench->options.seed, values = 2 * (uint64_t)magnitude + 1;
#pragma omp parallel for schedule(static) num_threads(bench->context->threads)
  for (int64_t i = 0; i < matrix->rows; i++) {
    md_random random = md_random_at(seed, purpose, (uint64_t)i);
    for (int64_t at = i * matrix->columns; at < (i + 1) * matrix->columns; at++)
      if (type == MD_SMALL_INTEGER)
        ((int32_t *)matrix->host)[at] =
            (int32_t)((int64_t)(md_random_bits(&random) % values) - magnitude);
      else
        ((float *)matrix->host)[at] = (float)(2.0 * md_random_uniform(&random) - 1.0);
  }
  return put(bench, matrix);
}

void *md_small_data(const md_small_matrix *matrix, md_gemm_space space) {
  return space == MD_GEMM_HOST ? matrix->host : matrix->device.data;
}

static md_status once(md_small_bench *bench, const md_small_case *work, double *time_s) {
  if (work->space == MD_GEMM_HOST) {
    const double start_s = md_time_s();
    MD_TRY(work->call(bench->context, work->user, NULL));
    *time_s = md_time_s() - start_s;
    return MD_OK;
  }
  md_gemm_device_start(&bench->device);
  MD_TRY(work->call(bench->context, work->user, bench->device.stream));
  return md_gemm_device_stop(bench->context, &bench->device, time_s);
}

/* One call that is not timed, then the timed ones. */
static md_status time_calls(md_small_bench *bench, const md_small_case *work,
                            md_bench_statistics *seconds) {
  const int repeat = (int)bench->options.repeat;
  double *samples = malloc((size_t)repeat * sizeof *samples);
  if (!samples) return md_fail_memory(bench->context, (size_t)repeat * sizeof *samples, "timings");
  md_status status = once(bench, work, &samples[0]);
  for (int r = 0; r < repeat && status == MD_OK; r++) status = once(bench, work, &samples[r]);
  if (status == MD_OK) *seconds = md_bench_statistics_of(samples, repeat);
  free(samples);
  return status;
}

md_status md_small_run(md_small_bench *bench, const md_small_case *work,
                       md_bench_statistics *seconds) {
  double unused_s;
  md_small_matrix *result = work->result;
  memset(result->host, 0xff, bytes_of(result)); /* what a kernel leaves out shows */
  MD_TRY(put(bench, result));
  MD_TRY(once(bench, work, &unused_s));
  if (work->space == MD_GEMM_DEVICE)
    MD_TRY(md_gemm_device_get(bench->context, result->host, result->columns, &result->device));
  MD_TRY(work->check(bench->context, work->user));
  return time_calls(bench, work, seconds);
}

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

md_status md_small_copy(md_small_bench *bench, const md_small_matrix *from,
                        const md_small_matrix *to) {
  copy_call call = {bench, from, to};
  const double bytes = 2.0 * (double)bytes_of(from);
  for (int space = MD_GEMM_HOST; space <= MD_GEMM_DEVICE; space++) {
    const bool host = space == MD_GEMM_HOST;
    const char *name = host ? "host" : "device";
    if (!md_small_takes(bench, "copy", (md_gemm_space)space, NULL)) continue;
    const md_small_case copy = {
        .space = (md_gemm_space)space, .call = host ? copy_host : copy_device, .user = &call};
    md_bench_statistics seconds;
    MD_TRY(time_calls(bench, &copy, &seconds));
    bench->copy_gbytes_per_s[space] = 1e-9 * bytes / seconds.median;
    cJSON_AddNumberToObject(bench->report->root,
                            host ? "copy_host_gbytes_per_s" : "copy_gbytes_per_s",
                            bench->copy_gbytes_per_s[space]);
    md_say(bench->context, "copy on the %s: %.2f GB/s\n", name, bench->copy_gbytes_per_s[space]);
  }
  return MD_OK;
}

void md_small_report(md_small_bench *bench, cJSON *row, md_gemm_space space, double bytes,
                     const md_bench_statistics *seconds) {
  const double rate = 1e-9 * bytes / seconds->median;
  const double fraction = rate / bench->copy_gbytes_per_s[space];
  cJSON_AddStringToObject(row, "space", space == MD_GEMM_HOST ? "host" : "device");
  cJSON_AddNumberToObject(row, "repetitions", (double)bench->options.repeat);
  cJSON_AddNumberToObject(row, "seconds_mean", seconds->mean);
  cJSON_AddNumberToObject(row, "seconds_std", seconds->std);
  cJSON_AddNumberToObject(row, "seconds_median", seconds->median);
  cJSON_AddNumberToObject(row, "gbytes_per_s", rate);
  cJSON_AddNumberToObject(row, "copy_fraction", fraction);
  cJSON_AddItemToArray(bench->rows, row);
  md_say(bench->context, " %12.5e s +- %8.2e s %9.2f GB/s, %.3f of copy\n", seconds->mean,
         seconds->std, rate, fraction);
}

md_status md_small_sizes(md_context *context, const char *option, const char *text, int64_t most,
                         int64_t size[2]) {
  MD_TRY(md_gemm_sizes_read(context, option, text, 2, size));
  if (size[0] <= most && size[1] <= most) return MD_OK;
  return md_fail(context, MD_INPUT, "--%s takes sizes up to %lld, got '%s'", option,
                 (long long)most, text);
}

int md_small_blocks(md_context *context, const char *text, int64_t most, int block[][2]) {
  char copy[1024];
  const char *words[MD_SMALL_MOST_BLOCKS];
  int64_t size[2];
  if (strcmp(text, "all") == 0) {
    for (int b = 0; b < 64; b++) {
      block[b][0] = b < 32 ? 32 : 16;
      block[b][1] = b % 32 + 1;
    }
    return 64;
  }
  const int count = md_words(text, copy, sizeof copy, words, MD_SMALL_MOST_BLOCKS);
  if (count < 1) {
    md_fail(context, MD_INPUT, "--blocks takes up to %d XxY between commas, or all, got '%.60s'",
            MD_SMALL_MOST_BLOCKS, text);
    return -1;
  }
  for (int b = 0; b < count; b++) {
    if (md_small_sizes(context, "blocks", words[b], most, size) != MD_OK) return -1;
    if (size[0] * size[1] > 1024) {
      md_fail(context, MD_INPUT, "a block has up to 1024 threads, got '%s'", words[b]);
      return -1;
    }
    block[b][0] = (int)size[0];
    block[b][1] = (int)size[1];
  }
  return count;
}
