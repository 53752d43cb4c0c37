#include "base/interrupt.h"
#include "bench/solver/case.h"
#include "bench/suite/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ITERATIONS = 20000 };

static double real_of(const cJSON *row, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(row, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *word_of(const cJSON *row, const char *key) {
  return cJSON_GetObjectItem(row, key)->valuestring;
}

/* Holds a solve to its tolerance and the golden number, and keeps the fastest that passes. */
static void judge(md_suite *suite, cJSON *row) {
  const double golden = suite->class->condensate[suite->links.action];
  const double residual = real_of(row, "relative_residual"), rhs = real_of(row, "rhs");
  const bool failed = suite->failed;
  char what[96], name[160];
  snprintf(what, sizeof what, "%s %s inner %s rhs %g", word_of(row, "backend"),
           word_of(row, "packing"), word_of(row, "inner"), rhs);
  suite->failed = false;
  snprintf(name, sizeof name, "true residual, %s", what);
  md_suite_check(suite, name, residual, 0.0, MD_SUITE_TOLERANCE);
  snprintf(name, sizeof name, "condensate, %s", what);
  if (!isnan(golden))
    md_suite_check(suite, name, real_of(row, "condensate"), golden, 1e-8 * fabs(golden));
  const double merit = rhs / real_of(row, "seconds_median");
  if (!suite->failed && merit > suite->merit) {
    suite->merit = merit;
    suite->merit_row = row;
    suite->merit_per_joule = rhs / real_of(row, "joules");
  }
  suite->failed = suite->failed || failed;
}

md_status md_suite_solve(md_suite *suite, int n_rhs) {
  md_solver_bench bench = {.context = suite->context,
                           .links = &suite->links,
                           .halo = &suite->halo,
                           .tolerance = MD_SUITE_TOLERANCE,
                           .max_iterations = MOST_ITERATIONS,
                           .repetitions = suite->repetitions,
                           .how = {.solver = "cg", .precondition = "none"},
                           .rows = suite->rows,
                           .skipped = suite->skipped};
  md_solver_bench_head(&bench);
  for (int o = 0; o < suite->operators.count; o++)
    for (int i = 0; i < suite->inner.count; i++) {
      md_solver_case c = {.kind = MD_BENCH_CG,
                          .backend = suite->operators.of[o].backend,
                          .request = {.precision = (md_precision)suite->inner.value[i],
                                      .reconstruct = suite->operators.of[o].reconstruct,
                                      .packing = suite->operators.of[o].packing,
                                      .n_rhs = n_rhs,
                                      .antiperiodic = true},
                          .mass = suite->class->mass};
      const int before = cJSON_GetArraySize(suite->rows);
      md_physics_apply(&suite->physics, &c.request);
      MD_TRY(md_solver_bench_case(&bench, &c));
      if (cJSON_GetArraySize(suite->rows) > before)
        judge(suite, cJSON_GetArrayItem(suite->rows, before));
      MD_TRY(md_interrupt_check(suite->context, "bench suite"));
    }
  return MD_OK;
}
