#include "lattice/gauge/heatbath.h"
#include "lattice/gauge/su3.h"
#include "lattice/gauge/su3_lanes.h"
#include "lattice/halo/halo.h"

#include <stdlib.h>

/* Staples without corner halos. The sum over staples of U_mu(x) in the plane (mu, nu) is
 *   upper  U_nu(x) U_mu(x+nu) U_nu(x+mu)^dag         from links one face away, and
 *   lower  U_nu(y)^dag U_mu(y) U_nu(y+mu), y = x-nu  made at y, where it needs only links one
 *                                                    face away; x reads it through the halo. */
struct md_heatbath {
  md_gauge *gauge;
  md_halo *halo;               /* of a link field: updated links and lower staples */
  md_field lower[MD_DIMS - 1]; /* lower staples of the planes of mu, at y */
};

/* What is done with a link, and the random numbers for it. */
typedef struct update {
  bool overrelax;
  double beta;
  uint64_t seed, purpose;
} update;

/* Streams of the heatbath: this number with 4*sweep + mu in its low bits. */
static const uint64_t purpose_heatbath = UINT64_C(1) << 62;

/* a[0] + i a . sigma; in SU(2) when of length 1. */
typedef struct quaternion {
  double a[4];
} quaternion;

static quaternion multiply(quaternion x, quaternion y) {
  const double *a = x.a, *b = y.a;
  return (quaternion){{a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
                       a[0] * b[1] + a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
                       a[0] * b[2] + a[2] * b[0] - a[3] * b[1] + a[1] * b[3],
                       a[0] * b[3] + a[3] * b[0] - a[1] * b[2] + a[2] * b[1]}};
}

/* The quaternion r with Re tr(s w) = Re tr(s r) for every s in SU(2), w being rows and columns
 * i, j of `matrix`. Returns its length and assigns the adjoint of r / length (1 when r = 0). */
static double project(const double *matrix, int i, int j, quaternion *adjoint) {
  const double *ii = matrix + 8 * i, *jj = matrix + 8 * j;
  const double *ij = matrix + 6 * i + 2 * j, *ji = matrix + 6 * j + 2 * i;
  const double r[4] = {0.5 * (ii[0] + jj[0]), 0.5 * (ij[1] + ji[1]), 0.5 * (ij[0] - ji[0]),
                       0.5 * (ii[1] - jj[1])};
  const double length = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
  const double scale = length > 0.0 ? 1.0 / length : 0.0;
  *adjoint = (quaternion){
      {length > 0.0 ? r[0] * scale : 1.0, -r[1] * scale, -r[2] * scale, -r[3] * scale}};
  return length;
}

/* matrix = s matrix, s acting on rows i and j. */
static void rotate(double *matrix, int i, int j, quaternion s) {
  const double *a = s.a;
  double *u = matrix + 6 * i, *v = matrix + 6 * j;
  for (int c = 0; c < 6; c += 2) {
    const double ur = u[c], ui = u[c + 1], vr = v[c], vi = v[c + 1];
    u[c] = a[0] * ur - a[3] * ui + a[2] * vr - a[1] * vi;
    u[c + 1] = a[0] * ui + a[3] * ur + a[2] * vi + a[1] * vr;
    v[c] = -a[2] * ur - a[1] * ui + a[0] * vr + a[3] * vi;
    v[c + 1] = -a[2] * ui + a[1] * ur + a[0] * vi - a[3] * vr;
  }
}

double md_heatbath_draw(md_random *random, double z) {
  double x = 0.0, accept = 0.0;
  if (z < 1.0) { /* Kennedy and Pendleton would reject nearly all: draw uniformly instead */
    do {
      x = 2.0 * md_random_uniform(random) - 1.0;
      accept = sqrt(1.0 - x * x) * exp(z * (x - 1.0));
    } while (md_random_uniform(random) > accept);
    return x;
  }
  double square, last; /* x = 1 - 2 square */
  do {
    const double cosine = cos(6.283185307179586 * md_random_uniform(random));
    square = log(md_random_uniform(random));
    square += cosine * cosine * log(md_random_uniform(random));
    square *= -0.5 / z;
    last = md_random_uniform(random);
  } while (last * last > 1.0 - square);
  return 1.0 - 2.0 * square;
}

/* A random element of SU(2) with the weight exp(z/2 tr s). */
static quaternion draw_su2(md_random *random, double z) {
  const double x = md_heatbath_draw(random, z);
  const double length = sqrt(fmax(0.0, 1.0 - x * x));
  const double cosine = 2.0 * md_random_uniform(random) - 1.0;
  const double sine = sqrt(fmax(0.0, 1.0 - cosine * cosine));
  const double angle = 6.283185307179586 * md_random_uniform(random);
  return (quaternion){{x, length * sine * cos(angle), length * sine * sin(angle), length * cosine}};
}

/* u = s u for an s of each SU(2) subgroup in turn. The action of the link is
 * -beta/3 Re tr(u staples^dag). */
