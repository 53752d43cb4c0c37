/* All masses and sources of one action on one lattice, in batches of right-hand sides. */
#include "base/interrupt.h"
#include "base/progress.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"
#include "measure/masses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool md_study_multishift(const md_study_options *o) {
  return !o->how.by;
}

static int count_vectors(const md_study_options *o) {
  int count = 0;
  for (int i = 0; i < o->sources.count; i++)
    count += md_source_count(&o->sources.source[i], (int)o->vectors);
  return count;
}

int md_study_width(const md_study_options *o) {
  const int count = count_vectors(o), batches = (count + (int)o->rhs - 1) / (int)o->rhs;
  return (count + batches - 1) / batches;
}

/* Everything of one action. What is found is kept by right-hand side and mass until sources are
 * whole: a batch may hold parts of several. */
typedef struct work {
  md_context *context;
  const md_study *s;
  md_propagator p;
  int vectors, width, row;                 /* numbers of a correlator with all momenta */
  md_source source[MD_STUDY_SOURCES_MOST]; /* with random numbers of this lattice */
  md_source_vector *vector;
  double *correlator; /* [mass][vector][momentum][t] */
  double *condensate; /* [mass][vector] */
  double *residual;   /* [mass][vector] */
  int *iterations;    /* [mass][vector] */
} work;

static md_status describe_sources(work *w, uint64_t key) {
  const md_study_options *o = &w->s->options;
  int at = 0;
  for (int i = 0; i < o->sources.count; i++) {
    w->source[i] = md_source_reseeded(&o->sources.source[i], key);
    MD_TRY(md_source_check(w->context, &w->source[i], w->s->dims));
    md_source_expand(&w->source[i], w->s->dims, (int)o->vectors, w->vector + at);
    at += md_source_count(&w->source[i], (int)o->vectors);
  }
  return MD_OK;
}

static md_status allocate(work *w) {
  const md_study_options *o = &w->s->options;
  const size_t all = (size_t)o->masses.count * (size_t)w->vectors;
  w->vector = calloc((size_t)w->vectors, sizeof *w->vector);
  w->correlator = malloc(all * (size_t)w->row * sizeof *w->correlator);
  w->condensate = malloc(all * sizeof *w->condensate);
  w->residual = malloc(all * sizeof *w->residual);
  w->iterations = malloc(all * sizeof *w->iterations);
  const bool there = w->vector && w->correlator && w->condensate && w->residual && w->iterations;
  return there ? MD_OK
               : md_fail_memory(w->context, all * (size_t)w->row * sizeof(double), "correlators");
}

/* Correlators and condensates of the solutions for one mass in p.x of the vectors from `first` on.
 */
static md_status observe(void *user, int mass, const double *residuals, const int *iterations) {
  work *w = user;
  const int first = w->p.first, n = w->p.used;
  const md_momenta momenta = md_momenta_of(&w->s->options.momenta);
  double estimates[MD_MAX_RHS];
  int origin[MD_MAX_RHS][MD_DIMS] = {{0}};
  const size_t at = (size_t)mass * (size_t)w->vectors + (size_t)first;
  for (int r = 0; r < n; r++) memcpy(origin[r], w->vector[first + r].at, sizeof origin[r]);
  double *room = malloc((size_t)w->width * (size_t)w->row * sizeof *room);
  md_status status = room ? MD_OK : md_fail_memory(w->context, (size_t)w->row, "correlators");
  status = md_agree(w->context, status);
  if (status == MD_OK)
    status = md_pion_correlators(w->context, w->p.x, (const int(*)[MD_DIMS])origin, &momenta, room);
  if (status == MD_OK) {
    memcpy(w->correlator + at * (size_t)w->row, room, (size_t)n * (size_t)w->row * sizeof *room);
    status = md_chiral_condensate(w->context, w->p.b, w->p.x, estimates);
  }
  free(room);
  if (status != MD_OK) return status;
  memcpy(w->condensate + at, estimates, (size_t)n * sizeof *estimates);
  memcpy(w->residual + at, residuals, (size_t)n * sizeof *residuals);
  memcpy(w->iterations + at, iterations, (size_t)n * sizeof *iterations);
  return MD_OK;
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
  *worst = *most = 0.0;
  for (int r = 0; r < count; r++) {
    *worst = fmax(*worst, w->residual[at + (size_t)r]);
    *most = fmax(*most, w->iterations[at + (size_t)r]);
  }
  if (md_source_is_noise(from)) {
    md_source_mean(from, count, w->condensate + at, 1, 1,
                   record + s->start[MD_STUDY_CONDENSATE] + place,
                   record + s->start[MD_STUDY_CONDENSATE_ERROR] + place);
    return;
  }
  for (int q = 0; q < momenta.count; q++) {
    const int *n = momenta.n[q];
    if ((n[0] || n[1] || n[2]) && !md_source_is_points(from)) continue;
    md_source_mean(from, count, w->correlator + at * (size_t)w->row + q * times, w->row, times,
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

/* The batch from w->p.first on: as many vectors as are left, and behind them sources of zeros. */
static void fill(work *w) {
  md_source_vector batch[MD_MAX_RHS];
  w->p.used = w->vectors - w->p.first < w->width ? w->vectors - w->p.first : w->width;
  for (int r = 0; r < w->width; r++)
    batch[r] = r < w->p.used ? w->vector[w->p.first + r]
                             : (md_source_vector){.kind = MD_SOURCE_POINT, .colour = 3};
  md_source_fill(w->p.b, batch);
}

static md_status run(work *w) {
  md_progress progress = md_progress_start(w->context, "measure");
  md_status status = MD_OK;
  for (w->p.first = 0; w->p.first < w->vectors && status == MD_OK; w->p.first += w->width) {
    fill(w);
    md_progress_update(&progress, (double)w->p.first / w->vectors, "right-hand side %d of %d",
                       w->p.first + 1, w->vectors);
    status = md_study_multishift(&w->s->options) ? md_propagate_together(w->context, &w->p)
                                                 : md_propagate_apart(w->context, &w->p);
  }
  md_progress_stop(&progress);
  return status;
}

md_status md_study_propagate(md_context *context, const md_study *s, const md_study_links *links,
                             double *record) {
  work w = {.context = context,
            .s = s,
            .vectors = count_vectors(&s->options),
            .width = md_study_width(&s->options),
            .row = md_study_momenta(s) * s->dims[MD_T]};
  w.p = (md_propagator){.s = s, .observe = observe, .user = &w};
  md_status status = md_agree(context, allocate(&w));
  if (status == MD_OK) status = describe_sources(&w, links->key);
  if (status == MD_OK) status = md_propagator_create(context, links, w.width, &w.p);
  if (status == MD_OK) status = run(&w);
  if (status == MD_OK) store(&w, links->action, record);
  md_propagator_destroy(&w.p);
  free(w.vector);
  free(w.correlator);
  free(w.condensate);
  free(w.residual);
  free(w.iterations);
  return status;
}
