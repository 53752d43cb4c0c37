#include "base/memory_need.h"
#include "base/timer.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/multishift_state.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>

/* The residual at which narrow iterations take over, in tolerance / roundoff, and the one to which
 * they go, in the tolerance: it and what rounding adds to it should keep within that. */
#define NARROW_FROM 0.015625
#define NARROW_TO 0.9

double md_shift_mass(const md_multishift_state *m, int k) {
  return sqrt(m->request->mass * m->request->mass + m->request->shifts[k]);
}

/* The fields of iterations by m->by. */
static void end_phase(md_multishift_state *m) {
  md_field_destroy(&m->r);
  md_field_destroy(&m->a_p);
  for (int j = 0; j < MD_SHIFT_KEPT - 1; j++) md_field_destroy(&m->behind[j]);
}

static void destroy_directions(md_multishift_state *m) {
  for (int k = 0; m->shifts && k < m->request->n_shifts; k++) md_field_destroy(&m->shifts[k].p);
  end_phase(m);
}

static void destroy(md_multishift_state *m) {
  destroy_directions(m);
  for (int k = 0; m->shifts && k < m->request->n_shifts; k++) {
    md_field_destroy(&m->shifts[k].x);
    md_field_destroy(&m->shifts[k].found);
  }
  md_system_destroy(&m->system);
  md_operator_destroy(&m->narrow);
  md_operator_destroy(&m->exact);
  free(m->shifts);
}

/* r and the solutions of a 16-bit iteration are single, as in mixed CG; only the direction that
 * the operator reads is narrow. */
static md_field_shape wide_shape(const md_multishift_state *m) {
  md_field_shape wide = m->by->shape;
  if (md_precision_bytes(wide.precision) == 2) wide.precision = MD_SINGLE;
  return wide;
}

static md_status begin_phase(md_multishift_state *m) {
  const md_field_shape wide = wide_shape(m);
  const int kept = md_multishift_fuses(m)     ? MD_SHIFT_KEPT
                   : m->request->n_shifts > 1 ? MD_SHIFT_STEPS
                                              : 1;
  MD_TRY(md_field_create(m->context, m->by->geometry, &wide, MD_EVEN, &m->r));
  MD_TRY(md_operator_field(m->context, m->by, &m->a_p));
  for (int j = 0; j < kept - 1; j++)
    MD_TRY(md_field_create(m->context, m->by->geometry, &wide, MD_EVEN, &m->behind[j]));
  return MD_OK;
}

static md_status create_solution(md_multishift_state *m, md_field *x) {
  const md_field_shape wide = wide_shape(m);
  return md_field_create(m->context, m->by->geometry, &wide, MD_EVEN, x);
}

