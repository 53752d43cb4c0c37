/* What M of Wilson and domain-wall quarks must be whatever the links, and what another program has
 * found for one lattice (MILC's sample configuration, where it lies beside the tree). */
#include "dirac/solvers/solver.h"
#include "io/lattice_file.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"
#include "wilson_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int dims[MD_DIMS] = {4, 4, 4, 8};

static void require_equal(const double a[2], const double b[2], double size, const char *what) {
  md_require_at_most(hypot(a[0] - b[0], a[1] - b[1]), 1e-14 * size, what);
}

static void adjoints_are_adjoint(void **state) {
  md_context *context = *state;
  for (int k = 0; k < WILSON_KINDS; k++) {
    wilson_problem p;
    md_field a[MD_PARITIES], b[MD_PARITIES], c[MD_PARITIES];
    double left[2], right[2], size[2];
    wilson_make(context, dims, &wilson_kinds[k], &p);
    wilson_fields(context, &p, 1, a);
    wilson_fields(context, &p, 2, b);
    wilson_fields(context, &p, 0, c);
    wilson_dot(context, 2, a, a, size);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, false, c, b));
    wilson_dot(context, 2, a, c, left);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, true, c, a));
    wilson_dot(context, 2, c, b, right);
    require_equal(left, right, 10.0 * size[0], "M");
    MD_REQUIRE(context, md_wilson_schur(context, &p.full, false, &c[0], &b[0]));
    wilson_dot(context, 1, a, c, left);
    MD_REQUIRE(context, md_wilson_schur(context, &p.full, true, &c[0], &a[0]));
    wilson_dot(context, 1, c, b, right);
    require_equal(left, right, 10.0 * size[0], "the Schur complement");
    wilson_destroy(a);
    wilson_destroy(b);
    wilson_destroy(c);
    wilson_drop(&p);
  }
}

/* f = gamma_5 f, slice s becoming slice Ls-1-s. */
static void reflect(md_field f[MD_PARITIES]) {
  const int n = f[0].components, slices = n / 24;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < f[p].sites; i++) {
      double v[MD_MAX_COMPONENTS], w[MD_MAX_COMPONENTS];
      md_field_get(&f[p], i, 0, v);
      for (int c = 0; c < n; c++)
        w[(slices - 1 - c / 24) * 24 + c % 24] = c % 24 < 12 ? v[c] : -v[c];
      md_field_set(&f[p], i, w);
    }
}

/* gamma_5 R M gamma_5 R = M^dag, R the reflection of the fifth dimension: for Wilson and Shamir,
 * and not for Moebius, whose M is not of this kind. */
static void gamma5_hermiticity(void **state) {
  md_context *context = *state;
  for (int k = 0; k < 4; k++) {
    wilson_problem p;
    md_field a[MD_PARITIES], b[MD_PARITIES], c[MD_PARITIES];
    wilson_make(context, dims, &wilson_kinds[k], &p);
    wilson_fields(context, &p, 1, a);
    wilson_fields(context, &p, 0, b);
    wilson_fields(context, &p, 0, c);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, true, b, a));
    reflect(a);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, false, c, a));
    reflect(c);
    const double distance = md_test_distance(context, &c[0], &b[0]);
    if (wilson_kinds[k].action == MD_ACTION_MOBIUS)
      assert_true(distance > 1e-3);
    else
      md_require_at_most(distance, 1e-14, "gamma_5 R M gamma_5 R - M^dag");
    wilson_destroy(a);
    wilson_destroy(b);
    wilson_destroy(c);
    wilson_drop(&p);
  }
}

/* v(x) -> g(x) v(x) in every spin and slice. */
static void rotate(const md_field g[MD_PARITIES], md_field v[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < v[p].sites; i++) {
      double u[18], x[MD_MAX_COMPONENTS], out[MD_MAX_COMPONENTS] = {0};
      md_field_get(&g[p], i, 0, u);
      md_field_get(&v[p], i, 0, x);
      for (int c = 0; c < v[p].components; c += 2)
        for (int j = 0; j < 3; j++) {
          const double *e = u + 2 * (3 * (c / 2 % 3) + j), *y = x + c / 6 * 6 + 2 * j;
          out[c] += e[0] * y[0] - e[1] * y[1];
          out[c + 1] += e[0] * y[1] + e[1] * y[0];
        }
      md_field_set(&v[p], i, out);
    }
}

