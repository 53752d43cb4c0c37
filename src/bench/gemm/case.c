#include "bench/gemm/case.h"
#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "base/timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double md_gemm_case_bytes(const md_gemm_problem *p) {
  const double inputs = (double)p->m * (double)p->k + (double)p->k * (double)p->n;
  return inputs * (double)md_gemm_input_bytes(p->precision) +
         (double)p->m * (double)p->n * (double)md_gemm_output_bytes(p->precision);
}

md_gemm_request md_gemm_case_request(const md_gemm_settings *settings, md_gemm_precision precision,
                                     const md_gemm_shape *s) {
  md_gemm_request request = settings->request;
  const md_gemm_problem *scale = &settings->request.problem;
  request.problem =
      (md_gemm_problem){s->m, s->n, s->k, precision, s->k, s->n, s->n, scale->alpha, scale->beta};
  return request;
}

/* One of the matrices. */
typedef struct part {
  md_gemm_layout layout;
  md_gemm_precision type;
  int64_t rows, columns;
} part;

static part part_of(const md_gemm_matrices *x, md_gemm_operand operand) {
  const md_gemm_precision in = x->request.problem.precision;
  part p = {.layout = md_gemm_part_layout(&x->request, operand),
            .type = operand == MD_GEMM_C ? md_gemm_output(in) : in};
  p.rows = md_gemm_layout_rows(&p.layout);
  p.columns = md_gemm_layout_columns(&p.layout);
  return p;
}

static size_t bytes_of(const part *p) {
  return (size_t)(p->rows * p->columns) * md_gemm_input_bytes(p->type);
}

static void fill(const md_gemm_matrices *x, uint64_t seed, md_gemm_operand operand, void *data) {
  const part p = part_of(x, operand);
  const md_gemm_subset rows = md_gemm_deal_subset(&p.layout.rows, p.layout.grid.row);
  const md_gemm_subset columns = md_gemm_deal_subset(&p.layout.columns, p.layout.grid.column);
  md_gemm_fill(seed, operand, p.type, p.rows, p.columns, &rows, &columns, data, p.columns);
}

static md_status make(md_context *context, uint64_t seed, md_gemm_matrices *x) {
  static const char *const names[] = {"A", "B", "C"};
  void **const data[] = {&x->a, &x->b, &x->c};
  for (int i = 0; i < 3; i++) {
    const md_gemm_operand operand = (md_gemm_operand)(MD_GEMM_A + i);
    const part p = part_of(x, operand);
    MD_TRY(md_gemm_host_allocate(context, x->kind, bytes_of(&p), names[i], data[i]));
    if (operand != MD_GEMM_C) fill(x, seed, operand, *data[i]);
  }
  return MD_OK;
}

md_status md_gemm_matrices_make(md_context *context, const md_gemm_settings *settings,
                                const md_gemm_request *request, md_gemm_matrices *x) {
  *x = (md_gemm_matrices){.request = *request, .kind = settings->host_memory};
  x->request.grid = (md_gemm_grid){1, 1, 0, 0};
  return md_agree(context, context->rank == 0 ? make(context, settings->seed, x) : MD_OK);
}

void md_gemm_matrices_free(md_gemm_matrices *x) {
  md_gemm_host_free(x->kind, x->a);
  md_gemm_host_free(x->kind, x->b);
  md_gemm_host_free(x->kind, x->c);
  *x = (md_gemm_matrices){0};
}

/* C as it is before a product: its old values, or NaN where beta = 0 must not read them. */
static void reset_c(const md_gemm_matrices *x, uint64_t seed) {
  const part p = part_of(x, MD_GEMM_C);
  if (x->request.problem.beta != 0.0)
    fill(x, seed, MD_GEMM_C, x->c);
  else if (x->c)
    memset(x->c, 0xff, bytes_of(&p));
}

enum { SAMPLED_ROWS = 16, CHUNK_COLUMNS = 128 };

/* The sampled rows, 0 .. samples - 1 behind them, what is made anew to check them and their sums:
 * the rows of A, some columns of B, of the old C and of C at a time. */