static md_status create_direction(md_multishift_state *m, int k, md_field *p) {
  const md_field_shape wide = wide_shape(m);
  return md_field_create(m->context, m->by->geometry, k == m->smallest ? &m->by->shape : &wide,
                         MD_EVEN, p);
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
  MD_TRY(md_normal_create(m->context, exact, md_shift_mass(m, m->smallest), &m->exact));
  MD_TRY(md_normal_create(m->context, dirac, md_shift_mass(m, m->smallest), &m->narrow));
  for (int k = 0; k < n; k++) {
    m->shifts[k].delta = m->request->shifts[k] - m->request->shifts[m->smallest];
    MD_TRY(create_solution(m, &m->shifts[k].x));
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
    if (!s->done) status = create_solution(m, &s->x);
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
  return md_low_modes_project(m->context, m->request->modes, m->exact.least, &s->b[0], NULL,
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
  MD_TRY(md_system_measure(m->context, &m->system));
  for (int r = 0; r < n; r++) {
    if (!isfinite(m->system.b_norm[r]))
      return md_fail(m->context, MD_UNREACHED,
                     "the source must be finite, got norm %g of right-hand side %d",
                     m->system.b_norm[r], r);
    m->alpha[r] = 1.0;
    m->beta[r] = 0.0;
  }
  const bool deflates = m->request->modes && m->request->modes->count > 0;
  if (deflates) MD_TRY(deflate(m));
  md_status status =
      md_field_convert(m->context, &m->r, deflates ? &m->system.work[0] : &m->system.b[0]);
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

double md_multishift_narrow_from(const md_backend_request *request, double tolerance, bool refine) {
  const double from = NARROW_FROM * tolerance / md_precision_roundoff(request->precision);
  return refine && request->precision != MD_DOUBLE && from < 1.0 ? from : 0.0;
}

static md_status check(md_context *context, const md_multishift_request *request) {
  if (request->n_shifts < 1 || request->n_shifts > MD_MAX_SHIFTS)
    return md_fail(context, MD_INPUT, "there must be 1 to %d shifts, got %d", MD_MAX_SHIFTS,
                   request->n_shifts);
  for (int k = 0; k < request->n_shifts; k++)
    if (!(request->mass * request->mass + request->shifts[k] > 0.0))
      return md_fail(context, MD_INPUT, "mass^2 + shift must be positive, got %g for shift %g",
                     request->mass * request->mass + request->shifts[k], request->shifts[k]);
  return MD_OK;
}

/* Common iterations in one precision, or in double first. */
static md_status iterate(md_multishift_state *m) {
  const bool narrows = m->until > 0.0;
  MD_TRY(md_multishift_iterate(m));
  if (!narrows || md_counts(m->context)) return MD_OK; /* a narrow phase takes no more */
  const int most = m->request->max_iterations;
  m->result->double_iterations = m->result->iterations;
  if (m->shifts[m->smallest].done || m->result->interrupted || m->result->iterations >= most)
    return MD_OK;
  MD_TRY(md_agree(m->context, go_narrow(m)));
  return md_multishift_iterate(m);
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

/* CG in double, or mixed, for the rest of the solution of one shift. */
static md_status refine(md_multishift_state *m, int k) {
  md_cg_state state = {0};
  double one[MD_MAX_RHS];
  const md_solver_request how = {.tolerance = m->request->tolerance,
                                 .max_iterations = m->request->max_iterations,
                                 .modes = m->request->modes};
  const bool narrow = m->narrow.precision != MD_DOUBLE;
  const md_solver_job job = {&m->exact, narrow ? &m->narrow : NULL, NULL, &how};
  md_status status = md_cg_state_create(m->context, &m->exact, how.max_iterations, &state);
  status = md_agree(m->context, status);
  const bool solves = !md_counts(m->context);
  if (status == MD_OK && solves) status = hand_over(m, &state);
  if (status == MD_OK) status = md_solver_cg.iterate(m->context, &job, &state);
  if (status == MD_OK && solves) {
    for (int r = 0; r < state.n_rhs; r++) one[r] = 1.0;
    md_linear_axpy(one, &state.x, &m->system.x[0]);
    m->result->shifts[k].refine_iterations += state.iteration;
    m->result->interrupted = state.interrupted;
    status = true_residual(m, k);
  }
  md_cg_state_destroy(&state);
  return status;
}

/* x of the system = what the iterations have found in both precisions. */
static md_status take_solution(md_multishift_state *m, const md_shifted *s) {
  md_system *to = &m->system;
  double one[MD_MAX_RHS];
  if (!s->found.data) return md_field_convert(m->context, &to->x[0], &s->x);
  for (int r = 0; r < to->x[0].n_rhs; r++) one[r] = 1.0;
  MD_TRY(md_field_convert(m->context, &to->x[0], &s->found));
  if (!s->x.data) return MD_OK;
  MD_TRY(md_field_convert(m->context, &to->work[0], &s->x));
  md_linear_axpy(one, &to->work[0], &to->x[0]);
  return MD_OK;
}

/* After the iteration: true residuals, refinements where they are asked for, solutions to the
 * caller. */
static md_status finish(md_multishift_state *m, md_field *x) {
  m->result->converged = true;
  if (md_counts(m->context)) /* the smallest is the hardest to refine */
    return m->request->refine ? refine(m, m->smallest) : MD_OK;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shift_result *result = &m->result->shifts[k];
    result->shift = m->request->shifts[k];
    md_normal_set_mass(&m->exact, md_shift_mass(m, k));
    md_normal_set_mass(&m->narrow, md_shift_mass(m, k));
    MD_TRY(md_agree(m->context, take_solution(m, &m->shifts[k])));
    MD_TRY(add_modes(m));
    MD_TRY(true_residual(m, k));
    if (m->request->refine && !result->converged && !m->result->interrupted) MD_TRY(refine(m, k));
    m->result->converged = m->result->converged && result->converged;
    MD_TRY(md_agree(m->context, md_field_convert(m->context, &x[k], &m->system.x[0])));
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
  MD_TRY(md_agree(context, check(context, request)));
  md_multishift_state *m = calloc(1, sizeof *m);
  md_status status =
      md_agree(context, m ? MD_OK : md_fail_memory(context, sizeof *m, "multishift CG"));
  if (status != MD_OK) {
    free(m);
    return status;
  }
  m->context = context;
  m->request = request;
  m->result = result;
  m->until = md_multishift_narrow_from(&dirac->request, request->tolerance, request->refine);
  m->by = m->until > 0.0 ? &m->exact : &m->narrow;
  m->aim = (m->until > 0.0 ? NARROW_TO : 1.0) * request->tolerance;
  status = create(m, dirac, exact, b);
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
      md_solver_gflops(dirac, md_solver_hops(dirac, exact, NULL) - hops, result->seconds);
  destroy(m);
  free(m);
  return status;
}

void md_multishift_result_free(md_multishift_result *result) {
  free(result->shifts);
  free(result->history);
  *result = (md_multishift_result){0};
}
