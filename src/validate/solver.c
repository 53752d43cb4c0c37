#include "base/interrupt.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/statistics.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"
#include "validate/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A point source: its colours, with spin of every spin, all in one solve with the other right-hand
 * sides zero, or one after the other where the operator has fewer right-hand sides. midpoint: of
 * walls with a middle alone. */
typedef struct point_problem {
  md_field colours[MD_PARITIES], b[MD_PARITIES], x[MD_PARITIES], midpoint[MD_PARITIES];
} point_problem;

/* Collective. */
static md_status create(md_context *context, const md_geometry *g,
                        const md_backend_request *request, point_problem *p) {
  const int origin[MD_DIMS] = {0};
  md_backend_request all = *request;
  all.n_rhs = md_action_reals(request->action) / 2;
  MD_TRY(md_host_fields(context, g, request, p->b));
  MD_TRY(md_host_fields(context, g, request, p->x));
  MD_TRY(md_host_fields(context, g, &all, p->colours));
  if (md_request_slices(request) % 2 == 0) MD_TRY(md_host_fields(context, g, request, p->midpoint));
  if (!md_counts(context)) md_source_point(p->colours, origin);
  return MD_OK;
}

static void destroy(point_problem *p) {
  for (int k = 0; k < MD_PARITIES; k++)
    MD_FIELDS_DESTROY(&p->colours[k], &p->b[k], &p->x[k], &p->midpoint[k]);
}

/* What the lines of progress say of a solve. */
typedef struct watcher {
  md_progress progress;
  char what[64];
  double tolerance;
} watcher;

static md_status observe(void *user, const md_cg_state *state) {
  watcher *w = user;
  const double *history = state->result.history;
  md_run_progress(&w->progress, w->what, 0, state->iteration, history[0], history[state->iteration],
                  w->tolerance);
  return MD_OK;
}

static bool has_midpoint(const point_problem *p) {
  return p->midpoint[0].components > 0;
}

/* Solves all colours: *result is that of the slowest with the largest residual of all, the
 * correlators are summed. */
static md_status solve_colours(md_context *context, md_dirac *dirac, md_dirac *exact,
                               const md_solver_request *how, point_problem *p,
                               md_solver_result *result, double *correlator) {
  const int times = dirac->geometry->global[MD_T], all = p->colours[0].n_rhs;
  const int at_once = p->b[0].n_rhs < all ? 1 : all;
  const size_t bytes = 2 * (size_t)times * sizeof(double);
  double *part = calloc(1, bytes), worst = 0.0;
  md_status status = md_agree(context, part ? MD_OK : md_fail_memory(context, bytes, "correlator"));
  for (int t = 0; t < 2 * times; t++) correlator[t] = 0.0;
  for (int first = 0; first < all && status == MD_OK; first += at_once) {
    md_solver_result one;
    for (int k = 0; k < MD_PARITIES; k++)
      for (int c = 0; c < at_once; c++) md_field_copy_rhs(&p->b[k], c, &p->colours[k], first + c);
    status = md_solve_cg(context, dirac, exact, how, p->x, p->b, &one);
    if (status == MD_OK && one.interrupted) {
      md_solver_result_free(&one);
      status = md_interrupt_check(context, "validate");
      break;
    }
    if (status == MD_OK) status = md_pion_correlator(context, p->x, part);
    if (status == MD_OK && has_midpoint(p))
      status = md_pion_correlator(context, p->midpoint, part + times);
    for (int t = 0; t < 2 * times; t++) correlator[t] += part[t];
    worst = fmax(worst, one.relative_residual);
    if (first == 0 || one.iterations > result->iterations) {
      const md_solver_result faster = *result;
      *result = one;
      one = faster;
    }
    md_solver_result_free(&one);
  }
  result->relative_residual = worst;
  free(part);
  return status;
}

static void add_residual_mass(cJSON *row, const double *exact, const double *correlator,
                              int times) {
  const double m_res =
      correlator ? md_residual_mass(correlator + times, correlator, times, 0) : NAN;
  const double reference = md_residual_mass(exact + times, exact, times, 0);
  md_report_add(row, "residual_mass=%g residual_mass_percent=%g", m_res,
                100.0 * (m_res / reference - 1.0));
}

static void add_row(md_context *context, md_validate_run *run, const md_dirac *dirac, bool inner,
                    const md_solver_result *result, const double *exact, const double *correlator) {
  const int times = run->links.geometry->global[MD_T];
  const bool solved = result->history != NULL;
  double worst = 0.0, *percent = calloc((size_t)times, sizeof *percent);
  for (int t = 0; percent && t < times; t++) {
    percent[t] = solved ? 100.0 * (correlator[t] / exact[t] - 1.0) : NAN;
    md_raise(&worst, fabs(percent[t]));
  }
  const char *precision = md_precision_name(dirac->request.precision);
  cJSON *row = md_rows_add(context, run->solver, MD_VALIDATE_SOLVER_COLUMNS, dirac->backend->name,
                           md_packing_name(dirac->request.packing), inner ? "double" : precision,
                           inner ? precision : "none", result->iterations,
                           solved ? result->relative_residual : NAN, worst);
  if (percent) md_report_reals(row, "correlator_percent", percent, times);
  if (md_request_slices(&dirac->request) % 2 == 0)
    add_residual_mass(row, exact, solved ? correlator : NULL, times);
  md_report_reals(row, "residual_history", solved ? result->history : NULL,
                  solved ? result->iterations + 1 : 0);
  free(percent);
}