typedef struct remade {
  const md_gemm_problem *problem;
  uint64_t seed;
  part c_part;
  int64_t samples, chunk, *rows;
  char *a, *b, *c0, *c;
  md_gemm_row_sums *sums;
} remade;

/* All in one allocation, that of the sums. */
static md_status make_room(md_context *context, remade *r) {
  const md_gemm_problem *p = r->problem;
  const size_t in = md_gemm_input_bytes(p->precision), samples = (size_t)r->samples;
  const size_t chunk = samples * (size_t)r->chunk * md_gemm_output_bytes(p->precision);
  const size_t sums = samples * sizeof *r->sums, rows = 2 * samples * sizeof *r->rows;
  const size_t a = samples * (size_t)p->k * in, b = (size_t)(p->k * r->chunk) * in;
  void *memory;
  MD_TRY(md_allocate(context, sums + rows + 2 * chunk + a + b, "rows to check", &memory));
  r->sums = memory;
  r->rows = (int64_t *)(r->sums + samples);
  r->c0 = (char *)(r->rows + 2 * samples);
  r->c = r->c0 + chunk;
  r->a = r->c + chunk;
  r->b = r->a + a;
  for (int64_t s = 0; s < r->samples; s++) {
    r->sums[s] = (md_gemm_row_sums){0};
    r->rows[r->samples + s] = s;
  }
  return MD_OK;
}

/* Adds the columns first .. first + width - 1 of this rank's part to the sums. */
static md_status check_chunk(md_context *context, remade *r, int64_t first, int64_t width,
                             const char *whole) {
  const md_gemm_problem *p = r->problem;
  const md_gemm_precision c_type = md_gemm_output(p->precision);
  const size_t out = md_gemm_output_bytes(p->precision);
  md_gemm_problem chunk = *p;
  chunk.m = r->samples, chunk.n = width;
  chunk.lda = p->k, chunk.ldb = chunk.ldc = width;
  md_gemm_subset row = md_gemm_deal_subset(&r->c_part.layout.rows, r->c_part.layout.grid.row);
  md_gemm_subset column =
      md_gemm_deal_subset(&r->c_part.layout.columns, r->c_part.layout.grid.column);
  const md_gemm_subset depth = {p->k, 1, 0, 0};
  column.first = first;
  md_gemm_fill(r->seed, MD_GEMM_B, p->precision, p->k, width, &depth, &column, r->b, width);
  for (int64_t s = 0; s < r->samples; s++) {
    row.first = r->rows[s];
    memcpy(r->c + (size_t)(s * width) * out,
           whole + (size_t)(r->rows[s] * r->c_part.columns + first) * out, (size_t)width * out);
    if (p->beta != 0.0)
      md_gemm_fill(r->seed, MD_GEMM_C, c_type, 1, width, &row, &column,
                   r->c0 + (size_t)(s * width) * out, width);
  }
  return md_gemm_verify_rows(context, &chunk, r->a, r->b, r->c0, r->c, r->rows + r->samples,
                             r->samples, r->sums);
}

static md_status check_part(md_context *context, remade *r, const char *whole) {
  const md_gemm_problem *p = r->problem;
  const md_gemm_subset depth = {p->k, 1, 0, 0};
  md_gemm_subset row = md_gemm_deal_subset(&r->c_part.layout.rows, r->c_part.layout.grid.row);
  for (int64_t s = 0; s < r->samples; s++) {
    row.first = r->rows[s];
    md_gemm_fill(r->seed, MD_GEMM_A, p->precision, 1, p->k, &row, &depth,
                 r->a + (size_t)(s * p->k) * md_gemm_input_bytes(p->precision), p->k);
  }
  for (int64_t first = 0; first < r->c_part.columns; first += r->chunk) {
    const int64_t left = r->c_part.columns - first;
    MD_TRY(check_chunk(context, r, first, left < r->chunk ? left : r->chunk, whole));
  }
  return MD_OK;
}

