/* minidirac bench transpose, shift and gemv: kernels on matrices of 4-byte elements, checked
 * against the definition, then timed against a copy. */
#include "gemm/small.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/random_math.h"
#include "base/report.h"
#include "base/statistics.h"
#include "base/timer.h"
#include "bench/bench.h"
#include "bench/gemm/case.h"
#include "gemm/local.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* IN and COPY have as many elements: the copy bandwidth is measured with them. */
enum { IN, OUT, X, COPY, MATRICES, MOST_BLOCKS = 64 };

/* What one bench asks for and checks. */
typedef struct small_kind {
  md_small_work work;
  md_command_text text;
  const char *dims, *dims_argument, *dims_help; /* dims: the default */
  int64_t most;                                 /* of either size */
  const char *blocks, *blocks_help;             /* blocks: the default; NULL: it takes none */
  int64_t most_block;                           /* of either side of a block */
  int32_t magnitude;                            /* of integers */
} small_kind;

/* On the host and, for a kernel of the device, there. */
typedef struct matrix {
  int64_t rows, columns;
  void *host;
  md_gemm_device_matrix device; /* all zero without a device */
} matrix;

typedef struct bench {
  md_context *context;
  const small_kind *kind;
  md_common_options common;
  const char *type, *space, *csv;
  long long repeat, seed;
  int64_t size[2], ld; /* ld: of the shift */
  int block[MOST_BLOCKS][2], block_count;
  md_gemm_device device;
  bool has_device;
  matrix matrix[MATRICES];
  double copy_gbytes_per_s[2]; /* by md_gemm_space; NaN: not measured */
  md_report report;
  cJSON *rows;
} bench;

/* A kernel at work. */
typedef struct call {
  bench *b;
  const md_small_kernel *kernel;
  md_small_problem problem;
  void *state;
  const matrix *out;
} call;

static const char *type_name(md_small_type type) {
  return type == MD_SMALL_INTEGER ? "integer" : "single";
}

static double value(const matrix *m, md_small_type type, int64_t at) {
  if (type == MD_SMALL_INTEGER) return ((const int32_t *)m->host)[at];
  return (double)((const float *)m->host)[at];
}

static size_t bytes_of(const matrix *m) {
  return (size_t)(m->rows * m->columns) * MD_SMALL_BYTES;
}

static md_status make(bench *b, int which, int64_t rows, int64_t columns) {
  matrix *m = &b->matrix[which];
  *m = (matrix){.rows = rows, .columns = columns};
  MD_TRY(md_allocate(b->context, bytes_of(m), "a matrix", &m->host));
  memset(m->host, 0, bytes_of(m));
  if (!b->has_device) return MD_OK;
  return md_gemm_device_allocate(b->context, rows, columns, MD_SMALL_BYTES, false, &m->device);
}

/* The input of a shift has MD_SHIFT columns more, so that no element needs a rule for the edge. */
static md_status make_matrices(bench *b) {
  const int64_t n = b->size[0], m = b->size[1];
  const md_small_work work = b->kind->work;
  b->ld = work == MD_SMALL_SHIFT ? (n + MD_SHIFT + 31) / 32 * 32 : m; /* 128 bytes */
  const int64_t rows = work == MD_SMALL_SHIFT ? m : n;
  const bool transposes = work == MD_SMALL_TRANSPOSE, multiplies = work == MD_SMALL_GEMV;
  const double bytes = fmin(2.0 * MD_SMALL_BYTES * (double)rows * (double)b->ld, 0x1p60);
  MD_TRY(md_memory_check(b->context, (size_t)bytes, "bench with matrices of this size"));
  MD_TRY(make(b, IN, rows, b->ld));
  MD_TRY(make(b, OUT,
              transposes   ? m
              : multiplies ? 1
                           : rows,
              transposes || multiplies ? n : b->ld));
  if (!multiplies) return MD_OK;
  MD_TRY(make(b, X, 1, m));
  return make(b, COPY, rows, m);
}

static md_small_problem problem_of(const bench *b, md_small_type type, const int *block) {
  const bool shifts = b->kind->work == MD_SMALL_SHIFT;
  return (md_small_problem){b->size[!shifts], b->size[shifts], b->ld, b->ld, type,
                            block[0],         block[1]};
}

/* The host's part to the device's. */
static md_status put(bench *b, const matrix *m) {
  if (!b->has_device) return MD_OK;
  return md_gemm_device_put(b->context, &m->device, m->host, m->columns);
}

