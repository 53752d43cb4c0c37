#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/timer.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/multishift_state.h"
#include "dirac/solvers/reliable_update.h"

#include <math.h>
#include <stdlib.h>

/* The residual at which narrow iterations take over, in tolerance / roundoff, and the one to which
 * they go, in the tolerance: it and what rounding adds to it should keep within that. */
#define NARROW_FROM 0.015625
#define NARROW_TO 0.9

/* What is to be reached in double, so that the true residual keeps the tolerance with what rounding
 * adds in hundreds of iterations. */
static double within(double tolerance) {
  return tolerance - fmin(0x1p-45, 0.5 * tolerance);
}

/* m^2 - Deo Doe + shift k is m^2 - Deo Doe of this mass. */
static double mass_of(const md_multishift_state *m, int k) {
  return sqrt(m->request->mass * m->request->mass + m->request->shifts[k]);
}

/* A + shift k by `dirac`, of S S^dag beside `whole`. */
static md_status create_operator(md_multishift_state *m, md_dirac *dirac, int k, md_operator *whole,
                                 md_operator *a) {
  if (!m->has_spin) return md_normal_create(m->context, dirac, mass_of(m, k), a);
  MD_TRY(md_normal_create(m->context, dirac, m->request->mass, whole));
  return md_shifted_create(m->context, whole, m->request->shifts[k], a);
}
static void set_shift(const md_multishift_state *m, int k, md_operator *a) {
  if (m->has_spin)
    md_shifted_set(a, m->request->shifts[k]);
  else
    md_normal_set_mass(a, mass_of(m, k));
}

/* Whether iterations by m->by are those of md_shift_device: one rank or GPUs that share memory,
 * which a dry run takes for granted, no operand in 16 bits, a backend that fuses. */
static bool fuses(const md_multishift_state *m) {
  const md_precision precision = m->by->shape.precision;
  const bool shares = m->context->ranks == 1 || md_counts(m->context) ||
                      (m->by->normal && m->by->normal->dirac->peers);
  return shares && md_precision_bytes(precision) > 2 && md_normal_fuses(m->by, precision);
}

/* The fields of iterations by m->by. */
static void end_phase(md_multishift_state *m) {
  MD_FIELDS_DESTROY(&m->r, &m->a_p);
  for (int j = 0; j < MD_SHIFT_KEPT - 1; j++) md_field_destroy(&m->behind[j]);
}

static void destroy_directions(md_multishift_state *m) {
  for (int k = 0; m->shifts && k < m->request->n_shifts; k++) md_field_destroy(&m->shifts[k].p);
  end_phase(m);
}

static void destroy(md_multishift_state *m) {
  destroy_directions(m);
  for (int k = 0; m->shifts && k < m->request->n_shifts; k++)
    MD_FIELDS_DESTROY(&m->shifts[k].x, &m->shifts[k].found);
  md_system_destroy(&m->system);
  md_operator_destroy(&m->narrow);
  md_operator_destroy(&m->exact);
  for (int i = 0; i < 2; i++) md_operator_destroy(&m->whole[i]);
  free(m->shifts);
}

/* r and the solutions of a 16-bit iteration are single, as in mixed CG; only the direction that
 * the operator reads is narrow. */
static md_status create_wide(md_multishift_state *m, md_field *field) {
  md_field_shape wide = m->by->shape;
  if (md_precision_bytes(wide.precision) == 2) wide.precision = MD_SINGLE;
  return md_field_create(m->context, m->by->geometry, &wide, MD_EVEN, field);
}

static md_status begin_phase(md_multishift_state *m) {
  const int kept = fuses(m) ? MD_SHIFT_KEPT : m->request->n_shifts > 1 ? MD_SHIFT_STEPS : 1;
  MD_TRY(create_wide(m, &m->r));
  MD_TRY(md_operator_field(m->context, m->by, &m->a_p));
  for (int j = 0; j < kept - 1; j++) MD_TRY(create_wide(m, &m->behind[j]));
  return MD_OK;
}

static md_status create_direction(md_multishift_state *m, int k, md_field *p) {
  return k == m->smallest ? md_operator_field(m->context, m->by, p) : create_wide(m, p);
}

