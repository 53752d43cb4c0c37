#include "bench/solver/case.h"
#include "base/energy.h"
#include "base/interrupt.h"
#include "base/timer.h"
#include "bench/bandwidth/bandwidth.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE_SEED = 7, WARM_ITERATIONS = 3, MOST_HOPS = 10 };
#define WINDOW_S 0.05 /* of the timed hops */

#define MD_ROW(id, name) #name,
static const char *const kind_names[] = {MD_BENCH_WAYS(MD_ROW)};
#undef MD_ROW

const char *md_solver_kind_name(md_solver_kind kind) {
  return kind_names[kind];
}

/* What one solve works on, and what it says. */
typedef struct solve {
  md_solver_bench *bench;
  const md_solver_case *c;
  md_dirac narrow, exact; /* narrow: the request's operator, where it is not the exact one */
  bool has_narrow;
  md_field b[MD_PARITIES], x[MD_PARITIES], shifted[MD_MAX_SHIFTS]; /* host, double; the last even */
  /* of the last solve */
  int iterations, refine_iterations, double_iterations;
  double residual, seconds;
  double condensate;      /* of the first right-hand side */
  double first_s, last_s; /* when the first and the last iteration were reported */
  int reported;           /* iterations between them */
  md_solver_choice choice;
} solve;

static bool takes_shifts(const solve *s) {
  return s->c->kind >= MD_BENCH_MULTISHIFT;
}

static md_dirac *iterating(solve *s) {
  return s->has_narrow ? &s->narrow : &s->exact;
}

static void note_time(solve *s) {
  const double now_s = md_time_s();
  if (s->first_s == 0.0)
    s->first_s = now_s;
  else
    s->reported++;
  s->last_s = now_s;
}
static md_status observe(void *user, const md_cg_state *state) {
  (void)state;
  note_time(user);
  return MD_OK;
}
static md_status observe_shifts(void *user, int iteration, double residual) {
  (void)iteration, (void)residual;
  note_time(user);
  return MD_OK;
}

static md_status note_condensate(solve *s) {
  double estimates[MD_MAX_RHS];
  MD_TRY(md_chiral_condensate(s->bench->context, s->b, s->x, estimates));
  s->condensate = estimates[0];
  return MD_OK;
}

/* CG, mixed CG or block CG of M x = b with this mass; adds to what the solve says. */
static md_status run_cg(solve *s, double mass, int max_iterations) {
  const bool mixed = s->c->request.precision != MD_DOUBLE;
  md_solver_request request = {.mass = mass,
                               .tolerance = s->bench->tolerance,
                               .max_iterations = max_iterations,
                               .observe = observe,
                               .user = s,
                               .inner = mixed ? &s->narrow : NULL,
                               .modes = s->c->kind == MD_BENCH_DEFLATED ? &s->bench->modes : NULL};
  md_solver_options how = s->bench->how;
  how.by = s->c->kind < MD_BENCH_DEFLATED ? md_solvers()[s->c->kind] : &md_solver_cg;
  if (!(how.by->takes & MD_TAKES_PRECONDITION)) how.before = MD_PRECONDITION_NONE;
  if (how.before == MD_PRECONDITION_MODES) request.modes = &s->bench->modes;
  md_solver_options_apply(&how, &request);
  md_solver_result result;
  md_dirac *outer = mixed ? &s->exact : iterating(s);
  md_status status =
      md_solve_cg(s->bench->context, outer, &s->exact, &request, s->x, s->b, &result);
  if (status == MD_OK && result.interrupted)
    status = md_interrupt_check(s->bench->context, "bench solver");
  if (status == MD_OK) {
    s->iterations += result.iterations;
    s->residual = fmax(s->residual, result.relative_residual);
    s->seconds += result.seconds;
    s->choice = result.choice;
  }
  md_solver_result_free(&result);
  if (status == MD_OK) status = note_condensate(s);
  return status;
}

static md_status run_multishift(solve *s, int max_iterations) {
  const md_multishift_request request = {.mass = s->c->mass,
                                         .shifts = s->bench->shifts,
                                         .n_shifts = s->bench->n_shifts,
                                         .tolerance = s->bench->tolerance,
                                         .max_iterations = max_iterations,
                                         .refine = s->c->kind == MD_BENCH_REFINED,
                                         .observe = observe_shifts,
                                         .user = s};
  md_multishift_result result;
  md_status status = md_solve_multishift(s->bench->context, iterating(s), &s->exact, &request,
                                         s->shifted, &s->b[MD_EVEN], &result);
  if (status == MD_OK && result.interrupted)
    status = md_interrupt_check(s->bench->context, "bench solver");
  if (status == MD_OK) {
    s->iterations = result.iterations;
    s->double_iterations = result.double_iterations;
    s->seconds = result.seconds;
    for (int k = 0; k < result.n_shifts; k++) {
      s->residual = fmax(s->residual, result.shifts[k].relative_residual);
      s->refine_iterations += result.shifts[k].refine_iterations;
    }
  }
  md_multishift_result_free(&result);
  return status;
}

