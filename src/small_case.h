#ifndef MD_SMALL_CASE_H
#define MD_SMALL_CASE_H

#include "base/options.h"
#include "base/report.h"
#include "bench_statistics.h"
#include "gemm/device.h"

/* What bench transpose, shift and gemv share: matrices of 4-byte elements on host or device,
 * timed calls, and the copy bandwidth that theirs is compared with. */
typedef struct md_small_bench {
  md_context *context;
  int repeat;
  md_gemm_device device;
  bool has_device;
  double copy_gbytes_per_s[2]; /* by md_gemm_space; NaN: not measured */
  md_report *report;
  cJSON *rows;
} md_small_bench;

/* The options that all three have: append MD_SMALL_OPTIONS(repeat, csv) to their tables. */
#define MD_SMALL_OPTIONS(repeat_target, csv_target)                                                \
  {.name = "repeat",                                                                               \
   .type = MD_OPTION_INTEGER,                                                                      \
   .target = &(repeat_target),                                                                     \
   .argument = "N",                                                                                \
   .help = "timed runs of each [10]",                                                              \
   .low = 1,                                                                                       \
   .high = 1000000},                                                                               \
  {                                                                                                \
    .name = "csv", .type = MD_OPTION_TEXT, .target = &(csv_target), .argument = "FILE",            \
    .help = "the rows as a table"                                                                  \
  }

/* A matrix on the host and, for a kernel of the device, there. */
typedef struct md_small_matrix {
  int64_t rows, columns;
  void *host;
  md_gemm_device_matrix device; /* all zero without a device */
} md_small_matrix;

/* Opens the report with its rows, and the device where this build and machine have one; without,
 * the kernels of the device are left out with a note. MD_INPUT on more than one rank. */
md_status md_small_open(md_small_bench *bench, const char *command, md_report *report);
/* Ends both; writes CSV and JSON (NULL: nowhere) when `status` is MD_OK. Returns the first failure.
 */
md_status md_small_close(md_small_bench *bench, md_status status, md_report *report,
                         const char *csv, const char *json);
/* False, with a note on stdout, for a kernel that this build or machine does not have. */
bool md_small_takes(const md_small_bench *bench, const char *name, md_gemm_space space,
                    const char *unavailable);

/* Allocates on the host, and on the device where there is one. After a failure free works. */
md_status md_small_make(md_small_bench *bench, int64_t rows, int64_t columns, const char *what,
                        md_small_matrix *matrix);
void md_small_free(md_small_matrix *matrix);
md_status md_small_put(md_small_bench *bench, const md_small_matrix *matrix);
md_status md_small_get(md_small_bench *bench, md_small_matrix *matrix);
/* Where a kernel of that space finds it. */
void *md_small_data(const md_small_matrix *matrix, md_gemm_space space);

/* One call of a kernel; queued on the stream for the device. */
typedef md_status (*md_small_call)(md_context *context, void *user, void *stream);
/* One call that is not timed, then `repeat` timed ones. repeat 0: the first alone. */
md_status md_small_time(md_small_bench *bench, md_gemm_space space, md_small_call call, void *user,
                        int repeat, md_bench_statistics *seconds);

/* Measures the bandwidth (bytes read and written) of plain copies of `from` to `to`, host and
 * device: the yardstick of the run. */
md_status md_small_copy(md_small_bench *bench, const md_small_matrix *from,
                        const md_small_matrix *to);

/* Adds seconds_mean, _std, _median, gbytes_per_s and copy_fraction to a row and the row to rows,
 * and ends its line on stdout. `bytes` is what the kernel must read and write. */
void md_small_report(md_small_bench *bench, cJSON *row, md_gemm_space space, double bytes,
                     const md_bench_statistics *seconds);

/* "AxB" with each from 1 to most. */
md_status md_small_sizes(md_context *context, const char *option, const char *text, int64_t most,
                         int64_t size[2]);

/* Block shapes "32x8,16x4,..." with X and Y up to `most` and X * Y up to 1024, or all: 32xY and
 * 16xY for Y in 1..32. Returns the count, or -1 with the message set. */
enum { MD_SMALL_MOST_BLOCKS = 64 };
int md_small_blocks(md_context *context, const char *text, int64_t most, int block[][2]);

#endif
