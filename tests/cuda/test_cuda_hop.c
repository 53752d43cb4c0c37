/* Deo and Doe of the cuda backend against cpu_ref: every storage type, link format and number of
 * right-hand sides, on rows of odd and even length, with and without halo, with an epilogue, with
 * long links, and on links where coordinates of a reconstruction could be singular. */
#include "gpu_tests.h"
#include "lattice/gauge/smear.h"

#include <math.h>
#include <string.h>

typedef struct setting {
  md_precision precision;
  md_reconstruct reconstruct;
  int n_rhs;
  md_action action;
  md_packing packing; /* any but none: of backend tensor */
} setting;

/* Rounding of links, sources and results of the storage type, and of arithmetic in float. */
static double tolerance_of(const setting *s) {
  const double links =
      s->reconstruct == MD_RECONSTRUCT_8 || s->reconstruct == MD_RECONSTRUCT_9 ? 8.0 : 3.0;
  const double terms = md_action_get(s->action)->fields; /* links of two fields may exceed 1 */
  return terms * links * md_precision_roundoff(s->precision);
}

static void apply(md_context *context, md_dirac *dirac, const md_field *in, const md_field *x,
                  double a, double b, md_field *out) {
  md_field from, to, other;
  MD_REQUIRE(context, md_dirac_field(context, dirac, in->parity, &from));
  MD_REQUIRE(context, md_dirac_field(context, dirac, out->parity, &to));
  MD_REQUIRE(context, md_dirac_field(context, dirac, out->parity, &other));
  MD_REQUIRE(context, md_field_convert(context, &from, in));
  MD_REQUIRE(context, md_field_convert(context, &other, x));
  const md_hop_end end = {.x = &other, .a = a, .b = b};
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &to, &from, b == 0.0 ? NULL : &end));
  MD_REQUIRE(context, md_field_convert(context, out, &to));
  md_field_destroy(&from);
  md_field_destroy(&to);
  md_field_destroy(&other);
}

static void compare(md_context *context, const md_gauge *gauge, const setting *s, bool overlap) {
  const md_geometry *g = gauge->geometry;
  const md_backend_request exact = {.n_rhs = s->n_rhs, .antiperiodic = true, .action = s->action};
  const md_backend_request request = {.precision = s->precision,
                                      .reconstruct = s->reconstruct,
                                      .n_rhs = s->n_rhs,
                                      .antiperiodic = true,
                                      .action = s->action,
                                      .packing = s->packing};
  const char *backend = s->packing == MD_PACKING_NONE ? "cuda" : "tensor";
  md_dirac oracle, dirac;
  MD_REQUIRE(context, md_dirac_create(context, gauge, "cpu_ref", &exact, &oracle));
  MD_REQUIRE(context, md_dirac_create(context, gauge, backend, &request, &dirac));
  dirac.overlap = overlap;
  for (int parity = 0; parity < MD_PARITIES; parity++) {
    for (int plain = 0; plain < 2; plain++) {
      md_field in, x, want, got;
      md_test_random_field(context, g, MD_DOUBLE, s->n_rhs, 1 - parity, 5, &in);
      md_test_random_field(context, g, MD_DOUBLE, s->n_rhs, parity, 6, &x);
      md_test_random_field(context, g, MD_DOUBLE, s->n_rhs, parity, 7, &want);
      md_test_random_field(context, g, MD_DOUBLE, s->n_rhs, parity, 8, &got);
      apply(context, &oracle, &in, &x, 0.7, plain ? 0.0 : -1.5, &want);
      apply(context, &dirac, &in, &x, 0.7, plain ? 0.0 : -1.5, &got);
      char what[200];
      snprintf(what, sizeof what,
               "%s %s %s reals %d rhs parity %d plain %d on %dx%dx%dx%d halo %lld",
               md_action_name(s->action), md_precision_name(s->precision),
               md_reconstruct_name(s->reconstruct), s->n_rhs, parity, plain, g->local[0],
               g->local[1], g->local[2], g->local[3], (long long)g->halo_sites);
      md_require_at_most(md_test_distance(context, &got, &want),
                         tolerance_of(s) + 3.0 * dirac.link_error, what);
      md_field_destroy(&in);
      md_field_destroy(&x);
      md_field_destroy(&want);
      md_field_destroy(&got);
    }
  }
  md_dirac_destroy(&oracle);
  md_dirac_destroy(&dirac);
}

