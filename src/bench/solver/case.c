#include "bench/solver/case.h"
#include "base/energy.h"
#include "base/interrupt.h"
#include "base/nvml.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/timer.h"
#include "bench/bench.h"
#include "bench/dirac/case.h"
#include "dirac/solvers/reliable_update.h"
#include "lattice/fields/columns.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"

#include <math.h>
#include <stdlib.h>

enum { SOURCE_SEED = 7, MOST_HOPS = 10 };
#define WINDOW_S 0.05 /* of the timed hops */
#define ENERGY_S 30.0 /* between readings of energy: counters begin anew after minutes */

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
  md_equation of;
  md_field shifted[MD_MAX_SHIFTS]; /* host, double, even */
  /* of the last solve */
  md_solver_figures f;
  double seconds;
  double last_s, loop_s;   /* when the last iteration was reported; from each one to the next */
  int iteration, reported; /* its number; how many such spans */
  int of_parts;            /* iterations of all parts together */
  char inner_reason[MD_INNER_REASON_BYTES]; /* of MD_INNER_AUTO, else "" */
} solve;

static bool takes_shifts(const solve *s) {
  return s->c->kind >= MD_BENCH_MULTISHIFT;
}

/* Of M x = b. */
static const md_solver *solver_of(const md_solver_case *c) {
  return c->kind < MD_BENCH_DEFLATED ? md_solvers()[c->kind] : &md_solver_cg;
}

static md_dirac *iterating(solve *s) {
  return s->of.inner.backend ? &s->of.inner : &s->of.dirac;
}

/* What lies between two solves, or parts of one, whose iterations begin anew, is none of them. */
static void note_time(solve *s, int iteration) {
  const double now_s = md_time_s();
  if (iteration > s->iteration && s->iteration > 0) {
    s->loop_s += now_s - s->last_s;
    s->reported++;
  }
  s->iteration = iteration;
  s->last_s = now_s;
}
static md_status observe(void *user, const md_cg_state *state) {
  note_time(user, state->iteration);
  return MD_OK;
}
static md_status observe_shifts(void *user, int iteration, double residual) {
  (void)residual;
  note_time(user, iteration);
  return MD_OK;
}

static int rhs_block(solve *s) {
  return md_solver_at_once(iterating(s), s->c->request.n_rhs);
}

/* Iterations of all parts together, each as many as its slowest right-hand side took. */
static int of_parts(const md_solver_result *result, int block) {
  int all = 0;
  for (int first = 0; first < result->n_rhs; first += block) {
    int most = 0;
    for (int k = first; k < first + block && k < result->n_rhs; k++)
      if (result->rhs_iterations[k] > most) most = result->rhs_iterations[k];
    all += most;
  }
  return all;
}

/* CG, mixed CG or block CG of M x = b with this mass; adds to what the solve says. */
static md_status run_cg(solve *s, double mass, int max_iterations) {
  md_solver_request request = {.mass = mass,
                               .tolerance = s->bench->tolerance,
                               .max_iterations = max_iterations,
                               .observe = observe,
                               .user = s,
                               .inner = s->of.inner.backend ? &s->of.inner : NULL,
                               .modes = s->c->kind == MD_BENCH_DEFLATED ? &s->bench->modes : NULL};
  md_solver_options how = s->bench->how;
  how.by = solver_of(s->c);
  if (!(how.by->takes & MD_TAKES_PRECONDITION)) how.before = MD_PRECONDITION_NONE;
  if (how.before == MD_PRECONDITION_MODES) request.modes = &s->bench->modes;
  md_solver_options_apply(&how, &request);
  md_solver_result result;
  const md_memory_need mark = md_memory_mark(s->bench->context);
  md_status status = md_solve_cg(s->bench->context, &s->of.dirac, md_equation_exact(&s->of),
                                 &request, s->of.x, s->of.b, &result);
  if (status == MD_OK && result.interrupted)
    status = md_interrupt_check(s->bench->context, s->bench->command);
  md_memory_return_to(s->bench->context, mark);
  if (status == MD_OK && !md_counts(s->bench->context)) {
    s->f.iterations += result.iterations;
    s->f.ran_out = s->f.ran_out || (!result.converged && result.iterations >= max_iterations);
    s->of_parts += of_parts(&result, rhs_block(s));
    s->f.residual = fmax(s->f.residual, result.relative_residual);
    s->seconds += result.seconds;
    s->f.flops += 1e9 * result.gflops * result.seconds;
    s->f.choice = result.choice;
  }
  md_solver_result_free(&result);
  return status;
}

