#include "base/memory_need.h"
#include "dirac/solvers/cg.h"
#include "dirac/solvers/deflation.h"
#include "dirac/solvers/device/cg_device.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* <p, r> is |r|^2 up to this share of it after an update that deflates: 0.3 where iterations go
 * well, more where they have spanned the whole space of a free field. */
#define MOST_ALONG 0.5

typedef struct mixed_cg {
  md_outer outer;
  md_context *context; /* as in outer */
  md_operator *inner;
  const md_solver_request *request;
  md_cg_state *state;
  md_field x;         /* in the inner space: MD_SINGLE */
  md_field r;         /* likewise, or in the inner precision if `narrow` */
  md_field p, a_p;    /* in the inner space: the inner precision */
  md_cg_steps *steps; /* of a device that fuses, else NULL; a_p is there where steps make it and
                         for deflation */
  bool due;           /* an update, as soon as no step is under way */
  bool whole;         /* the fields are as between two iterations: no step is under way */
  /* Directions that x still lacks, so many of `kept` times `of`; kept has no data where x takes
   * each at once. */
  md_field kept[MD_LINEAR_MOST_DIRECTIONS];
  double of[MD_LINEAR_MOST_DIRECTIONS][MD_MAX_RHS];
  int lacking;
  md_deflation deflation;
  bool deflates;
  bool may_deflate; /* from an update on that measures a coarse noise: quarks with four spins */
  bool narrow;      /* r is in the inner precision */
  bool flexible;    /* beta by Polak and Ribiere: what 8 bits of mantissa need to converge at all */
  double *saved;    /* numbers of a state to go on from; NULL: none is asked for */
  /* One entry per right-hand side: */
  md_cg_step step;           /* the last one */
  double before[MD_MAX_RHS]; /* |r|^2 before it, in units */
} mixed_cg;

static void destroy(mixed_cg *m) {
  md_field *fields[] = {&m->r, &m->x, &m->p, &m->a_p};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) md_field_destroy(fields[i]);
  for (int k = 0; k < MD_LINEAR_MOST_DIRECTIONS; k++) md_field_destroy(&m->kept[k]);
  if (MINIDIRAC_HAVE_CUDA) md_cg_steps_destroy(m->steps);
  md_deflation_destroy(&m->deflation);
  md_outer_destroy(&m->outer);
  m->state->more = (md_cg_more){0};
  free(m->saved);
}

/* What a saved state has beside the solution, the true residual and the source: all that the next
 * iteration reads. */
enum { SAVED_FIELDS = 3, SAVED_COUNTS = 4, SAVED_ARRAYS = 5 };

/* Of steps that make residuals from the last two. */
static md_cg_state *carrier(const mixed_cg *m) {
  return m->steps && m->steps->state.carried ? &m->steps->state : NULL;
}

static int always_saved(const mixed_cg *m) {
  return SAVED_FIELDS + (carrier(m) != NULL);
}

static int directions(const mixed_cg *m) {
  return m->outer.a->factor ? MD_DEFLATION_KEPT : MD_UPDATE_DIRECTIONS;
}

/* Pairs of directions that a state may have. */
static int most_pairs(const mixed_cg *m) {
  return m->deflates || m->may_deflate ? directions(m) : 0;
}

static size_t gram_numbers(const mixed_cg *m) {
  const size_t bytes = (size_t)m->state->n_rhs * sizeof *m->deflation.gram;
  return most_pairs(m) ? bytes / sizeof(double) : 0;
}

