#include "base/interrupt.h"
#include "base/timer.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/multishift_state.h"
#include "lattice/fields/linear.h"
#ifdef MINIDIRAC_HAVE_CUDA
#include "dirac/solvers/device/shift_device.h"
#endif

#include <math.h>
#include <stdlib.h>

static void destroy(md_multishift_state *m) {
  for (int k = 0; m->shifts && k < m->request->n_shifts; k++) {
    md_field_destroy(&m->shifts[k].x);
    md_field_destroy(&m->shifts[k].p);
  }
  md_field *fields[] = {&m->r, &m->a_p, &m->work, &m->source, &m->x, &m->residual, &m->work_exact};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) md_field_destroy(fields[i]);
  free(m->shifts);
}

/* r and the solutions of a 16-bit iteration are single, as in mixed CG; only the direction that
 * the operator reads is narrow. */
static md_status create(md_multishift_state *m, const md_field *b) {
  md_field_shape wide = m->dirac->shape;
  if (md_precision_bytes(wide.precision) == 2) wide.precision = MD_SINGLE;
  m->shifts = calloc((size_t)m->request->n_shifts, sizeof *m->shifts);
  m->result->shifts = calloc((size_t)m->request->n_shifts, sizeof *m->result->shifts);
  m->result->history = calloc((size_t)m->request->max_iterations + 1, sizeof(double));
  if (!m->shifts || !m->result->shifts || !m->result->history)
    return md_fail_memory(m->context, ((size_t)m->request->max_iterations + 1) * sizeof(double),
                          "shifts and residual history");
  m->result->n_shifts = m->request->n_shifts;
  for (int k = 0; k < m->request->n_shifts; k++)
    if (m->request->shifts[k] < m->request->shifts[m->smallest]) m->smallest = k;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shifted *s = &m->shifts[k];
    s->delta = m->request->shifts[k] - m->request->shifts[m->smallest];
    MD_TRY(md_field_create(m->context, m->dirac->geometry, &wide, MD_EVEN, &s->x));
    MD_TRY(md_field_create(m->context, m->dirac->geometry,
                           k == m->smallest ? &m->dirac->shape : &wide, MD_EVEN, &s->p));
  }
  MD_TRY(md_field_create(m->context, m->dirac->geometry, &wide, MD_EVEN, &m->r));
  MD_TRY(md_dirac_field(m->context, m->dirac, MD_EVEN, &m->a_p));
  MD_TRY(md_dirac_field(m->context, m->dirac, MD_ODD, &m->work));
  MD_TRY(md_dirac_field(m->context, m->exact, MD_EVEN, &m->source));
  MD_TRY(md_dirac_field(m->context, m->exact, MD_EVEN, &m->x));
  MD_TRY(md_dirac_field(m->context, m->exact, MD_EVEN, &m->residual));
  MD_TRY(md_dirac_field(m->context, m->exact, MD_ODD, &m->work_exact));
  return md_field_convert(m->context, &m->source, b);
}

/* residual = the source less what the modes solve for, by the smallest shift. */
static md_status deflate(md_multishift_state *m) {
  double part2[MD_MAX_RHS], minus[MD_MAX_RHS];
  bool added;
  const double mass = md_shift_mass(m, m->smallest);
  for (int r = 0; r < m->source.n_rhs; r++) minus[r] = -1.0;
  md_linear_zero(&m->x);
  MD_TRY(md_low_modes_project(m->context, m->request->modes, mass, &m->source, NULL, &m->x, part2,
                              &added));
  MD_TRY(md_dirac_mdag_m(m->context, m->exact, mass, &m->residual, &m->x, &m->work_exact));
  md_linear_xpby(&m->source, minus, &m->residual);
  return MD_OK;
}

static md_status start(md_multishift_state *m) {
  const int n = m->source.n_rhs;
  MD_TRY(md_linear_norm2(m->context, &m->source, m->b_norm));
  for (int r = 0; r < n; r++) {
    if (!isfinite(m->b_norm[r]))
      return md_fail(m->context, MD_UNREACHED,
                     "the source must be finite, got norm^2 %g of right-hand side %d", m->b_norm[r],
                     r);
    m->b_norm[r] = sqrt(m->b_norm[r]);
    m->alpha[r] = 1.0;
    m->beta[r] = 0.0;
  }
  const bool deflates = m->request->modes && m->request->modes->count > 0;
  if (deflates) MD_TRY(deflate(m));
  md_status status = md_field_convert(m->context, &m->r, deflates ? &m->residual : &m->source);
  for (int k = 0; k < m->request->n_shifts && status == MD_OK; k++) {
    md_shifted *s = &m->shifts[k];
    status = md_field_convert(m->context, &s->p, &m->r);
    for (int r = 0; r < n; r++) s->zeta[r] = s->before[r] = 1.0;
  }
  MD_TRY(md_agree(m->context, status));
  MD_TRY(md_linear_norm2(m->context, &m->r, m->r_norm2));
  for (int k = 0; k < m->request->n_shifts; k++)
    for (int r = 0; r < n; r++) m->shifts[k].residual[r] = sqrt(m->r_norm2[r]);
  return MD_OK;
}