static md_status run_multishift(solve *s, int max_iterations) {
  const md_multishift_request request = {.mass = s->c->mass,
                                         .shifts = s->bench->shifts.value,
                                         .n_shifts = s->bench->shifts.count,
                                         .tolerance = s->bench->tolerance,
                                         .max_iterations = max_iterations,
                                         .refine = s->c->kind == MD_BENCH_REFINED,
                                         .observe = observe_shifts,
                                         .user = s};
  md_multishift_result result;
  md_status status = md_solve_multishift(s->bench->context, iterating(s), md_equation_exact(&s->of),
                                         &request, s->shifted, &s->of.b[MD_EVEN], &result);
  if (status == MD_OK && result.interrupted)
    status = md_interrupt_check(s->bench->context, s->bench->command);
  if (status == MD_OK && !md_counts(s->bench->context)) {
    s->f.iterations = s->of_parts = result.iterations;
    s->f.double_iterations = result.double_iterations;
    s->seconds = result.seconds;
    s->f.flops = 1e9 * result.gflops * result.seconds;
    for (int k = 0; k < result.n_shifts; k++) {
      const md_shift_result *shift = &result.shifts[k];
      s->f.residual = fmax(s->f.residual, shift->relative_residual);
      s->f.refine_iterations += shift->refine_iterations;
      s->f.ran_out =
          s->f.ran_out || (!shift->converged && (shift->iterations >= max_iterations ||
                                                 shift->refine_iterations >= max_iterations));
    }
  }
  md_multishift_result_free(&result);
  return status;
}

/* With odd sites of zeros, M x = b of the mass sqrt(m^2 + shift) is the shifted system. */
static md_status run_once(solve *s, int max_iterations) {
  const double m = s->c->mass;
  md_status status = MD_OK;
  md_progress progress = md_progress_of_run(s->bench->context, s->bench->command);
  md_progress_update(&progress, -1.0, "mass %g, %s, %s, inner %s, %d right-hand side%s", m,
                     md_solver_kind_name(s->c->kind), s->c->backend,
                     md_precision_name(s->c->request.precision), s->c->request.n_rhs,
                     md_plural(s->c->request.n_rhs));
  s->f = (md_solver_figures){.condensate = NAN};
  s->seconds = s->loop_s = 0.0;
  s->iteration = s->reported = s->of_parts = 0;
  if (s->c->kind == MD_BENCH_MULTISHIFT || s->c->kind == MD_BENCH_REFINED)
    status = run_multishift(s, max_iterations);
  else if (s->c->kind == MD_BENCH_SEPARATE)
    for (int k = 0; k < s->bench->shifts.count && status == MD_OK; k++)
      status = run_cg(s, sqrt(m * m + s->bench->shifts.value[k]), max_iterations);
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
  if (md_action_has_spin(c->request.action) && c->kind > MD_BENCH_DEFLATED &&
      (c->kind == MD_BENCH_SEPARATE || c->request.action != MD_ACTION_WILSON))
    return md_fail(context, MD_INPUT, "%s does not serve %s, whose masses are no shifts",
                   md_solver_kind_name(c->kind), md_action_name(c->request.action));
  if (c->kind == MD_BENCH_BICGSTAB && c->request.action != MD_ACTION_WILSON)
    return md_fail(context, MD_INPUT, "bicgstab is for action wilson, got %s",
                   md_action_name(c->request.action));
  return MD_OK;
}

static md_status create(solve *s) {
  md_context *context = s->bench->context;
  const md_solver_case *c = s->c;
  const md_field_shape shape = {MD_DOUBLE,        MD_HOST, md_action_reals(c->request.action),
                                c->request.n_rhs, true,    false};
  const bool parts = c->kind != MD_BENCH_MULTISHIFT && c->kind != MD_BENCH_REFINED &&
                     md_solver_takes_parts(solver_of(c), c->request.action);
  const md_run_options how = {.backend = c->backend,
                              .halo = *s->bench->halo,
                              .mixed = c->request.precision != MD_DOUBLE,
                              .parts = parts};
  MD_TRY(check(context, s->bench, c));
  MD_TRY(md_equation_create(context, &how, &c->request, s->bench->links->field, &s->of));
  md_status status = MD_OK;
  const int n = takes_shifts(s) ? s->bench->shifts.count : 0;
  for (int k = 0; k < n && status == MD_OK; k++)
    status = md_field_create(context, s->bench->links->geometry, &shape, MD_EVEN, &s->shifted[k]);
  MD_TRY(md_agree(context, status));
  if (md_counts(context)) return MD_OK;
  md_source_random(s->of.b, SOURCE_SEED);
  if (takes_shifts(s)) md_linear_zero(&s->of.b[MD_ODD]);
  return MD_OK;
}

