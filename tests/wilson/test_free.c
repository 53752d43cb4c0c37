/* Unit links: plane waves are eigenvectors of M^dag M of Wilson quarks, for any spin and colour,
 * with (m + sum (1 - cos p))^2 + sum sin^2 p; and domain-wall quarks of momentum zero have q = (1/D
 * - 1) b / (1 - m), D = (1 + m)/2 + (1 - m)/2 eps, eps the sign function of Ls slices at h = -(b5 +
 * c5) M5 / (2 - (b5 - c5) M5). */
#include "dirac/solvers/solver.h"
#include "lattice/fields/linear.h"
#include "wilson_support.h"

#include <math.h>

static const int dims[MD_DIMS] = {4, 4, 6, 8};

static md_gauge unit_links(md_context *context, md_geometry **g) {
  md_gauge gauge;
  *g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], false);
  MD_REQUIRE(context, md_gauge_create(context, *g, &gauge)); /* of unit matrices */
  return gauge;
}

/* Every spin and colour its own amplitude, times exp(i p x). */
static void fill(const double p[MD_DIMS], md_field f[MD_PARITIES]) {
  for (int k = 0; k < MD_PARITIES; k++)
    for (int64_t i = 0; i < f[k].sites; i++) {
      double out[24], phase = 0.0;
      int x[MD_DIMS];
      md_global_coordinates(f[k].geometry, k, i, x);
      for (int mu = 0; mu < MD_DIMS; mu++) phase += p[mu] * x[mu];
      for (int c = 0; c < 12; c++) {
        out[2 * c] = (1 + c) * cos(phase + c);
        out[2 * c + 1] = (1 + c) * sin(phase + c);
      }
      md_field_set(&f[k], i, out);
    }
}

static void plane_waves(void **state) {
  md_context *context = *state;
  const double mass = -0.3;
  const md_backend_request request = {.n_rhs = 1, .antiperiodic = true, .action = MD_ACTION_WILSON};
  wilson_problem p = {0};
  md_field v[MD_PARITIES], m_v[MD_PARITIES], got[MD_PARITIES];
  p.gauge = unit_links(context, &p.g);
  MD_REQUIRE(context, md_dirac_create(context, &p.gauge, "cpu_simd", &request, &p.dirac));
  MD_REQUIRE(context, md_full_create(context, &p.dirac, mass, &p.full));
  wilson_fields(context, &p, 0, v);
  wilson_fields(context, &p, 0, m_v);
  wilson_fields(context, &p, 0, got);
  for (int k = 0; k < 12; k++) {
    const int n[MD_DIMS] = {k % 4, k / 2 % 4, k % 6, k % 8};
    double momentum[MD_DIMS], wilson = mass, square = 0.0, eigenvalue[1];
    for (int mu = 0; mu < MD_DIMS; mu++) {
      momentum[mu] = 2.0 * M_PI * (n[mu] + (mu == MD_T ? 0.5 : 0.0)) / dims[mu];
      wilson += 1.0 - cos(momentum[mu]);
      square += sin(momentum[mu]) * sin(momentum[mu]);
    }
    fill(momentum, v);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, false, m_v, v));
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, true, got, m_v));
    eigenvalue[0] = wilson * wilson + square;
    for (int q = 0; q < MD_PARITIES; q++) {
      md_linear_axpby(eigenvalue, &v[q], (double[]){0.0}, &v[q]);
      md_require_at_most(md_test_distance(context, &got[q], &v[q]), 1e-13, "M^dag M v");
    }
  }
  wilson_destroy(v);
  wilson_destroy(m_v);
  wilson_destroy(got);
  wilson_drop(&p);
}

static void check_rest(md_context *context, const md_gauge *gauge, const wilson_kind *kind) {
  const md_walls *w = &kind->walls;
  const md_backend_request request = {
      .n_rhs = 1, .action = kind->action, .walls = *w}; /* periodic */
  const md_field_shape quark = {MD_DOUBLE, MD_HOST, 24, 1, true, false};
  const double zero[MD_DIMS] = {0}, m = kind->mass;
  const double h = -(w->b5 + w->c5) * w->height / (2.0 - (w->b5 - w->c5) * w->height);
  const double up = pow(1.0 + h, w->slices), down = pow(1.0 - h, w->slices);
  const double d = 0.5 * (1.0 + m) + 0.5 * (1.0 - m) * (up - down) / (up + down);
  double factor[1] = {(1.0 / d - 1.0) / (1.0 - m)};
  const md_solver_request how = {.mass = m, .tolerance = 1e-12, .max_iterations = 1000};
  md_solver_result result;
  md_dirac dirac;
  md_field b[MD_PARITIES], x[MD_PARITIES];
  MD_REQUIRE(context, md_dirac_create(context, gauge, "cpu_simd", &request, &dirac));
  for (int k = 0; k < MD_PARITIES; k++) {
    MD_REQUIRE(context, md_field_create(context, gauge->geometry, &quark, k, &b[k]));
    MD_REQUIRE(context, md_field_create(context, gauge->geometry, &quark, k, &x[k]));
  }
  fill(zero, b);
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &how, x, b, &result));
  assert_true(result.converged);
  for (int k = 0; k < MD_PARITIES; k++) {
    md_linear_axpby(factor, &b[k], (double[]){0.0}, &b[k]);
    md_require_at_most(md_test_distance(context, &x[k], &b[k]), 1e-9, "q at rest");
  }
  md_solver_result_free(&result);
  wilson_destroy(b);
  wilson_destroy(x);
  md_dirac_destroy(&dirac);
}

static void domain_wall_quarks_at_rest(void **state) {
  md_context *context = *state;
  const wilson_kind kinds[] = {{MD_ACTION_DOMAINWALL, {6, 1.2, 1.0, 0.0}, 0.1},
                               {MD_ACTION_DOMAINWALL, {7, 0.9, 1.0, 0.0}, 0.05},
                               {MD_ACTION_MOBIUS, {6, 1.2, 1.5, 0.5}, 0.1},
                               {MD_ACTION_MOBIUS, {5, 0.8, 1.1, 0.4}, -0.2}};
  md_geometry *g;
  md_gauge gauge = unit_links(context, &g);
  for (int k = 0; k < 4; k++) check_rest(context, &gauge, &kinds[k]);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(plane_waves),
                                    cmocka_unit_test(domain_wall_quarks_at_rest)};
MD_RUN_TESTS(tests)
