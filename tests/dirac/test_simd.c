/* cpu_simd by instruction set: against cpu_ref on awkward lattices, the same bits for every range,
 * thread count, rank grid and way to memory, and half precision far from norm one. */
#include "dirac/cpu_simd/cpu_simd.h"
#include "lattice/halo/halo.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct variant {
  md_backend_request request;
  md_isa isa;
} variant;

static const int lattices[][MD_DIMS] = {
    {2, 2, 2, 2}, {6, 4, 2, 4}, {10, 2, 4, 6}, {4, 4, 4, 4}, {26, 2, 2, 2}};
enum { LATTICES = sizeof lattices / sizeof *lattices };

/* Calls `run` for every instruction set of this CPU, precision, reconstruct and rhs count. */
static void each_variant(void **state, void (*run)(md_context *context, const variant *v)) {
  static const int n_rhs[] = {1, 3, 13, 16};
  for (int isa = MD_ISA_BASELINE; isa < MD_ISAS; isa++)
    for (int precision = 0; precision < MD_PRECISIONS; precision++)
      for (int reconstruct = MD_RECONSTRUCT_18; reconstruct <= MD_RECONSTRUCT_12; reconstruct++)
        for (size_t i = 0; i < sizeof n_rhs / sizeof *n_rhs; i++) {
          const variant v = {{.precision = (md_precision)precision,
                              .reconstruct = (md_reconstruct)reconstruct,
                              .n_rhs = n_rhs[i],
                              .antiperiodic = true},
                             (md_isa)isa};
          if (md_isa_runs((md_isa)isa)) run(*state, &v);
        }
}

static void name(const variant *v, char text[128]) {
  snprintf(text, 128, "isa %d %s %s rhs %d", v->isa, md_precision_name(v->request.precision),
           md_reconstruct_name(v->request.reconstruct), v->request.n_rhs);
}

/* Links, source and result are rounded once each; sums of 24 products in the arithmetic type. */
static double tolerance(const variant *v) {
  return 6.0 * md_precision_roundoff(v->request.precision);
}

static void fill_halo(md_context *context, md_field *field) {
  const md_field_shape shape = {field->precision, MD_HOST, MD_FERMION_REALS,
                                field->n_rhs,     true,    false};
  md_halo *halo;
  MD_REQUIRE(context, md_halo_create(context, field->geometry, &shape, NULL, &halo));
  MD_REQUIRE(context, md_halo_begin(halo, field));
  MD_REQUIRE(context, md_halo_end(halo, field));
  md_halo_destroy(halo);
}

static void make_field(md_context *context, const md_geometry *g, md_precision precision, int n_rhs,
                       int parity, md_field *field) {
  const md_field_shape shape = {precision, MD_HOST, MD_FERMION_REALS, n_rhs, true, false};
  MD_REQUIRE(context, md_field_create(context, g, &shape, parity, field));
}

static void hop(md_context *context, void *state, md_field *out, const md_field *in, md_range range,
                const md_hop_end *end) {
  const md_hop_call call = {.out = out, .in = in, .range = range, .end = end};
  MD_REQUIRE(context, md_backend_cpu_simd.hop(context, state, &call));
}

/* out = a x + b D in (no end: D in) by cpu_ref from the rounded fields, in double. */
static void expect(md_context *context, const md_gauge *gauge, const md_field *in,
                   const md_hop_end *end, md_field *out) {
  const md_backend_request request = {
      .precision = MD_DOUBLE, .n_rhs = in->n_rhs, .antiperiodic = true};
  const md_geometry *g = gauge->geometry;
  md_hop_end exact;
  md_field source, x;
  md_dirac oracle;
  make_field(context, g, MD_DOUBLE, in->n_rhs, in->parity, &source);
  make_field(context, g, MD_DOUBLE, in->n_rhs, out->parity, &x);
  MD_REQUIRE(context, md_field_convert(context, &source, in));
  if (end) {
    MD_REQUIRE(context, md_field_convert(context, &x, end->x));
    exact = (md_hop_end){&x, end->a, end->b};
  }
  MD_REQUIRE(context, md_dirac_create(context, gauge, "cpu_ref", &request, &oracle));
  MD_REQUIRE(context, md_dirac_hop(context, &oracle, out, &source, end ? &exact : NULL));
  md_dirac_destroy(&oracle);
  md_field_destroy(&source);
  md_field_destroy(&x);
}

