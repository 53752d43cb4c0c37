#include "dirac/solvers/choose.h"
#include "base/timer.h"
#include "dirac/solvers/block_cg.h"
#include "dirac/solvers/block_steps.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/mixed_block.h"
#include "dirac/solvers/mixed_cg.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdio.h>

typedef struct chooser {
  md_context *context;
  md_dirac *dirac;
  const md_solver_request *request; /* the caller's */
  md_cg_state *state;
  int most;        /* of the caller's state, whose own is lowered to end one way to solve */
  double kappa;    /* of A, its largest eigenvalue as measured */
  double step_s;   /* an iteration in step */
  double begun_s;  /* when the phase began, */
  int begun;       /* at this iteration */
  double window_s; /* when the last window began */
  bool abandoned;
  md_choice_facts facts; /* of the last judgement */
} chooser;

double md_choice_bound(double kappa, double factor) {
  return factor < 1.0 ? 0.5 * sqrt(kappa) * log(2.0 / factor) : 0.0;
}

md_verdict md_choice_judge(const md_choice_facts *f) {
  const double in_all_s = f->steps_in_all * f->step_s;
  const double dearer = 1.0 - f->step_s / f->block_s; /* what an iteration loses if in vain */
  const double may_spend_s = in_all_s * fmin(0.35, MD_CHOICE_LOSS / fmax(dearer, 0.01));
  const bool faster = f->block_left * f->block_s <= f->steps_left * f->step_s;
  if (faster) return MD_VERDICT_BLOCK;
  return f->spent_s >= may_spend_s ? MD_VERDICT_STEPS : MD_VERDICT_LATER;
}

/* Largest |r| / limit, and the caller's observer. */
static double distance(const chooser *c) {
  return c->state->history[c->state->iteration] / c->request->tolerance;
}

static md_status observe_steps(void *user, const md_cg_state *state) {
  chooser *c = user;
  if (state->iteration == c->begun + MD_CHOICE_WARM) c->window_s = md_time_s();
  return c->request->observe ? c->request->observe(c->request->user, state) : MD_OK;
}

/* Every MD_CHOICE_WINDOW iterations rank 0 judges for all by its own clock. */
static md_status observe_block(void *user, const md_cg_state *state) {
  chooser *c = user;
  const int now = state->iteration, done = now - c->begun;
  if (!c->abandoned && done > 0 && done % MD_CHOICE_WINDOW == 0) {
    const double time_s = md_time_s(), before = state->history[now - MD_CHOICE_WINDOW];
    const double fall = log(before / state->history[now]) / MD_CHOICE_WINDOW;
    c->facts = (md_choice_facts){
        .step_s = c->step_s,
        .block_s = (time_s - c->window_s) / MD_CHOICE_WINDOW,
        .steps_left = md_choice_bound(c->kappa, 1.0 / distance(c)),
        .steps_in_all = md_choice_bound(c->kappa, c->request->tolerance / state->history[c->begun]),
        .block_left = fall > 0.0 ? log(fmax(distance(c), 1.0)) / fall : INFINITY,
        .spent_s = time_s - c->begun_s};
    c->window_s = time_s;
    md_broadcast(c->context, &c->facts, sizeof c->facts);
    if (md_choice_judge(&c->facts) == MD_VERDICT_STEPS) {
      c->abandoned = true;
      if (now + 1 < c->most) c->state->most = now + 1;
    }
  }
  return c->request->observe ? c->request->observe(c->request->user, state) : MD_OK;
}

static md_status in_step(chooser *c, const md_solver_request *request) {
  return request->inner ? md_mixed_cg_iterate(c->context, c->dirac, request, c->state)
                        : md_cg_iterate(c->context, c->dirac, request, c->state);
}

/* kappa = (m^2 + |D|^2) / m^2 with the largest eigenvalue from a few steps of the power method on
 * the residual, whose high modes a solve from zero has from the beginning. */
