#include "gemm/distributed.h"
#include "base/ranks_mpi.h"
#include "base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

md_status md_gemm_grid_make(md_context *context, int rows, int columns, md_gemm_grid *grid) {
  if (rows == 0 && columns == 0) {
    rows = 1;
    for (int r = 1; r * r <= context->ranks; r++)
      if (context->ranks % r == 0) rows = r;
    columns = context->ranks / rows;
  }
  if (rows < 1 || columns < 1 || (long long)rows * columns != context->ranks)
    return md_fail(context, MD_INPUT,
                   "process grid must hold every rank once: %dx%d does not make %d rank%s", rows,
                   columns, context->ranks, md_plural(context->ranks));
  *grid = (md_gemm_grid){rows, columns, context->rank / columns, context->rank % columns};
  return MD_OK;
}

int64_t md_gemm_deal_length(const md_gemm_deal *deal, int process) {
  const int64_t blocks = deal->length / deal->block, extra = blocks % deal->processes;
  return blocks / deal->processes * deal->block + (process < extra    ? deal->block
                                                   : process == extra ? deal->length % deal->block
                                                                      : 0);
}

md_gemm_subset md_gemm_deal_subset(const md_gemm_deal *deal, int process) {
  return (md_gemm_subset){deal->block, deal->processes, process, 0};
}

static int process_row(const md_gemm_layout *layout, int rank) {
  return layout->rows.processes == 1 ? 0 : rank / layout->grid.columns;
}
static int process_column(const md_gemm_layout *layout, int rank) {
  return layout->columns.processes == 1 ? 0 : rank % layout->grid.columns;
}
static int own_rank(const md_gemm_layout *layout) {
  return layout->grid.row * layout->grid.columns + layout->grid.column;
}

int64_t md_gemm_layout_rows(const md_gemm_layout *layout) {
  return md_gemm_deal_length(&layout->rows, process_row(layout, own_rank(layout)));
}
int64_t md_gemm_layout_columns(const md_gemm_layout *layout) {
  return md_gemm_deal_length(&layout->columns, process_column(layout, own_rank(layout)));
}

static MPI_Datatype mpi_type(md_gemm_precision precision) {
  const size_t bytes = md_gemm_input_bytes(precision);
  return bytes == 8 ? MPI_DOUBLE : bytes == 4 ? MPI_FLOAT : MPI_UINT16_T;
}

/* What a process holds of a dimension, of whose length a block may be a multiple. */
static MPI_Datatype dealt(const md_gemm_deal *deal, int process, MPI_Datatype element) {
  const int length = (int)deal->length, cyclic = MPI_DISTRIBUTE_CYCLIC;
  const int block = deal->block < deal->length ? (int)deal->block : length;
  MPI_Datatype type;
  MPI_Type_create_darray(deal->processes, process, 1, &length, &cyclic, &block, &deal->processes,
                         MPI_ORDER_C, element, &type);
  return type;
}

/* Rank 0's side of scatter (send) or gather: one message for each rank that holds anything. */
static int exchange_root(const md_context *context, const md_gemm_layout *layout, bool send,
                         MPI_Datatype element, void *whole, MPI_Aint row_bytes,
                         MPI_Request *requests) {
  int count = 0;
  for (int rank = 0; rank < context->ranks; rank++) {
    const int row = process_row(layout, rank), column = process_column(layout, rank);
    if (md_gemm_deal_length(&layout->rows, row) == 0 ||
        md_gemm_deal_length(&layout->columns, column) == 0)
      continue;
    MPI_Datatype columns = dealt(&layout->columns, column, element), whole_row, part;
    MPI_Type_create_resized(columns, 0, row_bytes, &whole_row);
    part = dealt(&layout->rows, row, whole_row);
    MPI_Type_commit(&part);
    if (send)
      MPI_Isend(whole, 1, part, rank, 0, md_mpi(context), &requests[count++]);
    else
      MPI_Irecv(whole, 1, part, rank, 0, md_mpi(context), &requests[count++]);
    MPI_Type_free(&part); /* once the message has gone */
    MPI_Type_free(&whole_row);
    MPI_Type_free(&columns);
  }
  return count;
}

