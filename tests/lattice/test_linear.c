/* Vector operations against plain loops over md_field_get, for every precision and layout, and
 * sums that are the same to the last bit on every rank grid and thread count. */
#include "lattice/fields/spaces.h"
#include "support.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct setting {
  md_precision precision;
  int n_rhs, components; /* 0: those of a staggered fermion */
} setting;
static const setting settings[] = {
    {MD_DOUBLE, 1, 0},   {MD_SINGLE, 1, 0},  {MD_HALF, 1, 0},    {MD_BF16, 1, 0},
    {MD_DOUBLE, 3, 0},   {MD_SINGLE, 8, 0},  {MD_HALF, 5, 0},    {MD_BF16, 2, 0},
    {MD_DOUBLE, 128, 0}, {MD_FIXED, 1, 0},   {MD_FIXED, 3, 0},   {MD_DOUBLE, 1, 24},
    {MD_DOUBLE, 3, 64},  {MD_DOUBLE, 8, 24}, {MD_SINGLE, 1, 64}, {MD_SINGLE, 3, 24},
    {MD_SINGLE, 8, 64},  {MD_HALF, 1, 24},   {MD_HALF, 3, 64},   {MD_HALF, 8, 24},
    {MD_HALF, 1, 64},    {MD_FIXED, 1, 24},  {MD_FIXED, 8, 64},  {MD_BF16, 3, 24}};
enum { SETTINGS = sizeof settings / sizeof *settings };

typedef struct fixture {
  md_geometry *g;
  md_field x, y, z, old_x, old_y, old_z;
  double a[MD_MAX_RHS], b[MD_MAX_RHS];
} fixture;

static void make(md_context *context, setting s, fixture *f) {
  f->g = md_test_geometry(context, 12, 4, 8, 4, false);
  md_field *fields[] = {&f->x, &f->y, &f->z}, *copies[] = {&f->old_x, &f->old_y, &f->old_z};
  const int components = s.components ? s.components : MD_FERMION_REALS;
  const md_field_shape shape = {s.precision, MD_HOST, components, s.n_rhs, true, false};
  for (int i = 0; i < 3; i++) {
    md_test_random_shape(context, f->g, &shape, MD_ODD, 11 + (uint64_t)i, fields[i]);
    MD_REQUIRE(context, md_field_create(context, f->g, &shape, MD_ODD, copies[i]));
    const int64_t reals =
        md_field_planes(fields[i]) * fields[i]->stride * md_field_entry(fields[i]);
    memcpy(copies[i]->data, fields[i]->data, (size_t)reals * md_precision_bytes(s.precision));
    for (int64_t site = 0; copies[i]->scale && site < fields[i]->sites; site++)
      copies[i]->scale[site] = fields[i]->scale[site];
  }
  for (int r = 0; r < MD_MAX_RHS; r++) {
    f->a[r] = 0.5 + 0.01 * r;
    f->b[r] = -0.75 + 0.02 * r;
  }
}

static void drop(fixture *f) {
  md_field *fields[] = {&f->x, &f->y, &f->z, &f->old_x, &f->old_y, &f->old_z};
  for (int i = 0; i < 6; i++) md_field_destroy(fields[i]);
  md_geometry_destroy(f->g);
}

/* The largest term of p * u + q * v at a site: of one right-hand side, or of all where they share
 * the steps of MD_FIXED. */
static double size_of(const double *p, const md_field *u, const double *q, const md_field *v,
                      int64_t site, int rhs) {
  double size = 0.0;
  for (int r = 0; r < u->n_rhs; r++) {
    double a[MD_MAX_COMPONENTS], b[MD_MAX_COMPONENTS];
    if (r != rhs && u->precision != MD_FIXED && v->precision != MD_FIXED) continue;
    md_field_get(u, site, r, a);
    md_field_get(v, site, r, b);
    for (int c = 0; c < u->components; c++)
      size = fmax(size, fabs(p[r] * a[c]) + fabs(q[r] * b[c]));
  }
  return size;
}

