#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/progress.h"
#include "base/statistics.h"
#include "base/text.h"
#include "lattice/fields/linear.h"
#include "solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct observer {
  md_progress progress;
  double tolerance, first;
} observer;

static md_status observe(void *user, int iteration, double residual) {
  observer *o = user;
  if (iteration == 1) o->first = residual;
  md_run_progress(&o->progress, "", 0, iteration, o->first, residual, o->tolerance);
  return MD_OK;
}

static void print(const md_context *context, const md_multishift_result *result) {
  md_say(context, "solver       %d common iteration%s%s", result->iterations,
         md_plural(result->iterations), result->double_iterations > 0 ? "" : ", ");
  if (result->double_iterations > 0)
    md_say(context, ", the first %d in double, ", result->double_iterations);
  md_say(context, "%.3f s, %.2f GFLOP/s\n", result->seconds, result->gflops);
}

static double worst_of(const md_multishift_result *result) {
  double worst = 0.0;
  for (int k = 0; k < result->n_shifts; k++) md_raise(&worst, result->shifts[k].relative_residual);
  return worst;
}

/* How a solve that did not converge ends, with what to do. */
static md_status unreached(md_context *context, const md_solve_run *run,
                           const md_multishift_result *result) {
  const md_solve_options *o = &run->options;
  bool ran_out = result->iterations >= o->max_iterations;
  if (result->interrupted)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s ended the solve after %d common iteration%s, with a shift at a true "
                   "residual of %.3e",
                   md_interrupt_name(context), result->iterations, md_plural(result->iterations),
                   worst_of(result));
  for (int k = 0; k < result->n_shifts; k++)
    ran_out = ran_out || result->shifts[k].refine_iterations >= o->max_iterations;
  return md_fail(context, MD_UNREACHED,
                 "the true residual of every shift must be at most %g, %s %.3e after %d "
                 "iteration%s; raise %s--tol%s",
                 o->tolerance, ran_out ? "got" : "stalled at", worst_of(result), result->iterations,
                 md_plural(result->iterations), ran_out ? "--max-iter or " : "",
                 o->refine ? "" : ", or add --refine");
}

/* Shifts are those of S S^dag, which are no masses. */
static bool has_spin(const md_solve_run *run) {
  return run->options.source.spins == 4;
}

static double mass_of(const md_solve_run *run, double shift) {
  return has_spin(run) ? run->options.mass : sqrt(run->options.mass * run->options.mass + shift);
}

const char *md_solve_shift_path(const char *output, int k, char path[MD_SOLVE_PATH_BYTES]) {
  const char *dot = strrchr(output, '.'); /* one that begins a name ends no stem */
  const size_t stem = dot && dot > md_base_of(output) ? (size_t)(dot - output) : strlen(output);
  snprintf(path, MD_SOLVE_PATH_BYTES, "%.*s-%d%s", (int)stem, output, k, output + stem);
  return path;
}

/* run->x = M^-1 b of the mass m = sqrt(mass^2 + shift) for b on even sites: m y on even sites and
 * -Doe y on odd ones, with y = (M^dag M + shift)^-1 b. With spin y = (S S^dag + shift)^-1 b. */
static md_status complete(md_context *context, md_solve_run *run, double shift, const md_field *y) {
  if (has_spin(run)) return md_agree(context, md_field_convert(context, run->of.x, y));
  const double m = mass_of(run, shift);
  double scale[MD_MAX_RHS], zero[MD_MAX_RHS] = {0}, minus[MD_MAX_RHS];
  md_field even = {0}, odd = {0};
  for (int r = 0; r < MD_MAX_RHS; r++) {
    scale[r] = m;
    minus[r] = -1.0;
  }
  md_status status = md_dirac_field(context, md_equation_exact(&run->of), MD_EVEN, &even);
  if (status == MD_OK) status = md_dirac_field(context, md_equation_exact(&run->of), MD_ODD, &odd);
  if (status == MD_OK) status = md_field_resize(context, &even, y);
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_dirac_hop(context, md_equation_exact(&run->of), &odd, &even, NULL);
  if (status == MD_OK) {
    md_linear_axpby(minus, &odd, zero, &odd);
    md_linear_axpby(scale, &even, zero, &even);
    status = md_field_resize(context, &run->of.x[MD_EVEN], &even);
    if (status == MD_OK) status = md_field_resize(context, &run->of.x[MD_ODD], &odd);
  }
  MD_FIELDS_DESTROY(&even, &odd);
  return md_agree(context, status);
}