/* What stays to the end. */
static md_status create(md_multishift_state *m, md_dirac *dirac, md_dirac *exact,
                        const md_field *b) {
  const int n = m->request->n_shifts;
  m->shifts = calloc((size_t)n, sizeof *m->shifts);
  m->result->shifts = calloc((size_t)n, sizeof *m->result->shifts);
  m->result->history = calloc((size_t)m->request->max_iterations + 1, sizeof(double));
  if (!m->shifts || !m->result->shifts || !m->result->history)
    return md_fail_memory(m->context, ((size_t)m->request->max_iterations + 1) * sizeof(double),
                          "shifts and residual history");
  m->result->n_shifts = n;
  for (int k = 0; k < n; k++)
    if (m->request->shifts[k] < m->request->shifts[m->smallest]) m->smallest = k;
  MD_TRY(create_operator(m, exact, m->smallest, &m->whole[0], &m->exact));
  MD_TRY(create_operator(m, dirac, m->smallest, &m->whole[1], &m->narrow));
  for (int k = 0; k < n; k++) {
    m->shifts[k].delta = m->request->shifts[k] - m->request->shifts[m->smallest];
    MD_TRY(create_wide(m, &m->shifts[k].x));
  }
  return md_system_plain(m->context, &m->exact, b, &m->system);
}

/* What destroy_directions takes away. */
static md_status create_directions(md_multishift_state *m) {
  for (int k = 0; k < m->request->n_shifts; k++) MD_TRY(create_direction(m, k, &m->shifts[k].p));
  return begin_phase(m);
}

/* What has been found stays where it is; residual and directions go on in the narrower precision
 * of m->dirac. */
static md_status go_narrow(md_multishift_state *m) {
  md_field r = m->r;
  m->r = (md_field){0};
  end_phase(m);
  m->by = &m->narrow;
  m->until = 0.0;
  md_status status = begin_phase(m);
  if (status == MD_OK) status = md_field_convert(m->context, &m->r, &r);
  md_field_destroy(&r);
  for (int k = 0; k < m->request->n_shifts && status == MD_OK; k++) {
    md_shifted *s = &m->shifts[k];
    md_field p = s->p;
    s->found = s->x;
    s->x = s->p = (md_field){0};
    if (!s->done) status = create_wide(m, &s->x);
    if (!s->done && status == MD_OK) status = create_direction(m, k, &s->p);
    if (!s->done && status == MD_OK) status = md_field_convert(m->context, &s->p, &p);
    md_field_destroy(&p);
  }
  return status;
}

/* x of the system += the modes' part of the solution, for the mass of `exact`. */
static md_status add_modes(md_multishift_state *m) {
  md_system *s = &m->system;
  double part2[MD_MAX_RHS];
  bool added;
  if (!m->request->modes || m->request->modes->count == 0) return MD_OK;
  return md_low_modes_project(m->context, m->request->modes, m->exact.modes_from, &s->b[0], NULL,
                              &s->x[0], part2, &added);
}

/* work of the system = the source less what the modes solve for, by the smallest shift. */
static md_status deflate(md_multishift_state *m) {
  md_linear_zero(&m->system.x[0]);
  MD_TRY(add_modes(m));
  return m->system.kind->residual(m->context, &m->system);
}

static md_status start(md_multishift_state *m) {
  const int n = m->r.n_rhs;
  double inverse[MD_MAX_RHS];
  MD_TRY(md_system_measure(m->context, &m->system));
  for (int r = 0; r < n; r++) {
    const double b_norm = m->system.b_norm[r];
    m->unit[r] = b_norm > 0.0 ? exp2(round(log2(b_norm))) : 1.0;
    inverse[r] = 1.0 / m->unit[r];
    m->b_norm[r] = b_norm * inverse[r];
    m->alpha[r] = 1.0;
    m->beta[r] = 0.0;
  }
  const bool deflates = m->request->modes && m->request->modes->count > 0;
  if (deflates) MD_TRY(deflate(m));
  md_status status = md_field_convert_times(m->context, &m->r, inverse,
                                            deflates ? &m->system.work[0] : &m->system.b[0]);
  for (int k = 0; k < m->request->n_shifts && status == MD_OK; k++) {
    md_shifted *s = &m->shifts[k];
    status = md_field_convert(m->context, &s->p, &m->r);
    for (int r = 0; r < n; r++) s->zeta[r] = s->before[r] = 1.0;
  }
  MD_TRY(md_agree(m->context, status));
  MD_TRY(md_linear_norm2(m->context, &m->r, NULL, m->r_norm2));
  for (int k = 0; k < m->request->n_shifts; k++)
    for (int r = 0; r < n; r++) m->shifts[k].residual[r] = sqrt(m->r_norm2[r]);
  return MD_OK;
}

