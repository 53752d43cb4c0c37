#include "dirac/eigen/eigen.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/timer.h"
#include "dirac/eigen/basis.h"

#include <math.h>
#include <stdlib.h>

/* Windows are moved this often at most to be narrower; wider as often as need be. */
enum { MOST_NARROWED = 4, LEAST_SPARE = 24 };
/* Of blocks: steps beside the modes at least, and those of a search for others. */
enum { LEAST_STEPS = 4, CHECK_STEPS = 2 };

typedef struct search {
  md_context *context;
  const md_eigen_request *request;
  md_eigen_result *result;
  md_operator a;
  md_eigen_basis basis;
  double *old; /* values before a search for others; request->modes */
  bool checking;
  int narrowed;     /* times that the window became narrower */
  int below_window; /* Ritz values below it at the last restart; -1: none yet */
} search;

int64_t md_eigen_unknowns(const md_geometry *geometry, int components) {
  return components / 2 * (geometry->volume / 2);
}

/* Vectors of the basis, and of them those that survive a restart: all modes and a quarter of what
 * is beyond them, which are on their way. */
static void sizes(int64_t unknowns, int modes, int block, int *most, int *kept) {
  const int steps = LEAST_STEPS * block, least = steps > LEAST_SPARE ? steps : LEAST_SPARE;
  const int64_t spare = modes / 2 > least ? modes / 2 : least;
  *most = (int)(modes + spare < unknowns ? modes + spare : unknowns);
  *kept = modes + (*most - modes) / 4;
  *kept += (*most - *kept) % block; /* whole blocks between restarts */
}

/* Ritz values of A from a random vector stand for its unknowns by their weight in it. The filter
 * was of degree 1: f = 1 - 2 lambda / high. */
static md_eigen_density density_of(const md_eigen_basis *b) {
  md_eigen_density d = {.nodes = b->count};
  for (int i = 0; i < d.nodes; i++) {
    const double weight = cabs(b->rotation[i * b->count]);
    d.value[i] = 0.5 * b->filter.high * (1.0 - b->values[i]);
    d.share[i] = weight * weight;
  }
  return d;
}

/* Where the window begins at first: where a running sum of shares has counted the modes. Below the
 * lowest Ritz value the count is taken to be linear. */
static double first_window(const search *s) {
  const md_eigen_basis *b = &s->basis;
  const md_eigen_density *d = &s->result->density;
  const double high = b->filter.high, guard = b->block > 1 ? b->block : 0;
  const double wanted = (1.5 * s->request->modes + guard) / (double)b->unknowns;
  double sum = 0.0, low = high;
  for (int i = 0; i < d->nodes && sum < wanted; i++) {
    low = d->value[i];
    sum += d->share[i];
    if (i == 0 && sum > wanted) low *= fmax(wanted / sum, 0.01);
  }
  return fmax(low, 1e-8 * high);
}

/* A few steps without filter. */
static md_status probe(search *s) {
  md_eigen_basis *b = &s->basis;
  const int steps = b->most < MD_EIGEN_NODES ? b->most : MD_EIGEN_NODES;
  const double high = b->a->most;
  b->filter = (md_eigen_filter){1, 0.0, high};
  MD_TRY(md_eigen_basis_draw(b, 1));
  while (b->count < steps) MD_TRY(md_eigen_basis_step(b));
  MD_TRY(md_eigen_basis_solve(b));
  s->result->density = density_of(b);
  b->filter = md_eigen_filter_for(first_window(s), high);
  b->count = 0;
  return md_eigen_basis_draw(b, b->block);
}

/* Values and residuals of the first vectors, as many as are asked for or there. */
static md_status judge(search *s) {
  md_eigen_result *r = s->result;
  const double tolerance = s->request->tolerance;
  r->modes = s->basis.count < s->request->modes ? s->basis.count : s->request->modes;
  MD_TRY(md_eigen_basis_pairs(&s->basis, r->modes, r->values, r->residuals));
  for (int i = 1; i < r->modes; i++) /* the filter's order is theirs up to rounding */
    for (int j = i; j > 0 && r->values[j] < r->values[j - 1]; j--) {
      const double value = r->values[j], residual = r->residuals[j];
      const double complex e = s->basis.h[j * s->basis.most + j];
      const int at = j * s->basis.most + j, before = at - s->basis.most - 1;
      r->values[j] = r->values[j - 1], r->values[j - 1] = value;
      r->residuals[j] = r->residuals[j - 1], r->residuals[j - 1] = residual;
      md_field_swap(&s->basis.v[j], &s->basis.v[j - 1]);
      s->basis.h[at] = s->basis.h[before], s->basis.h[before] = e;
    }
  r->below = 0;
  while (r->below < r->modes && r->residuals[r->below] <= tolerance) r->below++;
  return MD_OK;
}

