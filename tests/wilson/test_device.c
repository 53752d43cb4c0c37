/* On a device: the matrices of the fifth dimension, and Schur complements over them, against the
 * host's. */
#include "../cuda/gpu_tests.h"
#include "lattice/fields/linear.h"
#include "wilson_support.h"

#include <math.h>
#include <stdio.h>

static const int slices_of[] = {1, 2, 3, 4, 5, 8, 12, 16}, counts[] = {1, 3, 16};
enum { SLICES = sizeof slices_of / sizeof *slices_of };

static md_backend_request request_of(int slices, int n_rhs) {
  return (md_backend_request){.n_rhs = n_rhs,
                              .antiperiodic = true,
                              .action = slices > 1 ? MD_ACTION_MOBIUS : MD_ACTION_WILSON,
                              .walls = {slices > 1 ? slices : 0, 1.8, 1.5, 0.5}};
}

/* The result of the device in double on the host beside that of the same numbers there. */
static void compare_apply(md_context *context, const md_geometry *g, md_precision precision,
                          const md_backend_request *r, const md_wall_matrix *m,
                          const md_wall_way *way) {
  const md_field_shape wide = {MD_DOUBLE, MD_HOST, md_request_reals(r), r->n_rhs, true, false};
  md_field_shape narrow = {precision, MD_DEVICE, md_request_reals(r), r->n_rhs, true, true};
  md_field in, out, got, in_device, out_device;
  char name[128];
  md_test_random_shape(context, g, &wide, MD_EVEN, 5, &in);
  md_test_random_shape(context, g, &wide, MD_EVEN, 6, &out);
  MD_REQUIRE(context, md_field_create(context, g, &wide, MD_EVEN, &got));
  MD_REQUIRE(context, md_field_create(context, g, &narrow, MD_EVEN, &in_device));
  MD_REQUIRE(context, md_field_create(context, g, &narrow, MD_EVEN, &out_device));
  MD_REQUIRE(context, md_field_convert(context, &in_device, &in));
  MD_REQUIRE(context, md_field_convert(context, &out_device, &out));
  MD_REQUIRE(context, md_field_convert(context, &in, &in_device)); /* as it was rounded */
  MD_REQUIRE(context, md_field_convert(context, &out, &out_device));
  md_wall_apply(m, way, &in, &out);
  md_wall_apply(m, way, &in_device, &out_device);
  MD_REQUIRE(context, md_field_convert(context, &got, &out_device));
  snprintf(name, sizeof name, "%s, %d slices, %d rhs, %s%s%s", md_precision_name(precision),
           md_request_slices(r), r->n_rhs, way->adjoint ? "adjoint " : "",
           way->gamma5 ? "gamma5 " : "", way->add ? "added" : "");
  /* Both round sums over slices, in orders of their own. */
  md_require_at_most(md_test_distance(context, &got, &out),
                     (6.0 + 2.0 * md_request_slices(r)) * md_precision_roundoff(precision), name);
  md_field *all[] = {&in, &out, &got, &in_device, &out_device};
  for (int i = 0; i < 5; i++) md_field_destroy(all[i]);
}

static void walls(void **state) {
  md_context *context = *state;
  static const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE, MD_HALF, MD_BF16};
  md_geometry *g = md_test_geometry(context, 4, 4, 2, 6, false);
  for (int k = 0; k < SLICES * 3 * 4; k++) {
    md_backend_request r = request_of(slices_of[k / 12], counts[k / 4 % 3]);
    md_wall_matrices w;
    if (k % 3 == 2) r.walls.height = 4.2; /* no recursion */
    MD_REQUIRE(context, md_wall_matrices_make(context, &r, -0.3, &w));
    const md_wall_matrix *of[] = {&w.a, &w.b, &w.a_inverse, &w.k, &w.site, NULL};
    for (int i = 0; i < 6; i++) {
      const md_wall_way way = {(i + k) % 2, (i + k) / 2 % 2, (i + k) / 4 % 2, -0.7};
      compare_apply(context, g, precisions[k % 4], &r, of[i], &way);
    }
  }
  md_geometry_destroy(g);
}

