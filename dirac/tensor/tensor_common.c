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
  return (double)(MD_DIRECTIONS * MD_LINK_REALS) * (double)md_precision_bytes(request->precision);
}

void md_tensor_fold(const md_gauge *gauge, bool antiperiodic, int parity, int64_t site,
                    double folded[MD_DIRECTIONS][MD_LINK_REALS]) {
  const md_geometry *g = gauge->geometry;
  const int last = g->global[MD_T] - 1;
  int x[MD_DIMS];
  md_global_coordinates(g, parity, site, x);
  for (int mu = 0; mu < MD_DIMS; mu++) {
    const double eta = md_eta(mu, x);
    const bool turn = antiperiodic && mu == MD_T;
    const double forward = turn && x[MD_T] == last ? -eta : eta;
    const double backward = turn && x[MD_T] == 0 ? eta : -eta;
    double u[MD_LINK_REALS];
    md_gauge_get(gauge, parity, mu, site, u);
    for (int c = 0; c < MD_LINK_REALS; c++) folded[mu][c] = forward * u[c];
    md_gauge_get(gauge, 1 - parity, mu, g->neighbour[parity][MD_DIMS + mu][site], u);
    for (int row = 0; row < 3; row++)
      for (int column = 0; column < 3; column++) {
        double *to = &folded[MD_DIMS + mu][2 * (3 * row + column)];
        const double *from = &u[2 * (3 * column + row)];
        to[0] = backward * from[0];
        to[1] = -backward * from[1];
      }
  }
}

bool md_tensor_reads_halo(const md_geometry *geometry, int parity, int64_t site) {
  for (int d = 0; d < MD_DIRECTIONS; d++)
    if (geometry->neighbour[parity][d][site] >= geometry->sites) return true;
  return false;
}
