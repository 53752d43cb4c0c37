#include "lattice/gauge/heatbath_kernels.h"
#include "lattice/gauge/su3_lanes.h"

/* The steps of the heatbath on the host: products of eight sites at once, then link by link. */

static void make_lower(const md_staple_tables *tables, const md_gauge *gauge, int parity, int mu,
                       int nu, md_field *lower) {
  const int32_t *across = tables->to[parity][mu];
#pragma omp parallel for schedule(static)
  for (int64_t y = 0; y < gauge->geometry->sites; y += MD_LANES) {
    md_su3_lanes a, b, c;
    md_lanes_load(&a, &gauge->links[parity][nu], y);
    md_lanes_load(&b, &gauge->links[parity][mu], y);
    md_lanes_adjoint_multiply(&c, &a, &b);
    md_lanes_gather(&a, &gauge->links[1 - parity][nu], across + y);
    md_lanes_multiply(&b, &c, &a);
    md_lanes_store(&b, lower, y);
  }
}

/* Sums of the six staples of the links of direction mu at MD_LANES sites from `site` on. */
static void sum_staples(const md_staple_tables *tables, const md_gauge *gauge,
                        const md_field *lower, int parity, int mu, int64_t site,
                        md_su3_lanes *sum) {
  const int32_t *const *to = tables->to[parity];
  *sum = (md_su3_lanes){0};
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    md_su3_lanes a, b, c;
    md_lanes_load(&a, &gauge->links[parity][nu], site);
    md_lanes_gather(&b, &gauge->links[1 - parity][mu], to[nu] + site);
    md_lanes_multiply(&c, &a, &b);
    md_lanes_gather(&a, &gauge->links[1 - parity][nu], to[mu] + site);
    md_lanes_multiply_adjoint(&b, &c, &a);
    md_lanes_gather(&a, lower++, to[MD_DIMS + nu] + site);
    for (int k = 0; k < MD_LINK_REALS; k++)
      for (int l = 0; l < MD_LANES; l++) sum->c[k][l] += b.c[k][l] + a.c[k][l];
  }
}

static void renew(const md_staple_tables *tables, md_gauge *gauge, const md_field *lower,
                  int parity, int mu, const md_link_update *how) {
  const md_geometry *g = gauge->geometry;
#pragma omp parallel for schedule(static)
  for (int64_t site = 0; site < g->sites; site += MD_LANES) {
    md_su3_lanes sum;
    sum_staples(tables, gauge, lower, parity, mu, site, &sum);
    for (int l = 0; l < MD_LANES; l++) {
      int x[MD_DIMS];
      double u[MD_LINK_REALS], staples[MD_LINK_REALS];
      md_global_coordinates(g, parity, site + l, x);
      md_random random =
          md_random_begin(how->seed, how->purpose | (uint64_t)mu, (uint64_t)md_global_index(g, x));
      for (int k = 0; k < MD_LINK_REALS; k++) staples[k] = sum.c[k][l];
      md_gauge_get(gauge, parity, mu, site + l, u);
      md_link_renew(u, staples, how, &random);
      md_gauge_set(gauge, parity, mu, site + l, u);
    }
  }
}

md_heatbath_kernels md_heatbath_kernels_host(void) {
  return (md_heatbath_kernels){make_lower, renew};
}