/* What the filter, which is another one now, makes of the modes that have converged. */
static void settle(search *s) {
  md_eigen_basis *b = &s->basis;
  const md_eigen_result *r = s->result;
  for (int i = 0; i < r->below; i++) b->values[i] = md_eigen_filter_value(&b->filter, r->values[i]);
  md_eigen_basis_settle(b);
}

/* With another filter: what has converged stays, the rest begins from its sums. */
static md_status begin_again(search *s) {
  settle(s);
  return md_eigen_basis_gather(&s->basis, s->result->below);
}

/* A window that begins below the last mode asked for never yields it, or yields a higher one: the
 * filter does not order what lies inside. One that begins far above makes steps dear. True: *next
 * is a better one. The whole space has all modes in any order. */
static bool choose_window(search *s, md_eigen_filter *next) {
  const md_eigen_basis *b = &s->basis;
  const md_eigen_result *r = s->result;
  const double last = r->values[r->modes - 1], low = b->filter.low;
  const double clear = (1.0 - 1e-6) * low; /* the filter tells what is below from the window */
  int below = 0;
  if (b->filter.degree == 1 || r->below == b->unknowns) return false;
  while (below < r->modes && r->values[below] < clear) below++;
  const bool all = r->below == s->request->modes;
  const bool stands = below < r->modes && (all || below <= s->below_window);
  const double wide = b->block > 1 ? 0.1 : 0.5; /* a block has guards, and loses more by a move */
  const bool narrow = r->below < r->modes && 1.3 * last < wide * low && s->narrowed < MOST_NARROWED;
  s->below_window = below;
  if (!stands && !narrow) return false;
  s->narrowed += narrow;
  s->below_window = -1;
  *next = md_eigen_filter_for(stands ? fmin(1.3 * last, 4.0 * low) : fmax(1.3 * last, 0.25 * low),
                              b->filter.high);
  return true;
}

static bool unchanged(const search *s) {
  for (int i = 0; i < s->result->modes; i++)
    if (!(fabs(s->result->values[i] - s->old[i]) <= s->request->tolerance)) return false;
  return true;
}

/* All have converged: either they stood a search for others, or that begins. */
static md_status conclude(search *s) {
  md_eigen_result *r = s->result;
  md_eigen_basis *b = &s->basis;
  r->converged = (s->checking && unchanged(s)) || r->modes == b->unknowns;
  if (r->converged) return MD_OK;
  for (int i = 0; i < r->modes; i++) s->old[i] = r->values[i];
  s->checking = true;
  b->count = r->modes;
  return md_eigen_basis_draw(b, b->block);
}

/* Begins from the vectors of an earlier search: goes on beside them where all have converged, else
 * from their sum. */
static md_status take_start(search *s) {
  const md_modes *start = s->request->start;
  md_eigen_basis *b = &s->basis;
  md_eigen_result *r = s->result;
  const double high = b->a->most;
  const int count = start->count < s->request->modes ? start->count : s->request->modes;
  if (count < s->request->modes) MD_TRY(probe(s));
  b->count = 0;
  for (int i = 0; i < count; i++) MD_TRY(md_eigen_basis_take(b, &start->vectors[i]));
  MD_TRY(judge(s));
  if (r->modes == 0) return probe(s);
  const double low = fmin(1.3 * r->values[r->modes - 1], high);
  if (r->modes == s->request->modes || low > b->filter.low)
    b->filter = md_eigen_filter_for(low, high);
  if (r->below < s->request->modes) return begin_again(s);
  settle(s);
  return conclude(s);
}

/* Steps until the basis has no room for another, one at least, and a restart. One that a signal
 * cuts short has looked for others nowhere near as far as it should: it is no check. */
static md_status cycle(search *s) {
  md_eigen_basis *b = &s->basis;
  md_eigen_result *r = s->result;
  const int all = s->checking && b->block > 1 ? CHECK_STEPS : b->most;
  if (b->count + b->waiting > b->most) b->waiting = b->most - b->count;
  for (int i = 0; b->waiting > 0 && b->count + b->waiting <= b->most && i < all; i++) {
    if (r->interrupted) {
      s->checking = false;
      break;
    }
    MD_TRY(md_eigen_basis_step(b));
    r->interrupted = md_interrupted(s->context);
  }
  const bool whole = b->count == b->unknowns; /* then nothing waits */
  MD_TRY(md_eigen_basis_solve(b));
  MD_TRY(md_eigen_basis_restart(b, b->kept < b->count ? b->kept : b->count));
  if (whole && b->count < b->most) MD_TRY(md_eigen_basis_draw(b, b->block));
  r->restarts++;
  return judge(s);
}

