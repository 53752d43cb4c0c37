/* Products of many vectors with a few on the device against the same on the host, and sums whose
 * bits repeat. */
#include "gpu_tests.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"

#include <math.h>
#include <string.h>

enum { COUNT = 37, MOST_RHS = 19, ROWS = 18 }; /* more than a tile of each */

static int components = MD_FERMION_REALS; /* of the fields that the tests make now */

static void random_field(md_context *context, const md_geometry *g, md_precision precision,
                         int n_rhs, uint64_t seed, md_field *f) {
  const md_field_shape shape = {precision, MD_HOST, components, n_rhs, true, false};
  md_test_random_shape(context, g, &shape, MD_EVEN, seed, f);
}

static void upload(md_context *context, const md_field *host, md_field *device) {
  const md_field_shape shape = {host->precision, MD_DEVICE, components, host->n_rhs, true, false};
  MD_REQUIRE(context, md_field_create(context, host->geometry, &shape, MD_EVEN, device));
  MD_REQUIRE(context, md_field_convert(context, device, host));
}

static void make(md_context *context, const md_geometry *g, md_precision precision,
                 md_field host[COUNT], md_field device[COUNT]) {
  for (int k = 0; k < COUNT; k++) {
    double norm2, none = 0.0;
    random_field(context, g, precision, 1, (uint64_t)k + 1, &host[k]);
    MD_REQUIRE(context, md_linear_norm2(context, &host[k], NULL, &norm2));
    const double scale = 1.0 / sqrt(norm2);
    md_linear_axpby(&scale, &host[k], &none, &host[k]);
    upload(context, &host[k], &device[k]);
  }
}

static void drop(md_field *host, md_field *device, int count) {
  for (int k = 0; k < count; k++) {
    md_field_destroy(&host[k]);
    md_field_destroy(&device[k]);
  }
}

static void same(md_context *context, const md_field *host, const md_field *device) {
  md_field back;
  random_field(context, host->geometry, MD_DOUBLE, host->n_rhs, 99, &back);
  MD_REQUIRE(context, md_field_convert(context, &back, device));
  md_require_at_most(md_test_distance(context, &back, host), 1e-14, "a sum of vectors");
  md_field_destroy(&back);
}

static void check(md_context *context, const md_geometry *g, md_precision precision, int n_rhs) {
  static double on_host[2 * COUNT * MOST_RHS], on_device[2 * COUNT * MOST_RHS];
  static double again[2 * COUNT * MOST_RHS];
  const int reals = 2 * COUNT * n_rhs;
  md_field host[COUNT], device[COUNT], y, z;
  double norm2[MOST_RHS];
  make(context, g, precision, host, device);
  random_field(context, g, MD_DOUBLE, n_rhs, 77, &y);
  upload(context, &y, &z);
  MD_REQUIRE(context, md_linear_norm2(context, &y, NULL, norm2));
  MD_REQUIRE(context, md_panel_dots(context, COUNT, host, &y, on_host));
  MD_REQUIRE(context, md_panel_dots(context, COUNT, device, &z, on_device));
  MD_REQUIRE(context, md_panel_dots(context, COUNT, device, &z, again));
  assert_memory_equal(again, on_device, (size_t)reals * sizeof *again);
  for (int i = 0; i < reals; i++)
    md_require_at_most(fabs(on_host[i] - on_device[i]), 1e-14 * sqrt(norm2[i / 2 % n_rhs]),
                       "inner product on the device");
  MD_REQUIRE(context, md_panel_add(context, COUNT, host, on_host, &y));
  MD_REQUIRE(context, md_panel_add(context, COUNT, device, on_host, &z));
  same(context, &y, &z);
  drop(&y, &z, 1);
  drop(host, device, COUNT);
}

/* Vectors side by side in a field, some places left empty, and back: the same bits as on the host.
 */
static void check_columns(md_context *context, const md_geometry *g, int count, int n_rhs) {
  md_field host[COUNT], device[COUNT], block, on_device, back;
  make(context, g, MD_DOUBLE, host, device);
  random_field(context, g, MD_DOUBLE, n_rhs, 5, &block);
  random_field(context, g, MD_DOUBLE, n_rhs, 6, &back);
  upload(context, &block, &on_device);
  MD_REQUIRE(context, md_columns_join(context, count, host, &block));
  MD_REQUIRE(context, md_columns_join(context, count, device, &on_device));
  MD_REQUIRE(context, md_field_convert(context, &back, &on_device));
  assert_true(md_test_distance(context, &back, &block) == 0.0);
  MD_REQUIRE(context, md_columns_split(context, &on_device, count, device + COUNT - count));
  for (int k = 0; k < count; k++) {
    md_field one;
    random_field(context, g, MD_DOUBLE, 1, 7, &one);
    MD_REQUIRE(context, md_field_convert(context, &one, &device[COUNT - count + k]));
    assert_true(md_test_distance(context, &one, &host[k]) == 0.0);
    md_field_destroy(&one);
  }
  md_field_destroy(&back);
  drop(&block, &on_device, 1);
  drop(host, device, COUNT);
}

static void columns(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 6, 4, 8, 4, false);
  check_columns(context, g, 16, 16);
  check_columns(context, g, 5, 16);
  check_columns(context, g, 18, 19);
  md_geometry_destroy(g);
}

static void against_host(void **state) {
  static const int counts[] = {1, 3, 16, MOST_RHS};
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 6, 4, 8, 4, false);
  for (md_precision p = 0; p < MD_PRECISIONS; p++)
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check(context, g, p, counts[i]);
  md_geometry_destroy(g);
}

static void rotate(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 6, 4, 8, 4, false);
  md_field host[COUNT], device[COUNT], out[ROWS], out_device[ROWS];
  double rotation[2 * ROWS * COUNT];
  make(context, g, MD_DOUBLE, host, device);
  for (int i = 0; i < 2 * ROWS * COUNT; i++) rotation[i] = sin(1.0 + i);
  for (int i = 0; i < ROWS; i++) {
    random_field(context, g, MD_DOUBLE, 1, 5, &out[i]);
    upload(context, &out[i], &out_device[i]);
  }
  MD_REQUIRE(context, md_panel_rotate(context, COUNT, host, ROWS, rotation, out));
  MD_REQUIRE(context, md_panel_rotate(context, COUNT, device, ROWS, rotation, out_device));
  for (int i = 0; i < ROWS; i++) same(context, &out[i], &out_device[i]);
  drop(out, out_device, ROWS);
  drop(host, device, COUNT);
  md_geometry_destroy(g);
}

/* All of that with other numbers of reals per site. */
static void with_any_components(void **state) {
  static const int any[] = {24, 64};
  for (int k = 0; k < 2; k++) {
    components = any[k];
    against_host(state);
    columns(state);
    rotate(state);
  }
  components = MD_FERMION_REALS;
}

static struct CMUnitTest tests[] = {cmocka_unit_test(against_host), cmocka_unit_test(columns),
                                    cmocka_unit_test(rotate),
                                    cmocka_unit_test(with_any_components)};
MD_RUN_GPU_TESTS(tests)
