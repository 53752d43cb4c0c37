#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "bench/gemm/case.h"
#include "gemm/matrix.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLED_ROWS = 16, CHUNK_COLUMNS = 128 };

static int64_t samples_of(const md_gemm_settings *settings, const md_gemm_problem *p, int64_t rows,
                          md_gemm_result *result) {
  const double limit = (double)settings->check_size;
  const bool all = (double)p->m * (double)p->n * (double)p->k <= limit * limit * limit;
  result->checked = all ? "all" : "rows";
  return all || rows < SAMPLED_ROWS ? rows : SAMPLED_ROWS;
}

static void skip(md_gemm_result *result) {
  result->checked = "off";
  result->error = (md_gemm_error){NAN, NAN, NAN};
}

/* The sums, the row numbers and, behind them, 0 .. samples - 1, in one allocation. */
static md_status allocate(md_context *context, int64_t samples, int64_t **rows,
                          md_gemm_row_sums **sums) {
  void *memory;
  const size_t bytes = (size_t)samples * (2 * sizeof **rows + sizeof **sums);
  MD_TRY(md_allocate(context, bytes ? bytes : 1, "rows to check", &memory));
  *sums = memory;
  *rows = (int64_t *)(*sums + samples);
  for (int64_t s = 0; s < samples; s++) {
    (*sums)[s] = (md_gemm_row_sums){0};
    (*rows)[samples + s] = s;
  }
  return MD_OK;
}

md_status md_gemm_check_whole(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_matrices *matrices, md_gemm_result *result) {
  skip(result);
  if (settings->check_size == 0) return MD_OK;
  const md_gemm_problem *p = &matrices->problem;
  const int64_t samples = samples_of(settings, p, p->m, result);
  int64_t *rows;
  md_gemm_row_sums *sums;
  MD_TRY(allocate(context, samples, &rows, &sums));
  md_gemm_sample_rows(p->m, samples, rows);
  const md_status status = md_gemm_verify_rows(context, p, matrices->a, matrices->b, matrices->c0,
                                               matrices->c, rows, samples, sums);
  if (status == MD_OK) result->error = md_gemm_error_of(sums, samples);
  free(sums);
  return status;
}

/* What a rank makes anew to check its part: the sampled rows of A, some columns of B, of C0 and of
 * C at a time. */
typedef struct remade {
  const md_gemm_settings *settings;
  const md_gemm_request *request;
  md_gemm_layout layout; /* of C */
  int64_t rows, columns, samples;
  char *a, *b, *c0, *c;
} remade;

static md_status make_room(md_context *context, remade *r) {
  const md_gemm_problem *p = &r->request->problem;
  const size_t in = md_gemm_input_bytes(p->precision), out = md_gemm_output_bytes(p->precision);
  const size_t chunk = (size_t)(r->samples * CHUNK_COLUMNS) * out;
  void *memory[4];
  md_status status = md_allocate(context, (size_t)(r->samples * p->k) * in, "A rows", &memory[0]);
  r->a = memory[0];
  if (status == MD_OK)
    status = md_allocate(context, (size_t)(p->k * CHUNK_COLUMNS) * in, "B columns", &memory[1]);
  r->b = status == MD_OK ? memory[1] : NULL;
  if (status == MD_OK) status = md_allocate(context, 2 * chunk, "C columns", &memory[2]);
  r->c0 = status == MD_OK ? memory[2] : NULL;
  r->c = r->c0 ? r->c0 + chunk : NULL;
  return status;
}

/* Adds the columns first .. first + width - 1 of this rank's part to the sums. */
static md_status check_chunk(md_context *context, remade *r, const int64_t *rows, int64_t first,
                             int64_t width, const char *part, md_gemm_row_sums *sums) {
  const md_gemm_problem *p = &r->request->problem;
  const uint64_t seed = r->settings->seed;
  const md_gemm_precision c_type = md_gemm_output(p->precision);
  const size_t out = md_gemm_output_bytes(p->precision);
  md_gemm_problem chunk = *p;
  chunk.m = r->samples, chunk.n = width;
  chunk.lda = p->k, chunk.ldb = chunk.ldc = width;
  md_gemm_subset row = md_gemm_deal_subset(&r->layout.rows, r->layout.grid.row);
  md_gemm_subset column = md_gemm_deal_subset(&r->layout.columns, r->layout.grid.column);
  const md_gemm_subset depth = {p->k, 1, 0, 0};
  column.first = first;
  md_gemm_fill(seed, MD_GEMM_B, p->precision, p->k, width, &depth, &column, r->b, width);
  for (int64_t s = 0; s < r->samples; s++) {
    row.first = rows[s];
    memcpy(r->c + (size_t)(s * width) * out, part + (size_t)(rows[s] * r->columns + first) * out,
           (size_t)width * out);
    md_gemm_fill(seed, MD_GEMM_C, c_type, 1, width, &row, &column,
                 r->c0 + (size_t)(s * width) * out, width);
  }
  return md_gemm_verify_rows(context, &chunk, r->a, r->b, r->c0, r->c, rows + r->samples,
                             r->samples, sums);
}

static md_status check_part(md_context *context, remade *r, const int64_t *rows, const char *part,
                            md_gemm_row_sums *sums) {
  MD_TRY(make_room(context, r));
  const md_gemm_problem *p = &r->request->problem;
  const md_gemm_subset depth = {p->k, 1, 0, 0};
  md_gemm_subset row = md_gemm_deal_subset(&r->layout.rows, r->layout.grid.row);
  for (int64_t s = 0; s < r->samples; s++) {
    row.first = rows[s];
    md_gemm_fill(r->settings->seed, MD_GEMM_A, p->precision, 1, p->k, &row, &depth,
                 r->a + (size_t)(s * p->k) * md_gemm_input_bytes(p->precision), p->k);
  }
  for (int64_t first = 0; first < r->columns; first += CHUNK_COLUMNS) {
    const int64_t left = r->columns - first;
    MD_TRY(check_chunk(context, r, rows, first, left < CHUNK_COLUMNS ? left : CHUNK_COLUMNS, part,
                       sums));
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
    for (int i = 0; i < 3; i++) md_gemm_raise(&norms[i], row[i]);
    md_gemm_raise(excess, sums[s].excess);
  }
  MPI_Comm_free(&along_row);
  md_maximum(context, norms, 3);
  md_maximum(context, excess, 1);
  const md_gemm_row_sums all = {norms[0], norms[1], norms[2], excess[0]};
  return md_gemm_error_of(&all, 1);
}

md_status md_gemm_check_parts(md_context *context, const md_gemm_settings *settings,
                              const md_gemm_request *request, const void *c,
                              md_gemm_result *result) {
  skip(result);
  if (settings->check_size == 0) return MD_OK;
  remade r = {.settings = settings, .request = request};
  r.layout = md_gemm_part_layout(request, MD_GEMM_C);
  r.rows = md_gemm_layout_rows(&r.layout);
  r.columns = md_gemm_layout_columns(&r.layout);
  r.samples = samples_of(settings, &request->problem, r.rows, result);
  int64_t *rows = NULL;
  md_gemm_row_sums *sums = NULL;
  md_status status = allocate(context, r.samples, &rows, &sums);
  if (status == MD_OK) {
    md_gemm_sample_rows(r.rows, r.samples, rows);
    status = check_part(context, &r, rows, c, sums);
  }
  status = md_agree(context, status);
  if (status == MD_OK) result->error = combine(context, &request->grid, r.samples, sums);
  free(r.a);
  free(r.b);
  free(r.c0);
  free(sums);
  return status;
}
