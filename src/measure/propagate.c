/* All masses and sources of one action on one lattice, in batches of right-hand sides: M x = b for
 * one mass after the other by CG, or for all together by multi-shift. */
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/text.h"
#include "dirac/solvers/multishift.h"
#include "lattice/fields/linear.h"
#include "measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_vectors(const md_study_options *o) {
  int count = 0;
  for (int i = 0; i < o->sources.count; i++)
    count += md_source_count(&o->sources.source[i], (int)o->vectors);
  return count;
}

static int count_batches(int vectors, int width) {
  return (vectors + width - 1) / width;
}

int md_study_width(const md_study_options *o) {
  const int vectors = count_vectors(o);
  return count_batches(vectors, count_batches(vectors, (int)o->rhs));
}

/* What is kept of a right-hand side beside its correlators. */
enum { CONDENSATE, RESIDUAL, ITERATIONS, MIDPOINT, FOUND };

/* Everything of one action. What is found is kept by mass and right-hand side until sources are
 * whole: a batch may hold parts of several. */
typedef struct work {
  md_context *context;
  const md_study *s;
  int action;            /* place in options.actions */
  const md_modes *modes; /* to deflate with, one mass at a time; NULL: none */
  md_equation of;
  md_field midpoint[MD_PARITIES];          /* of domain walls: of md_solver_request */
  double *room;                            /* [width][t] of it */
  int width, vectors;                      /* of a batch, and of all batches together */
  int first;                               /* of the batch */
  int row;                                 /* numbers of a correlator with all momenta */
  md_source source[MD_STUDY_SOURCES_MOST]; /* with random numbers of this lattice */
  md_source_vector
      *vector;        /* [vectors]: those of the sources, then zeros that fill the last batch */
  double *correlator; /* [mass][vector][momentum][t] */
  double *found;      /* [mass][vector][FOUND] */
  md_progress progress;
  char what[80];         /* is solved, in words */
  double before, target; /* of its residuals: the first one, and the tolerance */
} work;

/* The lines of progress from here on are of this part of the batch, from `begin` to `begin + share`
 * of it; mass < 0: of all. */
static void name_solve(work *w, int mass, double begin, double share) {
  const md_study *s = w->s;
  const md_study_options *o = &s->options;
  const int batches = w->vectors / w->width, batch = w->action * batches + w->first / w->width;
  const double unit = s->share / (o->actions.count * batches);
  w->context->progress.begin = s->begin + unit * (batch + begin);
  w->context->progress.share = unit * share;
  snprintf(w->what, sizeof w->what, "%s, ", md_action_name((md_action)o->actions.value[w->action]));
  if (mass >= 0) md_append(w->what, sizeof w->what, "mass %g, ", o->masses.value[mass]);
  md_append(w->what, sizeof w->what, "right-hand side %d of %d, ", w->first + 1, count_vectors(o));
}

static md_status watch_cg(void *user, const md_cg_state *state) {
  work *w = user;
  const double *history = state->result.history;
  md_run_progress(&w->progress, w->what, 0, state->iteration, history[0], history[state->iteration],
                  w->s->options.tolerance);
  return MD_OK;
}

static md_status watch_shifts(void *user, int iteration, double residual) {
  work *w = user;
  if (iteration == 1) w->before = residual;
  md_run_progress(&w->progress, w->what, 0, iteration, w->before, residual, w->target);
  return MD_OK;
}

static md_status describe_sources(work *w, uint64_t key) {
  const md_study_options *o = &w->s->options;
  int at = 0;
  for (int i = 0; i < o->sources.count; i++) {
    w->source[i] = md_source_reseeded(&o->sources.source[i], key);
    MD_TRY(md_source_check(w->context, &w->source[i], w->s->dims));
    md_source_expand(&w->source[i], w->s->dims, (int)o->vectors, w->vector + at);
    at += md_source_count(&w->source[i], (int)o->vectors);
  }
  for (; at < w->vectors; at++)
    w->vector[at] = (md_source_vector){.kind = MD_SOURCE_POINT, .colour = 12}; /* beyond the last */
  return MD_OK;
}

