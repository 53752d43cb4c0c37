/* The common iterations of multi-shift CG, on the host or on a device. */
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "dirac/solvers/device/shift_device.h"
#include "dirac/solvers/multishift_state.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>

static bool rhs_done(const md_multishift_state *m, const md_shifted *s, int r) {
  return s->residual[r] <= m->aim * m->b_norm[r];
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

static md_status iterate_once(md_multishift_state *m, int iteration) {
  md_shifted *base = &m->shifts[m->smallest];
  const int n = m->r.n_rhs;
  double p_ap[MD_MAX_RHS], alpha[MD_MAX_RHS], beta[MD_MAX_RHS], minus[MD_MAX_RHS];
  double norm2[MD_MAX_RHS];
  MD_TRY(md_dirac_mdag_m(m->context, m->by, md_shift_mass(m, m->smallest), &m->a_p, &base->p,
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

/* The residual has come to where narrower iterations will do. */
static bool reached(const md_multishift_state *m) {
  for (int r = 0; r < m->r.n_rhs; r++)
    if (sqrt(m->r_norm2[r]) > m->until * m->b_norm[r]) return false;
  return m->until > 0.0;
}

static md_status iterate(md_multishift_state *m) {
  double worst;
  int *iteration = &m->result->iterations;
  bool all = mark(m, *iteration, &worst);
  while (!all && !reached(m) && *iteration < m->request->max_iterations) {
    MD_TRY(iterate_once(m, *iteration + 1));
    all = mark(m, ++*iteration, &worst);
    MD_TRY(observe(m, worst));
    if ((m->result->interrupted = md_interrupted(m->context))) break;
  }
  catch_up(m);
  return MD_OK;
}

/* The same with the scalars on the device, which works on the next iteration while the host looks
 * at this one. */
static inline md_status iterate_on_device(md_multishift_state *m, md_shift_device *device,
                                          double *zeta) {
  const int n = m->r.n_rhs;
  double worst;
  int *iteration = &m->result->iterations, queued = *iteration;
  for (bool all = mark(m, queued, &worst); !all;) {
    const bool more = !m->result->interrupted && !reached(m);
    if (more && queued < m->request->max_iterations && queued < *iteration + 2) {
      MD_TRY(md_shift_device_queue(m->context, device));
      queued++;
      continue;
    }
    if (*iteration == queued) break;
    MD_TRY(md_shift_device_wait(m->context, device, m->r_norm2, zeta));
    for (int k = 0; k < m->request->n_shifts; k++)
      for (int r = 0; r < n; r++) m->shifts[k].zeta[r] = zeta[k * n + r];
    all = mark(m, ++*iteration, &worst);
    MD_TRY(observe(m, worst));
    m->result->interrupted = md_interrupted(m->context);
  }
  return md_agree(m->context, md_shift_device_end(m->context, device, m));
}

static inline md_status iterate_fused(md_multishift_state *m) {
  md_shift_device *device = NULL;
  double *zeta = calloc((size_t)m->request->n_shifts * (size_t)m->r.n_rhs, sizeof *zeta);
  md_status status =
      md_agree(m->context, zeta ? MD_OK : md_fail_memory(m->context, sizeof *zeta, "shifts"));
  if (status == MD_OK)
    status = md_agree(m->context, md_shift_device_create(m->context, m, &device));
  if (status == MD_OK && !md_counts(m->context)) status = iterate_on_device(m, device, zeta);
  md_shift_device_destroy(device);
  free(zeta);
  return status;
}

/* One rank or GPUs that share memory, which a dry run takes for granted, no operand in 16 bits, a
 * backend that fuses. */
bool md_multishift_fuses(const md_multishift_state *m) {
  const md_precision precision = m->by->shape.precision;
  const bool shares = m->context->ranks == 1 || m->by->peers || md_counts(m->context);
  return shares && md_precision_bytes(precision) > 2 && md_dirac_fuses(m->by, precision);
}

md_status md_multishift_iterate(md_multishift_state *m) {
  if (MINIDIRAC_HAVE_CUDA && md_multishift_fuses(m)) return iterate_fused(m);
  return md_counts(m->context) ? MD_OK : iterate(m);
}
