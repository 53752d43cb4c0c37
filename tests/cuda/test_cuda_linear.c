/* Vector operations on the device against the same on the host, and sums that repeat. */
#include "gpu_tests.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int components = MD_FERMION_REALS; /* of the fields that the tests make now, */
static bool together;                     /* and whether the device has a site's side by side */

static void random_field(md_context *context, const md_geometry *g, md_precision precision,
                         int n_rhs, uint64_t seed, md_field *f) {
  const md_field_shape shape = {precision, MD_HOST, components, n_rhs, true, false};
  md_test_random_shape(context, g, &shape, MD_EVEN, seed, f);
}

typedef struct pair {
  md_field host, device;
} pair;

static void make(md_context *context, const md_geometry *g, md_precision precision, int n_rhs,
                 uint64_t seed, pair *f) {
  const md_field_shape shape = {precision, MD_DEVICE, components, n_rhs, true, together};
  random_field(context, g, precision, n_rhs, seed, &f->host);
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &f->device));
  MD_REQUIRE(context, md_field_convert(context, &f->device, &f->host));
}

static void drop(pair *f) {
  md_field_destroy(&f->host);
  md_field_destroy(&f->device);
}

static void same_within(md_context *context, const pair *f, double roundoffs, const char *what) {
  md_field back;
  random_field(context, f->host.geometry, f->host.precision, f->host.n_rhs, 99, &back);
  MD_REQUIRE(context, md_field_convert(context, &back, &f->device));
  md_require_at_most(md_test_distance(context, &back, &f->host),
                     roundoffs * md_precision_roundoff(f->host.precision), what);
  md_field_destroy(&back);
}

static void same(md_context *context, const pair *f, const char *what) {
  same_within(context, f, 2.0, what);
}

static void same_sums(const double *host, const double *device, int n, double size,
                      double tolerance, const char *what) {
  char name[128];
  for (int r = 0; r < n; r++) {
    snprintf(name, sizeof name, "%s, %d reals a site, %g against %g", what, components, device[r],
             host[r]);
    md_require_at_most(fabs(host[r] - device[r]), tolerance * (size + fabs(host[r])), name);
  }
}

/* What x takes of several directions. */
static void directions(md_context *context, pair *r, pair *p, pair *x) {
  double of[MD_LINEAR_MOST_DIRECTIONS][MD_MAX_RHS], b[MD_MAX_RHS];
  pair next;
  make(context, p->host.geometry, p->host.precision, p->host.n_rhs, 5, &next);
  for (int n = 0; n < MD_MAX_RHS; n++) {
    b[n] = 0.25 - 0.01 * n;
    for (int k = 0; k < MD_LINEAR_MOST_DIRECTIONS; k++) of[k][n] = 0.5 - 0.3 * k + 0.02 * n;
  }
  md_linear_cg_direction(b, &r->host, &p->host, &next.host);
  md_linear_cg_direction(b, &r->device, &p->device, &next.device);
  same(context, &next, "next of cg_direction");
  MD_REQUIRE(context,
             md_field_convert(context, &next.device, &next.host)); /* the same bits again */
  const md_field on_host[] = {p->host, next.host, p->host, next.host};
  const md_field on_device[] = {p->device, next.device, p->device, next.device};
  for (int count = 0; count <= MD_LINEAR_MOST_DIRECTIONS; count += 2) {
    md_linear_cg_add(count, of, on_host, &x->host);
    md_linear_cg_add(count, of, on_device, &x->device);
    same(context, x, "x of cg_add");
    MD_REQUIRE(context, md_field_convert(context, &x->device, &x->host));
  }
  drop(&next);
}

/* What y takes of itself and others, of one alone in 16 bits, which round y once or every time; and
 * complex products of them with a guess and without. */
