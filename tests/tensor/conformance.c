#include "conformance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct trial {
  int dims[MD_DIMS];
  bool self_halo;
  md_precision precision;
  md_packing packing;
  int n_rhs;
  double norm, decay; /* source site (x, t) is multiplied by norm * decay^(t/T) */
  md_action action;
  int slices; /* of a domain-wall action */
} trial;

static md_backend_request request_of(const trial *t) {
  return (md_backend_request){.action = t->action,
                              .precision = t->precision,
                              .packing = t->packing,
                              .n_rhs = t->n_rhs,
                              .antiperiodic = true,
                              .walls = {t->slices, 1.8, 1.5, 0.5}};
}

static md_dirac operator_of(md_context *context, const md_gauge *gauge, const char *backend,
                            const trial *t) {
  const md_backend_request request = request_of(t);
  md_dirac dirac;
  MD_REQUIRE(context, md_dirac_create(context, gauge, backend, &request, &dirac));
  return dirac;
}

static void shape_source(const trial *t, const md_field *from, md_field *to) {
  const int n = from->components;
  double *site = malloc((size_t)(n * from->n_rhs) * sizeof *site);
  assert_non_null(site);
  for (int64_t i = 0; i < from->sites; i++) {
    int x[MD_DIMS];
    md_global_coordinates(from->geometry, from->parity, i, x);
    const double factor = t->norm * pow(t->decay, (double)x[MD_T] / t->dims[MD_T]);
    for (int r = 0; r < from->n_rhs; r++) {
      md_field_get(from, i, r, site + n * r);
      for (int c = 0; c < n; c++) site[n * r + c] *= factor;
    }
    md_field_set(to, i, site);
  }
  free(site);
}

/* Largest over sites of |a - b| / |b|, the norms over all right-hand sides. */
static double worst_site(const md_context *context, const md_field *a, const md_field *b) {
  double worst = 0.0;
  for (int64_t i = 0; i < a->sites; i++) {
    double difference = 0.0, norm = 0.0;
    for (int r = 0; r < a->n_rhs; r++) {
      double u[MD_MAX_COMPONENTS], v[MD_MAX_COMPONENTS];
      md_field_get(a, i, r, u);
      md_field_get(b, i, r, v);
      for (int c = 0; c < a->components; c++)
        difference = hypot(difference, u[c] - v[c]), norm = hypot(norm, v[c]);
    }
    if (!(difference <= worst * norm)) worst = difference / norm;
  }
  md_maximum(context, &worst, 1);
  return worst;
}

/* Of a trial, normal deviates by seed; zeros with seed 0. */
static md_field host_field(md_context *context, const md_geometry *g, const trial *t,
                           md_precision precision, int parity, uint64_t seed) {
  const md_backend_request request = request_of(t);
  const md_field_shape shape = {.precision = precision,
                                .space = MD_HOST,
                                .components = md_request_reals(&request),
                                .n_rhs = t->n_rhs,
                                .scaled = true};
  md_field field;
  if (seed > 0)
    md_test_random_shape(context, g, &shape, parity, seed, &field);
  else
    MD_REQUIRE(context, md_field_create(context, g, &shape, parity, &field));
  return field;
}

/* out = hop of `in` (host, the operator's precision), in whatever space the backend works. */
static void hop_from_host(md_context *context, md_dirac *dirac, md_field *out, const md_field *in,
                          const md_field *x) {
  md_field own_out, own_in, own_x = {0};
  MD_REQUIRE(context, md_dirac_field(context, dirac, out->parity, &own_out));
  MD_REQUIRE(context, md_dirac_field(context, dirac, in->parity, &own_in));
  MD_REQUIRE(context, md_field_convert(context, &own_in, in));
  if (x) {
    MD_REQUIRE(context, md_dirac_field(context, dirac, out->parity, &own_x));
    MD_REQUIRE(context, md_field_convert(context, &own_x, x));
  }
  const md_hop_end end = {.x = &own_x, .a = 0.3, .b = -1.5};
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &own_out, &own_in, x ? &end : NULL));
  MD_REQUIRE(context, md_field_convert(context, out, &own_out));
  md_field_destroy(&own_out);
  md_field_destroy(&own_in);
  md_field_destroy(&own_x);
}

