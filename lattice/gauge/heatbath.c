#include "lattice/gauge/heatbath.h"
#include "base/device.h"
#include "lattice/fields/sum.h"
#include "lattice/gauge/cuda/heatbath_device.h"
#include "lattice/gauge/staples.h"
#include "lattice/gauge/su3_lanes.h"
#include "lattice/halo/halo.h"

#include <stdlib.h>

/* Staples without corner halos. The sum over staples of U_mu(x) in the plane (mu, nu) is
 *   upper  U_nu(x) U_mu(x+nu) U_nu(x+mu)^dag         from links one face away, and
 *   lower  U_nu(y)^dag U_mu(y) U_nu(y+mu), y = x-nu  made at y, where it needs only links one
 *                                                    face away; x reads it through the halo. */
struct md_heatbath {
  md_context *context;
  md_gauge *gauge;             /* the caller's, on the host */
  md_gauge there;              /* on the device; nothing where the sweeps are on the host */
  md_gauge *links;             /* the one of the two that is updated */
  md_field_shape shape;        /* of its fields */
  md_halo *halo;               /* of a link field: updated links and lower staples */
  md_field lower[MD_DIMS - 1]; /* lower staples of the planes of mu, at y */
  md_staple_kernels staples;
  md_link_renewal *renew;
  md_staple_tables tables;
};

/* Streams of the heatbath: this number with 4*sweep + mu in its low bits. */
static const uint64_t purpose_heatbath = UINT64_C(1) << 62;

/* The renewal on the host: products of eight sites at once, then link by link. */

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

/* Lower staples of the three planes of mu at the sites of `parity`. The halo of one travels while
 * the next is made. */
static md_status make_all_lower_staples(md_heatbath *h, int parity, int mu) {
  md_field *travelling = NULL;
  md_field *lower = h->lower;
  const md_matrices along = md_gauge_direction(h->links, mu);
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    const md_matrices across = md_gauge_direction(h->links, nu);
    lower->parity = parity;
    h->staples.lower(&h->tables, lower, &across, &along, mu);
    if (travelling) MD_TRY(md_halo_end(h->halo, travelling));
    MD_TRY(md_halo_begin(h->halo, lower));
    travelling = lower++;
  }
  return md_halo_end(h->halo, travelling);
}

static md_status update_links(md_heatbath *h, int parity, int mu, const md_link_update *how) {
  md_field *links = &h->links->links[parity][mu];
  MD_TRY(make_all_lower_staples(h, 1 - parity, mu));
  h->renew(&h->tables, h->links, h->lower, parity, mu, how);
  MD_TRY(md_halo_begin(h->halo, links));
  return md_halo_end(h->halo, links);
}

static md_status update_all(md_heatbath *h, const md_link_update *how) {
  for (int mu = 0; mu < MD_DIMS; mu++)
    for (int parity = 0; parity < MD_PARITIES; parity++) MD_TRY(update_links(h, parity, mu, how));
  return MD_OK;
}

md_status md_heatbath_sweep(md_heatbath *h, double beta, uint64_t seed, uint64_t sweep) {
  return update_all(
      h, &(md_link_update){.beta = beta, .seed = seed, .purpose = purpose_heatbath | sweep << 2});
}

md_status md_overrelaxation_sweep(md_heatbath *h) {
  return update_all(h, &(md_link_update){.overrelax = true});
}

md_status md_heatbath_wait(md_heatbath *h) {
  if (h->shape.space == MD_HOST) return MD_OK;
  return md_agree(h->context, md_device_synchronise(h->context));
}

/* Fills the halos of the links on the device. */
static md_status exchange(md_heatbath *h) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      MD_TRY(md_halo_begin(h->halo, &h->there.links[p][mu]));
      MD_TRY(md_halo_end(h->halo, &h->there.links[p][mu]));
    }
  return MD_OK;
}

md_status md_heatbath_take(md_heatbath *h) {
  if (h->shape.space == MD_HOST) return MD_OK;
  MD_TRY(md_agree(h->context, md_gauge_copy(h->context, &h->there, h->gauge)));
  return md_agree(h->context, exchange(h));
}