static void complex_sums(md_context *context, const pair *x, const pair *z, pair *y, double size) {
  enum { COUNT = 10 };
  const int n = y->host.n_rhs, most = md_precision_bytes(y->host.precision) > 2 ? COUNT : 1;
  double re[COUNT][MD_MAX_RHS], im[COUNT][MD_MAX_RHS], guess[2 * COUNT * MD_MAX_RHS];
  double here[2 * COUNT * MD_MAX_RHS], there[2 * COUNT * MD_MAX_RHS];
  md_field on_host[COUNT], on_device[COUNT];
  for (int k = 0; k < COUNT; k++) {
    on_host[k] = k == 0 ? y->host : k % 3 ? x->host : z->host;
    on_device[k] = k == 0 ? y->device : k % 3 ? x->device : z->device;
    for (int r = 0; r < n; r++) re[k][r] = 0.25 - 0.02 * k, im[k][r] = 0.1 * k - 0.01 * r;
  }
  for (int count = 1; count <= most; count += 9) {
    md_linear_add_complex(count, re, im, on_host, &y->host);
    md_linear_add_complex(count, re, im, on_device, &y->device);
    same_within(context, y, count + 1.0, "y of add_complex");
    MD_REQUIRE(context, md_field_convert(context, &y->device, &y->host)); /* the same bits again */
  }
  for (int i = 0; i < 2 * COUNT * n; i++) guess[i] = size;
  MD_REQUIRE(context, md_linear_dots(context, COUNT, on_host, &z->host, NULL, here));
  MD_REQUIRE(context, md_linear_dots(context, COUNT, on_device, &z->device, NULL, there));
  same_sums(here, there, 2 * COUNT * n, size, 1e-12, "dots");
  MD_REQUIRE(context, md_linear_dots(context, COUNT, on_device, &z->device, guess, there));
  same_sums(here, there, 2 * COUNT * n, size, 1e-12, "dots with a guess");
}

static void check(md_context *context, const md_geometry *g, md_precision precision, int n_rhs) {
  double a[MD_MAX_RHS], b[MD_MAX_RHS], on_host[MD_MAX_RHS], on_device[MD_MAX_RHS];
  double again[MD_MAX_RHS];
  for (int r = 0; r < n_rhs; r++) a[r] = 0.5 + 0.01 * r, b[r] = -0.75 + 0.02 * r;
  pair x, y, z;
  make(context, g, precision, n_rhs, 1, &x);
  make(context, g, precision, n_rhs, 2, &y);
  make(context, g, precision, n_rhs, 3, &z);
  const double size = 12.0 * (double)g->volume;
  same(context, &x, "upload and download");

  MD_REQUIRE(context, md_linear_norm2(context, &x.host, NULL, on_host));
  MD_REQUIRE(context, md_linear_norm2(context, &x.device, NULL, on_device));
  same_sums(on_host, on_device, n_rhs, size, 1e-12, "norm2");
  MD_REQUIRE(context, md_linear_norm2(context, &x.device, NULL, again));
  assert_memory_equal(again, on_device, (size_t)n_rhs * sizeof *again);
  MD_REQUIRE(context, md_linear_dot(context, &x.host, &y.host, NULL, on_host));
  MD_REQUIRE(context, md_linear_dot(context, &x.device, &y.device, NULL, on_device));
  same_sums(on_host, on_device, n_rhs, size, 1e-12, "dot");

  md_linear_axpy(a, &x.host, &y.host);
  md_linear_axpy(a, &x.device, &y.device);
  same(context, &y, "axpy");
  md_linear_xpby(&x.host, b, &y.host);
  md_linear_xpby(&x.device, b, &y.device);
  same(context, &y, "xpby");
  complex_sums(context, &x, &z, &y, size);
  md_linear_cg_update(a, b, &x.host, &y.host, &z.host);
  md_linear_cg_update(a, b, &x.device, &y.device, &z.device);
  same(context, &y, "p of cg_update");
  same(context, &z, "x of cg_update");
  MD_REQUIRE(context, md_field_convert(context, &z.device, &z.host)); /* the same bits again */
  MD_REQUIRE(context, md_field_convert(context, &y.device, &y.host));
  directions(context, &x, &y, &z);
  MD_REQUIRE(context, md_linear_axpby_norm2(context, a, &z.host, NULL, &y.host, NULL, on_host));
  MD_REQUIRE(context,
             md_linear_axpby_norm2(context, a, &z.device, NULL, &y.device, NULL, on_device));
  same(context, &y, "axpby_norm2");
  same_sums(on_host, on_device, n_rhs, size,
            precision == MD_DOUBLE ? 1e-12 : 4.0 * md_precision_roundoff(precision), "axpby_norm2");
  MD_REQUIRE(context, md_field_convert(context, &y.device, &y.host));
  memcpy(again, on_host, sizeof again);
  MD_REQUIRE(context, md_linear_axpby_norm2(context, a, &z.host, b, &y.host, again, on_host));
  MD_REQUIRE(context, md_linear_axpby_norm2(context, a, &z.device, b, &y.device, again, on_device));
  same(context, &y, "axpby_norm2 by a guess");
  same_sums(on_host, on_device, n_rhs, size,
            precision == MD_DOUBLE ? 1e-12 : 4.0 * md_precision_roundoff(precision),
            "axpby_norm2 by a guess");
  MD_REQUIRE(context, md_linear_norm2(context, &y.device, on_device, again));
  same_sums(on_device, again, n_rhs, size, 1e-12, "norm2 by a guess");
  md_linear_copy(&x.device, &y.device);
  md_linear_copy(&x.host, &y.host);
  same(context, &x, "copy");
  for (int r = 0; r < n_rhs; r++) a[r] = NAN;
  md_linear_axpy(a, &y.device, &x.device);
  md_linear_zero(&x.device);
  MD_REQUIRE(context, md_linear_norm2(context, &x.device, NULL, on_device));
  for (int r = 0; r < n_rhs; r++) assert_true(on_device[r] == 0.0);
  drop(&x);
  drop(&y);
  drop(&z);
}

