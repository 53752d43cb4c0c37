#include "dirac/solvers/solver.h"
#include "base/memory_need.h"
#include "base/timer.h"
#include "dirac/solvers/block_cg.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/choose.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/mixed_block.h"
#include "dirac/solvers/mixed_cg.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The system in the space of the exact operator, in double. */
typedef struct exact_system {
  md_dirac *dirac;
  double mass;
  md_field b[MD_PARITIES], x[MD_PARITIES], work[MD_PARITIES];
} exact_system;

static void system_destroy(exact_system *s) {
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field_destroy(&s->b[p]);
    md_field_destroy(&s->x[p]);
    md_field_destroy(&s->work[p]);
  }
}

static md_status system_create(md_context *context, md_dirac *dirac, double mass,
                               md_field b[MD_PARITIES], exact_system *s) {
  *s = (exact_system){.dirac = dirac, .mass = mass};
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(md_dirac_field(context, dirac, p, &s->b[p]));
    MD_TRY(md_dirac_field(context, dirac, p, &s->x[p]));
    MD_TRY(md_dirac_field(context, dirac, p, &s->work[p]));
    MD_TRY(md_field_convert(context, &s->b[p], &b[p]));
  }
  return MD_OK;
}

/* norms[r] = the square root of the sum over both parities. */
static md_status full_norms(md_context *context, const md_field f[MD_PARITIES], double *norms) {
  double odd[MD_MAX_RHS];
  MD_TRY(md_linear_norm2(context, &f[MD_EVEN], norms));
  MD_TRY(md_linear_norm2(context, &f[MD_ODD], odd));
  for (int r = 0; r < f[0].n_rhs; r++) norms[r] = sqrt(norms[r] + odd[r]);
  return MD_OK;
}

/* work[even] = s = m b_e - Deo b_o */
static md_status prepare_source(md_context *context, exact_system *s) {
  const md_hop_end end = {.x = &s->b[MD_EVEN], .a = s->mass, .b = -1.0};
  return md_dirac_hop(context, s->dirac, &s->work[MD_EVEN], &s->b[MD_ODD], &end);
}

/* x_o = (b_o - Doe x_e) / m */
static md_status reconstruct_odd(md_context *context, exact_system *s) {
  const md_hop_end end = {.x = &s->b[MD_ODD], .a = 1.0 / s->mass, .b = -1.0 / s->mass};
  return md_dirac_hop(context, s->dirac, &s->x[MD_ODD], &s->x[MD_EVEN], &end);
}

/* work = b - M x and residuals[r] = |work_r| / |b_r|; 0 for a source of zeros. */
static md_status true_residuals(md_context *context, exact_system *s, const double *b_norm,
                                double *residuals) {
  double minus[MD_MAX_RHS];
  for (int r = 0; r < s->x[0].n_rhs; r++) minus[r] = -1.0;
  MD_TRY(md_dirac_m(context, s->dirac, s->mass, s->work, s->x));
  for (int p = 0; p < MD_PARITIES; p++) md_linear_xpby(&s->b[p], minus, &s->work[p]);
  MD_TRY(full_norms(context, s->work, residuals));
  for (int r = 0; r < s->x[0].n_rhs; r++) {
    if (!isfinite(residuals[r]))
      return md_fail(context, MD_UNREACHED,
                     "the true residual must be finite, got %g for right-hand side %d",
                     residuals[r], r);
    residuals[r] = b_norm[r] > 0.0 ? residuals[r] / b_norm[r] : residuals[r];
  }
  return MD_OK;
}

/* work[even] = s - A x_e = m (b_e - m x_e) + Deo (Doe x_e - b_o) */
static md_status even_residual(md_context *context, exact_system *s) {
  const md_hop_end less_b = {.x = &s->b[MD_ODD], .a = -1.0, .b = 1.0};
  const md_hop_end plus_b = {.x = &s->b[MD_EVEN], .a = s->mass, .b = 1.0};
  double minus[MD_MAX_RHS];
  for (int r = 0; r < s->x[0].n_rhs; r++) minus[r] = -s->mass * s->mass;
  MD_TRY(md_dirac_hop(context, s->dirac, &s->work[MD_ODD], &s->x[MD_EVEN], &less_b));
  MD_TRY(md_dirac_hop(context, s->dirac, &s->work[MD_EVEN], &s->work[MD_ODD], &plus_b));
  md_linear_axpy(minus, &s->x[MD_EVEN], &s->work[MD_EVEN]);
  return MD_OK;
}

