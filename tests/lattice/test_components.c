/* Fields with any number of reals per site beside those of staggered fermions: what halos bring,
 * and CG by the vector operations on a toy operator that hops. */
#include "lattice/fields/linear.h"
#include "lattice/fields/panel.h"
#include "lattice/halo/halo.h"
#include "support.h"

#include <math.h>
#include <string.h>

static const int components[] = {6, 24, 64}, rhs[] = {1, 3, 8};
static const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE, MD_HALF};

/* For every such shape on the host. */
static void each(md_context *context, bool halo,
                 void (*run)(md_context *, const md_geometry *, const md_field_shape *)) {
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, halo);
  for (int k = 0; k < 27; k++) {
    md_field_shape shape = {precisions[k / 9], MD_HOST, components[k / 3 % 3],
                            rhs[k % 3],        true,    false};
    run(context, g, &shape);
    shape.together = true;
    if (shape.n_rhs == 1) run(context, g, &shape);
  }
  md_geometry_destroy(g);
}

/* What a half field keeps to the bit: small numbers that depend on all of the arguments. */
static double value(const md_geometry *g, const int at[MD_DIMS], int c, int r) {
  return (double)((md_global_index(g, at) * 37 + c * 11 + r * 5) % 1021 - 510);
}

static void fill(const md_geometry *g, int parity, md_field *f) {
  double in[MD_MAX_COMPONENTS * 8];
  for (int64_t i = 0; i < f->sites; i++) {
    int at[MD_DIMS];
    md_global_coordinates(g, parity, i, at);
    for (int r = 0; r < f->n_rhs; r++)
      for (int c = 0; c < f->components; c++) in[r * f->components + c] = value(g, at, c, r);
    md_field_set(f, i, in);
  }
}

/* From planes to one plane and back nothing is lost, and numbers lie where field.h says. */
static void check_layouts(md_context *context, const md_geometry *g, const md_field_shape *shape) {
  md_field planes, together, back;
  md_field_shape other = *shape;
  if (shape->together || shape->n_rhs > 1) return;
  other.together = true;
  MD_REQUIRE(context, md_field_create(context, g, shape, MD_EVEN, &planes));
  MD_REQUIRE(context, md_field_create(context, g, &other, MD_EVEN, &together));
  MD_REQUIRE(context, md_field_create(context, g, shape, MD_EVEN, &back));
  fill(g, MD_EVEN, &planes);
  MD_REQUIRE(context, md_field_convert(context, &together, &planes));
  MD_REQUIRE(context, md_field_convert(context, &back, &together));
  assert_int_equal(md_field_planes(&together), 1);
  assert_int_equal(md_field_at(&together, 5, 3, 0), 5 * shape->components + 3);
  for (int64_t i = 0; i < g->sites; i++) {
    double a[MD_MAX_COMPONENTS], b[MD_MAX_COMPONENTS], c[MD_MAX_COMPONENTS];
    md_field_get(&planes, i, 0, a);
    md_field_get(&together, i, 0, b);
    md_field_get(&back, i, 0, c);
    for (int k = 0; k < shape->components; k++) assert_true(a[k] == b[k] && a[k] == c[k]);
  }
  md_field_destroy(&planes);
  md_field_destroy(&together);
  md_field_destroy(&back);
}

static void layouts(void **state) {
  each(*state, false, check_layouts);
}

/* Every neighbour, in the halo or not, has the numbers of its site. */
static void check_halo(md_context *context, const md_geometry *g, const md_field_shape *shape) {
  md_halo *halo;
  md_field f;
  MD_REQUIRE(context, md_halo_create(context, g, shape, NULL, &halo));
  MD_REQUIRE(context, md_field_create(context, g, shape, MD_ODD, &f));
  fill(g, MD_ODD, &f);
  MD_REQUIRE(context, md_halo_begin(halo, &f));
  MD_REQUIRE(context, md_halo_end(halo, &f));
  for (int d = 0; d < MD_DIRECTIONS; d++)
    for (int64_t i = 0; i < g->sites; i++) {
      int at[MD_DIMS];
      md_global_coordinates(g, MD_EVEN, i, at);
      const int axis = d % MD_DIMS, extent = g->global[axis];
      at[axis] = (at[axis] + (d < MD_DIMS ? 1 : extent - 1)) % extent;
      for (int r = 0; r < f.n_rhs; r++) {
        double got[MD_MAX_COMPONENTS];
        md_field_get(&f, g->neighbour[MD_EVEN][d][i], r, got);
        for (int c = 0; c < f.components; c++) assert_true(got[c] == value(g, at, c, r));
      }
    }
  md_field_destroy(&f);
  md_halo_destroy(halo);
}

static void halos(void **state) {
  each(*state, true, check_halo);
}

