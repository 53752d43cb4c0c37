#ifndef MD_GEMM_DISTRIBUTED_H
#define MD_GEMM_DISTRIBUTED_H

#include "gemm/local.h"
#include "gemm/process_grid.h"

/* Products over a grid of ranks. Speaks MPI; the kernels behind it do not. */
typedef struct md_gemm_request {
  md_gemm_problem problem; /* of the whole product; leading dimensions of the whole matrices */
  md_gemm_grid grid;
  int64_t block_rows, block_columns, block_depth; /* of the deal of m, n, k */
  const md_gemm_kernel *kernel;                   /* of each rank's own products */
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
  const char *idea;
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

#endif