static void update_link(double u[MD_LINK_REALS], const double staples[MD_LINK_REALS],
                        const update *how, md_random *random) {
  static const int rows[3][2] = {{0, 1}, {0, 2}, {1, 2}};
  double product[MD_LINK_REALS];
  md_su3_multiply_adjoint(product, u, staples);
  for (int k = 0; k < 3; k++) {
    const int i = rows[k][0], j = rows[k][1];
    quaternion adjoint;
    const double length = project(product, i, j, &adjoint);
    const quaternion target =
        how->overrelax ? adjoint : draw_su2(random, 2.0 / 3.0 * how->beta * length);
    const quaternion s = multiply(target, adjoint); /* s r/|r| = target */
    rotate(product, i, j, s);
    rotate(u, i, j, s);
  }
  md_su3_reunitarise(u);
}

static void make_lower_staples(md_heatbath *h, int parity, int mu, int nu, md_field *lower) {
  const md_gauge *gauge = h->gauge;
  const int32_t *across = gauge->geometry->neighbour[parity][mu];
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

/* Lower staples of the three planes of mu at the sites of `parity`. The halo of one travels while
 * the next is made. */
static md_status make_all_lower_staples(md_heatbath *h, int parity, int mu) {
  md_field *travelling = NULL;
  md_field *lower = h->lower;
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    lower->parity = parity;
    make_lower_staples(h, parity, mu, nu, lower);
    if (travelling) MD_TRY(md_halo_end(h->halo, travelling));
    MD_TRY(md_halo_begin(h->halo, lower));
    travelling = lower++;
  }
  return md_halo_end(h->halo, travelling);
}

/* Sums of the six staples of the links of direction mu at MD_LANES sites from `site` on. */
static void sum_staples(const md_heatbath *h, int parity, int mu, int64_t site, md_su3_lanes *sum) {
  const md_gauge *gauge = h->gauge;
  int32_t *const *neighbour = gauge->geometry->neighbour[parity];
  const md_field *lower = h->lower;
  *sum = (md_su3_lanes){0};
  for (int nu = 0; nu < MD_DIMS; nu++) {
    if (nu == mu) continue;
    md_su3_lanes a, b, c;
    md_lanes_load(&a, &gauge->links[parity][nu], site);
    md_lanes_gather(&b, &gauge->links[1 - parity][mu], neighbour[nu] + site);
    md_lanes_multiply(&c, &a, &b);
    md_lanes_gather(&a, &gauge->links[1 - parity][nu], neighbour[mu] + site);
    md_lanes_multiply_adjoint(&b, &c, &a);
    md_lanes_gather(&a, lower++, neighbour[4 + nu] + site);
    for (int k = 0; k < MD_LINK_REALS; k++)
      for (int l = 0; l < MD_LANES; l++) sum->c[k][l] += b.c[k][l] + a.c[k][l];
  }
}

static md_status update_links(md_heatbath *h, int parity, int mu, const update *how) {
  const md_geometry *g = h->gauge->geometry;
  md_field *links = &h->gauge->links[parity][mu];
  MD_TRY(make_all_lower_staples(h, 1 - parity, mu));
#pragma omp parallel for schedule(static)
  for (int64_t site = 0; site < g->sites; site += MD_LANES) {
    md_su3_lanes sum;
    sum_staples(h, parity, mu, site, &sum);
    for (int l = 0; l < MD_LANES; l++) {
      int x[MD_DIMS];
      double u[MD_LINK_REALS], staples[MD_LINK_REALS];
      md_global_coordinates(g, parity, site + l, x);
      md_random random =
          md_random_at(how->seed, how->purpose | (uint64_t)mu, (uint64_t)md_global_index(g, x));
      for (int k = 0; k < MD_LINK_REALS; k++) staples[k] = sum.c[k][l];
      md_gauge_get(h->gauge, parity, mu, site + l, u);
      update_link(u, staples, how, &random);
      md_gauge_set(h->gauge, parity, mu, site + l, u);
    }
  }
  MD_TRY(md_halo_begin(h->halo, links));
  return md_halo_end(h->halo, links);
}

static md_status update_all(md_heatbath *h, const update *how) {
  for (int mu = 0; mu < MD_DIMS; mu++)
    for (int parity = 0; parity < MD_PARITIES; parity++) MD_TRY(update_links(h, parity, mu, how));
  return MD_OK;
}

md_status md_heatbath_sweep(md_heatbath *h, double beta, uint64_t seed, uint64_t sweep) {
  return update_all(
      h, &(update){.beta = beta, .seed = seed, .purpose = purpose_heatbath | sweep << 2});
}

md_status md_overrelaxation_sweep(md_heatbath *h) {
  return update_all(h, &(update){.overrelax = true});
}

static md_status create_fields(md_context *context, md_heatbath *h, const md_field_shape *shape) {
  for (int k = 0; k < MD_DIMS - 1; k++)
    MD_TRY(md_field_create(context, h->gauge->geometry, shape, MD_EVEN, &h->lower[k]));
  return MD_OK;
}

md_status md_heatbath_create(md_context *context, md_gauge *gauge, md_heatbath **heatbath) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_LINK_REALS, 1, false};
  md_heatbath *h = *heatbath = calloc(1, sizeof *h);
  md_status status = MD_OK;
  if (h) {
    h->gauge = gauge;
    status = create_fields(context, h, &shape);
  } else
    status = md_fail_memory(context, sizeof *h, "heatbath");
  status = md_agree(context, status);
  if (status == MD_OK) status = md_halo_create(context, gauge->geometry, &shape, NULL, &h->halo);
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
  free(h);
}
