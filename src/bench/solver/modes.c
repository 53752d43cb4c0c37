#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "base/timer.h"
#include "bench/solver/case.h"
#include "dirac/eigen/eigen.h"
#include "dirac/solvers/reliable_update.h"

#include <math.h>
#include <stdlib.h>

/* What a spectrum says of CG before a solve: its recursion on a diagonal matrix whose numbers are
 * those of A = m^2 - Deo Doe as far as they are known. The bound by the condition number does not
 * do: CG finds the lowest modes by itself as it goes on, and modes that are taken out spare it
 * less than that bound says. */
typedef struct cg_estimate {
  int iterations; /* MOST where the tolerance is not reached before */
  double first;   /* the residual that they begin with, as norm(b - M x) / norm(b) */
} cg_estimate;

enum {
  CELLS = 3000, /* of the spectrum above the known modes: finer than CG can tell apart */
  MOST = 100000 /* iterations of an estimate */
};

/* Eigenvalues of -Deo Doe below the square of `mu`, by a straight line between neighbouring knots:
 * in mu, as the density of the Dirac operator's eigenvalues is even near its lower end. */
typedef struct counts {
  int knots;
  double mu[MD_EIGEN_NODES + 2], below[MD_EIGEN_NODES + 2];
} counts;

static void add_knot(counts *c, double mu, double below) {
  if (c->knots > 0 && (mu <= c->mu[c->knots - 1] || below <= c->below[c->knots - 1])) return;
  c->mu[c->knots] = mu;
  c->below[c->knots++] = below;
}

static double unknowns_of(const md_solver_bench *bench) {
  return (double)md_eigen_unknowns(bench->links->geometry, MD_FERMION_REALS);
}

/* From the last mode on. A Ritz value stands for its share of the unknowns, half of it below. */
static counts counts_of(const md_solver_bench *bench) {
  const md_eigen_density *d = &bench->density;
  const double unknowns = unknowns_of(bench);
  counts c = {.knots = 0};
  double sum = 0.0;
  add_knot(&c, sqrt(md_modes_last(&bench->modes)), bench->modes.count);
  for (int i = 0; i < d->nodes; i++) {
    const double below = (sum + 0.5 * d->share[i]) * unknowns;
    sum += d->share[i];
    if (d->value[i] > 0.0) add_knot(&c, sqrt(d->value[i]), below);
  }
  add_knot(&c, 1.001 * c.mu[c.knots - 1], unknowns);
  return c;
}

static double count_below(const counts *c, double mu) {
  int k = 1;
  while (k + 1 < c->knots && c->mu[k] < mu) k++;
  const double part = (mu - c->mu[k - 1]) / (c->mu[k] - c->mu[k - 1]);
  return c->below[k - 1] + part * (c->below[k] - c->below[k - 1]);
}

/* Numbers of the diagonal matrix, and how many of A's each stands for; returns how many there are:
 * the known modes, then one for each cell or, where they are rarer, for each eigenvalue. */
static int fill(const md_solver_bench *bench, double *value, double *weight) {
  const counts c = counts_of(bench);
  const md_modes *low = &bench->modes;
  int n = 0;
  for (; n < low->count; n++) value[n] = fmax(low->values[n], 0.0), weight[n] = 1.0;
  if (c.knots < 2) return n;
  const double first = c.mu[0], cell = (c.mu[c.knots - 1] - first) / CELLS;
  double waiting = 0.0;
  for (int i = 0; i < CELLS; i++) {
    const double mu = first + (i + 0.5) * cell;
    waiting += count_below(&c, mu + 0.5 * cell) - count_below(&c, mu - 0.5 * cell);
    if (waiting < 1.0) continue;
    value[n] = mu * mu, weight[n++] = waiting;
    waiting = 0.0;
  }
  return n;
}

/* CG on the diagonal matrix a from the residual r; work is as long. */
static int iterate(int n, const double *a, double *r, double *p, double target2) {
  double r2 = 0.0;
  for (int i = 0; i < n; i++) p[i] = r[i], r2 += r[i] * r[i];
  for (int k = 0; k < MOST; k++) {
    double pap = 0.0, next2 = 0.0;
    if (r2 <= target2) return k;
    for (int i = 0; i < n; i++) pap += a[i] * p[i] * p[i];
    const double alpha = r2 / pap;
    for (int i = 0; i < n; i++) {
      r[i] -= alpha * a[i] * p[i];
      next2 += r[i] * r[i];
    }
    for (int i = 0; i < n; i++) p[i] = r[i] + next2 / r2 * p[i];
    r2 = next2;
  }
  return MOST;
}

/* For a random source on all sites, of which the `removed` lowest modes have been solved for, to
 * norm(b - M x) <= tolerance norm(b). The same on all ranks. Local. */
