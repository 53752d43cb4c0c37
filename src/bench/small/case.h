#ifndef MD_BENCH_SMALL_CASE_H
#define MD_BENCH_SMALL_CASE_H

#include "base/interrupt.h"
#include "base/options.h"
#include "base/report.h"
#include "bench/statistics.h"
#include "gemm/device.h"
#include "gemm/small.h"

/* What bench transpose, shift and gemv share: the command from its options to its report, matrices
 * of 4-byte elements on host or device, timed calls, and the copy bandwidth that theirs is compared
 * with. */
enum { MD_SMALL_MATRICES = 4, MD_SMALL_MOST_BLOCKS = 64 };

typedef struct md_small_bench md_small_bench;

/* One bench: what its own file says. */
typedef struct md_small_kind {
  md_command_text text;
  const char *dims, *dims_argument, *dims_help; /* dims: the default */
  int64_t most;                                 /* of either size */
  const char *blocks, *blocks_help;             /* blocks: the default; NULL: it takes none */
  int64_t most_block;                           /* of either side of a block */
  /* Makes bench->matrix[] for bench->size; matrix[0] and matrix[1], of as many elements, are what
   * the copy bandwidth is measured with. */
  md_status (*prepare)(md_small_bench *bench);
  /* Fills the matrices and times every kernel that is wanted. */
  md_status (*run_type)(md_small_bench *bench, md_small_type type);
} md_small_kind;

/* minidirac bench KIND. Collective, as the subcommands of commands.h. */
md_status md_small_command(md_context *context, const md_small_kind *kind, int argc, char **argv);

/* A matrix on the host and, for a kernel of the device, there. */
typedef struct md_small_matrix {
  int64_t rows, columns;
  void *host;
  md_gemm_device_matrix device; /* all zero without a device */
} md_small_matrix;

struct md_small_bench {
  md_context *context;
  const md_small_kind *kind;
  md_common_options common;
  const char *type, *space, *csv;
  long long repeat, seed;
  int64_t size[2];
  int block[MD_SMALL_MOST_BLOCKS][2], block_count;
  md_gemm_device device;
  bool has_device;
  md_small_matrix matrix[MD_SMALL_MATRICES];
  double copy_gbytes_per_s[2]; /* by md_gemm_space; NaN: not measured */
  md_report report;
  cJSON *rows;
};

const char *md_small_type_name(md_small_type type);
/* False for a kernel of a space that is not asked for and, with a note on stdout, for one that
 * this build or machine does not have. */
bool md_small_takes(const md_small_bench *bench, const char *name, md_gemm_space space,
                    const char *unavailable);

/* Allocates on the host, and on the device where there is one; freed with the bench. */
md_status md_small_make(md_small_bench *bench, int64_t rows, int64_t columns, const char *what,
                        md_small_matrix *matrix);
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
/* One call that is not timed, then the timed ones. */
md_status md_small_time(md_small_bench *bench, const md_small_case *work,
                        md_bench_statistics *seconds);
/* One call into a result that was all NaN (all -1), its check, then those of md_small_time. */
md_status md_small_run(md_small_bench *bench, const md_small_case *work,
                       md_bench_statistics *seconds);

/* Adds seconds_mean, _std, _median, _min, _max, gbytes_per_s and copy_fraction to a row and the row
 * to rows, and ends its line on stdout. `bytes` is what the kernel must read and write. */
void md_small_report(md_small_bench *bench, cJSON *row, md_gemm_space space, double bytes,
                     const md_bench_statistics *seconds);

#endif
