#include "dirac/solvers/solver.h"
#include "base/memory_need.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/timer.h"
#include "dirac/backend.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/columns.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const md_solver *const *md_solvers(void) {
#define MD_SOLVER_ROW(id, name) &md_solver_##name,
  static const md_solver *const table[] = {MD_SOLVER_TABLE(MD_SOLVER_ROW) NULL};
#undef MD_SOLVER_ROW
  return table;
}

const md_solver *md_solver_find(const char *name) {
  const md_solver *const *solver = md_solvers();
  while (*solver && strcmp((*solver)->name, name) != 0) solver++;
  return *solver;
}

static const md_solver *solver_of(const md_solver_request *request) {
  return request->solver ? request->solver : &md_solver_cg;
}

/* Takes the modes' part of the solution into y; work[0] is the residual before and after. */
static md_status project(md_context *context, const md_solver_job *job, md_system *s,
                         md_cg_state *state) {
  const md_modes *modes = job->request->modes;
  double part2[MD_MAX_RHS];
  bool added;
  if (!modes || modes->count == 0) return MD_OK;
  MD_TRY(md_low_modes_project(context, modes, job->a->modes_from, &s->work[0], NULL, md_system_y(s),
                              part2, &added));
  state->result.projections++;
  return s->kind->residual(context, s);
}

/* The field that a guess goes to, which further parts find. */
static md_status guess_create(md_context *context, md_system *s) {
  if (!s->is_apart || s->base.data) return MD_OK;
  return md_field_create(context, s->a->geometry, &s->a->shape, MD_EVEN, &s->base);
}

/* What a solution begins from: y, or x_e where y is apart; zero where the source is. */
static md_status take_guess(md_context *context, md_system *s, const md_field *guess) {
  md_field *to = s->is_apart ? &s->base : md_system_y(s);
  const md_status status = guess_create(context, s);
  MD_TRY(md_agree(context, status == MD_OK ? md_field_resize(context, to, guess) : status));
  double none[MD_MAX_RHS], kept[MD_MAX_RHS];
  for (int r = 0; r < to->n_rhs; r++) none[r] = 0.0, kept[r] = s->b_norm[r] > 0.0;
  md_linear_axpby(none, to, kept, to);
  return MD_OK;
}

/* work[0] = c of the system, less A times what is known of the solution, which is put into y. */
static md_status begin(md_context *context, const md_solver_job *job, md_system *s,
                       md_cg_state *state) {
  const md_field *guess = job->request->guess;
  if (guess) MD_TRY(take_guess(context, s, guess));
  MD_TRY(guess ? s->kind->residual(context, s) : s->kind->source(context, s));
  return project(context, job, s, state);
}

/* Starts a solver from the right-hand side in work[0]. */
static md_status start(md_context *context, md_system *s, md_cg_state *state) {
  MD_TRY(md_agree(context, md_field_convert(context, &state->r, &s->work[0])));
  md_linear_copy(&state->p, &state->r);
  md_linear_zero(&state->x);
  state->carries = false;
  MD_TRY(md_linear_norm2(context, &state->r, NULL, state->r_norm2));
  for (int r = 0; r < state->n_rhs; r++) {
    if (!isfinite(state->r_norm2[r]))
      return md_fail(context, MD_UNREACHED,
                     "the residual to begin from must be finite, got norm^2 %g of right-hand side "
                     "%d; check the links, and the guess, for NaN",
                     state->r_norm2[r], r);
  }
  return MD_OK;
}

/* y += the solution in state->x; the rest of x follows from it. work[0] is overwritten. */
static md_status collect(md_context *context, md_system *s, const md_cg_state *state) {
  MD_TRY(md_agree(context, md_field_convert(context, &s->work[0], &state->x)));
  md_linear_add(1.0, &s->work[0], md_system_y(s));
  return s->kind->reconstruct(context, s);
}

static double largest_of(const double *values, int count) {
  double largest = 0.0;
  for (int i = 0; i < count; i++) largest = fmax(largest, values[i]);
  return largest;
}