/* Row sums over the ranks of a grid row, then the largest of all rows. */
static md_gemm_error combine(md_context *context, const md_gemm_grid *grid, int64_t samples,
                             md_gemm_row_sums *sums) {
  MPI_Comm along_row;
  MPI_Comm_split(md_mpi(context), grid->row, grid->column, &along_row);
  double excess[1] = {0.0}, norms[3] = {0.0};
  for (int64_t s = 0; s < samples; s++) {
    double row[3] = {sums[s].difference, sums[s].norm, sums[s].bound};
    MPI_Allreduce(MPI_IN_PLACE, row, 3, MPI_DOUBLE, MPI_SUM, along_row);
    for (int i = 0; i < 3; i++) md_raise(&norms[i], row[i]);
    md_raise(excess, sums[s].excess);
  }
  MPI_Comm_free(&along_row);
  md_maximum(context, norms, 3);
  md_maximum(context, excess, 1);
  const md_gemm_row_sums all = {norms[0], norms[1], norms[2], excess[0]};
  return md_gemm_error_of(&all, 1);
}

/* Compares C with the definition; what it takes of A, B and the old C is made anew. Local where the
 * matrices are whole; else collective. */
static md_status check(md_context *context, const md_gemm_settings *settings,
                       const md_gemm_matrices *x, md_gemm_result *result) {
  const md_gemm_problem *p = &x->request.problem;
  const md_gemm_grid *grid = &x->request.grid;
  const bool together = grid->rows * grid->columns == context->ranks;
  const double limit = (double)settings->check_size;
  const bool all = (double)p->m * (double)p->n * (double)p->k <= limit * limit * limit;
  result->checked = settings->check_size == 0 ? "off" : all ? "all" : "rows";
  result->error = (md_gemm_error){NAN, NAN, NAN};
  if (settings->check_size == 0) return MD_OK;
  const part c = part_of(x, MD_GEMM_C);
  remade r = {.problem = p,
              .seed = settings->seed,
              .c_part = c,
              .samples = all || c.rows < SAMPLED_ROWS ? c.rows : SAMPLED_ROWS,
              .chunk = c.columns < CHUNK_COLUMNS ? c.columns : CHUNK_COLUMNS};
  md_status status = make_room(context, &r);
  if (status == MD_OK) {
    md_gemm_sample_rows(c.rows, r.samples, r.rows);
    status = check_part(context, &r, x->c);
  }
  if (together) status = md_agree(context, status);
  if (status == MD_OK)
    result->error =
        together ? combine(context, grid, r.samples, r.sums) : md_gemm_error_of(r.sums, r.samples);
  free(r.sums);
  return status;
}

enum { MOST_TRANSFERS = 5 }; /* repetitions with transfers */

static md_status run_once(md_context *context, const md_gemm_matrices *x, md_gemm_local *local,
                          md_gemm_times *times) {
  return md_gemm_local_run(context, local, &x->request.problem, x->a, x->b, x->c, times);
}

/* On the device `repeat` products alone, then some with their transfers. */
static md_status time_runs(md_context *context, const md_gemm_matrices *x, uint64_t seed,
                           md_gemm_local *local, int repeat, double *samples,
                           md_gemm_result *result) {
  const bool device = result->kernel->space == MD_GEMM_DEVICE;
  const int whole = device && repeat > MOST_TRANSFERS ? MOST_TRANSFERS : repeat;
  md_gemm_times times;
  if (device) MD_TRY(md_gemm_local_again(context, local, &samples[0])); /* awake after the check */
  for (int r = 0; r < repeat && device; r++)
    MD_TRY(md_gemm_local_again(context, local, &samples[r]));
  if (device) result->kernel_s = md_statistics_of(samples, repeat);
  for (int r = 0; r < whole; r++) {
    if (x->request.problem.beta != 0.0) reset_c(x, seed);
    MD_TRY(run_once(context, x, local, &times));
    samples[r] = device ? times.total_s : times.kernel_s;
  }
  result->total_s = md_statistics_of(samples, whole);
  if (!device) result->kernel_s = result->total_s;
  return MD_OK;
}

static md_status kernel_runs(md_context *context, const md_gemm_settings *settings,
                             md_gemm_matrices *x, md_gemm_local *local, int repeat,
                             md_gemm_result *result) {
  md_gemm_times times;
  double *samples = malloc((size_t)repeat * sizeof *samples);
  if (!samples) return md_fail_memory(context, (size_t)repeat * sizeof *samples, "timings");
  reset_c(x, settings->seed);
  md_status status = run_once(context, x, local, &times);
  if (status == MD_OK) status = check(context, settings, x, result);
  if (status == MD_OK)
    status = time_runs(context, x, settings->seed, local, repeat, samples, result);
  free(samples);
  return status;
}