static md_status allocate(work *w) {
  const size_t all = (size_t)w->s->options.masses.count * (size_t)w->vectors;
  w->vector = malloc((size_t)w->vectors * sizeof *w->vector);
  w->found = malloc(all * FOUND * sizeof *w->found);
  w->room = malloc((size_t)w->width * (size_t)w->s->dims[MD_T] * sizeof *w->room);
  if (!w->vector || !w->found || !w->room)
    return md_fail_memory(w->context, all * FOUND * sizeof *w->found, "what solves come to");
  return md_allocate(w->context, all * (size_t)w->row * sizeof *w->correlator, "correlators",
                     (void **)&w->correlator);
}

/* The window's sum of each right-hand side. */
static md_status observe_midpoint(work *w, const int (*origin)[MD_DIMS], double *found) {
  static const int zero[1][3] = {{0, 0, 0}};
  const md_momenta still = {1, zero};
  const int times = w->s->dims[MD_T];
  if (w->midpoint->components == 0) return MD_OK;
  MD_TRY(md_pion_correlators(w->context, w->midpoint, origin, &still, w->room));
  for (int r = 0; r < w->width; r++) {
    found[r * FOUND + MIDPOINT] = 0.0;
    for (int t = 0; t < times; t++)
      if (md_in_window(t, times)) found[r * FOUND + MIDPOINT] += w->room[r * times + t];
  }
  return MD_OK;
}

/* Correlators and condensates of the batch's solutions for one mass, which are in of.x. */
static md_status observe(work *w, int mass, const double *residuals, const int *iterations) {
  const md_momenta momenta = md_momenta_of(&w->s->options.momenta);
  double estimates[MD_MAX_RHS];
  int origin[MD_MAX_RHS][MD_DIMS];
  const size_t at = (size_t)mass * (size_t)w->vectors + (size_t)w->first;
  for (int r = 0; r < w->width; r++)
    memcpy(origin[r], w->vector[w->first + r].at, sizeof origin[r]);
  MD_TRY(md_pion_correlators(w->context, w->of.x, (const int(*)[MD_DIMS])origin, &momenta,
                             w->correlator + at * (size_t)w->row));
  MD_TRY(md_chiral_condensate(w->context, w->of.b, w->of.x, estimates));
  for (int r = 0; r < w->width; r++) {
    double *found = w->found + (at + (size_t)r) * FOUND;
    found[CONDENSATE] = estimates[r];
    found[RESIDUAL] = residuals[r];
    found[ITERATIONS] = iterations[r];
    found[MIDPOINT] = NAN;
  }
  return observe_midpoint(w, (const int(*)[MD_DIMS])origin, w->found + at * FOUND);
}

/* As md_source_mean; the error of one copy is unknown. */
static void average(const md_source *from, int count, const double *values, int stride, int length,
                    double *mean, double *error) {
  md_source_mean(from, count, values, stride, length, mean, error);
  for (int i = 0; i < length && count / md_source_width(from) < 2; i++) error[i] = NAN;
}

/* Momenta but zero are those of points; what a source does not give stays NaN. */
static void store_source(work *w, int action, int mass, int source, int first, double *record) {
  const md_study *s = w->s;
  const md_source *from = &w->source[source];
  const int count = md_source_count(from, (int)s->options.vectors);
  const int place = md_study_case(s, action, mass, source), times = s->dims[MD_T];
  const size_t at = (size_t)mass * (size_t)w->vectors + (size_t)first;
  const md_momenta momenta = md_momenta_of(&s->options.momenta);
  double *worst = record + s->start[MD_STUDY_RESIDUAL] + place;
  double *most = record + s->start[MD_STUDY_ITERATIONS] + place;
  const double *found = w->found + at * FOUND;
  *worst = *most = 0.0;
  for (int r = 0; r < count; r++) {
    *worst = fmax(*worst, found[r * FOUND + RESIDUAL]);
    *most = fmax(*most, found[r * FOUND + ITERATIONS]);
  }
  if (md_source_is_noise(from)) {
    average(from, count, found + CONDENSATE, FOUND, 1,
            record + s->start[MD_STUDY_CONDENSATE] + place,
            record + s->start[MD_STUDY_CONDENSATE_ERROR] + place);
    return;
  }
  double unused;
  md_source_mean(from, count, found + MIDPOINT, FOUND, 1,
                 record + s->start[MD_STUDY_MIDPOINT] + place, &unused);
  for (int q = 0; q < momenta.count; q++) {
    const int *n = momenta.n[q];
    if ((n[0] || n[1] || n[2]) && !md_source_is_points(from)) continue;
    average(from, count, w->correlator + at * (size_t)w->row + q * times, w->row, times,
            record + s->start[MD_STUDY_PION] + place * w->row + q * times,
            record + s->start[MD_STUDY_PION_ERROR] + place * w->row + q * times);
  }
}