/* |r| over |b| from which on an operator of this precision does as well as a double one; 0: from
 * the beginning on, or what rounding leaves behind is not to be refined. That is a few times the
 * roundoff of the |r| with which the rounding begins (docs/solvers.md says why), and of
 * another direction in each shift, so that it would have to be iterated for shift by shift: an
 * iteration in double instead costs all of them less. */
static double narrow_from(const md_backend_request *request, double tolerance, bool refine) {
  const double from = NARROW_FROM * tolerance / md_precision_roundoff(request->precision);
  return refine && request->precision != MD_DOUBLE && from < 1.0 ? from : 0.0;
}

static md_status check(md_context *context, const md_dirac *dirac,
                       const md_multishift_request *request) {
  const md_action_data *action = md_action_get(dirac->request.action);
  const double from = action->spins == 1 ? request->mass * request->mass : 0.0;
  if (action->walls)
    return md_fail(context, MD_INPUT,
                   "shifts are not served with action %s, whose sources on even sites have all "
                   "slices; solve mass by mass, as a mass is no shift of S S^dag",
                   action->name);
  if (request->n_shifts < 1 || request->n_shifts > MD_MAX_SHIFTS)
    return md_fail(context, MD_INPUT, "there must be 1 to %d shifts, got %d", MD_MAX_SHIFTS,
                   request->n_shifts);
  for (int k = 0; k < request->n_shifts; k++)
    if (!(from + request->shifts[k] > 0.0 || (request->shifts[k] == 0.0 && action->spins == 4)))
      return md_fail(context, MD_INPUT, "shifts must be %s, got %g",
                     action->spins == 1 ? "above -mass^2" : "0 or more", request->shifts[k]);
  return MD_OK;
}

static bool rhs_done(const md_multishift_state *m, const md_shifted *s, int r) {
  return s->residual[r] <= m->aim * m->b_norm[r];
}

/* Marks the shifts that are done now, with their iteration, and writes the history; true when all
 * are. Larger shifts converge no later than the smallest, whose right-hand sides may rest only when
 * all do. */
static bool mark(md_multishift_state *m) {
  bool all = true;
  double worst = 0.0;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shifted *s = &m->shifts[k];
    md_shift_result *result = &m->result->shifts[k];
    if (s->done) continue;
    bool done = true;
    result->estimate = 0.0;
    for (int r = 0; r < m->r.n_rhs; r++) {
      if (!rhs_done(m, s, r)) s->residual[r] = fabs(s->zeta[r]) * sqrt(m->r_norm2[r]);
      done = done && rhs_done(m, s, r);
      const double b_norm = m->b_norm[r];
      if (b_norm > 0.0) result->estimate = fmax(result->estimate, s->residual[r] / b_norm);
    }
    worst = fmax(worst, result->estimate);
    result->iterations = m->result->iterations;
    s->done = done;
    all = all && done;
  }
  m->result->history[m->result->iterations] = worst;
  return all;
}

/* The scalar recursion of one shift (Jegerlehner, eq. 2.42 ff.) from alpha, beta of the last
 * iteration to `alpha`, `beta` of this one: the coefficients of its updates. */
static void follow(const md_multishift_state *m, md_shifted *s, const double *alpha,
                   const double *beta, double *for_x, double *for_p) {
  for (int r = 0; r < m->r.n_rhs; r++) {
    for_x[r] = for_p[r] = 0.0;
    if (alpha[r] == 0.0 || rhs_done(m, s, r)) continue;
    const double divisor = alpha[r] * m->beta[r] * (s->before[r] - s->zeta[r]) +
                           s->before[r] * m->alpha[r] * (1.0 + s->delta * alpha[r]);
    const double next = s->zeta[r] * s->before[r] * m->alpha[r] / divisor;
    for_x[r] = alpha[r] * next;
    for_p[r] = beta[r] * next / s->zeta[r];
    s->before[r] = s->zeta[r];
    s->zeta[r] = next;
  }
}

