/* Means over each kind of link of lattices of the MILC code, as another implementation gives them:
 * the formulas behind them reproduce all digits that MILC prints for correlators. */
#include "smear_support.h"

#include <math.h>
#include <stdlib.h>

typedef struct golden {
  const char *action;
  char name;
  double plaquette, link_trace, norm2; /* plaquette 0: not known */
} golden;

static const double tolerance = 1e-6; /* the links of the file are unitary to 1.5e-7 */

static void require_near(double value, double expected, const char *what) {
  md_require_at_most(fabs(value - expected), tolerance * fabs(expected), what);
}

/* Kinds of the report in the order of the table. */
static void check(md_context *context, const md_gauge *gauge, const char *action,
                  const golden *numbers, int count) {
  const md_smear_request request = smear_request(action);
  smear_links links = smear_make(context, gauge, &request);
  assert_int_equal(links.report.kind_count, count);
  for (int k = 0; k < count; k++) {
    const md_link_means *means = &links.report.kinds[k];
    assert_int_equal(means->name, numbers[k].name);
    if (numbers[k].plaquette != 0.0) require_near(means->plaquette, numbers[k].plaquette, "plaq");
    require_near(means->link_trace, numbers[k].link_trace, "trace");
    require_near(means->norm2, numbers[k].norm2, "norm2");
  }
  smear_free(&links);
}

static void shared_lattice(void **state) {
  static const golden hisq[] = {{"hisq", 'V', 0.114547443385, 0.484825223594, 0.352638657931},
                                {"hisq", 'W', 0.919747516683, 0.823918741237, 1.0},
                                {"hisq", 'X', 1.557483921777, 0.933849249769, 1.295299124244},
                                {"hisq", 'L', 0.0, -0.022901633267, 0.001736111111}};
  static const golden asqtad[] = {{"asqtad", 'X', 0.563906290409, 0.723595177985, 0.840585666552},
                                  {"asqtad", 'L', 0.0, -0.014506091244, 0.001736111110}};
  md_context *context = *state;
  md_geometry *geometry = NULL;
  md_gauge gauge;
  smear_load(context, getenv("MINIDIRAC_SHARED_LATTICES"), "lat.sample.l4448.gf", &geometry,
             &gauge);
  check(context, &gauge, "hisq", hisq, 4);
  check(context, &gauge, "asqtad", asqtad, 2);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(shared_lattice, context),
  };
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