static md_status estimate_cg(const md_solver_bench *bench, int removed, double mass,
                             cg_estimate *estimate) {
  const size_t room = (size_t)bench->modes.count + CELLS, bytes = 4 * room * sizeof(double);
  double *a = malloc(bytes), first2 = 0.0;
  if (!a) return md_fail_memory(bench->context, bytes, "an estimate of iterations");
  double *weight = a + room, *r = weight + room, *p = r + room;
  const int n = fill(bench, a, weight);
  /* A random b has one unit in every eigenvector of both parities; s = m b_e - Deo b_o then has
   * m^2 + lambda, and |r| of the even sites is m times that of M. */
  const double b2 = 2.0 * unknowns_of(bench), unit2 = mass * mass * b2;
  for (int i = 0; i < n; i++) {
    a[i] += mass * mass;
    r[i] = i < removed ? 0.0 : sqrt(weight[i] * a[i]);
    first2 += r[i] * r[i];
  }
  estimate->first = sqrt(first2 / unit2);
  estimate->iterations = iterate(n, a, r, p, bench->tolerance * bench->tolerance * unit2);
  free(a);
  return MD_OK;
}

enum { MODES_SEED = 1, MOST_RESTARTS = 1000 };

/* The search's vectors in the precision in which they are kept. */
static md_status keep(md_context *context, const md_eigen_result *found, md_precision store,
                      md_modes *modes) {
  const md_field *v = found->vectors;
  const md_field_shape shape = {store, v->space, v->components, 1, true, false};
  md_status status = md_modes_create(context, v->geometry, &shape, found->modes, modes);
  for (int i = 0; i < found->modes && status == MD_OK; i++) {
    modes->values[i] = found->values[i];
    modes->residuals[i] = found->residuals[i];
    status = md_field_convert(context, &modes->vectors[i], &v[i]);
  }
  return md_agree(context, status);
}

static md_status find(md_solver_bench *bench, md_dirac *dirac, const md_solver_modes *wanted) {
  const md_eigen_request request = {.mass = wanted->mass,
                                    .modes = wanted->count,
                                    .tolerance = wanted->tolerance,
                                    .max_restarts = MOST_RESTARTS,
                                    .seed = MODES_SEED};
  md_eigen_result found;
  const double start_s = md_time_s();
  md_status status = md_eigen_lowest(bench->context, dirac, &request, &found);
  if (md_counts(bench->context)) {
    md_eigen_result_free(&found);
    return status;
  }
  if (status == MD_OK && !found.converged) {
    status = md_interrupt_check(bench->context, bench->command);
    if (status == MD_OK)
      status = md_fail(bench->context, MD_UNREACHED,
                       "%d modes must converge to %g, %d did after %d restart%s; raise --modes-tol",
                       wanted->count, wanted->tolerance, found.below, found.restarts,
                       md_plural(found.restarts));
  }
  if (status == MD_OK) status = keep(bench->context, &found, wanted->store, &bench->modes);
  bench->modes_s = md_time_s() - start_s;
  bench->density = found.density;
  if (status == MD_OK)
    md_say(bench->context,
           "modes       %d in %s, eigenvalues %.4g to %.4g, found in %.3f s with %s: %d filters of "
           "degree %d\n",
           wanted->count, md_precision_name(wanted->store), found.values[0],
           found.values[found.modes - 1], bench->modes_s, dirac->backend->name, found.iterations,
           found.filter_degree);
  md_eigen_result_free(&found);
  return status;
}

/* What a search for modes begins with. */
typedef struct search {
  md_solver_bench *bench;
  const md_solver_modes *wanted;
} search;

static md_status look(md_context *context, void *user) {
  const search *s = user;
  md_backend_request request = {.precision = MD_DOUBLE,
                                .reconstruct = MD_RECONSTRUCT_18,
                                .packing = s->wanted->packing,
                                .n_rhs = s->wanted->block,
                                .antiperiodic = true};
  md_dirac dirac = {0};
  md_physics_apply(s->wanted->physics, &request);
  md_status status = md_dirac_create_over(context, s->bench->links->field, s->wanted->backend,
                                          &request, s->bench->halo, &dirac);
  if (status == MD_OK) status = find(s->bench, &dirac, s->wanted);
  md_dirac_destroy(&dirac);
  return status;
}

md_status md_solver_bench_modes(md_solver_bench *bench, const md_solver_modes *wanted) {
  search s = {bench, wanted};
  md_memory_need need;
  MD_TRY(md_memory_foresee(bench->context, look, &s, &need));
  MD_TRY(md_memory_require(bench->context, &need, "the modes of bench solver"));
  return look(bench->context, &s);
}

/* Seconds per source of n, the set-up included, `together` at once. */
static double amortised(double setup_s, double solve_s, int together, int n) {
  const int solves = (n + together - 1) / together;
  return (setup_s + solves * solve_s) / n;
}

/* What a deflated solve will take, from what CG alone took and the spectrum. */
typedef struct forecast {
  double iterations; /* over those of CG alone */
  int projections;
  double seconds; /* of a solve */
} forecast;

/* By what a residual falls until what rounding left of the modes comes to light: by 100 at least in
 * double (dirac/solvers/solver.c); mixed CG at its updates, by the rules of
 * dirac/solvers/reliable_update.h. */
