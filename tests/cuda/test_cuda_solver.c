/* Conjugate gradients on the device: the solution of the host, the same answer with and without
 * fused stencils and on every rank grid, and the same bits after an interruption. */
#include "gpu_tests.h"
#include "lattice/fields/linear.h"
#include "solver_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int extent[4] = {8, 4, 4, 8};

static md_solver_result solve(md_context *context, problem *p, const char *backend,
                              md_backend_request request, bool fused,
                              const md_solver_request *solver) {
  md_dirac dirac, exact;
  md_solver_result result;
  md_backend copy;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &request, &dirac));
  request.precision = MD_DOUBLE;
  request.reconstruct = MD_RECONSTRUCT_18;
  MD_REQUIRE(context, md_dirac_create(context, &p->gauge, backend, &request, &exact));
  copy = *dirac.backend;
  if (!fused) copy.fuses = NULL;
  dirac.backend = &copy;
  MD_REQUIRE(context, md_solve_cg(context, &dirac, &exact, solver, p->x, p->b, &result));
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&exact);
  return result;
}

static void solves(md_context *context, md_precision precision, int n_rhs, bool halo) {
  const md_backend_request request = {.precision = precision,
                                      .reconstruct = MD_RECONSTRUCT_12,
                                      .n_rhs = n_rhs,
                                      .antiperiodic = true};
  const md_backend_request host = {.n_rhs = n_rhs, .antiperiodic = true};
  const md_solver_request solver = {
      .mass = 0.3, .tolerance = problem_tolerance(precision), .max_iterations = 400};
  md_solver_request tight = solver;
  tight.tolerance = 1e-12;
  problem device, oracle;
  problem_make(context, extent, n_rhs, halo, &device);
  problem_make(context, extent, n_rhs, halo, &oracle);
  md_solver_result want = solve(context, &oracle, "cpu_ref", host, false, &solver);
  md_solver_result exact = solve(context, &oracle, "cpu_ref", host, false, &tight);
  for (int fused = 0; fused < 2; fused++) {
    md_solver_result got = solve(context, &device, "cuda", request, fused == 1, &solver);
    md_require_at_most(fabs((double)(got.iterations - want.iterations)), 2 + 0.1 * want.iterations,
                       "iterations");
    problem_check(context, &device, &oracle, precision, &solver, &got);
    md_solver_result_free(&got);
  }
  md_solver_result_free(&want);
  md_solver_result_free(&exact);
  problem_drop(&device);
  problem_drop(&oracle);
}

static void solves_as_the_host(void **state) {
  md_context *context = *state;
  for (int p = 0; p < MD_PRECISIONS; p++)
    for (int n_rhs = 1; n_rhs <= 6; n_rhs += 5)
      for (int halo = 0; halo < 2; halo++) solves(context, (md_precision)p, n_rhs, halo == 1);
}

typedef struct saved {
  md_context *context;
  md_field x, r, p, before;
  double r_norm2[MD_MAX_RHS], b_norm[MD_MAX_RHS], carried[3 * MD_MAX_RHS];
  int iteration, seen;
} saved;

static void copy_of(md_context *context, md_field *to, const md_field *from) {
  if (!to->data)
    MD_REQUIRE(context,
               md_field_create(context, from->geometry,
                               &(md_field_shape){from->precision, MD_DEVICE, from->components,
                                                 from->n_rhs, true, false},
                               from->parity, to));
  md_linear_copy(to, from);
}

static md_status save(void *user, const md_cg_state *state) {
  saved *s = user;
  s->seen++;
  if (state->iteration != 20) return MD_OK;
  copy_of(s->context, &s->x, &state->x);
  copy_of(s->context, &s->r, &state->r);
  copy_of(s->context, &s->p, &state->p);
  copy_of(s->context, &s->before, &state->before);
  assert_true(state->carries);
  memcpy(s->carried, state->carried, 3 * (size_t)state->n_rhs * sizeof(double));
  memcpy(s->r_norm2, state->r_norm2, (size_t)state->n_rhs * sizeof(double));
  s->iteration = state->iteration;
  return MD_OK;
}

static md_status restore(void *user, md_cg_state *state) {
  saved *s = user;
  md_linear_copy(&state->x, &s->x);
  md_linear_copy(&state->r, &s->r);
  md_linear_copy(&state->p, &s->p);
  md_linear_copy(&state->before, &s->before);
  memcpy(state->carried, s->carried, 3 * (size_t)state->n_rhs * sizeof(double));
  state->carries = true;
  memcpy(state->r_norm2, s->r_norm2, (size_t)state->n_rhs * sizeof(double));
  state->iteration = s->iteration;
  return MD_OK;
}

