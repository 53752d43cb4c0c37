/* What solves M x = b of Wilson and domain-wall quarks, and equations of S S^dag, must agree in. */
#include "dirac/eigen/eigen.h"
#include "dirac/solvers/multishift.h"
#include "lattice/fields/linear.h"
#include "wilson_support.h"

#include <math.h>
#include <string.h>

static const int dims[MD_DIMS] = {4, 4, 4, 4};
enum { WILSON = 0, MOBIUS = 3 };

/* Iterations of a solve of M x = b. */
static int solve(md_context *context, wilson_problem *p, const wilson_kind *kind,
                 const md_solver_request *how, md_field x[MD_PARITIES], md_field b[MD_PARITIES]) {
  md_solver_request request = *how;
  md_solver_result result;
  request.mass = kind->mass;
  request.tolerance = 1e-12;
  request.max_iterations = 2000;
  MD_REQUIRE(context, md_solve_cg(context, &p->dirac, &p->dirac, &request, x, b, &result));
  assert_true(result.converged);
  const int iterations = result.iterations;
  md_solver_result_free(&result);
  return iterations;
}

static void require_alike(md_context *context, const md_field a[MD_PARITIES],
                          const md_field b[MD_PARITIES], const char *what) {
  for (int k = 0; k < MD_PARITIES; k++)
    md_require_at_most(md_test_distance(context, &a[k], &b[k]), 1e-10, what);
}

static void wilson_solvers_agree(void **state) {
  md_context *context = *state;
  const wilson_kind *kind = &wilson_kinds[WILSON];
  wilson_problem p;
  md_field b[MD_PARITIES], x[MD_PARITIES], y[MD_PARITIES];
  wilson_make(context, dims, kind, &p);
  wilson_fields(context, &p, 3, b);
  wilson_fields(context, &p, 0, x);
  wilson_fields(context, &p, 0, y);
  const int cg = solve(context, &p, kind, &(md_solver_request){0}, x, b);
  md_solver_request direct = {.solver = &md_solver_bicgstab}, begun = {.guess = &y[MD_EVEN]};
  assert_true(solve(context, &p, kind, &direct, y, b) < cg);
  require_alike(context, y, x, "BiCGStab");
  assert_true(solve(context, &p, kind, &begun, y, b) <= cg / 4);
  require_alike(context, y, x, "CG from a guess");
  direct.guess = &x[MD_EVEN];
  assert_true(solve(context, &p, kind, &direct, y, b) <= cg / 8);
  require_alike(context, y, x, "BiCGStab from a guess");
  wilson_destroy(b);
  wilson_destroy(x);
  wilson_destroy(y);
  wilson_drop(&p);
}

/* |S S^dag v + sigma v - b| over |b|, by the full operator's S. */
static double residual_of(md_context *context, wilson_problem *p, md_field *v, double sigma,
                          const md_field *b) {
  md_field room[2];
  double norm2, size2;
  for (int i = 0; i < 2; i++)
    MD_REQUIRE(context, md_dirac_field(context, &p->dirac, MD_EVEN, &room[i]));
  MD_REQUIRE(context, md_wilson_schur(context, &p->full, true, &room[0], v));
  MD_REQUIRE(context, md_wilson_schur(context, &p->full, false, &room[1], &room[0]));
  md_linear_add(sigma, v, &room[1]);
  md_linear_add(-1.0, b, &room[1]);
  MD_REQUIRE(context, md_linear_norm2(context, &room[1], NULL, &norm2));
  MD_REQUIRE(context, md_linear_norm2(context, b, NULL, &size2));
  for (int i = 0; i < 2; i++) md_field_destroy(&room[i]);
  return sqrt(norm2 / size2);
}

static void shifts_are_of_the_normal_operator(void **state) {
  enum { SHIFTS = 3 };
  md_context *context = *state;
  const double shifts[SHIFTS] = {0.7, 0.0, 0.02}, negative[SHIFTS] = {0.7, -0.05, 0.02};
  wilson_problem p;
  md_field b[MD_PARITIES], x[SHIFTS];
  md_multishift_result result;
  wilson_make(context, dims, &wilson_kinds[WILSON], &p);
  wilson_fields(context, &p, 4, b);
  for (int k = 0; k < SHIFTS; k++)
    MD_REQUIRE(context, md_dirac_field(context, &p.dirac, MD_EVEN, &x[k]));
  md_multishift_request request = {.mass = wilson_kinds[WILSON].mass,
                                   .shifts = negative,
                                   .n_shifts = SHIFTS,
                                   .tolerance = 1e-11,
                                   .max_iterations = 1000};
  assert_int_equal(
      md_solve_multishift(context, &p.dirac, &p.dirac, &request, x, &b[MD_EVEN], &result),
      MD_INPUT);
  assert_non_null(strstr(context->message, "shifts must be 0 or more, got -0.05"));
  request.shifts = shifts;
  MD_REQUIRE(context,
             md_solve_multishift(context, &p.dirac, &p.dirac, &request, x, &b[MD_EVEN], &result));
  assert_true(result.converged);
  for (int k = 0; k < SHIFTS; k++) {
    const double residual = residual_of(context, &p, &x[k], shifts[k], &b[MD_EVEN]);
    md_require_at_most(residual, 1.1e-11, "(S S^dag + sigma) x - b");
    md_field_destroy(&x[k]);
  }
  md_multishift_result_free(&result);
  wilson_destroy(b);
  wilson_drop(&p);
}