/* Whether the solution says something of the source: it is that of its even sites. */
static bool has_observables(const md_source *source, const int dims[MD_DIMS]) {
  return source->spins == 1 && (md_source_is_even(source, dims) || md_source_is_noise(source));
}

/* Solution, observables and file of every shift; their keys go to the rows of the report. A file
 * that cannot be written does not cost the others: the first such failure is returned at the end.
 */
static md_status observe_shifts(md_context *context, md_solve_run *run, const md_field *y,
                                const md_multishift_result *result, cJSON *rows) {
  const md_solve_options *o = &run->options;
  double residuals[MD_MAX_RHS];
  char path[MD_SOLVE_PATH_BYTES], message[sizeof context->message];
  md_status failed = MD_OK;
  for (int k = 0; k < result->n_shifts; k++) {
    const md_shift_result *s = &result->shifts[k];
    double shift = s->shift;
    cJSON *row = cJSON_GetArrayItem(rows, k);
    if (!s->converged) continue;
    MD_TRY(complete(context, run, s->shift, &y[k]));
    if (has_observables(&o->source, run->links.geometry->global)) {
      MD_TRY(md_solve_observe(context, run));
      /* Even sites alone hold half of the trace. */
      for (int r = 0; run->observed.condensate && r < o->run.request.n_rhs; r++)
        run->observed.condensate[r] *= 2.0;
      md_solve_report_observables(row, run);
      md_say(context, "mass %.12g, shift %g\n", mass_of(run, s->shift), s->shift);
      md_solve_print_observables(context, run);
    }
    if (!o->output) continue;
    for (int r = 0; r < o->run.request.n_rhs; r++) residuals[r] = s->relative_residual;
    md_solve_shift_path(o->output, k, path);
    const md_status written = md_solve_write(context, run, path, mass_of(run, shift),
                                             has_spin(run) ? &shift : NULL, residuals);
    if (written == MD_OK) cJSON_AddStringToObject(row, "output", path);
    if (written == MD_OK || failed != MD_OK) continue;
    failed = written;
    memcpy(message, context->message, sizeof message);
  }
  if (failed != MD_OK) memcpy(context->message, message, sizeof message);
  return failed;
}

#define COLUMNS                                                                                    \
  "shift=%-15g mass=%g iterations=%10d refine_iterations|refinement=%11d "                         \
  "iterated_residual|iterated=%9.2e relative_residual|~~true~residual=%11.3e |~=%s converged=%hhd"

/* The report, and a table of the shifts. */
static void fill_report(const md_context *context, md_report *report, const md_solve_run *run,
                        const md_multishift_result *result) {
  md_solve_report_common(report, run);
  cJSON *root = report->root;
  md_report_add(root,
                "iterations=%d double_iterations=%d converged=%hhd interrupted=%hhd "
                "relative_residual=%g",
                result->iterations, result->double_iterations, result->converged,
                (bool)(result->interrupted && !result->converged), worst_of(result));
  md_report_reals(root, "residual_history", result->history, result->iterations + 1);
  md_report_add(root, "solver_seconds=%g gflops=%g", result->seconds, result->gflops);
  cJSON *rows = cJSON_AddArrayToObject(root, "shifts");
  md_rows_head(context, COLUMNS);
  for (int k = 0; k < result->n_shifts; k++) {
    const md_shift_result *s = &result->shifts[k];
    cJSON *row = md_rows_add(context, rows, COLUMNS, s->shift, mass_of(run, s->shift),
                             s->iterations, s->refine_iterations, s->estimate, s->relative_residual,
                             s->converged ? " converged" : " NOT converged", s->converged);
    if (has_spin(run)) cJSON_AddStringToObject(row, "equation", MD_SOLVE_SHIFTED);
    md_kappa_report(row, run->options.run.request.action, mass_of(run, s->shift));
  }
}

