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
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, true);
  md_gauge gauge;
  md_field a, b, da, db;
  double left[MD_MAX_RHS], right[MD_MAX_RHS], na[MD_MAX_RHS], nb[MD_MAX_RHS];
  char name[128];
  md_test_random_gauge(context, g, 5, &gauge);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_EVEN, 1, &a);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_ODD, 2, &b);
  hop_in_double(context, c, &gauge, &b, &db);
  hop_in_double(context, c, &gauge, &a, &da);
  md_linear_dot(context, &a, &db, left);
  md_linear_dot(context, &da, &b, right);
  md_linear_norm2(context, &a, na);
  md_linear_norm2(context, &db, nb);
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(fabs(left[r] + right[r]), case_tolerance(c) * sqrt(na[r] * nb[r]),
                       case_name(c, name, sizeof name));
  md_field *all[] = {&a, &b, &da, &db};
  for (int i = 0; i < 4; i++) md_field_destroy(all[i]);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void deo_is_minus_doe_dagger(void **state) {
  const int n_rhs[] = {1, 4};
  each_backend_case(*state, n_rhs, 2, antihermitian);
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

static void covariant(md_context *context, const backend_case *c) {
  md_geometry *g = md_test_geometry(context, 4, 4, 8, 4, false);
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_LINK_REALS, 1, false};
  md_gauge gauge;
  md_field transform[2], v, dv, rotated_dv;
  char name[128];
  md_test_random_gauge(context, g, 5, &gauge);
  md_test_random_field(context, g, MD_DOUBLE, c->request.n_rhs, MD_EVEN, 1, &v);
  for (int p = 0; p < 2; p++)
    MD_REQUIRE(context, md_field_create(context, g, &shape, p, &transform[p]));
  hop_in_double(context, c, &gauge, &v, &dv);
  MD_REQUIRE(context, md_gauge_transform(context, &gauge, 23, transform));
  rotate(&transform[MD_EVEN], &v);
  rotate(&transform[MD_ODD], &dv);
  hop_in_double(context, c, &gauge, &v, &rotated_dv);
  md_require_at_most(md_test_distance(context, &rotated_dv, &dv), 2 * case_tolerance(c),
                     case_name(c, name, sizeof name));
  md_field *all[] = {&v, &dv, &rotated_dv, &transform[0], &transform[1]};
  for (int i = 0; i < 5; i++) md_field_destroy(all[i]);
  md_gauge_destroy(&gauge);
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
  MD_REQUIRE(context, md_dirac_m(context, &dirac, mass, once, in));
  MD_REQUIRE(context, md_dirac_m_dagger(context, &dirac, mass, minus, in));
  MD_REQUIRE(context, md_dirac_m_dagger(context, &dirac, mass, twice, once));
  /* <v, M^dag M v> = |M v|^2 = m^2 |v|^2 + |D v|^2; M^dag v is m v - D v */
  md_linear_norm2(context, &in[MD_EVEN], norm);
  md_linear_norm2(context, &once[MD_ODD], hopped);
  md_linear_dot(context, &once[MD_ODD], &minus[MD_ODD], product);
  for (int r = 0; r < c->request.n_rhs; r++)
    md_require_at_most(fabs(product[r] + hopped[r]), 8.0 * roundoff * hopped[r],
                       case_name(c, name, sizeof name));
  MD_REQUIRE(context, md_dirac_mdag_m(context, &dirac, mass, &work, &in[MD_EVEN], &minus[MD_ODD]));
  md_linear_dot(context, &in[MD_EVEN], &work, product);
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
  each_backend_case(*state, n_rhs, 2, covariant);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(deo_is_minus_doe_dagger),
    cmocka_unit_test(gauge_covariance),
    cmocka_unit_test(m_dagger_m),
};
MD_RUN_TESTS(tests)
