/* Free quarks: the pion correlator with momentum of CG and md_pion_correlators is that of the sum
 * over momenta. With f(y) = 1/V sum_k cos(k y) / (m^2 + sum_mu sin^2 k_mu), k_t = (2 n + 1) pi / T,
 * the propagator from the origin is m f on even sites and -(D f) on odd ones, in each colour. */
#include "backend_cases.h"
#include "dirac/solvers/solver.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"
#include "lattice/gauge/gauge.h"

#include <math.h>
#include <string.h>

enum { LX = 8, LY = 6, LZ = 6, T = 8, VOLUME = LX * LY * LZ * T, MOMENTA = 4 };
static const int dims[4] = {LX, LY, LZ, T};
static const double mass = 0.3;
static const int momenta[MOMENTA][3] = {{0, 0, 0}, {1, 0, 0}, {0, -1, 2}, {1, 1, 1}};

/* The sum over k as four nested sums over one direction each would be faster; it is done once. */
static void fill_f(double *f) {
  double sine2[4][8], cosine[4][8][8];
  for (int mu = 0; mu < 4; mu++)
    for (int n = 0; n < dims[mu]; n++) {
      const double k = M_PI * (2 * n + (mu == MD_T)) / dims[mu];
      sine2[mu][n] = sin(k) * sin(k);
      for (int y = 0; y < dims[mu]; y++) cosine[mu][n][y] = cos(k * y);
    }
  memset(f, 0, VOLUME * sizeof *f);
  for (int a = 0; a < VOLUME; a++) {
    const int n[4] = {a % LX, a / LX % LY, a / LX / LY % LZ, a / LX / LY / LZ};
    double weight = mass * mass;
    for (int mu = 0; mu < 4; mu++) weight += sine2[mu][n[mu]];
    for (int b = 0; b < VOLUME; b++) {
      const int y[4] = {b % LX, b / LX % LY, b / LX / LY % LZ, b / LX / LY / LZ};
      /* k and -k: the odd parts in each direction cancel. */
      double term = 1.0 / weight / VOLUME;
      for (int mu = 0; mu < 4; mu++) term *= cosine[mu][n[mu]][y[mu]];
      f[b] += term;
    }
  }
}

static double f_at(const double *f, const int y[4]) {
  int at = 0;
  for (int mu = 3; mu >= 0; mu--) at = at * dims[mu] + (y[mu] + dims[mu]) % dims[mu];
  return y[3] < 0 || y[3] >= T ? -f[at] : f[at];
}

static double propagator(const double *f, const int y[4]) {
  double sum = 0.0;
  int before = 0;
  if ((y[0] + y[1] + y[2] + y[3]) % 2 == 0) return mass * f_at(f, y);
  for (int mu = 0; mu < 4; before += y[mu], mu++) {
    int up[4], down[4];
    memcpy(up, y, sizeof up);
    memcpy(down, y, sizeof down);
    up[mu]++;
    down[mu]--;
    sum += (before % 2 ? -0.5 : 0.5) * (f_at(f, up) - f_at(f, down));
  }
  return -sum;
}

static void expected(double correlator[MOMENTA][T]) {
  static double f[VOLUME];
  fill_f(f);
  memset(correlator, 0, MOMENTA * sizeof *correlator);
  for (int a = 0; a < VOLUME; a++) {
    const int y[4] = {a % LX, a / LX % LY, a / LX / LY % LZ, a / LX / LY / LZ};
    const double s = propagator(f, y);
    for (int q = 0; q < MOMENTA; q++) {
      double phase = 0.0;
      for (int d = 0; d < 3; d++) phase += 2.0 * M_PI * momenta[q][d] * y[d] / dims[d];
      correlator[q][y[3]] += 3.0 * s * s * cos(phase);
    }
  }
}