/* out = sum of the eight neighbours of in. */
static void hop(md_context *context, md_halo *halo, int parity, md_field *out, md_field *in) {
  const md_geometry *g = out->geometry;
  double sum[MD_MAX_COMPONENTS * 8], one[MD_MAX_COMPONENTS];
  MD_REQUIRE(context, md_halo_begin(halo, in));
  MD_REQUIRE(context, md_halo_end(halo, in));
  for (int64_t i = 0; i < g->sites; i++) {
    for (int k = 0; k < out->components * out->n_rhs; k++) sum[k] = 0.0;
    for (int d = 0; d < MD_DIRECTIONS; d++)
      for (int r = 0; r < in->n_rhs; r++) {
        md_field_get(in, g->neighbour[parity][d][i], r, one);
        for (int c = 0; c < in->components; c++) sum[r * in->components + c] += one[c];
      }
    md_field_set(out, i, sum);
  }
}

/* out = 128 in - hop hop in on even sites, whose eigenvalues lie in 64 to 128. */
static void apply(md_context *context, md_halo *halo, md_field *out, md_field *odd, md_field *in) {
  double shift[MD_MAX_RHS], minus[MD_MAX_RHS];
  for (int r = 0; r < in->n_rhs; r++) shift[r] = 128.0, minus[r] = -1.0;
  hop(context, halo, MD_ODD, odd, in);
  hop(context, halo, MD_EVEN, out, odd);
  md_linear_axpby(shift, in, minus, out);
}

static void check_cg(md_context *context, const md_geometry *g, const md_field_shape *shape) {
  enum { X, B, R, P, AP, ODD, FIELDS, STEPS = 60 };
  const double fall = fmax(4.0 * md_precision_roundoff(shape->precision), 1e-12);
  md_halo *halo;
  md_field f[FIELDS];
  double norm2[8], first[8], dot[8], a[8], b[8], minus[8], one[8];
  MD_REQUIRE(context, md_halo_create(context, g, shape, NULL, &halo));
  for (int k = 0; k < FIELDS; k++)
    MD_REQUIRE(context, md_field_create(context, g, shape, k == ODD ? MD_ODD : MD_EVEN, &f[k]));
  fill(g, MD_EVEN, &f[B]);
  md_linear_zero(&f[X]);
  md_linear_copy(&f[R], &f[B]);
  md_linear_copy(&f[P], &f[B]);
  MD_REQUIRE(context, md_linear_norm2(context, &f[R], NULL, norm2));
  for (int r = 0; r < 8; r++) first[r] = norm2[r], one[r] = 1.0;
  for (int step = 0; step < STEPS; step++) {
    bool going = false;
    for (int r = 0; r < shape->n_rhs; r++) going = going || norm2[r] > fall * fall * first[r];
    if (!going) break;
    apply(context, halo, &f[AP], &f[ODD], &f[P]);
    MD_REQUIRE(context, md_linear_dot(context, &f[P], &f[AP], NULL, dot));
    for (int r = 0; r < shape->n_rhs; r++)
      a[r] = dot[r] > 0.0 ? norm2[r] / dot[r] : 0.0, minus[r] = -a[r], b[r] = norm2[r];
    MD_REQUIRE(context, md_linear_axpby_norm2(context, minus, &f[AP], NULL, &f[R], NULL, norm2));
    for (int r = 0; r < shape->n_rhs; r++) b[r] = b[r] > 0.0 ? norm2[r] / b[r] : 0.0;
    md_linear_cg_update(a, b, &f[R], &f[P], &f[X]);
  }
  apply(context, halo, &f[AP], &f[ODD], &f[X]);
  for (int r = 0; r < 8; r++) minus[r] = -1.0;
  md_linear_axpby(one, &f[B], minus, &f[AP]);
  MD_REQUIRE(context, md_linear_norm2(context, &f[AP], NULL, norm2));
  for (int r = 0; r < shape->n_rhs; r++)
    md_require_at_most(sqrt(norm2[r] / first[r]), 10.0 * fall, "true residual of CG");
  for (int k = 0; k < FIELDS; k++) md_field_destroy(&f[k]);
  md_halo_destroy(halo);
}

static void cg(void **state) {
  each(*state, false, check_cg);
}