/* Integers in -magnitude .. magnitude or floats in (-1, 1), functions of (seed, purpose, row,
 * column) alone, on the host and, where there is one, on the device. */
static md_status fill(bench *b, const matrix *m, md_small_type type, uint64_t purpose) {
  const int32_t magnitude = b->kind->magnitude;
  const uint64_t seed = (uint64_t)b->seed, values = 2 * (uint64_t)magnitude + 1;
#pragma omp parallel for schedule(static) num_threads(b->context->threads)
  for (int64_t i = 0; i < m->rows; i++) {
    md_random random = md_random_begin(seed, purpose, (uint64_t)i);
    for (int64_t at = i * m->columns; at < (i + 1) * m->columns; at++)
      if (type == MD_SMALL_INTEGER)
        ((int32_t *)m->host)[at] =
            (int32_t)((int64_t)(md_random_next_bits(&random) % values) - magnitude);
      else
        ((float *)m->host)[at] = (float)(2.0 * md_random_next_uniform(&random) - 1.0);
  }
  return put(b, m);
}

static void *data(const matrix *m, md_gemm_space space) {
  return space == MD_GEMM_HOST ? m->host : m->device.data;
}

/* One call, timed. */
static md_status once(const call *c, double *time_s) {
  bench *b = c->b;
  const md_gemm_space space = c->kernel->space;
  const md_small_call work = {&c->problem,
                              b->device.stream,
                              c->state,
                              data(&b->matrix[IN], space),
                              data(&b->matrix[X], space),
                              data(c->out, space)};
  const double start_s = md_time_s();
  if (space == MD_GEMM_DEVICE) md_device_timer_start(b->device.timer);
  MD_TRY(c->kernel->run(b->context, &work));
  *time_s = md_time_s() - start_s;
  return space == MD_GEMM_DEVICE ? md_gemm_device_stop(b->context, &b->device, time_s) : MD_OK;
}

/* One call that is not timed, then the timed ones. */
static md_status time_call(const call *c, md_statistics *seconds) {
  bench *b = c->b;
  const int repeat = (int)b->repeat;
  double *samples = malloc((size_t)repeat * sizeof *samples);
  if (!samples) return md_fail_memory(b->context, (size_t)repeat * sizeof *samples, "timings");
  md_status status = once(c, &samples[0]);
  for (int r = 0; r < repeat && status == MD_OK; r++) {
    status = once(c, &samples[r]);
    if (status == MD_OK) status = md_interrupt_check(b->context, b->kind->text.command);
  }
  if (status == MD_OK) *seconds = md_statistics_of(samples, repeat);
  free(samples);
  return status;
}

enum { CHECKED_COLUMNS = 16 }; /* at a time: their lines of the result stay in cache */

/* Element (row, column) of the input is carried bit by bit, whatever its type; the sum of two
 * floats is rounded once: nothing but the same bits is right. */
static bool is_right(const call *c, int64_t row, int64_t column) {
  const md_small_problem *p = &c->problem;
  const matrix *in = &c->b->matrix[IN], *out = c->out;
  const int64_t from = row * p->in_ld + column;
  if (c->b->kind->work == MD_SMALL_TRANSPOSE)
    return ((const uint32_t *)out->host)[column * p->rows + row] ==
           ((const uint32_t *)in->host)[from];
  const double sum = value(in, p->type, from) + value(in, p->type, from + MD_SHIFT);
  return value(out, p->type, row * p->out_ld + column) ==
         (p->type == MD_SMALL_INTEGER ? sum : (double)(float)sum);
}

/* The first that is not right; INT64_MAX: all are. */
static int64_t first_wrong(const call *c) {
  const int64_t rows = c->problem.rows, columns = c->problem.columns;
  int64_t wrong = INT64_MAX;
#pragma omp parallel for reduction(min : wrong) num_threads(c->b->context->threads)
  for (int64_t j0 = 0; j0 < columns; j0 += CHECKED_COLUMNS)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = j0; j < columns && j < j0 + CHECKED_COLUMNS; j++)
        if (i * columns + j < wrong && !is_right(c, i, j)) wrong = i * columns + j;
  return wrong;
}

/* y against its bound gamma_(k+1) sum |a| |x|, or of so many roundings that gamma has none, their
 * number times sum |a| |x| (C. Jeannerod, S. Rump, SIAM J. Matrix Anal. Appl. 34 (2013) 338);
 * integers have bound 0. */
