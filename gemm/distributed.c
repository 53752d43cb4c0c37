#include "gemm/distributed.h"
#include "base/text.h"

#include <limits.h>
#include <string.h>

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
