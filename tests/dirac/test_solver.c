/* CG: M x = b holds by an independent check, MILC's phases give the same pion correlator, every
 * rank grid, thread count and overlap mode gives the same history to the last bit, right-hand
 * sides stop on their own, and NaN ends the solve with a message. */
#include "backend_cases.h"
#include "dirac/backend.h"
#include "dirac/solvers/solver.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
  md_geometry *g;
  md_gauge gauge;
  md_field b[2], x[2];
} problem;

static void make(md_context *context, const int n[4], int n_rhs, problem *p) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, n_rhs, true, false};
  p->g = md_test_geometry(context, n[0], n[1], n[2], n[3], false);
  md_test_random_gauge(context, p->g, 29, &p->gauge);
  for (int k = 0; k < 2; k++) {
    MD_REQUIRE(context, md_field_create(context, p->g, &shape, k, &p->b[k]));
    MD_REQUIRE(context, md_field_create(context, p->g, &shape, k, &p->x[k]));
  }
}

static void drop(problem *p) {
  for (int k = 0; k < 2; k++) {
    md_field_destroy(&p->b[k]);
    md_field_destroy(&p->x[k]);
  }
  md_gauge_destroy(&p->gauge);
  md_geometry_destroy(p->g);
}

static md_status solve_packed(md_context *context, problem *p, const char *backend,
                              md_precision precision, md_packing packing,
                              const md_solver_request *request, bool overlap,
                              md_solver_result *result) {
  md_backend_request how = {
      .precision = precision, .packing = packing, .n_rhs = p->b[0].n_rhs, .antiperiodic = true};
  md_dirac dirac, exact;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &how, &dirac));
  how.precision = MD_DOUBLE;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &how, &exact));
  dirac.overlap = exact.overlap = overlap;
  const md_status status = md_solve_cg(context, &dirac, &exact, request, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&exact);
  return status;
}

static md_status solve(md_context *context, problem *p, const char *backend, md_precision precision,
                       const md_solver_request *request, bool overlap, md_solver_result *result) {
  return solve_packed(context, p, backend, precision, MD_PACKING_NONE, request, overlap, result);
}

static const int small[4] = {4, 4, 4, 8};

/* (M v)(x) from bare links by the textbook formula with phases given by a function; one rank
 * alone, no halo: the second opinion that shares no code with the operator. */
typedef double (*phase_of)(int mu, const int x[4]);

static double ours(int mu, const int x[4]) {
  const int sum[4] = {0, x[0], x[0] + x[1], x[0] + x[1] + x[2]};
  return sum[mu] % 2 ? -1.0 : 1.0;
}
static double milc(int mu, const int x[4]) {
  const int sum[4] = {x[3], x[3] + x[0], x[3] + x[0] + x[1], 0};
  return sum[mu] % 2 ? -1.0 : 1.0;
}

enum { LONGEST = 4 * 4 * 4 * 8 };
typedef struct plain {
  const md_gauge *gauge;
  phase_of phase;
  double mass, scale; /* scale 1: m + D; 2: 2 m + 2 D as MILC */
} plain;

static int lexicographic(const int x[4]) {
  return ((x[3] * small[2] + x[2]) * small[1] + x[1]) * small[0] + x[0];
}

static void add_hop(const plain *m, const int x[4], int mu, int step, double sign, const double *v,
                    double sum[6]) {
  int from[4], at[4];
  double u[18];
  memcpy(from, x, sizeof from);
  memcpy(at, x, sizeof at);
  from[mu] = (x[mu] + step + small[mu]) % small[mu];
  if (step < 0) at[mu] = from[mu];
  md_gauge_get(m->gauge, md_parity(at), mu, md_site(m->gauge->geometry, at), u);
  double factor = sign * 0.5 * m->scale * m->phase(mu, x);
  if (mu == MD_T && at[MD_T] == small[MD_T] - 1) factor = -factor;
  const double *w = v + 6 * lexicographic(from);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const double *e = step > 0 ? u + 2 * (3 * i + j) : u + 2 * (3 * j + i);
      const double im = step > 0 ? e[1] : -e[1];
      sum[2 * i] += factor * (e[0] * w[2 * j] - im * w[2 * j + 1]);
      sum[2 * i + 1] += factor * (e[0] * w[2 * j + 1] + im * w[2 * j]);
    }
}

