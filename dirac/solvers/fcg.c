#include "base/memory_need.h"
#include "dirac/solvers/cg.h"
#include "lattice/fields/linear.h"

#include <math.h>

/* Flexible conjugate gradients (Y. Notay, SIAM J. Sci. Comput. 22 (2000) 1444), for preconditioners
 * that rounding, or a narrower precision, makes another one each time: with z = P r,
 *   alpha = <p, r> / <p, A p>,  r -= alpha A p,  x += alpha p,  p = z - <z, A p> / <p, A p> p
 * Each direction is so made conjugate to the one before, whatever P did; in exact arithmetic and
 * with one Hermitian P that is the formula of Polak and Ribiere. Without P: z = r. */
typedef struct flexible {
  md_context *context;
  const md_solver_job *job;
  md_cg_state *state;
  md_field a_p, z; /* z has data where there is a P */
} flexible;

static md_status precondition(flexible *f, md_field **z) {
  *z = f->job->precondition ? &f->z : &f->state->r;
  if (!f->job->precondition) return MD_OK;
  return md_operator_apply(f->context, f->job->precondition, &f->z, &f->state->r, NULL);
}

static md_status iterate_once(flexible *f, bool *ends) {
  md_cg_state *s = f->state;
  md_field *z;
  md_cg_step step = {.broken = -1};
  double p_r[MD_MAX_RHS], minus[MD_MAX_RHS], z_ap[MD_MAX_RHS];
  MD_TRY(md_operator_apply(f->context, f->job->a, &f->a_p, &s->p, NULL));
  MD_TRY(md_linear_dot(f->context, &s->p, &f->a_p, NULL, step.p_ap));
  MD_TRY(md_linear_dot(f->context, &s->p, &s->r, NULL, p_r));
  for (int r = 0; r < s->n_rhs; r++) {
    const bool rests = md_cg_done(f->job->request, s, r);
    if (!rests && !(step.p_ap[r] > 0.0 && isfinite(step.p_ap[r]))) step.broken = r;
    step.alpha[r] = rests ? 0.0 : p_r[r] / step.p_ap[r];
    minus[r] = -step.alpha[r];
  }
  if (step.broken >= 0) return md_cg_step_fail(f->context, &step, s->iteration + 1);
  MD_TRY(md_linear_axpby_norm2(f->context, minus, &f->a_p, NULL, &s->r, NULL, step.norm2));
  MD_TRY(precondition(f, &z));
  MD_TRY(md_linear_dot(f->context, z, &f->a_p, NULL, z_ap));
  for (int r = 0; r < s->n_rhs; r++)
    step.beta[r] = step.alpha[r] == 0.0 ? 0.0 : -z_ap[r] / step.p_ap[r];
  md_linear_cg_update(step.alpha, step.beta, z, &s->p, &s->x);
  return md_cg_conclude(f->context, f->job->request, step.alpha, step.norm2, s, ends);
}

static md_status iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  flexible f = {.context = context, .job = job, .state = state};
  md_field *z;
  md_status status = md_operator_field(context, job->a, &f.a_p);
  if (status == MD_OK && job->precondition) status = md_operator_field(context, job->a, &f.z);
  status = md_agree(context, status);
  bool ends = md_counts(context) || status != MD_OK || md_cg_record(job->request, state) ||
              state->iteration >= state->most;
  if (!ends) status = precondition(&f, &z);
  if (!ends && status == MD_OK) md_linear_copy(&state->p, z);
  while (status == MD_OK && !ends) status = iterate_once(&f, &ends);
  MD_FIELDS_DESTROY(&f.a_p, &f.z);
  return status;
}

const md_solver md_solver_fcg = {.name = "fcg",
                                 .help = "flexible conjugate gradients, with --precondition",
                                 .takes = MD_TAKES_PRECONDITION | MD_TAKES_PARTS,
                                 .iterate = iterate};
