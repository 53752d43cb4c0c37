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

/* out += step (a x + b D in) into a field of precision `out`, without a norm asked for, as the
 * filter of a search for modes does it, is what the combination gives when it is added afterwards.
 */
static void steps_into(md_context *context, md_action action, md_precision precision,
                       md_precision out) {
  enum { RHS = 16 };
  const int dims[MD_DIMS] = {16, 16, 16, 32};
  md_geometry *g = md_test_action_geometry(context, action, dims, false);
  const md_backend_request request = {.action = action,
                                      .precision = precision,
                                      .packing = MD_PACKING_STACKED,
                                      .n_rhs = RHS,
                                      .antiperiodic = true};
  md_gauge links[MD_MOST_LINK_FIELDS];
  md_dirac dirac;
  md_field in, x, combined, added, stepped, noise[2], got, want;
  double step[MD_MAX_RHS];
  void *on_device;
  for (int r = 0; r < RHS; r++) step[r] = 0.5 + 0.125 * r;
  md_test_random_links(context, g, action, 3, links);
  MD_REQUIRE(context, md_dirac_create(context, links, "tensor", &request, &dirac));
  assert_true(md_dirac_fuses(&dirac, out));
  MD_REQUIRE(context, md_device_allocate(context, sizeof step, "steps", &on_device));
  MD_REQUIRE(context, md_device_upload(context, on_device, step, sizeof step));
  md_field_shape shape = dirac.shape;
  shape.precision = out;
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &stepped));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_ODD, &in));
  md_field *even[] = {&x, &combined, &added};
  for (int i = 0; i < 3; i++)
    MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, even[i]));
  for (int p = 0; p < 2; p++) md_test_random_field(context, g, MD_DOUBLE, RHS, p, 5 + p, &noise[p]);
  MD_REQUIRE(context, md_field_convert(context, &in, &noise[MD_ODD]));
  MD_REQUIRE(context, md_field_convert(context, &x, &noise[MD_EVEN]));
  MD_REQUIRE(context, md_field_convert(context, &stepped, &x));
  md_linear_copy(&added, &x);
  const md_epilogue combine = {.x = &x, .a = 0.7, .b = -1.5};
  md_epilogue end = combine;
  end.step = on_device;
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &combined, &in, &combine));
  md_linear_axpy(step, &combined, &added);
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &stepped, &in, &end));
  md_test_random_field(context, g, MD_DOUBLE, RHS, MD_EVEN, 1, &got);
  md_test_random_field(context, g, MD_DOUBLE, RHS, MD_EVEN, 1, &want);
  MD_REQUIRE(context, md_field_convert(context, &got, &stepped));
  MD_REQUIRE(context, md_field_convert(context, &want, &added));
  md_require_at_most(md_test_distance(context, &got, &want), 4.0 * md_precision_roundoff(precision),
                     "a step without norms");
  md_field *all[] = {&in, &x, &combined, &added, &stepped, &noise[0], &noise[1], &got, &want};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) md_field_destroy(all[i]);
  md_device_free(on_device);
  md_dirac_destroy(&dirac);
  md_test_destroy_links(action, links);
  md_geometry_destroy(g);
}

static void steps_need_no_norms(void **state) {
  md_context *context = *state;
  if (!md_test_fits(context, 16, 16, 16, 32)) return;
  static const md_action actions[] = {MD_ACTION_NAIVE, MD_ACTION_HISQ};
  for (int a = 0; a < 2; a++) {
    steps_into(context, actions[a], MD_DOUBLE, MD_DOUBLE);
    steps_into(context, actions[a], MD_HALF, MD_SINGLE);
    steps_into(context, actions[a], MD_HALF, MD_HALF);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(matches_reference),
                                    cmocka_unit_test(half_keeps_range),
                                    cmocka_unit_test(ranges_are_disjoint),
                                    cmocka_unit_test(refuses),
                                    cmocka_unit_test(marches),
                                    cmocka_unit_test(marches_with_two_link_fields),
                                    cmocka_unit_test(steps_need_no_norms)};
MD_RUN_GPU_TESTS(tests)
