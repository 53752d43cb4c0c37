/* A new operator and a new solver in a few lines each: the Laplacian along x on fields of 24
 * components, which knows nothing of a stencil D, and Richardson's iteration. Every solver of the
 * table that accepts the operator solves with it, with and without a preconditioner. */
#include "dirac/solvers/cg.h"
#include "lattice/fields/linear.h"
#include "problem.h"

#include <math.h>

/* out(x) = (2 + mass2) in(x) - in(next site) - in(site before), in the order of the even sites. */
static md_status apply(md_context *context, md_operator *a, md_field *out, md_field *in,
                       const md_operator_end *end) {
  const int numbers = in->components * in->n_rhs;
  double here[MD_MAX_RHS], next[MD_MAX_RHS], before[MD_MAX_RHS], to[MD_MAX_RHS];
  (void)context, (void)end;
  for (int64_t i = 0; i < in->sites; i++)
    for (int r = 0; r < in->n_rhs; r++) {
      md_field_get(in, i, r, here);
      md_field_get(in, (i + 1) % in->sites, r, next);
      md_field_get(in, (i + in->sites - 1) % in->sites, r, before);
      for (int c = 0; c < in->components; c++)
        to[r * in->components + c] = (2.0 + a->least) * here[c] - next[c] - before[c];
      if ((r + 1) * in->components == numbers) md_field_set(out, i, to);
    }
  return MD_OK;
}
static void nothing(md_operator *a) {
  (void)a;
}
static const md_operator_kind laplacian = {"laplacian", apply, false, nothing};

/* x += r / most, r = r - A r / most */
static md_status richardson(md_context *context, const md_solver_job *job, md_cg_state *s) {
  double step[MD_MAX_RHS], minus[MD_MAX_RHS], norm2[MD_MAX_RHS];
  md_field a_r = {0};
  MD_TRY(md_agree(context, md_operator_field(context, job->a, &a_r)));
  bool ends = md_cg_record(job->request, s);
  md_status status = MD_OK;
  for (int r = 0; r < s->n_rhs; r++) minus[r] = -(step[r] = 1.0 / job->a->most);
  while (status == MD_OK && !ends) {
    md_linear_axpy(step, &s->r, &s->x);
    status = md_operator_apply(context, job->a, &a_r, &s->r, NULL);
    if (status == MD_OK)
      status = md_linear_axpby_norm2(context, minus, &a_r, NULL, &s->r, NULL, norm2);
    if (status == MD_OK) status = md_cg_conclude(context, job->request, step, norm2, s, &ends);
  }
  md_field_destroy(&a_r);
  return status;
}
static const md_solver toy = {.name = "richardson", .iterate = richardson};

static void solve_with(md_context *context, const md_solver *solver, md_operator *a,
                       md_operator *precondition, const md_field *b) {
  const md_solver_request request = {.tolerance = 1e-9, .max_iterations = 6000, .solver = solver};
  const md_solver_job job = {a, NULL, precondition, &request, NULL};
  md_system system;
  md_solver_result result;
  if (md_solver_check(context, solver, &job) != MD_OK) {
    print_message("%s: %s\n", solver->name, context->message);
    assert_true(solver == &md_solver_block || precondition);
    return;
  }
  MD_REQUIRE(context, md_system_plain(context, a, b, &system));
  MD_REQUIRE(context, md_solve(context, &job, &system, &result));
  print_message("%-10s %-10s %4d iterations, %.2e\n", solver->name,
                precondition ? precondition->kind->name : "", result.iterations,
                result.relative_residual);
  assert_true(result.converged && result.relative_residual <= 1e-9 && result.iterations > 1);
  if (precondition) assert_true(result.iterations < 40); /* of 90 and more without */
  md_solver_result_free(&result);
  md_system_destroy(&system);
}