static void store(work *w, int action, double *record) {
  const md_study_options *o = &w->s->options;
  for (int m = 0; m < o->masses.count; m++)
    for (int i = 0, first = 0; i < o->sources.count; i++) {
      store_source(w, action, m, i, first, record);
      first += md_source_count(&w->source[i], (int)o->vectors);
    }
}

/* How a solve that did not converge ends; it ran out of iterations, or stalled. */
static md_status unreached(const work *w, bool interrupted, bool ran_out, double mass,
                           double residual) {
  const md_study_options *o = &w->s->options;
  if (interrupted)
    return md_fail(w->context, MD_ENVIRONMENT, "%s ended a solve", md_interrupt_name(w->context));
  return md_fail(w->context, MD_UNREACHED,
                 "the true residual must be at most %g, %s %.3e at mass %g; raise %s--tol%s",
                 o->tolerance, ran_out ? "got" : "stalled at", residual, mass,
                 ran_out ? "--max-iter or " : "",
                 o->run.request.precision == MD_DOUBLE || o->run.mixed
                     ? ""
                     : ", or use --precision double with --inner");
}

/* Of the time: iterations grow as the mass falls. */
static double weight_of(double mass) {
  return 1.0 / (1e-6 + fabs(mass));
}

/* By one of the solvers, mass by mass. */
static md_status solve_apart(work *w) {
  const md_study_options *o = &w->s->options;
  md_equation *e = &w->of;
  const bool walls = md_action_get((md_action)o->actions.value[w->action])->walls;
  double begin = 0.0, weights = 0.0;
  for (int m = 0; m < o->masses.count; m++) weights += weight_of(o->masses.value[m]);
  for (int m = 0; m < o->masses.count; m++) {
    const double share = weight_of(o->masses.value[m]) / weights;
    name_solve(w, m, begin, share);
    begin += share;
    md_solver_request request = {.mass = o->masses.value[m],
                                 .tolerance = o->tolerance,
                                 .max_iterations = (int)o->max_iterations,
                                 .observe = watch_cg,
                                 .user = w,
                                 .inner = o->run.mixed ? &e->inner : NULL,
                                 .modes = w->modes,
                                 .midpoint = w->midpoint->components ? w->midpoint : NULL,
                                 /* of the mass before: x is read before it is assigned; what
                                    walls leave there is the quark of four dimensions */
                                 .guess = m > 0 && !walls ? &e->x[MD_EVEN] : NULL};
    md_solver_options_apply(&o->how, &request);
    if (md_counts(w->context) && request.precondition == MD_PRECONDITION_MODES)
      request.precondition = MD_PRECONDITION_NONE; /* it is of the modes, which are not read yet */
    md_solver_result result;
    const md_memory_need mark = md_memory_mark(w->context);
    md_status status =
        md_solve_cg(w->context, &e->dirac, md_equation_exact(e), &request, e->x, e->b, &result);
    md_memory_return_to(w->context, mark);
    if (status == MD_OK && !result.converged)
      status = unreached(w, result.interrupted,
                         !result.stalled && result.iterations >= request.max_iterations,
                         request.mass, result.relative_residual);
    if (status == MD_OK && !md_counts(w->context))
      status = observe(w, m, result.residuals, result.rhs_iterations);
    md_solver_result_free(&result);
    MD_TRY(status);
  }
  return MD_OK;
}

/* Multi-shift of one batch, on even sites: y = A^-1 b_e and z = A^-1 Deo b_o, A = m^2 - Deo Doe,
 * are solved for all masses at once, and x_e = m y - z, x_o = (b_o - Doe x_e) / m. A family whose
 * source is zero is left out. Its tolerance is so small that that of x is met; the residual that
 * decides is that of M x = b in double. */
typedef struct family {
  md_operator full; /* M of the exact operator, for one mass after the other */
  md_system system; /* M x = b */
  md_field source;  /* host: b_e, then Deo b_o */
  md_field y[MD_LIST_MOST], z[MD_LIST_MOST]; /* host, by mass; z where there is one */
  bool even, odd;                            /* whether b has such parts */
  double source_norm[MD_PARITIES][MD_MAX_RHS];
  double lowest; /* mass */
  int iterations;
  bool ran_out; /* of iterations, so that more would help */
} family;

