/* The a-priori bounds: every backend keeps them, a wrong component and NaN break them, and they
 * are no more than a small multiple of the storage rounding away from what is seen. */
#include "../dirac/backend_cases.h"
#include "problem.h"
#include "validate/validate.h"

#include <math.h>
#include <string.h>

static const double mass = 0.1;

static void begin(const problem *p, md_validate_run *run) {
  *run = (md_validate_run){.options.mass = mass, .options.seed = 3, .geometry = p->g};
  run->gauge = p->gauge;
  run->rows = cJSON_CreateArray();
}

static void check(md_context *context, problem *p, md_dirac *dirac, md_validate_run *run) {
  md_dirac reference;
  context->quiet = true;
  problem_dirac(context, p, "cpu_ref", MD_DOUBLE, &reference);
  MD_REQUIRE(context, md_validate_operator(context, run, dirac, &reference));
  md_dirac_destroy(&reference);
}

static double number(const cJSON *row, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(row, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void check_case(md_context *context, const backend_case *c) {
  problem p;
  md_dirac dirac;
  md_validate_run run;
  char name[80];
  problem_make(context, c->request.n_rhs, &p);
  case_dirac(context, c, &p.gauge, &dirac);
  begin(&p, &run);
  check(context, &p, &dirac, &run);
  if (run.broken) fail_msg("%s breaks %lld bounds", case_name(c, name, sizeof name), run.broken);
  assert_int_equal(cJSON_GetArraySize(run.rows), 4);
  for (const cJSON *row = run.rows->child; row; row = row->next) {
    md_require_at_most(number(row, "rel_l2_error"), number(row, "bound"), name);
    const double unit = md_precision_roundoff(c->request.precision);
    if (c->request.precision != MD_DOUBLE)
      md_require_at_most(number(row, "bound"), 5000.0 * unit, "a bound that says something");
  }
  cJSON_Delete(run.rows);
  md_dirac_destroy(&dirac);
  problem_drop(&p);
}

static void every_backend_keeps_its_bounds(void **state) {
  static const int n_rhs[] = {1, 3};
  each_backend_case(*state, n_rhs, 2, check_case);
}

/* cpu_simd in single, with one component of every result changed. */
typedef struct wrong {
  const md_backend *backend;
  void *state;
  float factor;
} wrong;

static md_status wrong_hop(md_context *context, void *state, md_field *out, const md_field *in,
                           md_range range, const md_epilogue *epilogue) {
  const wrong *w = state;
  MD_TRY(w->backend->hop(context, w->state, out, in, range, epilogue));
  if (context->rank == 0 && range != MD_RANGE_INTERIOR) ((float *)out->data)[0] *= w->factor;
  return MD_OK;
}

static void wrong_results_break_bounds(void **state) {
  md_context *context = *state;
  const float factors[] = {1.0f, 1.0f + 1e-3f, NAN};
  for (int i = 0; i < 3; i++) {
    problem p;
    md_dirac dirac;
    md_validate_run run;
    problem_make(context, 1, &p);
    problem_dirac(context, &p, "cpu_simd", MD_SINGLE, &dirac);
    wrong w = {dirac.backend, dirac.state, factors[i]};
    md_backend fake = *dirac.backend;
    fake.hop = wrong_hop;
    dirac.backend = &fake;
    dirac.state = &w;
    begin(&p, &run);
    check(context, &p, &dirac, &run);
    assert_int_equal(run.broken > 0, i > 0);
    cJSON_Delete(run.rows);
    dirac.backend = w.backend;
    dirac.state = w.state;
    md_dirac_destroy(&dirac);
    problem_drop(&p);
  }
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(every_backend_keeps_its_bounds),
    cmocka_unit_test(wrong_results_break_bounds),
};
MD_RUN_TESTS(tests)
