/* Symmetries of the operator on every backend: <a, Deo b> = -<Doe a, b>, gauge covariance,
 and M^dag M = m^2 - Deo Doe. */
#include "backend_cases.h"
#include "lattice/fields/linear.h"
#include "lattice/gauge/su3.h"

#include <math.h>

static void hop_in_double(md_context *context, const backend_case *c, const md_gauge *gauge,
                          const md_field *in, md_field *out) {
  md_dirac dirac;
  md_field source, result;
  case_dirac(context, c, gauge, &dirac);
  case_field(context, &dirac, in, &source);
  MD_REQUIRE(context, md_dirac_field(context, &dirac, 1 - in->parity, &result));
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &result, &source, NULL));
  host_copy(context, &result, out);
  md_field_destroy(&source);
  md_field_destroy(&result);
  md_dirac_destroy(&dirac);
}

static void antihermitian(md_context *context, const backend_case *c) {
  const int dims[MD_DIMS] = {8, 4, 4, 4};
  md_geometry *g = md_test_action_geometry(context, c->request.action, dims, true);
  md_gauge gauge[MD_MOST_LINK_FIELDS];
  md_field a, b, da, db;
  double left[MD_MAX_RHS], right[MD_MAX_RHS], na[MD_MAX_RHS], nb[MD_MAX_RHS];
  char name[128];
  md_test_random_links(context, g, c->request.action, 5, gauge);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_EVEN, 1, &a);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_ODD, 2, &b);
  hop_in_double(context, c, gauge, &b, &db);
  hop_in_double(context, c, gauge, &a, &da);
  MD_REQUIRE(context, md_linear_dot(context, &a, &db, NULL, left));
  MD_REQUIRE(context, md_linear_dot(context, &da, &b, NULL, right));
  MD_REQUIRE(context, md_linear_norm2(context, &a, NULL, na));
  MD_REQUIRE(context, md_linear_norm2(context, &db, NULL, nb));
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(fabs(left[r] + right[r]), case_tolerance(c) * sqrt(na[r] * nb[r]),
                       case_name(c, name, sizeof name));
  md_field *all[] = {&a, &b, &da, &db};
  for (int i = 0; i < 4; i++) md_field_destroy(all[i]);
  md_test_destroy_links(c->request.action, gauge);
  md_geometry_destroy(g);
}

static void deo_is_minus_doe_dagger(void **state) {
  const int n_rhs[] = {1, 4};
  each_physics_case(*state, n_rhs, 2, antihermitian);
}

/* v(x) -> g(x) v(x) */
static void rotate(const md_field *transform, md_field *v) {
  for (int64_t i = 0; i < v->sites; i++) {
    double u[18], out[MD_FERMION_REALS * MD_MAX_RHS];
    md_field_get(transform, i, 0, u);
    for (int r = 0; r < v->n_rhs; r++) {
      double x[6];
      md_field_get(v, i, r, x);
      for (int k = 0; k < 3; k++) {
        double re = 0.0, im = 0.0;
        for (int j = 0; j < 3; j++) {
          const double *e = u + 2 * (3 * k + j);
          re += e[0] * x[2 * j] - e[1] * x[2 * j + 1];
          im += e[0] * x[2 * j + 1] + e[1] * x[2 * j];
        }
        out[6 * r + 2 * k] = re;
        out[6 * r + 2 * k + 1] = im;
      }
    }
    md_field_set(v, i, out);
  }
}

/* F_mu(x) -> g(x) F_mu(x) g(x + hop mu)^dag */
static void transform_links(md_context *context, int hop, const md_field transform[2],
                            md_gauge *field) {
  const md_geometry *geometry = field->geometry;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
      for (int64_t i = 0; i < geometry->sites; i++) {
        double g[18], h[18], u[18], gu[18];
        md_field_get(&transform[p], i, 0, g);
        md_field_get(&transform[1 - p], md_neighbours(geometry, hop, p, mu)[i], 0, h);
        md_gauge_get(field, p, mu, i, u);
        md_su3_multiply(gu, g, u);
        md_su3_multiply_adjoint(u, gu, h);
        md_gauge_set(field, p, mu, i, u);
      }
  MD_REQUIRE(context, md_gauge_exchange(context, field));
}

/* Random g(x) in SU(3): what md_test_transform makes of unit links. */
static void random_transform(md_context *context, const md_geometry *g,
                             md_field transform[MD_PARITIES]) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_LINK_REALS, 1, false, false};
  md_gauge unit;
  md_halo *halo;
  MD_REQUIRE(context, md_gauge_create(context, g, &unit));
  for (int p = 0; p < MD_PARITIES; p++)
    MD_REQUIRE(context, md_field_create(context, g, &shape, p, &transform[p]));
  md_test_transform(context, &unit, 23, transform);
  MD_REQUIRE(context, md_halo_create(context, g, &shape, NULL, &halo));
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_REQUIRE(context, md_halo_begin(halo, &transform[p]));
    MD_REQUIRE(context, md_halo_end(halo, &transform[p]));
  }
  md_halo_destroy(halo);
  md_gauge_destroy(&unit);
}