md_status md_heatbath_give(md_heatbath *h) {
  if (h->shape.space == MD_HOST) return MD_OK;
  MD_TRY(md_agree(h->context, md_gauge_copy(h->context, h->gauge, &h->there)));
  return md_gauge_exchange(h->context, h->gauge);
}

md_status md_heatbath_plaquettes(md_heatbath *h, md_plaquettes *plaquettes) {
  if (!MINIDIRAC_HAVE_CUDA || h->shape.space == MD_HOST) {
    md_gauge_observables now;
    MD_TRY(md_gauge_observe(h->context, h->gauge, &now));
    *plaquettes = (md_plaquettes){now.plaquette, now.plaquette_ss, now.plaquette_st};
    return MD_OK;
  }
  md_sum sums[2] = {0};
  double value[2];
  const md_status status = md_plaquette_sums_device(h->context, &h->tables, h->links, sums);
  MD_TRY(md_agree(h->context, status));
  MD_TRY(md_sum_finish(h->context, sums, 2, value));
  *plaquettes = md_plaquettes_of(value[0], value[1], h->gauge->geometry);
  return MD_OK;
}

int64_t md_heatbath_bytes(const md_geometry *geometry) {
  return (MD_DIMS - 1) * (md_gauge_bytes(geometry) / (MD_PARITIES * MD_DIMS));
}

int64_t md_heatbath_device_bytes(const md_geometry *geometry) {
  const int64_t neighbours = MD_PARITIES * MD_DIRECTIONS * geometry->sites;
  return md_heatbath_bytes(geometry) + md_gauge_bytes(geometry) +
         neighbours * (int64_t)sizeof(int32_t);
}

static md_status open_space(md_context *context, md_heatbath *h) {
  const md_geometry *geometry = h->gauge->geometry;
  h->links = h->gauge;
  if (h->shape.space == MD_HOST) {
    h->staples = md_staple_kernels_host();
    h->renew = renew;
    h->tables = md_staple_tables_of(geometry);
    return MD_OK;
  }
  if (!MINIDIRAC_HAVE_CUDA)
    return md_fail(context, MD_ENVIRONMENT,
                   "links cannot be made on a GPU by this build; configure it with CUDA");
  h->links = &h->there;
  h->staples = md_staple_kernels_device();
  h->renew = md_heatbath_renew_device;
  MD_TRY(md_staple_tables_create_device(context, geometry, &h->tables));
  return md_gauge_allocate(context, geometry, MD_DEVICE, &h->there);
}

static md_status create_fields(md_context *context, md_heatbath *h) {
  MD_TRY(open_space(context, h));
  for (int k = 0; k < MD_DIMS - 1; k++)
    MD_TRY(md_field_create(context, h->gauge->geometry, &h->shape, MD_EVEN, &h->lower[k]));
  return MD_OK;
}

md_status md_heatbath_create(md_context *context, md_gauge *gauge, md_space space,
                             md_heatbath **heatbath) {
  md_heatbath *h = *heatbath = calloc(1, sizeof *h);
  md_status status = MD_OK;
  if (h) {
    h->context = context;
    h->gauge = gauge;
    h->shape = (md_field_shape){MD_DOUBLE, space, MD_LINK_REALS, 1, false, false};
    status = create_fields(context, h);
  } else
    status = md_fail_memory(context, sizeof *h, "heatbath");
  status = md_agree(context, status);
  if (status == MD_OK) status = md_halo_create(context, gauge->geometry, &h->shape, NULL, &h->halo);
  if (status == MD_OK) status = md_heatbath_take(h);
  if (status != MD_OK) {
    md_heatbath_destroy(h);
    *heatbath = NULL;
  }
  return status;
}

void md_heatbath_destroy(md_heatbath *h) {
  if (!h) return;
  md_halo_destroy(h->halo);
  for (int k = 0; k < MD_DIMS - 1; k++) md_field_destroy(&h->lower[k]);
  md_gauge_destroy(&h->there);
  if (MINIDIRAC_HAVE_CUDA && h->shape.space == MD_DEVICE)
    md_staple_tables_destroy_device(&h->tables);
  free(h);
}