/* got = p * u + q * v on every site, to a few roundings of the storage type times the site. */
static void check(const md_field *got, const double *p, const md_field *u, const double *q,
                  const md_field *v) {
  const double tolerance = 4.0 * md_precision_roundoff(got->precision);
  for (int64_t i = 0; i < got->sites; i++)
    for (int r = 0; r < got->n_rhs; r++) {
      double w[MD_MAX_COMPONENTS], a[MD_MAX_COMPONENTS], b[MD_MAX_COMPONENTS];
      const double size = size_of(p, u, q, v, i, r);
      md_field_get(got, i, r, w);
      md_field_get(u, i, r, a);
      md_field_get(v, i, r, b);
      for (int c = 0; c < got->components; c++) {
        const double error = fabs(w[c] - (p[r] * a[c] + q[r] * b[c]));
        if (!(error <= tolerance * size))
          fail_msg("site %lld: %g of %g", (long long)i, error, size);
      }
    }
}

/* What x of f or of w takes of several directions, with residuals of w. */
static void directions(fixture *f, fixture *w) {
  double one[MD_MAX_RHS], of[2][MD_MAX_RHS], both[MD_MAX_RHS];
  for (int r = 0; r < MD_MAX_RHS; r++) {
    one[r] = 1.0;
    of[0][r] = f->a[r], of[1][r] = 0.5 * f->a[r];
    both[r] = of[0][r] + of[1][r];
  }
  md_linear_cg_direction(f->b, &w->old_z, &f->old_x, &f->x);
  check(&f->x, one, &w->old_z, f->b, &f->old_x);
  md_linear_copy(&w->y, &w->old_y);
  md_linear_cg_add(2, of, (md_field[]){f->old_x, f->old_x}, &w->y);
  check(&w->y, both, &f->old_x, one, &w->old_y);
}

static void updates(void **state) {
  double one[MD_MAX_RHS], norm[MD_MAX_RHS], again[MD_MAX_RHS];
  for (int r = 0; r < MD_MAX_RHS; r++) one[r] = 1.0;
  for (int s = 0; s < SETTINGS; s++) {
    fixture f;
    make(*state, settings[s], &f);
    md_linear_axpy(f.a, &f.x, &f.y);
    check(&f.y, f.a, &f.old_x, one, &f.old_y);
    md_linear_copy(&f.y, &f.old_y);
    md_linear_xpby(&f.x, f.b, &f.y);
    check(&f.y, one, &f.old_x, f.b, &f.old_y);
    md_linear_copy(&f.y, &f.old_y);
    MD_REQUIRE(*state, md_linear_axpby_norm2(*state, f.a, &f.x, NULL, &f.y, NULL, norm));
    check(&f.y, f.a, &f.old_x, one, &f.old_y);
    MD_REQUIRE(*state, md_linear_norm2(*state, &f.y, NULL, again));
    for (int r = 0; r < settings[s].n_rhs; r++) assert_true(norm[r] == again[r]);
    md_linear_copy(&f.y, &f.old_y);
    md_linear_cg_update(f.a, f.b, &f.z, &f.x, &f.y); /* y += a x; x = z + b x */
    check(&f.y, f.a, &f.old_x, one, &f.old_y);
    check(&f.x, one, &f.old_z, f.b, &f.old_x);
    directions(&f, &f);
    md_linear_zero(&f.x);
    MD_REQUIRE(*state, md_linear_norm2(*state, &f.x, NULL, norm));
    assert_true(norm[0] == 0.0);
    drop(&f);
  }
}

/* 16-bit operands beside single ones, in every place that the contract allows, and y = a x + b y.
 */
static void narrow_beside_single(void **state) {
  const setting narrow[] = {{MD_HALF, 1, 0},  {MD_BF16, 1, 0},  {MD_HALF, 5, 0},  {MD_BF16, 2, 0},
                            {MD_FIXED, 1, 0}, {MD_FIXED, 3, 0}, {MD_HALF, 1, 64}, {MD_HALF, 3, 24}};
  for (int s = 0; s < 8; s++) {
    const setting wide = {MD_SINGLE, narrow[s].n_rhs, narrow[s].components};
    fixture f, w;
    double one[MD_MAX_RHS], norm[MD_MAX_RHS], again[MD_MAX_RHS];
    for (int r = 0; r < MD_MAX_RHS; r++) one[r] = 1.0;
    make(*state, narrow[s], &f);
    make(*state, wide, &w);
    MD_REQUIRE(*state, md_linear_axpby_norm2(*state, f.a, &f.x, f.b, &w.y, NULL, norm));
    check(&w.y, f.a, &f.old_x, f.b, &w.old_y);
    MD_REQUIRE(*state, md_linear_norm2(*state, &w.y, NULL, again));
    md_linear_copy(&w.y, &w.old_y);
    md_linear_axpby(f.a, &w.x, f.b, &f.y);
    check(&f.y, f.a, &w.old_x, f.b, &f.old_y);
    md_linear_cg_update(f.a, f.b, &w.z, &f.x, &w.y);
    check(&w.y, f.a, &f.old_x, one, &w.old_y);
    check(&f.x, one, &w.old_z, f.b, &f.old_x);
    directions(&f, &w);
    for (int r = 0; r < narrow[s].n_rhs; r++) assert_true(norm[r] == again[r]);
    MD_REQUIRE(*state, md_linear_dot(*state, &w.z, &f.old_z, NULL, norm));
    MD_REQUIRE(*state, md_linear_dot(*state, &f.old_z, &w.z, NULL, again));
    for (int r = 0; r < narrow[s].n_rhs; r++) assert_true(norm[r] == again[r] && norm[r] > 0.0);
    drop(&f);
    drop(&w);
  }
}

