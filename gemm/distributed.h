#pragma once

#include "gemm/local.h"
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
 * per rank, described by MPI's types of such a deal. Collective; sizes up to 2^31 - 1. */
md_status md_gemm_scatter(md_context *context, const md_gemm_layout *layout,
                          md_gemm_precision precision, const void *whole, int64_t ld, void *part);
md_status md_gemm_gather(md_context *context, const md_gemm_layout *layout,
                         md_gemm_precision precision, const void *part, void *whole, int64_t ld);

/* Products over a grid of ranks. Speaks MPI; the kernels behind it do not. */
typedef struct md_gemm_request {
  md_gemm_problem problem; /* of the whole product; leading dimensions of the whole matrices */
  md_gemm_grid grid;
  int64_t block[3];             /* of the deal of m, n, k */
  const md_gemm_kernel *kernel; /* of each rank's own products */
  md_gemm_launch launch;
  md_gemm_place place;
} md_gemm_request;

/* Seconds of the slowest rank. scatter and gather are zero for a method whose matrices start and
 * end dealt out; product includes the messages that belong to it; kernel_s is the part of it that
 * the local kernel took. */
typedef struct md_gemm_rank_times {
  double scatter_s, product_s, gather_s, kernel_s;
} md_gemm_rank_times;

typedef struct md_gemm_method {
  const char *name;
  const char *unavailable; /* NULL, or why this build lacks it and how to get it */
  unsigned precisions;     /* bit 1u << md_gemm_precision, besides what the local kernel serves */
  bool local_kernel;       /* false: it brings its own */
  /* true: a, b, c are the whole matrices, on rank 0 (elsewhere not read). false: they are the
   * parts of md_gemm_part_layout, dense. */
  bool from_root;
  /* c <- alpha a b + beta c. Collective; all ranks return the same status. */
  md_status (*run)(md_context *context, const md_gemm_request *request, const void *a,
                   const void *b, void *c, md_gemm_rank_times *times);
  /* Of one without local kernel: as md_gemm_kernel.threads, of each rank. */
  int (*threads)(int asked);
} md_gemm_method;

/* The table, NULL-terminated: block_cyclic, summa, scalapack. Every name is there in every build.
 */
const md_gemm_method *const *md_gemm_methods(void);
/* NULL when no method has that name. */
const md_gemm_method *md_gemm_method_find(const char *name);

/* A dealt out over m and k, B over k and n, C over m and n: no rank holds a whole matrix. */
md_gemm_layout md_gemm_part_layout(const md_gemm_request *request, md_gemm_operand operand);

/* Sizes, blocks >= 1 and int range, grid against ranks, precision, availability. All ranks return
 * the same; collective. */
md_status md_gemm_request_check(md_context *context, const md_gemm_method *method,
                                const md_gemm_request *request);

extern const md_gemm_method md_gemm_block_cyclic, md_gemm_summa, md_gemm_scalapack;
