#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "base/timer.h"
#include "gemm/distributed.h"
#include "gemm/element.h"

#include <stdlib.h>
#include <string.h>

/* SUMMA (van de Geijn and Watts,
 * doi:10.1002/(SICI)1096-9128(199704)9:4<255::AID-CPE250>3.0.CO;2-2): for each panel of k its
 * owners send their rows of A along the rows of the grid and their columns of B along its columns,
 * and every rank adds the product of the two to its part of C. All three matrices stay dealt out.
 */
typedef struct summa {
  const md_gemm_request *request;
  MPI_Comm along_row, along_column; /* the ranks of one row, of one column of the grid */
  md_gemm_problem panel;            /* this rank's C, one panel of k, beta = 1 */
  int64_t a_columns;                /* this rank's part of A */
  void *a_panel, *b_panel;
  md_gemm_local local;
} summa;

static md_status begin(md_context *context, const md_gemm_request *request, summa *s) {
  *s = (summa){.request = request, .along_row = MPI_COMM_NULL, .along_column = MPI_COMM_NULL};
  const md_gemm_layout a = md_gemm_part_layout(request, MD_GEMM_A);
  const md_gemm_layout c = md_gemm_part_layout(request, MD_GEMM_C);
  const md_gemm_problem *p = &request->problem;
  const int64_t m = md_gemm_layout_rows(&c), n = md_gemm_layout_columns(&c);
  const int64_t depth = p->k < request->block_depth ? p->k : request->block_depth;
  const size_t element = md_gemm_input_bytes(p->precision);
  s->a_columns = md_gemm_layout_columns(&a);
  s->panel = (md_gemm_problem){m, n, depth, p->precision, depth, n, n, p->alpha, 1.0};
  MD_TRY(md_allocate(context, (size_t)(m * depth) * element, "panel of A", &s->a_panel));
  MD_TRY(md_allocate(context, (size_t)(depth * n) * element, "panel of B", &s->b_panel));
  if (m == 0 || n == 0) return MD_OK;
  return md_gemm_local_open(context, request->kernel, &s->panel, &request->launch, &request->place,
                            &s->local);
}

static void end(summa *s) {
  md_gemm_local_close(&s->local);
  if (s->along_row != MPI_COMM_NULL) MPI_Comm_free(&s->along_row);
  if (s->along_column != MPI_COMM_NULL) MPI_Comm_free(&s->along_column);
  free(s->a_panel);
  free(s->b_panel);
}

static void broadcast(void *panel, int64_t rows, int64_t columns, size_t element_bytes, int root,
                      MPI_Comm along) {
  if (rows == 0 || columns == 0) return;
  MPI_Datatype element, row;
  MPI_Type_contiguous((int)element_bytes, MPI_BYTE, &element);
  MPI_Type_contiguous((int)columns, element, &row);
  MPI_Type_commit(&row);
  MPI_Bcast(panel, (int)rows, row, root, along);
  MPI_Type_free(&row);
  MPI_Type_free(&element);
}

/* Panel t of k, which is block t of the deal, to every rank that needs it; a partial last panel
 * is filled up with zeros, so that all panels are one problem. */
static void share_panel(summa *s, int64_t t, const char *a, const char *b) {
  const md_gemm_request *request = s->request;
  const md_gemm_grid *grid = &request->grid;
  const size_t element = md_gemm_input_bytes(request->problem.precision);
  const int64_t depth = s->panel.k, left = request->problem.k - t * depth;
  const size_t width = (size_t)(left < depth ? left : depth);
  const size_t a_row = (size_t)depth * element, b_row = (size_t)s->panel.n * element;
  if (t % grid->columns == grid->column)
    for (int64_t i = 0; i < s->panel.m; i++) {
      char *row = (char *)s->a_panel + (size_t)i * a_row;
      const int64_t from = i * s->a_columns + t / grid->columns * depth;
      memcpy(row, a + (size_t)from * element, width * element);
      memset(row + width * element, 0, a_row - width * element);
    }
  if (t % grid->rows == grid->row && b_row > 0) {
    memcpy(s->b_panel, b + (size_t)(t / grid->rows * depth) * b_row, width * b_row);
    memset((char *)s->b_panel + width * b_row, 0, ((size_t)depth - width) * b_row);
  }
  broadcast(s->a_panel, s->panel.m, depth, element, (int)(t % grid->columns), s->along_row);
  broadcast(s->b_panel, depth, s->panel.n, element, (int)(t % grid->rows), s->along_column);
}

static void scale(const md_gemm_problem *p, const md_gemm_problem *panel, void *c) {
  const md_gemm_precision out = md_gemm_output(p->precision);
  for (int64_t i = 0; p->beta != 1.0 && i < panel->m * panel->n; i++)
    md_gemm_store(out, c, i, p->beta == 0.0 ? 0.0 : p->beta * md_gemm_load(out, c, i));
}

static md_status product(md_context *context, summa *s, const void *a, const void *b, void *c,
                         double *kernel_s) {
  const int64_t panels = (s->request->problem.k + s->panel.k - 1) / s->panel.k;
  const bool holds = s->panel.m > 0 && s->panel.n > 0;
  md_status status = MD_OK;
  scale(&s->request->problem, &s->panel, c);
  if (holds) status = md_gemm_local_load(context, &s->local, c, s->panel.ldc);
  for (int64_t t = 0; t < panels; t++) {
    share_panel(s, t, a, b);
    double spent_s;
    if (!holds || status != MD_OK) continue; /* the others still need this rank's panels */
    status =
        md_gemm_local_multiply(context, &s->local, &s->panel, s->a_panel, s->b_panel, c, &spent_s);
    if (status == MD_OK) *kernel_s += spent_s;
  }
  if (holds && status == MD_OK) status = md_gemm_local_store(context, &s->local, c, s->panel.ldc);
  return status;
}

static md_status run(md_context *context, const md_gemm_request *request, const void *a,
                     const void *b, void *c, md_gemm_rank_times *times) {
  *times = (md_gemm_rank_times){0};
  MD_TRY(md_gemm_request_check(context, &md_gemm_summa, request));
  summa s;
  md_status status = md_agree(context, begin(context, request, &s));
  if (status == MD_OK) {
    MPI_Comm_split(md_mpi(context), request->grid.row, request->grid.column, &s.along_row);
    MPI_Comm_split(md_mpi(context), request->grid.column, request->grid.row, &s.along_column);
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
    .idea = "all matrices dealt out, panels of k sent along rows and columns of the grid",
    .precisions = (1u << MD_GEMM_PRECISIONS) - 1,
    .local_kernel = true,
    .from_root = false,
    .run = run,
};