static bool rhs_done(const md_multishift_state *m, const md_shifted *s, int r) {
  return s->residual[r] <= m->request->tolerance * m->b_norm[r];
}

/* Marks the shifts that are done now, with their iteration, and writes the history; true when all
 * are. Larger shifts converge no later than the smallest, whose right-hand sides may rest only when
 * all do. */
static bool mark(md_multishift_state *m, int iteration, double *worst) {
  bool all = true;
  *worst = 0.0;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shifted *s = &m->shifts[k];
    md_shift_result *result = &m->result->shifts[k];
    if (s->done) continue;
    bool done = true;
    result->estimate = 0.0;
    for (int r = 0; r < m->r.n_rhs; r++) {
      if (!rhs_done(m, s, r)) s->residual[r] = fabs(s->zeta[r]) * sqrt(m->r_norm2[r]);
      done = done && rhs_done(m, s, r);
      if (m->b_norm[r] > 0.0)
        result->estimate = fmax(result->estimate, s->residual[r] / m->b_norm[r]);
    }
    *worst = fmax(*worst, result->estimate);
    result->iterations = iteration;
    s->done = done;
    all = all && done;
  }
  m->result->history[iteration] = *worst;
  return all;
}

/* The scalar recursion of one shift (Jegerlehner, eq. 2.42 ff.) from alpha, beta of the last
 * iteration to `alpha`, `beta` of this one: the coefficients of its updates. */
static void follow(const md_multishift_state *m, md_shifted *s, const double *alpha,
                   const double *beta) {
  for (int r = 0; r < m->r.n_rhs; r++) {
    s->for_x[r] = s->for_p[r] = 0.0;
    if (alpha[r] == 0.0 || rhs_done(m, s, r)) continue;
    const double divisor = alpha[r] * m->beta[r] * (s->before[r] - s->zeta[r]) +
                           s->before[r] * m->alpha[r] * (1.0 + s->delta * alpha[r]);
    const double next = s->zeta[r] * s->before[r] * m->alpha[r] / divisor;
    s->for_x[r] = alpha[r] * next;
    s->for_p[r] = beta[r] * next / s->zeta[r];
    s->before[r] = s->zeta[r];
    s->zeta[r] = next;
  }
}

/* The vectors of all shifts that go on: in one pass, but for the smallest, whose direction may be
 * stored in fewer bits. */
static void update_fields(md_multishift_state *m, const double *alpha, const double *beta) {
  const double *for_x[MD_MAX_SHIFTS], *for_p[MD_MAX_SHIFTS];
  md_field *x[MD_MAX_SHIFTS], *p[MD_MAX_SHIFTS];
  int count = 0;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shifted *s = &m->shifts[k];
    if (s->done) continue;
    follow(m, s, alpha, beta);
    if (k == m->smallest) {
      md_linear_cg_update(s->for_x, s->for_p, &m->r, &s->p, &s->x);
      continue;
    }
    for_x[count] = s->for_x;
    for_p[count] = s->for_p;
    x[count] = &s->x;
    p[count++] = &s->p;
  }
  md_linear_cg_updates(count, for_x, for_p, &m->r, p, x);
}

static md_status iterate_once(md_multishift_state *m, int iteration) {
  md_shifted *base = &m->shifts[m->smallest];
  const int n = m->r.n_rhs;
  double p_ap[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS], minus[MD_MAX_RHS];
  double norm2[MD_MAX_RHS];
  MD_TRY(md_dirac_mdag_m(m->context, m->dirac, md_shift_mass(m, m->smallest), &m->a_p, &base->p,
                         &m->work));
  MD_TRY(md_linear_dot(m->context, &base->p, &m->a_p, p_ap));
  for (int r = 0; r < n; r++) {
    alpha[r] = 0.0;
    if (!rhs_done(m, base, r)) {
      if (!isfinite(p_ap[r]) || !(p_ap[r] > 0.0))
        return md_fail(m->context, MD_UNREACHED,
                       "sums of the solver must be finite and <p, A p> positive, got %g in "
                       "iteration %d of right-hand side %d; use a wider precision",
                       p_ap[r], iteration, r);
      alpha[r] = m->r_norm2[r] / p_ap[r];
    }
    minus[r] = -alpha[r];
  }
  MD_TRY(md_linear_axpy_norm2(m->context, minus, &m->a_p, &m->r, norm2));
  for (int r = 0; r < n; r++) beta[r] = alpha[r] != 0.0 ? norm2[r] / m->r_norm2[r] : 0.0;
  update_fields(m, alpha, beta);
  for (int r = 0; r < n; r++)
    if (alpha[r] != 0.0) {
      m->r_norm2[r] = norm2[r];
      m->alpha[r] = alpha[r];
      m->beta[r] = beta[r];
    }
  return MD_OK;
}