/* They are modes of S S^dag, and a solve that knows them takes fewer iterations to the same. */
static void modes_deflate(void **state) {
  enum { MODES = 4 };
  md_context *context = *state;
  for (int k = WILSON; k <= MOBIUS; k += MOBIUS) {
    const wilson_kind *kind = &wilson_kinds[k];
    const md_eigen_request wanted = {
        .mass = kind->mass, .modes = MODES, .tolerance = 1e-9, .max_restarts = 200, .seed = 1};
    wilson_problem p;
    md_eigen_result found;
    wilson_make(context, dims, kind, &p);
    MD_REQUIRE(context, md_eigen_lowest(context, &p.dirac, &wanted, &found));
    assert_true(found.converged && found.values[0] > 0.0);
    for (int i = 0; i < MODES; i++) {
      md_field *v = &found.vectors[i], scaled;
      const double value = found.values[i];
      MD_REQUIRE(context, md_dirac_field(context, &p.dirac, MD_EVEN, &scaled));
      md_linear_add(value, v, &scaled);
      md_require_at_most(value * residual_of(context, &p, v, 0.0, &scaled), 1.1e-9, "a mode");
      md_field_destroy(&scaled);
    }
    const md_modes modes = {.count = MODES,
                            .values = found.values,
                            .residuals = found.residuals,
                            .vectors = found.vectors};
    if (k == WILSON) {
      md_field b[MD_PARITIES], x[MD_PARITIES], y[MD_PARITIES];
      wilson_fields(context, &p, 5, b);
      wilson_fields(context, &p, 0, x);
      wilson_fields(context, &p, 0, y);
      const int plain = solve(context, &p, kind, &(md_solver_request){0}, x, b);
      assert_true(solve(context, &p, kind, &(md_solver_request){.modes = &modes}, y, b) <= plain);
      require_alike(context, y, x, "a deflated solve");
      wilson_destroy(b);
      wilson_destroy(x);
      wilson_destroy(y);
    }
    md_eigen_result_free(&found);
    wilson_drop(&p);
  }
}

/* Solutions and midpoints of walls one after the other are those of all at once. */
static void walls_are_solved_in_parts(void **state) {
  enum { RHS = 3, AT_ONCE = 0, APART, IN_TWO, WAYS };
  static const int together[WAYS] = {RHS, 1, 2};
  md_context *context = *state;
  const wilson_kind *kind = &wilson_kinds[MOBIUS];
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_SPINOR_REALS, RHS, true, false};
  wilson_problem p[WAYS];
  md_field b[MD_PARITIES], x[WAYS][MD_PARITIES], midpoint[WAYS][MD_PARITIES];
  for (int way = 0; way < WAYS; way++) {
    wilson_make(context, dims, kind, &p[way]);
    md_backend_request request = p[way].dirac.request;
    request.n_rhs = together[way];
    md_dirac_destroy(&p[way].dirac);
    MD_REQUIRE(context,
               md_dirac_create(context, &p[way].gauge, "cpu_simd", &request, &p[way].dirac));
  }
  for (int k = 0; k < MD_PARITIES; k++) {
    md_test_random_shape(context, p[APART].g, &shape, k, 7 + (uint64_t)k, &b[k]);
    for (int way = 0; way < WAYS; way++) {
      MD_REQUIRE(context, md_field_create(context, p[APART].g, &shape, k, &x[way][k]));
      MD_REQUIRE(context, md_field_create(context, p[APART].g, &shape, k, &midpoint[way][k]));
    }
  }
  for (int way = 0; way < WAYS; way++)
    (void)solve(context, &p[way], kind, &(md_solver_request){.midpoint = midpoint[way]}, x[way], b);
  for (int way = APART; way < WAYS; way++) {
    require_alike(context, x[way], x[AT_ONCE], "solutions in parts");
    require_alike(context, midpoint[way], midpoint[AT_ONCE], "midpoints in parts");
  }
  wilson_destroy(b);
  for (int way = 0; way < WAYS; way++) {
    wilson_destroy(x[way]);
    wilson_destroy(midpoint[way]);
    wilson_drop(&p[way]);
  }
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(wilson_solvers_agree), cmocka_unit_test(shifts_are_of_the_normal_operator),
    cmocka_unit_test(modes_deflate), cmocka_unit_test(walls_are_solved_in_parts)};
MD_RUN_TESTS(tests)
