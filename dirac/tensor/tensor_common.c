#include "dirac/tensor/tensor.h"

md_status md_tensor_check(md_context *context, const md_backend_request *request) {
  const char *name = md_packing_name(request->packing);
  if (request->packing == MD_PACKING_STACKED) {
    if (request->n_rhs < 2)
      return md_fail(context, MD_INPUT,
                     "packing stacked has right-hand sides as tile rows and needs at least 2, got "
                     "%d; use --rhs 8 or 16, or --packing block8",
                     request->n_rhs);
    return MD_OK;
  }
  if (request->precision != MD_HALF)
    return md_fail(context, MD_INPUT,
                   "packing %s multiplies 16x16x16 tiles of fp16, got precision %s; use "
                   "--precision half or --packing stacked",
                   name, md_precision_name(request->precision));
  if (request->n_rhs != 1)
    return md_fail(context, MD_INPUT,
                   "packing %s serves one right-hand side, got %d; use --packing stacked", name,
                   request->n_rhs);
  return MD_OK;
}

double md_tensor_link_bytes(const md_backend_request *request) {
  return (double)(md_action_terms(request->action) * MD_LINK_REALS) *
         (double)md_precision_bytes(request->precision);
}
