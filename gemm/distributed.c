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

/* Case 0: one full block more than case 2; case 1: the full blocks of case 2 and the partial one.
 */
static int case_of(const md_gemm_deal *deal, int process) {
  const int64_t extra = deal->length / deal->block % deal->processes;
  return process < extra ? 0 : process == extra ? 1 : 2;
}

int64_t md_gemm_deal_length(const md_gemm_deal *deal, int process) {
  const int64_t each = deal->length / deal->block / deal->processes * deal->block;
  const int64_t more[3] = {deal->block, deal->length % deal->block, 0};
  return each + more[case_of(deal, process)];
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
  switch (md_gemm_input_bytes(precision)) {
  case 8:
    return MPI_DOUBLE;
  case 4:
    return MPI_FLOAT;
  default:
    return MPI_UINT16_T;
  }
}

/* The elements of one whole row that a process holds, relative to its first block. */
static md_status row_type(md_context *context, const md_gemm_deal *columns, int64_t length,
                          MPI_Datatype element, MPI_Datatype *type) {
  const int64_t blocks = (length + columns->block - 1) / columns->block;
  int *memory = malloc(2 * (size_t)blocks * sizeof *memory);
  if (!memory) return md_fail_memory(context, 2 * (size_t)blocks * sizeof *memory, "datatype");
  int *lengths = memory, *starts = memory + blocks;
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t left = length - b * columns->block;
    lengths[b] = (int)(left < columns->block ? left : columns->block);
    starts[b] = (int)(b * columns->block * columns->processes);
  }
  MPI_Type_indexed((int)blocks, lengths, starts, element, type);
  free(memory);
  return MD_OK;
}

/* Such rows for every row that a process holds. */
static md_status part_type(md_context *context, const md_gemm_layout *layout, int row, int column,
                           int64_t ld, MPI_Datatype element, MPI_Datatype *type) {
  const int64_t rows = md_gemm_deal_length(&layout->rows, row);
  const int64_t columns = md_gemm_deal_length(&layout->columns, column);
  int element_bytes;
  MPI_Type_size(element, &element_bytes);
  MPI_Aint *starts = malloc((size_t)rows * sizeof *starts);
  if (!starts) return md_fail_memory(context, (size_t)rows * sizeof *starts, "datatype");
  MPI_Datatype one_row;
  const md_status status = row_type(context, &layout->columns, columns, element, &one_row);
  if (status == MD_OK) {
    const md_gemm_subset first = md_gemm_deal_subset(&layout->rows, 0);
    for (int64_t i = 0; i < rows; i++)
      starts[i] = (MPI_Aint)(md_gemm_global(&first, i) * ld * element_bytes);
    MPI_Type_create_hindexed_block((int)rows, 1, starts, one_row, type);
    MPI_Type_commit(type);
    MPI_Type_free(&one_row);
  }
  free(starts);
  return status;
}

/* Types of the nine cases; those that no rank needs stay MPI_DATATYPE_NULL. */
typedef MPI_Datatype part_types[3][3];

static md_status make_types(md_context *context, const md_gemm_layout *layout, int64_t ld,
                            MPI_Datatype element, part_types types) {
  for (int rank = 0; rank < context->ranks; rank++) {
    const int row = process_row(layout, rank), column = process_column(layout, rank);
    MPI_Datatype *type = &types[case_of(&layout->rows, row)][case_of(&layout->columns, column)];
    if (*type == MPI_DATATYPE_NULL && md_gemm_deal_length(&layout->rows, row) > 0 &&
        md_gemm_deal_length(&layout->columns, column) > 0)
      MD_TRY(part_type(context, layout, row, column, ld, element, type));
  }
  return MD_OK;
}