static md_status check_gemv(const call *c) {
  const matrix *m = c->b->matrix;
  const md_small_type type = c->problem.type;
  const int64_t columns = c->problem.columns;
  const double nu = (double)(columns + 1) * 0x1p-24, gamma = nu < 0.5 ? nu / (1.0 - nu) : nu;
  for (int64_t i = 0; i < c->problem.rows; i++) {
    double sum = 0.0, modulus = 0.0;
    for (int64_t j = 0; j < columns; j++) {
      const double term = value(&m[IN], type, i * columns + j) * value(&m[X], type, j);
      sum += term;
      modulus += fabs(term);
    }
    const double bound = type == MD_SMALL_INTEGER ? 0.0 : gamma * modulus;
    const double result = value(c->out, type, i);
    if (!(fabs(result - sum) <= bound))
      return md_fail(c->b->context, MD_UNREACHED,
                     "gemv by %s (%s) must be within %.3g of %.9g in row %lld, got %.9g",
                     c->kernel->name, type_name(type), bound, sum, (long long)i, result);
  }
  return MD_OK;
}

/* Compares the result, which is on the host, with the definition: MD_UNREACHED says where. */
static md_status check(const call *c) {
  const md_small_problem *p = &c->problem;
  if (c->b->kind->work == MD_SMALL_GEMV) return check_gemv(c);
  const bool shifts = c->b->kind->work == MD_SMALL_SHIFT;
  const int64_t wrong = first_wrong(c);
  if (wrong == INT64_MAX) return MD_OK;
  const long long row = wrong / p->columns, column = wrong % p->columns;
  return md_fail(c->b->context, MD_UNREACHED,
                 shifts
                     ? "shift by %s (%s) with block %dx%d must be exact, it is not at (%lld, %lld)"
                     : "transpose by %s (%s) with block %dx%d must carry element (%lld, %lld), it "
                       "does not",
                 c->kernel->name, type_name(p->type), p->block_x, p->block_y, shifts ? column : row,
                 shifts ? row : column);
}

/* Bytes that a call must read and write. */
static double bytes_moved(const bench *b) {
  const double n = (double)b->size[0], m = (double)b->size[1];
  return MD_SMALL_BYTES * (b->kind->work == MD_SMALL_GEMV ? n * m + n + m : 2.0 * n * m);
}

#define TIMES                                                                                      \
  " |block=%7s space=%s repetitions=%lld seconds_mean=%g seconds_median|seconds=%12.5e "           \
  "seconds_std|std=%9.2e seconds_min=%g seconds_max=%g gbytes_per_s|GB/s=%9.2f "                   \
  "copy_fraction|of~copy=%7.3f"
#define COLUMNS "kernel=%-14s type=%-8s rows=%10lld columns=%10lld" TIMES
#define SHIFT_COLUMNS                                                                              \
  "kernel=%-8s type=%-8s width=%10lld height=%10lld warp_load_sectors|load=%4d "                   \
  "warp_shifted_load_sectors|shifted=%7d warp_store_sectors|store=%5d" TIMES

static void add_row(const call *c, const md_statistics *s) {
  bench *b = c->b;
  const md_small_problem *p = &c->problem;
  const bool on_host = c->kernel->space == MD_GEMM_HOST;
  const double rate = 1e-9 * bytes_moved(b) / s->median;
  const double share = rate / b->copy_gbytes_per_s[c->kernel->space];
  const long long n = b->size[0], m = b->size[1];
  char block[32] = "-";
  if (b->kind->blocks) snprintf(block, sizeof block, "%dx%d", p->block_x, p->block_y);
#define TIMES_OF                                                                                   \
  block, on_host ? "host" : "device", b->repeat, s->mean, s->median, s->std, s->min, s->max, rate, \
      share
  cJSON *row;
  if (b->kind->work == MD_SMALL_SHIFT) {
    const md_shift_sectors sectors = md_shift_warp_sectors(p->block_x, p->block_y);
    row = md_rows_add(b->context, b->rows, SHIFT_COLUMNS, c->kernel->name, type_name(p->type), n, m,
                      sectors.load, sectors.load_shifted, sectors.store, TIMES_OF);
  } else {
    row = md_rows_add(b->context, b->rows, COLUMNS, c->kernel->name, type_name(p->type), n, m,
                      TIMES_OF);
  }
#undef TIMES_OF
  if (b->kind->blocks) md_report_integers(row, "block", (const int[]){p->block_x, p->block_y}, 2);
}

