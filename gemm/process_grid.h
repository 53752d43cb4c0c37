#ifndef MD_GEMM_PROCESS_GRID_H
#define MD_GEMM_PROCESS_GRID_H

#include "gemm/matrix.h"

/* Matrices dealt out over a grid of processes in blocks, as cards are: block b of a dimension
 * belongs to process b mod processes (the layout of ScaLAPACK). */
typedef struct md_gemm_grid {
  int rows, columns; /* rows * columns = ranks; rank = row * columns + column */
  int row, column;   /* of this rank */
} md_gemm_grid;

/* rows x columns of the most square grid that holds all ranks, or the asked one (0, 0: none).
 * MD_INPUT when its product is not the number of ranks. Local. */
md_status md_gemm_grid_make(md_context *context, int rows, int columns, md_gemm_grid *grid);

/* One dimension of a matrix. processes == 1: every process holds all of it. */
typedef struct md_gemm_deal {
  int64_t length, block;
  int processes;
} md_gemm_deal;

/* Elements of the dimension that `process` holds: 0 is possible. */
int64_t md_gemm_deal_length(const md_gemm_deal *deal, int process);
/* The map from its local to the global index. */
md_gemm_subset md_gemm_deal_subset(const md_gemm_deal *deal, int process);

/* A matrix dealt out: rows over the rows of the grid, columns over its columns. The part of a rank
 * is dense, row-major. */
typedef struct md_gemm_layout {
  md_gemm_grid grid;
  md_gemm_deal rows, columns;
} md_gemm_layout;
int64_t md_gemm_layout_rows(const md_gemm_layout *layout);    /* of this rank's part */
int64_t md_gemm_layout_columns(const md_gemm_layout *layout); /* of this rank's part */

/* From the whole matrix on rank 0 (ld in elements; elsewhere not read) to every rank's part, and
 * back; back, each element comes from one rank, so that no dimension is held twice. One message
 * per rank, described by MPI derived datatypes: a process holds one block more than others, the
 * last partial block, or neither, so that three cases a dimension, nine types a matrix, serve all
 * ranks. Collective; sizes and blocks up to 2^31 - 1. */
md_status md_gemm_scatter(md_context *context, const md_gemm_layout *layout,
                          md_gemm_precision precision, const void *whole, int64_t ld, void *part);
md_status md_gemm_gather(md_context *context, const md_gemm_layout *layout,
                         md_gemm_precision precision, const void *part, void *whole, int64_t ld);

#endif
