/* Links that are multiples c_f of the unit matrix: the plane wave exp(i p x) on the sites of one
 * parity is an eigenvector of Deo Doe (or Doe Deo) with eigenvalue -sum_mu s_mu^2, s_mu = sum over
 * link fields of c_f sin(hop_f p_mu); sin p_mu for one field of unit links. p_mu = 2 pi n / L, and
 * (2 n + 1) pi / L in t with antiperiodic boundary; an imaginary chemical potential adds to p_t. */
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

/* Tree-level coefficients of the Naik-improved derivative: 9/8 - 1/24 * 3 = 1 at small momentum. */
static const double coefficient[MD_MOST_LINK_FIELDS] = {9.0 / 8.0, -1.0 / 24.0};

static double eigenvalue_of(const backend_case *c, const int n[4]) {
  const md_action_data *action = md_action_get(c->request.action);
  double eigenvalue = 0.0;
  for (int mu = 0; mu < MD_DIMS; mu++) {
    const double shift = mu == MD_T ? c->request.twist.imaginary_mu : 0.0;
    const double p = momentum(c, n, mu) * 2.0 * M_PI / TURN + shift;
    double s = 0.0;
    for (int f = 0; f < action->fields; f++)
      s += (action->fields == 1 ? 1.0 : coefficient[f]) * sin(action->field[f].hop * p);
    eigenvalue -= s * s;
  }
  return eigenvalue;
}

static void check_momentum(md_context *context, const backend_case *c, md_dirac *dirac,
                           const int n[4], int parity) {
  md_field wave, v, dv, ddv, got;
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, c->request.n_rhs, true, false};
  const double eigenvalue = eigenvalue_of(c, n);
  char name[128];
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

/* c times the unit matrix; as if it were filled by md_gauge_exchange. */
static void unit_links(md_context *context, const md_geometry *g, double c, md_gauge *gauge) {
  MD_REQUIRE(context, md_gauge_create(context, g, gauge));
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_field *f = &gauge->links[p][mu];
      for (int64_t i = 0; i < MD_LINK_REALS * f->stride; i++) ((double *)f->data)[i] *= c;
    }
}

static void check_spectrum(md_context *context, const backend_case *c) {
  const int fields = md_action_get(c->request.action)->fields;
  if (case_is_spared(c)) return;
  md_geometry *g = md_test_action_geometry(context, c->request.action, extents, false);
  md_gauge gauge[MD_MOST_LINK_FIELDS];
  for (int f = 0; f < fields; f++)
    unit_links(context, g, fields == 1 ? 1.0 : coefficient[f], &gauge[f]);
  for (int antiperiodic = 0; antiperiodic < 2; antiperiodic++) {
    backend_case now = *c;
    md_dirac dirac;
    now.request.antiperiodic = antiperiodic;
    now.request.twist.flux = 0; /* its spectrum is that of test_flux */
    case_dirac(context, &now, gauge, &dirac);
    for (size_t m = 0; m < sizeof momenta / sizeof *momenta; m++)
      for (int parity = 0; parity < MD_PARITIES; parity++)
        check_momentum(context, &now, &dirac, momenta[m], parity);
    md_dirac_destroy(&dirac);
  }
  md_test_destroy_links(c->request.action, gauge);
  md_geometry_destroy(g);
}

static void spectrum_is_the_sine_of_momentum(void **state) {
  const int n_rhs[] = {1, 2};
  each_physics_case(*state, n_rhs, 2, check_spectrum);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(spectrum_is_the_sine_of_momentum)};
MD_RUN_TESTS(tests)
