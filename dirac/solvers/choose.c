#include "dirac/solvers/choose.h"
#include "base/memory_need.h"
#include "base/timer.h"
#include "dirac/solvers/block_cg.h"
#include "dirac/solvers/block_steps.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/low_modes.h"
#include "dirac/solvers/mixed_block.h"
#include "dirac/solvers/mixed_cg.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Until block CG is timed: an iteration over one in step at most and at least, by the records. */
#define DEAREST_BLOCK 4.0
#define CHEAPEST_BLOCK 1.15
/* What it costs to time block CG, in iterations in step: its set-up, and two restarts. */
#define FIND_OUT 60.0
/* Iterations to be timed: in step, with narrow iterations, whose updates come thick while the high
 * modes die, and of block CG. The median of the second half counts. */
enum { TIMED_STEPS = 16, TIMED_NARROW = 48, TIMED_BLOCK = 12, BLOCK_WINDOW = 32 };

typedef struct chooser {
  md_context *context;
  md_dirac *dirac;
  const md_solver_request *request; /* the caller's */
  md_cg_state *state;
  int most;              /* of the caller's state, whose own is lowered to end one way to solve */
  bool block;            /* the way that is under way */
  int begun, window;     /* its first iteration; iterations from one look to the next */
  double begun_s, now_s; /* at the beginning and at the last look of the clock */
  double spent_s[TIMED_NARROW];          /* by its first iterations */
  bool stays;                            /* in step: block CG need not be timed */
  bool leaves;                           /* the other way is to take over */
  double steps_in_all_s, block_in_all_s; /* as expected when it began */
  double pace;                           /* at the last look */
  md_choice_facts facts;
} chooser;

double md_choice_bound(double kappa, double factor) {
  return factor < 1.0 ? 0.5 * sqrt(kappa) * log(2.0 / factor) : 0.0;
}

double md_choice_steps(const md_choice_facts *f) {
  const double excess = f->deflates ? 0.1 * fmin(f->noise, 1.0) : 0.0035 * pow(f->noise, 1.39);
  return (1.0 + excess) * md_choice_bound(f->kappa, 1.0 / f->left);
}

double md_choice_block(const md_choice_facts *f) {
  const double alone = md_choice_bound(f->kappa, 1.0 / f->left);
  const double resolved = 9.0 * sqrt(f->sites_per_rhs);
  return (1.0 + 0.043 * sqrt(f->noise)) * alone / hypot(1.0, alone / resolved);
}

bool md_choice_begin_block(const md_choice_facts *f) {
  return md_choice_block(f) * f->block_s < md_choice_steps(f) * f->step_s;
}

/* Iterations that are left as |r| falls now. */
static double as_it_falls(const md_choice_facts *f, double pace) {
  return pace > 0.0 ? log(fmax(f->left, 1.0)) / pace : INFINITY;
}

bool md_choice_leave_steps(const md_choice_facts *f, double pace) {
  return as_it_falls(f, pace) * f->step_s > 1.5 * md_choice_block(f) * f->block_s;
}

bool md_choice_leave_block(const md_choice_facts *f, double pace, double spent_s,
                           double steps_in_all_s, double block_in_all_s) {
  return spent_s > 0.4 * steps_in_all_s && spent_s > 0.75 * block_in_all_s &&
         as_it_falls(f, pace) * f->block_s > md_choice_steps(f) * f->step_s;
}

static double time_s(const chooser *c) {
  const md_solver_request *q = c->request;
  return q->clock_s ? q->clock_s(q->user, c->block) : md_time_s();
}

/* Largest |r| / limit, and the caller's observer. */
static double distance(const chooser *c) {
  return c->state->history[c->state->iteration] / c->request->tolerance;
}

/* An iteration is over: its time, for the first ones. */
static int note_time(chooser *c) {
  const int done = c->state->iteration - c->begun;
  const double before_s = c->now_s;
  c->now_s = time_s(c);
  if (done >= 1 && done <= TIMED_NARROW) c->spent_s[done - 1] = c->now_s - before_s;
  return done;
}

