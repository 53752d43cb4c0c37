#include "lattice/gauge/staples.h"
#include "lattice/gauge/staple_kernels.h"
#include "lattice/halo/halo.h"

#include <stdlib.h>

/* Every path is nested staples: with S_nu(A), the sum of both staples about A in the planes of nu,
 *   fat = one U + sum_nu S_nu( three U + sum_rho S_rho( five U + seven S_sigma(U) ) )
 * where nu, rho, sigma are the three directions transverse to mu in every order; a Lepage path is
 * an upper staple about an upper staple or a lower one about a lower one. So all take twelve
 * double staples for each mu. */
enum { PLANES = MD_DIMS - 1 };
/* The intermediate fields: 3-link staples of the planes of mu, and three more. */
enum { UPPER, LOWER = PLANES, INNER = 2 * PLANES, OUTER, FAR }; /* of MD_STAPLE_MATRICES */

struct md_staples {
  md_halo *halo;
  md_staple_kernels kernels;
  md_staple_tables tables;
  md_field_shape shape;
  const md_geometry *geometry;
  md_matrices at[MD_STAPLE_MATRICES];
  md_progress progress;
  int passes, done;
};

static md_status allocate_all(md_context *context, md_staples *s) {
  for (int k = 0; k < MD_STAPLE_MATRICES; k++)
    for (int p = 0; p < MD_PARITIES; p++)
      MD_TRY(md_field_create(context, s->geometry, &s->shape, p, &s->at[k].at[p]));
  return MD_OK;
}

static md_status open_space(md_context *context, md_staples *s) {
  if (s->shape.space == MD_HOST) {
    s->kernels = md_staple_kernels_host();
    s->tables = md_staple_tables_of(s->geometry);
    return MD_OK;
  }
  if (!MINIDIRAC_HAVE_CUDA)
    return md_fail(context, MD_ENVIRONMENT,
                   "links cannot be smeared on a GPU by this build; configure it with CUDA");
  s->kernels = md_staple_kernels_device();
  return md_staple_tables_create_device(context, s->geometry, &s->tables);
}

md_status md_staples_create(md_context *context, const md_geometry *geometry, md_space space,
                            const char *label, int passes, md_staples **staples) {
  md_staples *s = calloc(1, sizeof *s);
  *staples = NULL;
  md_status status = s ? MD_OK : md_fail_memory(context, sizeof *s, "staples");
  if (status == MD_OK) {
    s->geometry = geometry;
    s->shape = (md_field_shape){MD_DOUBLE, space, MD_LINK_REALS, 1, false, false};
    s->passes = passes;
    s->progress = md_progress_start(context, label);
    status = open_space(context, s);
  }
  if (status == MD_OK) status = allocate_all(context, s);
  status = md_agree(context, status);
  if (status == MD_OK) status = md_halo_create(context, geometry, &s->shape, NULL, &s->halo);
  if (status != MD_OK) {
    md_staples_destroy(s);
    return status;
  }
  *staples = s;
  return MD_OK;
}

void md_staples_destroy(md_staples *s) {
  if (!s) return;
  md_progress_stop(&s->progress);
  md_halo_destroy(s->halo);
  for (int k = 0; k < MD_STAPLE_MATRICES; k++)
    for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&s->at[k].at[p]);
  if (MINIDIRAC_HAVE_CUDA && s->shape.space == MD_DEVICE)
    md_staple_tables_destroy_device(&s->tables);
  free(s);
}

const md_staple_kernels *md_staples_kernels(const md_staples *s) {
  return &s->kernels;
}

const md_staple_tables *md_staples_tables(const md_staples *s) {
  return &s->tables;
}

static md_status exchange(md_staples *s, md_matrices *matrices) {
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(md_halo_begin(s->halo, &matrices->at[p]));
    MD_TRY(md_halo_end(s->halo, &matrices->at[p]));
  }
  return MD_OK;
}

md_status md_staples_exchange_gauge(md_staples *s, md_gauge *gauge) {
  for (int mu = 0; mu < MD_DIMS; mu++) {
    md_matrices links = md_gauge_direction(gauge, mu);
    MD_TRY(exchange(s, &links));
  }
  return MD_OK;
}

/* s->at[FAR] = the lower staples about a in the planes of nu, at the sites below, halo exchanged.
 */
