#include "bench/small/case.h"
#include "base/memory.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

const char *md_small_type_name(md_small_type type) {
  return type == MD_SMALL_INTEGER ? "integer" : "single";
}

bool md_small_takes(const md_small_bench *bench, const char *name, md_gemm_space space,
                    const char *unavailable) {
  if (space == MD_GEMM_HOST) return strcmp(bench->space, "device") != 0;
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

/* The host's part to the device's. */
static md_status put(md_small_bench *bench, const md_small_matrix *matrix) {
  if (!bench->has_device) return MD_OK;
  return md_gemm_device_put(bench->context, &matrix->device, matrix->host, matrix->columns);
}

md_status md_small_fill(md_small_bench *bench, md_small_matrix *matrix, md_small_type type,
                        uint64_t purpose, int32_t magnitude) {
  const uint64_t seed = (uint64_t)bench->seed, values = 2 * (uint64_t)magnitude + 1;
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

md_status md_small_time(md_small_bench *bench, const md_small_case *work,
                        md_bench_statistics *seconds) {
  const int repeat = (int)bench->repeat;
  double *samples = malloc((size_t)repeat * sizeof *samples);
  if (!samples) return md_fail_memory(bench->context, (size_t)repeat * sizeof *samples, "timings");
  md_status status = once(bench, work, &samples[0]);
  for (int r = 0; r < repeat && status == MD_OK; r++) {
    status = once(bench, work, &samples[r]);
    if (status == MD_OK) status = md_interrupt_check(bench->context, bench->kind->text.command);
  }
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
  return md_small_time(bench, work, seconds);
}

void md_small_report(md_small_bench *bench, cJSON *row, md_gemm_space space, double bytes,
                     const md_bench_statistics *seconds) {
  const double rate = 1e-9 * bytes / seconds->median;
  const double fraction = rate / bench->copy_gbytes_per_s[space];
  cJSON_AddStringToObject(row, "space", space == MD_GEMM_HOST ? "host" : "device");
  cJSON_AddNumberToObject(row, "repetitions", (double)bench->repeat);
  cJSON_AddNumberToObject(row, "seconds_mean", seconds->mean);
  cJSON_AddNumberToObject(row, "seconds_std", seconds->std);
  cJSON_AddNumberToObject(row, "seconds_median", seconds->median);
  cJSON_AddNumberToObject(row, "seconds_min", seconds->min);
  cJSON_AddNumberToObject(row, "seconds_max", seconds->max);
  cJSON_AddNumberToObject(row, "gbytes_per_s", rate);
  cJSON_AddNumberToObject(row, "copy_fraction", fraction);
  cJSON_AddItemToArray(bench->rows, row);
  md_say(bench->context, " %12.5e s +- %8.2e s %9.2f GB/s, %.3f of copy\n", seconds->median,
         seconds->std, rate, fraction);
}