/* With odd sites of zeros, M x = b of the mass sqrt(m^2 + shift) is the shifted system. */
static md_status run_once(solve *s, int max_iterations) {
  const double m = s->c->mass;
  md_status status = MD_OK;
  s->iterations = s->refine_iterations = s->double_iterations = s->reported = 0;
  s->choice = (md_solver_choice){0};
  s->condensate = NAN;
  s->residual = s->seconds = s->first_s = 0.0;
  if (s->c->kind == MD_BENCH_MULTISHIFT || s->c->kind == MD_BENCH_REFINED)
    status = run_multishift(s, max_iterations);
  else if (s->c->kind == MD_BENCH_SEPARATE)
    for (int k = 0; k < s->bench->n_shifts && status == MD_OK; k++)
      status = run_cg(s, sqrt(m * m + s->bench->shifts[k]), max_iterations);
  else
    status = run_cg(s, m, max_iterations);
  return status;
}

/* MD_INPUT with the reason for what no solver does. Local. */
static md_status check(md_context *context, const md_solver_bench *bench, const md_solver_case *c) {
  if (c->kind == MD_BENCH_DEFLATED && bench->modes.count == 0)
    return md_fail(context, MD_INPUT, "deflated solves need --modes N");
  if (c->kind == MD_BENCH_MULTISHIFT && c->request.precision != MD_DOUBLE)
    return md_fail(context, MD_INPUT,
                   "multishift in %s misses a double-precision answer; take 'refined'",
                   md_precision_name(c->request.precision));
  return MD_OK;
}

static md_status create(solve *s) {
  md_context *context = s->bench->context;
  const md_solver_case *c = s->c;
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, c->request.n_rhs, true};
  MD_TRY(check(context, s->bench, c));
  s->has_narrow = c->request.precision != MD_DOUBLE || c->request.reconstruct != MD_RECONSTRUCT_18;
  md_dirac *asked = s->has_narrow ? &s->narrow : &s->exact; /* no other one in its place */
  MD_TRY(md_dirac_create_over(context, s->bench->links->field, c->backend, &c->request,
                              s->bench->halo, asked));
  if (s->has_narrow)
    MD_TRY(md_dirac_create_exact(context, s->bench->links->field, c->backend, &c->request,
                                 s->bench->halo, &s->exact));
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = md_field_create(context, s->bench->links->geometry, &shape, p, &s->b[p]);
    if (status == MD_OK)
      status = md_field_create(context, s->bench->links->geometry, &shape, p, &s->x[p]);
  }
  const int n = takes_shifts(s) ? s->bench->n_shifts : 0;
  for (int k = 0; k < n && status == MD_OK; k++)
    status = md_field_create(context, s->bench->links->geometry, &shape, MD_EVEN, &s->shifted[k]);
  MD_TRY(md_agree(context, status));
  md_source_random(s->b, SOURCE_SEED);
  if (takes_shifts(s)) md_linear_zero(&s->b[MD_ODD]);
  return MD_OK;
}

static void destroy(solve *s) {
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field_destroy(&s->b[p]);
    md_field_destroy(&s->x[p]);
  }
  for (int k = 0; k < s->bench->n_shifts; k++) md_field_destroy(&s->shifted[k]);
  if (s->has_narrow) md_dirac_destroy(&s->narrow);
  md_dirac_destroy(&s->exact);
}

typedef struct hop_pass {
  md_dirac *dirac;
  md_field fields[MD_PARITIES];
} hop_pass;

static md_status hop_both(md_context *context, void *user) {
  hop_pass *p = user;
  MD_TRY(md_dirac_hop(context, p->dirac, &p->fields[MD_EVEN], &p->fields[MD_ODD], NULL));
  return md_dirac_hop(context, p->dirac, &p->fields[MD_ODD], &p->fields[MD_EVEN], NULL);
}

/* Seconds of a plain Deo or Doe of this operator, in turn. Collective. */
static md_status time_hop(solve *s, md_dirac *dirac, double *hop_s) {
  md_context *context = s->bench->context;
  hop_pass pass = {.dirac = dirac};
  int passes;
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = md_dirac_field(context, dirac, p, &pass.fields[p]);
    if (status == MD_OK) status = md_field_convert(context, &pass.fields[p], &s->b[p]);
  }
  status = md_agree(context, status);
  if (status == MD_OK)
    status =
        md_passes_for(context, dirac->shape.space, hop_both, &pass, WINDOW_S, MOST_HOPS, &passes);
  if (status == MD_OK)
    status = md_time_work(context, dirac->shape.space, hop_both, &pass, passes, hop_s);
  *hop_s *= 0.5;
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&pass.fields[p]);
  return status;
}