static void apply_plain(const plain *m, double sign, const double *v, double *out) {
  int x[4];
  for (x[3] = 0; x[3] < small[3]; x[3]++)
    for (x[2] = 0; x[2] < small[2]; x[2]++)
      for (x[1] = 0; x[1] < small[1]; x[1]++)
        for (x[0] = 0; x[0] < small[0]; x[0]++) {
          double *sum = out + 6 * lexicographic(x);
          for (int c = 0; c < 6; c++) sum[c] = m->scale * m->mass * v[6 * lexicographic(x) + c];
          for (int mu = 0; mu < 4; mu++) {
            add_hop(m, x, mu, 1, sign, v, sum);
            add_hop(m, x, mu, -1, -sign, v, sum);
          }
        }
}

/* Conjugate gradients on the normal equations of the whole lattice, in plain loops. */
static void solve_plain(const plain *m, const double *b, double *x) {
  enum { N = 6 * LONGEST };
  static double r[N], p[N], mp[N], ap[N];
  double rr = 0.0;
  apply_plain(m, -1.0, b, r);
  for (int i = 0; i < N; i++) x[i] = 0.0, p[i] = r[i], rr += r[i] * r[i];
  for (int iteration = 0; iteration < 2000 && rr > 1e-28; iteration++) {
    double pap = 0.0, next = 0.0;
    apply_plain(m, 1.0, p, mp);
    apply_plain(m, -1.0, mp, ap);
    for (int i = 0; i < N; i++) pap += p[i] * ap[i];
    for (int i = 0; i < N; i++) {
      x[i] += rr / pap * p[i];
      r[i] -= rr / pap * ap[i];
      next += r[i] * r[i];
    }
    for (int i = 0; i < N; i++) p[i] = r[i] + next / rr * p[i];
    rr = next;
  }
}

static void plain_correlator(const plain *m, double *correlator) {
  static double b[6 * LONGEST], x[6 * LONGEST];
  for (int t = 0; t < small[3]; t++) correlator[t] = 0.0;
  for (int colour = 0; colour < 3; colour++) {
    memset(b, 0, sizeof b);
    b[2 * colour] = 1.0;
    solve_plain(m, b, x);
    for (int i = 0; i < 6 * LONGEST; i++)
      correlator[i / 6 / (LONGEST / small[3])] += m->scale * m->scale * x[i] * x[i];
  }
}

enum { CONVENTIONS = 2 };
static double textbook[CONVENTIONS][8]; /* pion correlators in plain conventions */

static void fill_textbook(md_context *context) {
  md_context alone = {.ranks = 1, .threads = context->threads};
  problem whole;
  make(&alone, small, 1, &whole); /* the same links, on every rank */
  const plain conventions[CONVENTIONS] = {{&whole.gauge, ours, 0.1, 1.0},
                                          {&whole.gauge, milc, 0.1, 2.0}};
  for (int k = 0; k < CONVENTIONS; k++) plain_correlator(&conventions[k], textbook[k]);
  drop(&whole);
}

/* The pion correlator of one backend and precision against both plain conventions. */
static void compare_correlators(md_context *context, const backend_case *c) {
  const bool wide = c->request.precision == MD_DOUBLE;
  const md_solver_request request = {
      .mass = 0.1, .tolerance = wide ? 1e-12 : 1e-4, .max_iterations = 1000};
  const int origin[4] = {0};
  problem p;
  md_solver_result result;
  double got[8];
  char name[128];
  if (md_precision_roundoff(c->request.precision) > 0x1p-24) return; /* 16 bits do not get there */
  make(context, small, 3, &p);
  md_source_point(p.b, origin);
  MD_REQUIRE(context, solve_packed(context, &p, c->backend->name, c->request.precision,
                                   c->request.packing, &request, true, &result));
  if (!result.converged)
    fail_msg("%s: residual %g", case_name(c, name, sizeof name), result.relative_residual);
  MD_REQUIRE(context, md_pion_correlator(context, p.x, got));
  for (int k = 0; k < CONVENTIONS; k++)
    for (int t = 0; t < 8; t++)
      md_require_at_most(fabs(got[t] / textbook[k][t] - 1.0), 10.0 * request.tolerance,
                         case_name(c, name, sizeof name));
  md_solver_result_free(&result);
  drop(&p);
}