/* The tolerance of the iterations until the next projection: plain CG has no updates at which what
 * is left of the modes, by their rounding, could be taken out before it comes to light. */
static double next_tolerance(const md_solver_job *job, double now) {
  const md_modes *modes = job->request->modes;
  const md_operator *a = job->a;
  if (!modes || modes->count == 0 || job->inner || a->precision != MD_DOUBLE)
    return job->request->tolerance;
  const double kappa = md_low_modes_kappa(modes, a->least, a->most);
  const double noise = md_low_modes_noise(modes, kappa, a->most - a->least, 0.0);
  return fmax(job->request->tolerance, now * fmin(0.01, noise));
}

/* Iterations, true residual, and in double again from the true residual as long as that halves it
 * or the tolerance was that of a state with a larger one. */
static md_status run(md_context *context, const md_solver_job *job, md_system *s,
                     md_cg_state *state) {
  const md_solver_request *request = job->request;
  const size_t bytes = (size_t)state->n_rhs * sizeof(double);
  md_solver_request part = *request;
  md_solver_job now = *job;
  now.request = &part;
  state->solved = md_system_y(s);
  state->parts = job->parts;
  state->round_before = INFINITY;
  MD_TRY(md_system_measure(context, s));
  memcpy(state->b_norm, s->b_norm, bytes);
  memcpy(state->scale, s->scale, bytes);
  MD_TRY(begin(context, job, s, state));
  MD_TRY(start(context, s, state));
  memcpy(state->start_norm2, state->r_norm2, bytes);
  for (;; part.resume = NULL) {
    if (!part.resume) state->tolerance = part.tolerance = next_tolerance(job, md_cg_largest(state));
    MD_TRY(solver_of(request)->iterate(context, &now, state));
    MD_TRY(collect(context, s, state));
    MD_TRY(md_system_true_residuals(context, s, state->result.residuals));
    const double worst = largest_of(state->result.residuals, state->n_rhs);
    if (worst <= request->tolerance || job->a->precision != MD_DOUBLE ||
        state->iteration >= state->most || state->result.stalled || state->result.interrupted ||
        (worst > state->tolerance && !(worst < 0.5 * state->round_before)))
      return MD_OK;
    state->round_before = worst;
    state->round++;
    md_system_go_on(s);
    MD_TRY(project(context, job, s, state));
    MD_TRY(start(context, s, state));
  }
}

/* A dry run: what the iterations take, and beside it what the caller takes between two of them. */
static md_status count(md_context *context, const md_solver_job *job, md_system *s,
                       md_cg_state *state) {
  const md_solver_request *request = job->request;
  if (request->guess) MD_TRY(guess_create(context, s));
  MD_TRY(solver_of(request)->iterate(context, job, state));
  return request->leave ? request->leave(request->user, state) : MD_OK;
}

/* What has been found goes to the caller; not `finite`: the solve met a number that is none. */
static void hand_over(md_cg_state *state, const md_solver_request *request, bool finite,
                      md_solver_result *result) {
  double *last = &state->result.history[state->iteration];
  *result = state->result;
  state->result = (md_solver_result){0};
  if (!finite && *last == 0.0) *last = NAN;
  for (int r = 0; r < state->n_rhs && !finite; r++) result->residuals[r] = NAN;
  result->iterations = state->iteration;
  result->relative_residual = finite ? largest_of(result->residuals, state->n_rhs) : NAN;
  result->converged = result->relative_residual <= request->tolerance;
}

md_status md_solver_operators(md_context *context, const md_gauge *gauge, const char *backend,
                              const md_backend_request *request, const md_halo_request *how,
                              bool mixed, md_dirac *dirac, md_dirac *exact, md_dirac *inner) {
  md_dirac *iterates = mixed ? inner : dirac;
  MD_TRY(md_dirac_create_over(context, gauge, backend, request, how, iterates));
  if (!mixed && request->precision == MD_DOUBLE && request->reconstruct == MD_RECONSTRUCT_18)
    return MD_OK;
  return md_dirac_create_exact(context, gauge, iterates->backend->name, &iterates->request, how,
                               mixed ? dirac : exact);
}