static md_status create_saved(mixed_cg *m) {
  md_cg_more *more = &m->state->more;
  const size_t arrays = (carrier(m) ? SAVED_ARRAYS + 3 : SAVED_ARRAYS) * (size_t)m->state->n_rhs;
  const int first = always_saved(m);
  if (!md_cg_keeps_states(m->request)) return MD_OK;
  *more = (md_cg_more){.field = {&m->x, &m->r, &m->p},
                       .most = first + 2 * most_pairs(m),
                       .numbers = (int)(SAVED_COUNTS + arrays + gram_numbers(m))};
  for (int i = 0; i < most_pairs(m); i++) {
    more->field[first + 2 * i] = &m->deflation.w[i];
    more->field[first + 2 * i + 1] = &m->deflation.a_w[i];
  }
  if (carrier(m)) more->field[SAVED_FIELDS] = &carrier(m)->before;
  more->number = m->saved = calloc((size_t)more->numbers, sizeof *m->saved);
  return m->saved ? MD_OK
                  : md_fail_memory(m->context, (size_t)more->numbers * sizeof *m->saved,
                                   "state of the solver");
}

/* A count of a saved state, whatever is there. */
static int whole_number(double count) {
  return count >= 0.0 && count < 1e9 ? (int)count : 0;
}

/* n numbers of `array` to or from the list; returns where it goes on. */
static double *move(bool save, double *at, double *array, size_t n) {
  memcpy(save ? at : array, save ? array : at, n * sizeof *at);
  return at + n;
}

/* The numbers to or from the list, in one order. */
static void move_numbers(mixed_cg *m, bool save) {
  md_outer *o = &m->outer;
  const size_t n = (size_t)m->state->n_rhs;
  md_cg_state *carried = carrier(m);
  double *const arrays[SAVED_ARRAYS] = {o->norm2, o->largest, o->best, o->low, o->in_vain};
  double counts[SAVED_COUNTS] = {o->since, m->due, o->restarted, carried && carried->carries};
  double *at = move(save, m->saved, counts, SAVED_COUNTS);
  o->since = whole_number(counts[0]);
  m->due = counts[1] != 0.0;
  o->restarted = counts[2] != 0.0;
  for (int k = 0; k < SAVED_ARRAYS; k++) at = move(save, at, arrays[k], n);
  if (carried) {
    carried->carries = counts[3] != 0.0;
    at = move(save, at, carried->carried, 3 * n);
  }
  if (m->deflation.gram) move(save, at, (double *)m->deflation.gram, gram_numbers(m));
}

/* x takes what it lacks. */
static void complete(mixed_cg *m) {
  md_linear_cg_add(m->lacking, m->of, m->kept, &m->x);
  m->lacking = 0;
}

/* The same with alpha p of a step, while p stays. */
static void take_last(mixed_cg *m) {
  md_field *room = &m->kept[m->lacking];
  const bool together = room->data;
  if (together) {
    memcpy(m->of[m->lacking++], m->step.alpha, sizeof *m->of);
    md_field_swap(room, &m->p);
  }
  complete(m);
  if (together)
    md_field_swap(room, &m->p);
  else
    md_linear_axpy(m->step.alpha, &m->p, &m->x);
}

static void save(mixed_cg *m) {
  complete(m);
  if (!m->saved) return;
  m->state->more.fields = always_saved(m) + 2 * m->deflation.count;
  move_numbers(m, true);
}

/* On a device, where bytes decide, x in single has more than directions in 16 bits. One pass adds
 * several where sites have four spins (md_linear_cg_add), whose operators have a factor. */
static md_status create_kept(mixed_cg *m) {
  const md_operator *a = m->inner;
  if (a->shape.space != MD_DEVICE || a->shape.n_rhs > 1 || !a->factor || m->steps ||
      md_precision_bytes(a->precision) > 2)
    return MD_OK;
  for (int k = 0; k < MD_LINEAR_MOST_DIRECTIONS; k++)
    MD_TRY(md_operator_field(m->context, m->inner, &m->kept[k]));
  return MD_OK;
}

/* Whether steps make no A p. */
static bool lacks_product(const mixed_cg *m) {
  return m->steps || md_cg_takes_factors(m->inner, &m->r, m->flexible);
}

static md_field_shape wide_shape(const mixed_cg *m) {
  md_field_shape wide = m->inner->shape;
  wide.precision = MD_SINGLE;
  return wide;
}

