#include "base/memory_need.h"
#include "dirac/solvers/cg.h"
#include "lattice/fields/linear.h"

#include <math.h>

/* BiCGStab (H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631) for operators that are not
 * Hermitian, such as S of Wilson quarks, of which it needs no normal equation:
 *   v = A p,  alpha = <r0, r> / <r0, v>,  s = r - alpha v,  t = A s,  omega = <t, s> / |t|^2,
 *   x += alpha p + omega s,  r = s - omega t,  p = r + beta (p - omega v),
 *   beta = alpha <r0, r> / (omega <r0, r before>)
 * with real scalars: as S^dag = gamma_5 S gamma_5 its eigenvalues come in conjugate pairs, for
 * which polynomials of complex coefficients are no better. Where <r0, r> is lost in rounding all
 * begin again from r0 = r.
 *
 * With an inner operator the iterations run in its precision, in units of |r|, until |r| has fallen
 * by ROUND or to the tolerance; md_solve goes on from the true residual in double. */
#define ROUND 1e-4

typedef struct stabilised {
  md_context *context;
  md_operator *a; /* that iterates */
  const md_solver_request *request;
  md_cg_state *state;
  md_field r, p, x, first, v, t;
  double unit[MD_MAX_RHS], rho[MD_MAX_RHS]; /* of what is in r; <r0, r> in units */
} stabilised;

static md_status create(stabilised *b) {
  md_field *const fields[] = {&b->r, &b->p, &b->x, &b->first, &b->v, &b->t};
  for (int i = 0; i < 6; i++) MD_TRY(md_operator_field(b->context, b->a, fields[i]));
  return MD_OK;
}

static void destroy(stabilised *b) {
  md_field *const fields[] = {&b->r, &b->p, &b->x, &b->first, &b->v, &b->t};
  for (int i = 0; i < 6; i++) md_field_destroy(fields[i]);
}

/* r0 = p = r */
static md_status begin(stabilised *b) {
  md_linear_copy(&b->first, &b->r);
  md_linear_copy(&b->p, &b->r);
  return md_linear_norm2(b->context, &b->r, NULL, b->rho);
}

/* r = the residual of the state in units of its norm. */
static md_status take(stabilised *b) {
  md_cg_state *s = b->state;
  double inverse[MD_MAX_RHS];
  for (int k = 0; k < s->n_rhs; k++) {
    b->unit[k] = sqrt(s->r_norm2[k]);
    inverse[k] = b->unit[k] > 0.0 ? 1.0 / b->unit[k] : 0.0;
  }
  MD_TRY(md_agree(b->context, md_field_convert_times(b->context, &b->r, inverse, &s->r)));
  return begin(b);
}

/* The state's x += what was found. */
static md_status hand_over(stabilised *b) {
  MD_TRY(md_agree(b->context, md_field_convert(b->context, &b->state->p, &b->x)));
  md_linear_axpy(b->unit, &b->state->p, &b->state->x);
  return MD_OK;
}

/* A residual that is so many times the first one does not come back. */
static const double MOST_GROWTH = 1e6;

/* v = A p, r -= alpha v */
static md_status first_half(stabilised *b, double *alpha, double *minus) {
  const md_cg_state *s = b->state;
  double along[MD_MAX_RHS];
  MD_TRY(md_operator_apply(b->context, b->a, &b->v, &b->p, NULL));
  MD_TRY(md_linear_dot(b->context, &b->first, &b->v, NULL, along));
  for (int k = 0; k < s->n_rhs; k++) {
    alpha[k] = md_cg_done(b->request, s, k) ? 0.0 : b->rho[k] / along[k];
    minus[k] = -alpha[k];
    if (!isfinite(alpha[k]))
      return md_fail(b->context, MD_UNREACHED,
                     "<r0, A p> must be finite and not zero, got %g in iteration %d of right-hand "
                     "side %d; take --solver cg, or check the links for NaN",
                     along[k], s->iteration + 1, k);
  }
  md_linear_axpy(minus, &b->v, &b->r);
  return MD_OK;
}