int64_t md_solver_hops(const md_dirac *dirac, const md_dirac *exact, const md_dirac *inner) {
  return dirac->hops + (exact != dirac ? exact->hops : 0) + (inner ? inner->hops : 0);
}

double md_solver_gflops(const md_dirac *dirac, int n_rhs, int64_t hops, double seconds) {
  return (double)hops * md_request_flops(&dirac->request) * 0.5 * (double)dirac->geometry->volume *
         n_rhs / seconds * 1e-9;
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
      a->twist.imaginary_mu != b->twist.imaginary_mu || a->walls.slices != b->walls.slices ||
      a->walls.height != b->walls.height || a->walls.b5 != b->walls.b5 ||
      a->walls.c5 != b->walls.c5)
    return md_fail(
        context, MD_INPUT,
        "the inner operator must have the lattice, action, boundary, twist and "
        "right-hand sides of the outer one, got action %s, %d right-hand sides and %s, %d",
        md_action_name(b->action), b->n_rhs, md_action_name(a->action), a->n_rhs);
  return MD_OK;
}

static md_status check_start(md_context *context, const md_system *s,
                             const md_solver_request *request) {
  const md_modes *modes = request->modes;
  const md_field *guess = request->guess, *y = &s->x[0];
  if (modes && modes->count > 0 &&
      (modes->vectors->space != y->space || modes->vectors->geometry != y->geometry))
    return md_fail(
        context, MD_INPUT,
        "modes to deflate with must lie in the space and on the geometry of the operator");
  if (guess &&
      (guess->space != MD_HOST || guess->precision != MD_DOUBLE || guess->parity != y->parity ||
       guess->n_rhs != s->n_rhs || guess->components != y->components))
    return md_fail(context, MD_INPUT,
                   "a guess must be an even host field in double with %d right-hand sides of %d "
                   "reals",
                   s->n_rhs, y->components);
  if (modes && modes->count > 0 && modes->vectors->components != y->components)
    return md_fail(context, MD_INPUT, "modes to deflate with must have %d reals a site, got %d",
                   y->components, modes->vectors->components);
  return MD_OK;
}

md_status md_solver_check(md_context *context, const md_solver *solver, const md_solver_job *job) {
  const md_operator *a = job->a;
  if (a->parity == MD_PARITIES)
    return md_fail(context, MD_INPUT,
                   "solvers work on fields of one parity, got operator %s on both", a->kind->name);
  if (!solver->any_operator && !(a->hermitian && a->positive))
    return md_fail(context, MD_INPUT,
                   "solver %s needs a Hermitian and positive operator, got %s; take gcr",
                   solver->name, a->kind->name);
  if (job->inner && !(solver->takes & MD_TAKES_INNER))
    return md_fail(context, MD_INPUT, "solver %s iterates in one precision, got an inner operator",
                   solver->name);
  if (job->precondition && !(solver->takes & MD_TAKES_PRECONDITION))
    return md_fail(context, MD_INPUT, "solver %s takes no preconditioner; fcg and gcr do",
                   solver->name);
  if (job->request->modes && job->request->modes->count > 0 && solver->direct)
    return md_fail(context, MD_INPUT, "solver %s takes no modes, which are of S S^dag; take cg",
                   solver->name);
  if (md_cg_keeps_states(job->request) && !(solver->takes & MD_TAKES_STATES))
    return md_fail(context, MD_INPUT, "solver %s keeps no state to go on from; take cg",
                   solver->name);
  return solver->check ? solver->check(context, job) : MD_OK;
}

