#include "dirac/multishift.h"
#include "base/timer.h"
#include "dirac/cg.h"
#include "dirac/mixed_cg.h"
#include "lattice/linear.h"

#include <math.h>
#include <stdlib.h>

/* One shift. Its direction is kept as p / zeta, so that its two updates are those of CG with other
 * coefficients: x += alpha zeta' (p / zeta), p' / zeta' = r + beta (zeta' / zeta) (p / zeta). */
typedef struct shifted {
  md_field x, p;
  double delta;                                /* shift - smallest shift */
  double zeta[MD_MAX_RHS], before[MD_MAX_RHS]; /* r_shift = zeta r; now and one iteration ago */
  bool done;
} shifted;

typedef struct multishift {
  md_context *context;
  md_dirac *dirac, *exact;
  const md_multishift_request *request;
  md_multishift_result *result;
  shifted *shifts;
  int smallest;
  md_field r, a_p, work;                    /* in the space of dirac */
  md_field source, x, residual, work_exact; /* in the space of exact, double */
  double b_norm[MD_MAX_RHS], r_norm2[MD_MAX_RHS];
  double alpha[MD_MAX_RHS], beta[MD_MAX_RHS]; /* of the last iteration */
} multishift;

static void destroy(multishift *m) {
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
static md_status create(multishift *m, const md_field *b) {
  md_field_shape wide = m->dirac->shape;
  if (md_precision_bytes(wide.precision) == 2) wide.precision = MD_SINGLE;
  m->shifts = calloc((size_t)m->request->n_shifts, sizeof *m->shifts);
  m->result->shifts = calloc((size_t)m->request->n_shifts, sizeof *m->result->shifts);
  if (!m->shifts || !m->result->shifts) return md_fail_memory(m->context, 1, "shifts");
  m->result->n_shifts = m->request->n_shifts;
  for (int k = 0; k < m->request->n_shifts; k++)
    if (m->request->shifts[k] < m->request->shifts[m->smallest]) m->smallest = k;
  for (int k = 0; k < m->request->n_shifts; k++) {
    shifted *s = &m->shifts[k];
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

/* M^dag M + shift is M^dag M of this mass. */
static double mass_of(const multishift *m, int k) {
  return sqrt(m->request->mass * m->request->mass + m->request->shifts[k]);
}

static md_status start(multishift *m) {
  const int n = m->source.n_rhs;
  md_linear_norm2(m->context, &m->source, m->b_norm);
  for (int r = 0; r < n; r++) {
    if (!isfinite(m->b_norm[r]))
      return md_fail(m->context, MD_UNREACHED,
                     "the source must be finite, got norm^2 %g of right-hand side %d", m->b_norm[r],
                     r);
    m->b_norm[r] = sqrt(m->b_norm[r]);
    m->alpha[r] = 1.0;
    m->beta[r] = 0.0;
  }
  md_status status = md_field_convert(m->context, &m->r, &m->source);
  for (int k = 0; k < m->request->n_shifts && status == MD_OK; k++) {
    shifted *s = &m->shifts[k];
    status = md_field_convert(m->context, &s->p, &m->r);
    for (int r = 0; r < n; r++) s->zeta[r] = s->before[r] = 1.0;
  }
  MD_TRY(md_agree(m->context, status));
  md_linear_norm2(m->context, &m->r, m->r_norm2);
  return MD_OK;
}

static bool rhs_done(const multishift *m, const shifted *s, int r) {
  return fabs(s->zeta[r]) * sqrt(m->r_norm2[r]) <= m->request->tolerance * m->b_norm[r];
}

/* Marks the shifts that are done now, with their iteration; true when all are. Larger shifts
 * converge no later than the smallest, whose right-hand sides may rest only when all do. */
static bool mark(multishift *m, int iteration, double *worst) {
  bool all = true;
  *worst = 0.0;
  for (int k = 0; k < m->request->n_shifts; k++) {
    shifted *s = &m->shifts[k];
    md_shift_result *result = &m->result->shifts[k];
    if (s->done) continue;
    bool done = true;
    result->estimate = 0.0;
    for (int r = 0; r < m->r.n_rhs; r++) {
      done = done && rhs_done(m, s, r);
      if (m->b_norm[r] > 0.0)
        result->estimate =
            fmax(result->estimate, fabs(s->zeta[r]) * sqrt(m->r_norm2[r]) / m->b_norm[r]);
    }
    *worst = fmax(*worst, result->estimate);
    result->iterations = iteration;
    s->done = done;
    all = all && done;
  }
  return all;
}

/* The scalar recursion of one shift (Jegerlehner, eq. 2.42 ff.) from alpha, beta of the last
 * iteration to `alpha`, `beta` of this one; its vectors follow. */
static void follow(const multishift *m, shifted *s, const double *alpha, const double *beta) {
  double for_x[MD_MAX_RHS], for_p[MD_MAX_RHS];
  for (int r = 0; r < m->r.n_rhs; r++) {
    for_x[r] = for_p[r] = 0.0;
    if (alpha[r] == 0.0) continue;
    const double divisor = alpha[r] * m->beta[r] * (s->before[r] - s->zeta[r]) +
                           s->before[r] * m->alpha[r] * (1.0 + s->delta * alpha[r]);
    const double next = s->zeta[r] * s->before[r] * m->alpha[r] / divisor;
    for_x[r] = alpha[r] * next;
    for_p[r] = beta[r] * next / s->zeta[r];
    s->before[r] = s->zeta[r];
    s->zeta[r] = next;
  }
  md_linear_cg_update(for_x, for_p, &m->r, &s->p, &s->x);
}

static md_status iterate_once(multishift *m, int iteration) {
  shifted *base = &m->shifts[m->smallest];
  const int n = m->r.n_rhs;
  double p_ap[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS], minus[MD_MAX_RHS];
  double norm2[MD_MAX_RHS];
  MD_TRY(
      md_dirac_mdag_m(m->context, m->dirac, mass_of(m, m->smallest), &m->a_p, &base->p, &m->work));
  md_linear_dot(m->context, &base->p, &m->a_p, p_ap);
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
  md_linear_axpy_norm2(m->context, minus, &m->a_p, &m->r, norm2);
  for (int r = 0; r < n; r++) beta[r] = alpha[r] != 0.0 ? norm2[r] / m->r_norm2[r] : 0.0;
  for (int k = 0; k < m->request->n_shifts; k++)
    if (!m->shifts[k].done) follow(m, &m->shifts[k], alpha, beta);
  for (int r = 0; r < n; r++)
    if (alpha[r] != 0.0) {
      m->r_norm2[r] = norm2[r];
      m->alpha[r] = alpha[r];
      m->beta[r] = beta[r];
    }
  return MD_OK;
}

static md_status iterate(multishift *m) {
  int *iteration = &m->result->iterations;
  double worst;
  bool all = mark(m, 0, &worst);
  while (!all && *iteration < m->request->max_iterations) {
    MD_TRY(iterate_once(m, *iteration + 1));
    all = mark(m, ++*iteration, &worst);
    if (m->request->observe) MD_TRY(m->request->observe(m->request->user, *iteration, worst));
  }
  return MD_OK;
}

/* residual = b - (A + shift) x and its norms over |b|, by m->x. */
static md_status true_residual(multishift *m, int k, double *norm2) {
  const int n = m->x.n_rhs;
  double minus[MD_MAX_RHS], worst = 0.0;
  MD_TRY(md_dirac_mdag_m(m->context, m->exact, mass_of(m, k), &m->residual, &m->x, &m->work_exact));
  for (int r = 0; r < n; r++) minus[r] = -1.0;
  md_linear_xpby(&m->source, minus, &m->residual);
  md_linear_norm2(m->context, &m->residual, norm2);
  for (int r = 0; r < n; r++) {
    if (!isfinite(norm2[r]))
      return md_fail(m->context, MD_UNREACHED,
                     "the true residual must be finite, got norm^2 %g for shift %g", norm2[r],
                     m->request->shifts[k]);
    if (m->b_norm[r] > 0.0) worst = fmax(worst, sqrt(norm2[r]) / m->b_norm[r]);
  }
  m->result->shifts[k].relative_residual = worst;
  m->result->shifts[k].converged = worst <= m->request->tolerance;
  return MD_OK;
}

/* CG in double, or mixed, for the rest of the solution of one shift. */
static md_status refine(multishift *m, int k, const double *norm2) {
  md_cg_state state = {0};
  double one[MD_MAX_RHS], again[MD_MAX_RHS];
  const bool narrow = m->dirac->request.precision != MD_DOUBLE;
  const md_solver_request how = {.mass = mass_of(m, k),
                                 .tolerance = m->request->tolerance,
                                 .max_iterations = m->request->max_iterations,
                                 .inner = narrow ? m->dirac : NULL};
  md_status status = md_cg_state_create(m->context, m->exact, how.max_iterations, &state);
  status = md_agree(m->context, status);
  if (status == MD_OK) {
    md_linear_copy(&state.r, &m->residual);
    md_linear_copy(&state.p, &m->residual);
    for (int r = 0; r < state.n_rhs; r++) {
      one[r] = 1.0;
      state.r_norm2[r] = norm2[r];
      state.b_norm[r] = m->b_norm[r] / how.mass; /* its tolerance is on tolerance mass b_norm */
    }
    status = how.inner ? md_mixed_cg_iterate(m->context, m->exact, &how, &state)
                       : md_cg_iterate(m->context, m->exact, &how, &state);
  }
  if (status == MD_OK) {
    md_linear_axpy(one, &state.x, &m->x);
    m->result->shifts[k].refine_iterations += state.iteration;
    status = true_residual(m, k, again);
  }
  md_cg_state_destroy(&state);
  return status;
}

/* True residuals, refinements, solutions to the caller. */
static md_status finish(multishift *m, md_field *x) {
  m->result->converged = true;
  for (int k = 0; k < m->request->n_shifts; k++) {
    md_shift_result *result = &m->result->shifts[k];
    double norm2[MD_MAX_RHS];
    result->shift = m->request->shifts[k];
    MD_TRY(md_agree(m->context, md_field_convert(m->context, &m->x, &m->shifts[k].x)));
    MD_TRY(true_residual(m, k, norm2));
    if (m->request->refine && !result->converged) MD_TRY(refine(m, k, norm2));
    m->result->converged = m->result->converged && result->converged;
    MD_TRY(md_agree(m->context, md_field_convert(m->context, &x[k], &m->x)));
  }
  return MD_OK;
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
  multishift *m = calloc(1, sizeof *m);
  MD_TRY(md_agree(context, m ? MD_OK : md_fail_memory(context, sizeof *m, "multishift CG")));
  m->context = context;
  m->dirac = dirac;
  m->exact = exact;
  m->request = request;
  m->result = result;
  md_status status = md_agree(context, create(m, b));
  if (status == MD_OK) status = start(m);
  if (status == MD_OK) status = iterate(m);
  if (status == MD_OK) status = finish(m, x);
  result->seconds = md_time_s() - start_s;
  result->gflops =
      md_solver_gflops(dirac, md_solver_hops(dirac, exact, NULL) - hops, result->seconds);
  destroy(m);
  free(m);
  return status;
}

void md_multishift_result_free(md_multishift_result *result) {
  free(result->shifts);
  *result = (md_multishift_result){0};
}