/* Relative errors of one hop: l2 over the field, worst over its sites. */
static void errors_of(md_context *context, const char *backend, const trial *t, int parity,
                      bool epilogue, double *l2, double *worst) {
  trial exactly = *t;
  exactly.precision = MD_DOUBLE, exactly.packing = MD_PACKING_NONE;
  md_geometry *g = md_test_action_geometry(context, t->action, t->dims, t->self_halo);
  md_gauge links[MD_MOST_LINK_FIELDS];
  md_test_random_links(context, g, t->action, 11, links);
  md_dirac dirac = operator_of(context, links, backend, t);
  md_dirac exact = operator_of(context, links, "cpu_ref", &exactly);
  md_field noise = host_field(context, g, t, MD_DOUBLE, 1 - parity, 5);
  md_field in = host_field(context, g, t, t->precision, 1 - parity, 0);
  md_field in64 = host_field(context, g, t, MD_DOUBLE, 1 - parity, 0);
  shape_source(t, &noise, &in);
  MD_REQUIRE(context, md_field_convert(context, &in64, &in));
  md_field_destroy(&noise);
  noise = host_field(context, g, t, MD_DOUBLE, parity, 6);
  md_field x = host_field(context, g, t, t->precision, parity, 0);
  md_field x64 = host_field(context, g, t, MD_DOUBLE, parity, 0);
  shape_source(t, &noise, &x);
  MD_REQUIRE(context, md_field_convert(context, &x64, &x));
  md_field out = host_field(context, g, t, t->precision, parity, 0);
  md_field out64 = host_field(context, g, t, MD_DOUBLE, parity, 0);
  md_field reference = host_field(context, g, t, MD_DOUBLE, parity, 0);
  hop_from_host(context, &dirac, &out, &in, epilogue ? &x : NULL);
  hop_from_host(context, &exact, &reference, &in64, epilogue ? &x64 : NULL);
  MD_REQUIRE(context, md_field_convert(context, &out64, &out));
  *l2 = md_test_distance(context, &out64, &reference);
  *worst = worst_site(context, &out64, &reference);
  md_field *all[] = {&noise, &in, &out, &x, &in64, &out64, &x64, &reference};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) md_field_destroy(all[i]);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&exact);
  md_test_destroy_links(t->action, links);
  md_geometry_destroy(g);
}

/* Links and results are rounded to the storage type, sums are longer: about one roundoff in L2;
 * with spin so are the sums of two spins. */
static void check(md_context *context, const char *backend, const trial *t) {
  if (!md_test_fits(context, t->dims[0], t->dims[1], t->dims[2], t->dims[3])) return;
  const double unit = md_precision_roundoff(t->precision);
  const bool large = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3] >= 1 << 16;
  for (int n = 0; n < 4; n += large ? 3 : 1) { /* both parities, without and with epilogue */
    char what[160];
    double l2, worst;
    errors_of(context, backend, t, n % 2, n / 2, &l2, &worst);
    snprintf(what, sizeof what, "%s %s %s %s %d slices %d rhs %dx%dx%dx%d parity %d %s", backend,
             md_action_name(t->action), md_packing_name(t->packing),
             md_precision_name(t->precision), t->slices, t->n_rhs, t->dims[0], t->dims[1],
             t->dims[2], t->dims[3], n % 2, n / 2 ? "epilogue" : "");
    md_require_at_most(l2, (t->precision == MD_DOUBLE ? 8.0 : 2.0) * unit, what);
    md_require_at_most(worst, 40.0 * unit, what);
  }
}

void tensor_matches_reference(md_context *context, const char *backend) {
  static const int lattices[][MD_DIMS] = {{4, 4, 4, 4}, {6, 4, 2, 4}, {10, 2, 4, 2},
                                          {2, 2, 2, 2}, {8, 4, 4, 6}, {2, 6, 4, 2}};
  static const md_packing tiles[] = {MD_PACKING_SINGLE, MD_PACKING_DIAGONAL, MD_PACKING_BLOCK8};
  static const md_precision stacked[] = {MD_HALF, MD_BF16, MD_DOUBLE};
  static const int rhs[] = {16, 8, 2, 3, 12, 21, 32};
  for (size_t l = 0; l < sizeof lattices / sizeof *lattices; l++) {
    const int *d = lattices[l];
    for (int p = 0; p < 3; p++) {
      trial t = {{d[0], d[1], d[2], d[3]}, l == 0, MD_HALF, tiles[p], 1, 1.0, 1.0,
                 MD_ACTION_NAIVE,          0};
      check(context, backend, &t);
    }
    for (size_t n = 0; n < sizeof rhs / sizeof *rhs; n++)
      for (int p = 0; p < 3; p++) {
        if (n > 1 && l > 1) continue;
        trial t = {
            {d[0], d[1], d[2], d[3]}, l == 1, stacked[p], MD_PACKING_STACKED, rhs[n], 1.0, 1.0,
            MD_ACTION_NAIVE,          0};
        check(context, backend, &t);
      }
  }
}

