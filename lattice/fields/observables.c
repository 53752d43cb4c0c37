#include "lattice/fields/observables.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/sum.h"

#include <math.h>
#include <stdlib.h>

/* Of right-hand side r at a site, added to `sum`. */
static double add_norm2(const md_field *x, int64_t site, int r, double sum) {
  double v[MD_MAX_COMPONENTS];
  md_field_get(x, site, r, v);
  for (int c = 0; c < x->components; c++) sum += v[c] * v[c];
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
        for (int64_t i = here * slice; i < (here + 1) * slice; i++) {
          double norm2 = 0.0;
          for (int r = 0; r < x[p].n_rhs; r++) norm2 = add_norm2(&x[p], i, r, norm2);
          md_sum_add(&sum, norm2);
        }
    MD_TRY(md_sum_finish(context, &sum, 1, &correlator[t]));
  }
  return MD_OK;
}

double md_residual_mass(const double *midpoint, const double *pion, int times, int first) {
  double of_midpoint = 0.0, of_pion = 0.0;
  for (int t = 0; t < times; t++) {
    if (!md_in_window((t - first + times) % times, times)) continue;
    of_midpoint += midpoint[t];
    of_pion += pion[t];
  }
  return of_pion > 0.0 ? of_midpoint / of_pion : NAN; /* of less than four slices */
}

/* exp(i 2 pi n k / L) of every momentum, direction and distance k. */
typedef struct waves {
  int start[4]; /* of the directions in a momentum's table; [3]: its length */
  double (*table)[2];
} waves;

static md_status make_waves(md_context *context, const md_geometry *g, const md_momenta *momenta,
                            waves *w) {
  *w = (waves){0};
  for (int d = 0; d < 3; d++) w->start[d + 1] = w->start[d] + g->global[d];
  const size_t bytes = (size_t)momenta->count * (size_t)w->start[3] * sizeof *w->table;
  w->table = malloc(bytes);
  if (!w->table) return md_fail_memory(context, bytes, "momenta");
  for (int q = 0; q < momenta->count; q++)
    for (int d = 0; d < 3; d++)
      for (int k = 0; k < g->global[d]; k++) {
        const long long turns = (long long)momenta->n[q][d] * k % g->global[d];
        const double angle = 2.0 * M_PI * (double)turns / g->global[d];
        double *wave = w->table[q * w->start[3] + w->start[d] + k];
        wave[0] = cos(angle);
        wave[1] = sin(angle);
      }
  return MD_OK;
}

/* cos(p (x - y)), `away` = x - y modulo the extents. */
static double wave_at(const waves *w, const md_momenta *momenta, int q, const int away[3]) {
  const int *n = momenta->n[q];
  double product[2] = {1.0, 0.0};
  for (int d = 0; d < 3; d++) {
    if (n[d] == 0) continue;
    const double *wave = w->table[q * w->start[3] + w->start[d] + away[d]];
    const double real = product[0] * wave[0] - product[1] * wave[1];
    product[1] = product[0] * wave[1] + product[1] * wave[0];
    product[0] = real;
  }
  return product[0];
}

/* Adds right-hand side r at a site to sum[momentum][t]. */
static void add_site(const md_field *x, int64_t site, int r, const int at[MD_DIMS],
                     const int origin[MD_DIMS], const md_momenta *momenta, const waves *w,
                     md_sum *sum) {
  const int *extent = x->geometry->global;
  const double norm2 = add_norm2(x, site, r, 0.0);
  int away[MD_DIMS];
  for (int d = 0; d < MD_DIMS; d++) away[d] = (at[d] - origin[d] + extent[d]) % extent[d];
  for (int q = 0; q < momenta->count; q++)
    md_sum_add(&sum[q * extent[MD_T] + away[MD_T]], norm2 * wave_at(w, momenta, q, away));
}

/* This rank's sums of right-hand side r; a time slice belongs to one thread. */
static void sum_here(const md_field x[MD_PARITIES], int r, const int origin[MD_DIMS],
                     const md_momenta *momenta, const waves *w, md_sum *sum) {
  const md_geometry *g = x[0].geometry;
  const int64_t slice = g->sites / g->local[MD_T];
#pragma omp parallel for schedule(static)
  for (int t = 0; t < g->local[MD_T]; t++)
    for (int p = 0; p < MD_PARITIES; p++)
      for (int64_t i = t * slice; i < (t + 1) * slice; i++) {
        int at[MD_DIMS];
        md_global_coordinates(g, p, i, at);
        add_site(&x[p], i, r, at, origin, momenta, w, sum);
      }
}

md_status md_pion_correlators(md_context *context, const md_field x[MD_PARITIES],
                              const int (*origin)[MD_DIMS], const md_momenta *momenta,
                              double *correlators) {
  const int count = momenta->count * x[0].geometry->global[MD_T];
  const size_t bytes = (size_t)count * sizeof(md_sum);
  waves w;
  md_status status = make_waves(context, x[0].geometry, momenta, &w);
  md_sum *sum = malloc(bytes);
  if (status == MD_OK && !sum) status = md_fail_memory(context, bytes, "correlators");
  status = md_agree(context, status);
  for (int r = 0; r < x[0].n_rhs && status == MD_OK; r++) {
    for (int i = 0; i < count; i++) sum[i] = (md_sum){0};
    sum_here(x, r, origin[r], momenta, &w, sum);
    status = md_sum_finish(context, sum, count, correlators + (size_t)r * (size_t)count);
  }
  MD_FREE(sum, w.table);
  return status;
}

md_status md_chiral_condensate(md_context *context, const md_field b[MD_PARITIES],
                               const md_field x[MD_PARITIES], double *estimates) {
  double odd[MD_MAX_RHS];
  MD_TRY(md_linear_dot(context, &b[MD_EVEN], &x[MD_EVEN], NULL, estimates));
  MD_TRY(md_linear_dot(context, &b[MD_ODD], &x[MD_ODD], NULL, odd));
  for (int r = 0; r < x[0].n_rhs; r++)
    estimates[r] = (estimates[r] + odd[r]) / (double)x[0].geometry->volume;
  return MD_OK;
}
