/* Means over each kind of link, and coefficients, against numbers of another code or of a checked
 * state of this one. */
#include "lattice/gauge/recipes.h"
#include "smear_support.h"

#include <math.h>
#include <stdlib.h>

typedef struct golden {
  char name;
  double plaquette, link_trace, norm2; /* plaquette 0: none */
} golden;

static void require_near(double value, double expected, double tolerance, const char *what) {
  md_require_at_most(fabs(value - expected), tolerance, what);
}

/* Kinds of the report in the order of the table; `absolute` tolerance, or relative. */
static void check(md_context *context, const md_gauge *gauge, const md_smear_request *request,
                  const golden *numbers, int count, double tolerance, bool absolute) {
  smear_links links = smear_make(context, gauge, request);
  assert_int_equal(links.report.kind_count, count);
  for (int k = 0; k < count; k++) {
    const md_link_means *means = &links.report.kinds[k];
    const golden *g = &numbers[k];
    const double unit[] = {absolute ? 1.0 : fabs(g->plaquette),
                           absolute ? 1.0 : fabs(g->link_trace), absolute ? 1.0 : fabs(g->norm2)};
    assert_int_equal(means->name, g->name);
    if (g->plaquette != 0.0)
      require_near(means->plaquette, g->plaquette, tolerance * unit[0], "plaquette");
    require_near(means->link_trace, g->link_trace, tolerance * unit[1], "link trace");
    require_near(means->norm2, g->norm2, tolerance * unit[2], "norm2");
  }
  smear_free(&links);
}

/* A lattice of the MILC code. These numbers come from another implementation, whose formulas
 * reproduce all digits that MILC prints for correlators. Links of the file are unitary to 1.5e-7.
 */
static void of_another_code(void **state) {
  static const golden hisq[] = {{'V', 0.114547443385, 0.484825223594, 0.352638657931},
                                {'W', 0.919747516683, 0.823918741237, 1.0},
                                {'X', 1.557483921777, 0.933849249769, 1.295299124244},
                                {'L', 0.0, -0.022901633267, 0.001736111111}};
  static const golden asqtad[] = {{'X', 0.563906290409, 0.723595177985, 0.840585666552},
                                  {'L', 0.0, -0.014506091244, 0.001736111110}};
  md_context *context = *state;
  md_geometry *geometry = NULL;
  md_gauge gauge;
  if (!smear_load(context, getenv("MINIDIRAC_SHARED_LATTICES"), "lat.sample.l4448.gf", &geometry,
                  &gauge))
    skip();
  md_smear_request request = smear_request("hisq");
  check(context, &gauge, &request, hisq, 4, 1e-6, false);
  request = smear_request("asqtad");
  check(context, &gauge, &request, asqtad, 2, 1e-6, false);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

/* A lattice of inputs/: numbers of this code when it met those above. */
static void of_inputs(void **state) {
  static const golden hisq[] = {{'V', 0.115996181400451, -0.0012436839442451, 0.354838157162887},
                                {'W', 0.918185636114136, -0.00122693189134975, 1.0},
                                {'X', 1.56612652194455, -0.000722640515160623, 1.30004782908426},
                                {'L', 0.0, -0.0002882441787671, 0.00173611111111111}};
  static const golden asqtad[] = {{'X', 1.15413547339648, 0.00141667359395381, 1.19842038823072},
                                  {'L', 0.0, 0.000323192955593908, 0.00317383037048499}};
  static const golden ape[] = {{'V', 0.709654347487887, -0.000975322734107051, 0.864991057569202},
                               {'W', 0.944289694234917, -0.000750506132119515, 1.0}};
  static const golden stout[] = {{'W', 0.940747608280915, -0.000760460757301106, 1.0}};
  const double tolerance = 1e-13;
  md_context *context = *state;
  md_geometry *geometry = NULL;
  md_gauge gauge;
  assert_true(
      smear_load(context, getenv("MINIDIRAC_INPUTS"), "beta5.7_4x4x4x8.lime", &geometry, &gauge));
  md_smear_request request = smear_request("hisq");
  check(context, &gauge, &request, hisq, 4, tolerance, true);
  request = smear_request("asqtad");
  request.u0 = 0.86;
  check(context, &gauge, &request, asqtad, 2, tolerance, true);
  request = smear_request("fat7");
  check(context, &gauge, &request, hisq, 1, tolerance, true);
  request = smear_request("ape");
  request.steps = 2;
  request.alpha = 0.6;
  check(context, &gauge, &request, ape, 2, tolerance, true);
  request = smear_request("stout");
  request.steps = 2;
  request.rho = 0.12;
  check(context, &gauge, &request, stout, 1, tolerance, true);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

/* The coefficients of asqtad with u0 = 0.502 as MILC printed them into a file of fat links; with
 * the phases in the links that it has, those of three and seven links have the other sign. */
static void coefficients_of_milc(void **state) {
  (void)state;
  md_smear_request request = smear_request("asqtad");
  request.u0 = 0.502;
  const md_path_weights w = md_smear_weights(&request, &request.recipe->levels[0]);
  require_near(w.one, 6.25e-1, 1e-7, "one link");
  require_near(md_smear_naik_weight(&request), -1.653413e-01, 1e-7, "Naik");
  require_near(w.three, 2.480119e-01, 1e-7, "three links");
  require_near(w.five, 2.460397e-01, 1e-7, "five links");
  require_near(w.seven, 1.627221e-01, 1e-7, "seven links");
  require_near(w.lepage, -9.841587e-01, 1e-7, "Lepage");
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(of_another_code, context),
                                     cmocka_unit_test_prestate(of_inputs, context),
                                     cmocka_unit_test(coefficients_of_milc)};
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