md_status md_solve(md_context *context, const md_solver_job *job, md_system *s,
                   md_solver_result *result) {
  const md_solver_request *request = job->request;
  md_cg_state state = {0};
  *result = (md_solver_result){0};
  MD_TRY(md_agree(context, check_start(context, s, request)));
  MD_TRY(md_agree(context, md_solver_check(context, solver_of(request), job)));
  md_status status = md_cg_state_create(context, job->a, request->max_iterations, &state);
  if (status == MD_OK && md_cg_keeps_states(request) && md_cg_carries(job))
    status = md_cg_state_carry(context, job->a, &state);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_counts(context) ? count(context, job, s, &state) : run(context, job, s, &state);
  if (status == MD_OK || status == MD_UNREACHED)
    hand_over(&state, request, status == MD_OK, result);
  if (result->residuals) result->n_rhs = s->n_rhs;
  md_cg_state_destroy(&state);
  return status;
}

static int parts_of(int n_rhs, int most) {
  return (n_rhs + most - 1) / most;
}

/* Of the even parts of at most so many; the last may be smaller. */
static int even_part(int n_rhs, int most) {
  const int parts = parts_of(n_rhs, most);
  return parts_of(n_rhs, parts);
}

bool md_solver_takes_parts(const md_solver *solver, md_action action) {
  return !solver || solver->takes & MD_TAKES_PARTS ||
         (solver == &md_solver_auto && md_action_has_spin(action));
}

int md_solver_at_once(const md_dirac *dirac, int n_rhs) {
  return even_part(n_rhs, dirac->shape.n_rhs);
}

/* On a GPU one right-hand side with a fifth dimension has the columns of a tile, where the packing
 * is open, and a march: twelve at once take 1.3 to 1.9 times as long as one after the other
 * (bench/tried.md). Across ranks numbers of more than 16 bits may be gathered. */
static bool goes_alone(md_context *context, const char *backend, const int *local,
                       const md_backend_request *request) {
  const md_backend *found;
  const char *reason;
  md_backend_request one = *request;
  one.n_rhs = 1;
  if (md_backend_choose(context, backend, local, &one, &found, &reason) != MD_OK) return false;
  if (found->space == MD_HOST) return found->alone && found->alone(request);
  return request->packing == MD_PACKING_AUTO && md_action_get(request->action)->walls &&
         (context->ranks == 1 || md_precision_bytes(request->precision) == 2);
}

/* Ranks may lie on unlike machines. */
static bool of_first_rank(const md_context *context, bool own) {
  md_broadcast(context, &own, sizeof own);
  return own;
}

void md_solver_part_request(md_context *context, const char *backend, const int *local,
                            md_backend_request *request) {
  enum { MOST = 16, FULL = 15 }; /* columns of a tile */
  const md_backend *found;
  const char *reason;
  md_backend_request whole = *request, part = *request;
  if (!request->pads) return;
  if (of_first_rank(context, goes_alone(context, backend, local, request))) {
    request->n_rhs = 1;
    return;
  }
  if (request->packing != MD_PACKING_AUTO) return;
  part.n_rhs = even_part(request->n_rhs, MOST);
  if (part.n_rhs == request->n_rhs) return;
  /* In double what serves the whole gains with their number: 12 of 16 are at 0.92 of 24; 16 at 1.06
   * to 1.08 of 32 on an H200, at 0.92 to 0.96 on an H100, whose memory is slower
   * (bench/h200/choice, bench/h100/choice). In 16 bits 9 of 16 are faster. */
  if (request->precision == MD_DOUBLE && part.n_rhs < FULL) return;
  const int asked = part.n_rhs;
  const md_status one = md_backend_choose(context, backend, local, &whole, &found, &reason);
  const md_status other = md_backend_choose(context, backend, local, &part, &found, &reason);
  const bool slow = request->precision == MD_DOUBLE && md_memory_is_slow(&context->gpu);
  const bool gains = one == MD_OK && other == MD_OK && part.packing != whole.packing && !slow;
  if (of_first_rank(context, gains)) request->n_rhs = asked;
}

/* What md_solve_cg makes of its operators. */
typedef struct made {
  md_operator full, a, inner, polynomial, narrowed;
  md_system system;
} made;