/* A p too, which the direction after a projection needs. */
static md_status create_deflation(mixed_cg *m) {
  const md_field_shape wide = wide_shape(m);
  if (!m->a_p.data) MD_TRY(md_operator_field(m->context, m->inner, &m->a_p));
  return md_deflation_create(m->context, m->inner->geometry, &wide, directions(m), m->inner->most,
                             &m->deflation);
}

static void deflate_from_now(mixed_cg *m) {
  m->may_deflate = false;
  m->deflates = true;
  m->outer.factor = md_update_factor(true, 0.0);
  m->outer.roundoff = 0.0;
  m->outer.often = MD_UPDATE_OFTEN;
}

static md_status count_deflation(md_context *context, void *user) {
  mixed_cg *m = user;
  (void)context;
  const md_status status = create_deflation(m);
  md_deflation_destroy(&m->deflation);
  return status;
}

/* Memory of deflation on the way, where it can be had: whether it was. Collective. */
static bool has_room(mixed_cg *m) {
  md_memory_need need;
  md_status status = md_agree(m->context, md_memory_foresee(m->context, count_deflation, m, &need));
  if (status == MD_OK) status = md_memory_require(m->context, &need, "deflation");
  if (status == MD_OK) status = md_agree(m->context, create_deflation(m));
  if (status != MD_OK) md_deflation_destroy(&m->deflation);
  return status == MD_OK;
}

/* Deflation begins where the iterations show that their precision is coarse; never, where its
 * memory cannot be had then. */
static md_status measure(mixed_cg *m) {
  const double noise = md_outer_noise(&m->outer, md_precision_roundoff(m->inner->precision));
  if (!m->may_deflate || !md_update_is_coarse(noise)) return MD_OK;
  MD_TRY(md_agree(m->context, MD_OK)); /* a deferred failure is no lack of memory */
  m->may_deflate = false;
  if (has_room(m)) deflate_from_now(m);
  return MD_OK;
}

static md_status create(mixed_cg *m) {
  const md_field_shape wide = wide_shape(m);
  if (m->deflates) MD_TRY(create_deflation(m));
  MD_TRY(md_outer_create(&m->outer, md_precision_roundoff(m->inner->precision)));
  MD_TRY(md_field_create(m->context, m->inner->geometry, &wide, MD_EVEN, &m->x));
  MD_TRY(m->narrow ? md_operator_field(m->context, m->inner, &m->r)
                   : md_field_create(m->context, m->inner->geometry, &wide, MD_EVEN, &m->r));
  MD_TRY(md_operator_field(m->context, m->inner, &m->p));
  if (MINIDIRAC_HAVE_CUDA && !m->flexible && md_normal_fuses(m->inner, m->r.precision))
    MD_TRY(md_cg_steps_create(m->context, m->inner, &m->x, &m->r, &m->p,
                              md_cg_keeps_states(m->request), &m->steps));
  MD_TRY(create_kept(m));
  if (m->deflates || (lacks_product(m) && !m->request->modes)) return MD_OK;
  return md_operator_field(m->context, m->inner, &m->a_p);
}

/* Tells steps of a device where the fields are. */
static md_status begin_steps(mixed_cg *m) {
  m->whole = true;
  if (!MINIDIRAC_HAVE_CUDA || !m->steps) return MD_OK;
  return md_cg_steps_begin(m->context, m->steps, m->outer.norm2, m->outer.done);
}

/* Whether a projection misleads right-hand sides, whose directions are then forgotten. Of four
 * spins alone: without, plateaus of |r| have such raises too, and need their directions. */
static bool forget(mixed_cg *m) {
  bool raised[MD_MAX_RHS];
  if (!m->deflates || !m->outer.a->factor) return false;
  for (int r = 0; r < m->state->n_rhs; r++)
    raised[r] = !(m->outer.norm2[r] <= MD_DEFLATION_RAISES * MD_DEFLATION_RAISES);
  return md_deflation_forget(&m->deflation, raised);
}