static void every_solver(void **state) {
  md_context *context = *state;
  const int dims[MD_DIMS] = {4, 4, 4, 4};
  md_geometry *g = md_test_action_geometry(context, MD_ACTION_NAIVE, dims, false);
  for (int n_rhs = 1; n_rhs <= 3; n_rhs += 2) {
    md_operator a = {.kind = &laplacian,
                     .geometry = g,
                     .shape = {MD_DOUBLE, MD_HOST, 24, n_rhs, true, false},
                     .parity = MD_EVEN,
                     .hermitian = true,
                     .positive = true,
                     .least = 0.02,
                     .most = 4.02};
    md_operator polynomial, shifted;
    md_field b;
    double numbers[3 * 24];
    MD_REQUIRE(context, md_operator_field(context, &a, &b));
    for (int64_t i = 0; i < b.sites; i++) {
      for (int c = 0; c < 24 * n_rhs; c++) numbers[c] = sin(1.0 + (double)i * (c + 3));
      md_field_set(&b, i, numbers);
    }
    MD_REQUIRE(context, md_chebyshev_create(context, &a, 6, &polynomial));
    for (const md_solver *const *s = md_solvers(); *s; s++) {
      solve_with(context, *s, &a, NULL, &b);
      solve_with(context, *s, &a, &polynomial, &b);
    }
    solve_with(context, &toy, &a, NULL, &b);
    MD_REQUIRE(context, md_shifted_create(context, &a, 0.5, &shifted));
    solve_with(context, &md_solver_cg, &shifted, NULL, &b);
    md_operator_destroy(&shifted);
    MD_REQUIRE(context, md_shifted_create(context, &a, -1.0, &shifted)); /* of both signs */
    const md_solver_request request = {.tolerance = 1e-9, .max_iterations = 9};
    const md_solver_job job = {&shifted, NULL, NULL, &request, NULL};
    assert_int_equal(md_solver_check(context, &md_solver_cg, &job), MD_INPUT);
    assert_int_equal(md_solver_check(context, &md_solver_gcr, &job), MD_OK);
    md_operator_destroy(&shifted);
    md_operator_destroy(&polynomial);
    md_field_destroy(&b);
  }
  md_geometry_destroy(g);
}

/* The operators of a stencil: what they are, and an end in one pass as after it. */
static void ends(void **state) {
  md_context *context = *state;
  md_operator a, shifted;
  md_dirac dirac;
  md_field in, out, x;
  double norms[1], minus[1] = {-1.0}, scale[1] = {0.3};
  problem p;
  problem_make(context, 1, &p);
  problem_dirac(context, &p, "cpu_ref", MD_DOUBLE, &dirac);
  MD_REQUIRE(context, md_normal_create(context, &dirac, 0.5, &a));
  assert_true(a.hermitian && a.positive && a.least == 0.25 && a.most == 16.25 && a.normal);
  assert_true(a.flops == 2.0 * 570 * 256 && a.bytes > 0.0);
  MD_REQUIRE(context, md_operator_field(context, &a, &in));
  MD_REQUIRE(context, md_operator_field(context, &a, &out));
  MD_REQUIRE(context, md_operator_field(context, &a, &x));
  MD_REQUIRE(context, md_field_convert(context, &in, &p.b[MD_EVEN]));
  MD_REQUIRE(context, md_shifted_create(context, &a, 0.7, &shifted));
  const md_operator_end all[] = {{NULL, 0.0, -0.3}, {&in, 1.0, -0.3}, {&x, 1.0, -0.3}};
  for (int k = 0; k < 6; k++) {
    md_operator *by = k < 3 ? &a : &shifted;
    const md_operator_end *end = &all[k % 3];
    MD_REQUIRE(context, md_operator_apply(context, by, &x, &in, NULL));
    MD_REQUIRE(context, md_operator_apply(context, by, &out, &in, end));
    md_linear_axpy(scale, &x, &out); /* x is A in */
    if (end->x) md_linear_axpy(minus, end->x, &out);
    MD_REQUIRE(context, md_linear_norm2(context, &out, NULL, norms));
    md_require_at_most(norms[0], 1e-24, "an end");
  }
  md_field_destroy(&in);
  md_field_destroy(&out);
  md_field_destroy(&x);
  md_operator_destroy(&shifted);
  md_operator_destroy(&a);
  md_dirac_destroy(&dirac);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(every_solver), cmocka_unit_test(ends)};
MD_RUN_TESTS(tests)