static md_status look(search *s) {
  md_eigen_result *r = s->result;
  if (md_counts(s->context)) return md_eigen_basis_draw(&s->basis, 1);
  MD_TRY(s->request->start && s->request->start->count > 0 ? take_start(s) : probe(s));
  while (!r->converged && !r->interrupted && r->restarts < s->request->max_restarts) {
    md_eigen_filter next;
    double worst = 0.0;
    MD_TRY(cycle(s));
    for (int i = 0; i < r->modes; i++) worst = fmax(worst, r->residuals[i]);
    if (s->request->observe) s->request->observe(s->request->user, r, worst);
    const bool moves = choose_window(s, &next), ends = !moves && r->below == s->request->modes;
    s->checking = s->checking && (ends || (!moves && unchanged(s)));
    if (r->interrupted || r->restarts == s->request->max_restarts) {
      r->converged = s->checking && unchanged(s);
      break;
    }
    if (moves) {
      s->basis.filter = next;
      MD_TRY(begin_again(s));
    } else if (ends)
      MD_TRY(conclude(s));
  }
  return MD_OK;
}

static md_status create(search *s, md_dirac *dirac) {
  const md_eigen_request *request = s->request;
  const size_t modes = (size_t)request->modes;
  int most, kept;
  sizes(md_eigen_unknowns(dirac->geometry, dirac->shape.components), request->modes,
        dirac->shape.n_rhs, &most, &kept);
  s->old = calloc(modes, sizeof *s->old);
  s->result->values = calloc(modes, sizeof *s->result->values);
  s->result->residuals = calloc(modes, sizeof *s->result->residuals);
  s->result->vectors = calloc(modes, sizeof *s->result->vectors);
  const bool there = s->old && s->result->values && s->result->residuals && s->result->vectors;
  MD_TRY(md_agree(s->context, there ? MD_OK
                                    : md_fail_memory(s->context, modes * 2 * sizeof(double),
                                                     "the values of modes")));
  MD_TRY(md_agree(s->context, md_normal_create(s->context, dirac, request->mass, &s->a)));
  return md_eigen_basis_create(s->context, &s->a, most, kept, request->seed, &s->basis);
}

static md_status check(md_context *context, const md_dirac *dirac,
                       const md_eigen_request *request) {
  const long long unknowns = (long long)md_eigen_unknowns(dirac->geometry, dirac->shape.components);
  const bool spins = md_action_has_spin(dirac->request.action);
  if (request->modes > MD_EIGEN_MOST)
    return md_fail(context, MD_INPUT, "one search finds %d modes at most, got %d; ask for fewer",
                   MD_EIGEN_MOST, request->modes);
  if (request->modes < 1 || request->modes > unknowns)
    return md_fail(context, MD_INPUT,
                   "modes must lie in 1 to %lld, three for each even site of the lattice%s, got %d",
                   unknowns, spins ? ", spin and slice" : "", request->modes);
  if (request->mass != 0.0 && !spins)
    return md_fail(context, MD_INPUT, "modes of staggered quarks have no mass, got %g",
                   request->mass);
  if (dirac->shape.precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT, "modes are found in double, got an operator in %s",
                   md_precision_name(dirac->shape.precision));
  return MD_OK;
}

/* Of Wilson quarks, what has converged by gamma_5 S. */
static md_status take_signs(search *s, const md_dirac *dirac) {
  md_eigen_result *r = s->result;
  if (dirac->request.action != MD_ACTION_WILSON || r->below == 0) return MD_OK;
  const size_t bytes = (size_t)r->below * sizeof *r->signs;
  r->signs = calloc(1, bytes);
  MD_TRY(md_agree(s->context,
                  r->signs ? MD_OK : md_fail_memory(s->context, bytes, "the signs of modes")));
  const md_status status = md_eigen_basis_signs(&s->basis, r->below, r->signs);
  if (status == MD_OK) return MD_OK;
  free(r->signs); /* which a report would show */
  r->signs = NULL;
  return status;
}

md_status md_eigen_lowest(md_context *context, md_dirac *dirac, const md_eigen_request *request,
                          md_eigen_result *result) {
  const double start_s = md_time_s();
  search s = {.context = context, .request = request, .result = result, .below_window = -1};
  *result = (md_eigen_result){0};
  MD_TRY(check(context, dirac, request));
  md_status status = create(&s, dirac);
  if (status == MD_OK) status = look(&s);
  if (status == MD_OK) status = take_signs(&s, dirac);
  result->iterations = s.basis.applied;
  result->filter_degree = s.basis.filter.degree;
  result->window_low = s.basis.filter.low;
  result->window_high = s.basis.filter.high;
  for (int i = 0; status == MD_OK && i < result->modes; i++) {
    result->vectors[i] = s.basis.v[i];
    s.basis.v[i] = (md_field){0};
  }
  md_eigen_basis_destroy(&s.basis);
  md_operator_destroy(&s.a);
  free(s.old);
  result->seconds = md_time_s() - start_s;
  return status;
}

void md_eigen_result_free(md_eigen_result *result) {
  for (int i = 0; result->vectors && i < result->modes; i++) md_field_destroy(&result->vectors[i]);
  MD_FREE(result->values, result->residuals, result->vectors, result->signs);
  *result = (md_eigen_result){0};
}