static void milc_phases_give_the_same_correlator(void **state) {
  const int colours[] = {3};
  fill_textbook(*state);
  each_backend_case(*state, colours, 1, compare_correlators);
}

/* Alone with one thread, and on the ranks of the run with 1 and 2 threads, overlap on and off. */
static void history_does_not_depend_on_the_cut(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1};
  const md_solver_request request = {.mass = 0.05, .tolerance = 1e-10, .max_iterations = 2000};
  problem p;
  md_solver_result expected, result;
  omp_set_num_threads(1);
  make(&alone, small, 2, &p);
  md_source_random(p.b, 5);
  MD_REQUIRE(&alone, solve(&alone, &p, "auto", MD_DOUBLE, &request, true, &expected));
  assert_true(expected.converged);
  drop(&p);
  for (int mode = 0; mode < 4; mode++) {
    omp_set_num_threads(1 + mode % 2);
    make(context, small, 2, &p);
    md_source_random(p.b, 5);
    MD_REQUIRE(context, solve(context, &p, "auto", MD_DOUBLE, &request, mode / 2, &result));
    assert_int_equal(result.iterations, expected.iterations);
    assert_memory_equal(result.history, expected.history,
                        ((size_t)expected.iterations + 1) * sizeof(double));
    assert_memory_equal(result.residuals, expected.residuals, 2 * sizeof(double));
    md_solver_result_free(&result);
    drop(&p);
  }
  md_solver_result_free(&expected);
  omp_set_num_threads(context->threads);
}

/* Different norms and one source of zeros: each has its own count, all meet the tolerance. */
static void right_hand_sides_stop_on_their_own(void **state) {
  md_context *context = *state;
  const md_solver_request request = {.mass = 0.2, .tolerance = 1e-9, .max_iterations = 1000};
  problem p;
  md_solver_result result;
  make(context, small, 3, &p);
  md_source_gaussian(p.b, 8);
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < p.b[k].sites; i++) {
      double v[18] = {0};
      md_field_get(&p.b[k], i, 0, v);
      for (int c = 0; c < 6; c++)
        v[12 + c] = i == 0 && k == 0 && context->rank == 0 ? 1e-15 * c : 0;
      md_field_set(&p.b[k], i, v);
    }
  MD_REQUIRE(context, solve(context, &p, "auto", MD_DOUBLE, &request, true, &result));
  assert_true(result.converged);
  assert_int_equal(result.rhs_iterations[1], 0);
  assert_true(result.residuals[1] == 0.0);
  assert_true(result.rhs_iterations[0] > 0 && result.rhs_iterations[2] > 0);
  for (int r = 0; r < 3; r++) md_require_at_most(result.residuals[r], 1e-9, "residual");
  md_solver_result_free(&result);
  drop(&p);
}

/* |b - M x| / |b| over both parities, by an operator of its own. */
static double residual_of(md_context *context, problem *p, double mass) {
  const md_backend_request how = {.n_rhs = 1, .antiperiodic = true};
  const double minus = -1.0;
  double sums[2] = {0.0, 0.0}, norm2;
  md_dirac dirac;
  md_field mx[2];
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, "cpu_ref", &how, &dirac));
  for (int k = 0; k < 2; k++) MD_REQUIRE(context, md_dirac_field(context, &dirac, k, &mx[k]));
  MD_REQUIRE(context, md_dirac_m(context, &dirac, mass, 1.0, mx, p->x));
  for (int k = 0; k < 2; k++) {
    md_linear_xpby(&p->b[k], &minus, &mx[k]);
    MD_REQUIRE(context, md_linear_norm2(context, &mx[k], NULL, &norm2));
    sums[0] += norm2;
    MD_REQUIRE(context, md_linear_norm2(context, &p->b[k], NULL, &norm2));
    sums[1] += norm2;
    md_field_destroy(&mx[k]);
  }
  md_dirac_destroy(&dirac);
  return sqrt(sums[0] / sums[1]);
}

/* The residual that is told is that of the whole lattice, here of a source on odd sites alone. A
 * tolerance below what doubles attain makes CG begin a second time, which must not lose what the
 * first time gave. */