static double fall_of(const md_solver_bench *bench, const md_solver_case *c, bool on_host,
                      double norm) {
  const md_modes *modes = &bench->modes;
  const double least = c->mass * c->mass, spread = norm * norm;
  const double kappa = md_low_modes_kappa(modes, least, least + spread);
  if (c->request.precision == MD_DOUBLE)
    return fmin(0.01, md_low_modes_noise(modes, kappa, spread, 0.0));
  const double roundoff = md_precision_roundoff(c->request.precision);
  const double noise = md_update_noise(kappa, roundoff);
  const bool deflates =
      md_update_deflates(on_host, noise, kappa, bench->tolerance, unknowns_of(bench));
  const double factor = md_update_factor(deflates, noise);
  const double low = MD_UPDATE_LOW_NOISE * md_low_modes_noise(modes, kappa, spread, roundoff);
  return fmin(factor, low / (MD_UPDATE_LOW * factor));
}

/* Of staggered quarks: iterations by CG on the spectrum with the lowest modes and without them; a
 * projection at the beginning and after each fall. */
static md_status foresee(const md_solver_bench *bench, const md_solver_case *c,
                         const md_solver_figures *f, double cg_s, forecast *will) {
  cg_estimate plain, deflated;
  MD_TRY(estimate_cg(bench, 0, c->mass, &plain));
  MD_TRY(estimate_cg(bench, bench->modes.count, c->mass, &deflated));
  const double fall = fall_of(bench, c, f->backend->space == MD_HOST, f->norm);
  will->iterations = (double)deflated.iterations / plain.iterations;
  will->projections = 1 + (int)fmax(log(bench->tolerance / deflated.first) / log(fall), 0.0);
  will->seconds = cg_s * will->iterations + will->projections * f->projection_s;
  return MD_OK;
}

/* Sources from which a search and solves that take `with_s` cost less than those of `without_s`;
 * NaN: never. */
static double break_even(double setup_s, int together, double without_s, double with_s) {
  const double gained_s = (without_s - with_s) / together;
  return gained_s > 0.0 ? setup_s / gained_s : NAN;
}

static md_status compare(md_solver_bench *bench, const md_solver_case *c,
                         const md_solver_figures *f, double cg_s) {
  const int together = c->request.n_rhs;
  forecast will = {NAN, 0, NAN};
  if (!md_action_has_spin(c->request.action)) MD_TRY(foresee(bench, c, f, cg_s, &will));
  const double predicted = break_even(bench->modes_s, together, cg_s, will.seconds);
  const double measured = break_even(bench->modes_s, together, cg_s, f->seconds.median);
  cJSON *row = md_solver_bench_request(c, f->backend->name);
  cJSON_AddItemToArray(bench->break_even, row);
  md_report_add(row,
                "modes=%d predicted_iteration_ratio=%g predicted_projections=%d "
                "predicted_seconds=%g projection_seconds=%g predicted=%g measured=%g",
                bench->modes.count, will.iterations, will.projections, will.seconds,
                f->projection_s, predicted, measured);
  md_say(bench->context,
         "%-6s %3s %-10s break-even at %.1f sources by the spectrum, %.1f measured (nan: never, or "
         "not foreseen)\n",
         "", "", md_solver_kind_name(c->kind), predicted, measured);
  return MD_OK;
}

md_status md_solver_bench_sources(md_solver_bench *bench, const md_solver_case *c,
                                  const md_solver_figures *f) {
  const bool deflated = c->kind == MD_BENCH_DEFLATED;
  const int together = c->request.n_rhs;
  const double cg_s = bench->cg_s[c->request.precision], setup_s = deflated ? bench->modes_s : 0.0;
  if (!bench->sources || f->residual > bench->tolerance) return MD_OK;
  if (c->kind == MD_BENCH_CG) bench->cg_s[c->request.precision] = f->seconds.median;
  if (c->kind != MD_BENCH_CG && !deflated) return MD_OK;
  for (int i = 0; i < bench->n_sources.count; i++) {
    const int n = (int)bench->n_sources.value[i];
    const double per_s = amortised(setup_s, f->seconds.median, together, n);
    cJSON *row = md_solver_bench_request(c, f->backend->name);
    cJSON_AddItemToArray(bench->sources, row);
    md_report_add(row, "modes=%d n_sources=%d seconds_per_rhs=%g setup_seconds=%g speedup=%g",
                  deflated ? bench->modes.count : 0, n, per_s, setup_s,
                  deflated && cg_s > 0.0 ? amortised(0.0, cg_s, together, n) / per_s : NAN);
    md_say(bench->context, "%-6s %3s %-10s %4d sources: %.4f s each, set-up %.3f s included\n", "",
           "", md_solver_kind_name(c->kind), n, per_s, setup_s);
  }
  return deflated && cg_s > 0.0 ? compare(bench, c, f, cg_s) : MD_OK;
}
