#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"
#include "validate/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a storage type makes of one real. */
static double stored(md_precision precision, double value) {
  switch (precision) {
  case MD_DOUBLE:
    return value;
  case MD_SINGLE:
    return (double)(float)value;
  case MD_HALF:
    return (double)md_float_of_half(md_half_of_float((float)value));
  case MD_BF16:
    return (double)md_float_of_bf16(md_bf16_of_float((float)value));
  case MD_FIXED:
    return (double)md_fixed_of_float((float)(value * MD_FIXED_STEPS)) / MD_FIXED_STEPS;
  case MD_PRECISIONS:
    break;
  }
  return NAN;
}

static md_status links_in(md_context *context, md_validate_run *run, md_gauge *copy,
                          md_precision precision) {
  md_gauge_observables o;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
      for (int64_t i = 0; i < run->geometry->sites; i++) {
        double u[MD_LINK_REALS];
        md_gauge_get(&run->gauge, p, mu, i, u);
        for (int c = 0; c < MD_LINK_REALS; c++) u[c] = stored(precision, u[c]);
        md_gauge_set(copy, p, mu, i, u);
      }
  MD_TRY(md_gauge_exchange(context, copy));
  MD_TRY(md_gauge_observe(context, copy, &o));
  cJSON *row = cJSON_CreateObject();
  cJSON_AddItemToArray(run->links, row);
  cJSON_AddStringToObject(row, "precision", md_precision_name(precision));
  md_report_real(row, "plaquette", o.plaquette);
  md_report_real(row, "plaquette_drift", o.plaquette - run->info.observables.plaquette);
  md_report_real(row, "unitarity_deviation", o.unitarity_deviation);
  md_say(context, "%-8s %.12f  %10.2e  %10.2e\n", md_precision_name(precision), o.plaquette,
         o.plaquette - run->info.observables.plaquette, o.unitarity_deviation);
  return MD_OK;
}

md_status md_validate_links(md_context *context, md_validate_run *run) {
  md_gauge copy = {0};
  md_say(context, "\nlinks    plaquette       drift       unitarity deviation\n");
  md_status status = md_agree(context, md_gauge_create(context, run->geometry, &copy));
  for (int p = 0; p < MD_PRECISIONS && status == MD_OK; p++)
    status = links_in(context, run, &copy, (md_precision)p);
  md_gauge_destroy(&copy);
  return status;
}

/* A point source: its colours, three in one solve with the other right-hand sides zero, or one
 * after the other where the operator has one right-hand side. */
typedef struct point_problem {
  md_field colours[MD_PARITIES], b[MD_PARITIES], x[MD_PARITIES];
} point_problem;

static md_status create(md_context *context, const md_geometry *g, int n_rhs, point_problem *p) {
  const int origin[MD_DIMS] = {0};
  md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, n_rhs, true};
  for (int k = 0; k < MD_PARITIES; k++) {
    MD_TRY(md_field_create(context, g, &shape, k, &p->b[k]));
    MD_TRY(md_field_create(context, g, &shape, k, &p->x[k]));
  }
  shape.n_rhs = 3;
  for (int k = 0; k < MD_PARITIES; k++)
    MD_TRY(md_field_create(context, g, &shape, k, &p->colours[k]));
  md_source_point(p->colours, origin);
  return MD_OK;
}

static void destroy(point_problem *p) {
  for (int k = 0; k < MD_PARITIES; k++) {
    md_field_destroy(&p->colours[k]);
    md_field_destroy(&p->b[k]);
    md_field_destroy(&p->x[k]);
  }
}

/* Solves all colours: *result is that of the slowest with the largest residual of all, the
 * correlator is summed. */
