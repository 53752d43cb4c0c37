#include "lattice/gauge/gauge_start.h"
#include "lattice/gauge/su3.h"

/* Streams of the hot start: this number with mu in its low bits. */
static const uint64_t purpose_hot = UINT64_C(0x686f7400) << 32; /* "hot" */

static void start_direction(md_gauge *gauge, int parity, int mu, const uint64_t *seed) {
  const md_geometry *g = gauge->geometry;
#pragma omp parallel for schedule(static)
  for (int64_t site = 0; site < g->sites; site++) {
    double u[MD_LINK_REALS];
    md_su3_one(u);
    if (seed) {
      int x[MD_DIMS];
      md_global_coordinates(g, parity, site, x);
      md_random random =
          md_random_at(*seed, purpose_hot | (uint64_t)mu, (uint64_t)md_global_index(g, x));
      md_su3_random(&random, u);
    }
    md_gauge_set(gauge, parity, mu, site, u);
  }
}

static md_status start(md_context *context, md_gauge *gauge, const uint64_t *seed) {
  for (int parity = 0; parity < MD_PARITIES; parity++)
    for (int mu = 0; mu < MD_DIMS; mu++) start_direction(gauge, parity, mu, seed);
  return md_gauge_exchange(context, gauge);
}

md_status md_gauge_start_cold(md_context *context, md_gauge *gauge) {
  return start(context, gauge, NULL);
}

md_status md_gauge_start_hot(md_context *context, md_gauge *gauge, uint64_t seed) {
  return start(context, gauge, &seed);
}