static void destroy(made *p) {
  md_system_destroy(&p->system);
  md_operator_destroy(&p->narrowed);
  md_operator_destroy(&p->polynomial);
  md_operator_destroy(&p->inner);
  md_operator_destroy(&p->a);
  md_operator_destroy(&p->full);
}

/* The preconditioner of the request, which works in the inner precision where there is one. */
static md_status create_preconditioner(md_context *context, const md_solver_request *request,
                                       made *p, md_solver_job *job) {
  const bool narrow = request->inner != NULL;
  job->precondition = narrow ? &p->narrowed : &p->polynomial;
  job->inner = NULL;
  if (request->precondition == MD_PRECONDITION_MODES)
    return narrow ? md_fail(context, MD_INPUT,
                            "modes precondition in double; leave out the inner precision")
                  : md_modes_preconditioner_create(context, &p->a, request->modes, &p->polynomial);
  MD_TRY(md_chebyshev_create(context, narrow ? &p->inner : &p->a, request->degree, &p->polynomial));
  return narrow ? md_narrowed_create(context, &p->a, &p->polynomial, &p->narrowed) : MD_OK;
}

static md_status create(md_context *context, md_dirac *dirac, md_dirac *exact,
                        const md_solver_request *request, md_field b[MD_PARITIES], made *p,
                        md_solver_job *job) {
  const bool direct = solver_of(request)->direct;
  md_status (*make)(md_context *, md_dirac *, double, md_operator *) =
      direct ? md_schur_create : md_normal_create;
  MD_TRY(make(context, dirac, request->mass, &p->a));
  if (request->inner) MD_TRY(make(context, request->inner, request->mass, &p->inner));
  MD_TRY(md_full_create(context, exact, request->mass, &p->full));
  MD_TRY(md_system_even_odd(context, &p->full, direct, b, &p->system));
  *job = (md_solver_job){&p->a, request->inner ? &p->inner : NULL, NULL, request, NULL};
  if (request->precondition == MD_PRECONDITION_NONE) return MD_OK;
  return create_preconditioner(context, request, p, job);
}

static md_status check_parts(md_context *context, const md_dirac *dirac,
                             const md_solver_request *request, int n_rhs) {
  const md_solver *solver = solver_of(request);
  if (n_rhs <= dirac->shape.n_rhs || md_solver_takes_parts(solver, dirac->request.action))
    return MD_OK;
  return md_fail(context, MD_INPUT,
                 "solver %s must have an operator of as many right-hand sides as there are, or "
                 "take parts, got %d for %d",
                 solver->name, dirac->shape.n_rhs, n_rhs);
}

/* Adds the result of right-hand sides from `first` on; `most` iterations. NaN stays. */
static void add_result(md_solver_result *all, const md_solver_result *one, int first, int most) {
  const size_t n = (size_t)one->n_rhs;
  memcpy(all->residuals + first, one->residuals, n * sizeof *all->residuals);
  memcpy(all->rhs_iterations + first, one->rhs_iterations, n * sizeof *all->rhs_iterations);
  for (int i = 0; i <= most; i++)
    md_raise(&all->history[i], one->history[i < one->iterations ? i : one->iterations]);
  md_raise(&all->relative_residual, one->relative_residual);
  if (one->iterations > all->iterations) all->iterations = one->iterations;
  if (one->updates > all->updates) all->updates = one->updates;
  if (one->restarts > all->restarts) all->restarts = one->restarts;
  if (one->projections > all->projections) all->projections = one->projections;
  if (first == 0) all->choice = one->choice;
  all->converged = all->converged && one->converged;
  all->stalled = all->stalled || one->stalled;
  all->interrupted = all->interrupted || one->interrupted;
}