void tensor_marches(md_context *context, const char *backend, md_action action) {
  static const md_precision stacked[] = {MD_HALF, MD_BF16, MD_DOUBLE};
  static const int lattices[][MD_DIMS] = {{16, 16, 16, 32}, {16, 16, 8, 64}};
  const int all = context->gpu.multiprocessors;
  /* Each precision without and with halo; 8 right-hand sides in bf16 and double. Few
   * multiprocessors let these lattices march where ranks split them in t alone, too. */
  for (int n = 0; n < 6; n++) {
    const int *d = lattices[n % 2];
    context->gpu.multiprocessors = n < 3 ? 4 : all;
    trial t = {.dims = {d[0], d[1], d[2], d[3]},
               .self_halo = n >= 3,
               .precision = stacked[n % 3],
               .packing = MD_PACKING_STACKED,
               .n_rhs = n == 1 || n == 5 ? 8 : 16,
               .norm = 1.0,
               .decay = n == 0 ? 1e-8 : 1.0,
               .action = action};
    check(context, backend, &t);
  }
  context->gpu.multiprocessors = all;
}

void tensor_marches_with_spin(md_context *context, const char *backend) {
  static const struct { int slices, n_rhs; } of[] = {{8, 1}, {12, 1}, {16, 1}, {0, 8}, {4, 3}};
  const int all = context->gpu.multiprocessors;
  context->gpu.multiprocessors = 4; /* which a small lattice fills */
  for (int n = 0; n < 5; n++) {
    const trial t = {.dims = {8, 4, 8, 16},
                     .self_halo = n > 0,
                     .precision = n % 2 ? MD_BF16 : MD_HALF,
                     .packing = MD_PACKING_STACKED,
                     .n_rhs = of[n].n_rhs,
                     .norm = 1.0,
                     .decay = n == 0 ? 1e-8 : 1.0,
                     .action = of[n].slices ? MD_ACTION_MOBIUS : MD_ACTION_WILSON,
                     .slices = of[n].slices};
    check(context, backend, &t);
  }
  context->gpu.multiprocessors = all;
}

void tensor_serves_spins(md_context *context, const char *backend) {
  static const int lattices[][MD_DIMS] = {{4, 4, 2, 4}, {6, 2, 4, 2}};
  static const md_precision types[] = {MD_HALF, MD_BF16, MD_DOUBLE};
  static const struct {
    int slices, n_rhs; /* slices 0: Wilson's action */
  } shapes[] = {{0, 1}, {0, 5},  {0, 16}, {2, 1},  {4, 1}, {5, 1}, {8, 1},
                {9, 1}, {12, 1}, {16, 1}, {32, 1}, {5, 2}, {8, 3}, {12, 2}};
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++)
    for (int p = 0; p < 3; p++) {
      const int *d = lattices[n % 2], slices = shapes[n].slices;
      trial t = {.dims = {d[0], d[1], d[2], d[3]},
                 .self_halo = n / 2 % 2 == 1,
                 .precision = types[p],
                 .packing = MD_PACKING_STACKED,
                 .n_rhs = shapes[n].n_rhs,
                 .norm = n % 3 == 0 ? 1e-20 : 1.0,
                 .decay = n % 4 == 0 ? 1e-8 : 1.0,
                 .action = slices ? MD_ACTION_MOBIUS : MD_ACTION_WILSON,
                 .slices = slices};
      check(context, backend, &t);
    }
}

