#include "base/memory_need.h"
#include "dirac/solvers/cg.h"
#include "lattice/fields/linear.h"

#include <math.h>

/* GCR(m), generalised conjugate residuals (S. Eisenstat, H. Elman and M. Schultz, SIAM J. Numer.
 * Anal. 20 (1983) 345), for operators that are not Hermitian or positive, and preconditioners that
 * are another one each time: |r| is least over the last directions p, of which A p are orthogonal,
 *   p = P r,  A p and p less their parts along the m directions,  alpha = <A p, r> / |A p|^2,
 *   x += alpha p,  r -= alpha A p
 * After m of them it begins again. Without P: p = r. */
enum { KEPT = 12 };

typedef struct residuals {
  md_context *context;
  const md_solver_job *job;
  md_cg_state *state;
  int count; /* directions since it began */
  md_field p[KEPT], a_p[KEPT];
  double norm2[KEPT][MD_MAX_RHS]; /* |A p|^2 */
} residuals;

/* The next direction. */
static md_status find_direction(residuals *g, int k) {
  md_operator *a = g->job->a, *precondition = g->job->precondition;
  double minus[MD_MAX_RHS];
  if (precondition)
    MD_TRY(md_operator_apply(g->context, precondition, &g->p[k], &g->state->r, NULL));
  else
    md_linear_copy(&g->p[k], &g->state->r);
  MD_TRY(md_operator_apply(g->context, a, &g->a_p[k], &g->p[k], NULL));
  for (int i = 0; i < k; i++) {
    MD_TRY(md_linear_dot(g->context, &g->a_p[i], &g->a_p[k], NULL, minus));
    for (int r = 0; r < g->state->n_rhs; r++)
      minus[r] = g->norm2[i][r] > 0.0 ? -minus[r] / g->norm2[i][r] : 0.0;
    md_linear_axpy(minus, &g->a_p[i], &g->a_p[k]);
    md_linear_axpy(minus, &g->p[i], &g->p[k]);
  }
  return md_linear_norm2(g->context, &g->a_p[k], NULL, g->norm2[k]);
}

static md_status iterate_once(residuals *g, bool *ends) {
  md_cg_state *s = g->state;
  const int k = g->count++ % KEPT;
  double alpha[MD_MAX_RHS], minus[MD_MAX_RHS], norm2[MD_MAX_RHS];
  MD_TRY(find_direction(g, k));
  MD_TRY(md_linear_dot(g->context, &g->a_p[k], &s->r, NULL, alpha));
  for (int r = 0; r < s->n_rhs; r++) {
    const bool rests = md_cg_done(g->job->request, s, r);
    if (!rests && !(g->norm2[k][r] > 0.0 && isfinite(g->norm2[k][r])))
      return md_fail(g->context, MD_UNREACHED,
                     "|A p|^2 must be positive and finite, got %g in iteration %d of right-hand "
                     "side %d; check the links for NaN, or use a wider precision",
                     g->norm2[k][r], s->iteration + 1, r);
    alpha[r] = rests ? 0.0 : alpha[r] / g->norm2[k][r];
    minus[r] = -alpha[r];
  }
  md_linear_axpy(alpha, &g->p[k], &s->x);
  MD_TRY(md_linear_axpby_norm2(g->context, minus, &g->a_p[k], NULL, &s->r, NULL, norm2));
  return md_cg_conclude(g->context, g->job->request, alpha, norm2, s, ends);
}

static md_status iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  residuals g = {.context = context, .job = job, .state = state};
  md_status status = MD_OK;
  for (int k = 0; k < KEPT && status == MD_OK; k++) {
    status = md_operator_field(context, job->a, &g.p[k]);
    if (status == MD_OK) status = md_operator_field(context, job->a, &g.a_p[k]);
  }
  status = md_agree(context, status);
  bool ends = md_counts(context) || status != MD_OK || md_cg_record(job->request, state) ||
              state->iteration >= state->most;
  while (status == MD_OK && !ends) status = iterate_once(&g, &ends);
  for (int k = 0; k < KEPT; k++) MD_FIELDS_DESTROY(&g.p[k], &g.a_p[k]);
  return status;
}

const md_solver md_solver_gcr = {.name = "gcr",
                                 .help = "generalised conjugate residuals, with --precondition",
                                 .takes = MD_TAKES_PRECONDITION | MD_TAKES_PARTS,
                                 .any_operator = true,
                                 .iterate = iterate};
