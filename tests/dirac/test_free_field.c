/* Unit links: the plane wave exp(i p x) on the sites of one parity is an eigenvector of Deo Doe
 * (or Doe Deo) with eigenvalue -sum_mu sin^2 p_mu, so D has the eigenvalues +-i sqrt(sum sin^2 p).
 * p_mu = 2 pi n / L, and (2 n + 1) pi / L in t with antiperiodic boundary. */
#include "backend_cases.h"

#include <math.h>

static const int extents[4] = {4, 6, 4, 8};
static const int momenta[][4] = {
    {0, 0, 0, 0}, {1, 0, 0, 0}, {1, 2, 1, 3}, {0, 1, 3, 7}, {2, 3, 2, 1}};

/* Momenta are integers times pi / 24, so that phases can be reduced to one turn exactly. */
enum { TURN = 48 };

static int momentum(const backend_case *c, const int n[4], int mu) {
  const bool shifted = mu == MD_T && c->request.antiperiodic;
  return (2 * n[mu] + (shifted ? 1 : 0)) * (TURN / 2 / extents[mu]);
}

static void plane_wave(const backend_case *c, const int n[4], md_field *v) {
  for (int64_t i = 0; i < v->sites; i++) {
    double out[MD_FERMION_REALS * MD_MAX_RHS];
    int x[MD_DIMS], turns = 0;
    md_global_coordinates(v->geometry, v->parity, i, x);
    for (int mu = 0; mu < MD_DIMS; mu++) turns += momentum(c, n, mu) * x[mu];
    const double phase = turns % TURN * 2.0 * M_PI / TURN;
    for (int k = 0; k < 3 * v->n_rhs; k++) {
      out[2 * k] = (1 + k) * cos(phase);
      out[2 * k + 1] = (1 + k) * sin(phase);
    }
    md_field_set(v, i, out);
  }
}

static void check_momentum(md_context *context, const backend_case *c, md_dirac *dirac,
                           const int n[4], int parity) {
  md_field wave, v, dv, ddv, got;
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, c->request.n_rhs, true};
  double eigenvalue = 0.0;
  char name[128];
  for (int mu = 0; mu < MD_DIMS; mu++)
    eigenvalue -= pow(sin(momentum(c, n, mu) * 2.0 * M_PI / TURN), 2);
  MD_REQUIRE(context, md_field_create(context, dirac->geometry, &host, parity, &wave));
  plane_wave(c, n, &wave);
  case_field(context, dirac, &wave, &v);
  MD_REQUIRE(context, md_dirac_field(context, dirac, 1 - parity, &dv));
  MD_REQUIRE(context, md_dirac_field(context, dirac, parity, &ddv));
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &dv, &v, NULL));
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &ddv, &dv, NULL));
  host_copy(context, &ddv, &got);
  double largest = 0.0;
  for (int64_t i = 0; i < got.sites; i++)
    for (int r = 0; r < got.n_rhs; r++) {
      double u[6], w[6];
      md_field_get(&got, i, r, u);
      md_field_get(&wave, i, r, w);
      for (int k = 0; k < 6; k++)
        largest = fmax(largest, fabs(u[k] - eigenvalue * w[k]) / (3 * r + 3));
    }
  /* Two hops, eigenvalues up to 4. */
  md_require_at_most(largest, 8.0 * case_tolerance(c), case_name(c, name, sizeof name));
  md_field *all[] = {&wave, &v, &dv, &ddv, &got};
  for (int i = 0; i < 5; i++) md_field_destroy(all[i]);
}

static void check_spectrum(md_context *context, const backend_case *c) {
  md_geometry *g = md_test_geometry(context, extents[0], extents[1], extents[2], extents[3], false);
  md_gauge gauge;
  MD_REQUIRE(context, md_gauge_create(context, g, &gauge));
  MD_REQUIRE(context, md_gauge_exchange(context, &gauge));
  for (int antiperiodic = 0; antiperiodic < 2; antiperiodic++) {
    backend_case now = *c;
    md_dirac dirac;
    now.request.antiperiodic = antiperiodic;
    case_dirac(context, &now, &gauge, &dirac);
    for (size_t m = 0; m < sizeof momenta / sizeof *momenta; m++)
      for (int parity = 0; parity < MD_PARITIES; parity++)
        check_momentum(context, &now, &dirac, momenta[m], parity);
    md_dirac_destroy(&dirac);
  }
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void spectrum_is_the_sine_of_momentum(void **state) {
  const int n_rhs[] = {1, 2};
  each_backend_case(*state, n_rhs, 2, check_spectrum);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(spectrum_is_the_sine_of_momentum)};
MD_RUN_TESTS(tests)