static void gauge_covariance(void **state) {
  md_context *context = *state;
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_LINK_REALS, 1, false, false};
  for (int k = 0; k < 4; k += 3) {
    wilson_problem p;
    md_dirac turned;
    md_operator other;
    md_field a[MD_PARITIES], b[MD_PARITIES], c[MD_PARITIES], g[MD_PARITIES];
    wilson_make(context, dims, &wilson_kinds[k], &p);
    wilson_fields(context, &p, 1, a);
    wilson_fields(context, &p, 0, b);
    wilson_fields(context, &p, 0, c);
    for (int q = 0; q < MD_PARITIES; q++)
      MD_REQUIRE(context, md_field_create(context, p.g, &shape, q, &g[q]));
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, false, b, a));
    md_test_transform(context, &p.gauge, 23, g);
    MD_REQUIRE(context, md_dirac_create(context, &p.gauge, "cpu_simd", &p.dirac.request, &turned));
    MD_REQUIRE(context, md_full_create(context, &turned, wilson_kinds[k].mass, &other));
    rotate(g, a);
    rotate(g, b);
    MD_REQUIRE(context, md_wilson_apply(context, &other, false, c, a));
    for (int q = 0; q < MD_PARITIES; q++)
      md_require_at_most(md_test_distance(context, &c[q], &b[q]), 2e-14, "g M g^-1");
    md_operator_destroy(&other);
    md_dirac_destroy(&turned);
    wilson_destroy(a);
    wilson_destroy(b);
    wilson_destroy(c);
    wilson_destroy(g);
    wilson_drop(&p);
  }
}

static void inverses_are_inverse(void **state) {
  md_context *context = *state;
  const double masses[] = {0.1, 0.0, -0.3};
  for (int n = 2; n < 10; n++)
    for (int k = 0; k < 6; k++) {
      const md_backend_request request = {.action = MD_ACTION_MOBIUS,
                                          .walls = {n, 1.8, k < 3 ? 1.0 : 1.5, k < 3 ? 0.0 : 0.5}};
      md_wall_matrices m;
      MD_REQUIRE(context, md_wall_matrices_make(context, &request, masses[k % 3], &m));
      assert_int_equal(m.plain, k < 3);
      assert_false(m.of_x);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
          double one = 0.0, b = 0.0, of_b = 0.0, of_k = 0.0;
          for (int l = 0; l < n; l++) {
            one += m.a.m[i * n + l] * m.a_inverse.m[l * n + j];
            b += m.a.m[i * n + l] * m.k.m[l * n + j];
            of_b += m.b.m[i * n + l] * m.b_inverse.m[l * n + j];
            of_k += m.site.m[i * n + l] * m.k.m[l * n + j];
          }
          md_require_at_most(fabs(one - (i == j)), 1e-14, "A A^-1 - 1");
          md_require_at_most(fabs(b - m.b.m[i * n + j]), 1e-14, "A K - B");
          md_require_at_most(fabs(of_b - (i == j)), 1e-14, "B B^-1 - 1");
          md_require_at_most(fabs(of_k - (i == j)), 1e-14, "K^-1 K - 1");
        }
    }
  const md_backend_request wilson = {.action = MD_ACTION_WILSON};
  md_wall_matrices m;
  assert_int_equal(md_wall_matrices_make(context, &wilson, -4.0, &m), MD_INPUT);
}

static void mobius_without_c5_is_shamir(void **state) {
  md_context *context = *state;
  const wilson_kind kinds[] = {{MD_ACTION_DOMAINWALL, {5, 1.8, 1.0, 0.0}, 0.1},
                               {MD_ACTION_MOBIUS, {5, 1.8, 1.0, 0.0}, 0.1}};
  md_field out[2][MD_PARITIES];
  wilson_problem p[2];
  for (int k = 0; k < 2; k++) {
    md_field in[MD_PARITIES];
    wilson_make(context, dims, &kinds[k], &p[k]);
    wilson_fields(context, &p[k], 1, in);
    wilson_fields(context, &p[k], 0, out[k]);
    MD_REQUIRE(context, md_wilson_apply(context, &p[k].full, false, out[k], in));
    wilson_destroy(in);
  }
  /* Fields of two geometries: the norms of sums tell. */
  double norm[2][2];
  for (int k = 0; k < 2; k++) wilson_dot(context, 2, out[k], out[k], norm[k]);
  md_require_at_most(fabs(norm[0][0] / norm[1][0] - 1.0), 1e-15, "|M v|^2");
  for (int k = 0; k < 2; k++) {
    wilson_destroy(out[k]);
    wilson_drop(&p[k]);
  }
}

/* |M v|^2, that of even sites, |M^dag v|^2, Re and Im <v, M v> of the vector below, by a program
 * that shares no code with this one. */