static void covariant(md_context *context, const backend_case *c) {
  const md_action_data *action = md_action_get(c->request.action);
  const int dims[MD_DIMS] = {4, 4, 8, 4};
  md_geometry *g = md_test_action_geometry(context, c->request.action, dims, false);
  md_gauge gauge[MD_MOST_LINK_FIELDS];
  md_field transform[2], v, dv, rotated_dv;
  char name[128];
  md_test_random_links(context, g, c->request.action, 5, gauge);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_EVEN, 1, &v);
  random_transform(context, g, transform);
  hop_in_double(context, c, gauge, &v, &dv);
  for (int f = 0; f < action->fields; f++)
    transform_links(context, action->field[f].hop, transform, &gauge[f]);
  rotate(&transform[MD_EVEN], &v);
  rotate(&transform[MD_ODD], &dv);
  hop_in_double(context, c, gauge, &v, &rotated_dv);
  md_require_at_most(md_test_distance(context, &rotated_dv, &dv), 2 * case_tolerance(c),
                     case_name(c, name, sizeof name));
  md_field *all[] = {&v, &dv, &rotated_dv, &transform[0], &transform[1]};
  for (int i = 0; i < 5; i++) md_field_destroy(all[i]);
  md_test_destroy_links(c->request.action, gauge);
  md_geometry_destroy(g);
}

/* M^dag M of the even sites, in one go and by M^dag after M, on a source of even sites alone: both
 * are (m^2 - Deo Doe) v; M^dag is m - D on both parities. */
static void squares(md_context *context, const backend_case *c) {
  const double mass = 0.7, roundoff = md_precision_roundoff(c->request.precision);
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, true);
  md_gauge gauge;
  md_dirac dirac;
  md_field v, in[MD_PARITIES], once[MD_PARITIES], twice[MD_PARITIES], minus[MD_PARITIES], work;
  double product[MD_MAX_RHS], norm[MD_MAX_RHS], hopped[MD_MAX_RHS];
  char name[128];
  md_test_random_gauge(context, g, 5, &gauge);
  case_dirac(context, c, &gauge, &dirac);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_EVEN, 3, &v);
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_REQUIRE(context, md_dirac_field(context, &dirac, p, &in[p]));
    MD_REQUIRE(context, md_dirac_field(context, &dirac, p, &once[p]));
    MD_REQUIRE(context, md_dirac_field(context, &dirac, p, &twice[p]));
    MD_REQUIRE(context, md_dirac_field(context, &dirac, p, &minus[p]));
    md_linear_zero(&in[p]);
  }
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, &work));
  MD_REQUIRE(context, md_field_convert(context, &in[MD_EVEN], &v));
  MD_REQUIRE(context, md_dirac_m(context, &dirac, mass, 1.0, once, in));
  MD_REQUIRE(context, md_dirac_m(context, &dirac, mass, -1.0, minus, in));
  MD_REQUIRE(context, md_dirac_m(context, &dirac, mass, -1.0, twice, once));
  /* <v, M^dag M v> = |M v|^2 = m^2 |v|^2 + |D v|^2; M^dag v is m v - D v */
  MD_REQUIRE(context, md_linear_norm2(context, &in[MD_EVEN], NULL, norm));
  MD_REQUIRE(context, md_linear_norm2(context, &once[MD_ODD], NULL, hopped));
  MD_REQUIRE(context, md_linear_dot(context, &once[MD_ODD], &minus[MD_ODD], NULL, product));
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(fabs(product[r] + hopped[r]), 8.0 * roundoff * hopped[r],
                       case_name(c, name, sizeof name));
  MD_REQUIRE(context, md_dirac_mdag_m(context, &dirac, mass, &work, &in[MD_EVEN], &minus[MD_ODD]));
  MD_REQUIRE(context, md_linear_dot(context, &in[MD_EVEN], &work, NULL, product));
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(fabs(product[r] / (mass * mass * norm[r] + hopped[r]) - 1.0), 8.0 * roundoff,
                       case_name(c, name, sizeof name));
  md_field one, other;
  host_copy(context, &work, &one);
  host_copy(context, &twice[MD_EVEN], &other);
  md_require_at_most(md_test_distance(context, &one, &other), 8.0 * roundoff, name);
  md_field *all[] = {&v, &work, &one, &other};
  for (int i = 0; i < 4; i++) md_field_destroy(all[i]);
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field *both[] = {&in[p], &once[p], &twice[p], &minus[p]};
    for (int i = 0; i < 4; i++) md_field_destroy(both[i]);
  }
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void m_dagger_m(void **state) {
  const int n_rhs[] = {1, 4};
  each_backend_case(*state, n_rhs, 2, squares);
}

static void gauge_covariance(void **state) {
  const int n_rhs[] = {1, 2};
  each_physics_case(*state, n_rhs, 2, covariant);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(deo_is_minus_doe_dagger),
    cmocka_unit_test(gauge_covariance),
    cmocka_unit_test(m_dagger_m),
};
MD_RUN_TESTS(tests)