static md_status solve_colours(md_context *context, md_dirac *dirac, md_dirac *exact,
                               const md_solver_request *how, point_problem *p,
                               md_solver_result *result, double *correlator) {
  const int times = dirac->geometry->global[MD_T], at_once = p->b[0].n_rhs < 3 ? 1 : 3;
  double *part = calloc((size_t)times, sizeof *part), worst = 0.0;
  md_status status = md_agree(context, part ? MD_OK : md_fail_memory(context, 8, "correlator"));
  for (int t = 0; t < times; t++) correlator[t] = 0.0;
  for (int first = 0; first < 3 && status == MD_OK; first += at_once) {
    md_solver_result one;
    for (int k = 0; k < MD_PARITIES; k++)
      for (int c = 0; c < at_once; c++) md_field_copy_rhs(&p->b[k], c, &p->colours[k], first + c);
    status = md_solve_cg(context, dirac, exact, how, p->x, p->b, &one);
    if (status == MD_OK) status = md_pion_correlator(context, p->x, part);
    for (int t = 0; t < times; t++) correlator[t] += part[t];
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

static void add_row(md_context *context, md_validate_run *run, const md_dirac *dirac, bool inner,
                    const md_solver_result *result, const double *exact, const double *correlator) {
  const int times = run->geometry->global[MD_T];
  const bool solved = result->history != NULL;
  double worst = 0.0, *percent = calloc((size_t)times, sizeof *percent);
  cJSON *row = cJSON_CreateObject();
  cJSON_AddItemToArray(run->solver, row);
  const char *precision = md_precision_name(dirac->request.precision);
  cJSON_AddStringToObject(row, "backend", dirac->backend->name);
  cJSON_AddStringToObject(row, "packing", md_packing_name(dirac->request.packing));
  cJSON_AddStringToObject(row, "precision", inner ? "double" : precision);
  cJSON_AddStringToObject(row, "inner", inner ? precision : "none");
  cJSON_AddNumberToObject(row, "iterations", result->iterations);
  md_report_real(row, "reachable_residual", solved ? result->relative_residual : NAN);
  for (int t = 0; percent && t < times; t++) {
    percent[t] = solved ? 100.0 * (correlator[t] / exact[t] - 1.0) : NAN;
    if (!(fabs(percent[t]) <= worst)) worst = fabs(percent[t]);
  }
  if (percent) md_report_reals(row, "correlator_percent", percent, times);
  md_report_reals(row, "residual_history", solved ? result->history : NULL,
                  solved ? result->iterations + 1 : 0);
  md_say(context, "%-10s %-8s %-8s %-6s %6d  %10.2e  %10.2e\n", dirac->backend->name,
         md_packing_name(dirac->request.packing), inner ? "double" : precision,
         inner ? precision : "none", result->iterations, result->relative_residual, worst);
  free(percent);
}

void md_validate_print_correlators(const md_context *context, const md_validate_run *run) {
  md_say(context, "\npion correlator on each time slice, deviation from double in per cent\n   t");
  for (const cJSON *row = run->solver->child; row; row = row->next) {
    const char *inner = cJSON_GetObjectItem(row, "inner")->valuestring;
    const char *precision = cJSON_GetObjectItem(row, "precision")->valuestring;
    const bool mixed = strcmp(inner, "none") != 0;
    char name[32];
    snprintf(name, sizeof name, "%s%s", mixed ? "d/" : "", mixed ? inner : precision);
    md_say(context, " %9s", name);
  }
  for (int t = 0; t < run->geometry->global[MD_T]; t++) {
    md_say(context, "\n%4d", t);
    for (const cJSON *row = run->solver->child; row; row = row->next) {
      const cJSON *percent = cJSON_GetArrayItem(cJSON_GetObjectItem(row, "correlator_percent"), t);
      if (cJSON_IsNumber(percent))
        md_say(context, " %9.1e", percent->valuedouble);
      else
        md_say(context, " %9s", "-");
    }
  }
  md_say(context, "\n");
}

md_status md_validate_solver(md_context *context, md_validate_run *run, const char *backend,
                             const md_backend_request *request, bool inner, const double *exact,
                             double *correlator) {
  md_solver_request how = {.mass = run->options.mass,
                           .tolerance = 1e-12,
                           .max_iterations = (int)run->options.max_iterations};
  md_backend_request plain = *request;
  md_dirac dirac = {0}, outer = {0};
  md_solver_result result = {0};
  point_problem p = {0};
  plain.precision = MD_DOUBLE;
  plain.packing = MD_PACKING_NONE;
  plain.reconstruct = MD_RECONSTRUCT_18;
  MD_TRY(md_dirac_create_over(context, &run->gauge, backend, request, &run->options.halo, &dirac));
  md_status status = md_dirac_create(context, &run->gauge, "auto", &plain, &outer);
  if (status == MD_OK)
    status = md_agree(context, create(context, run->geometry, request->n_rhs, &p));
  if (inner) how.inner = &dirac;
  if (status == MD_OK)
    status = solve_colours(context, inner ? &outer : &dirac, &outer, &how, &p, &result, correlator);
  if (status == MD_UNREACHED) { /* a breakdown is a finding, with its own line */
    md_warn(context, "%s: %s", md_precision_name(request->precision), context->message);
    md_solver_result_free(&result);
    status = MD_OK;
  }
  if (status == MD_OK)
    add_row(context, run, &dirac, inner, &result, exact ? exact : correlator, correlator);
  md_solver_result_free(&result);
  destroy(&p);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&outer);
  return status;
}