static void family_destroy(family *f) {
  md_system_destroy(&f->system);
  md_operator_destroy(&f->full);
  md_field_destroy(&f->source);
  for (int m = 0; m < MD_LIST_MOST; m++) MD_FIELDS_DESTROY(&f->y[m], &f->z[m]);
}

static md_status family_create(work *w, family *f) {
  const md_reals *masses = &w->s->options.masses;
  const md_field *host = &w->of.b[MD_EVEN];
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, host->n_rhs, true, false};
  f->lowest = masses->value[0];
  MD_TRY(md_full_create(w->context, md_equation_exact(&w->of), 1.0, &f->full));
  MD_TRY(md_system_even_odd(w->context, &f->full, false, w->of.b, &f->system));
  MD_TRY(md_field_create(w->context, host->geometry, &shape, MD_EVEN, &f->source));
  for (int m = 0; m < masses->count; m++) {
    f->lowest = fmin(f->lowest, masses->value[m]);
    MD_TRY(md_field_create(w->context, host->geometry, &shape, MD_EVEN, &f->y[m]));
    MD_TRY(md_field_create(w->context, host->geometry, &shape, MD_EVEN, &f->z[m]));
  }
  return MD_OK;
}

/* Norms of b_e, Deo b_o and b; work[even] = Deo b_o. */
static md_status measure_sources(work *w, family *f) {
  md_system *s = &f->system;
  MD_TRY(md_system_measure(w->context, s));
  MD_TRY(
      md_dirac_hop(w->context, md_equation_exact(&w->of), &s->work[MD_EVEN], &s->b[MD_ODD], NULL));
  MD_TRY(md_system_norms(w->context, 1, &s->b[MD_EVEN], f->source_norm[MD_EVEN]));
  MD_TRY(md_system_norms(w->context, 1, &s->work[MD_EVEN], f->source_norm[MD_ODD]));
  for (int r = 0; r < w->width; r++) {
    f->even = f->even || f->source_norm[MD_EVEN][r] > 0.0;
    f->odd = f->odd || f->source_norm[MD_ODD][r] > 0.0;
  }
  return MD_OK;
}

/* With residuals rho of y and sigma of z, b - M x is rho - sigma / m on even sites. */
static double tolerance_of(const work *w, const family *f) {
  const double asked = w->s->options.tolerance;
  double tolerance = asked;
  for (int r = 0; r < w->width; r++)
    if (f->system.b_norm[r] > 0.0)
      tolerance =
          fmin(tolerance, asked * f->system.b_norm[r] /
                              (f->source_norm[MD_EVEN][r] + f->source_norm[MD_ODD][r] / f->lowest));
  return tolerance;
}

static md_status solve_family(work *w, family *f, md_field *x) {
  const md_study_options *o = &w->s->options;
  double shifts[MD_LIST_MOST];
  md_multishift_result result;
  for (int m = 0; m < o->masses.count; m++)
    shifts[m] = (o->masses.value[m] - f->lowest) * (o->masses.value[m] + f->lowest);
  const md_multishift_request request = {.mass = f->lowest,
                                         .shifts = shifts,
                                         .n_shifts = o->masses.count,
                                         .tolerance = tolerance_of(w, f),
                                         .max_iterations = (int)o->max_iterations,
                                         .refine = true,
                                         .observe = watch_shifts,
                                         .user = w};
  w->target = request.tolerance;
  md_status status = md_solve_multishift(w->context, &w->of.dirac, md_equation_exact(&w->of),
                                         &request, x, &f->source, &result);
  if (status == MD_OK && result.interrupted && !result.converged)
    status = unreached(w, true, false, f->lowest, NAN);
  for (int k = 0; k < result.n_shifts && status == MD_OK; k++)
    f->ran_out = f->ran_out || result.iterations >= request.max_iterations ||
                 result.shifts[k].refine_iterations >= request.max_iterations;
  if (status == MD_OK && result.iterations > f->iterations) f->iterations = result.iterations;
  md_multishift_result_free(&result);
  md_memory_release(); /* of its fields, before the next family or the assembly has its own */
  return status;
}

/* x = M^-1 b for mass m from y and z, on the exact operator's fields and in of.x; its true
 * residuals, and the largest in *worst. */