typedef struct projection_pass {
  const md_modes *modes;
  double mass;
  md_field r, x;
} projection_pass;

static md_status project(md_context *context, void *user) {
  projection_pass *p = user;
  double part2[MD_MAX_RHS];
  bool added;
  return md_low_modes_project(context, p->modes, p->mass * p->mass, &p->r, NULL, &p->x, part2,
                              &added);
}

/* Seconds of a projection on the modes. Collective. */
static md_status time_projection(solve *s, double *projection_s) {
  md_context *context = s->bench->context;
  projection_pass pass = {.modes = &s->bench->modes, .mass = s->c->mass};
  int passes;
  md_status status = md_dirac_field(context, &s->exact, MD_EVEN, &pass.r);
  if (status == MD_OK) status = md_dirac_field(context, &s->exact, MD_EVEN, &pass.x);
  if (status == MD_OK) status = md_field_convert(context, &pass.r, &s->b[MD_EVEN]);
  status = md_agree(context, status);
  if (status == MD_OK)
    status =
        md_passes_for(context, s->exact.shape.space, project, &pass, WINDOW_S, MOST_HOPS, &passes);
  if (status == MD_OK)
    status = md_time_work(context, s->exact.shape.space, project, &pass, passes, projection_s);
  md_field_destroy(&pass.r);
  md_field_destroy(&pass.x);
  return status;
}

/* Of processors and GPUs, as far as they tell; NaN: neither does. */
static void note_energy(md_context *context, const md_energy *start, double *joules) {
  md_energy end;
  double cpu, gpu;
  md_energy_read(context, &end);
  md_energy_between(context, start, &end, &cpu, &gpu);
  *joules = isnan(cpu) ? gpu : isnan(gpu) ? cpu : cpu + gpu;
}

static md_status measure(solve *s, md_solver_figures *f) {
  md_dirac *dirac[] = {&s->exact, s->has_narrow ? &s->narrow : NULL};
  const int n = s->bench->repetitions;
  double *samples = calloc((size_t)n, sizeof *samples), in_hops_s = 0.0;
  double joules = NAN;
  int64_t before[2] = {0};
  md_energy start;
  md_status status =
      md_agree(s->bench->context, samples ? MD_OK : md_fail_memory(s->bench->context, 8, "times"));
  if (status == MD_OK) status = run_once(s, WARM_ITERATIONS);
  if (status == MD_OK) md_energy_read(s->bench->context, &start);
  for (int k = 0; k < n && status == MD_OK; k++) {
    for (int d = 0; d < 2; d++) before[d] = dirac[d] ? dirac[d]->hops : 0;
    status = run_once(s, s->bench->max_iterations);
    samples[k] = s->seconds;
  }
  if (status == MD_OK) note_energy(s->bench->context, &start, &joules);
  for (int d = 0; d < 2 && status == MD_OK; d++) {
    double hop_s = 0.0;
    const double hops = dirac[d] ? (double)(dirac[d]->hops - before[d]) : 0.0;
    if (hops > 0.0) status = time_hop(s, dirac[d], &hop_s);
    in_hops_s += hops * hop_s;
  }
  double projection_s = 0.0;
  if (status == MD_OK && s->c->kind == MD_BENCH_DEFLATED)
    status = time_projection(s, &projection_s);
  if (status == MD_OK) {
    const double share = in_hops_s / s->seconds, median_s = md_median(samples, n);
    *f = (md_solver_figures){.backend = iterating(s)->backend,
                             .outer = s->exact.backend,
                             .transport = md_halo_transport(iterating(s)->halo),
                             .iterations = s->iterations,
                             .refine_iterations = s->refine_iterations,
                             .double_iterations = s->double_iterations,
                             .residual = s->residual,
                             .condensate = s->c->kind < MD_BENCH_DEFLATED ? s->condensate : NAN,
                             .joules = joules / n,
                             .seconds = median_s,
                             .min_s = samples[0],
                             .max_s = samples[n - 1],
                             .iteration_s =
                                 s->reported > 0 ? (s->last_s - s->first_s) / s->reported : NAN,
                             .operator_share = share,
                             .norm = s->exact.norm,
                             .projection_s = projection_s,
                             .choice = s->choice};
  }
  free(samples);
  return status;
}

md_status md_solver_bench_case(md_solver_bench *bench, const md_solver_case *c) {
  solve s = {.bench = bench, .c = c};
  md_solver_figures f;
  md_status status = create(&s);
  if (status == MD_OK) status = measure(&s, &f);
  if (status == MD_OK) status = md_solver_bench_add(bench, c, &f);
  destroy(&s);
  if (status == MD_OK || md_interrupt_name(bench->context)) return status;
  if (status == MD_UNREACHED) bench->missed++; /* a breakdown is a finding, with its own line */
  md_solver_bench_skip(bench, c);
  return MD_OK;
}