static md_status exchange(md_context *context, const md_gemm_layout *layout, bool scatter,
                          md_gemm_precision precision, void *whole, int64_t ld, void *part) {
  const MPI_Datatype element = mpi_type(precision);
  const int64_t rows = md_gemm_layout_rows(layout), columns = md_gemm_layout_columns(layout);
  const MPI_Aint row_bytes = ld * (MPI_Aint)md_gemm_input_bytes(precision);
  const size_t request_bytes = ((size_t)context->ranks + 1) * sizeof(MPI_Request);
  MPI_Request *requests = malloc(request_bytes);
  MPI_Datatype dense;
  int count = 0;
  const md_status status =
      md_agree(context, requests ? MD_OK : md_fail_memory(context, request_bytes, "MPI requests"));
  if (status != MD_OK) {
    free(requests);
    return status;
  }
  MPI_Type_contiguous((int)columns, element, &dense);
  MPI_Type_commit(&dense);
  if (rows > 0 && columns > 0 && scatter)
    MPI_Irecv(part, (int)rows, dense, 0, 0, md_mpi(context), &requests[count++]);
  else if (rows > 0 && columns > 0)
    MPI_Isend(part, (int)rows, dense, 0, 0, md_mpi(context), &requests[count++]);
  if (context->rank == 0)
    count += exchange_root(context, layout, scatter, element, whole, row_bytes, requests + count);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&dense);
  free(requests);
  return MD_OK;
}

md_status md_gemm_scatter(md_context *context, const md_gemm_layout *layout,
                          md_gemm_precision precision, const void *whole, int64_t ld, void *part) {
  return exchange(context, layout, true, precision, (void *)(uintptr_t)whole, ld, part);
}

md_status md_gemm_gather(md_context *context, const md_gemm_layout *layout,
                         md_gemm_precision precision, const void *part, void *whole, int64_t ld) {
  return exchange(context, layout, false, precision, whole, ld, (void *)(uintptr_t)part);
}

static const md_gemm_method *const METHODS[] = {
    &md_gemm_block_cyclic,
    &md_gemm_summa,
    &md_gemm_scalapack,
    NULL,
};

const md_gemm_method *const *md_gemm_methods(void) {
  return METHODS;
}

const md_gemm_method *md_gemm_method_find(const char *name) {
  for (int i = 0; METHODS[i]; i++)
    if (strcmp(METHODS[i]->name, name) == 0) return METHODS[i];
  return NULL;
}

md_gemm_layout md_gemm_part_layout(const md_gemm_request *request, md_gemm_operand operand) {
  const md_gemm_problem *p = &request->problem;
  const md_gemm_grid *grid = &request->grid;
  md_gemm_layout layout = {
      *grid, {p->m, request->block[0], grid->rows}, {p->n, request->block[1], grid->columns}};
  if (operand == MD_GEMM_A) layout.columns = (md_gemm_deal){p->k, request->block[2], grid->columns};
  if (operand == MD_GEMM_B) layout.rows = (md_gemm_deal){p->k, request->block[2], grid->rows};
  return layout;
}

static md_status check(md_context *context, const md_gemm_method *method,
                       const md_gemm_request *request) {
  const md_gemm_problem *p = &request->problem;
  MD_TRY(md_gemm_check(context, p));
  const int64_t sizes[] = {p->m, p->n, p->k};
  for (int d = 0; d < 3; d++) {
    if (sizes[d] > INT_MAX)
      return md_fail(context, MD_INPUT, "%s takes sizes up to %d, got %lld", method->name, INT_MAX,
                     (long long)sizes[d]);
    if (request->block[d] < 1 || request->block[d] > INT_MAX)
      return md_fail(context, MD_INPUT, "block sizes must be 1 to %d, got %lld", INT_MAX,
                     (long long)request->block[d]);
  }
  if (request->grid.rows * request->grid.columns != context->ranks)
    return md_fail(context, MD_INPUT, "process grid %dx%d does not make %d rank%s",
                   request->grid.rows, request->grid.columns, context->ranks,
                   md_plural(context->ranks));
  if (method->unavailable)
    return md_fail(context, MD_ENVIRONMENT, "GEMM over ranks by %s is not available: %s",
                   method->name, method->unavailable);
  if (!(method->precisions & 1u << p->precision))
    return md_fail(context, MD_INPUT, "GEMM over ranks by %s does not take inputs in %s",
                   method->name, md_gemm_precision_name(p->precision));
  return MD_OK;
}

md_status md_gemm_request_check(md_context *context, const md_gemm_method *method,
                                const md_gemm_request *request) {
  return md_agree(context, check(context, method, request));
}