/* The inner r = r of the system / |r|, zero where nothing is left to do, less what the directions
 * have of it, which goes into x. */
static md_status hand_down(mixed_cg *m) {
  double one[MD_MAX_RHS];
  for (int r = 0; r < m->state->n_rhs; r++) one[r] = 1.0;
  /* Projections need it in single; a slot that only insertions use has room. */
  md_field *r = m->deflates && m->narrow ? &m->deflation.w[m->deflation.kept] : &m->r;
  m->lacking = 0;
  do {
    MD_TRY(md_outer_hand_down(&m->outer, true, r));
    md_linear_zero(&m->x);
    if (m->deflates) MD_TRY(md_deflation_project(m->context, &m->deflation, r, &m->x));
    if (r != &m->r) MD_TRY(md_agree(m->context, md_field_convert(m->context, &m->r, r)));
    MD_TRY(md_linear_norm2(m->context, &m->r, one, m->outer.norm2));
  } while (forget(m));
  md_outer_go_on(&m->outer);
  return MD_OK;
}

/* The fields of the inner space are ready for the next step. */
static md_status go_on(mixed_cg *m) {
  m->due = false;
  if (m->steps) m->steps->state.carries = false;
  return begin_steps(m);
}

/* Begins a new Krylov space from the true residual of the last update. */
static md_status begin(mixed_cg *m) {
  MD_TRY(hand_down(m));
  MD_TRY(md_agree(m->context, md_field_convert(m->context, &m->p, &m->r)));
  return go_on(m);
}

static md_status recover(mixed_cg *m) {
  MD_TRY(md_outer_restart(&m->outer, "solver must be finite and <p, A p> positive",
                          m->inner->precision));
  return begin(m);
}

/* The partial solution and A times it, the change of the true residual to that in scratch, in the
 * old units: a new direction to deflate with. state->r, the old residual, is overwritten. */
static md_status deflate_more(void *user) {
  mixed_cg *m = user;
  md_deflation *d = &m->deflation;
  MD_TRY(md_outer_change(&m->outer, true, &d->a_w[d->count]));
  md_linear_copy(&d->w[d->count], &m->x);
  return md_deflation_insert(m->context, d);
}

/* x += the partial solution; r = s - A x in double. */
static md_status update_solution(mixed_cg *m) {
  return md_outer_update(&m->outer, &m->x, m->deflates ? deflate_more : NULL, m);
}

/* of_r and of_p of the new direction p = of_r r + of_p p. Without deflation, with u = p in the new
 * unit: p = r + beta (u - <r,u> / |r|^2 r), beta = |r|^2 / |r|^2 before the last step: the new
 * residual and the kept direction are orthogonal. A projected residual is not the recursion's next
 * one, so that beta is what makes the new direction conjugate to the last: -<A p, r> / <p, A p>;
 * iterations that leave no A p make it anew. A direction that was followed in vain a few times is
 * dropped, and one that makes <p, r> other than the |r|^2 that alpha takes for granted. */
static md_status keep_direction(mixed_cg *m, const double *unit_before, double *of_r,
                                double *of_p) {
  const bool another =
      m->deflates || m->outer.projected;        /* residual than the recursion's next one */
  double along[MD_MAX_RHS], across[MD_MAX_RHS]; /* <p, r>, <A p, r> */
  double guess[MD_MAX_RHS];                     /* |p| is seldom more than a few times |r| */
  for (int r = 0; r < m->state->n_rhs; r++) guess[r] = 4.0 * sqrt(m->before[r] * m->outer.norm2[r]);
  if (another && lacks_product(m)) {
    MD_TRY(md_operator_apply(m->context, m->inner, &m->a_p, &m->p, NULL));
    MD_TRY(md_linear_dot(m->context, &m->p, &m->a_p, NULL, m->step.p_ap));
  }
  if (another) MD_TRY(md_linear_dot(m->context, &m->a_p, &m->r, NULL, across));
  MD_TRY(md_linear_dot(m->context, &m->p, &m->r, guess, along));
  for (int r = 0; r < m->state->n_rhs; r++) {
    const double share = along[r] / m->outer.norm2[r];
    of_r[r] = 1.0;
    of_p[r] = 0.0;
    if (m->outer.done[r] || m->outer.in_vain[r] >= MD_UPDATES_FEW_IN_VAIN) continue;
    if (another) {
      const double beta = -across[r] / m->step.p_ap[r];
      of_p[r] = fabs(beta * share) < MOST_ALONG ? beta : 0.0;
      continue;
    }
    const double ratio = unit_before[r] / m->outer.unit[r];
    of_p[r] = m->outer.norm2[r] / (m->before[r] * ratio);
    of_r[r] = 1.0 - of_p[r] * share;
  }
  return MD_OK;
}