static void destroy(solve *s) {
  for (int k = 0; k < s->bench->shifts.count; k++) md_field_destroy(&s->shifted[k]);
  md_equation_destroy(&s->of);
}

/* Seconds of one piece of work. Collective. */
static md_status time_one(md_context *context, md_space space, md_timed_work work, void *user,
                          double *seconds) {
  int passes;
  MD_TRY(md_passes_for(context, space, work, user, WINDOW_S, MOST_HOPS, &passes));
  return md_time_work(context, space, work, user, passes, seconds);
}

/* Fields to apply it to: the sources, or where those have another shape than its fields, as with a
 * fifth dimension, random ones. To be destroyed also after a failure. Local. */
static md_status fill(solve *s, const md_dirac *dirac, md_field fields[MD_PARITIES]) {
  md_context *context = s->bench->context;
  const int n_rhs = rhs_block(s), of_dirac = dirac->shape.components;
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, of_dirac, n_rhs, true, false};
  const bool apart = shape.components != s->of.b[0].components;
  md_field room[MD_PARITIES] = {0};
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = md_dirac_field(context, dirac, p, &fields[p]);
    if (apart && status == MD_OK)
      status = md_field_create(context, dirac->geometry, &shape, p, &room[p]);
  }
  if (apart && status == MD_OK) md_source_random(room, SOURCE_SEED);
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_field_take(context, &fields[p], apart ? &room[p] : &s->of.b[p], 0, n_rhs);
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&room[p]);
  return status;
}

/* Seconds of a plain Deo or Doe of this operator, in turn. Collective. */
static md_status time_hop(solve *s, md_dirac *dirac, double *hop_s) {
  md_context *context = s->bench->context;
  md_field fields[MD_PARITIES] = {0};
  md_hop_work work = {dirac, fields, MD_HOP_BOTH, 1, NULL};
  md_status status = md_agree(context, fill(s, dirac, fields));
  if (status == MD_OK) status = time_one(context, dirac->shape.space, md_hop_pass, &work, hop_s);
  *hop_s *= 0.5;
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&fields[p]);
  return status;
}

typedef struct projection_pass {
  const md_modes *modes;
  double mass;
  md_field r[MD_PARITIES], x;
} projection_pass;

static md_status project(md_context *context, void *user) {
  projection_pass *p = user;
  double part2[MD_MAX_RHS];
  bool added;
  return md_low_modes_project(context, p->modes, p->mass * p->mass, &p->r[MD_EVEN], NULL, &p->x,
                              part2, &added);
}

/* Seconds of a projection on the modes. Collective. */
static md_status time_projection(solve *s, double *projection_s) {
  md_context *context = s->bench->context;
  projection_pass pass = {.modes = &s->bench->modes, .mass = s->c->mass};
  const md_dirac *exact = md_equation_exact(&s->of);
  md_status status = fill(s, exact, pass.r);
  if (status == MD_OK) status = md_dirac_field(context, exact, MD_EVEN, &pass.x);
  status = md_agree(context, status);
  if (status == MD_OK) status = time_one(context, exact->shape.space, project, &pass, projection_s);
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&pass.r[p]);
  md_field_destroy(&pass.x);
  return status;
}

/* Adds that of processors and GPUs since `start`, which becomes now, as far as they tell; NaN:
 * neither does. */
static void add_energy(md_context *context, md_energy *start, double *joules) {
  md_energy end;
  double cpu, gpu;
  md_energy_read(context, &end);
  md_energy_between(context, start, &end, &cpu, &gpu);
  *joules += isnan(cpu) ? gpu : isnan(gpu) ? cpu : cpu + gpu;
  *start = end;
}