static void print_percent(const md_context *context, const cJSON *percent) {
  if (cJSON_IsNumber(percent))
    md_say(context, " %9.1e", percent->valuedouble);
  else
    md_say(context, " %9s", "-");
}

void md_validate_print_correlators(const md_context *context, const md_validate_run *run) {
  const cJSON *first = run->solver->child;
  md_say(context, "\npion correlator on each time slice, deviation from double in per cent\n    t");
  for (const cJSON *row = first; row; row = row->next) {
    const char *inner = cJSON_GetObjectItem(row, "inner")->valuestring;
    const char *precision = cJSON_GetObjectItem(row, "precision")->valuestring;
    const bool mixed = strcmp(inner, "none") != 0;
    char name[32];
    snprintf(name, sizeof name, "%s%s", mixed ? "d/" : "", mixed ? inner : precision);
    md_say(context, " %9s", name);
  }
  for (int t = 0; t < run->links.geometry->global[MD_T]; t++) {
    md_say(context, "\n%5d", t);
    for (const cJSON *row = first; row; row = row->next)
      print_percent(context, cJSON_GetArrayItem(cJSON_GetObjectItem(row, "correlator_percent"), t));
  }
  if (cJSON_HasObjectItem(first, "residual_mass_percent")) md_say(context, "\nm_res");
  for (const cJSON *row = first; row && cJSON_HasObjectItem(row, "residual_mass_percent");
       row = row->next)
    print_percent(context, cJSON_GetObjectItem(row, "residual_mass_percent"));
  md_say(context, "\n");
}

md_status md_validate_solver(md_context *context, md_validate_run *run, const char *backend,
                             const md_backend_request *request, bool inner, const double *exact,
                             double *correlator) {
  watcher watch = {.progress = md_progress_of_run(context, "validate"), .tolerance = 1e-12};
  md_solver_request how = {.mass = run->options.mass,
                           .tolerance = watch.tolerance,
                           .max_iterations = (int)run->options.max_iterations,
                           .observe = observe,
                           .user = &watch};
  const md_halo_request *halo = &run->options.run.halo;
  const md_backend *found;
  md_backend_request plain = *request;
  md_dirac dirac = {0}, outer = {0};
  md_solver_result result = {0};
  point_problem p = {0};
  const md_memory_need mark = md_memory_mark(context);
  md_memory_release(); /* of what the operators or the solver before had */
  plain.precision = MD_DOUBLE;
  plain.packing = MD_PACKING_NONE;
  plain.reconstruct = MD_RECONSTRUCT_18;
  snprintf(watch.what, sizeof watch.what, "solver in %s%s, ", inner ? "double with " : "",
           md_precision_name(request->precision));
  MD_TRY(md_agree(context, md_backend_find(context, backend, request, &found)));
  const bool carried = md_halo_request_serves(halo, found->space);
  MD_TRY(md_dirac_create_over(context, run->links.field, found->name, request,
                              carried ? halo : NULL, &dirac));
  md_status status = md_dirac_create(context, run->links.field, "auto", &plain, &outer);
  if (status == MD_OK) status = create(context, run->links.geometry, request, &p);
  if (inner) how.inner = &dirac;
  if (has_midpoint(&p)) how.midpoint = p.midpoint;
  if (status == MD_OK)
    status = md_counts(context)
                 ? md_solve_cg(context, inner ? &outer : &dirac, &outer, &how, p.x, p.b, &result)
                 : solve_colours(context, inner ? &outer : &dirac, &outer, &how, &p, &result,
                                 correlator);
  if (status == MD_UNREACHED) { /* a breakdown is a finding, with its own line */
    md_warn(context, "%s: %s", md_precision_name(request->precision), context->message);
    md_solver_result_free(&result);
    status = MD_OK;
  }
  if (status == MD_OK && !md_counts(context) && !exact && !result.converged && !result.stalled &&
      result.iterations >= how.max_iterations)
    md_warn(context,
            "the solve that others are compared with must reach %g, got %.3e after %d iterations; "
            "raise --max-iter",
            how.tolerance, result.relative_residual, result.iterations);
  if (status == MD_OK && !md_counts(context))
    add_row(context, run, &dirac, inner, &result, exact ? exact : correlator, correlator);
  md_progress_stop(&watch.progress);
  md_solver_result_free(&result);
  destroy(&p);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&outer);
  md_memory_return_to(context, mark);
  return status;
}
