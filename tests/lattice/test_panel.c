/* Products of many vectors with a few against sums that are written out: every stored precision of
 * the many, one and several right-hand sides; sums to the bit the same however the lattice is cut.
 */
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"
#include "lattice/fields/sum.h"
#include "support.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 7, MOST_RHS = 17, ROWS = 3 };

static double complex number(const md_field *f, int64_t site, int rhs, int colour) {
  double v[MD_FERMION_REALS];
  md_field_get(f, site, rhs, v);
  return v[2 * colour] + I * v[2 * colour + 1];
}

/* Unit vectors. */
static void make(md_context *context, const md_geometry *g, md_precision precision, md_field *x) {
  for (int k = 0; k < COUNT; k++) {
    double norm2, none = 0.0;
    md_test_random_field(context, g, precision, 1, MD_EVEN, (uint64_t)k + 1, &x[k]);
    MD_REQUIRE(context, md_linear_norm2(context, &x[k], NULL, &norm2));
    const double scale = 1.0 / sqrt(norm2);
    md_linear_axpby(&scale, &x[k], &none, &x[k]);
  }
}

static void discard(md_field *x, int count) {
  for (int k = 0; k < count; k++) md_field_destroy(&x[k]);
}

static double complex plain_dot(md_context *context, const md_field *x, const md_field *y,
                                int rhs) {
  md_sum sums[2] = {{.limb = {0}}, {.limb = {0}}};
  double parts[2];
  for (int64_t i = 0; i < x->sites; i++)
    for (int c = 0; c < 3; c++) {
      const double complex term = conj(number(x, i, 0, c)) * number(y, i, rhs, c);
      md_sum_add(&sums[0], creal(term));
      md_sum_add(&sums[1], cimag(term));
    }
  MD_REQUIRE(context, md_sum_finish(context, sums, 2, parts));
  return parts[0] + I * parts[1];
}

static void check_dots(md_context *context, const md_geometry *g, md_precision precision, int n) {
  md_field x[COUNT], y;
  double dots[2 * COUNT * MOST_RHS], norm2[MOST_RHS];
  make(context, g, precision, x);
  md_test_random_field(context, g, MD_DOUBLE, n, MD_EVEN, 99, &y);
  MD_REQUIRE(context, md_linear_norm2(context, &y, NULL, norm2));
  MD_REQUIRE(context, md_panel_dots(context, COUNT, x, &y, dots));
  for (int k = 0; k < COUNT; k++)
    for (int r = 0; r < n; r++) {
      const double complex wanted = plain_dot(context, &x[k], &y, r);
      const double complex got = dots[2 * (k * n + r)] + I * dots[2 * (k * n + r) + 1];
      md_require_at_most(cabs(got - wanted) / sqrt(norm2[r]), 1e-15, "inner product");
    }
  md_field_destroy(&y);
  discard(x, COUNT);
}

static void dots(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 12, 4, 4, 4, false);
  for (md_precision p = 0; p < MD_PRECISIONS; p++)
    for (int n = 1; n <= MOST_RHS; n += n == 1 ? 2 : 14) check_dots(context, g, p, n);
  md_geometry_destroy(g);
}

static double complex coefficient(int k, int r) {
  return 0.3 * k - 0.1 * r + 0.5 + I * (0.2 * r - 0.7 + 0.05 * k * k);
}

static void check_add(md_context *context, const md_geometry *g, md_precision precision, int n) {
  md_field x[COUNT], y, before;
  double complex c[COUNT * MOST_RHS];
  make(context, g, precision, x);
  md_test_random_field(context, g, MD_DOUBLE, n, MD_EVEN, 99, &y);
  md_test_random_field(context, g, MD_DOUBLE, n, MD_EVEN, 99, &before);
  for (int k = 0; k < COUNT; k++)
    for (int r = 0; r < n; r++) c[k * n + r] = coefficient(k, r);
  MD_REQUIRE(context, md_panel_add(context, COUNT, x, (double *)c, &y));
  for (int64_t i = 0; i < y.sites; i++)
    for (int r = 0; r < n; r++)
      for (int colour = 0; colour < 3; colour++) {
        double complex wanted = number(&before, i, r, colour);
        for (int k = 0; k < COUNT; k++) wanted += coefficient(k, r) * number(&x[k], i, 0, colour);
        md_require_at_most(cabs(number(&y, i, r, colour) - wanted), 1e-14, "sum of vectors");
      }
  md_field_destroy(&before);
  md_field_destroy(&y);
  discard(x, COUNT);
}