/* Room for one more sample; their number is the same on all ranks. Collective. */
static md_status make_room(md_context *context, double **samples, int count) {
  if (count & (count - 1)) return MD_OK; /* it doubles at powers of two */
  const size_t bytes = 2 * ((size_t)count + 1) * sizeof **samples;
  double *more = realloc(*samples, bytes);
  if (more) *samples = more;
  return md_agree(context, more ? MD_OK : md_fail_memory(context, bytes, "times"));
}

static md_status measure(solve *s) {
  md_context *context = s->bench->context;
  md_dirac *exact = md_equation_exact(&s->of), *narrow = iterating(s);
  md_dirac *dirac[] = {exact, narrow == exact ? NULL : narrow};
  int n = 0;
  double *samples = NULL,
         *loops = NULL; /* of a repetition: its seconds, what share was iterations */
  double estimates[MD_MAX_RHS] = {0.0};
  double worst = 0.0, in_hops_s = 0.0, timed_s = 0.0, joules = 0.0, told_s = 0.0;
  int64_t before[2] = {0};
  md_energy start;
  md_sensors *sensors = NULL;
  md_readings told;
  md_solver_figures *f = &s->f;
  md_status status = run_once(s, MD_WARM_ITERATIONS);
  if (status == MD_OK) md_energy_read(context, &start);
  if (status == MD_OK) sensors = md_sensors_begin(context, "", MD_NVML_LIBRARY);
  while (status == MD_OK && (n < s->bench->repetitions || timed_s < s->bench->seconds)) {
    for (int d = 0; d < 2; d++) before[d] = dirac[d] ? dirac[d]->hops : 0;
    status = make_room(context, &samples, n);
    if (status == MD_OK) status = make_room(context, &loops, n);
    if (status == MD_OK) status = run_once(s, (int)s->bench->max_iterations);
    if (status != MD_OK) break;
    worst = fmax(worst, s->f.residual);
    loops[n] = s->reported > 0 ? s->of_parts * s->loop_s / s->reported / s->seconds : 0.0;
    samples[n] = s->seconds;
    md_maximum(context, &samples[n], 1); /* equal on all ranks, as is what follows from it */
    timed_s += samples[n++];
    if (timed_s - told_s < ENERGY_S) continue;
    add_energy(context, &start, &joules);
    told_s = timed_s;
  }
  md_sensors_end(context, sensors, status == MD_OK ? &told : NULL);
  if (status == MD_OK) add_energy(context, &start, &joules);
  if (status == MD_OK && s->c->kind < MD_BENCH_DEFLATED) {
    status = md_chiral_condensate(context, s->of.b, s->of.x, estimates);
    f->condensate = estimates[0];
  }
  for (int d = 0; d < 2 && status == MD_OK; d++) {
    double hop_s = 0.0;
    const double hops = dirac[d] ? (double)(dirac[d]->hops - before[d]) : 0.0;
    if (hops > 0.0) status = time_hop(s, dirac[d], &hop_s);
    in_hops_s += hops * hop_s;
  }
  if (status == MD_OK && s->c->kind == MD_BENCH_DEFLATED)
    status = time_projection(s, &f->projection_s);
  if (status == MD_OK) {
    f->backend = narrow->backend;
    f->outer = exact->backend;
    f->transport = md_halo_transport(narrow->halo);
    f->packing_reason = narrow->packing_reason;
    f->inner_reason = s->inner_reason;
    f->residual = worst;
    f->joules = joules / n;
    f->sensors = told;
    f->seconds = md_statistics_of(samples, n);
    f->repetitions = n;
    f->timed_s = timed_s;
    f->rhs_block = rhs_block(s);
    const double loop_s = md_statistics_of(loops, n).median * f->seconds.median;
    f->iteration_s = loop_s > 0.0 ? loop_s / f->iterations : NAN;
    f->operator_share = in_hops_s / f->seconds.median;
    f->norm = exact->norm;
  }
  MD_FREE(samples, loops);
  return status;
}

#define REQUEST                                                                                    \
  "mass=%-6g rhs=%3d solver=%-10s backend=%-10s packing=%-7s inner=%-6s reconstruct|rec=%3s "      \
  "precision=%s action=%s"