/* What CG in 16 bits does: x in single, r too or as narrow as p. */
static void beside_single(void **state) {
  md_context *context = *state;
  static const int rhs[] = {1, 3, 16};
  const md_precision narrow[] = {MD_HALF, MD_BF16};
  md_geometry *g = md_test_geometry(context, 12, 4, 8, 4, false);
  for (int k = 0; k < (together ? 4 : 6); k++) {
    double a[16], b[16], on_host[16], on_device[16], guess[16];
    pair x, r, p;
    const double unit = md_precision_roundoff(narrow[k % 2]);
    for (int n = 0; n < rhs[k / 2]; n++) a[n] = 0.5 + 0.01 * n, b[n] = -0.75 + 0.02 * n;
    make(context, g, MD_SINGLE, rhs[k / 2], 1, &x);
    make(context, g, MD_SINGLE, rhs[k / 2], 2, &r);
    make(context, g, narrow[k % 2], rhs[k / 2], 3, &p);
    MD_REQUIRE(context, md_linear_axpby_norm2(context, a, &p.host, NULL, &r.host, NULL, guess));
    MD_REQUIRE(context,
               md_linear_axpby_norm2(context, a, &p.device, NULL, &r.device, NULL, on_device));
    same_sums(guess, on_device, rhs[k / 2], 0.0, 8.0 * unit, "norm2 of CG in 16 bits");
    MD_REQUIRE(context, md_linear_axpby_norm2(context, a, &p.host, NULL, &r.host, guess, on_host));
    MD_REQUIRE(context,
               md_linear_axpby_norm2(context, a, &p.device, NULL, &r.device, guess, on_device));
    same_sums(on_host, on_device, rhs[k / 2], 0.0, 8.0 * unit, "the same by a guess");
    same(context, &r, "r of CG in 16 bits");
    md_linear_cg_update(a, b, &r.host, &p.host, &x.host);
    md_linear_cg_update(a, b, &r.device, &p.device, &x.device);
    same(context, &x, "x of CG in 16 bits");
    same(context, &p, "p of CG in 16 bits");
    drop(&r);
    make(context, g, narrow[k % 2], rhs[k / 2], 4, &r);
    MD_REQUIRE(context, md_field_convert(context, &x.device, &x.host)); /* the same bits again */
    MD_REQUIRE(context, md_field_convert(context, &p.device, &p.host));
    md_linear_cg_update(a, b, &r.host, &p.host, &x.host);
    md_linear_cg_update(a, b, &r.device, &p.device, &x.device);
    same(context, &x, "x of CG with a narrow r");
    MD_REQUIRE(context, md_field_convert(context, &x.device, &x.host)); /* the same bits again */
    MD_REQUIRE(context, md_field_convert(context, &p.device, &p.host));
    directions(context, &r, &p, &x);
    same(context, &p, "p of CG with a narrow r");
    drop(&x);
    drop(&r);
    drop(&p);
  }
  md_geometry_destroy(g);
}

static void as_on_the_host(void **state) {
  md_context *context = *state;
  static const int rhs[] = {1, 3, 16, 128};
  md_geometry *g = md_test_geometry(context, 12, 4, 8, 4, false);
  for (int p = 0; p < MD_PRECISIONS; p++)
    for (int k = 0; k < (together ? 2 : 4) && !(together && p == MD_FIXED);
         k++) /* no quark of that has spins */
      check(context, g, (md_precision)p, rhs[k]);
  md_geometry_destroy(g);
}