/* The updates of the larger shifts that have waited, in one pass over their vectors. */
static void catch_up(md_multishift_state *m) {
  const double *for_x[MD_MAX_SHIFTS * MD_SHIFT_STEPS], *for_p[MD_MAX_SHIFTS * MD_SHIFT_STEPS];
  const md_field *r[MD_SHIFT_STEPS];
  md_field *x[MD_MAX_SHIFTS], *p[MD_MAX_SHIFTS];
  int count = 0;
  for (int j = 0; j < m->waiting; j++) r[j] = j < MD_SHIFT_STEPS - 1 ? &m->behind[j] : &m->r;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shifted *s = &m->shifts[k];
    if (!s->moves) continue;
    for (int j = 0; j < m->waiting; j++) {
      for_x[count * m->waiting + j] = s->for_x[j];
      for_p[count * m->waiting + j] = s->for_p[j];
    }
    x[count] = &s->x;
    p[count++] = &s->p;
    s->moves = false;
  }
  md_linear_cg_updates(count, m->waiting, for_x, for_p, r, p, x);
  m->waiting = 0;
}

/* The vectors of the smallest shift, and what the others need for theirs: their updates wait for
 * MD_SHIFT_STEPS iterations, of which the residuals are kept, as they read and write four vectors
 * each whatever their number. */
static void update_fields(md_multishift_state *m, const double *alpha, const double *beta) {
  double of_x[MD_MAX_RHS], of_p[MD_MAX_RHS];
  md_shifted *smallest = &m->shifts[m->smallest];
  const int j = m->waiting++;
  bool moves = false;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shifted *s = &m->shifts[k];
    if (k == m->smallest || (s->done && !s->moves)) continue;
    follow(m, s, alpha, beta, s->for_x[j], s->for_p[j]); /* zeros once it is done */
    s->moves = moves = true;
  }
  follow(m, smallest, alpha, beta, of_x, of_p);
  md_linear_cg_update(of_x, of_p, &m->r, &smallest->p, &smallest->x);
  if (!moves)
    m->waiting = 0;
  else if (m->waiting < MD_SHIFT_STEPS)
    md_linear_copy(&m->behind[j], &m->r);
  else
    catch_up(m);
}

static md_status iterate_once(md_multishift_state *m) {
  md_shifted *base = &m->shifts[m->smallest];
  bool rests[MD_MAX_RHS];
  md_cg_step step;
  for (int r = 0; r < m->r.n_rhs; r++) rests[r] = rhs_done(m, base, r);
  MD_TRY(md_cg_step_take(m->context, m->by, rests, m->r_norm2, false, &m->r, &base->p, &m->a_p,
                         &step));
  if (step.broken >= 0) return md_cg_step_fail(m->context, &step, m->result->iterations + 1);
  update_fields(m, step.alpha, step.beta);
  for (int r = 0; r < m->r.n_rhs; r++)
    if (step.alpha[r] != 0.0) {
      m->r_norm2[r] = step.norm2[r];
      m->alpha[r] = step.alpha[r];
      m->beta[r] = step.beta[r];
    }
  return MD_OK;
}

/* Counts an iteration; *all: no shift needs another one. */
static md_status conclude(md_multishift_state *m, bool *all) {
  const int iteration = ++m->result->iterations;
  *all = mark(m);
  if (m->request->observe)
    MD_TRY(m->request->observe(m->request->user, iteration, m->result->history[iteration]));
  m->result->interrupted = md_interrupted(m->context);
  return MD_OK;
}

/* The residual has come to where narrower iterations will do. */
static bool reached(const md_multishift_state *m) {
  for (int r = 0; r < m->r.n_rhs; r++)
    if (sqrt(m->r_norm2[r]) > m->until * m->b_norm[r]) return false;
  return m->until > 0.0;
}

static md_status iterate_on_host(md_multishift_state *m) {
  const md_multishift_result *result = m->result;
  bool all = mark(m);
  while (!all && !reached(m) && !result->interrupted &&
         result->iterations < m->request->max_iterations) {
    MD_TRY(iterate_once(m));
    MD_TRY(conclude(m, &all));
  }
  catch_up(m);
  return MD_OK;
}

