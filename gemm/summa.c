#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "base/timer.h"
#include "gemm/distributed.h"
#include "gemm/matrix.h"

#include <stdlib.h>
#include <string.h>

/* SUMMA (van de Geijn and Watts,
 * doi:10.1002/(SICI)1096-9128(199704)9:4<255::AID-CPE250>3.0.CO;2-2): for each panel of k its
 * owners send their rows of A along the rows of the grid and their columns of B along its columns,
 * and every rank adds the product of the two to its part of C. All three matrices stay dealt out.
 * Panels have two places each: the next one travels while the present one is multiplied. */
typedef struct panel {
  void *a, *b;
  MPI_Request arrival[2];
} panel;

typedef struct summa {
  const md_gemm_request *request;
  MPI_Comm along_row, along_column; /* the ranks of one row, of one column of the grid */
  MPI_Datatype a_row, b_row;        /* a row of a panel */
  md_gemm_problem part;             /* this rank's C, one panel of k, beta = 1 */
  int64_t a_columns;                /* this rank's part of A */
  panel panel[2];
  md_gemm_local local;
} summa;

static md_status begin(md_context *context, const md_gemm_request *request, summa *s) {
  *s = (summa){.request = request,
               .along_row = MPI_COMM_NULL,
               .along_column = MPI_COMM_NULL,
               .a_row = MPI_DATATYPE_NULL,
               .b_row = MPI_DATATYPE_NULL};
  const md_gemm_layout a = md_gemm_part_layout(request, MD_GEMM_A);
  const md_gemm_layout c = md_gemm_part_layout(request, MD_GEMM_C);
  const md_gemm_problem *p = &request->problem;
  const int64_t m = md_gemm_layout_rows(&c), n = md_gemm_layout_columns(&c);
  const int64_t depth = p->k < request->block[2] ? p->k : request->block[2];
  const size_t element = md_gemm_input_bytes(p->precision);
  s->a_columns = md_gemm_layout_columns(&a);
  s->part = (md_gemm_problem){m, n, depth, p->precision, depth, n, n, p->alpha, 1.0};
  for (int i = 0; i < 2; i++) {
    panel *to = &s->panel[i];
    MD_TRY(md_allocate(context, (size_t)(m * depth) * element, "panel of A", &to->a));
    MD_TRY(md_allocate(context, (size_t)(depth * n) * element, "panel of B", &to->b));
  }
  if (m == 0 || n == 0) return MD_OK;
  return md_gemm_local_open(context, request->kernel, &s->part, &request->launch, &request->place,
                            &s->local);
}

static MPI_Datatype row_type(int64_t columns, size_t element_bytes) {
  MPI_Datatype element, row;
  MPI_Type_contiguous((int)element_bytes, MPI_BYTE, &element);
  MPI_Type_contiguous((int)columns, element, &row);
  MPI_Type_commit(&row);
  MPI_Type_free(&element);
  return row;
}

static void connect(md_context *context, summa *s) {
  const md_gemm_grid *grid = &s->request->grid;
  const size_t element = md_gemm_input_bytes(s->part.precision);
  MPI_Comm_split(md_mpi(context), grid->row, grid->column, &s->along_row);
  MPI_Comm_split(md_mpi(context), grid->column, grid->row, &s->along_column);
  s->a_row = row_type(s->part.k, element);
  s->b_row = row_type(s->part.n, element);
}

static void end(summa *s) {
  md_gemm_local_close(&s->local);
  if (s->along_row != MPI_COMM_NULL) MPI_Comm_free(&s->along_row);
  if (s->along_column != MPI_COMM_NULL) MPI_Comm_free(&s->along_column);
  if (s->a_row != MPI_DATATYPE_NULL) MPI_Type_free(&s->a_row);
  if (s->b_row != MPI_DATATYPE_NULL) MPI_Type_free(&s->b_row);
  for (int i = 0; i < 2; i++) MD_FREE(s->panel[i].a, s->panel[i].b);
}

/* Panel t of k, which is block t of the deal, from this rank's part of A into its place; a partial
 * last panel is filled up with zeros, so that all panels are one problem. */