/* Takes the modes' part of the solution into x_e; work[even] is the residual before and after. */
static md_status project(md_context *context, exact_system *s, const md_solver_request *request,
                         md_cg_state *state) {
  double part2[MD_MAX_RHS];
  bool added;
  if (!request->modes || request->modes->count == 0) return MD_OK;
  MD_TRY(md_low_modes_project(context, request->modes, s->mass, &s->work[MD_EVEN], NULL,
                              &s->x[MD_EVEN], part2, &added));
  state->projections++;
  return even_residual(context, s);
}

/* work[even] = s of the system, less A times what is known of the solution, which is put into x_e.
 */
static md_status begin(md_context *context, exact_system *s, const md_solver_request *request,
                       md_cg_state *state) {
  if (request->guess) {
    MD_TRY(md_agree(context, md_field_convert(context, &s->x[MD_EVEN], request->guess)));
    MD_TRY(even_residual(context, s));
  } else {
    MD_TRY(prepare_source(context, s));
  }
  return project(context, s, request, state);
}

/* Starts CG from the even right-hand side in work[even]. */
static md_status start(md_context *context, exact_system *s, md_cg_state *state) {
  MD_TRY(md_agree(context, md_field_convert(context, &state->r, &s->work[MD_EVEN])));
  md_linear_copy(&state->p, &state->r);
  md_linear_zero(&state->x);
  state->carries = false;
  MD_TRY(md_linear_norm2(context, &state->r, state->r_norm2));
  for (int r = 0; r < state->n_rhs; r++)
    if (!isfinite(state->r_norm2[r]) || !isfinite(state->b_norm[r]))
      return md_fail(context, MD_UNREACHED,
                     "the source must be finite, got norm^2 %g of right-hand side %d",
                     state->r_norm2[r], r);
  return MD_OK;
}

/* x_e += the solution in state->x; x_o follows from it. work[even] is overwritten. */
static md_status collect(md_context *context, exact_system *s, const md_cg_state *state) {
  double one[MD_MAX_RHS];
  for (int r = 0; r < state->n_rhs; r++) one[r] = 1.0;
  MD_TRY(md_agree(context, md_field_convert(context, &s->work[MD_EVEN], &state->x)));
  md_linear_axpy(one, &s->work[MD_EVEN], &s->x[MD_EVEN]);
  return reconstruct_odd(context, s);
}

static double largest_of(const double *values, int count) {
  double largest = 0.0;
  for (int i = 0; i < count; i++) largest = fmax(largest, values[i]);
  return largest;
}

typedef md_status iteration(md_context *context, md_dirac *dirac, const md_solver_request *request,
                            md_cg_state *state);

static iteration *iteration_of(const md_solver_request *request) {
  if (request->choose) return md_choose_iterate;
  if (request->block) return request->inner ? md_mixed_block_iterate : md_block_cg_iterate;
  return request->inner ? md_mixed_cg_iterate : md_cg_iterate;
}

/* The tolerance of the iterations until the next projection: plain CG has no updates at which what
 * is left of the modes, by their rounding, could be taken out before it comes to light. */
static double next_tolerance(const md_dirac *dirac, const md_solver_request *request, double now) {
  const md_modes *modes = request->modes;
  if (!modes || modes->count == 0 || request->inner || dirac->request.precision != MD_DOUBLE)
    return request->tolerance;
  const double kappa = md_low_modes_kappa(modes, request->mass, dirac->norm);
  const double noise = md_low_modes_noise(modes, kappa, dirac->norm, 0.0);
  return fmax(request->tolerance, now * fmin(0.01, noise));
}

/* Largest |r| / (m |b|). */
static double first_residual(const md_cg_state *state, double mass) {
  double largest = 0.0;
  for (int r = 0; r < state->n_rhs; r++)
    if (state->b_norm[r] > 0.0)
      largest = fmax(largest, sqrt(state->r_norm2[r]) / (mass * state->b_norm[r]));
  return largest;
}

