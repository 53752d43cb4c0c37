#include "base/statistics.h"
#include "lattice/fields/sum.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/su3.h"

#include <math.h>

/* Re tr of the plaquette of directions mu < nu at a site of parity p. */
static double plaquette_at(const md_gauge *g, md_precision in, int p, int64_t site, int mu,
                           int nu) {
  double a[18], b[18], ab[18], c[18], d[18], cd[18];
  md_gauge_get_in(g, in, p, mu, site, a);
  md_gauge_get_in(g, in, 1 - p, nu, g->geometry->neighbour[p][mu][site], b);
  md_gauge_get_in(g, in, p, nu, site, c);
  md_gauge_get_in(g, in, 1 - p, mu, g->geometry->neighbour[p][nu][site], d);
  md_su3_multiply(ab, a, b);
  md_su3_multiply(cd, c, d);
  return md_su3_trace_adjoint(ab, cd);
}

/* Square of the largest |(U U^dag - 1)_ij| or |det U - 1|; NaN where products are infinite. */
static double deviation2_of(const double u[18]) {
  double product[18], one[18], det[2];
  md_su3_multiply_adjoint(product, u, u);
  md_su3_one(one);
  md_su3_determinant(u, det);
  double largest = (det[0] - 1.0) * (det[0] - 1.0) + det[1] * det[1];
  for (int k = 0; k < 18; k += 2) {
    const double re = product[k] - one[k], im = product[k + 1];
    md_raise(&largest, re * re + im * im);
  }
  return largest;
}

static bool finite_link(const double u[18]) {
  double zero = 0.0;
  for (int k = 0; k < 18; k++) zero += 0.0 * u[k]; /* NaN when any is not finite */
  return zero == 0.0;
}

enum { SPACE, TIME, TRACE, NORM2, SUMS };

typedef struct partial {
  md_sum sum[SUMS];
  double deviation2;
  long long bad_links;
} partial;

static void observe_site(const md_gauge *g, md_precision in, int p, int64_t site, partial *mine) {
  double space = 0.0, time = 0.0, trace = 0.0;
  for (int mu = 0; mu < MD_DIMS; mu++) {
    double u[18];
    md_gauge_get_in(g, in, p, mu, site, u);
    trace += md_su3_trace(u);
    md_sum_add(&mine->sum[NORM2], md_su3_trace_adjoint(u, u));
    if (finite_link(u))
      md_raise(&mine->deviation2, deviation2_of(u));
    else
      mine->bad_links++;
    for (int nu = mu + 1; nu < MD_DIMS; nu++)
      *(nu == MD_T ? &time : &space) += plaquette_at(g, in, p, site, mu, nu);
  }
  md_sum_add(&mine->sum[SPACE], space);
  md_sum_add(&mine->sum[TIME], time);
  md_sum_add(&mine->sum[TRACE], trace);
}

md_status md_gauge_observe(md_context *context, const md_gauge *gauge,
                           md_gauge_observables *observables) {
  return md_gauge_observe_in(context, gauge, MD_DOUBLE, observables);
}

md_status md_gauge_observe_in(md_context *context, const md_gauge *gauge, md_precision precision,
                              md_gauge_observables *observables) {
  partial all = {0};
#pragma omp parallel
  {
    partial mine = {0};
    for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < gauge->geometry->sites; i++)
        observe_site(gauge, precision, p, i, &mine);
    }
#pragma omp critical
    {
      for (int s = 0; s < SUMS; s++) md_sum_merge(&all.sum[s], &mine.sum[s]);
      md_raise(&all.deviation2, mine.deviation2);
      all.bad_links += mine.bad_links;
    }
  }
  double value[SUMS];
  MD_TRY(md_sum_finish(context, all.sum, SUMS, value));
  md_maximum(context, &all.deviation2, 1);
  md_sum_integers(context, &all.bad_links, 1);
  const md_plaquettes plaquettes = md_plaquettes_of(value[SPACE], value[TIME], gauge->geometry);
  const double links = MD_DIMS * (double)gauge->geometry->volume;
  if (isnan(all.deviation2)) all.deviation2 = INFINITY;
  *observables =
      (md_gauge_observables){.plaquette = plaquettes.mean,
                             .plaquette_ss = plaquettes.space_space,
                             .plaquette_st = plaquettes.space_time,
                             .link_trace = value[TRACE] / (3.0 * links),
                             .norm2 = value[NORM2] / (3.0 * links),
                             .unitarity_deviation = all.bad_links ? NAN : sqrt(all.deviation2),
                             .bad_links = all.bad_links};
  return MD_OK;
}