static void agree_on(md_context *context, const variant *v, const int dims[MD_DIMS], bool halo) {
  const md_backend_request *r = &v->request;
  char text[128];
  name(v, text);
  if (!md_test_fits(context, dims[0], dims[1], dims[2], dims[3])) return;
  md_geometry *g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], halo);
  md_gauge gauge;
  md_test_random_gauge(context, g, 5, &gauge);
  void *state;
  md_links links;
  MD_REQUIRE(context, md_request_links(context, r, &gauge, &links));
  MD_REQUIRE(context, md_simd_load(context, &links, r, v->isa, halo ? 1 : 3, &state));
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field in, out, expected;
    md_test_random_field(context, g, r->precision, r->n_rhs, 1 - p, 3, &in);
    md_test_random_field(context, g, r->precision, r->n_rhs, p, 4, &out);
    make_field(context, g, MD_DOUBLE, r->n_rhs, p, &expected);
    fill_halo(context, &in);
    const md_hop_end end = {.x = &out, .a = 0.25, .b = -1.5};
    expect(context, &gauge, &in, &end, &expected);
    hop(context, state, &out, &in, MD_RANGE_ALL, &end); /* x is out itself */
    md_require_at_most(md_test_distance(context, &out, &expected), tolerance(v), text);
    expect(context, &gauge, &in, NULL, &expected);
    hop(context, state, &out, &in, MD_RANGE_ALL, NULL);
    md_require_at_most(md_test_distance(context, &out, &expected), tolerance(v), text);
    md_field_destroy(&in);
    md_field_destroy(&out);
    md_field_destroy(&expected);
  }
  md_backend_cpu_simd.unload(state);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

/* Each lattice with the halo or without it: the one for 1 and 13 right-hand sides, the other for 3
 * and 16. */
static void agree_with_oracle(md_context *context, const variant *v) {
  const int turn = v->request.n_rhs == 1 || v->request.n_rhs == 13;
  for (int i = 0; i < LATTICES; i++) agree_on(context, v, lattices[i], (i + turn) % 2);
}

static void test_oracle(void **state) {
  each_variant(state, agree_with_oracle);
}

/* Site by site the same bits; `sites` of a and b correspond. */
static bool same_site(const md_field *a, int64_t i, const md_field *b, int64_t j) {
  for (int r = 0; r < a->n_rhs; r++) {
    double u[MD_FERMION_REALS], v[MD_FERMION_REALS];
    md_field_get(a, i, r, u);
    md_field_get(b, j, r, v);
    if (memcmp(u, v, sizeof u) != 0) return false;
  }
  return true;
}

static void set_all(md_field *f, double value) {
  double all[MD_FERMION_REALS * MD_MAX_RHS];
  for (int c = 0; c < MD_FERMION_REALS * f->n_rhs; c++) all[c] = value;
  for (int64_t i = 0; i < f->sites; i++) md_field_set(f, i, all);
}

static void spoil_halo(md_field *f) {
  double all[MD_FERMION_REALS * MD_MAX_RHS];
  for (int c = 0; c < MD_FERMION_REALS * f->n_rhs; c++) all[c] = NAN;
  for (int64_t i = f->sites; i < f->sites + f->halo; i++) md_field_set(f, i, all);
}

/* Interior (without a halo to read) and boundary assign each site once, to the bits of ALL, for
 * any number of threads; also with an end. */