/* y = (a + i b) x + y against the fields' values, and Im <x, y> as Re <i x, y>, for two fields. */
static void complex_coefficients(void **state) {
  double none[MD_MAX_RHS] = {0}, unit[MD_MAX_RHS], dots[4 * MD_MAX_RHS], turned[MD_MAX_RHS];
  for (int r = 0; r < MD_MAX_RHS; r++) unit[r] = 1.0;
  for (int s = 0; s < SETTINGS; s++) {
    fixture f;
    make(*state, settings[s], &f);
    const double roundoff = md_precision_roundoff(settings[s].precision);
    md_linear_add_complex(1, &f.a, &f.b, &f.x, &f.y);
    for (int64_t i = 0; i < f.x.sites; i++)
      for (int r = 0; r < settings[s].n_rhs; r++) {
        double x[MD_MAX_COMPONENTS], y[MD_MAX_COMPONENTS], old[MD_MAX_COMPONENTS];
        md_field_get(&f.old_x, i, r, x);
        md_field_get(&f.old_y, i, r, old);
        md_field_get(&f.y, i, r, y);
        for (int c = 0; c < f.x.components; c++) {
          const double i_x = c % 2 ? x[c - 1] : -x[c + 1];
          const double expected = old[c] + f.a[r] * x[c] + f.b[r] * i_x;
          md_require_at_most(fabs(y[c] - expected), 64.0 * roundoff, "y = (a + i b) x + y");
        }
      }
    md_linear_zero(&f.z);
    md_linear_add_complex(1, &none, &unit, &f.old_x, &f.z);
    const int n = settings[s].n_rhs;
    MD_REQUIRE(*state,
               md_linear_dots(*state, 2, (md_field[]){f.old_y, f.old_x}, &f.old_y, NULL, dots));
    MD_REQUIRE(*state, md_linear_norm2(*state, &f.old_y, NULL, turned));
    assert_memory_equal(turned, dots, (size_t)n * sizeof *dots);
    MD_REQUIRE(*state, md_linear_dot(*state, &f.z, &f.old_y, NULL, turned));
    /* the scale of fixed is rounded anew; else i x is exact */
    const double most = settings[s].precision == MD_FIXED ? 1e-6 * (double)f.g->volume : 0.0;
    for (int r = 0; r < n; r++)
      md_require_at_most(fabs(dots[3 * n + r] - turned[r]), most, "Im <x, y>");
    drop(&f);
  }
}

/* factor x between precisions is what rounding the product gives. */
static void converts_with_factors(void **state) {
  const double none[MD_MAX_RHS] = {0};
  for (int s = 0; s < SETTINGS; s++)
    for (int to = 0; to < MD_PRECISIONS; to++) {
      fixture from, into;
      make(*state, settings[s], &from);
      make(*state, (setting){(md_precision)to, settings[s].n_rhs, settings[s].components}, &into);
      MD_REQUIRE(*state, md_field_convert_times(*state, &into.y, from.b, &from.x));
      check(&into.y, from.b, &from.x, none, &into.y);
      drop(&from);
      drop(&into);
    }
}