static md_status tell(const chooser *c) {
  return c->request->observe ? c->request->observe(c->request->user, c->state) : MD_OK;
}

static md_status observe_timing(void *user, const md_cg_state *state) {
  (void)state;
  note_time(user);
  return tell(user);
}

/* From time to time rank 0 judges for all by its own clock. */
static void watch(chooser *c, int done) {
  const md_cg_state *state = c->state;
  const int now = state->iteration;
  const int back = c->block ? (int)fmax(c->window, done / 4) : c->window;
  const bool settled = done >= 2 * c->window; /* fast modes die first, whichever way */
  if (!c->leaves && settled && done % c->window == 0) {
    const double mean_s = (c->now_s - c->begun_s) / done;
    c->pace = log(state->history[now - back] / state->history[now]) / back;
    *(c->block ? &c->facts.block_s : &c->facts.step_s) = mean_s;
    c->facts.left = distance(c);
    md_broadcast(c->context, &c->facts, sizeof c->facts);
    c->leaves = c->block ? md_choice_leave_block(&c->facts, c->pace, mean_s * done,
                                                 c->steps_in_all_s, c->block_in_all_s)
                         : md_choice_leave_steps(&c->facts, c->pace);
    md_broadcast(c->context, &c->leaves, sizeof c->leaves);
    if (c->leaves && now + 1 < c->most) c->state->most = now + 1;
  }
}

static md_status observe_watching(void *user, const md_cg_state *state) {
  (void)state;
  watch(user, note_time(user));
  return tell(user);
}

/* *largest of the eigenvalues of A, from a few steps of the power method on the residual, whose
 * high modes a solve from zero has from the beginning; the narrower operator, if there is one,
 * does. */
static md_status find_largest(chooser *c, md_dirac *dirac, md_field *a, md_field *b, md_field *work,
                              double *largest) {
  enum { STEPS = 8 };
  const double bound = c->request->mass * c->request->mass + dirac->norm * dirac->norm;
  const int n = c->state->n_rhs;
  double norm2[MD_MAX_RHS], scale[MD_MAX_RHS], guess[MD_MAX_RHS], none[MD_MAX_RHS] = {0};
  *largest = 0.0;
  for (int r = 0; r < n; r++) {
    scale[r] = c->state->r_norm2[r] > 0.0 ? 1.0 / sqrt(c->state->r_norm2[r]) : 0.0;
    guess[r] = bound * bound;
  }
  MD_TRY(md_agree(c->context, md_field_convert_times(c->context, a, scale, &c->state->r)));
  for (int k = 0; k < STEPS; k++) {
    MD_TRY(md_dirac_mdag_m(c->context, dirac, c->request->mass, b, a, work));
    MD_TRY(md_linear_norm2(c->context, b, guess, norm2));
    for (int r = 0; r < n; r++) {
      *largest = fmax(*largest, sqrt(norm2[r]));
      scale[r] = norm2[r] > 0.0 ? 1.0 / sqrt(norm2[r]) : 0.0;
    }
    md_linear_axpby(scale, b, none, a);
  }
  return MD_OK;
}

/* kappa = (m^2 + |D|^2) / m^2 */
static md_status measure_kappa(chooser *c) {
  const double mass = c->request->mass;
  const md_modes *modes = c->request->modes;
  md_dirac *dirac = c->request->inner ? c->request->inner : c->dirac;
  md_field a = {0}, b = {0}, work = {0};
  double largest = 0.0;
  md_status status = md_dirac_field(c->context, dirac, MD_EVEN, &a);
  if (status == MD_OK) status = md_dirac_field(c->context, dirac, MD_EVEN, &b);
  if (status == MD_OK) status = md_dirac_field(c->context, dirac, MD_ODD, &work);
  status = md_agree(c->context, status);
  if (status == MD_OK && !md_counts(c->context))
    status = find_largest(c, dirac, &a, &b, &work, &largest);
  md_field_destroy(&a);
  md_field_destroy(&b);
  md_field_destroy(&work);
  const double lowest =
      mass * mass + (modes && modes->count > 0 ? modes->values[modes->count - 1] : 0.0);
  c->facts.kappa = fmax(largest, lowest) / lowest;
  return status;
}