static void ranges_of(md_context *context, const variant *v) {
  const md_backend_request *r = &v->request;
  md_geometry *g = md_test_geometry(context, 12, 4, 4, context->ranks > 8 ? 8 : 6, true);
  md_gauge gauge;
  md_field in, all, part, touched;
  void *state;
  md_test_random_gauge(context, g, 5, &gauge);
  md_links links;
  MD_REQUIRE(context, md_request_links(context, r, &gauge, &links));
  MD_REQUIRE(context, md_simd_load(context, &links, r, v->isa, 1, &state));
  md_test_random_field(context, g, r->precision, r->n_rhs, MD_ODD, 3, &in);
  make_field(context, g, r->precision, r->n_rhs, MD_EVEN, &all);
  make_field(context, g, r->precision, r->n_rhs, MD_EVEN, &part);
  make_field(context, g, r->precision, r->n_rhs, MD_EVEN, &touched);
  set_all(&touched, 512.0);
  const int threads = context->threads;
  for (int count = 1; count <= 3; count++) {
    context->threads = count;
    fill_halo(context, &in);
    if (count == 1) hop(context, state, &all, &in, MD_RANGE_ALL, NULL);
    set_all(&part, 512.0);
    spoil_halo(&in);
    hop(context, state, &part, &in, MD_RANGE_INTERIOR, NULL);
    int64_t interior = 0;
    for (int64_t i = 0; i < part.sites; i++) {
      const bool kept = same_site(&part, i, &touched, i);
      assert_true(kept || same_site(&part, i, &all, i));
      interior += !kept;
    }
    fill_halo(context, &in);
    hop(context, state, &part, &in, MD_RANGE_BOUNDARY, NULL);
    for (int64_t i = 0; i < part.sites; i++) assert_true(same_site(&part, i, &all, i));
    set_all(&part, 512.0);
    hop(context, state, &part, &in, MD_RANGE_BOUNDARY, NULL);
    for (int64_t i = 0; i < part.sites; i++) interior += !same_site(&part, i, &touched, i);
    assert_int_equal(interior, part.sites);
  }
  context->threads = threads;
  md_backend_cpu_simd.unload(state);
  md_field_destroy(&in);
  md_field_destroy(&all);
  md_field_destroy(&part);
  md_field_destroy(&touched);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void test_ranges(void **state) {
  each_variant(state, ranges_of);
}

/* The same bits however links are fetched and wherever results go, all sites at once and range by
 * range; the rows of 6 x 2 sites end within a vector. So do those of the lattice that more
 * than four ranks have, 3 x 2 sites on 8 or 16. */
static void access_of(md_context *context, const variant *v) {
  const md_backend_request *r = &v->request;
  md_geometry *g = context->ranks > 4 ? md_test_geometry(context, 12, 4, 12, 4, true)
                                      : md_test_geometry(context, 12, 2, 6, 4, true);
  md_gauge gauge;
  md_links links;
  md_field in, first, out;
  void *state;
  md_test_random_gauge(context, g, 5, &gauge);
  MD_REQUIRE(context, md_request_links(context, r, &gauge, &links));
  MD_REQUIRE(context, md_simd_load(context, &links, r, v->isa, 0, &state));
  md_test_random_field(context, g, r->precision, r->n_rhs, MD_ODD, 3, &in);
  fill_halo(context, &in);
  make_field(context, g, r->precision, r->n_rhs, MD_EVEN, &first);
  make_field(context, g, r->precision, r->n_rhs, MD_EVEN, &out);
  md_simd_state *s = state;
  s->ahead = MD_SIMD_NEAR;
  s->fetch = MD_SIMD_FETCH_L1;
  s->stream = false;
  hop(context, state, &first, &in, MD_RANGE_ALL, NULL);
  for (int i = 0; i < 12; i++) {
    s->ahead = i & 1 ? MD_SIMD_FAR : MD_SIMD_BEHIND;
    s->stream = i & 2;
    s->fetch = (md_simd_fetch)(i / 4);
    set_all(&out, 512.0);
    hop(context, state, &out, &in, MD_RANGE_ALL, NULL);
    for (int64_t k = 0; k < out.sites; k++) assert_true(same_site(&out, k, &first, k));
    set_all(&out, 512.0);
    hop(context, state, &out, &in, MD_RANGE_INTERIOR, NULL);
    hop(context, state, &out, &in, MD_RANGE_BOUNDARY, NULL);
    for (int64_t k = 0; k < out.sites; k++) assert_true(same_site(&out, k, &first, k));
  }
  md_backend_cpu_simd.unload(state);
  md_field_destroy(&in);
  md_field_destroy(&first);
  md_field_destroy(&out);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void test_access(void **state) {
  each_variant(state, access_of);
}

/* D of a random field on the ranks of `context`, sites ordered by `planes`. */
static void apply(md_context *context, const variant *v, md_geometry *g, int planes,
                  md_field *out) {
  const md_backend_request *r = &v->request;
  md_gauge gauge;
  md_field in;
  void *state;
  md_test_random_gauge(context, g, 5, &gauge);
  md_links links;
  MD_REQUIRE(context, md_request_links(context, r, &gauge, &links));
  MD_REQUIRE(context, md_simd_load(context, &links, r, v->isa, planes, &state));
  md_test_random_field(context, g, r->precision, r->n_rhs, MD_EVEN, 3, &in);
  make_field(context, g, r->precision, r->n_rhs, MD_ODD, out);
  fill_halo(context, &in);
  hop(context, state, out, &in, MD_RANGE_ALL, NULL);
  md_backend_cpu_simd.unload(state);
  md_field_destroy(&in);
  md_gauge_destroy(&gauge);
}

/* Each rank also computes the whole lattice alone, in another order, and finds its part in it, bit
 * for bit. */
static void grids_of(md_context *context, const variant *v) {
  md_context alone = {.ranks = 1, .threads = context->threads};
  md_geometry *g = md_test_geometry(context, 12, 4, 4, 4, false);
  md_geometry *whole = md_test_geometry(&alone, 12, 4, 4, 4, false);
  md_field part, all;
  apply(context, v, g, 3, &part);
  apply(&alone, v, whole, 4, &all);
  for (int64_t i = 0; i < part.sites; i++) {
    int x[MD_DIMS];
    md_global_coordinates(g, MD_ODD, i, x);
    assert_true(same_site(&part, i, &all, md_site(whole, x)));
  }
  md_field_destroy(&part);
  md_field_destroy(&all);
  md_geometry_destroy(g);
  md_geometry_destroy(whole);
}

static void test_grids(void **state) {
  each_variant(state, grids_of);
}

/* The largest stored number of every half site lies in [2^14, MD_HALF_MOST]; of every fixed one
 * it is MD_FIXED_STEPS. */
static void check_scales(const md_field *f) {
  for (int64_t i = 0; f->scale && i < f->sites; i++) {
    double largest = 0.0;
    for (int r = 0; r < f->n_rhs; r++) {
      double v[MD_FERMION_REALS];
      md_field_get(f, i, r, v);
      for (int c = 0; c < MD_FERMION_REALS; c++) largest = fmax(largest, fabs(v[c]));
    }
    const bool fixed = f->precision == MD_FIXED;
    const double low = fixed ? MD_FIXED_STEPS - 0.01 : 0x1p14;
    assert_true(largest >= low * f->scale[i]);
    assert_true(largest <= (fixed ? 0x1p15 : MD_HALF_MOST) * f->scale[i]);
  }
}

/* Half keeps its relative accuracy where the field is tiny, huge, or falls by `decay` along t:
 * error and norm are compared on each time slice. */
static void scaled(md_context *context, const variant *v, double norm, double decay) {
  enum { T = 16 };
  const int n = v->request.n_rhs;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, T, false);
  md_gauge gauge;
  md_field in, out, expected, source;
  void *state;
  char text[128];
  name(v, text);
  md_test_random_gauge(context, g, 5, &gauge);
  md_links links;
  MD_REQUIRE(context, md_request_links(context, &v->request, &gauge, &links));
  MD_REQUIRE(context, md_simd_load(context, &links, &v->request, v->isa, 0, &state));
  md_test_random_field(context, g, MD_DOUBLE, n, MD_EVEN, 3, &source);
  for (int64_t i = 0; i < source.sites; i++) {
    int x[MD_DIMS];
    double all[MD_FERMION_REALS * MD_MAX_RHS];
    md_global_coordinates(g, MD_EVEN, i, x);
    for (int r = 0; r < n; r++) md_field_get(&source, i, r, all + r * MD_FERMION_REALS);
    const double factor =
        norm * pow(decay, x[MD_T] < T / 2 ? x[MD_T] * 2.0 / T : (T - x[MD_T]) * 2.0 / T);
    for (int c = 0; c < MD_FERMION_REALS * n; c++) all[c] *= factor;
    md_field_set(&source, i, all);
  }
  make_field(context, g, v->request.precision, n, MD_EVEN, &in);
  make_field(context, g, v->request.precision, n, MD_ODD, &out);
  make_field(context, g, MD_DOUBLE, n, MD_ODD, &expected);
  MD_REQUIRE(context, md_field_convert(context, &in, &source));
  fill_halo(context, &in);
  hop(context, state, &out, &in, MD_RANGE_ALL, NULL);
  check_scales(&out);
  expect(context, &gauge, &in, NULL, &expected);
  double error[T] = {0}, square[T] = {0};
  for (int64_t i = 0; i < out.sites; i++)
    for (int r = 0; r < n; r++) {
      int x[MD_DIMS];
      double a[MD_FERMION_REALS], b[MD_FERMION_REALS];
      md_global_coordinates(g, MD_ODD, i, x);
      md_field_get(&out, i, r, a);
      md_field_get(&expected, i, r, b);
      for (int c = 0; c < MD_FERMION_REALS; c++) {
        error[x[MD_T]] += pow((a[c] - b[c]) / norm, 2.0);
        square[x[MD_T]] += pow(b[c] / norm, 2.0);
      }
    }
  for (int t = g->origin[MD_T]; t < g->origin[MD_T] + g->local[MD_T]; t++)
    md_require_at_most(sqrt(error[t] / square[t]), tolerance(v), text);
  md_backend_cpu_simd.unload(state);
  md_field_destroy(&in);
  md_field_destroy(&out);
  md_field_destroy(&expected);
  md_field_destroy(&source);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void scales_of(md_context *context, const variant *v) {
  if (v->request.precision == MD_DOUBLE) return;
  scaled(context, v, 1e-20, 1.0);
  scaled(context, v, 1e+20, 1.0);
  scaled(context, v, 1.0, 1e-8);
}

static void test_scales(void **state) {
  each_variant(state, scales_of);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle), cmocka_unit_test(test_ranges),
                                    cmocka_unit_test(test_access), cmocka_unit_test(test_grids),
                                    cmocka_unit_test(test_scales)};
MD_RUN_TESTS(tests)
