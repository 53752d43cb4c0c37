/* H of every backend that serves it against the oracle's: precisions, links of 18 and 12 reals, one
 * and many right-hand sides and slices, boundaries, twists, ends; halos along every direction. */
#include "base/device.h"
#include "lattice/fields/linear.h"
#include "lattice/halo/halo.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* H in, or 0.3 x - 0.7 H in, in double on the host. */
static void hop_of(md_context *context, const md_gauge *gauge, const char *backend,
                   const md_backend_request *request, const md_field *in, const md_field *x,
                   md_field *out) {
  md_dirac dirac;
  md_field source, result, before;
  const md_hop_end end = {.x = &before, .a = 0.3, .b = -0.7};
  MD_REQUIRE(context, md_dirac_create(context, gauge, backend, request, &dirac));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, in->parity, &source));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, 1 - in->parity, &result));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, 1 - in->parity, &before));
  MD_REQUIRE(context, md_field_convert(context, &source, in));
  if (x) MD_REQUIRE(context, md_field_convert(context, &before, x));
  MD_REQUIRE(context, md_dirac_hop(context, &dirac, &result, &source, x ? &end : NULL));
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, in->components, in->n_rhs, true, false};
  MD_REQUIRE(context, md_field_create(context, in->geometry, &shape, 1 - in->parity, out));
  MD_REQUIRE(context, md_field_convert(context, out, &result));
  md_field *all[] = {&source, &result, &before};
  for (int i = 0; i < 3; i++) md_field_destroy(all[i]);
  md_dirac_destroy(&dirac);
}

static void compare(md_context *context, const md_gauge *gauge, const md_backend *b,
                    const md_backend_request *request, int parity, bool ends) {
  const md_backend_request exact = {.n_rhs = request->n_rhs,
                                    .antiperiodic = request->antiperiodic,
                                    .action = request->action,
                                    .twist = request->twist,
                                    .walls = request->walls};
  const md_field_shape shape = {MD_DOUBLE,      MD_HOST, md_request_reals(request),
                                request->n_rhs, true,    false};
  md_field in, x, expected, got;
  char name[128];
  snprintf(name, sizeof name, "%s %s %s %s, %d slices, %d rhs%s", b->name,
           md_packing_name(request->packing), md_precision_name(request->precision),
           md_reconstruct_name(request->reconstruct), md_request_slices(request), request->n_rhs,
           ends ? ", end" : "");
  md_test_random_shape(context, gauge->geometry, &shape, parity, 3, &in);
  md_test_random_shape(context, gauge->geometry, &shape, 1 - parity, 4, &x);
  hop_of(context, gauge, "cpu_ref", &exact, &in, ends ? &x : NULL, &expected);
  hop_of(context, gauge, b->name, request, &in, ends ? &x : NULL, &got);
  md_require_at_most(md_test_distance(context, &got, &expected),
                     6.0 * md_precision_roundoff(request->precision), name);
  md_field *all[] = {&in, &x, &expected, &got};
  for (int i = 0; i < 4; i++) md_field_destroy(all[i]);
}

/* The one that serves quarks with spin. */
static md_packing packing_of(const md_backend *b) {
  return b->packings & 1u << MD_PACKING_NONE ? MD_PACKING_NONE : MD_PACKING_STACKED;
}

/* Backends of a device only where they are asked for: gpu_wilson_hop. */
static bool is_wanted(const md_backend *b) {
  const char *only = getenv("MINIDIRAC_TEST_BACKEND");
  return only ? strcmp(b->name, only) == 0 : b->space == MD_HOST;
}