static md_status assemble(work *w, family *f, int m, double *residuals, double *worst) {
  md_context *context = w->context;
  md_system *s = &f->system;
  const double mass = w->s->options.masses.value[m];
  double scale[MD_MAX_RHS], minus[MD_MAX_RHS];
  for (int r = 0; r < MD_MAX_RHS; r++) {
    scale[r] = mass;
    minus[r] = -1.0;
  }
  md_full_set_mass(&f->full, mass);
  MD_TRY(md_agree(context, md_field_resize(context, &s->x[MD_EVEN], &f->y[m])));
  MD_TRY(md_agree(context, md_field_resize(context, &s->work[MD_EVEN], &f->z[m])));
  md_linear_axpby(minus, &s->work[MD_EVEN], scale, &s->x[MD_EVEN]);
  MD_TRY(s->kind->reconstruct(context, s));
  for (int k = 0; k < MD_PARITIES; k++)
    MD_TRY(md_agree(context, md_field_resize(context, &w->of.x[k], &s->x[k])));
  MD_TRY(md_system_true_residuals(context, s, residuals));
  *worst = 0.0;
  for (int r = 0; r < w->width; r++) *worst = fmax(*worst, residuals[r]);
  return MD_OK;
}

static md_status solve_families(work *w, family *f) {
  const md_study_options *o = &w->s->options;
  md_context *context = w->context;
  double residuals[MD_MAX_RHS], worst;
  int iterations[MD_MAX_RHS];
  MD_TRY(measure_sources(w, f));
  const double half = f->odd && f->even ? 0.5 : 1.0;
  name_solve(w, -1, 0.0, half);
  if (f->odd) {
    MD_TRY(md_agree(context, md_field_resize(context, &f->source, &f->system.work[MD_EVEN])));
    MD_TRY(solve_family(w, f, f->z));
    name_solve(w, -1, half, 1.0 - half);
  }
  if (f->even) {
    MD_TRY(md_agree(context, md_field_convert(context, &f->source, &w->of.b[MD_EVEN])));
    MD_TRY(solve_family(w, f, f->y));
  }
  for (int r = 0; r < w->width; r++) iterations[r] = f->iterations;
  for (int m = 0; m < o->masses.count; m++) {
    MD_TRY(assemble(w, f, m, residuals, &worst));
    if (!(worst <= o->tolerance)) return unreached(w, false, f->ran_out, o->masses.value[m], worst);
    MD_TRY(observe(w, m, residuals, iterations));
  }
  return MD_OK;
}

static md_status solve_together(work *w) {
  family f = {0};
  md_status status = md_agree(w->context, family_create(w, &f));
  if (status == MD_OK)
    status = md_counts(w->context) ? solve_family(w, &f, f.y) : solve_families(w, &f);
  family_destroy(&f);
  return status;
}

static md_status solve_batch(work *w) {
  return w->s->options.how.by ? solve_apart(w) : solve_together(w);
}

static md_status solve_batches(work *w) {
  md_status status = MD_OK;
  for (w->first = 0; w->first < w->vectors && status == MD_OK; w->first += w->width) {
    md_source_fill(w->of.b, w->vector + w->first);
    status = solve_batch(w);
  }
  md_progress_stop(&w->progress);
  return status;
}

md_status md_study_propagate(md_context *context, const md_study *s, const md_study_links *links,
                             double *record) {
  const md_study_options *o = &s->options;
  const md_geometry *geometry = links->field->geometry;
  const md_backend_request request = md_study_batch(context, o, links->action, geometry->local);
  work w = {.context = context,
            .s = s,
            .action = links->action,
            .modes = links->modes,
            .progress = md_progress_start(context, "measure"),
            .width = request.n_rhs,
            .vectors = count_batches(count_vectors(o), request.n_rhs) * request.n_rhs,
            .row = md_study_momenta(s) * s->dims[MD_T]};
  md_status status = md_agree(context, allocate(&w));
  if (status == MD_OK) status = describe_sources(&w, links->key);
  if (status == MD_OK) status = md_equation_create(context, &o->run, &request, links->field, &w.of);
  if (status == MD_OK && md_request_slices(&request) % 2 == 0) /* walls with a middle */
    status = md_host_fields(context, w.of.b->geometry, &request, w.midpoint);
  if (status == MD_OK) status = md_counts(context) ? solve_batch(&w) : solve_batches(&w);
  if (status == MD_OK && !md_counts(context)) store(&w, links->action, record);
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&w.midpoint[p]);
  md_equation_destroy(&w.of);
  MD_FREE(w.room, w.vector, w.correlator, w.found);
  return status;
}