/* Fields side by side and apart again; products of many vectors with them against single sums. */
static void columns_and_panels(void **state) {
  enum { COUNT = 5 };
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, false);
  for (int k = 0; k < 3; k++) {
    const md_field_shape one = {MD_DOUBLE, MD_HOST, components[k], 1, true, false};
    const md_field_shape many = {MD_DOUBLE, MD_HOST, components[k], COUNT, true, false};
    md_field x[COUNT], back[COUNT], block;
    double none = 0.0, norm2, dots[2 * COUNT * COUNT], wanted[2], c[2 * COUNT * COUNT] = {0};
    MD_REQUIRE(context, md_field_create(context, g, &many, MD_EVEN, &block));
    for (int i = 0; i < COUNT; i++) {
      md_test_random_shape(context, g, &one, MD_EVEN, (uint64_t)i + 1, &x[i]);
      MD_REQUIRE(context, md_field_create(context, g, &one, MD_EVEN, &back[i]));
      MD_REQUIRE(context, md_linear_norm2(context, &x[i], NULL, &norm2));
      md_linear_axpby(&(double){1.0 / sqrt(norm2)}, &x[i], &none, &x[i]);
      c[2 * (i * COUNT + i)] = -1.0;
    }
    MD_REQUIRE(context, md_columns_join(context, COUNT, x, &block));
    MD_REQUIRE(context, md_columns_split(context, &block, COUNT, back));
    for (int i = 0; i < COUNT; i++) assert_true(md_test_distance(context, &back[i], &x[i]) == 0.0);
    for (int n = 1; n <= COUNT; n += COUNT - 1) {
      MD_REQUIRE(context, md_panel_dots(context, COUNT, x, n == 1 ? &x[0] : &block, dots));
      for (int i = 0; i < COUNT * n; i++) {
        MD_REQUIRE(context, md_linear_dots(context, 1, &x[i / n], &x[i % n], NULL, wanted));
        for (int part = 0; part < 2; part++)
          md_require_at_most(fabs(dots[2 * i + part] - wanted[part]), 1e-14, "inner product");
      }
    }
    MD_REQUIRE(context, md_panel_add(context, COUNT, x, c, &block)); /* takes each from itself */
    MD_REQUIRE(context, md_panel_rotate(context, COUNT, x, COUNT, c, back));
    for (int i = 0; i < COUNT; i++) {
      md_linear_axpy(&(double){1.0}, &x[i], &back[i]);
      MD_REQUIRE(context, md_linear_norm2(context, &back[i], NULL, &norm2));
      assert_true(norm2 == 0.0);
    }
    MD_REQUIRE(context, md_linear_norm2(context, &block, NULL, dots));
    for (int i = 0; i < COUNT; i++) assert_true(dots[i] == 0.0);
    for (int i = 0; i < COUNT; i++) md_field_destroy(&x[i]), md_field_destroy(&back[i]);
    md_field_destroy(&block);
  }
  md_geometry_destroy(g);
}

/* The largest number of a site just below 2^15, where rounding to half decides about the scale: its
 * value tells by which scale the site was stored, to the bit. */
static void sites_are_restored(void **state) {
  enum { RHS = 3, REALS = 24 };
  static const md_precision scaled[] = {MD_HALF, MD_FIXED};
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, false);
  for (int k = 0; k < 2; k++) {
    const md_field_shape narrow = {scaled[k], MD_HOST, REALS, RHS, true, false};
    const md_field_shape wide = {MD_DOUBLE, MD_HOST, REALS, RHS, true, false};
    md_field stored, values, back;
    MD_REQUIRE(context, md_field_create(context, g, &narrow, MD_EVEN, &stored));
    MD_REQUIRE(context, md_field_create(context, g, &narrow, MD_EVEN, &back));
    MD_REQUIRE(context, md_field_create(context, g, &wide, MD_EVEN, &values));
    for (int64_t i = 0; i < g->sites; i++) {
      double in[REALS * RHS];
      for (int c = 0; c < REALS * RHS; c++) in[c] = ldexp(1.0 + c / 64.0, -c / 3);
      in[i % (REALS * RHS)] = 0x1p15 - 0.25 * (double)i;
      if (i == 1) memset(in, 0, sizeof in);
      md_field_set(&stored, i, in);
    }
    MD_REQUIRE(context, md_field_convert(context, &values, &stored));
    MD_REQUIRE(context, md_field_restore(context, &back, &values));
    assert_memory_equal(back.scale, stored.scale, (size_t)g->sites * sizeof *back.scale);
    assert_memory_equal(back.data, stored.data, (size_t)(g->sites * REALS * RHS) * 2);
    md_field_destroy(&stored);
    md_field_destroy(&back);
    md_field_destroy(&values);
  }
  md_geometry_destroy(g);
}

static void odd_numbers_are_refused(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 4, false);
  const int wrong[] = {0, 7, MD_MAX_COMPONENTS + 2};
  context->quiet = true;
  for (int k = 0; k < 3; k++) {
    const md_field_shape shape = {MD_DOUBLE, MD_HOST, wrong[k], 1, true, false};
    md_field f;
    memset(&f, 0xa5, sizeof f);
    assert_int_equal(md_field_create(context, g, &shape, MD_EVEN, &f), MD_INPUT);
    md_field_destroy(&f); /* as callers do after any failure */
  }
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(layouts),
                                    cmocka_unit_test(halos),
                                    cmocka_unit_test(cg),
                                    cmocka_unit_test(columns_and_panels),
                                    cmocka_unit_test(sites_are_restored),
                                    cmocka_unit_test(odd_numbers_are_refused)};
MD_RUN_TESTS(tests)