static void norms_and_dots(void **state) {
  for (int s = 0; s < SETTINGS; s++) {
    fixture f;
    double dots[MD_MAX_RHS], norms[MD_MAX_RHS];
    make(*state, settings[s], &f);
    MD_REQUIRE(*state, md_linear_dot(*state, &f.x, &f.y, NULL, dots));
    MD_REQUIRE(*state, md_linear_norm2(*state, &f.x, NULL, norms));
    for (int r = 0; r < settings[s].n_rhs; r++) {
      double sums[2] = {0.0, 0.0}, largest[2];
      for (int64_t i = 0; i < f.x.sites; i++) {
        double u[MD_MAX_COMPONENTS], v[MD_MAX_COMPONENTS];
        md_field_get(&f.x, i, r, u);
        md_field_get(&f.y, i, r, v);
        for (int c = 0; c < f.x.components; c++) sums[0] += u[c] * v[c], sums[1] += u[c] * u[c];
      }
      if (((md_context *)*state)->ranks > 1) continue;
      /* steps times the scale of fixed is rounded to float, other stored numbers are exact */
      const double most = settings[s].precision == MD_FIXED ? 1e-7 : 1e-13;
      largest[0] = fabs(sums[0] - dots[r]);
      largest[1] = fabs(sums[1] - norms[r]);
      md_require_at_most(largest[0], most * norms[r], "dot");
      md_require_at_most(largest[1], most * norms[r], "norm");
    }
    drop(&f);
  }
}

/* Every rank repeats the whole sum alone, with one thread: the same bits. */
static void sums_do_not_depend_on_the_cut(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1};
  for (int s = 0; s < SETTINGS; s++) {
    double expected[MD_MAX_RHS];
    fixture f;
    omp_set_num_threads(1);
    make(&alone, settings[s], &f);
    MD_REQUIRE(&alone, md_linear_dot(&alone, &f.x, &f.y, NULL, expected));
    drop(&f);
    for (int threads = 1; threads <= 3; threads++) {
      double dots[MD_MAX_RHS];
      omp_set_num_threads(threads);
      make(context, settings[s], &f);
      MD_REQUIRE(context, md_linear_dot(context, &f.x, &f.y, NULL, dots));
      for (int r = 0; r < settings[s].n_rhs; r++) assert_true(dots[r] == expected[r]);
      drop(&f);
    }
  }
  omp_set_num_threads(context->threads);
}

/* Rows of sites that are longer than what is worked on at once, cut or not. */
static void long_rows(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1};
  const int lengths[] = {132, 200, 256, 264, 512, 528};
  for (int i = 0; i < 6; i++) {
    if (!md_test_fits(context, lengths[i], 4, 2, 2)) continue;
    md_context *const contexts[] = {&alone, context};
    double norms[2], plain = 0.0;
    for (int k = 0; k < 2; k++) {
      md_geometry *g = md_test_geometry(contexts[k], lengths[i], 4, 2, 2, false);
      md_field x;
      md_test_random_field(contexts[k], g, MD_HALF, 1, MD_EVEN, 3, &x);
      MD_REQUIRE(contexts[k], md_linear_norm2(contexts[k], &x, NULL, &norms[k]));
      for (int64_t site = 0; k == 0 && site < x.sites; site++) {
        double v[MD_MAX_COMPONENTS];
        md_field_get(&x, site, 0, v);
        for (int c = 0; c < x.components; c++) plain += v[c] * v[c];
      }
      md_field_destroy(&x);
      md_geometry_destroy(g);
    }
    md_require_at_most(fabs(norms[0] - plain), 1e-13 * plain, "norm");
    assert_true(norms[0] == norms[1]);
  }
}

static bool same_bits(const md_field *a, const md_field *b) {
  for (int64_t i = 0; i < a->sites; i++)
    for (int r = 0; r < a->n_rhs; r++) {
      double u[MD_MAX_COMPONENTS], v[MD_MAX_COMPONENTS];
      md_field_get(a, i, r, u);
      md_field_get(b, i, r, v);
      for (int c = 0; c < a->components; c++)
        if (!(u[c] == v[c])) return false;
    }
  return true;
}

/* A single field times factors is added to a double one as two steps would. */
static void adds_single(void **state) {
  static const int rhs[] = {1, 3, 16, 128, 1, 8}, components[] = {0, 0, 0, 0, 24, 64};
  for (int k = 0; k < 6; k++) {
    fixture f, g;
    make(*state, (setting){MD_SINGLE, rhs[k], components[k]}, &f);
    make(*state, (setting){MD_DOUBLE, rhs[k], components[k]}, &g);
    MD_REQUIRE(*state, md_field_convert(*state, &g.z, &f.x));
    md_linear_axpy(f.a, &g.z, &g.y);
    MD_REQUIRE(*state, md_field_add_single(*state, &g.old_y, f.a, &f.x));
    md_require_at_most(md_test_distance(*state, &g.y, &g.old_y), 0x1p-50, "sum");
    assert_int_equal(md_field_add_single(*state, &f.x, f.a, &g.y), MD_INPUT);
    drop(&f);
    drop(&g);
  }
}

