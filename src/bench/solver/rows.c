#include "bench/solver/case.h"

#include <math.h>

#define REQUEST                                                                                    \
  "mass=%-6g rhs=%3d solver=%-10s backend=%-10s packing=%-7s inner=%-6s reconstruct|rec=%3s "      \
  "precision=%s action=%s"
#define COLUMNS                                                                                    \
  REQUEST " outer_backend=%s transport=%s ranks=%d iterations|iter=%6d "                           \
          "refine_iterations|refine=%6d double_iterations=%d converged=%hhd "                      \
          "seconds_median|seconds=%9.4f seconds_min=%g seconds_max=%g repetitions=%d "             \
          "seconds_per_rhs|s/rhs=%9.4f ms_per_iteration=%g ms_per_iteration_rhs|ms/i/rhs=%9.4f "   \
          "ms_per_iteration_loop=%g |loop=%9.4f operator_share|hops=%5.2f "                        \
          "relative_residual|residual=%8.1e speedup|speed-up=%8.2f condensate=%g joules=%g |=%s"
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
  md_twist_report(row, &c->request);
  return row;
}

static void add_row(md_solver_bench *bench, const md_solver_case *c, const md_solver_figures *f,
                    double speedup) {
  const int n = c->request.n_rhs;
  const double iteration_ms = 1e3 * f->seconds / f->iterations;
  const bool converged = f->residual <= bench->tolerance;
  cJSON *row =
      md_rows_add(bench->context, bench->rows, COLUMNS, REQUEST_OF(c, f->backend->name),
                  f->outer->name, f->transport, bench->context->ranks, f->iterations,
                  f->refine_iterations, f->double_iterations, converged, f->seconds, f->min_s,
                  f->max_s, bench->repetitions, f->seconds / n, iteration_ms, iteration_ms / n,
                  1e3 * f->iteration_s, 1e3 * f->iteration_s / n, f->operator_share, f->residual,
                  speedup, f->condensate, f->joules, converged ? "" : "  NOT converged");
  const bool takes =
      c->kind < MD_BENCH_DEFLATED && md_solvers()[c->kind]->takes & MD_TAKES_PRECONDITION;
  cJSON_AddStringToObject(row, "precondition", takes ? bench->how.precondition : "none");
  md_twist_report(row, &c->request);
  md_report_integers(row, "dims", bench->links->geometry->global, MD_DIMS);
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

md_status md_solver_bench_add(md_solver_bench *bench, const md_solver_case *c,
                              const md_solver_figures *f) {
  const int n = c->request.n_rhs;
  const bool converged = f->residual <= bench->tolerance;
  if (!converged) bench->missed++;
  bench->ran_out =
      bench->ran_out || (!converged && (f->iterations >= bench->max_iterations ||
                                        f->refine_iterations >= bench->max_iterations));
  if (converged && bench->reference_s == 0.0) bench->reference_s = f->seconds / n;
  add_row(bench, c, f, converged ? bench->reference_s / (f->seconds / n) : NAN);
  add_choice(bench, c, f);
  return md_agree(bench->context, md_solver_bench_sources(bench, c, f));
}

void md_solver_bench_skip(md_solver_bench *bench, const md_solver_case *c) {
  const char *reason = bench->context->message;
  if (md_rows_skip(bench->skipped, md_solver_bench_request(c, c->backend), NULL, reason))
    md_say(bench->context, "%-6g %3d %-10s %-10s %-7s %-6s not timed: %s\n", c->mass,
           c->request.n_rhs, md_solver_kind_name(c->kind), c->backend,
           md_packing_name(c->request.packing), inner_of(c), reason);
}