/* Fields of the four-dimensional world for a part, where the system's have a fifth. */
typedef struct part_fields {
  md_field of[MD_PARITIES], midpoint[MD_PARITIES];
} part_fields;
static md_status part_fields_create(md_context *context, int n_rhs, const md_field *b,
                                    part_fields *p) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, b->components, n_rhs, true, false};
  for (int k = 0; k < MD_PARITIES; k++) {
    MD_TRY(md_field_create(context, b->geometry, &shape, k, &p->of[k]));
    MD_TRY(md_field_create(context, b->geometry, &shape, k, &p->midpoint[k]));
  }
  return MD_OK;
}
static void part_fields_destroy(part_fields *p) {
  for (int k = 0; k < MD_PARITIES; k++) MD_FIELDS_DESTROY(&p->of[k], &p->midpoint[k]);
}

/* b of a part to the system, and its solution to x and the request's midpoint. */
static md_status begin_part(md_context *context, md_system *s, part_fields *p, int first,
                            const md_field b[MD_PARITIES]) {
  md_field *to = s->put ? p->of : s->b;
  md_status status = MD_OK;
  for (int k = 0; k < s->fields && status == MD_OK && !md_counts(context); k++)
    status = md_field_take(context, &to[k], &b[k], first, s->n_rhs);
  MD_TRY(md_agree(context, status));
  return s->put ? s->put(context, s, p->of) : MD_OK;
}
static md_status end_part(md_context *context, const md_system *s, part_fields *p, int first,
                          md_field x[MD_PARITIES], md_field *midpoint) {
  const md_field *from = s->put ? p->of : s->x;
  md_status status =
      s->put ? md_system_solution(context, s, p->of, midpoint ? p->midpoint : NULL) : MD_OK;
  for (int k = 0; k < s->fields && status == MD_OK && !md_counts(context); k++) {
    status = md_field_put(context, &x[k], first, s->n_rhs, &from[k]);
    if (status == MD_OK && midpoint)
      status = md_field_put(context, &midpoint[k], first, s->n_rhs, &p->midpoint[k]);
  }
  return md_agree(context, status);
}

/* Right-hand sides from parts->first on, as many as the system has, of b, to the same of x. */
static md_status solve_part(md_context *context, const md_solver_job *job, md_system *s,
                            part_fields *p, md_field x[MD_PARITIES], const md_field b[MD_PARITIES],
                            md_solver_result *result) {
  const int first = job->parts->first;
  const md_field *all = job->request->guess;
  md_solver_request request = *job->request;
  md_solver_job part = *job;
  md_field guess = {0};
  md_status status = MD_OK;
  part.request = &request;
  if (all) {
    const md_field_shape shape = {MD_DOUBLE, MD_HOST, all->components, s->n_rhs, true, false};
    status = md_field_create(context, all->geometry, &shape, MD_EVEN, &guess);
    if (status == MD_OK && !md_counts(context))
      status = md_field_take(context, &guess, all, first, s->n_rhs);
    request.guess = &guess;
  }
  status = md_agree(context, status);
  if (status == MD_OK) status = begin_part(context, s, p, first, b);
  if (status == MD_OK && !md_counts(context)) /* there it has no data */
    md_linear_zero(md_system_y(s));
  if (status == MD_OK) status = md_solve(context, &part, s, result);
  md_field_destroy(&guess);
  return status == MD_OK ? end_part(context, s, p, first, x, request.midpoint) : status;
}

/* The parts one after the other, each of as many right-hand sides as the system has, into a result
 * of all. In a dry run the first. */
static md_status go_through_parts(md_context *context, const md_solver_job *job, md_system *s,
                                  part_fields *p, md_field x[MD_PARITIES],
                                  const md_field b[MD_PARITIES], md_solver_result *result) {
  const int n = b->n_rhs, count = s->n_rhs, most = job->request->max_iterations;
  md_solver_request request = *job->request;
  md_solver_parts parts = {0, result, true};
  md_solver_job part = *job;
  md_status status = MD_OK;
  part.request = &request;
  part.parts = &parts;
  if (request.resume && request.resume_parts && !md_counts(context))
    status = md_agree(context, request.resume_parts(request.user, &parts));
  for (; parts.first < n && status == MD_OK; parts.first += count) {
    const int first = parts.first;
    md_solver_result one = {0};
    s->n_rhs = n - first < count ? n - first : count;
    status = solve_part(context, &part, s, p, x, b, &one);
    if (one.residuals && !md_counts(context)) add_result(result, &one, first, most);
    if (one.interrupted) request.max_iterations = 0;
    request.resume = NULL;
    parts.keeps = parts.keeps && one.converged && !one.interrupted;
    if (!parts.keeps) request.leave = NULL;
    if (status == MD_UNREACHED || (status == MD_INPUT && first > 0))
      md_append(context->message, sizeof context->message,
                " (counted from right-hand side %d, the first of those solved at once)", first);
    md_solver_result_free(&one);
    if (md_counts(context)) break;
  }
  return status;
}