/* The same with the scalars on the device, which works on the next iteration while the host looks
 * at this one. */
static inline md_status iterate_on_device(md_multishift_state *m, md_shift_device *device) {
  const int *iteration = &m->result->iterations;
  int queued = *iteration;
  for (bool all = mark(m); !all;) {
    const bool more = !m->result->interrupted && !reached(m);
    if (more && queued < m->request->max_iterations && queued < *iteration + 2) {
      MD_TRY(md_shift_device_queue(m->context, device));
      queued++;
      continue;
    }
    if (*iteration == queued) break;
    MD_TRY(md_shift_device_wait(m->context, device, m));
    MD_TRY(conclude(m, &all));
  }
  return md_agree(m->context, md_shift_device_end(m->context, device, m));
}

static inline md_status iterate_fused(md_multishift_state *m) {
  md_shift_device *device = NULL;
  md_status status = md_agree(m->context, md_shift_device_create(m->context, m, &device));
  if (status == MD_OK && !md_counts(m->context)) status = iterate_on_device(m, device);
  md_shift_device_destroy(device);
  return status;
}

/* Common iterations by m->by, until all shifts are done, the residual is at m->until, or they end
 * for another reason. */
static md_status iterate_common(md_multishift_state *m) {
  if (MINIDIRAC_HAVE_CUDA && fuses(m)) return iterate_fused(m);
  return md_counts(m->context) ? MD_OK : iterate_on_host(m);
}

/* Common iterations in one precision, or in double first. */
static md_status iterate(md_multishift_state *m) {
  const bool narrows = m->until > 0.0;
  MD_TRY(iterate_common(m));
  if (!narrows || md_counts(m->context)) return MD_OK; /* a narrow phase takes no more */
  const int most = m->request->max_iterations;
  m->result->double_iterations = m->result->iterations;
  if (m->shifts[m->smallest].done || m->result->interrupted || m->result->iterations >= most)
    return MD_OK;
  MD_TRY(md_agree(m->context, go_narrow(m)));
  return iterate_common(m);
}

/* work of the system = b - (A + shift) x and its norms over |b|. */
static md_status true_residual(md_multishift_state *m, int k) {
  double residuals[MD_MAX_RHS], worst = 0.0;
  MD_TRY(md_system_true_residuals(m->context, &m->system, residuals));
  for (int r = 0; r < m->system.x[0].n_rhs; r++) worst = fmax(worst, residuals[r]);
  m->result->shifts[k].relative_residual = worst;
  m->result->shifts[k].converged = worst <= m->request->tolerance;
  return MD_OK;
}

/* The right-hand side of CG for the rest of a solution. */
static md_status hand_over(const md_multishift_state *m, md_cg_state *state) {
  md_linear_copy(&state->r, &m->system.work[0]);
  md_linear_copy(&state->p, &m->system.work[0]);
  for (int r = 0; r < state->n_rhs; r++) state->b_norm[r] = state->scale[r] = m->system.b_norm[r];
  return md_linear_norm2(m->context, &state->r, NULL, state->r_norm2);
}

/* CG in double, or mixed, for the rest of the solution of one shift; `most` iterations. */
static md_status refine(md_multishift_state *m, int k, int most) {
  md_cg_state state = {0};
  const md_solver_request how = {
      .tolerance = m->request->tolerance, .max_iterations = most, .modes = m->request->modes};
  const bool narrow = m->narrow.precision != MD_DOUBLE;
  const md_solver_job job = {&m->exact, narrow ? &m->narrow : NULL, NULL, &how, NULL};
  md_status status = md_cg_state_create(m->context, &m->exact, how.max_iterations, &state);
  status = md_agree(m->context, status);
  const bool solves = !md_counts(m->context);
  if (status == MD_OK && solves) status = hand_over(m, &state);
  if (status == MD_OK) status = md_solver_cg.iterate(m->context, &job, &state);
  if (status == MD_OK && solves) {
    md_linear_add(1.0, &state.x, &m->system.x[0]);
    m->result->shifts[k].refine_iterations += state.iteration;
    m->result->interrupted = state.result.interrupted;
    status = true_residual(m, k);
  }
  md_cg_state_destroy(&state);
  return status;
}