/* Rank 0's side of scatter (send) or gather: one message for each rank that holds anything. */
static int exchange_root(const md_context *context, const md_gemm_layout *layout, bool send,
                         part_types types, char *whole, int64_t ld, int element_bytes,
                         MPI_Request *requests) {
  int count = 0;
  for (int rank = 0; rank < context->ranks; rank++) {
    const int row = process_row(layout, rank), column = process_column(layout, rank);
    const MPI_Datatype type = types[case_of(&layout->rows, row)][case_of(&layout->columns, column)];
    if (type == MPI_DATATYPE_NULL) continue;
    char *start =
        whole + (row * layout->rows.block * ld + column * layout->columns.block) * element_bytes;
    if (send)
      MPI_Isend(start, 1, type, rank, 0, md_mpi(context), &requests[count++]);
    else
      MPI_Irecv(start, 1, type, rank, 0, md_mpi(context), &requests[count++]);
  }
  return count;
}

static md_status exchange(md_context *context, const md_gemm_layout *layout, bool scatter,
                          md_gemm_precision precision, char *whole, int64_t ld, void *part) {
  const MPI_Datatype element = mpi_type(precision);
  const int64_t rows = md_gemm_layout_rows(layout), columns = md_gemm_layout_columns(layout);
  part_types types;
  for (int t = 0; t < 9; t++) types[t / 3][t % 3] = MPI_DATATYPE_NULL;
  MPI_Request *requests = malloc(((size_t)context->ranks + 1) * sizeof *requests);
  md_status status = requests ? MD_OK : md_fail_memory(context, 1, "MPI requests");
  if (status == MD_OK && context->rank == 0)
    status = make_types(context, layout, ld, element, types);
  status = md_agree(context, status);
  if (status == MD_OK) {
    int count = 0;
    MPI_Datatype dense;
    MPI_Type_contiguous((int)columns, element, &dense);
    MPI_Type_commit(&dense);
    if (rows > 0 && columns > 0 && scatter)
      MPI_Irecv(part, (int)rows, dense, 0, 0, md_mpi(context), &requests[count++]);
    else if (rows > 0 && columns > 0)
      MPI_Isend(part, (int)rows, dense, 0, 0, md_mpi(context), &requests[count++]);
    if (context->rank == 0)
      count += exchange_root(context, layout, scatter, types, whole, ld,
                             (int)md_gemm_input_bytes(precision), requests + count);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&dense);
  }
  for (int t = 0; t < 9; t++)
    if (types[t / 3][t % 3] != MPI_DATATYPE_NULL) MPI_Type_free(&types[t / 3][t % 3]);
  free(requests);
  return status;
}

md_status md_gemm_scatter(md_context *context, const md_gemm_layout *layout,
                          md_gemm_precision precision, const void *whole, int64_t ld, void *part) {
  return exchange(context, layout, true, precision, (char *)(uintptr_t)whole, ld, part);
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
  md_gemm_layout layout = {*grid,
                           {p->m, request->block_rows, grid->rows},
                           {p->n, request->block_columns, grid->columns}};
  if (operand == MD_GEMM_A)
    layout.columns = (md_gemm_deal){p->k, request->block_depth, grid->columns};
  if (operand == MD_GEMM_B) layout.rows = (md_gemm_deal){p->k, request->block_depth, grid->rows};
  return layout;
}

static md_status check(md_context *context, const md_gemm_method *method,
                       const md_gemm_request *request) {
  const md_gemm_problem *p = &request->problem;
  MD_TRY(md_gemm_check(context, p));
  const int64_t sizes[] = {p->m, p->n, p->k};
  const int64_t blocks[] = {request->block_rows, request->block_columns, request->block_depth};
  for (int d = 0; d < 3; d++) {
    if (sizes[d] > INT_MAX)
      return md_fail(context, MD_INPUT, "%s takes sizes up to %d, got %lld", method->name, INT_MAX,
                     (long long)sizes[d]);
    if (blocks[d] < 1 || blocks[d] > INT_MAX)
      return md_fail(context, MD_INPUT, "block sizes must be 1 to %d, got %lld", INT_MAX,
                     (long long)blocks[d]);
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