static md_status solve_parts(md_context *context, const md_solver_job *job, md_system *s,
                             md_field x[MD_PARITIES], const md_field b[MD_PARITIES],
                             md_solver_result *result) {
  const int n = b->n_rhs, most = job->request->max_iterations;
  const size_t reals = (size_t)n + (size_t)most + 1;
  *result = (md_solver_result){.n_rhs = n,
                               .converged = true,
                               .residuals = calloc((size_t)n, sizeof(double)),
                               .rhs_iterations = calloc((size_t)n, sizeof(int)),
                               .history = calloc((size_t)most + 1, sizeof(double))};
  part_fields p = {0};
  md_status status = s->put ? part_fields_create(context, s->n_rhs, b, &p) : MD_OK;
  if (!result->residuals || !result->rhs_iterations || !result->history)
    status = md_fail_memory(context, reals * sizeof(double), "residual history");
  status = md_agree(context, status);
  for (int r = 0; r < n && status == MD_OK; r++) result->residuals[r] = NAN; /* until it is known */
  if (status == MD_OK) status = go_through_parts(context, job, s, &p, x, b, result);
  part_fields_destroy(&p);
  return status;
}

md_status md_solve_cg(md_context *context, md_dirac *dirac, md_dirac *exact,
                      const md_solver_request *request, md_field x[MD_PARITIES],
                      md_field b[MD_PARITIES], md_solver_result *result) {
  const double start_s = md_time_s();
  const int64_t hops = md_solver_hops(dirac, exact, request->inner);
  const int count = md_solver_at_once(dirac, b->n_rhs), parts = parts_of(b->n_rhs, count);
  md_field first[MD_PARITIES] = {b[MD_EVEN], b[MD_ODD]};
  md_solver_request how = *request;
  md_solver_job job;
  made p = {0};
  *result = (md_solver_result){0};
  MD_TRY(md_agree(context, check_inner(context, dirac, request->inner)));
  MD_TRY(md_agree(context, check_parts(context, dirac, request, b->n_rhs)));
  for (int k = 0; k < MD_PARITIES && parts > 1; k++) {
    first[k].n_rhs = count;
    first[k].data = NULL;
  }
  md_status status = md_agree(context, create(context, dirac, exact, request, first, &p, &job));
  if (request->precondition == MD_PRECONDITION_MODES) how.modes = NULL; /* they are in there */
  job.request = &how;
  if (status == MD_OK && parts > 1)
    status = solve_parts(context, &job, &p.system, x, b, result);
  else if (status == MD_OK && p.system.put)
    status = p.system.put(context, &p.system, b);
  if (status == MD_OK && parts == 1) status = md_solve(context, &job, &p.system, result);
  if (status == MD_OK && parts == 1)
    status = md_system_solution(context, &p.system, x, request->midpoint);
  status = md_agree(context, status);
  if (status == MD_OK || status == MD_UNREACHED) {
    result->seconds = md_time_s() - start_s;
    const int64_t done = md_solver_hops(dirac, exact, request->inner) - hops;
    result->gflops = md_solver_gflops(dirac, b->n_rhs, done, result->seconds) / parts;
  }
  destroy(&p);
  return status;
}

void md_solver_result_free(md_solver_result *result) {
  MD_FREE(result->residuals, result->rhs_iterations, result->history);
  *result = (md_solver_result){0};
}
