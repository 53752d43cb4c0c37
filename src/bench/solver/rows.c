#include "bench/solver/case.h"

#include <math.h>
#include <string.h>

void md_solver_bench_head(const md_solver_bench *bench) {
  md_say(bench->context, "%-6s %3s %-10s %-10s %-7s %-6s %3s %6s %6s %9s %9s %9s %9s %5s %8s %8s\n",
         "mass", "rhs", "solver", "backend", "packing", "inner", "rec", "iter", "refine", "seconds",
         "s/rhs", "ms/i/rhs", "loop", "hops", "residual", "speed-up");
}

static const char *inner_of(const md_solver_case *c) {
  const md_precision precision = c->request.precision;
  return precision == MD_DOUBLE ? "none" : md_precision_name(precision);
}

void md_solver_bench_request(cJSON *row, const md_solver_case *c, const char *backend) {
  cJSON_AddNumberToObject(row, "mass", c->mass);
  cJSON_AddNumberToObject(row, "rhs", c->request.n_rhs);
  cJSON_AddStringToObject(row, "solver", md_solver_kind_name(c->kind));
  cJSON_AddStringToObject(row, "backend", backend);
  cJSON_AddStringToObject(row, "packing", md_packing_name(c->request.packing));
  cJSON_AddStringToObject(row, "precision", "double");
  cJSON_AddStringToObject(row, "inner", inner_of(c));
  cJSON_AddStringToObject(row, "reconstruct", md_reconstruct_name(c->request.reconstruct));
  md_physics_report(row, &c->request);
}

static void add_figures(const md_solver_bench *bench, cJSON *row, const md_solver_case *c,
                        const md_solver_figures *f, double speedup) {
  const int n = c->request.n_rhs;
  const bool takes =
      c->kind < MD_BENCH_DEFLATED && md_solvers()[c->kind]->takes & MD_TAKES_PRECONDITION;
  cJSON_AddStringToObject(row, "precondition", takes ? bench->how.precondition : "none");
  cJSON_AddStringToObject(row, "outer_backend", f->outer->name);
  cJSON_AddStringToObject(row, "transport", f->transport);
  md_report_integers(row, "dims", bench->links->geometry->global, MD_DIMS);
  cJSON_AddNumberToObject(row, "ranks", bench->context->ranks);
  cJSON_AddNumberToObject(row, "iterations", f->iterations);
  cJSON_AddNumberToObject(row, "refine_iterations", f->refine_iterations);
  cJSON_AddNumberToObject(row, "double_iterations", f->double_iterations);
  cJSON_AddBoolToObject(row, "converged", f->residual <= bench->tolerance);
  md_report_real(row, "relative_residual", f->residual);
  cJSON_AddNumberToObject(row, "seconds_median", f->seconds);
  cJSON_AddNumberToObject(row, "seconds_min", f->min_s);
  cJSON_AddNumberToObject(row, "seconds_max", f->max_s);
  cJSON_AddNumberToObject(row, "repetitions", bench->repetitions);
  cJSON_AddNumberToObject(row, "seconds_per_rhs", f->seconds / n);
  md_report_real(row, "ms_per_iteration", 1e3 * f->seconds / f->iterations);
  md_report_real(row, "ms_per_iteration_rhs", 1e3 * f->seconds / f->iterations / n);
  md_report_real(row, "ms_per_iteration_loop", 1e3 * f->iteration_s);
  md_report_real(row, "operator_share", f->operator_share);
  md_report_real(row, "speedup", speedup);
  md_report_real(row, "condensate", f->condensate);
  md_report_real(row, "joules", f->joules);
}

/* Of `auto`: apart from the rows, whose cells a CSV file separates by commas. */
static void add_choice(const md_solver_bench *bench, const md_solver_case *c,
                       const md_solver_figures *f) {
  const char *chosen = f->choice.block ? "block" : "cg";
  if (!f->choice.reason[0]) return;
  cJSON *choice = cJSON_CreateObject();
  cJSON_AddItemToArray(bench->choices, choice);
  md_solver_bench_request(choice, c, f->backend->name);
  cJSON_AddStringToObject(choice, "solver_chosen", chosen);
  cJSON_AddStringToObject(choice, "solver_reason", f->choice.reason);
  md_say(bench->context, "       %s: %s\n", chosen, f->choice.reason);
}

md_status md_solver_bench_add(md_solver_bench *bench, const md_solver_case *c,
                              const md_solver_figures *f) {
  const int n = c->request.n_rhs;
  const bool converged = f->residual <= bench->tolerance;
  if (!converged) bench->missed++;
  bench->ran_out =
      bench->ran_out || (!converged && (f->iterations >= bench->max_iterations ||
                                        f->refine_iterations >= bench->max_iterations));
  if (converged && bench->reference_s == 0.0) bench->reference_s = f->seconds / n;
  const double speedup = converged ? bench->reference_s / (f->seconds / n) : NAN;
  cJSON *row = cJSON_CreateObject();
  cJSON_AddItemToArray(bench->rows, row);
  md_solver_bench_request(row, c, f->backend->name);
  add_figures(bench, row, c, f, speedup);
  md_say(bench->context,
         "%-6g %3d %-10s %-10s %-7s %-6s %3s %6d %6d %9.4f %9.4f %9.4f %9.4f %5.2f %8.1e %8.2f%s\n",
         c->mass, n, md_solver_kind_name(c->kind), f->backend->name,
         md_packing_name(c->request.packing), inner_of(c),
         md_reconstruct_name(c->request.reconstruct), f->iterations, f->refine_iterations,
         f->seconds, f->seconds / n, 1e3 * f->seconds / f->iterations / n, 1e3 * f->iteration_s / n,
         f->operator_share, f->residual, speedup, converged ? "" : "  NOT converged");
  add_choice(bench, c, f);
  return md_agree(bench->context, md_solver_bench_sources(bench, c, f));
}

void md_solver_bench_skip(md_solver_bench *bench, const md_solver_case *c) {
  const char *reason = bench->context->message;
  bool said = false;
  for (const cJSON *one = bench->skipped->child; one; one = one->next)
    said = said || strcmp(cJSON_GetObjectItem(one, "reason")->valuestring, reason) == 0;
  cJSON *row = cJSON_CreateObject();
  cJSON_AddItemToArray(bench->skipped, row);
  md_solver_bench_request(row, c, c->backend);
  cJSON_AddStringToObject(row, "reason", reason);
  if (!said)
    md_say(bench->context, "%-6g %3d %-10s %-10s %-7s %-6s not timed: %s\n", c->mass,
           c->request.n_rhs, md_solver_kind_name(c->kind), c->backend,
           md_packing_name(c->request.packing), inner_of(c), reason);
}