/* Conversions between precisions give the host's bits, with factors too. Between equal ones a field
 * comes to the host as it is, where the host rounds the scales of fixed anew. */
static void converts_as_the_host(void **state) {
  md_context *context = *state;
  const double factor[2] = {0.3, -1.7};
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, false);
  for (int from = 0; from < MD_PRECISIONS; from++) {
    for (int to = 0; to < MD_PRECISIONS; to++) {
      pair in, out;
      make(context, g, (md_precision)from, 2, 1, &in);
      make(context, g, (md_precision)to, 2, 2, &out);
      MD_REQUIRE(context, md_field_convert(context, &out.host, &in.host));
      MD_REQUIRE(context, md_field_convert(context, &out.device, &in.device));
      md_field back;
      random_field(context, g, (md_precision)to, 2, 99, &back);
      MD_REQUIRE(context, md_field_convert(context, &back, &out.device));
      md_require_at_most(md_test_distance(context, &back, &out.host), 0.0, "device conversion");
      MD_REQUIRE(context, md_field_convert(context, &back, &in.device));
      md_require_at_most(md_test_distance(context, &back, &out.host),
                         from == to && from == MD_FIXED ? 0x1p-23 : 0.0, "to the host");
      MD_REQUIRE(context, md_field_convert_times(context, &out.host, factor, &in.host));
      MD_REQUIRE(context, md_field_convert_times(context, &out.device, factor, &in.device));
      MD_REQUIRE(context, md_field_convert(context, &back, &out.device));
      md_require_at_most(md_test_distance(context, &back, &out.host), 0.0, "with factors");
      MD_REQUIRE(context, md_field_convert_times(context, &back, factor, &in.device));
      md_require_at_most(md_test_distance(context, &back, &out.host), 0.0, "with factors, down");
      md_field_destroy(&back);
      drop(&in);
      drop(&out);
    }
  }
  md_geometry_destroy(g);
}

static void adds_single_as_the_host(void **state) {
  md_context *context = *state;
  static const int rhs[] = {1, 3, 16};
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, false);
  for (int k = 0; k < 3; k++) {
    pair in, out;
    double factor[16];
    for (int r = 0; r < rhs[k]; r++) factor[r] = 0.3 * r - 1.7;
    make(context, g, MD_SINGLE, rhs[k], 1, &in);
    make(context, g, MD_DOUBLE, rhs[k], 2, &out);
    MD_REQUIRE(context, md_field_add_single(context, &out.host, factor, &in.host));
    MD_REQUIRE(context, md_field_add_single(context, &out.device, factor, &in.device));
    md_field back;
    random_field(context, g, MD_DOUBLE, rhs[k], 99, &back);
    MD_REQUIRE(context, md_field_convert(context, &back, &out.device));
    md_require_at_most(md_test_distance(context, &back, &out.host), 0x1p-50, "device addition");
    md_field_destroy(&back);
    drop(&in);
    drop(&out);
  }
  md_geometry_destroy(g);
}

/* All of that with other numbers of reals per site. */
static void with_any_components(void **state) {
  static const int any[] = {24, 64};
  for (int k = 0; k < 2; k++) {
    components = any[k];
    as_on_the_host(state);
    beside_single(state);
    converts_as_the_host(state);
    adds_single_as_the_host(state);
  }
  components = MD_FERMION_REALS;
}

/* And with those of a site side by side, as of so many slices. */
static void with_long_sites(void **state) {
  static const int slices[] = {1, 2, 5, 6, 12, 16, 17, 32};
  together = true;
  for (int k = 0; k < (int)(sizeof slices / sizeof *slices); k++) {
    components = 24 * slices[k];
    beside_single(state);
    if (k % 2 == 0) as_on_the_host(state);
  }
  components = MD_FERMION_REALS;
  together = false;
}

static void too_large_is_refused(void **state) {
  md_context *context = *state;
  void *memory;
  assert_int_equal(md_device_allocate(context, (size_t)1 << 45, "a test", &memory), MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "needs 35184.372 GB of device memory"));
  assert_null(memory);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(as_on_the_host),          cmocka_unit_test(converts_as_the_host),
    cmocka_unit_test(adds_single_as_the_host), cmocka_unit_test(with_any_components),
    cmocka_unit_test(beside_single),           cmocka_unit_test(with_long_sites),
    cmocka_unit_test(too_large_is_refused)};
MD_RUN_GPU_TESTS(tests)