static const struct {
  wilson_kind of;
  double value[5];
} known[] = {{{MD_ACTION_WILSON, {0}, 0.1},
              {1.3178399344226e+05, 6.6301273718822e+04, 1.3213387585037e+05, 2.5653650525419e+04,
               -1.080639503774e+02}},
             {{MD_ACTION_WILSON, {0}, -0.2},
              {1.1694489735346e+05, 5.8831521006950e+04, 1.1729477976156e+05, 2.3810003103928e+04,
               -1.080639503774e+02}},
             {{MD_ACTION_DOMAINWALL, {8, 1.8, 1.0, 0.0}, 0.1},
              {8.5594266783772e+05, 4.2870041542146e+05, 8.5451539066947e+05, 1.7376301611164e+05,
               -8.576167509339e+02}},
             {{MD_ACTION_MOBIUS, {8, 1.8, 1.5, 0.5}, 0.1},
              {1.2928153336282e+06, 6.4632521925808e+05, 1.2915742097158e+06, 2.0984652725554e+05,
               -9.603624111289e+02}},
             {{MD_ACTION_MOBIUS, {12, 1.8, 1.5, 0.5}, 0.1},
              {1.9313285857539e+06, 9.6701649855708e+05, 1.9297896201357e+06, 3.1462271592371e+05,
               -1.366803452939e+03}}};

/* v_k = cos(0.1 k) + i sin(0.07 k), k = colour + 3 (spin + 4 (site + V slice)). */
static void known_vector(md_field v[MD_PARITIES]) {
  const md_geometry *g = v[0].geometry;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < v[p].sites; i++) {
      double out[MD_MAX_COMPONENTS];
      int x[MD_DIMS];
      md_global_coordinates(g, p, i, x);
      for (int c = 0; c < v[p].components / 2; c++) {
        const double k = (double)(c % 12 + 12 * (md_global_index(g, x) + g->volume * (c / 12)));
        out[2 * c] = cos(0.1 * k);
        out[2 * c + 1] = sin(0.07 * k);
      }
      md_field_set(&v[p], i, out);
    }
}

static void another_program_agrees(void **state) {
  md_context *context = *state;
  const char *folder = getenv("MINIDIRAC_SHARED_LATTICES");
  const int grid[MD_DIMS] = {0};
  char path[4096];
  md_lattice_info info = {0};
  wilson_problem p = {0};
  snprintf(path, sizeof path, "%s/lat.sample.l4448", folder ? folder : "");
  if (access(path, R_OK) != 0) skip();
  MD_REQUIRE(context, md_lattice_load(context, path, grid, false, &p.g, &p.gauge, &info));
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    const md_backend_request request = {
        .n_rhs = 1, .antiperiodic = true, .action = known[k].of.action, .walls = known[k].of.walls};
    md_field v[MD_PARITIES], m_v[MD_PARITIES];
    double total[2], even[2], adjoint[2], product[2];
    MD_REQUIRE(context, md_dirac_create(context, &p.gauge, "cpu_simd", &request, &p.dirac));
    MD_REQUIRE(context, md_full_create(context, &p.dirac, known[k].of.mass, &p.full));
    wilson_fields(context, &p, 0, v);
    wilson_fields(context, &p, 0, m_v);
    known_vector(v);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, false, m_v, v));
    wilson_dot(context, 2, m_v, m_v, total);
    wilson_dot(context, 1, m_v, m_v, even);
    wilson_dot(context, 2, v, m_v, product);
    MD_REQUIRE(context, md_wilson_apply(context, &p.full, true, m_v, v));
    wilson_dot(context, 2, m_v, m_v, adjoint);
    const double got[5] = {total[0], even[0], adjoint[0], product[0], product[1]};
    for (int i = 0; i < 5; i++) /* the last two are small beside the terms of their sums */
      md_require_at_most(fabs(got[i] - known[k].value[i]), 2e-13 * known[k].value[i < 3 ? i : 3],
                         md_action_name(known[k].of.action));
    wilson_destroy(v);
    wilson_destroy(m_v);
    md_operator_destroy(&p.full);
    md_dirac_destroy(&p.dirac);
  }
  md_lattice_info_destroy(&info);
  wilson_drop(&p);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(adjoints_are_adjoint),
                                    cmocka_unit_test(gamma5_hermiticity),
                                    cmocka_unit_test(gauge_covariance),
                                    cmocka_unit_test(inverses_are_inverse),
                                    cmocka_unit_test(mobius_without_c5_is_shamir),
                                    cmocka_unit_test(another_program_agrees)};
MD_RUN_TESTS(tests)