/* Conversions with a factor for each right-hand side round once, as md_field_get and a cast do. */
static void conversions(void **state) {
  const md_precision precisions[] = {MD_DOUBLE, MD_SINGLE};
  for (int k = 0; k < 12; k++) {
    const int n = k / 4 == 0 ? 1 : k / 4 == 1 ? 3 : 128;
    const md_precision from = precisions[k & 1], to = precisions[k >> 1 & 1];
    fixture f, g;
    make(*state, (setting){from, n, 0}, &f);
    make(*state, (setting){to, n, 0}, &g);
    MD_REQUIRE(*state, md_field_convert_times(*state, &g.y, f.a, &f.x));
    MD_REQUIRE(*state, md_field_convert(*state, &g.z, &f.x));
    for (int64_t i = 0; i < f.x.sites; i++)
      for (int r = 0; r < n; r++) {
        double x[MD_MAX_COMPONENTS], scaled[MD_MAX_COMPONENTS], plain[MD_MAX_COMPONENTS];
        md_field_get(&f.x, i, r, x);
        md_field_get(&g.y, i, r, scaled);
        md_field_get(&g.z, i, r, plain);
        for (int c = 0; c < f.x.components; c++) {
          const double product = f.a[r] * x[c];
          assert_true(scaled[c] == (to == MD_SINGLE ? (float)product : product));
          assert_true(plain[c] == (to == MD_SINGLE ? (float)x[c] : x[c]));
        }
      }
    drop(&f);
    drop(&g);
  }
}

/* What a CPU without vectors computes, all do. */
static void same_for_every_instruction_set(void **state) {
  for (int s = 0; s < SETTINGS; s++)
    for (int isa = MD_ISA_BASELINE + 1; isa < MD_ISAS; isa++) {
      fixture f[2];
      double sums[2][2][MD_MAX_RHS], products[2][2 * MD_MAX_RHS];
      if (!md_isa_runs((md_isa)isa)) continue;
      for (int k = 0; k < 2; k++) {
        const md_linear_table *table =
            md_linear_host(k ? (md_isa)isa : MD_ISA_BASELINE, settings[s].precision);
        make(*state, settings[s], &f[k]);
        MD_REQUIRE(*state, table->dot(*state, &f[k].x, &f[k].y, NULL, sums[k][0]));
        MD_REQUIRE(*state,
                   table->axpby_norm2(*state, f[k].a, &f[k].x, f[k].b, &f[k].y, NULL, sums[k][1]));
        const double *const a = f[k].a, *const b = f[k].b;
        const md_field *const z = &f[k].z;
        md_field *const x = &f[k].x, *const y = &f[k].y;
        table->cg_updates(1, 1, &a, &b, &z, &x, &y);
        table->add_complex(1, &f[k].a, &f[k].b, &f[k].x, &f[k].z);
        MD_REQUIRE(*state, table->dots(*state, 1, &f[k].y, &f[k].z, NULL, products[k]));
      }
      if (!same_bits(&f[0].x, &f[1].x) || !same_bits(&f[0].y, &f[1].y) ||
          !same_bits(&f[0].z, &f[1].z))
        fail_msg("isa %d, %s, %d right-hand sides", isa, md_precision_name(settings[s].precision),
                 settings[s].n_rhs);
      assert_memory_equal(products[0], products[1],
                          2 * (size_t)settings[s].n_rhs * sizeof products[0][0]);
      for (int i = 0; i < 2; i++)
        assert_memory_equal(sums[0][i], sums[1][i],
                            (size_t)settings[s].n_rhs * sizeof sums[0][i][0]);
      for (int k = 0; k < 2; k++) drop(&f[k]);
    }
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(long_rows),
    cmocka_unit_test(conversions),
    cmocka_unit_test(same_for_every_instruction_set),
    cmocka_unit_test(updates),
    cmocka_unit_test(adds_single),
    cmocka_unit_test(narrow_beside_single),
    cmocka_unit_test(complex_coefficients),
    cmocka_unit_test(converts_with_factors),
    cmocka_unit_test(norms_and_dots),
    cmocka_unit_test(sums_do_not_depend_on_the_cut),
};
MD_RUN_TESTS(tests)
