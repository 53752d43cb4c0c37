#include "lattice/fields/observables.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/sum.h"

static double site_norm2(const md_field *x, int64_t site) {
  double sum = 0.0, v[MD_FERMION_REALS];
  for (int r = 0; r < x->n_rhs; r++) {
    md_field_get(x, site, r, v);
    for (int c = 0; c < MD_FERMION_REALS; c++) sum += v[c] * v[c];
  }
  return sum;
}

md_status md_pion_correlator(md_context *context, const md_field x[MD_PARITIES],
                             double *correlator) {
  const md_geometry *g = x[0].geometry;
  const int64_t slice = g->sites / g->local[MD_T];
  for (int t = 0; t < g->global[MD_T]; t++) {
    md_sum sum = {0};
    const int here = t - g->origin[MD_T];
    if (here >= 0 && here < g->local[MD_T])
      for (int p = 0; p < MD_PARITIES; p++)
        for (int64_t i = here * slice; i < (here + 1) * slice; i++)
          md_sum_add(&sum, site_norm2(&x[p], i));
    MD_TRY(md_sum_finish(context, &sum, 1, &correlator[t]));
  }
  return MD_OK;
}

md_status md_chiral_condensate(md_context *context, const md_field b[MD_PARITIES],
                               const md_field x[MD_PARITIES], double *estimates) {
  double odd[MD_MAX_RHS];
  MD_TRY(md_linear_dot(context, &b[MD_EVEN], &x[MD_EVEN], estimates));
  MD_TRY(md_linear_dot(context, &b[MD_ODD], &x[MD_ODD], odd));
  for (int r = 0; r < x[0].n_rhs; r++)
    estimates[r] = (estimates[r] + odd[r]) / (double)x[0].geometry->volume;
  return MD_OK;
}