/* What was found is reported even where a solution could not be written, or `solved` says that a
 * number was none. */
static md_status report_shifts(md_context *context, md_solve_run *run, const md_field *y,
                               const md_multishift_result *result, md_status solved) {
  md_report report;
  MD_TRY(md_report_open(context, "solve", &report));
  fill_report(context, &report, run, result);
  if (solved == MD_OK)
    solved = observe_shifts(context, run, y, result, cJSON_GetObjectItem(report.root, "shifts"));
  return md_report_close_after(context, &report, run->options.run.common.json, solved);
}

static md_status solve(md_context *context, md_solve_run *run, md_field *x,
                       md_multishift_result *result) {
  const md_solve_options *o = &run->options;
  observer watch = {md_progress_start(context, "solve"), o->tolerance, 1.0};
  const md_multishift_request request = {.mass = o->mass,
                                         .shifts = o->shifts.value,
                                         .n_shifts = o->shifts.count,
                                         .tolerance = o->tolerance,
                                         .max_iterations = (int)o->max_iterations,
                                         .refine = o->refine,
                                         .modes = o->deflate ? &run->modes : NULL,
                                         .observe = observe,
                                         .user = &watch};
  const md_status status = md_solve_multishift(context, &run->of.dirac, md_equation_exact(&run->of),
                                               &request, x, &run->of.b[MD_EVEN], result);
  md_progress_stop(&watch.progress);
  md_memory_release(); /* of the solver's fields, before solutions are completed */
  return status;
}

/* MD_INPUT where there would be nothing to solve. Collective. */
static md_status check_even(md_context *context, const md_solve_run *run) {
  double norm2[MD_MAX_RHS];
  MD_TRY(md_linear_norm2(context, &run->of.b[MD_EVEN], NULL, norm2));
  for (int r = 0; r < run->of.b[MD_EVEN].n_rhs; r++)
    if (norm2[r] == 0.0)
      return md_fail(context, MD_INPUT,
                     "multishift solves on even sites, where right-hand side %d of source %.200s "
                     "is zero; give another source",
                     r, run->options.source.text);
  return MD_OK;
}

md_status md_solve_shifts(md_context *context, md_solve_run *run) {
  const md_solve_options *o = &run->options;
  const md_field_shape shape = {
      MD_DOUBLE, MD_HOST, md_action_reals(o->run.request.action), o->run.request.n_rhs,
      true,      false};
  md_field x[MD_MAX_SHIFTS] = {0};
  md_multishift_result result = {0};
  md_status status = MD_OK;
  for (int k = 0; k < o->shifts.count && status == MD_OK; k++)
    status = md_field_create(context, run->links.geometry, &shape, MD_EVEN, &x[k]);
  status = md_agree(context, status);
  const bool solves = !md_counts(context);
  if (status == MD_OK && solves) status = check_even(context, run);
  if (status == MD_OK && solves) {
    md_linear_zero(&run->of.b[MD_ODD]); /* what is solved for */
    md_solve_print_head(context, run);
  }
  if (status == MD_OK) status = solve(context, run, x, &result);
  if (solves && (status == MD_OK || status == MD_UNREACHED)) {
    print(context, &result);
    status = report_shifts(context, run, x, &result, status);
  }
  if (status == MD_OK && !result.converged) status = unreached(context, run, &result);
  for (int k = 0; k < o->shifts.count; k++) md_field_destroy(&x[k]);
  md_multishift_result_free(&result);
  return status;
}
