#include "base/memory.h"
#include "base/timer.h"
#include "gemm/distributed.h"

#include <stdlib.h>

/* Rank 0 deals A by groups of rows and B by groups of columns; each rank multiplies its group of
 * rows with its group of columns, over the whole of k, which yields its part of the block-cyclic
 * C; rank 0 collects. No rank adds up what another has begun: with a local kernel whose sums do
 * not depend on the place of an element the result is that of one rank, bit for bit. */
typedef struct parts {
  md_gemm_layout a_layout, b_layout, c_layout;
  md_gemm_problem problem; /* of this rank */
  void *a, *b, *c;
} parts;

static md_status allocate(md_context *context, parts *part) {
  const md_gemm_problem *p = &part->problem;
  const size_t in = md_gemm_input_bytes(p->precision), out = md_gemm_output_bytes(p->precision);
  MD_TRY(md_allocate(context, (size_t)(p->m * p->k) * in, "this rank's rows of A", &part->a));
  MD_TRY(md_allocate(context, (size_t)(p->k * p->n) * in, "this rank's columns of B", &part->b));
  return md_allocate(context, (size_t)(p->m * p->n) * out, "this rank's part of C", &part->c);
}

static void describe(const md_gemm_request *request, parts *part) {
  part->a_layout = md_gemm_part_layout(request, MD_GEMM_A);
  part->b_layout = md_gemm_part_layout(request, MD_GEMM_B);
  part->c_layout = md_gemm_part_layout(request, MD_GEMM_C);
  const md_gemm_deal whole_depth = {request->problem.k, request->problem.k, 1};
  part->a_layout.columns = part->b_layout.rows = whole_depth;
  md_gemm_problem *own = &part->problem;
  *own = request->problem;
  own->m = md_gemm_layout_rows(&part->c_layout);
  own->n = md_gemm_layout_columns(&part->c_layout);
  own->lda = own->k;
  own->ldb = own->ldc = own->n;
}

static md_status multiply(md_context *context, const md_gemm_request *request, parts *part,
                          md_gemm_rank_times *times) {
  if (part->problem.m == 0 || part->problem.n == 0) return MD_OK; /* fewer blocks than ranks */
  md_gemm_local local;
  md_gemm_times spent = {0};
  md_status status = md_gemm_local_open(context, request->kernel, &part->problem, &request->launch,
                                        &request->place, &local);
  const double start_s = md_time_s();
  if (status == MD_OK)
    status = md_gemm_local_run(context, &local, &part->problem, part->a, part->b, part->c, &spent);
  times->product_s = md_time_s() - start_s;
  times->kernel_s = spent.kernel_s;
  md_gemm_local_close(&local);
  return status;
}

/* All ranks together, so that each step's time is that of the slowest rank. */
static md_status steps(md_context *context, const md_gemm_request *request, const void *a,
                       const void *b, void *c, parts *part, md_gemm_rank_times *times) {
  const md_gemm_problem *p = &request->problem;
  const md_gemm_precision out = p->precision == MD_GEMM_DOUBLE ? MD_GEMM_DOUBLE : MD_GEMM_SINGLE;
  md_barrier(context);
  double start_s = md_time_s();
  MD_TRY(md_gemm_scatter(context, &part->a_layout, p->precision, a, p->lda, part->a));
  MD_TRY(md_gemm_scatter(context, &part->b_layout, p->precision, b, p->ldb, part->b));
  if (p->beta != 0.0) MD_TRY(md_gemm_scatter(context, &part->c_layout, out, c, p->ldc, part->c));
  md_barrier(context);
  times->scatter_s = md_time_s() - start_s;
  MD_TRY(md_agree(context, multiply(context, request, part, times)));
  md_barrier(context);
  start_s = md_time_s();
  MD_TRY(md_gemm_gather(context, &part->c_layout, out, part->c, c, p->ldc));
  md_barrier(context);
  times->gather_s = md_time_s() - start_s;
  return MD_OK;
}

static md_status multiply_from_root(md_context *context, const md_gemm_request *request,
                                    const void *a, const void *b, void *c,
                                    md_gemm_rank_times *times) {
  *times = (md_gemm_rank_times){0};
  parts part = {0};
  MD_TRY(md_gemm_request_check(context, &md_gemm_block_cyclic, request));
  describe(request, &part);
  md_status status = md_agree(context, allocate(context, &part));
  if (status == MD_OK) status = steps(context, request, a, b, c, &part, times);
  MD_FREE(part.a, part.b, part.c);
  if (status == MD_OK) md_maximum(context, (double *)times, 4);
  return status;
}

const md_gemm_method md_gemm_block_cyclic = {
    .name = "block_cyclic",
    .precisions = (1u << MD_GEMM_PRECISIONS) - 1,
    .local_kernel = true,
    .from_root = true,
    .run = multiply_from_root,
};