static void residuals_are_of_the_whole_lattice(void **state) {
  md_context *context = *state;
  const double tolerances[] = {1e-8, 1e-15};
  for (int k = 0; k < 2 && context->ranks < 4; k++) {
    const md_solver_request request = {
        .mass = 0.05, .tolerance = tolerances[k], .max_iterations = 2000};
    problem p;
    md_solver_result result;
    make(context, small, 1, &p);
    md_source_gaussian(p.b, 8);
    md_linear_zero(&p.b[MD_EVEN]);
    MD_REQUIRE(context, solve(context, &p, "auto", MD_DOUBLE, &request, true, &result));
    assert_int_equal(result.converged, k == 0);
    md_require_at_most(result.relative_residual, k == 0 ? 1e-8 : 1e-12, "residual");
    const double found = residual_of(context, &p, request.mass);
    md_require_at_most(fabs(found / result.relative_residual - 1.0), k == 0 ? 1e-4 : 0.1,
                       "the residual that was told");
    md_solver_result_free(&result);
    drop(&p);
  }
}

static void limits_are_reported(void **state) {
  md_context *context = *state;
  const md_solver_request few = {.mass = 0.01, .tolerance = 1e-10, .max_iterations = 5};
  problem p;
  md_solver_result result;
  make(context, small, 1, &p);
  md_source_gaussian(p.b, 8);
  MD_REQUIRE(context, solve(context, &p, "auto", MD_DOUBLE, &few, true, &result));
  assert_false(result.converged);
  assert_int_equal(result.iterations, 5);
  assert_true(result.relative_residual > 1e-10);
  md_solver_result_free(&result);
  drop(&p);
}

static void not_a_number_ends_the_solve(void **state) {
  md_context *context = *state;
  const md_solver_request request = {.mass = 0.1, .tolerance = 1e-10, .max_iterations = 100};
  for (int where = 0; where < 2; where++) {
    problem p;
    md_solver_result result;
    make(context, small, 1, &p);
    md_source_gaussian(p.b, 8);
    if (where == 0 && context->rank == context->ranks - 1) ((double *)p.b[1].data)[3] = NAN;
    if (where == 1 && context->rank == 0) ((double *)p.gauge.links[0][2].data)[7] = NAN;
    assert_int_equal(solve(context, &p, "auto", MD_DOUBLE, &request, true, &result),
                     where == 0 ? MD_INPUT : MD_UNREACHED);
    assert_non_null(strstr(context->message, "must be finite"));
    md_solver_result_free(&result);
    drop(&p);
  }
}

/* The second of three sources, squared, underflows or overflows, or nearly; the third is zero. */
static void sources_out_of_range_are_refused(void **state) {
  md_context *context = *state;
  const md_solver_request request = {.mass = 0.2, .tolerance = 1e-9, .max_iterations = 1000};
  const double sizes[] = {1e-120, 1e147, 1e-133, 1e-157, 1e-170, 4e-320, 1e151, 1e160};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    problem p;
    md_solver_result result;
    make(context, small, 3, &p);
    md_source_gaussian(p.b, 8);
    const double by[] = {1.0, sizes[k], 0.0}, none[] = {0.0, 0.0, 0.0};
    for (int i = 0; i < 2; i++) md_linear_axpby(none, &p.b[i], by, &p.b[i]);
    const md_status status = solve(context, &p, "auto", MD_DOUBLE, &request, true, &result);
    const char *expected = sizes[k] > 1.0 ? "of right-hand side 1; check the source"
                                          : "of right-hand side 1; scale the source";
    assert_int_equal(status, k < 2 ? MD_OK : MD_INPUT);
    if (k < 2) assert_true(result.converged && result.rhs_iterations[1] > 0);
    if (k > 1) assert_non_null(strstr(context->message, expected));
    md_solver_result_free(&result);
    drop(&p);
  }
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(milc_phases_give_the_same_correlator),
    cmocka_unit_test(history_does_not_depend_on_the_cut),
    cmocka_unit_test(right_hand_sides_stop_on_their_own),
    cmocka_unit_test(residuals_are_of_the_whole_lattice),
    cmocka_unit_test(limits_are_reported),
    cmocka_unit_test(not_a_number_ends_the_solve),
    cmocka_unit_test(sources_out_of_range_are_refused),
};
MD_RUN_TESTS(tests)