/* S in, or S^dag in, in double on the host. */
static void schur_of(md_context *context, const md_gauge *gauge, const char *backend,
                     const md_backend_request *r, bool adjoint, const md_field *in, md_field *out) {
  md_dirac dirac;
  md_operator full;
  md_field from, to;
  MD_REQUIRE(context, md_dirac_create(context, gauge, backend, r, &dirac));
  MD_REQUIRE(context, md_full_create(context, &dirac, 0.1, &full));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, &from));
  MD_REQUIRE(context, md_dirac_field(context, &dirac, MD_EVEN, &to));
  MD_REQUIRE(context, md_field_convert(context, &from, in));
  MD_REQUIRE(context, md_wilson_schur(context, &full, adjoint, &to, &from));
  MD_REQUIRE(context, md_field_convert(context, out, &to));
  md_field_destroy(&from);
  md_field_destroy(&to);
  md_operator_destroy(&full);
  md_dirac_destroy(&dirac);
}

/* In 16 bits four matrices and two hops round what they read and leave: a few units each. */
static double tolerance_of(md_precision precision) {
  return precision == MD_DOUBLE ? 1e-14 : 8.0 * md_precision_roundoff(precision);
}

static void compare_schur(md_context *context, const md_gauge *gauge, const char *backend,
                          md_precision precision, const md_backend_request *exact, bool adjoint) {
  const bool tiles = backend[0] == 't';
  const md_field_shape shape = {MD_DOUBLE,    MD_HOST, md_request_reals(exact),
                                exact->n_rhs, true,    false};
  md_backend_request r = *exact;
  md_field in, expected, got;
  char name[128];
  r.precision = precision;
  r.packing = tiles ? MD_PACKING_STACKED : MD_PACKING_NONE;
  snprintf(name, sizeof name, "S%s of %s, %s, %d slices, %d rhs", adjoint ? "^dag" : "", backend,
           md_precision_name(precision), md_request_slices(exact), exact->n_rhs);
  md_test_random_shape(context, gauge->geometry, &shape, MD_EVEN, 5, &in);
  MD_REQUIRE(context, md_field_create(context, gauge->geometry, &shape, MD_EVEN, &expected));
  MD_REQUIRE(context, md_field_create(context, gauge->geometry, &shape, MD_EVEN, &got));
  schur_of(context, gauge, "cpu_simd", exact, adjoint, &in, &expected);
  schur_of(context, gauge, backend, &r, adjoint, &in, &got);
  md_require_at_most(md_test_distance(context, &got, &expected), tolerance_of(precision), name);
  md_field *all[] = {&in, &expected, &got};
  for (int i = 0; i < 3; i++) md_field_destroy(all[i]);
}

/* Extents of a rank's lattice that tiles of `stacked` divide, and too few sites for a march. */
static void schur(void **state) {
  md_context *context = *state;
  static const int dims[][MD_DIMS] = {{4, 4, 4, 8}, {16, 16, 16, 32}};
  for (int d = 0; d < 2; d++) {
    md_geometry *g =
        md_test_geometry(context, dims[d][0], dims[d][1], dims[d][2], dims[d][3], true);
    md_gauge gauge;
    md_test_random_gauge(context, g, 11, &gauge);
    for (int k = d ? 6 : 0; k < SLICES * (d ? 2 : 4); k++) {
      const md_backend_request r = request_of(slices_of[d ? k / 2 : k / 4], d ? 1 : 1 + k / 2 % 2);
      compare_schur(context, &gauge, "cuda", MD_DOUBLE, &r, k % 2);
      compare_schur(context, &gauge, "cuda", MD_HALF, &r, k % 2);
      if (d == 0) compare_schur(context, &gauge, "tensor", MD_DOUBLE, &r, k % 2);
      compare_schur(context, &gauge, "tensor", MD_HALF, &r, k % 2);
      compare_schur(context, &gauge, "tensor", MD_BF16, &r, k % 2);
    }
    for (int n = 4; n <= 16 && d == 1; n += 4) { /* tiles of four and of eight columns */
      const md_backend_request r = request_of(1, n);
      compare_schur(context, &gauge, "tensor", n < 16 ? MD_HALF : MD_BF16, &r, n == 8);
    }
    md_gauge_destroy(&gauge);
    md_geometry_destroy(g);
  }
}

/* Random numbers as a field of the operator holds them, on the host. */
static void random_of(md_context *context, const md_operator *a, uint64_t seed, md_field *f,
                      md_field *numbers) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, a->shape.components, 1, true, false};
  md_test_random_shape(context, a->geometry, &shape, MD_EVEN, seed, numbers);
  MD_REQUIRE(context, md_operator_field(context, a, f));
  MD_REQUIRE(context, md_field_convert(context, f, numbers));
  MD_REQUIRE(context, md_field_convert(context, numbers, f));
}

static void require_norm(md_context *context, double norm, const md_field *of, const char *name) {
  double expected;
  MD_REQUIRE(context, md_linear_norm2(context, of, NULL, &expected));
  md_require_at_most(fabs(norm / expected - 1.0), md_precision_roundoff(MD_HALF), name);
}