#define COLUMNS                                                                                    \
  REQUEST " outer_backend=%s transport=%s ranks=%d iterations|iter=%6d "                           \
          "refine_iterations|refine=%6d double_iterations=%d converged=%hhd "                      \
          "seconds_median|seconds=%9.4f seconds_min=%g seconds_max=%g repetitions=%d "             \
          "seconds_per_rhs|s/rhs=%9.4f ms_per_iteration=%g ms_per_iteration_rhs|ms/i/rhs=%9.4f "   \
          "ms_per_iteration_loop=%g |loop=%9.4f operator_share|hops=%5.2f "                        \
          "relative_residual|residual=%8.1e speedup|speed-up=%8.2f condensate=%g joules=%g "       \
          "seconds_timed=%g gflops=%g gflops_milc|GF/s~MILC=%9.1f |=%s"
#define REQUEST_OF(c, backend)                                                                     \
  (c)->mass, (c)->request.n_rhs, md_solver_kind_name((c)->kind), (backend),                        \
      md_packing_name((c)->request.packing), inner_of(c),                                          \
      md_reconstruct_name((c)->request.reconstruct), "double", md_action_name((c)->request.action)

static const char *inner_of(const md_solver_case *c) {
  const md_precision precision = c->request.precision;
  return precision == MD_DOUBLE ? "none" : md_precision_name(precision);
}

void md_solver_bench_head(const md_solver_bench *bench) {
  md_rows_head(bench->context, COLUMNS);
}

cJSON *md_solver_bench_request(const md_solver_case *c, const char *backend) {
  cJSON *row = cJSON_CreateObject();
  md_report_add(row, REQUEST, REQUEST_OF(c, backend));
  md_kappa_report(row, c->request.action, c->mass);
  md_twist_report(row, &c->request);
  return row;
}

/* Flops of CG for a site, iteration and right-hand side as MILC counts them, vectors included, by
 * which others publish their figures; NaN for what it does not count. */
static double milc_flops(const md_solver_case *c) {
  if (c->kind >= MD_BENCH_MULTISHIFT) return NAN;
  switch (c->request.action) {
  case MD_ACTION_NAIVE:
    return 606.0;
  case MD_ACTION_ASQTAD:
  case MD_ACTION_HISQ:
    return 1187.0;
  default:
    return NAN;
  }
}

static void add_row(md_solver_bench *bench, const md_solver_case *c, const md_solver_figures *f,
                    double speedup) {
  const int n = c->request.n_rhs;
  const double iteration_ms = 1e3 * f->seconds.median / f->iterations;
  const bool converged = f->residual <= bench->tolerance;
  const double updates = (double)bench->links->geometry->volume * f->iterations * n;
  cJSON *row = md_rows_add(
      bench->context, bench->rows, COLUMNS, REQUEST_OF(c, f->backend->name), f->outer->name,
      f->transport, bench->context->ranks, f->iterations, f->refine_iterations,
      f->double_iterations, converged, f->seconds.median, f->seconds.min, f->seconds.max,
      f->repetitions, f->seconds.median / n, iteration_ms, iteration_ms / n, 1e3 * f->iteration_s,
      1e3 * f->iteration_s / n, f->operator_share, f->residual, speedup, f->condensate, f->joules,
      f->timed_s, 1e-9 * f->flops / f->seconds.median,
      1e-9 * milc_flops(c) * updates / f->seconds.median, converged ? "" : "  NOT converged");
  const bool takes =
      c->kind < MD_BENCH_DEFLATED && md_solvers()[c->kind]->takes & MD_TAKES_PRECONDITION;
  cJSON_AddStringToObject(row, "precondition", takes ? bench->how.precondition : "none");
  if (takes && bench->how.before == MD_PRECONDITION_CHEBYSHEV)
    cJSON_AddNumberToObject(row, "degree", (double)bench->how.degree);
  md_report_add(row, "packing_reason=%s rhs_block=%d", f->packing_reason, f->rhs_block);
  if (f->inner_reason[0]) cJSON_AddStringToObject(row, "inner_reason", f->inner_reason);
  md_kappa_report(row, c->request.action, c->mass);
  md_twist_report(row, &c->request);
  md_report_integers(row, "dims", bench->links->geometry->global, MD_DIMS);
  md_sensors_report(row, &f->sensors);
}

/* Of `auto`: apart from the rows, whose cells a CSV file separates by commas. */
static void add_choice(const md_solver_bench *bench, const md_solver_case *c,
                       const md_solver_figures *f) {
  const char *chosen = f->choice.block ? "block" : "cg";
  if (!f->choice.reason[0]) return;
  cJSON *choice = md_solver_bench_request(c, f->backend->name);
  cJSON_AddItemToArray(bench->choices, choice);
  md_report_add(choice, "solver_chosen=%s solver_reason=%s", chosen, f->choice.reason);
  md_say(bench->context, "       %s: %s\n", chosen, f->choice.reason);
}