/* Many ranks that share a GPU take turns on it: a third of the cases is theirs. */
static bool left_out(const md_context *context, int one, int other) {
  return context->ranks > 2 && (one + other) % 3 != 0;
}

static void all_formats(md_context *context, const md_gauge *gauge, int n_rhs) {
  for (int p = 0; p < MD_PRECISIONS; p++)
    for (int r = MD_RECONSTRUCT_18; r <= MD_RECONSTRUCT_8; r++)
      if (!left_out(context, p, r + n_rhs))
        compare(
            context, gauge,
            &(setting){(md_precision)p, (md_reconstruct)r, n_rhs, MD_ACTION_NAIVE, MD_PACKING_NONE},
            true);
}

static const int extents[][4] = {{4, 4, 4, 4}, {6, 4, 2, 8}, {16, 6, 4, 4}, {8, 2, 4, 6}};
/* And for long links one whose faces have layers of four sites. */
static const int long_extents[][4] = {
    {4, 4, 4, 4}, {6, 4, 2, 8}, {16, 6, 4, 4}, {8, 2, 4, 6}, {2, 2, 2, 2}};

static void agrees_with_oracle(void **state) {
  md_context *context = *state;
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
    for (int halo = 0; halo < 2; halo++) {
      if (!md_test_fits(context, extents[i][0], extents[i][1], extents[i][2], extents[i][3]))
        continue;
      md_gauge gauge;
      md_geometry *g = md_test_geometry(context, extents[i][0], extents[i][1], extents[i][2],
                                        extents[i][3], halo == 1);
      md_test_random_gauge(context, g, 3, &gauge);
      all_formats(context, &gauge, 1);
      all_formats(context, &gauge, i == 0 ? 3 : i == 1 ? 8 : i == 2 ? 16 : 6);
      compare(context, &gauge,
              &(setting){MD_HALF, MD_RECONSTRUCT_12, 1, MD_ACTION_NAIVE, MD_PACKING_NONE}, false);
      md_gauge_destroy(&gauge);
      md_geometry_destroy(g);
    }
  }
}

/* Hops over one and three sites; an extent of two lets the long one land beside where it began. */
static void long_links_agree_with_oracle(void **state) {
  md_context *context = *state;
  static const int many[] = {1, 2, 3, 8, 12, 16};
  for (size_t i = 0; i < sizeof long_extents / sizeof *long_extents; i++)
    for (int halo = 0; halo < 2; halo++) {
      if (!md_test_fits(context, long_extents[i][0], long_extents[i][1], long_extents[i][2],
                        long_extents[i][3]))
        continue;
      md_gauge fields[MD_MOST_LINK_FIELDS];
      md_geometry *g = md_test_action_geometry(context, MD_ACTION_HISQ, long_extents[i], halo == 1);
      md_test_random_links(context, g, MD_ACTION_HISQ, 3, fields);
      for (int p = 0; p < MD_PRECISIONS; p++)
        for (size_t k = 0; k < sizeof many / sizeof *many; k++)
          if (!left_out(context, p, (int)k))
            compare(context, fields,
                    &(setting){(md_precision)p, MD_RECONSTRUCT_18, many[k], MD_ACTION_HISQ,
                               MD_PACKING_NONE},
                    k % 2);
      md_test_destroy_links(MD_ACTION_HISQ, fields);
      md_geometry_destroy(g);
    }
}

/* Marches, on lattices whose halo is as deep as their hops or, for another action, deeper. */
static void marches_agree_with_oracle(void **state) {
  md_context *context = *state;
  static const int large[][MD_DIMS] = {{16, 16, 16, 16}, {32, 32, 16, 8}};
  static const md_action actions[] = {MD_ACTION_NAIVE, MD_ACTION_HISQ};
  for (int i = 0; i < 2; i++)
    for (int halo = i; halo < 2; halo++)
      for (int a = 0; a < 2; a++) {
        if (!md_test_fits(context, large[i][0], large[i][1], large[i][2], large[i][3])) continue;
        md_gauge fields[MD_MOST_LINK_FIELDS];
        md_geometry *g = md_test_deep_geometry(context, large[i], NULL, halo == 1);
        md_test_random_links(context, g, actions[a], 3, fields);
        for (int overlap = 0; overlap < 2; overlap++)
          compare(context, fields,
                  &(setting){overlap ? MD_DOUBLE : MD_HALF, MD_RECONSTRUCT_18, 8, actions[a],
                             MD_PACKING_STACKED},
                  overlap == 1);
        md_test_destroy_links(actions[a], fields);
        md_geometry_destroy(g);
      }
}