/* A call into a result that was all NaN (all -1), its check, then the timed ones. */
static md_status run_call(const call *c) {
  bench *b = c->b;
  double unused_s;
  md_statistics seconds = {0};
  md_progress progress = md_progress_of_run(b->context, b->kind->text.command);
  md_progress_update(&progress, -1.0, "%s", c->kernel->name);
  memset(c->out->host, 0xff, bytes_of(c->out)); /* what a kernel leaves out shows */
  MD_TRY(put(b, c->out));
  MD_TRY(once(c, &unused_s));
  if (c->kernel->space == MD_GEMM_DEVICE)
    MD_TRY(md_gemm_device_get(b->context, c->out->host, c->out->columns, &c->out->device));
  MD_TRY(check(c));
  MD_TRY(time_call(c, &seconds));
  add_row(c, &seconds);
  return MD_OK;
}

/* Over the blocks of the run; the naive transpose of the host and products know none. */
static md_status run_kernel(bench *b, const md_small_kernel *kernel, md_small_type type) {
  const bool blocks = b->kind->blocks && kernel != &md_transpose_host_naive;
  for (int k = 0; k < (blocks ? b->block_count : 1); k++) {
    call c = {b, kernel, problem_of(b, type, b->block[k]), NULL, &b->matrix[OUT]};
    md_status status = MD_OK;
    if (kernel->open) status = kernel->open(b->context, &c.problem, b->device.stream, &c.state);
    if (status == MD_OK) status = run_call(&c);
    if (kernel->close && c.state) kernel->close(c.state);
    MD_TRY(status);
  }
  return MD_OK;
}

/* False for a kernel of a space or type that is not asked for and, with a note on stdout, for one
 * that this build or machine does not have. */
static bool takes(const bench *b, const md_small_kernel *kernel, md_small_type type) {
  if (!(kernel->types & 1u << type)) return false;
  if (kernel->space == MD_GEMM_HOST) return strcmp(b->space, "device") != 0;
  if (b->has_device && kernel->unavailable)
    md_say(b->context, "%s: %s\n", kernel->name, kernel->unavailable);
  return b->has_device && !kernel->unavailable;
}

static md_status run_type(bench *b, md_small_type type) {
  MD_TRY(fill(b, &b->matrix[IN], type, 1));
  if (b->kind->work == MD_SMALL_GEMV) MD_TRY(fill(b, &b->matrix[X], type, 2));
  for (const md_small_kernel *const *k = md_small_kernels(b->kind->work); *k; k++)
    if (takes(b, *k, type)) MD_TRY(run_kernel(b, *k, type));
  return MD_OK;
}

/* Plain copies of `columns` elements on host and device: the yardstick of the run. */
static md_status copy_host(md_context *context, const md_small_call *copy) {
  const float *from = copy->in;
  float *to = copy->out;
#pragma omp parallel for schedule(static) num_threads(context->threads)
  for (int64_t i = 0; i < copy->problem->columns; i++) to[i] = from[i];
  return MD_OK;
}
static md_status copy_device(md_context *context, const md_small_call *copy) {
  return md_device_copy(context, copy->out, copy->in,
                        (size_t)copy->problem->columns * MD_SMALL_BYTES);
}