/* A reliable update. */
static md_status update(mixed_cg *m) {
  double of_r[MD_MAX_RHS], of_p[MD_MAX_RHS], unit_before[MD_MAX_RHS];
  memcpy(unit_before, m->outer.unit, sizeof unit_before);
  take_last(m);
  MD_TRY(measure(m));
  MD_TRY(update_solution(m));
  MD_TRY(hand_down(m));
  MD_TRY(keep_direction(m, unit_before, of_r, of_p));
  md_linear_axpby(of_r, &m->r, of_p, &m->p);
  return go_on(m);
}

/* alpha and the new r, |r|^2, beta; false when a sum is not what it must be. */
static md_status step(mixed_cg *m, bool *sound) {
  bool rests[MD_MAX_RHS]; /* so does what a projection left nothing of, until the next update */
  memcpy(m->before, m->outer.norm2, sizeof m->before);
  for (int r = 0; r < m->state->n_rhs; r++) rests[r] = m->outer.done[r] || m->before[r] == 0.0;
  MD_TRY(md_cg_step_take(m->context, m->inner, rests, m->before, m->flexible, &m->r, &m->p, &m->a_p,
                         &m->step));
  *sound = m->step.broken < 0;
  if (*sound) memcpy(m->outer.norm2, m->step.norm2, sizeof m->outer.norm2);
  return MD_OK;
}

/* The same from the device, where the next step is under way when the host learns of this one,
 * unless this one brings an update, or the fields are to be read or the iterations to end. */
static inline md_status fused_step(mixed_cg *m, bool *sound) {
  const md_cg_state *s = m->state;
  const int now = s->iteration + 1;
  m->whole = s->result.interrupted || now >= s->most || md_cg_is_read(m->request, now);
  memcpy(m->before, m->outer.norm2, sizeof m->before);
  const md_cg_next then = m->due ? MD_NEXT_IS_LAST : m->whole ? MD_NEXT_IS_WHOLE : MD_NEXT_GOES_ON;
  return md_cg_steps_next(m->context, m->steps, then, m->step.alpha, m->outer.norm2, sound);
}

/* x += alpha p, now or with others, and the next p. */
static void take_direction(mixed_cg *m) {
  const md_cg_step *s = &m->step;
  md_field *before = &m->kept[m->lacking];
  if (!before->data) {
    md_linear_cg_update(s->alpha, s->beta, &m->r, &m->p, &m->x);
    return;
  }
  md_field_swap(before, &m->p);
  memcpy(m->of[m->lacking], s->alpha, sizeof *m->of);
  md_linear_cg_direction(s->beta, &m->r, before, &m->p);
  if (++m->lacking == MD_LINEAR_MOST_DIRECTIONS) complete(m);
}

/* On the host an update comes with the iteration that asks for it, on a device one later, whether
 * the state was read in between or not. */
static md_status iterate_once(mixed_cg *m) {
  const bool was_due = m->due;
  bool sound;
  MD_TRY(MINIDIRAC_HAVE_CUDA && m->steps ? fused_step(m, &sound) : step(m, &sound));
  if (!sound) return recover(m);
  m->due = md_outer_count(&m->outer) || m->due;
  if (m->steps ? was_due : m->due) return update(m);
  if (m->steps) return m->whole ? begin_steps(m) : MD_OK;
  take_direction(m);
  return MD_OK;
}