static md_status measure_kappa(chooser *c) {
  enum { STEPS = 8 };
  const double mass = c->request->mass;
  md_field a = {0}, b = {0}, work = {0};
  double before[MD_MAX_RHS], norm2[MD_MAX_RHS], scale[MD_MAX_RHS], none[MD_MAX_RHS] = {0};
  double largest = 0.0;
  md_status status = md_dirac_field(c->context, c->dirac, MD_EVEN, &a);
  if (status == MD_OK) status = md_dirac_field(c->context, c->dirac, MD_EVEN, &b);
  if (status == MD_OK) status = md_dirac_field(c->context, c->dirac, MD_ODD, &work);
  if (status == MD_OK) status = md_field_convert(c->context, &a, &c->state->r);
  status = md_agree(c->context, status);
  for (int k = 0; k < STEPS && status == MD_OK; k++) {
    status = md_dirac_mdag_m(c->context, c->dirac, mass, &b, &a, &work);
    if (status == MD_OK) status = md_linear_norm2(c->context, &a, before);
    if (status == MD_OK) status = md_linear_norm2(c->context, &b, norm2);
    for (int r = 0; r < c->state->n_rhs && status == MD_OK; r++) {
      if (before[r] > 0.0) largest = fmax(largest, sqrt(norm2[r] / before[r]));
      scale[r] = norm2[r] > 0.0 ? 1.0 / sqrt(norm2[r]) : 0.0;
    }
    if (status == MD_OK) md_linear_axpby(scale, &b, none, &a);
  }
  md_field_destroy(&a);
  md_field_destroy(&b);
  md_field_destroy(&work);
  const md_modes *modes = c->request->modes;
  const double lowest =
      mass * mass + (modes && modes->count > 0 ? modes->values[modes->count - 1] : 0.0);
  c->kappa = fmax(largest, lowest) / lowest;
  return status;
}

static void explain(chooser *c, bool block, const char *reason) {
  md_cg_state *s = c->state;
  const md_choice_facts *f = &c->facts;
  const double ms = 1e3 / s->n_rhs;
  if (s->choice.reason[0]) return; /* of the first of several iterations */
  s->choice.block = block;
  if (reason)
    snprintf(s->choice.reason, sizeof s->choice.reason, "%.200s", reason);
  else
    snprintf(s->choice.reason, sizeof s->choice.reason,
             "%.3g ms per iteration and right-hand side against %.3g in step, %.0f iterations left "
             "against %.0f when it was judged last",
             f->block_s * ms, f->step_s * ms, f->block_left, f->steps_left);
}

/* One of the two ways to the end of its phase. */
static md_status phase(chooser *c, bool block, int most,
                       md_status (*observe)(void *, const md_cg_state *)) {
  md_solver_request request = *c->request;
  request.block = block;
  request.observe = observe;
  request.user = c;
  c->state->most = most < c->most ? most : c->most;
  c->begun = c->state->iteration;
  c->begun_s = c->window_s = md_time_s();
  if (!block) return in_step(c, &request);
  return request.inner ? md_mixed_block_iterate(c->context, c->dirac, &request, c->state)
                       : md_block_cg_iterate(c->context, c->dirac, &request, c->state);
}

static bool ended(const chooser *c) {
  const md_cg_state *s = c->state;
  return s->interrupted || s->stalled || s->iteration >= c->most || distance(c) <= 1.0;
}

static md_status choose(chooser *c) {
  md_cg_state *s = c->state;
  MD_TRY(measure_kappa(c));
  md_cg_record(c->request, s);
  const double bound = md_choice_bound(c->kappa, 1.0 / distance(c));
  const bool shorter = bound < MD_CHOICE_LEAST * MD_CHOICE_WINDOW;
  MD_TRY(phase(c, false, shorter ? c->most : s->iteration + MD_CHOICE_STEPS, observe_steps));
  if (shorter || ended(c)) {
    explain(c, false, "the solve is too short to find out");
    return MD_OK;
  }
  c->step_s = (md_time_s() - c->window_s) / (MD_CHOICE_STEPS - MD_CHOICE_WARM);
  MD_TRY(phase(c, true, c->most, observe_block));
  explain(c, !c->abandoned, c->facts.block_s > 0.0 ? NULL : "it ended before it was judged");
  if (!c->abandoned || ended(c)) return MD_OK;
  return phase(c, false, c->most, observe_steps);
}

md_status md_choose_iterate(md_context *context, md_dirac *dirac, const md_solver_request *request,
                            md_cg_state *state) {
  const md_dirac *inner = request->inner ? request->inner : dirac;
  chooser c = {
      .context = context, .dirac = dirac, .request = request, .state = state, .most = state->most};
  const bool alone = state->n_rhs < 2;
  md_status status = MD_OK;
  if (alone || md_block_steps_check(context, inner) != MD_OK ||
      (!request->inner && md_block_cg_check(context, dirac) != MD_OK)) {
    status = in_step(&c, request);
    explain(&c, false, alone ? "there is one right-hand side" : context->message);
  } else {
    status = choose(&c);
  }
  state->most = c.most;
  return status;
}