static md_status time_copies(bench *b) {
  static const md_small_kernel copies[] = {
      {.name = "host", .space = MD_GEMM_HOST, .run = copy_host},
      {.name = "device", .space = MD_GEMM_DEVICE, .run = copy_device}};
  const matrix *from = &b->matrix[IN];
  const matrix *to = &b->matrix[b->kind->work == MD_SMALL_GEMV ? COPY : OUT];
  for (int k = 0; k < 2; k++) {
    const bool host = copies[k].space == MD_GEMM_HOST;
    if (strcmp(b->space, copies[1 - k].name) == 0 || !(host || b->has_device)) continue;
    const call c = {b, &copies[k], {.columns = from->rows * from->columns}, NULL, to};
    md_statistics seconds = {0};
    MD_TRY(time_call(&c, &seconds));
    const double rate = 2e-9 * (double)bytes_of(from) / seconds.median;
    b->copy_gbytes_per_s[copies[k].space] = rate;
    cJSON_AddNumberToObject(b->report.root, host ? "copy_host_gbytes_per_s" : "copy_gbytes_per_s",
                            rate);
    md_say(b->context, "copy on the %s: %.2f GB/s\n", copies[k].name, rate);
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
  bench *b = target;
  return read_size(context, label, text, b->kind->most, b->size);
}

/* "32x8,16x4,...", or all: 32xY and 16xY for Y in 1..32. */
static md_status read_blocks(md_context *context, const char *label, const char *text,
                             void *target) {
  bench *b = target;
  char copy[1024];
  const char *words[MOST_BLOCKS];
  int64_t size[2];
  b->block_count = MOST_BLOCKS;
  for (int k = 0; k < MOST_BLOCKS; k++) {
    b->block[k][0] = k < 32 ? 32 : 16;
    b->block[k][1] = k % 32 + 1;
  }
  if (strcmp(text, "all") == 0) return MD_OK;
  b->block_count = md_words(text, copy, sizeof copy, words, MOST_BLOCKS);
  if (b->block_count < 1)
    return md_fail(context, MD_INPUT, "%s takes up to %d XxY between commas, or all, got '%.60s'",
                   label, MOST_BLOCKS, text);
  for (int k = 0; k < b->block_count; k++) {
    MD_TRY(read_size(context, label, words[k], b->kind->most_block, size));
    if (size[0] * size[1] > 1024)
      return md_fail(context, MD_INPUT, "a block has up to 1024 threads, got '%s'", words[k]);
    b->block[k][0] = (int)size[0];
    b->block[k][1] = (int)size[1];
  }
  return MD_OK;
}

static md_status read_options(bench *b, int argc, char **argv) {
  const small_kind *kind = b->kind;
  md_option options[] = {
      MD_OPTION(PARSED, "blocks", b, "XxY,...", kind->blocks_help, .parse = read_blocks,
                .initial = kind->blocks, .group = MD_GROUP_TIMED),
      MD_OPTION(PARSED, "dims", b, kind->dims_argument, kind->dims_help, .parse = read_dims,
                .initial = kind->dims, .group = MD_GROUP_TIMED),
      MD_OPTION(CHOICE, "type", &b->type, NULL, "of the elements, 4 bytes each [both]",
                .choices = "integer|single|both"),
      MD_OPTION(CHOICE, "space", &b->space, NULL,
                "whose kernels; both: a missing device is passed over [both]",
                .choices = "host|device|both"),
      MD_OPTION(INTEGER, "repeat", &b->repeat, "N", "timed runs of each [10]", .low = 1,
                .high = 1000000),
      MD_OPTION(INTEGER, "seed", &b->seed, "N", "of the elements [987654]", .low = 0,
                .high = 0x1p53),
      MD_CSV_OPTION(b->csv),
      MD_COMMON_OPTIONS_WITHOUT_LATTICE(b->common)};
  const int skip = kind->blocks ? 0 : 1, count = sizeof options / sizeof *options - skip;
  return md_options_read(b->context, &kind->text, options + skip, count, &b->common, argc, argv);
}

/* The device where this build and machine have one; without, its kernels are left out with a note,
 * or, where they alone were asked for, MD_ENVIRONMENT says why. */
static md_status open_device(bench *b) {
  md_context *context = b->context;
  if (context->ranks != 1)
    return md_fail(context, MD_INPUT, "%s runs on one rank, got %d; start it without mpirun",
                   b->kind->text.command, context->ranks);
  if (strcmp(b->space, "host") == 0) return MD_OK;
  const md_status found = md_gemm_device_open(context, &b->device);
  b->has_device = found == MD_OK;
  if (found == MD_OK) return MD_OK;
  if (strcmp(b->space, "both") == 0) {
    md_say(context, "host only, %s\n", context->message);
    return MD_OK;
  }
  char why[sizeof context->message];
  memcpy(why, context->message, sizeof why);
  return md_fail(context, MD_ENVIRONMENT, "--space device: %s; or take --space host", why);
}

static md_status run_all(bench *b) {
  MD_TRY(make_matrices(b));
  MD_TRY(time_copies(b));
  md_say(b->context, "\n");
  md_rows_head(b->context, b->kind->work == MD_SMALL_SHIFT ? SHIFT_COLUMNS : COLUMNS);
  for (int t = 0; t < MD_SMALL_TYPES; t++)
    if (strcmp(b->type, "both") == 0 || strcmp(b->type, type_name((md_small_type)t)) == 0)
      MD_TRY(run_type(b, (md_small_type)t));
  if (b->rows->child) return MD_OK;
  return md_fail(
      b->context, MD_ENVIRONMENT,
      "%s timed nothing: this build and machine have no kernel for --type %s --space %s; "
      "take --type both --space host",
      b->kind->text.command, b->type, b->space);
}

static const small_kind KINDS[] = {
    {.work = MD_SMALL_TRANSPOSE,
     .text = {"bench transpose",
              "Out-of-place transpose of integers and floats, by kernel and block shape.",
              "Each result is compared with the definition before it is timed.",
              "minidirac bench transpose --dims 1024x1024 --space host"},
     .dims = "4096x4096",
     .dims_argument = "ROWSxCOLUMNS",
     .dims_help = "of the matrix [4096x4096]",
     .most = (int64_t)1 << 30,
     .blocks = "all",
     .blocks_help = "block shapes up to 32x32, or all: 32xY and 16xY, Y in 1..32 [all]",
     .most_block = 32,
     .magnitude = INT32_MAX},
    {.work = MD_SMALL_SHIFT,
     .text =
         {"bench shift",
          "out[x, y] = in[x, y] + in[x + 4, y], integers and floats, by kernel and block.",
          "Sectors: a warp takes 32 threads of the block, x fastest. A device moves memory in "
          "sectors of\n"
          "32 bytes (8 elements). A warp on one row of 32 elements asks for 4 sectors for in[x]; "
          "in[x + 4]\n"
          "starts 16 bytes behind a boundary and asks for 5. Narrower blocks spread a warp over "
          "several\n"
          "rows, each with its own cut: 16 wide 2 x 2 and 2 x 3, 8 wide 4 x 1 and 4 x 2, 4 wide 8 "
          "x 1 and\n"
          "8 x 1 with half of each sector unused by this warp.\n"
          "Each result is compared with the definition before it is timed.",
          "minidirac bench shift --dims 1024x1024 --blocks 32x1,16x16 --space host"},
     .dims = "4096x4096",
     .dims_argument = "WIDTHxHEIGHT",
     .dims_help = "of the result, x first [4096x4096]",
     .most = (int64_t)1 << 30,
     .blocks = "32x1,32x2,32x4,32x8,32x16,32x32,16x2,16x16,8x4,8x32,4x8,4x64,64x4,128x2,256x1,"
               "512x1,1024x1",
     .blocks_help = "block shapes, or all: 32xY and 16xY, Y in 1..32 [from 4 to 1024 wide]",
     .most_block = 1024,
     .magnitude = INT32_MAX / 2},
    {.work = MD_SMALL_GEMV,
     .text = {"bench gemv", "y = A x for integers and floats, by kernel.",
              "Each result is compared with double sums before it is timed: integers exactly, "
              "floats\nwithin their rounding bound.",
              "minidirac bench gemv --dims 4096x256 --type single"},
     .dims = "10240x256",
     .dims_argument = "ROWSxCOLUMNS",
     .dims_help = "of the matrix [10240x256]",
     .most = 1 << 24,
     .magnitude = 9}, /* 9^2 2^24 < 2^31: no sum overflows */
};

md_status md_bench_small(md_context *context, int argc, char **argv) {
  const small_kind *kind = KINDS;
  while (strcmp(kind->text.command + strlen("bench "), argv[0]) != 0) kind++;
  bench b = {.context = context,
             .kind = kind,
             .repeat = 10,
             .seed = 987654,
             .type = "both",
             .space = "both",
             .copy_gbytes_per_s = {NAN, NAN}};
  MD_TRY(read_options(&b, argc, argv));
  if (b.common.help) return MD_OK;
  md_status status = open_device(&b);
  if (status == MD_OK) status = md_report_open(context, kind->text.command, &b.report);
  if (status == MD_OK) {
    b.rows = cJSON_AddArrayToObject(b.report.root, "rows");
    if (b.has_device) cJSON_AddStringToObject(b.report.root, "device", context->gpu.name);
    status = md_report_finish(context, &b.report, b.rows, b.csv, b.common.json, run_all(&b));
  }
  for (int m = 0; m < MATRICES; m++) {
    free(b.matrix[m].host);
    md_gemm_device_free(&b.matrix[m].device);
  }
  if (b.has_device) md_gemm_device_close(&b.device);
  return status;
}