/* The facts that the solve does not change. */
static md_status find_facts(chooser *c) {
  const md_solver_request *q = c->request;
  const double unknowns = 1.5 * (double)c->dirac->geometry->volume;
  c->facts.sites_per_rhs = (double)c->dirac->geometry->volume / c->state->n_rhs;
  MD_TRY(measure_kappa(c));
  if (q->inner) {
    const double roundoff = md_precision_roundoff(q->inner->request.precision);
    const double whole = md_update_kappa(q->mass, c->dirac->norm);
    c->facts.noise = md_update_noise(c->facts.kappa, roundoff);
    c->facts.deflates = md_update_deflates(
        q->inner->shape.space == MD_HOST,
        md_update_noise(md_low_modes_kappa(q->modes, q->mass, c->dirac->norm), roundoff), whole,
        q->tolerance, unknowns);
  }
  md_cg_record(q, c->state);
  c->facts.left = distance(c);
  return MD_OK;
}

static void explain(chooser *c, const char *reason) {
  md_solver_choice *to = &c->state->choice;
  const md_choice_facts *f = &c->facts;
  const double ms = 1e3 / c->state->n_rhs;
  if (to->reason[0]) return; /* of the first of several iterations */
  to->block = c->block;
  to->step_s = f->step_s;
  to->block_s = f->block_s;
  to->steps_expected = md_choice_steps(f);
  to->block_expected = md_choice_block(f);
  if (reason)
    snprintf(to->reason, sizeof to->reason, "%.200s", reason);
  else
    snprintf(to->reason, sizeof to->reason,
             "%.3g ms per iteration and right-hand side against %.3g in step, about %.0f "
             "iterations expected against %.0f",
             f->block_s * ms, f->step_s * ms, to->block_expected, to->steps_expected);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Seconds of an iteration: of the first n the median of the second half. Collective. */
static void find_median(chooser *c, int n, double *iteration_s) {
  qsort(c->spent_s + n / 2, (size_t)(n - n / 2), sizeof *c->spent_s, compare);
  *iteration_s = c->spent_s[n / 2 + n / 4];
  md_broadcast(c->context, iteration_s, sizeof *iteration_s);
  c->facts.left = distance(c);
}

/* The way in `block` is to go on to the end. */
static void expect(chooser *c, bool block) {
  c->steps_in_all_s = md_choice_steps(&c->facts) * c->facts.step_s;
  c->block_in_all_s = md_choice_block(&c->facts) * c->facts.block_s;
  c->block = block;
  explain(c, NULL);
}

/* The first iterations, in step, are timed; they end where block CG may be faster, and else go on
 * to the end, so that there is no restart. */
static md_status observe_first(void *user, const md_cg_state *state) {
  chooser *c = user;
  md_choice_facts *f = &c->facts;
  const int n = c->request->inner ? TIMED_NARROW : TIMED_STEPS, done = note_time(c);
  if (c->stays) watch(c, done);
  if (done == n) {
    find_median(c, n, &f->step_s);
    f->block_s = DEAREST_BLOCK * f->step_s;
    c->stays = !(md_choice_block(f) * CHEAPEST_BLOCK + FIND_OUT < md_choice_steps(f));
    if (c->stays)
      expect(c, false);
    else if (state->iteration + 1 < c->most)
      c->state->most = state->iteration + 1;
  }
  return tell(c);
}

/* One of the two ways to the end of its phase. */
static md_status phase(chooser *c, bool block, int most,
                       md_status (*observe)(void *, const md_cg_state *)) {
  md_solver_request request = *c->request;
  request.block = c->block = block;
  request.observe = observe;
  request.user = c;
  c->leaves = false;
  c->state->most = most < c->most ? most : c->most;
  c->begun = c->state->iteration;
  c->window = block ? BLOCK_WINDOW : (int)fmax(64.0, sqrt(c->facts.kappa));
  c->begun_s = c->now_s = time_s(c);
  if (block)
    return request.inner ? md_mixed_block_iterate(c->context, c->dirac, &request, c->state)
                         : md_block_cg_iterate(c->context, c->dirac, &request, c->state);
  return request.inner ? md_mixed_cg_iterate(c->context, c->dirac, &request, c->state)
                       : md_cg_iterate(c->context, c->dirac, &request, c->state);
}

static bool ended(const chooser *c) {
  const md_cg_state *s = c->state;
  return s->interrupted || s->stalled || s->iteration >= c->most || distance(c) <= 1.0;
}

/* The way that is under way has stalled, and the other one may go on from there: each deflates, or
 * loses what rounding spoils, in its own way. */
static bool stuck(const chooser *c) {
  const md_cg_state *s = c->state;
  return s->stalled && !s->interrupted && s->iteration < c->most;
}

/* The other way takes over, to the end. */
static md_status change_over(chooser *c) {
  md_solver_choice *choice = &c->state->choice;
  char said[sizeof choice->reason], why[64] = "stalled";
  snprintf(said, sizeof said, "%s", choice->reason);
  if (!c->state->stalled)
    snprintf(why, sizeof why, "fell too slowly, ten times in %.0f iterations", log(10.0) / c->pace);
  snprintf(choice->reason, sizeof choice->reason, "%.190s; at iteration %d %s %s", said,
           c->state->iteration, c->block ? "block" : "in step", why);
  choice->block = !c->block;
  choice->changed_at = c->state->iteration;
  return phase(c, !c->block, c->most, observe_timing);
}

/* It is over, unless the other way is to take over. */
static md_status conclude(chooser *c) {
  return stuck(c) || (c->leaves && !ended(c)) ? change_over(c) : MD_OK;
}

/* A dry run: each of what may come one after the other. */
static md_status count(chooser *c) {
  const md_memory_need mark = md_memory_mark(c->context);
  MD_TRY(measure_kappa(c));
  md_memory_need most = md_memory_mark(c->context);
  for (int block = 0; block < 2; block++) {
    md_memory_return_to(c->context, mark);
    MD_TRY(phase(c, block == 1, c->most, observe_timing));
    most = md_memory_larger(most, md_memory_mark(c->context));
  }
  md_memory_return_to(c->context, most);
  return MD_OK;
}

static md_status choose(chooser *c) {
  md_choice_facts *f = &c->facts;
  if (md_counts(c->context)) return count(c);
  MD_TRY(find_facts(c));
  if (md_choice_bound(f->kappa, 1.0 / f->left) < MD_CHOICE_LEAST) {
    explain(c, "the solve is too short to find out");
    return phase(c, false, c->most, observe_timing);
  }
  MD_TRY(phase(c, false, c->most, observe_first));
  if (c->stays) return conclude(c);
  if (!ended(c)) {
    MD_TRY(phase(c, true, c->state->iteration + TIMED_BLOCK, observe_timing));
    if (!ended(c)) find_median(c, TIMED_BLOCK, &f->block_s);
  }
  if (ended(c)) {
    explain(c, stuck(c) ? "a few iterations were timed" : "the solve is too short to find out");
    return stuck(c) ? change_over(c) : MD_OK;
  }
  expect(c, md_choice_begin_block(f));
  MD_TRY(phase(c, c->block, c->most, observe_watching));
  return conclude(c);
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
    explain(&c, alone ? "there is one right-hand side" : context->message);
    status = phase(&c, false, c.most, observe_timing);
  } else {
    status = choose(&c);
  }
  state->most = c.most;
  return status;
}
