/* M on 2^4 sites as a dense matrix by another route: gamma matrices as products of Pauli matrices,
 * neighbours by coordinates, the fifth dimension written down from D_W = M(-M5) of the definition.
 * Both M and the solution of M x = b agree with it; x by elimination. */
#include "dirac/dense.h"
#include "dirac/eigen/eigen.h"
#include "dirac/solvers/solver.h"
#include "lattice/fields/linear.h"
#include "wilson_support.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { L = 2, SITES = 16, SPINOR = 12, MOST_SLICES = 5 };
static const int dims[MD_DIMS] = {L, L, L, L};

/* gamma_mu = [[0, S], [S^dag, 0]] with S of the three Pauli matrices and 1. */
static double complex gamma_entry(int mu, int i, int j) {
  static const double complex pauli[4][2][2] = {
      {{0, 1}, {1, 0}}, {{0, -I}, {I, 0}}, {{1, 0}, {0, -1}}, {{1, 0}, {0, 1}}};
  /* [[0, i sigma_x], [-i sigma_x, 0]], [[0, -i sigma_y], [i sigma_y, 0]],
   * [[0, i sigma_z], [-i sigma_z, 0]], [[0, 1], [1, 0]] */
  static const double complex upper[4] = {I, -I, I, 1};
  if (i / 2 == j / 2) return 0;
  return (i < 2 ? upper[mu] : conj(upper[mu])) * pauli[mu][i % 2][j % 2];
}

static int site_of(const int x[MD_DIMS]) {
  return ((x[3] * L + x[2]) * L + x[1]) * L + x[0];
}

/* D_W(m) of the 4D lattice, row-major. */
static void wilson_matrix(const md_gauge *gauge, double mass, double complex *d) {
  enum { N = SITES * SPINOR };
  for (int k = 0; k < N * N; k++) d[k] = k % (N + 1) == 0 ? 4.0 + mass : 0.0;
  for (int s = 0; s < SITES * MD_DIMS; s++) {
    const int mu = s % MD_DIMS, at = s / MD_DIMS;
    int x[MD_DIMS] = {at % L, at / L % L, at / (L * L) % L, at / (L * L * L)}, y[MD_DIMS];
    double u[MD_LINK_REALS];
    md_gauge_get(gauge, md_parity(x), mu, md_site(gauge->geometry, x), u);
    const double sign = mu == MD_T && x[mu] == L - 1 ? -1.0 : 1.0;
    for (int k = 0; k < MD_DIMS; k++) y[k] = (x[k] + (k == mu)) % L;
    const int here = site_of(x) * SPINOR, there = site_of(y) * SPINOR;
    for (int k = 0; k < SPINOR * SPINOR; k++) {
      const int i = k / SPINOR, j = k % SPINOR, a = i % 3, b = j % 3;
      const double complex g = gamma_entry(mu, i / 3, j / 3), unit = i / 3 == j / 3;
      const double complex e = sign * (u[2 * (3 * a + b)] + I * u[2 * (3 * a + b) + 1]);
      const double complex h = sign * (u[2 * (3 * b + a)] - I * u[2 * (3 * b + a) + 1]);
      d[(here + i) * N + there + j] -= 0.5 * (unit - g) * e;
      d[(there + i) * N + here + j] -= 0.5 * (unit + g) * h;
    }
  }
}

/* M_(s i)(t j) = (b5 D_W + 1)_ij delta_st + (c5 D_W - 1)_ij X^j_st, X of the chirality of j. */
static void make(const wilson_kind *kind, const md_gauge *gauge, int slices, double complex *m) {
  enum { N = SITES * SPINOR };
  const bool walls = kind->walls.slices > 0;
  const int n = N * slices;
  double complex *d = malloc(sizeof *d * N * N);
  wilson_matrix(gauge, walls ? -kind->walls.height : kind->mass, d);
  for (int64_t k = 0; k < (int64_t)n * n; k++) {
    const int row = (int)(k / n), column = (int)(k % n), s = row / N, t = column / N;
    const int i = row % N, j = column % N;
    const bool lower = j % SPINOR >= 6;
    double complex x = 0.0;
    if (lower && t == s + 1) x = 1.0;
    if (lower && s == slices - 1 && t == 0) x = -kind->mass;
    if (!lower && t == s - 1) x = 1.0;
    if (!lower && s == 0 && t == slices - 1) x = -kind->mass;
    m[k] = walls ? (s == t) * (kind->walls.b5 * d[i * N + j] + (i == j)) +
                       x * (kind->walls.c5 * d[i * N + j] - (i == j))
                 : d[i * N + j];
  }
  free(d);
}