/* Long links of 13 and 9 reals, counted from the first on: 1 right-hand side, those whose links
 * other formats stage, and those that go by ones. */
static void phased_links_agree(md_context *context, const md_gauge fields[MD_MOST_LINK_FIELDS],
                               size_t first, size_t last) {
  static const int many[] = {1, 2, 3, 8, 16};
  for (int p = 0; p < MD_PRECISIONS; p++)
    for (int r = MD_RECONSTRUCT_13; r <= MD_RECONSTRUCT_9; r++)
      for (size_t k = first; k < last && k < sizeof many / sizeof *many; k++)
        if (!left_out(context, p + r, (int)k))
          compare(context, fields,
                  &(setting){(md_precision)p, (md_reconstruct)r, many[k], MD_ACTION_HISQ,
                             MD_PACKING_NONE},
                  k % 2);
}

/* As large as the fat ones, so that an error of theirs is seen. */
static void links_with_a_phase_agree_with_oracle(void **state) {
  md_context *context = *state;
  for (size_t i = 0; i < sizeof long_extents / sizeof *long_extents; i++)
    for (int halo = 0; halo < 2; halo++) {
      if (!md_test_fits(context, long_extents[i][0], long_extents[i][1], long_extents[i][2],
                        long_extents[i][3]))
        continue;
      md_gauge fields[MD_MOST_LINK_FIELDS];
      md_geometry *g = md_test_action_geometry(context, MD_ACTION_HISQ, long_extents[i], halo == 1);
      md_test_phased_links(context, g, 3, i % 2 ? -1.0 : 0.9, fields);
      phased_links_agree(context, fields, 0, i == 0 || halo == 1 ? 5 : 1);
      md_test_destroy_links(MD_ACTION_HISQ, fields);
      md_geometry_destroy(g);
    }
}

/* The long links of HISQ and asqtad themselves; the number of both is negative. */
static void own_long_links_agree_with_oracle(void **state) {
  md_context *context = *state;
  static const char *const names[] = {"hisq", "asqtad"};
  md_geometry *g = md_test_action_geometry(context, MD_ACTION_HISQ, extents[2], false);
  for (int k = 0; k < 2; k++) {
    md_gauge thin, fields[MD_MOST_LINK_FIELDS];
    const md_smear_request request = md_smear_defaults(md_recipe_find(names[k]));
    md_test_random_gauge(context, g, 3, &thin);
    MD_REQUIRE(context, md_smear(context, &thin, &request, &fields[0], &fields[1], NULL));
    phased_links_agree(context, fields, 0, 2);
    md_gauge_destroy(&thin);
    md_test_destroy_links(MD_ACTION_HISQ, fields);
  }
  md_geometry_destroy(g);
}

/* Links that are not of that form. */
static void other_long_links_are_refused(void **state) {
  md_context *context = *state;
  const md_backend_request request = {
      .reconstruct = MD_RECONSTRUCT_13, .n_rhs = 1, .antiperiodic = true, .action = MD_ACTION_HISQ};
  md_geometry *g = md_test_action_geometry(context, MD_ACTION_HISQ, extents[2], false);
  md_gauge fields[MD_MOST_LINK_FIELDS];
  md_dirac dirac;
  md_test_random_links(context, g, MD_ACTION_HISQ, 3, fields);
  assert_int_equal(md_dirac_create(context, fields, "cuda", &request, &dirac), MD_INPUT);
  assert_non_null(strstr(context->message, "one number times matrices in U(3)"));
  md_test_destroy_links(MD_ACTION_HISQ, fields);
  md_geometry_destroy(g);
}

