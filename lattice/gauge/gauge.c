#include "lattice/gauge/gauge.h"
#include "base/memory_need.h"
#include "base/random_math.h"
#include "lattice/gauge/su3.h"
#include "lattice/halo/halo.h"

static const md_field_shape link_shape = {MD_DOUBLE, MD_HOST, MD_LINK_REALS, 1, false, false};

md_status md_gauge_allocate(md_context *context, const md_geometry *geometry, md_space space,
                            md_gauge *gauge) {
  md_field_shape shape = link_shape;
  shape.space = space;
  *gauge = (md_gauge){.geometry = geometry};
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_status status = md_field_create(context, geometry, &shape, p, &gauge->links[p][mu]);
      if (status == MD_OK) continue;
      md_gauge_destroy(gauge);
      return status;
    }
  return MD_OK;
}

md_status md_gauge_create(md_context *context, const md_geometry *geometry, md_gauge *gauge) {
  MD_TRY(md_gauge_allocate(context, geometry, MD_HOST, gauge));
  if (md_counts(context)) return MD_OK;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_field *f = &gauge->links[p][mu];
      for (int row = 0; row < 3; row++)
        for (int64_t i = 0; i < f->stride; i++) ((double *)f->data)[row * 8 * f->stride + i] = 1.0;
    }
  return MD_OK;
}

int64_t md_gauge_bytes(const md_geometry *geometry) {
  return MD_PARITIES * MD_DIMS * md_field_bytes(geometry, &link_shape);
}

void md_gauge_destroy(md_gauge *gauge) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) md_field_destroy(&gauge->links[p][mu]);
}

md_status md_gauge_exchange(md_context *context, md_gauge *gauge) {
  md_halo *halo = NULL;
  md_status status = md_halo_create(context, gauge->geometry, &link_shape, NULL, &halo);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS && status == MD_OK; mu++) {
      status = md_halo_begin(halo, &gauge->links[p][mu]);
      if (status == MD_OK) status = md_halo_end(halo, &gauge->links[p][mu]);
    }
  md_halo_destroy(halo);
  return md_agree(context, status);
}

md_status md_gauge_copy(md_context *context, md_gauge *to, const md_gauge *from) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
      MD_TRY(md_field_convert(context, &to->links[p][mu], &from->links[p][mu]));
  return MD_OK;
}

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
          md_random_begin(*seed, purpose_hot | (uint64_t)mu, (uint64_t)md_global_index(g, x));
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
