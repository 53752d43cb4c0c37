/* The backend `tensor` against cpu_ref on a GPU: the tests that tensor_emu passes, and a lattice
 * large enough for the marching kernel. */
#include "conformance.h"

#include "../cuda/gpu_tests.h"
#include "base/device.h"
#include "dirac/backend.h"
#include "lattice/fields/linear.h"

static void matches_reference(void **state) {
  tensor_matches_reference(*state, "tensor");
}
static void half_keeps_range(void **state) {
  tensor_half_keeps_range(*state, "tensor");
}
static void ranges_are_disjoint(void **state) {
  tensor_ranges_are_disjoint(*state, "tensor");
}
static void refuses(void **state) {
  tensor_refuses(*state, "tensor");
}
static void marches(void **state) {
  tensor_marches(*state, "tensor", MD_ACTION_NAIVE);
}
static void marches_with_two_link_fields(void **state) {
  tensor_marches(*state, "tensor", MD_ACTION_HISQ);
}

/* out += step (a x + b D in) without a norm asked for, as the filter of a search for modes does it,
 * is what the combination gives when it is added afterwards. */
static void steps_need_no_norms(void **state) {
  md_context *context = *state;
  if (!md_test_fits(context, 16, 16, 16, 32)) return;
  md_geometry *g = md_test_geometry(context, 16, 16, 16, 32, false);
  const md_backend_request request = {
      .precision = MD_DOUBLE, .packing = MD_PACKING_STACKED, .n_rhs = 16, .antiperiodic = true};
  md_gauge gauge;
  md_dirac dirac;
  md_field in, x, stepped, added;
  double one[MD_MAX_RHS];
  void *step;
  for (int r = 0; r < 16; r++) one[r] = 1.0;
  md_test_random_gauge(context, g, 3, &gauge);
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "tensor", &request, &dirac));
  assert_true(md_dirac_fuses(&dirac, MD_DOUBLE));
  MD_REQUIRE(context, md_device_allocate(context, sizeof one, "steps", &step));
  MD_REQUIRE(context, md_device_upload(context, step, one, sizeof one));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_ODD, &in));
  md_field *even[] = {&x, &stepped, &added};
  for (int i = 0; i < 3; i++)
    MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, even[i]));
  md_field noise[2];
  for (int p = 0; p < 2; p++) md_test_random_field(context, g, MD_DOUBLE, 16, p, 5 + p, &noise[p]);
  MD_REQUIRE(context, md_field_convert(context, &in, &noise[MD_ODD]));
  MD_REQUIRE(context, md_field_convert(context, &x, &noise[MD_EVEN]));
  md_linear_copy(&stepped, &x);
  const md_epilogue combined = {.x = &x, .a = 0.7, .b = -1.5};
  md_epilogue end = combined;
  end.step = step;
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &added, &in, &combined));
  md_linear_axpy(one, &x, &added);
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &stepped, &in, &end));
  md_field got, want;
  md_test_random_field(context, g, MD_DOUBLE, 16, MD_EVEN, 1, &got);
  md_test_random_field(context, g, MD_DOUBLE, 16, MD_EVEN, 1, &want);
  MD_REQUIRE(context, md_field_convert(context, &got, &stepped));
  MD_REQUIRE(context, md_field_convert(context, &want, &added));
  md_require_at_most(md_test_distance(context, &got, &want), 4.0 * md_precision_roundoff(MD_DOUBLE),
                     "a step without norms");
  md_field *all[] = {&in, &x, &stepped, &added, &noise[0], &noise[1], &got, &want};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) md_field_destroy(all[i]);
  md_device_free(step);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(matches_reference),
                                    cmocka_unit_test(half_keeps_range),
                                    cmocka_unit_test(ranges_are_disjoint),
                                    cmocka_unit_test(refuses),
                                    cmocka_unit_test(marches),
                                    cmocka_unit_test(marches_with_two_link_fields),
                                    cmocka_unit_test(steps_need_no_norms)};
MD_RUN_GPU_TESTS(tests)