static void pack_a(const summa *s, int64_t t, size_t width, const char *a, char *to) {
  const size_t element = md_gemm_input_bytes(s->part.precision), depth = (size_t)s->part.k;
  for (int64_t i = 0; i < s->part.m; i++) {
    const int64_t from = i * s->a_columns + t / s->request->grid.columns * s->part.k;
    char *row = to + (size_t)i * depth * element;
    memcpy(row, a + (size_t)from * element, width * element);
    memset(row + width * element, 0, (depth - width) * element);
  }
}
static void pack_b(const summa *s, int64_t t, size_t width, const char *b, char *to) {
  const size_t depth = (size_t)s->part.k;
  const size_t row = (size_t)s->part.n * md_gemm_input_bytes(s->part.precision);
  if (row == 0) return;
  memcpy(to, b + (size_t)(t / s->request->grid.rows * s->part.k) * row, width * row);
  memset(to + width * row, 0, (depth - width) * row);
}

/* Sends panel t off to every rank that needs it. */
static void start_panel(summa *s, int64_t t, const void *a, const void *b) {
  const md_gemm_grid *grid = &s->request->grid;
  panel *to = &s->panel[t % 2];
  const int64_t depth = s->part.k, left = s->request->problem.k - t * depth;
  const size_t width = (size_t)(left < depth ? left : depth);
  const int a_root = (int)(t % grid->columns), b_root = (int)(t % grid->rows);
  if (a_root == grid->column) pack_a(s, t, width, a, to->a);
  if (b_root == grid->row) pack_b(s, t, width, b, to->b);
  to->arrival[0] = to->arrival[1] = MPI_REQUEST_NULL;
  if (s->part.m > 0)
    MPI_Ibcast(to->a, (int)s->part.m, s->a_row, a_root, s->along_row, &to->arrival[0]);
  if (s->part.n > 0)
    MPI_Ibcast(to->b, (int)depth, s->b_row, b_root, s->along_column, &to->arrival[1]);
}

static void scale(const md_gemm_problem *p, const md_gemm_problem *part, void *c) {
  const md_gemm_precision out = md_gemm_output(p->precision);
  for (int64_t i = 0; p->beta != 1.0 && i < part->m * part->n; i++)
    md_gemm_store(out, c, i, p->beta == 0.0 ? 0.0 : p->beta * md_gemm_load(out, c, i));
}

static md_status product(md_context *context, summa *s, const void *a, const void *b, void *c,
                         double *kernel_s) {
  const int64_t panels = (s->request->problem.k + s->part.k - 1) / s->part.k;
  const bool holds = s->part.m > 0 && s->part.n > 0;
  md_status status = MD_OK;
  scale(&s->request->problem, &s->part, c);
  if (holds) status = md_gemm_local_load(context, &s->local, c, s->part.ldc);
  start_panel(s, 0, a, b);
  for (int64_t t = 0; t < panels; t++) {
    panel *now = &s->panel[t % 2];
    double spent_s = 0.0;
    MPI_Waitall(2, now->arrival, MPI_STATUSES_IGNORE);
    if (t + 1 < panels) start_panel(s, t + 1, a, b);
    if (!holds || status != MD_OK) continue; /* the others still need this rank's panels */
    status = md_gemm_local_begin(context, &s->local, &s->part, now->a, now->b, c, &spent_s);
    /* While a device multiplies, the host drives the next panel's messages. */
    if (t + 1 < panels) MPI_Waitall(2, s->panel[(t + 1) % 2].arrival, MPI_STATUSES_IGNORE);
    if (status == MD_OK) status = md_gemm_local_finish(context, &s->local, &spent_s);
    if (status == MD_OK) *kernel_s += spent_s;
  }
  if (holds && status == MD_OK) status = md_gemm_local_store(context, &s->local, c, s->part.ldc);
  return status;
}

static md_status multiply_panels(md_context *context, const md_gemm_request *request, const void *a,
                                 const void *b, void *c, md_gemm_rank_times *times) {
  *times = (md_gemm_rank_times){0};
  MD_TRY(md_gemm_request_check(context, &md_gemm_summa, request));
  summa s;
  md_status status = md_agree(context, begin(context, request, &s));
  if (status == MD_OK) {
    connect(context, &s);
    md_barrier(context);
    const double start_s = md_time_s();
    status = product(context, &s, a, b, c, &times->kernel_s);
    times->product_s = md_time_s() - start_s;
    status = md_agree(context, status);
  }
  end(&s);
  if (status == MD_OK) md_maximum(context, (double *)times, 4);
  return status;
}

const md_gemm_method md_gemm_summa = {
    .name = "summa",
    .precisions = (1u << MD_GEMM_PRECISIONS) - 1,
    .local_kernel = true,
    .run = multiply_panels,
};