/* Between a vector of the matrix and fields of `slices`. */
static void to_fields(const double complex *v, md_field f[MD_PARITIES], bool back,
                      double complex *out) {
  for (int at = 0; at < SITES; at++) {
    const int x[MD_DIMS] = {at % L, at / L % L, at / (L * L) % L, at / (L * L * L)};
    md_field *of = &f[md_parity(x)];
    const int64_t i = md_site(of->geometry, x);
    double reals[MD_MAX_COMPONENTS];
    if (back) md_field_get(of, i, 0, reals);
    for (int c = 0; c < of->components / 2; c++) {
      const int k = (c / SPINOR * SITES + at) * SPINOR + c % SPINOR;
      if (back)
        out[k] = reals[2 * c] + I * reals[2 * c + 1];
      else
        reals[2 * c] = creal(v[k]), reals[2 * c + 1] = cimag(v[k]);
    }
    if (!back) md_field_set(of, i, reals);
  }
}

/* b becomes m^-1 b; m is destroyed. */
static void eliminate(int n, double complex *m, double complex *b) {
  for (int k = 0; k < n; k++) {
    int pivot = k;
    for (int i = k + 1; i < n; i++)
      if (cabs(m[(int64_t)i * n + k]) > cabs(m[(int64_t)pivot * n + k])) pivot = i;
    for (int j = k; j < n && pivot != k; j++) {
      const double complex held = m[(int64_t)k * n + j];
      m[(int64_t)k * n + j] = m[(int64_t)pivot * n + j];
      m[(int64_t)pivot * n + j] = held;
    }
    const double complex held = b[k];
    b[k] = b[pivot];
    b[pivot] = held;
    for (int i = k + 1; i < n; i++) {
      const double complex factor = m[(int64_t)i * n + k] / m[(int64_t)k * n + k];
      if (factor == 0.0) continue;
      for (int j = k; j < n; j++) m[(int64_t)i * n + j] -= factor * m[(int64_t)k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) b[i] -= m[(int64_t)i * n + j] * b[j];
    b[i] /= m[(int64_t)i * n + i];
  }
}

static double distance(int n, const double complex *a, const double complex *b) {
  double difference = 0.0, norm = 0.0;
  for (int i = 0; i < n; i++) {
    difference += creal((a[i] - b[i]) * conj(a[i] - b[i]));
    norm += creal(b[i] * conj(b[i]));
  }
  return sqrt(difference / norm);
}

/* q of a source b by the dense matrix: eta = (1 - c5 D_W) of the walls, q from both walls. */
static void solve_dense(const wilson_kind *kind, const md_gauge *gauge, int slices,
                        double complex *m, double complex *b) {
  enum { N = SITES * SPINOR };
  const bool walls = kind->walls.slices > 0;
  double complex *eta = calloc((size_t)(N * slices), sizeof *eta);
  double complex *d = malloc(sizeof *d * N * N);
  wilson_matrix(gauge, -kind->walls.height, d);
  for (int i = 0; i < N; i++) {
    if (!walls) eta[i] = b[i];
    for (int j = 0; j < N && walls; j++)
      eta[(j % SPINOR < 6 ? 0 : slices - 1) * N + i] +=
          ((i == j) - kind->walls.c5 * d[i * N + j]) * b[j];
  }
  eliminate(N * slices, m, eta);
  for (int i = 0; i < N; i++) b[i] = eta[(i % SPINOR < 6 ? slices - 1 : 0) * N + i];
  free(d);
  free(eta);
}

static void check(md_context *context, const wilson_kind *kind) {
  wilson_problem p;
  wilson_make(context, dims, kind, &p);
  const int slices = md_request_slices(&p.dirac.request), n = SITES * SPINOR * slices;
  const md_field_shape quark = {MD_DOUBLE, MD_HOST, 24, 1, true, false};
  double complex *m = malloc((size_t)n * (size_t)n * sizeof *m);
  double complex *v = malloc(4 * (size_t)n * sizeof *v), *w = v + n, *u = w + n;
  md_field in[MD_PARITIES], out[MD_PARITIES], b[MD_PARITIES], x[MD_PARITIES];
  make(kind, &p.gauge, slices, m);
  wilson_fields(context, &p, 5, in);
  wilson_fields(context, &p, 0, out);
  to_fields(NULL, in, true, v);
  for (int i = 0; i < n; i++) {
    w[i] = 0.0;
    for (int j = 0; j < n; j++) w[i] += m[(int64_t)i * n + j] * v[j];
  }
  MD_REQUIRE(context, md_operator_apply(context, &p.full, out, in, NULL));
  to_fields(NULL, out, true, u);
  md_require_at_most(distance(n, u, w), 1e-14, "M v");
  for (int k = 0; k < MD_PARITIES; k++) {
    md_test_random_shape(context, p.g, &quark, k, 9, &b[k]);
    MD_REQUIRE(context, md_field_create(context, p.g, &quark, k, &x[k]));
  }
  const md_solver_request request = {
      .mass = kind->mass, .tolerance = 1e-13, .max_iterations = 20000};
  md_solver_result result;
  MD_REQUIRE(context, md_solve_cg(context, &p.dirac, &p.dirac, &request, x, b, &result));
  assert_true(result.converged);
  md_solver_result_free(&result);
  to_fields(NULL, b, true, w);
  solve_dense(kind, &p.gauge, slices, m, w);
  to_fields(NULL, x, true, u);
  md_require_at_most(distance(SITES * SPINOR, u, w), 1e-10, "x");
  wilson_destroy(in);
  wilson_destroy(out);
  wilson_destroy(b);
  wilson_destroy(x);
  wilson_drop(&p);
  free(v);
  free(m);
}

static void dense_matrix_agrees(void **state) {
  for (int k = 0; k < WILSON_KINDS; k++)
    if (k != 1 && k != 4) check(*state, &wilson_kinds[k]);
}

/* Eigenvalues, rising, and eigenvectors of gamma_5 m, the entries of rows and columns `at`. */
static void gamma5_spectrum(int n, const int *at, const double complex *m, double *values,
                            double complex *vectors) {
  double complex *h = malloc((size_t)n * (size_t)n * sizeof *h);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      h[i * n + j] = (at[i] % SPINOR < 6 ? 1 : -1) * m[at[i] * SITES * SPINOR + at[j]];
  assert_true(md_hermitian_eigen(n, h, values, vectors));
  free(h);
}

/* Signed eigenvalues of gamma_5 S on even sites are those of the Schur complement of the dense
 * matrix, as are chiralities; and gamma_5 M has as many negative ones beyond those that the odd
 * sites have, half of theirs. */
static void signs_agree(void **state) {
  enum { N = SITES * SPINOR, HALF = N / 2 };
  static const wilson_kind kind = {MD_ACTION_WILSON, {0}, -3.0};
  int even[HALF], all[N], evens = 0, negative[2] = {0, 0};
  double values[N], chirality[HALF] = {0.0};
  double complex *m = malloc(2 * sizeof *m * N * N), *vectors = m + N * N;
  wilson_problem p;
  wilson_make(*state, dims, &kind, &p);
  wilson_matrix(&p.gauge, kind.mass, m);
  for (int k = 0; k < N; k++) {
    const int s = k / SPINOR, x[MD_DIMS] = {s % L, s / L % L, s / (L * L) % L, s / (L * L * L)};
    all[k] = k;
    if (md_parity(x) == MD_EVEN) even[evens++] = k;
  }
  gamma5_spectrum(N, all, m, values, vectors);
  for (int k = 0; k < N; k++) negative[0] += values[k] < 0.0;
  for (int i = 0; i < HALF; i++)
    for (int j = 0; j < HALF; j++) {
      double complex less = 0.0;
      for (int k = 0; k < N; k++) /* the other parity: m has 4 + mass alone within one */
        if (k / SPINOR != even[i] / SPINOR && k / SPINOR != even[j] / SPINOR)
          less += m[even[i] * N + k] * m[k * N + even[j]];
      vectors[i * HALF + j] = less / (4.0 + kind.mass);
    }
  for (int i = 0; i < HALF * HALF; i++) m[even[i / HALF] * N + even[i % HALF]] -= vectors[i];
  gamma5_spectrum(HALF, even, m, values, vectors);
  for (int k = 0; k < HALF; k++) {
    negative[1] += values[k] < 0.0;
    for (int i = 0; i < HALF; i++)
      chirality[k] += (even[i] % SPINOR < 6 ? 1 : -1) *
                      creal(vectors[k * HALF + i] * conj(vectors[k * HALF + i]));
  }
  assert_int_equal(negative[0], negative[1] + HALF / 2);
  assert_int_not_equal(negative[1], HALF / 2); /* no even number of each sign, as without signs */
  for (int block = 1; block <= 4; block += 3) {
    const int modes = block == 1 ? HALF : 10; /* all, and a part that blocks do not fill */
    md_backend_request request = p.dirac.request;
    const md_eigen_request wanted = {
        .mass = kind.mass, .modes = modes, .tolerance = 1e-9, .max_restarts = 100, .seed = 3};
    md_eigen_result found;
    md_dirac dirac;
    request.n_rhs = block;
    MD_REQUIRE(*state, md_dirac_create(*state, &p.gauge, "cpu_simd", &request, &dirac));
    MD_REQUIRE(*state, md_eigen_lowest(*state, &dirac, &wanted, &found));
    assert_true(found.converged && found.below == modes);
    for (int i = 0; i < modes; i++) {
      int same = 0;
      for (int k = 0; k < HALF; k++)
        if (fabs(values[k] - found.signs[i].value) < fabs(values[same] - found.signs[i].value))
          same = k;
      md_require_at_most(fabs(values[same] - found.signs[i].value), 1e-12, "eigenvalue");
      md_require_at_most(fabs(chirality[same] - found.signs[i].chirality), 1e-8, "chirality");
      md_require_at_most(found.signs[i].residual, 1e-10, "residual");
      md_require_at_most(fabs(fabs(found.signs[i].value) - sqrt(found.values[i])), 1e-10, "order");
    }
    md_eigen_result_free(&found);
    md_dirac_destroy(&dirac);
  }
  wilson_drop(&p);
  free(m);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(dense_matrix_agrees),
                                    cmocka_unit_test(signs_agree)};
MD_RUN_TESTS(tests)