/* What CG takes of S S^dag in two passes, against vectors that are added one by one. */
static void compare_factors(md_context *context, md_operator *a, const char *name) {
  const double by = -0.37, guess = 1e5;
  md_field p, r, p_host, r_host, product, product_host;
  double norm;
  random_of(context, a, 5, &p, &p_host);
  random_of(context, a, 6, &r, &r_host);
  random_of(context, a, 7, &product, &product_host);
  MD_REQUIRE(context, md_wilson_schur(context, a, true, &product, &p));
  MD_REQUIRE(context, md_field_convert(context, &product_host, &product));
  MD_REQUIRE(context, a->factors->first(context, a, &p, &guess, &norm));
  MD_REQUIRE(context, md_field_convert(context, &p_host, a->factor));
  assert_true(md_test_distance(context, &p_host, &product_host) == 0.0);
  require_norm(context, norm, &p_host, name);
  MD_REQUIRE(context, md_field_convert(context, &p, a->factor));
  MD_REQUIRE(context, md_wilson_schur(context, a, false, &product, &p));
  MD_REQUIRE(context, md_field_convert(context, &product_host, &product));
  md_linear_axpy(&by, &product_host, &r_host);
  MD_REQUIRE(context, a->factors->second(context, a, &by, &r, &guess, &norm));
  MD_REQUIRE(context, md_field_convert(context, &p_host, &r));
  md_require_at_most(md_test_distance(context, &p_host, &r_host), tolerance_of(MD_HALF), name);
  require_norm(context, norm, &p_host, name);
  md_field *all[] = {&p, &r, &p_host, &r_host, &product, &product_host};
  for (int i = 0; i < 6; i++) md_field_destroy(all[i]);
}

/* A march and a gathering kernel leave the same bits, of norms too. */
static void compare_shapes(md_context *context, md_dirac *dirac, md_operator *a, const char *name) {
  const md_launch_shapes *shapes = dirac->backend->shapes;
  const double by = -0.37, guess = 1e5;
  md_field p, r, p_host, found[2];
  double norm[2][2];
  for (int shape = 0; shape < shapes->count(dirac->state); shape++) {
    const int k = shape > 0;
    shapes->take(dirac->state, shape);
    random_of(context, a, 5, &p, &p_host);
    random_of(context, a, 6, &r, &found[k]);
    MD_REQUIRE(context, a->factors->first(context, a, &p, &guess, &norm[k][0]));
    MD_REQUIRE(context, a->factors->second(context, a, &by, &r, &guess, &norm[k][1]));
    MD_REQUIRE(context, md_field_convert(context, &found[k], &r));
    if (k > 0 && (md_test_distance(context, &found[1], &found[0]) != 0.0 ||
                  norm[1][0] != norm[0][0] || norm[1][1] != norm[0][1]))
      fail_msg("%s: shape %d has other bits than shape 0", name, shape);
    md_field *all[] = {&p, &r, &p_host, &found[1]};
    for (int i = 0; i < 3 + k; i++) md_field_destroy(all[i]);
  }
  md_field_destroy(&found[0]);
}

static void factors(void **state) {
  md_context *context = *state;
  enum { KINDS = 5 };
  static const int dims[][MD_DIMS] = {{4, 4, 4, 8}, {16, 16, 16, 32}},
                   slices[KINDS] = {3, 4, 8, 12, 16};
  for (int k = 0; k < 2 * KINDS; k++) {
    const int *d = dims[k / KINDS];
    md_geometry *g = md_test_geometry(context, d[0], d[1], d[2], d[3], true);
    md_backend_request r = request_of(slices[k % KINDS], 1);
    md_gauge gauge;
    md_dirac dirac;
    md_operator a;
    char name[64];
    r.precision = MD_HALF;
    r.packing = MD_PACKING_STACKED;
    snprintf(name, sizeof name, "%d slices, extent %d", slices[k % KINDS], d[0]);
    md_test_random_gauge(context, g, 11, &gauge);
    MD_REQUIRE(context, md_dirac_create(context, &gauge, "tensor", &r, &dirac));
    MD_REQUIRE(context, md_normal_create(context, &dirac, 0.1, &a));
    assert_non_null(a.factors);
    compare_factors(context, &a, name);
    compare_shapes(context, &dirac, &a, name);
    md_operator_destroy(&a);
    md_dirac_destroy(&dirac);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(g);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(walls), cmocka_unit_test(schur),
                                    cmocka_unit_test(factors)};
MD_RUN_GPU_TESTS(tests)