/* Of each rank; 0: it cannot be told. */
static int threads_of(const md_gemm_kernel *kernel, const md_gemm_method *method, int asked) {
  int (*threads)(int) = method && !method->local_kernel ? method->threads : kernel->threads;
  return threads ? threads(asked) : asked;
}

md_status md_gemm_case_kernel(md_context *context, const md_gemm_settings *settings,
                              md_gemm_matrices *x, const md_gemm_kernel *kernel, int variant,
                              int threads, int repeat, md_gemm_result *result) {
  *result = (md_gemm_result){.kernel = kernel,
                             .problem = x->request.problem,
                             .ranks = 1,
                             .threads = threads_of(kernel, NULL, threads),
                             .grid = {1, 1},
                             .scatter_s = NAN,
                             .product_s = NAN,
                             .gather_s = NAN};
  snprintf(result->name, sizeof result->name, "%s%s%s", kernel->name, kernel->variants ? ":" : "",
           kernel->variants ? kernel->variants[variant] : "");
  md_status status = MD_OK;
  if (context->rank == 0) {
    const md_gemm_launch launch = {.variant = variant, .threads = threads};
    md_gemm_local local;
    status = md_gemm_local_open(context, kernel, &x->request.problem, &launch,
                                &settings->request.place, &local);
    if (status == MD_OK) status = kernel_runs(context, settings, x, &local, repeat, result);
    md_gemm_local_close(&local);
  }
  return md_agree(context, status);
}

/* The matrices of a method from the root are whole and on rank 0. */
static md_status method_runs(md_context *context, const md_gemm_settings *settings,
                             const md_gemm_request *request, const md_gemm_matrices *x,
                             double *samples, md_gemm_result *result) {
  const int repeat = settings->repeat;
  const bool here = !result->method->from_root || context->rank == 0;
  md_gemm_rank_times t;
  for (int r = -1; r < repeat; r++) { /* the first is checked, not timed */
    if (here) reset_c(x, settings->seed);
    MD_TRY(result->method->run(context, request, x->a, x->b, x->c, &t));
    if (r < 0) MD_TRY(md_agree(context, here ? check(context, settings, x, result) : MD_OK));
    const double values[4] = {t.product_s, t.scatter_s + t.product_s + t.gather_s, t.scatter_s,
                              t.gather_s};
    for (int i = 0; i < 4 && r >= 0; i++) samples[i * repeat + r] = values[i];
  }
  result->kernel_s = md_statistics_of(samples, repeat);
  result->total_s = md_statistics_of(samples + repeat, repeat);
  result->product_s = result->kernel_s.median;
  result->scatter_s = md_median(samples + 2 * repeat, repeat);
  result->gather_s = md_median(samples + 3 * repeat, repeat);
  return MD_OK;
}

md_status md_gemm_case_method(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_request *request, md_gemm_matrices *whole,
                              const md_gemm_method *method, md_gemm_result *result) {
  *result =
      (md_gemm_result){.method = method,
                       .problem = request->problem,
                       .ranks = context->ranks,
                       .threads = threads_of(request->kernel, method, request->launch.threads),
                       .grid = {request->grid.rows, request->grid.columns}};
  snprintf(result->name, sizeof result->name, "%s", method->name);
  MD_TRY(md_gemm_request_check(context, method, request));
  md_gemm_matrices parts = {.request = *request, .kind = settings->host_memory};
  const size_t bytes = 4 * (size_t)settings->repeat * sizeof(double);
  double *samples = malloc(bytes);
  md_status status = samples ? MD_OK : md_fail_memory(context, bytes, "timings");
  if (status == MD_OK && !method->from_root) status = make(context, settings->seed, &parts);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = method_runs(context, settings, request, method->from_root ? whole : &parts, samples,
                         result);
  free(samples);
  md_gemm_matrices_free(&parts);
  return status;
}