/* No iteration is left, or a signal has ended the solve: the state is as it was without that, and
 * is to be saved, before the solution takes what was found since the last update. */
static md_status end_early(mixed_cg *m) {
  save(m);
  MD_TRY(md_cg_leave(m->context, m->request, m->state));
  if (m->outer.since == 0) return MD_OK;
  MD_TRY(update_solution(m));
  return hand_down(m);
}

/* The rules of reliable_update.h for this system. */
static void set_rules(mixed_cg *m) {
  const md_modes *modes = m->request->modes;
  const md_operator *a = m->outer.a;
  const double kappa = md_low_modes_kappa(modes, a->least, a->most);
  const double unknowns = 0.25 * a->shape.components * (double)a->geometry->volume;
  const double roundoff = md_precision_roundoff(m->inner->precision);
  const double noise = md_update_noise(a->factor ? fmin(kappa, MD_UPDATE_KAPPA) : kappa, roundoff);
  m->deflates = md_update_deflates(m->inner->shape.space == MD_HOST, noise, kappa,
                                   m->request->tolerance, unknowns);
  m->outer.factor = md_update_factor(m->deflates, noise);
  m->flexible = roundoff > 0x1p-10;
  m->outer.roundoff = a->factor && !m->deflates && !m->flexible ? roundoff : 0.0;
  m->outer.latest = md_update_latest(kappa, m->outer.factor);
  m->outer.often = a->factor && m->deflates ? MD_UPDATE_OFTEN : 0;
  m->may_deflate = a->factor && !m->deflates;
  m->narrow = !m->flexible && (m->deflates || md_update_narrows(noise)) &&
              (a->factor || md_normal_fuses(m->inner, m->inner->precision));
}

static md_status begin_or_resume(mixed_cg *m) {
  if (!m->request->resume) {
    MD_TRY(begin(m));
    md_cg_record(m->request, m->state);
    return MD_OK;
  }
  MD_TRY(md_cg_resume(m->context, m->request, m->state));
  const int beside = m->state->more.fields - always_saved(m);
  if (beside < 0 || beside % 2 != 0)
    return md_fail(m->context, MD_INPUT, "a state of mixed CG has %d fields and pairs, got %d",
                   always_saved(m), m->state->more.fields);
  m->deflation.count = beside / 2;
  move_numbers(m, false);
  if (m->may_deflate && beside > 0) deflate_from_now(m);
  if (m->may_deflate) md_deflation_destroy(&m->deflation);
  md_outer_take_units(&m->outer, true);
  return begin_steps(m);
}

static md_status iterate(mixed_cg *m) {
  const md_cg_state *s = m->state;
  MD_TRY(begin_or_resume(m));
  while (!md_outer_at_end(&m->outer)) {
    MD_TRY(iterate_once(m));
    if (md_cg_is_read(m->request, s->iteration)) save(m);
    if (m->request->observe) MD_TRY(m->request->observe(m->request->user, s));
    if (m->whole && (s->result.interrupted || s->iteration >= s->most)) MD_TRY(end_early(m));
  }
  return MD_OK;
}

md_status md_mixed_cg_iterate(md_context *context, const md_solver_job *job, md_cg_state *state) {
  mixed_cg m = {.context = context,
                .outer = {.context = context, .a = job->a, .request = job->request, .state = state},
                .inner = job->inner,
                .request = job->request,
                .state = state};
  set_rules(&m);
  md_status status = md_agree(context, create(&m));
  if (status == MD_OK && job->request->resume && m.may_deflate && !md_counts(context))
    m.may_deflate = has_room(&m); /* for what a state may have */
  if (status == MD_OK) status = md_agree(context, create_saved(&m));
  if (status == MD_OK && md_counts(context))
    md_cg_record(job->request, state);
  else if (status == MD_OK)
    status = iterate(&m);
  destroy(&m);
  return status;
}
