#ifndef MD_BENCH_SMALL_CASE_H
#define MD_BENCH_SMALL_CASE_H

#include "base/options.h"
#include "base/report.h"
#include "bench/statistics.h"
#include "gemm/device.h"
#include "gemm/small.h"

/* What bench transpose, shift and gemv share: matrices of 4-byte elements on host or device,
 * timed calls, and the copy bandwidth that theirs is compared with. */
typedef struct md_small_options {
  long long repeat, seed;
  const char *type, *space, *csv;
} md_small_options;

typedef struct md_small_bench {
  md_context *context;
  md_small_options options;
  md_gemm_device device;
  bool has_device;
  double copy_gbytes_per_s[2]; /* by md_gemm_space; NaN: not measured */
  md_report *report;
  cJSON *rows;
} md_small_bench;

/* The options that all three have, with their defaults: append MD_SMALL_OPTIONS(options) to their
 * tables. */
#define MD_SMALL_DEFAULTS                                                                          \
  { .repeat = 10, .seed = 987654, .type = "both", .space = "both" }
/* clang-format off */
#define MD_SMALL_OPTIONS(options)                                                                  \
  {.name = "type", .type = MD_OPTION_CHOICE, .target = &(options).type,                            \
   .help = "of the elements, 4 bytes each [both]", .choices = "integer|single|both"},              \
  {.name = "space", .type = MD_OPTION_CHOICE, .target = &(options).space,                          \
   .help = "whose kernels; both: a missing device is passed over [both]",                          \
   .choices = "host|device|both"},                                                                 \
  {.name = "repeat", .type = MD_OPTION_INTEGER, .target = &(options).repeat, .argument = "N",      \
   .help = "timed runs of each [10]", .low = 1, .high = 1000000},                                  \
  {.name = "seed", .type = MD_OPTION_INTEGER, .target = &(options).seed, .argument = "N",          \
   .help = "of the elements [987654]", .low = 0, .high = 9.2e18},                                  \
  {.name = "csv", .type = MD_OPTION_TEXT, .target = &(options).csv, .argument = "FILE",            \
   .help = "the rows as a table"}
/* clang-format on */

/* A matrix on the host and, for a kernel of the device, there. */
typedef struct md_small_matrix {
  int64_t rows, columns;
  void *host;
  md_gemm_device_matrix device; /* all zero without a device */
} md_small_matrix;

/* Opens the report with its rows, and the device where this build and machine have one; without,
 * the kernels of the device are left out with a note, or, where they alone were asked for,
 * MD_ENVIRONMENT says why. MD_INPUT on more than one rank. */
md_status md_small_open(md_small_bench *bench, md_context *context, const md_small_options *options,
                        const char *command, md_report *report);
/* Ends both; writes CSV and JSON (NULL: nowhere) when `status` is MD_OK. Returns the first failure.
 */
md_status md_small_close(md_small_bench *bench, md_status status, md_report *report,
                         const char *json);
/* Whether elements of that type are asked for. */
bool md_small_wants(const md_small_bench *bench, md_small_type type);
const char *md_small_type_name(md_small_type type);
/* False for a kernel of a space that is not asked for and, with a note on stdout, for one that
 * this build or machine does not have. */
bool md_small_takes(const md_small_bench *bench, const char *name, md_gemm_space space,
                    const char *unavailable);

/* Allocates on the host, and on the device where there is one. After a failure free works. */
md_status md_small_make(md_small_bench *bench, int64_t rows, int64_t columns, const char *what,
                        md_small_matrix *matrix);
void md_small_free(md_small_matrix *matrix);
/* Integers in -magnitude .. magnitude or floats in (-1, 1), functions of (seed, purpose, row,
 * column) alone, on the host and, where there is one, on the device. */
md_status md_small_fill(md_small_bench *bench, md_small_matrix *matrix, md_small_type type,
                        uint64_t purpose, int32_t magnitude);
/* Where a kernel of that space finds it. */
void *md_small_data(const md_small_matrix *matrix, md_gemm_space space);

/* A kernel at work. */
typedef struct md_small_case {
  md_gemm_space space;
  md_small_matrix *result;
  /* One call; queued on the stream for the device. */
  md_status (*call)(md_context *context, void *user, void *stream);
  /* Compares the result, which is on the host, with the definition: MD_UNREACHED says where. */
  md_status (*check)(md_context *context, void *user);
  void *user;
} md_small_case;
/* One call into a result that was all NaN (all -1), its check, then the timed calls, the first one
 * more untimed. */
md_status md_small_run(md_small_bench *bench, const md_small_case *work,
                       md_bench_statistics *seconds);

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