static void add(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 12, 4, 4, 4, false);
  for (md_precision p = 0; p < MD_PRECISIONS; p++)
    for (int n = 1; n <= MOST_RHS; n += n == 1 ? 2 : 14) check_add(context, g, p, n);
  md_geometry_destroy(g);
}

static void rotate(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 12, 4, 4, 4, false);
  md_field x[COUNT], out[ROWS];
  double complex rotation[ROWS * COUNT];
  make(context, g, MD_DOUBLE, x);
  for (int i = 0; i < ROWS; i++) {
    md_test_random_field(context, g, MD_DOUBLE, 1, MD_EVEN, 5, &out[i]); /* is assigned */
    for (int k = 0; k < COUNT; k++) rotation[i * COUNT + k] = coefficient(k, i);
  }
  MD_REQUIRE(context, md_panel_rotate(context, COUNT, x, ROWS, (double *)rotation, out));
  for (int i = 0; i < ROWS; i++)
    for (int64_t s = 0; s < g->sites; s++)
      for (int colour = 0; colour < 3; colour++) {
        double complex wanted = 0.0;
        for (int k = 0; k < COUNT; k++) wanted += coefficient(k, i) * number(&x[k], s, 0, colour);
        md_require_at_most(cabs(number(&out[i], s, 0, colour) - wanted), 1e-14, "rotated vector");
      }
  discard(out, ROWS);
  discard(x, COUNT);
  md_geometry_destroy(g);
}

/* The same bits however the work is shared out; program.modes compares rank grids. */
static void same_on_every_cut(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 8, 8, 8, 8, false);
  md_field x[COUNT], y;
  double dots[2 * COUNT * 2], whole[2 * COUNT * 2];
  const int threads = context->threads;
  make(context, g, MD_SINGLE, x);
  for (int n = 1; n <= 2; n++) {
    md_test_random_field(context, g, MD_DOUBLE, n, MD_EVEN, 99, &y);
    MD_REQUIRE(context, md_panel_dots(context, COUNT, x, &y, dots));
    context->threads = 3;
    MD_REQUIRE(context, md_panel_dots(context, COUNT, x, &y, whole));
    context->threads = threads;
    assert_memory_equal(dots, whole, 2 * (size_t)(COUNT * n) * sizeof *dots);
    const double complex exact = plain_dot(context, &x[0], &y, 0); /* of all ranks' sites */
    md_require_at_most(cabs(dots[0] + I * dots[1] - exact), 1e-12, "inner product");
    md_field_destroy(&y);
  }
  discard(x, COUNT);
  md_geometry_destroy(g);
}

/* What is not finite is not hidden by the other terms. */
static void not_finite(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 4, false);
  md_field x[COUNT], y;
  double dots[2 * COUNT * 3];
  make(context, g, MD_DOUBLE, x);
  md_test_random_field(context, g, MD_DOUBLE, 3, MD_EVEN, 99, &y);
  if (context->rank == 0) ((double *)y.data)[2] = NAN; /* right-hand side 1 of the first site */
  MD_REQUIRE(context, md_panel_dots(context, COUNT, x, &y, dots));
  assert_true(isnan(dots[2]) && isfinite(dots[0]) && isfinite(dots[4]));
  md_field_destroy(&y);
  discard(x, COUNT);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(dots), cmocka_unit_test(add),
                                    cmocka_unit_test(rotate), cmocka_unit_test(same_on_every_cut),
                                    cmocka_unit_test(not_finite)};
MD_RUN_TESTS(tests)
