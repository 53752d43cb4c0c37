#include "base/memory_need.h"
#include "dirac/solvers/block_steps.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/deflation.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/linear.h"

#include <math.h>

/* |r| of some right-hand side has fallen by this much: each update gives a block to deflate with.
 * docs/solvers.md says why. */
#define UPDATE_FACTOR 0.35

typedef struct mixed_block {
  md_outer outer;
  md_block_steps steps;
  md_block_deflation deflation;
  md_context *context; /* as in outer */
  const md_solver_request *request;
  md_operator *inner;
  md_cg_state *state;
  md_field r, p, x;  /* in the inner space; x is MD_SINGLE */
  md_field single;   /* a new block's A w; and rest where r is too narrow for it */
  md_field *rest;    /* that one or r: what is projected */
  double most_norm2; /* what norm2 cannot exceed but by rounding */
  bool misled;       /* the last projection had to be taken back */
} mixed_block;

static void destroy(mixed_block *m) {
  md_block_deflation_destroy(&m->deflation);
  md_block_steps_destroy(&m->steps);
  md_outer_destroy(&m->outer);
  MD_FIELDS_DESTROY(&m->r, &m->p, &m->x, &m->single);
}

/* r and the deflation space. On a device, where bytes decide, r is as narrow as p: iterations are
 * as many. On the host arithmetic does, of which a scale for each site takes more. */
static md_status create_residual(mixed_block *m, const md_field_shape *wide) {
  const md_operator *inner = m->inner;
  const bool narrow = wide->space == MD_DEVICE;
  const bool short_blocks = md_block_deflation_narrows(wide->space, inner->shape.precision);
  const md_field_shape *of_r = narrow ? &inner->shape : wide;
  m->rest = narrow && !short_blocks ? &m->single : &m->r;
  MD_TRY(md_field_create(m->context, inner->geometry, of_r, MD_EVEN, &m->r));
  return md_block_deflation_create(m->context, inner->geometry, short_blocks ? of_r : wide,
                                   m->steps.block, &m->deflation);
}

static md_status create(mixed_block *m) {
  md_operator *inner = m->inner;
  md_field_shape wide = inner->shape;
  wide.precision = MD_SINGLE;
  MD_TRY(md_outer_create(&m->outer, md_precision_roundoff(inner->precision)));
  MD_TRY(md_operator_field(m->context, inner, &m->p));
  MD_TRY(md_field_create(m->context, inner->geometry, &wide, MD_EVEN, &m->x));
  MD_TRY(md_field_create(m->context, inner->geometry, &wide, MD_EVEN, &m->single));
  m->steps =
      (md_block_steps){.context = m->context, .a = inner, .r = &m->r, .p = &m->p, .x = &m->x};
  MD_TRY(md_block_steps_create(&m->steps));
  return create_residual(m, &wide);
}

/* norm2 from C, and the fewest columns. */
static void take_norms(mixed_block *m) {
  md_cg_state *s = m->state;
  for (int r = 0; r < s->n_rhs; r++) m->outer.norm2[r] = md_block_steps_norm2(&m->steps, r);
  md_block_steps_least_rank(&m->steps, &s->result.block_rank);
}

static void go_on(mixed_block *m) {
  take_norms(m);
  md_outer_go_on(&m->outer);
}

/* rest = the true residual in units of its norm, less what the deflation space has of it, which
 * goes into x. */
static md_status project(mixed_block *m) {
  const double most = MD_DEFLATION_RAISES * MD_DEFLATION_RAISES;
  double norm2[MD_MAX_RHS];
  md_linear_zero(&m->x);
  MD_TRY(md_outer_hand_down(&m->outer, false, m->rest));
  m->misled = false;
  if (m->deflation.count == 0) return MD_OK;
  MD_TRY(md_block_deflation_project(m->context, &m->deflation, m->rest, &m->x));
  MD_TRY(md_linear_norm2(m->context, m->rest, NULL, norm2));
  for (int r = 0; r < m->state->n_rhs; r++) m->misled = m->misled || !(norm2[r] <= most);
  if (!m->misled) return MD_OK;
  md_block_deflation_forget(&m->deflation);
  md_linear_zero(&m->x);
  return md_outer_hand_down(&m->outer, false, m->rest);
}

/* And r. */
static md_status hand_down(mixed_block *m) {
  MD_TRY(project(m));
  if (m->rest == &m->r) return MD_OK;
  return md_agree(m->context, md_field_convert(m->context, &m->r, m->rest));
}

/* Begins a new Krylov space from the true residuals of the last update. */
static md_status begin(mixed_block *m) {
  MD_TRY(hand_down(m));
  MD_TRY(md_block_steps_begin(&m->steps));
  go_on(m);
  return MD_OK;
}