/* t = A s, x += alpha p + omega s, r = s - omega t and its norm; s is r. */
static md_status second_half(stabilised *b, const double *alpha, double *omega, double *norm2) {
  double size2[MD_MAX_RHS], minus[MD_MAX_RHS];
  MD_TRY(md_operator_apply(b->context, b->a, &b->t, &b->r, NULL));
  MD_TRY(md_linear_dot(b->context, &b->t, &b->r, NULL, omega));
  MD_TRY(md_linear_norm2(b->context, &b->t, NULL, size2));
  for (int k = 0; k < b->state->n_rhs; k++) {
    omega[k] = alpha[k] == 0.0 || size2[k] == 0.0 ? 0.0 : omega[k] / size2[k];
    minus[k] = -omega[k];
  }
  md_linear_axpy(alpha, &b->p, &b->x);
  md_linear_axpy(omega, &b->r, &b->x);
  return md_linear_axpby_norm2(b->context, minus, &b->t, NULL, &b->r, NULL, norm2);
}

/* p = r + beta (p - omega v), or a new start. */
static md_status next_direction(stabilised *b, const double *alpha, const double *omega,
                                const double *norm2) {
  const double roundoff = md_precision_roundoff(b->a->precision);
  double rho[MD_MAX_RHS], beta[MD_MAX_RHS], minus[MD_MAX_RHS];
  bool lost = false;
  MD_TRY(md_linear_dot(b->context, &b->first, &b->r, NULL, rho));
  for (int k = 0; k < b->state->n_rhs; k++) {
    beta[k] = alpha[k] == 0.0 ? 0.0 : rho[k] / b->rho[k] * (alpha[k] / omega[k]);
    lost =
        lost || !isfinite(beta[k]) || (alpha[k] != 0.0 && fabs(rho[k]) < roundoff * sqrt(norm2[k]));
    minus[k] = -omega[k];
    if (alpha[k] != 0.0) b->rho[k] = rho[k];
  }
  if (lost) return begin(b);
  md_linear_axpy(minus, &b->v, &b->p);
  md_linear_xpby(&b->r, beta, &b->p);
  return MD_OK;
}

static md_status iterate_once(stabilised *b, bool *ends) {
  double alpha[MD_MAX_RHS], minus[MD_MAX_RHS], omega[MD_MAX_RHS], norm2[MD_MAX_RHS];
  MD_TRY(first_half(b, alpha, minus));
  MD_TRY(second_half(b, alpha, omega, norm2));
  MD_TRY(next_direction(b, alpha, omega, norm2));
  for (int k = 0; k < b->state->n_rhs; k++) {
    if (norm2[k] > MOST_GROWTH * MOST_GROWTH) b->state->result.stalled = true;
    norm2[k] *= b->unit[k] * b->unit[k];
  }
  MD_TRY(md_cg_conclude(b->context, b->request, alpha, norm2, b->state, ends));
  *ends = *ends || b->state->result.stalled;
  return MD_OK;
}

/* All its vectors are of one precision, of which 16 bits hold no solution. */
static md_status check(md_context *context, const md_solver_job *job) {
  const md_operator *a = job->inner ? job->inner : job->a;
  if (md_precision_bytes(a->shape.precision) > 2) return MD_OK;
  return md_fail(context, MD_INPUT, "solver bicgstab iterates in double or single, got %s; take cg",
                 md_precision_name(a->shape.precision));
}

static md_status iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  md_operator *a = job->inner ? job->inner : job->a;
  stabilised b = {.context = context, .a = a, .request = job->request, .state = state};
  md_status status = md_agree(context, create(&b));
  if (job->inner) state->tolerance = fmax(state->tolerance, ROUND * md_cg_largest(state));
  bool ends = md_counts(context) || status != MD_OK || md_cg_record(job->request, state) ||
              state->iteration >= state->most;
  const bool solves = !ends;
  if (solves) status = take(&b);
  while (status == MD_OK && !ends) status = iterate_once(&b, &ends);
  if (solves && status == MD_OK) status = hand_over(&b);
  if (solves && job->inner) state->result.updates++;
  destroy(&b);
  return status;
}

const md_solver md_solver_bicgstab = {.name = "bicgstab",
                                      .help = "BiCGStab on S of action wilson, not S S^dag",
                                      .takes = MD_TAKES_INNER | MD_TAKES_PARTS,
                                      .any_operator = true,
                                      .direct = true,
                                      .check = check,
                                      .iterate = iterate};