static md_status make_far(md_staples *s, const md_matrices *u, const md_matrices *a, int mu,
                          int nu) {
  for (int p = 0; p < MD_PARITIES; p++)
    s->kernels.lower(&s->tables, &s->at[FAR].at[p], &u[nu], a, mu);
  return exchange(s, &s->at[FAR]);
}

/* out += the upper staples about `above` and the lower ones about `below`, halos exchanged. */
static md_status add_staples(md_staples *s, const md_matrices *u, const md_matrices *above,
                             const md_matrices *below, int mu, int nu, md_matrices *out) {
  MD_TRY(make_far(s, u, below, mu, nu));
  s->kernels.staple(&s->tables, out, out, &u[nu], above, &s->at[FAR], mu, nu);
  return MD_OK;
}

/* Where the staples of the plane (mu, nu) are kept. */
static int slot_of(int mu, int nu) {
  return nu < mu ? nu : nu - 1;
}

static md_status make_first_level(md_staples *s, const md_matrices *u, int mu) {
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    MD_TRY(make_far(s, u, &u[mu], mu, nu));
    s->kernels.shift(&s->tables, &s->at[LOWER + slot_of(mu, nu)], &s->at[FAR], MD_DIMS + nu);
    s->kernels.staple(&s->tables, &s->at[UPPER + slot_of(mu, nu)], NULL, &u[nu], &u[mu], NULL, mu,
                      nu);
  }
  return MD_OK;
}

/* s->at[OUTER] = three U + sum over rho of S_rho(five U + seven S_sigma(U)) */
static md_status make_second_level(md_staples *s, const md_matrices *u, int mu, int nu,
                                   const md_path_weights *w) {
  s->kernels.combine(&s->at[OUTER], w->three, &u[mu], 0.0, NULL, NULL);
  if (w->five == 0.0 && w->seven == 0.0) return MD_OK;
  for (int rho = 0; rho < MD_DIMS; rho++) {
    if (rho == mu || rho == nu) continue;
    const int sigma = slot_of(mu, 0 + 1 + 2 + 3 - mu - nu - rho);
    const bool deep = w->seven != 0.0;
    s->kernels.combine(&s->at[INNER], w->five, &u[mu], w->seven,
                       deep ? &s->at[UPPER + sigma] : NULL, deep ? &s->at[LOWER + sigma] : NULL);
    MD_TRY(exchange(s, &s->at[INNER]));
    MD_TRY(add_staples(s, u, &s->at[INNER], &s->at[INNER], mu, rho, &s->at[OUTER]));
  }
  return MD_OK;
}

md_status md_staples_fat(md_staples *s, const md_matrices u[MD_DIMS], int mu,
                         const md_path_weights *w, md_matrices *out) {
  if (w->seven != 0.0 || w->lepage != 0.0) MD_TRY(make_first_level(s, u, mu));
  s->kernels.combine(out, w->one, &u[mu], 0.0, NULL, NULL);
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    const int slot = slot_of(mu, nu);
    const md_matrices *below = &s->at[OUTER];
    MD_TRY(make_second_level(s, u, mu, nu, w));
    if (w->lepage != 0.0) {
      s->kernels.combine(&s->at[INNER], 1.0, &s->at[OUTER], w->lepage, &s->at[LOWER + slot], NULL);
      s->kernels.combine(&s->at[OUTER], 1.0, &s->at[OUTER], w->lepage, &s->at[UPPER + slot], NULL);
      below = &s->at[INNER];
    }
    MD_TRY(exchange(s, &s->at[OUTER]));
    MD_TRY(add_staples(s, u, &s->at[OUTER], below, mu, nu, out));
    md_progress_update(&s->progress, (s->done + (slot + 1.0) / PLANES) / s->passes, "%d of %d",
                       s->done + 1, s->passes);
  }
  s->done++;
  return MD_OK;
}

md_status md_staples_triple(md_staples *s, const md_matrices *u, int mu, md_matrices *out) {
  s->kernels.multiply(&s->tables, &s->at[FAR], u, u, mu);
  MD_TRY(exchange(s, &s->at[FAR]));
  s->kernels.multiply(&s->tables, out, u, &s->at[FAR], mu);
  return MD_OK;
}