/* CG, true residual, and in double again from the true residual as long as that halves it. The
 * even residual of the whole system is (s - A x_e) / m, so m times it is the next right-hand
 * side. */
static md_status run(md_context *context, md_dirac *dirac, exact_system *s,
                     const md_solver_request *request, md_cg_state *state, double *residuals) {
  double mass_less_one[MD_MAX_RHS];
  md_solver_request part = *request;
  state->solved = &s->x[MD_EVEN];
  state->round_before = INFINITY;
  for (int r = 0; r < state->n_rhs; r++) mass_less_one[r] = request->mass - 1.0;
  MD_TRY(full_norms(context, s->b, state->b_norm));
  MD_TRY(begin(context, s, request, state));
  MD_TRY(start(context, s, state));
  memcpy(state->start_norm2, state->r_norm2, (size_t)state->n_rhs * sizeof *state->start_norm2);
  for (;; part.resume = NULL) {
    if (!part.resume)
      state->tolerance = part.tolerance =
          next_tolerance(dirac, request, first_residual(state, request->mass));
    MD_TRY(iteration_of(request)(context, dirac, &part, state));
    MD_TRY(collect(context, s, state));
    MD_TRY(true_residuals(context, s, state->b_norm, residuals));
    const double now = largest_of(residuals, state->n_rhs);
    if (now <= request->tolerance || dirac->request.precision != MD_DOUBLE ||
        state->iteration >= state->most || state->stalled || state->interrupted ||
        !(now < 0.5 * state->round_before))
      return MD_OK;
    state->round_before = now;
    state->round++;
    md_linear_axpy(mass_less_one, &s->work[MD_EVEN], &s->work[MD_EVEN]);
    MD_TRY(project(context, s, request, state));
    MD_TRY(start(context, s, state));
  }
}

/* A dry run: what the iterations take, and beside it what the caller takes between two of them. */
static md_status count(md_context *context, md_dirac *dirac, const md_solver_request *request,
                       md_cg_state *state) {
  MD_TRY(iteration_of(request)(context, dirac, request, state));
  return request->leave ? request->leave(request->user, state) : MD_OK;
}

static void hand_over(md_cg_state *state, const md_solver_request *request, const double *residuals,
                      md_solver_result *result) {
  result->n_rhs = state->n_rhs;
  result->iterations = state->iteration;
  result->updates = state->updates;
  result->projections = state->projections;
  result->restarts = state->restarts;
  result->stalled = state->stalled;
  result->interrupted = state->interrupted;
  result->block_rank = state->block_rank;
  result->choice = state->choice;
  result->history = state->history;
  result->rhs_iterations = state->rhs_iterations;
  state->history = NULL;
  state->rhs_iterations = NULL;
  memcpy(result->residuals, residuals, (size_t)state->n_rhs * sizeof *residuals);
  result->relative_residual = largest_of(residuals, state->n_rhs);
  result->converged = result->relative_residual <= request->tolerance;
}

/* The same of a solve that met a number that is none. */
static void hand_over_failure(md_cg_state *state, const md_solver_request *request,
                              md_solver_result *result) {
  double unknown[MD_MAX_RHS];
  for (int r = 0; r < state->n_rhs; r++) unknown[r] = NAN;
  if (state->history[state->iteration] == 0.0) state->history[state->iteration] = NAN;
  hand_over(state, request, unknown, result);
  result->relative_residual = NAN;
  result->converged = false;
}

int64_t md_solver_hops(const md_dirac *dirac, const md_dirac *exact, const md_dirac *inner) {
  return dirac->hops + (exact != dirac ? exact->hops : 0) + (inner ? inner->hops : 0);
}

double md_solver_gflops(const md_dirac *dirac, int64_t hops, double seconds) {
  return (double)hops * md_action_flops(dirac->request.action) * 0.5 *
         (double)dirac->geometry->volume * dirac->request.n_rhs / seconds * 1e-9;
}

