/* Links smeared on the GPU against those of the host, to rounding; on two ranks through the halo.
 */
#include "gpu_tests.h"
#include "lattice/gauge/smear.h"

#include <float.h>
#include <math.h>

static void compare(md_context *context, const md_gauge *thin, const char *action,
                    double tolerance) {
  md_smear_request request = md_smear_defaults(md_recipe_find(action));
  md_gauge fat[2], long_links[2];
  md_smear_report report[2];
  const bool has_long = md_recipe_has_long(request.recipe);
  request.u0 = 0.9;
  request.steps = 2;
  if (md_recipe_takes(request.recipe, "naik-epsilon")) request.naik_epsilon = 0.4;
  for (int device = 0; device < 2; device++) {
    request.space = device ? MD_DEVICE : MD_HOST;
    MD_REQUIRE(context, md_smear(context, thin, &request, &fat[device],
                                 has_long ? &long_links[device] : NULL, &report[device]));
  }
  md_require_at_most(md_test_gauge_difference(context, &fat[0], &fat[1]), tolerance, action);
  if (has_long)
    md_require_at_most(md_test_gauge_difference(context, &long_links[0], &long_links[1]), tolerance,
                       action);
  for (int device = 0; device < 2; device++) {
    md_gauge_destroy(&fat[device]);
    if (has_long) md_gauge_destroy(&long_links[device]);
  }
  assert_int_equal(report[0].kind_count, report[1].kind_count);
  assert_int_equal(report[0].projection.links, report[1].projection.links);
  assert_int_equal(report[0].projection.fallbacks, report[1].projection.fallbacks);
  for (int k = 0; k < report[0].kind_count; k++)
    md_require_at_most(fabs(report[0].kinds[k].norm2 - report[1].kinds[k].norm2), tolerance,
                       "norm2");
}

static void host_and_device(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 8, 4, 6, 8, context->ranks == 1);
  md_gauge thin;
  md_test_random_gauge(context, geometry, 31, &thin);
  compare(context, &thin, "asqtad", 100 * DBL_EPSILON);
  compare(context, &thin, "fat7", 100 * DBL_EPSILON);
  compare(context, &thin, "stout", 100 * DBL_EPSILON);
  compare(context, &thin, "hisq", 2 * DBL_EPSILON / MD_PROJECT_RATIO);
  compare(context, &thin, "ape", 2 * DBL_EPSILON / MD_PROJECT_RATIO);
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(host_and_device)};

MD_RUN_GPU_TESTS(tests)