static void pion_with_momentum(void **state) {
  md_context *context = *state;
  static const int origin[3][MD_DIMS] = {{5, 1, 2, 6}, {5, 1, 2, 6}, {5, 1, 2, 6}};
  const md_backend_request how = {.precision = MD_DOUBLE, .n_rhs = 3, .antiperiodic = true};
  const md_solver_request request = {.mass = mass, .tolerance = 1e-13, .max_iterations = 1000};
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 3, true, false};
  md_geometry *g = md_test_geometry(context, LX, LY, LZ, T, false);
  md_gauge gauge;
  md_dirac dirac;
  md_field b[2], x[2];
  md_solver_result result;
  double got[3][MOMENTA][T], want[MOMENTA][T];
  MD_REQUIRE(context, md_gauge_create(context, g, &gauge));
  MD_REQUIRE(context, md_gauge_start_cold(context, &gauge));
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cpu_ref", &how, &dirac));
  for (int p = 0; p < 2; p++) {
    MD_REQUIRE(context, md_field_create(context, g, &shape, p, &b[p]));
    MD_REQUIRE(context, md_field_create(context, g, &shape, p, &x[p]));
  }
  md_source_point(b, origin[0]);
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &dirac, &request, x, b, &result));
  assert_true(result.converged);
  const md_momenta list = {MOMENTA, momenta};
  MD_REQUIRE(context, md_pion_correlators(context, x, origin, &list, &got[0][0][0]));
  expected(want);
  for (int q = 0; q < MOMENTA; q++)
    for (int t = 0; t < T; t++) {
      const double sum = got[0][q][t] + got[1][q][t] + got[2][q][t];
      md_require_at_most(fabs(sum - want[q][t]), 1e-12 * want[0][0], "correlator");
    }
  md_solver_result_free(&result);
  for (int p = 0; p < 2; p++) {
    md_field_destroy(&b[p]);
    md_field_destroy(&x[p]);
  }
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

/* Fields without any symmetry, which tell a momentum from its reflections: the sum as it is
 * written.
 */
static void sum_of_cosines(void **state) {
  md_context *context = *state;
  static const int origin[2][MD_DIMS] = {{5, 1, 2, 6}, {0, 3, 1, 1}};
  const md_momenta list = {MOMENTA, momenta};
  md_geometry *g = md_test_geometry(context, LX, LY, LZ, T, false);
  md_field x[2];
  double got[2][MOMENTA][T];
  long long want[2][MOMENTA][T] = {0};
  for (int p = 0; p < 2; p++) md_test_random_field(context, g, MD_DOUBLE, 2, p, 3, &x[p]);
  MD_REQUIRE(context, md_pion_correlators(context, x, origin, &list, &got[0][0][0]));
  for (int k = 0; k < 2 * MOMENTA * 2; k++) {
    const int r = k % 2, p = k / 2 % 2, q = k / 4;
    for (int64_t i = 0; i < g->sites; i++) {
      double v[MD_FERMION_REALS], norm2 = 0.0, phase = 0.0;
      int at[MD_DIMS];
      md_field_get(&x[p], i, r, v);
      md_global_coordinates(g, p, i, at);
      for (int c = 0; c < MD_FERMION_REALS; c++) norm2 += v[c] * v[c];
      for (int d = 0; d < 3; d++)
        phase += 2.0 * M_PI * momenta[q][d] * (at[d] - origin[r][d]) / dims[d];
      want[r][q][(at[MD_T] - origin[r][MD_T] + T) % T] += llround(norm2 * cos(phase) * 0x1p40);
    }
  }
  md_sum_integers(context, &want[0][0][0], 2 * MOMENTA * T);
  for (int r = 0; r < 2; r++)
    for (int q = 0; q < MOMENTA; q++)
      for (int t = 0; t < T; t++)
        md_require_at_most(fabs(got[r][q][t] - (double)want[r][q][t] * 0x1p-40), 1e-9, "sum");
  for (int p = 0; p < 2; p++) md_field_destroy(&x[p]);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(pion_with_momentum),
    cmocka_unit_test(sum_of_cosines),
};
MD_RUN_TESTS(tests)