/* Unit links; U_00 = 0; diag(-1, -1, 1) and diag(1, -1, -1). */
static void no_singular_links(void **state) {
  md_context *context = *state;
  static const double special[4][9] = {{1, 0, 0, 0, 1, 0, 0, 0, 1},
                                       {0, 1, 0, 0, 0, 1, 1, 0, 0},
                                       {-1, 0, 0, 0, -1, 0, 0, 0, 1},
                                       {1, 0, 0, 0, -1, 0, 0, 0, -1}};
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 4, false);
  for (int k = 0; k < 4; k++) {
    md_gauge gauge;
    double u[MD_LINK_REALS] = {0};
    for (int e = 0; e < 9; e++) u[2 * e] = special[k][e];
    MD_REQUIRE(context, md_gauge_create(context, g, &gauge));
    for (int p = 0; p < MD_PARITIES; p++)
      for (int mu = 0; mu < MD_DIMS; mu++)
        for (int64_t i = 0; i < g->sites; i++) md_gauge_set(&gauge, p, mu, i, u);
    MD_REQUIRE(context, md_gauge_exchange(context, &gauge));
    all_formats(context, &gauge, 1);
    md_gauge_destroy(&gauge);
  }
  md_geometry_destroy(g);
}

/* Scaled types keep their accuracy at any size of the field, and site by site where it decays. */
static void has_no_range(md_context *context, md_precision precision) {
  md_geometry *g = md_test_geometry(context, 8, 4, 4, 16, false);
  const md_backend_request exact = {.n_rhs = 1, .antiperiodic = true};
  const md_backend_request request = {.precision = precision, .n_rhs = 1, .antiperiodic = true};
  md_gauge gauge;
  md_dirac oracle, dirac;
  md_test_random_gauge(context, g, 3, &gauge);
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cpu_ref", &exact, &oracle));
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cuda", &request, &dirac));
  for (int k = 0; k < 3; k++) {
    md_field in, want, got;
    md_test_random_field(context, g, MD_DOUBLE, 1, MD_ODD, 5, &in);
    md_test_random_field(context, g, MD_DOUBLE, 1, MD_EVEN, 6, &want);
    md_test_random_field(context, g, MD_DOUBLE, 1, MD_EVEN, 6, &got);
    for (int64_t i = 0; i < g->sites; i++) {
      int x[4];
      double v[6];
      md_global_coordinates(g, MD_ODD, i, x);
      md_field_get(&in, i, 0, v);
      for (int c = 0; c < 6; c++) v[c] *= k == 0 ? 1e-20 : k == 1 ? 1e20 : pow(10.0, -0.5 * x[3]);
      md_field_set(&in, i, v);
    }
    apply(context, &oracle, &in, &want, 0.0, 0.0, &want);
    apply(context, &dirac, &in, &got, 0.0, 0.0, &got);
    for (int64_t i = 0; i < g->sites; i++) {
      double a[6], b[6], difference = 0.0, size = 0.0;
      md_field_get(&want, i, 0, a);
      md_field_get(&got, i, 0, b);
      for (int c = 0; c < 6; c++) {
        difference += (a[c] - b[c]) * (a[c] - b[c]);
        size += a[c] * a[c];
      }
      md_require_at_most(sqrt(difference), 20.0 * md_precision_roundoff(precision) * sqrt(size),
                         md_precision_name(precision));
    }
    md_field_destroy(&in);
    md_field_destroy(&want);
    md_field_destroy(&got);
  }
  md_dirac_destroy(&oracle);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void scaled_types_have_no_range(void **state) {
  for (int p = 0; p < MD_PRECISIONS; p++)
    if (md_precision_scaled((md_precision)p)) has_no_range(*state, (md_precision)p);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_oracle),
                                    cmocka_unit_test(long_links_agree_with_oracle),
                                    cmocka_unit_test(marches_agree_with_oracle),
                                    cmocka_unit_test(links_with_a_phase_agree_with_oracle),
                                    cmocka_unit_test(own_long_links_agree_with_oracle),
                                    cmocka_unit_test(other_long_links_are_refused),
                                    cmocka_unit_test(no_singular_links),
                                    cmocka_unit_test(scaled_types_have_no_range)};
MD_RUN_GPU_TESTS(tests)