/* The inner operator must be narrower than a double one, and of the same fields. */
static md_status check_inner(md_context *context, const md_dirac *dirac, const md_dirac *inner) {
  if (!inner) return MD_OK;
  if (dirac->request.precision != MD_DOUBLE || inner->request.precision == MD_DOUBLE)
    return md_fail(context, MD_INPUT,
                   "mixed-precision CG needs a double operator and a narrower inner one, got %s "
                   "and %s",
                   md_precision_name(dirac->request.precision),
                   md_precision_name(inner->request.precision));
  const md_backend_request *a = &dirac->request, *b = &inner->request;
  if (dirac->geometry != inner->geometry || a->n_rhs != b->n_rhs || a->action != b->action ||
      a->antiperiodic != b->antiperiodic || a->twist.flux != b->twist.flux ||
      a->twist.imaginary_mu != b->twist.imaginary_mu)
    return md_fail(
        context, MD_INPUT,
        "the inner operator must have the lattice, action, boundary, twist and "
        "right-hand sides of the outer one, got action %s, %d right-hand sides and %s, %d",
        md_action_name(b->action), b->n_rhs, md_action_name(a->action), a->n_rhs);
  return MD_OK;
}

static bool keeps_states(const md_solver_request *request) {
  return request->save_every > 0 || request->resume || request->leave;
}

static md_status check_start(md_context *context, const md_dirac *exact,
                             const md_solver_request *request) {
  const md_modes *modes = request->modes;
  const md_field *guess = request->guess;
  if (modes && modes->count > 0 &&
      (modes->vectors->space != exact->shape.space || modes->vectors->geometry != exact->geometry))
    return md_fail(
        context, MD_INPUT,
        "modes to deflate with must lie in the space and on the geometry of the operator");
  if (guess && (guess->space != MD_HOST || guess->precision != MD_DOUBLE ||
                guess->parity != MD_EVEN || guess->n_rhs != exact->request.n_rhs))
    return md_fail(context, MD_INPUT,
                   "a guess must be an even host field in double with %d right-hand sides",
                   exact->request.n_rhs);
  if (keeps_states(request) && (request->block || request->choose))
    return md_fail(context, MD_INPUT,
                   "block CG and a choice of solvers keep no state to go on from; use CG in step");
  return MD_OK;
}

md_status md_solve_cg(md_context *context, md_dirac *dirac, md_dirac *exact,
                      const md_solver_request *request, md_field x[MD_PARITIES],
                      md_field b[MD_PARITIES], md_solver_result *result) {
  const double start_s = md_time_s();
  const int64_t hops = md_solver_hops(dirac, exact, request->inner);
  double residuals[MD_MAX_RHS] = {0};
  exact_system s = {0};
  md_cg_state state = {0};
  *result = (md_solver_result){0};
  MD_TRY(md_agree(context, check_inner(context, dirac, request->inner)));
  MD_TRY(md_agree(context, check_start(context, exact, request)));
  result->residuals = calloc((size_t)dirac->request.n_rhs, sizeof *result->residuals);
  md_status status = result->residuals ? MD_OK : md_fail_memory(context, 1, "residuals");
  if (status == MD_OK) status = system_create(context, exact, request->mass, b, &s);
  if (status == MD_OK) status = md_cg_state_create(context, dirac, request->max_iterations, &state);
  if (status == MD_OK && keeps_states(request) && md_cg_carries(dirac, request))
    status = md_cg_state_carry(context, dirac, &state);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_counts(context) ? count(context, dirac, request, &state)
                                : run(context, dirac, &s, request, &state, residuals);
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_convert(context, &x[p], &s.x[p]);
  status = md_agree(context, status);
  if (status == MD_UNREACHED) hand_over_failure(&state, request, result);
  if (status == MD_OK) {
    hand_over(&state, request, residuals, result);
    result->seconds = md_time_s() - start_s;
    const int64_t done = md_solver_hops(dirac, exact, request->inner) - hops;
    result->gflops = md_solver_gflops(dirac, done, result->seconds);
  }
  md_cg_state_destroy(&state);
  system_destroy(&s);
  return status;
}

void md_solver_result_free(md_solver_result *result) {
  free(result->residuals);
  free(result->rhs_iterations);
  free(result->history);
  *result = (md_solver_result){0};
}