/* All numbers of a site round to the largest of half, of which two have a sum beyond it. */
void tensor_adds_largest_spins(md_context *context, const char *backend) {
  const trial t = {.dims = {2, 2, 2, 4},
                   .precision = MD_HALF,
                   .packing = MD_PACKING_STACKED,
                   .n_rhs = 1,
                   .action = MD_ACTION_DOMAINWALL,
                   .slices = 8};
  trial exactly = t;
  exactly.precision = MD_DOUBLE, exactly.packing = MD_PACKING_NONE;
  md_geometry *g = md_test_geometry(context, 2, 2, 2, 4, false);
  md_gauge gauge;
  md_test_random_gauge(context, g, 3, &gauge);
  md_dirac dirac = operator_of(context, &gauge, backend, &t);
  md_dirac exact = operator_of(context, &gauge, "cpu_ref", &exactly);
  md_field in = host_field(context, g, &exactly, MD_DOUBLE, MD_ODD, 0);
  md_field out = host_field(context, g, &exactly, MD_DOUBLE, MD_EVEN, 0);
  md_field reference = host_field(context, g, &exactly, MD_DOUBLE, MD_EVEN, 0);
  double site[24 * 8];
  for (int c = 0; c < 24 * 8; c++) site[c] = c % 3 ? 0.99999 : -0.99999;
  for (int64_t i = 0; i < g->sites; i++) md_field_set(&in, i, site);
  hop_from_host(context, &dirac, &out, &in, NULL);
  hop_from_host(context, &exact, &reference, &in, NULL);
  md_require_at_most(md_test_distance(context, &out, &reference),
                     3.0 * md_precision_roundoff(MD_HALF), "largest numbers of half");
  md_field *all[] = {&in, &out, &reference};
  for (int f = 0; f < 3; f++) md_field_destroy(all[f]);
  md_dirac_destroy(&dirac);
  md_dirac_destroy(&exact);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

void tensor_half_keeps_range(md_context *context, const char *backend) {
  static const double norms[] = {1e-20, 1e20, 1.0}, decays[] = {1.0, 1.0, 1e-8};
  for (int n = 0; n < 3; n++)
    for (int packing = MD_PACKING_SINGLE; packing < MD_PACKINGS; packing++) {
      const int many = packing == MD_PACKING_STACKED;
      trial t = {{4, 4, 2, 8},        false,           MD_HALF,
                 (md_packing)packing, many ? 16 : 1,   norms[n],
                 decays[n],           MD_ACTION_NAIVE, 0};
      check(context, backend, &t);
      t.n_rhs = many ? 24 : 1;
      check(context, backend, &t);
    }
}

void tensor_ranges_are_disjoint(md_context *context, const char *backend) {
  for (int packing = MD_PACKING_SINGLE; packing <= MD_PACKINGS; packing++) {
    const bool spins = packing == MD_PACKINGS;
    const trial t = {.dims = {8, 4, 4, 6},
                     .precision = MD_HALF,
                     .packing = spins ? MD_PACKING_STACKED : (md_packing)packing,
                     .n_rhs = packing == MD_PACKING_STACKED ? 8 : 1,
                     .action = spins ? MD_ACTION_MOBIUS : MD_ACTION_NAIVE,
                     .slices = spins ? 8 : 0};
    const int n = t.n_rhs;
    md_geometry *g = md_test_geometry(context, 8, 4, 4, 6, true);
    md_gauge gauge;
    md_field in = host_field(context, g, &t, MD_HALF, MD_ODD, 4),
             one = host_field(context, g, &t, MD_HALF, MD_EVEN, 0),
             two = host_field(context, g, &t, MD_HALF, MD_EVEN, 0);
    md_test_random_gauge(context, g, 3, &gauge);
    md_dirac dirac = operator_of(context, &gauge, backend, &t);
    dirac.overlap = false;
    hop_from_host(context, &dirac, &one, &in, NULL);
    dirac.overlap = true;
    hop_from_host(context, &dirac, &two, &in, NULL);
    for (int64_t i = 0; i < g->sites; i++)
      for (int r = 0; r < n; r++) {
        double u[MD_MAX_COMPONENTS], v[MD_MAX_COMPONENTS];
        md_field_get(&one, i, r, u);
        md_field_get(&two, i, r, v);
        assert_memory_equal(u, v, (size_t)one.components * sizeof *u);
      }
    md_field *all[] = {&in, &one, &two};
    for (int f = 0; f < 3; f++) md_field_destroy(all[f]);
    md_dirac_destroy(&dirac);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(g);
  }
}

static void refused(md_context *context, const char *backend, md_precision precision,
                    md_packing packing, int n_rhs, const char *reason) {
  const bool spins = strstr(reason, "without spin") != NULL;
  const md_backend_request request = {.precision = precision,
                                      .packing = packing,
                                      .n_rhs = n_rhs,
                                      .antiperiodic = true,
                                      .action = spins ? MD_ACTION_WILSON : MD_ACTION_NAIVE};
  const md_backend *found;
  assert_int_equal(md_backend_find(context, backend, &request, &found), MD_INPUT);
  if (!strstr(context->message, reason))
    fail_msg("expected '%s' in the message, got: %s", reason, context->message);
}

void tensor_refuses(md_context *context, const char *backend) {
  refused(context, backend, MD_HALF, MD_PACKING_STACKED, 1, "needs at least 2, got 1");
  refused(context, backend, MD_DOUBLE, MD_PACKING_BLOCK8, 16, "serves one right-hand side, got 16");
  refused(context, backend, MD_BF16, MD_PACKING_SINGLE, 1, "tiles of fp16, got precision bf16");
  refused(context, backend, MD_DOUBLE, MD_PACKING_DIAGONAL, 1, "got precision double");
  refused(context, backend, MD_SINGLE, MD_PACKING_STACKED, 16, "does not serve precision single");
  refused(context, backend, MD_HALF, MD_PACKING_NONE, 1, "serves the packings");
  refused(context, backend, MD_HALF, MD_PACKING_BLOCK8, 1,
          "quarks without spin, got action wilson");
}