static void note_miss(md_solver_bench *bench, const md_solver_case *c) {
  bench->missed++;
  bench->unrefined_missed = bench->unrefined_missed || c->kind == MD_BENCH_MULTISHIFT;
}

static md_status add(md_solver_bench *bench, const md_solver_case *c, const md_solver_figures *f) {
  const int n = c->request.n_rhs;
  const bool converged = f->residual <= bench->tolerance;
  if (!converged) note_miss(bench, c);
  bench->ran_out = bench->ran_out || f->ran_out;
  if (converged && bench->reference_s == 0.0) bench->reference_s = f->seconds.median / n;
  add_row(bench, c, f, converged ? bench->reference_s / (f->seconds.median / n) : NAN);
  add_choice(bench, c, f);
  return md_agree(bench->context, md_solver_bench_sources(bench, c, f));
}

/* failed: a solve that broke down, which counts as one that missed the tolerance. */
static void skip(md_solver_bench *bench, const md_solver_case *c, bool failed) {
  const char *reason = bench->context->message;
  cJSON *object = md_solver_bench_request(c, c->backend);
  if (failed) cJSON_AddBoolToObject(object, "failed", true);
  if (failed) note_miss(bench, c);
  if (md_rows_skip(bench->skipped, object, NULL, reason))
    md_say(bench->context, "%-6g %3d %-10s %-10s %-7s %-6s not timed: %s\n", c->mass,
           c->request.n_rhs, md_solver_kind_name(c->kind), c->backend,
           md_packing_name(c->request.packing), inner_of(c), reason);
}

/* Puts what the rule chooses in the place of MD_INNER_AUTO. */
static md_status choose_inner(solve *s, md_solver_case *c) {
  const md_solver_bench *bench = s->bench;
  const bool deflated = c->kind == MD_BENCH_DEFLATED;
  if ((int)c->request.precision != MD_INNER_AUTO) return MD_OK;
  c->request.precision = MD_DOUBLE;
  const md_auto_inner facts = {.mass = c->mass,
                               .tolerance = bench->tolerance,
                               .above = deflated ? md_modes_last(&bench->modes) : 0.0,
                               .solver = c->kind == MD_BENCH_MULTISHIFT ? NULL : solver_of(c),
                               .n_rhs = c->request.n_rhs,
                               .sites = (double)bench->links->geometry->volume};
  return md_inner_choose(bench->context, c->backend, &facts, &c->request, s->inner_reason);
}

/* A solve as a dry run. */
static md_status dry_run(md_context *context, void *user) {
  const solve *asked = user;
  solve s = {.bench = asked->bench, .c = asked->c};
  (void)context;
  md_status status = create(&s);
  if (status == MD_OK) status = run_once(&s, (int)s.bench->max_iterations);
  destroy(&s);
  return status;
}

static void lower(md_memory_need *least, md_memory_need need) {
  const bool first = least->host == 0;
  if (first || need.host < least->host) least->host = need.host;
  if (first || need.device < least->device) least->device = need.device;
}

md_status md_solver_bench_case(md_solver_bench *bench, const md_solver_case *asked) {
  md_solver_case c = *asked; /* with what was chosen */
  solve s = {.bench = bench, .c = &c};
  md_memory_need need;
  md_status status = choose_inner(&s, &c);
  if (status == MD_OK) status = md_memory_foresee(bench->context, dry_run, &s, &need);
  if (md_counts(bench->context)) {
    if (status == MD_OK) lower(&bench->least, need);
    return MD_OK;
  }
  if (status == MD_OK) status = md_memory_require(bench->context, &need, bench->command);
  if (status == MD_OK) status = create(&s);
  const bool made = status == MD_OK;
  if (made) status = measure(&s);
  if (status == MD_OK) {
    md_solver_case done = c; /* with the packing that was taken */
    done.request.packing = iterating(&s)->request.packing;
    status = add(bench, &done, &s.f);
  }
  destroy(&s);
  /* What the machine does to a solve, a damaged message say, ends the benchmark. */
  const bool broken = made && status == MD_ENVIRONMENT;
  if (status == MD_OK || broken || md_interrupt_name(bench->context)) return status;
  skip(bench, &c, status == MD_UNREACHED);
  return MD_OK;
}