/* The observer sees every iteration once; a solve that goes on from the fields it saved in
 * iteration 20 ends with the same history. */
static void goes_on_with_the_same_bits(void **state) {
  md_context *context = *state;
  const md_backend_request request = {.n_rhs = 2, .antiperiodic = true};
  saved s = {.context = context};
  problem p;
  problem_make(context, extent, 2, false, &p);
  md_solver_request solver = {.mass = 0.3,
                              .tolerance = 1e-9,
                              .max_iterations = 400,
                              .observe = save,
                              .save_every = 20,
                              .user = &s};
  md_solver_result whole = solve(context, &p, "cuda", request, true, &solver);
  assert_int_equal(s.seen, whole.iterations);
  assert_int_equal(s.iteration, 20);
  solver.observe = NULL;
  solver.resume = restore;
  md_solver_result rest = solve(context, &p, "cuda", request, true, &solver);
  assert_int_equal(rest.iterations, whole.iterations);
  assert_memory_equal(rest.history + 20, whole.history + 20,
                      (size_t)(whole.iterations - 19) * sizeof(double));
  md_solver_result_free(&whole);
  md_solver_result_free(&rest);
  md_field_destroy(&s.x);
  md_field_destroy(&s.r);
  md_field_destroy(&s.p);
  md_field_destroy(&s.before);
  problem_drop(&p);
}

static md_status look(void *user, const md_cg_state *state) {
  (void)user, (void)state;
  return MD_OK;
}

/* Iterations queued kernel by kernel and replayed ones, also where the fields are brought up to
 * date in between; with halos of its own on one rank. */
static void recordings_change_no_bits(void **state) {
  md_context *context = *state;
  const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE, MD_HALF};
  for (int k = 0; k < 3; k++)
    for (int halo = 0; halo < 2; halo++) {
      const md_backend_request request = {
          .precision = precisions[k], .n_rhs = 1 + 2 * halo, .antiperiodic = true};
      const md_solver_request solver = {.mass = 0.2,
                                        .tolerance = problem_tolerance(precisions[k]),
                                        .max_iterations = 400,
                                        .observe = look,
                                        .save_every = halo ? 0 : 11};
      md_solver_result result[2];
      problem p;
      problem_make(context, extent, request.n_rhs, halo == 1, &p);
      for (int recorded = 0; recorded < 2; recorded++) {
        context->wishes.record = recorded ? MD_RECORD_ALWAYS : MD_RECORD_NEVER;
        result[recorded] = solve(context, &p, "cuda", request, true, &solver);
      }
      context->wishes.record = MD_RECORD_DEFAULT;
      assert_true(result[0].iterations > 12);
      assert_int_equal(result[0].iterations, result[1].iterations);
      assert_memory_equal(result[0].history, result[1].history,
                          (size_t)(result[0].iterations + 1) * sizeof(double));
      md_solver_result_free(&result[0]);
      md_solver_result_free(&result[1]);
      problem_drop(&p);
    }
}

static void not_a_number_ends_it(void **state) {
  md_context *context = *state;
  const md_backend_request request = {.n_rhs = 1, .antiperiodic = true};
  const md_solver_request solver = {.mass = 0.3, .tolerance = 1e-9, .max_iterations = 400};
  md_dirac dirac;
  md_solver_result result;
  problem p;
  problem_make(context, extent, 1, false, &p);
  double u[MD_LINK_REALS] = {NAN};
  md_gauge_set(&p.gauge, MD_EVEN, MD_X, 3, u);
  MD_REQUIRE(context, md_gauge_exchange(context, &p.gauge));
  MD_REQUIRE(context, md_dirac_create(context, &p.gauge, "cuda", &request, &dirac));
  assert_int_equal(md_solve_cg(context, &dirac, &dirac, &solver, p.x, p.b, &result), MD_UNREACHED);
  assert_non_null(strstr(context->message, "finite"));
  md_solver_result_free(&result);
  md_dirac_destroy(&dirac);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(solves_as_the_host), cmocka_unit_test(goes_on_with_the_same_bits),
    cmocka_unit_test(recordings_change_no_bits), cmocka_unit_test(not_a_number_ends_it)};
MD_RUN_GPU_TESTS(tests)