static void every_backend_is_the_oracle(void **state) {
  md_context *context = *state;
  enum { COUNTS = 5 };
  static const int counts[COUNTS] = {1, 2, 3, 4, 12}, slices[] = {3, 2, 5, 8, 12, 16};
  bool on_device = false;
  for (const md_backend *const *b = md_backends(); *b; b++)
    on_device = on_device || (is_wanted(*b) && (*b)->space == MD_DEVICE);
  if (on_device && md_agree(context, md_device_open(context)) != MD_OK) skip();
  md_geometry *g = md_test_geometry(context, 4, 6, 4, 8, true);
  md_gauge gauge;
  int ran = 0;
  md_test_random_gauge(context, g, 7, &gauge);
  for (const md_backend *const *b = md_backends(); *b; b++)
    for (int k = 0; is_wanted(*b) && k < MD_PRECISIONS * MD_RECONSTRUCTS * COUNTS * 2; k++) {
      const bool walls = k % 2;
      const int more = on_device ? k / (2 * COUNTS) % (int)(sizeof slices / sizeof *slices) : 0;
      md_backend_request request = {.n_rhs = counts[k / 2 % COUNTS],
                                    .packing = packing_of(*b),
                                    .reconstruct =
                                        (md_reconstruct)(k / (2 * COUNTS) % MD_RECONSTRUCTS),
                                    .precision = (md_precision)(k / (2 * COUNTS) / MD_RECONSTRUCTS),
                                    .antiperiodic = k % 4 != 3,
                                    .action = walls ? MD_ACTION_MOBIUS : MD_ACTION_WILSON,
                                    .walls = {walls ? slices[more] : 0, 1.8, 1.5, 0.5}};
      const md_backend *found;
      if (request.reconstruct == MD_RECONSTRUCT_18 && request.n_rhs != 3)
        request.twist = (md_twist){0.3, 2};
      if (md_backend_find(context, (*b)->name, &request, &found) != MD_OK) continue;
      compare(context, &gauge, *b, &request, k / 4 % 2, walls);
      ran++;
    }
  assert_true(ran >= (on_device ? 120 : getenv("MINIDIRAC_TEST_BACKEND") ? 10 : 10 + 100 + 30));
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

/* H with halos in all directions is H with those of the rank grid, bit by bit; where numbers are
 * not of 16 bits half spinors travel. */
static void halos_change_no_bit(void **state) {
  md_context *context = *state;
  md_geometry *g[2];
  md_gauge gauge[2];
  for (int k = 0; k < 2; k++) {
    g[k] = md_test_geometry(context, 4, 6, 4, 8, k);
    md_test_random_gauge(context, g[k], 7, &gauge[k]);
  }
  for (int k = 0; k < MD_PRECISIONS * 2 * 2; k++) {
    const md_backend_request request = {.n_rhs = k % 2 ? 3 : 1,
                                        .precision = (md_precision)(k / 4),
                                        .antiperiodic = true,
                                        .action = MD_ACTION_MOBIUS,
                                        .walls = {3, 1.8, 1.5, 0.5}};
    md_field in, out[2];
    for (int halo = 0; halo < 2; halo++) {
      const md_field_shape shape = {MD_DOUBLE,     MD_HOST, md_request_reals(&request),
                                    request.n_rhs, true,    false};
      md_test_random_shape(context, g[halo], &shape, k / 2 % 2, 3, &in);
      hop_of(context, &gauge[halo], "cpu_simd", &request, &in, NULL, &out[halo]);
      md_field_destroy(&in);
    }
    for (int64_t i = 0; i < out[0].sites * request.n_rhs; i++) {
      double v[2][MD_MAX_COMPONENTS];
      for (int h = 0; h < 2; h++)
        md_field_get(&out[h], i / request.n_rhs, (int)(i % request.n_rhs), v[h]);
      assert_memory_equal(v[0], v[1], sizeof(double) * (size_t)out[0].components);
    }
    for (int h = 0; h < 2; h++) md_field_destroy(&out[h]);
    md_dirac dirac;
    md_halo *whole;
    MD_REQUIRE(context, md_dirac_create(context, &gauge[1], "cpu_simd", &request, &dirac));
    MD_REQUIRE(context, md_halo_create(context, g[1], &dirac.shape, NULL, &whole));
    const bool half = md_precision_bytes(request.precision) > 2;
    assert_int_equal(md_halo_bytes(dirac.halo) * (half ? 2 : 1), md_halo_bytes(whole));
    md_halo_destroy(whole);
    md_dirac_destroy(&dirac);
  }
  for (int k = 0; k < 2; k++) {
    md_gauge_destroy(&gauge[k]);
    md_geometry_destroy(g[k]);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(every_backend_is_the_oracle),
                                    cmocka_unit_test(halos_change_no_bit)};
MD_RUN_TESTS(tests)