static md_status observe(md_multishift_state *m, double worst) {
  const md_multishift_request *request = m->request;
  return request->observe ? request->observe(request->user, m->result->iterations, worst) : MD_OK;
}

static md_status iterate(md_multishift_state *m) {
  double worst;
  bool all = mark(m, 0, &worst);
  while (!all && m->result->iterations < m->request->max_iterations) {
    MD_TRY(iterate_once(m, m->result->iterations + 1));
    all = mark(m, ++m->result->iterations, &worst);
    MD_TRY(observe(m, worst));
    if ((m->result->interrupted = md_interrupted(m->context))) break;
  }
  return MD_OK;
}

#ifdef MINIDIRAC_HAVE_CUDA
static md_status create_device(md_multishift_state *m, md_shift_device **device) {
  const int n = m->request->n_shifts;
  const double mass = md_shift_mass(m, m->smallest);
  double deltas[MD_MAX_SHIFTS], limit[MD_MAX_RHS];
  md_field *x[MD_MAX_SHIFTS], *p[MD_MAX_SHIFTS];
  for (int r = 0; r < m->r.n_rhs; r++) limit[r] = m->request->tolerance * m->b_norm[r];
  for (int k = 0; k < n; k++) {
    deltas[k] = m->shifts[k].delta;
    x[k] = &m->shifts[k].x;
    p[k] = &m->shifts[k].p;
  }
  const md_shift_setup setup = {n,     m->smallest, deltas, mass * mass, m->r_norm2,
                                limit, x,           p,      &m->r};
  return md_shift_device_create(m->context, m->dirac, &setup, device);
}

/* The same with the scalars on the device, which works on the next iteration while the host looks
 * at this one. */
static md_status iterate_on_device(md_multishift_state *m, md_shift_device *device, double *zeta) {
  const int n = m->r.n_rhs;
  double worst;
  int queued = 0, *iteration = &m->result->iterations;
  for (bool all = mark(m, 0, &worst); !all;) {
    if (!m->result->interrupted && queued < m->request->max_iterations && queued < *iteration + 2) {
      MD_TRY(md_shift_device_queue(m->context, device));
      queued++;
      continue;
    }
    if (*iteration == queued) return MD_OK;
    MD_TRY(md_shift_device_wait(m->context, device, m->r_norm2, zeta));
    for (int k = 0; k < m->request->n_shifts; k++)
      for (int r = 0; r < n; r++) m->shifts[k].zeta[r] = zeta[k * n + r];
    all = mark(m, ++*iteration, &worst);
    MD_TRY(observe(m, worst));
    m->result->interrupted = md_interrupted(m->context);
  }
  return MD_OK;
}

static md_status iterate_fused(md_multishift_state *m) {
  md_shift_device *device = NULL;
  double *zeta = calloc((size_t)m->request->n_shifts * (size_t)m->r.n_rhs, sizeof *zeta);
  md_status status = zeta ? MD_OK : md_fail_memory(m->context, sizeof *zeta, "shifts");
  if (status == MD_OK) status = create_device(m, &device);
  if (status == MD_OK) status = iterate_on_device(m, device, zeta);
  md_shift_device_destroy(device);
  free(zeta);
  return status;
}

/* One rank or GPUs that share memory, no operand in 16 bits, a backend that fuses. */
static bool fuses(const md_multishift_state *m) {
  const md_precision precision = m->dirac->shape.precision;
  return (m->context->ranks == 1 || m->dirac->peers) && m->r.precision == precision &&
         md_dirac_fuses(m->dirac, precision);
}
#endif

static md_status iterate_somewhere(md_multishift_state *m) {
#ifdef MINIDIRAC_HAVE_CUDA
  if (fuses(m)) return iterate_fused(m);
#endif
  return iterate(m);
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
  m->dirac = dirac;
  m->exact = exact;
  m->request = request;
  m->result = result;
  status = md_agree(context, create(m, b));
  if (status == MD_OK) status = start(m);
  if (status == MD_OK) status = iterate_somewhere(m);
  if (status == MD_OK) status = md_multishift_finish(m, x);
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