/* x of the system = what the iterations have found in both precisions. */
static md_status take_solution(md_multishift_state *m, const md_shifted *s) {
  md_system *to = &m->system;
  const md_field *first = s->found.data ? &s->found : &s->x;
  MD_TRY(md_field_convert_times(m->context, &to->x[0], m->unit, first));
  if (first == &s->x || !s->x.data) return MD_OK;
  MD_TRY(md_field_convert_times(m->context, &to->work[0], m->unit, &s->x));
  md_linear_add(1.0, &to->work[0], &to->x[0]);
  return MD_OK;
}

/* As often as that halves the true residual, as md_solve goes on. */
static md_status refine_well(md_multishift_state *m, int k) {
  const md_shift_result *result = &m->result->shifts[k];
  const int most = m->request->max_iterations;
  double before = INFINITY;
  while (!result->converged && !m->result->interrupted && result->refine_iterations < most &&
         result->relative_residual < 0.5 * before) {
    before = result->relative_residual;
    MD_TRY(refine(m, k, most - result->refine_iterations));
  }
  return MD_OK;
}

/* After the iteration: true residuals, refinements where they are asked for, solutions to the
 * caller. */
static md_status finish(md_multishift_state *m, md_field *x) {
  m->result->converged = true;
  if (md_counts(m->context)) /* the smallest is the hardest to refine */
    return m->request->refine ? refine(m, m->smallest, m->request->max_iterations) : MD_OK;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shift_result *result = &m->result->shifts[k];
    result->shift = m->request->shifts[k];
    set_shift(m, k, &m->exact);
    set_shift(m, k, &m->narrow);
    MD_TRY(md_agree(m->context, take_solution(m, &m->shifts[k])));
    MD_TRY(add_modes(m));
    MD_TRY(true_residual(m, k));
    if (m->request->refine) MD_TRY(refine_well(m, k));
    m->result->converged = m->result->converged && result->converged;
    MD_TRY(md_agree(m->context, md_field_resize(m->context, &x[k], &m->system.x[0])));
  }
  return MD_OK;
}

/* What is known of shifts when a number was none. */
static void give_up(md_multishift_state *m) {
  m->result->converged = false;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shift_result *shift = &m->result->shifts[k];
    shift->shift = m->request->shifts[k];
    shift->relative_residual = NAN;
    shift->converged = false;
  }
}

md_status md_solve_multishift(md_context *context, md_dirac *dirac, md_dirac *exact,
                              const md_multishift_request *request, md_field *x, const md_field *b,
                              md_multishift_result *result) {
  const double start_s = md_time_s();
  const int64_t hops = md_solver_hops(dirac, exact, NULL);
  *result = (md_multishift_result){0};
  MD_TRY(md_agree(context, check(context, dirac, request)));
  md_multishift_state state = {.context = context,
                               .request = request,
                               .result = result,
                               .has_spin = md_action_has_spin(dirac->request.action)};
  md_multishift_state *m = &state;
  m->until = narrow_from(&dirac->request, request->tolerance, request->refine);
  m->by = m->until > 0.0 ? &m->exact : &m->narrow;
  m->aim = m->until > 0.0 ? NARROW_TO * request->tolerance : within(request->tolerance);
  md_status status = create(m, dirac, exact, b);
  const md_memory_need mark = md_memory_mark(context);
  if (status == MD_OK) status = create_directions(m);
  status = md_agree(context, status);
  if (status == MD_OK && !md_counts(context)) status = start(m);
  if (status == MD_OK) status = iterate(m);
  destroy_directions(m); /* in favour of what refinements need */
  md_memory_return_to(context, mark);
  if (status == MD_OK) status = finish(m, x);
  status = md_agree(context, status);
  if (status == MD_UNREACHED) give_up(m);
  result->seconds = md_time_s() - start_s;
  result->gflops =
      md_solver_gflops(dirac, b->n_rhs, md_solver_hops(dirac, exact, NULL) - hops, result->seconds);
  destroy(m);
  return status;
}

void md_multishift_result_free(md_multishift_result *result) {
  MD_FREE(result->shifts, result->history);
  *result = (md_multishift_result){0};
}