/* Begins anew from the last update, without the deflation space, which may be what misled it; the
 * second time from one solution `strays` says that the solve has stalled. */
static md_status recover(mixed_block *m, bool strays) {
  for (int r = 0; strays && m->outer.restarted && r < m->state->n_rhs; r++)
    m->outer.in_vain[r] = MD_UPDATES_MOST_IN_VAIN;
  if (strays) m->outer.restarted = false; /* not refused, however often */
  MD_TRY(md_outer_restart(&m->outer, "block solver must be finite", m->inner->precision));
  md_block_deflation_forget(&m->deflation);
  return begin(m);
}

/* Whether too many updates were in vain for some right-hand side to keep the directions. */
static bool lost(const mixed_block *m) {
  for (int r = 0; r < m->state->n_rhs; r++)
    if (!m->outer.done[r] && m->outer.in_vain[r] >= MD_UPDATES_FEW_IN_VAIN) return true;
  return false;
}

/* The partial solutions and A times them, the change of the true residuals to those in scratch, in
 * the old units: a new block to deflate with. state->r, the old residuals, and x are overwritten.
 */
static md_status deflate_more(void *user) {
  mixed_block *m = user;
  MD_TRY(md_outer_change(&m->outer, false, &m->single));
  return md_block_deflation_insert(m->context, &m->deflation, &m->x, &m->single);
}

/* A reliable update. */
static md_status update(mixed_block *m) {
  MD_TRY(md_block_steps_solution(&m->steps));
  MD_TRY(md_outer_update(&m->outer, &m->x, deflate_more, m));
  if (lost(m)) return begin(m);
  MD_TRY(hand_down(m));
  MD_TRY(m->misled ? md_block_steps_begin(&m->steps) : md_block_steps_replaced(&m->steps));
  go_on(m);
  return MD_OK;
}

/* Counts the iteration; true when an update is due. */
static bool count(mixed_block *m) {
  take_norms(m);
  const bool due = md_outer_count(&m->outer);
  return due || m->state->result.interrupted || m->state->iteration >= m->state->most;
}

/* Whether |r| of some right-hand side is larger than it can be in exact arithmetic. */
static bool strays(const mixed_block *m) {
  for (int r = 0; r < m->state->n_rhs; r++)
    if (!m->outer.done[r] && !(m->outer.norm2[r] <= m->most_norm2)) return true;
  return false;
}

static md_status iterate_once(mixed_block *m) {
  MD_TRY(md_block_steps_residual(&m->steps));
  if (!m->steps.sound) return recover(m, false);
  const bool due = count(m);
  if (strays(m)) return recover(m, true);
  return due ? update(m) : md_block_steps_direction(&m->steps);
}

/* The rules of reliable_update.h for this system. */
static void set_rules(mixed_block *m) {
  const md_operator *a = m->outer.a;
  const double kappa = md_low_modes_kappa(m->request->modes, a->least, a->most);
  m->outer.factor = UPDATE_FACTOR;
  m->outer.latest = md_update_latest(kappa, UPDATE_FACTOR);
  /* The directions of a block soon span the whole space: a residual that has not fallen in many
   * times as many iterations as that takes, those few where it rises first included, never will. */
  const double unknowns = 0.25 * a->shape.components * (double)a->geometry->volume;
  m->outer.latest = (int)fmin(m->outer.latest, 64.0 + 16.0 * unknowns / a->shape.n_rhs);
  /* The error in the norm of A falls, |A|^-1/2 |r| <= |error| <= |A^-1|^1/2 |r|: |r|^2 may grow by
   * the whole condition number. */
  const double whole = md_update_kappa(a->least, a->most - a->least);
  m->most_norm2 = MD_DEFLATION_RAISES * MD_DEFLATION_RAISES * whole;
}

static md_status iterate(mixed_block *m) {
  MD_TRY(begin(m));
  md_cg_record(m->request, m->state);
  while (!md_outer_at_end(&m->outer)) {
    MD_TRY(iterate_once(m));
    if (m->request->observe) MD_TRY(m->request->observe(m->request->user, m->state));
  }
  return MD_OK;
}

md_status md_mixed_block_iterate(md_context *context, const md_solver_job *job,
                                 md_cg_state *state) {
  mixed_block m = {
      .context = context,
      .outer = {.context = context, .a = job->a, .request = job->request, .state = state},
      .inner = job->inner,
      .request = job->request,
      .state = state};
  set_rules(&m);
  md_status status = md_agree(context, create(&m));
  if (status == MD_OK && !md_counts(context)) status = iterate(&m);
  destroy(&m);
  return status;
}
