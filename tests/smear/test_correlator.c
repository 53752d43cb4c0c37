/* The whole way from thin links to a correlator of an improved action: smearing, the operator with
 * fat and long links, a solver. Against numbers that the MILC code prints for its sample lattice
 * (../shared/hisq.md), which skip where the lattice is absent, and on every backend with double. */
#include "dirac/solvers/solver.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"
#include "smear_support.h"

#include <math.h>
#include <stdlib.h>

enum { TIMES = 8 };

typedef struct golden {
  const char *name;
  md_action action;
  double correlator[TIMES]; /* of a point source at the origin, mass 0.05, periodic */
} golden;

static const golden expected[] = {
    {"hisq",
     MD_ACTION_HISQ,
     {1.59174071439, 0.756932165707, 0.773457898327, 0.561252284656, 0.484802155718, 0.350436600618,
      0.467375453595, 0.61228081908}},
    {"asqtad",
     MD_ACTION_ASQTAD,
     {3.0438413599, 1.23378071261, 1.2876976659, 0.88195187545, 0.743703252486, 0.559135030244,
      0.84242374754, 1.16533387932}},
};

/* The links on a geometry with halos of depth 3. */
static void deepen(md_context *context, const md_gauge *from, const md_geometry *deep,
                   md_gauge *to) {
  MD_REQUIRE(context, md_gauge_create(context, deep, to));
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
      for (int64_t i = 0; i < deep->sites; i++) {
        double u[MD_LINK_REALS];
        md_gauge_get(from, p, mu, i, u);
        md_gauge_set(to, p, mu, i, u);
      }
  MD_REQUIRE(context, md_gauge_exchange(context, to));
}

/* inner MD_DOUBLE: CG in double by `backend`, else mixed CG. */
static void correlator_of(md_context *context, const md_gauge *fields, const char *backend,
                          md_action action, md_precision inner, double *correlator) {
  const int origin[MD_DIMS] = {0};
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 3, true, false};
  md_backend_request how = {.n_rhs = 3, .action = action};
  md_solver_request request = {.mass = 0.05, .tolerance = 1e-11, .max_iterations = 3000};
  md_field b[MD_PARITIES], x[MD_PARITIES];
  md_solver_result result;
  md_dirac outer, narrow = {0};
  MD_REQUIRE(context, md_dirac_create(context, fields, backend, &how, &outer));
  how.precision = inner;
  if (inner != MD_DOUBLE) {
    MD_REQUIRE(context, md_dirac_create(context, fields, backend, &how, &narrow));
    request.inner = &narrow;
  }
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_REQUIRE(context, md_field_create(context, outer.geometry, &shape, p, &b[p]));
    MD_REQUIRE(context, md_field_create(context, outer.geometry, &shape, p, &x[p]));
  }
  md_source_point(b, origin);
  MD_REQUIRE(context, md_solve_cg(context, &outer, &outer, &request, x, b, &result));
  assert_true(result.converged);
  MD_REQUIRE(context, md_pion_correlator(context, x, correlator));
  md_solver_result_free(&result);
  for (int p = 0; p < MD_PARITIES; p++) {
    md_field_destroy(&b[p]);
    md_field_destroy(&x[p]);
  }
  md_dirac_destroy(&outer);
  md_dirac_destroy(&narrow);
}

static void correlators_of_another_code(void **state) {
  static const struct {
    const char *backend;
    md_precision inner;
  } ways[] = {{"cpu_ref", MD_DOUBLE}, {"cpu_simd", MD_DOUBLE}, {"cpu_simd", MD_SINGLE},
              {"cpu_simd", MD_HALF},  {"cpu_simd", MD_BF16},   {"cpu_simd", MD_FIXED}};
  md_context *context = *state;
  md_geometry *geometry = NULL;
  md_gauge read, thin;
  if (!smear_load(context, getenv("MINIDIRAC_SHARED_LATTICES"), "lat.sample.l4448.gf", &geometry,
                  &read))
    skip();
  md_geometry *deep = md_test_deep_geometry(context, geometry->global, geometry->grid, false);
  deepen(context, &read, deep, &thin);
  for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
    const md_smear_request request = smear_request(expected[k].name);
    md_gauge fields[MD_MOST_LINK_FIELDS];
    MD_REQUIRE(context, md_smear(context, &thin, &request, &fields[0], &fields[1], NULL));
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
      double got[TIMES];
      correlator_of(context, fields, ways[w].backend, expected[k].action, ways[w].inner, got);
      for (int t = 0; t < TIMES; t++)
        md_require_at_most(fabs(got[t] / expected[k].correlator[t] - 1.0), 1e-6, expected[k].name);
    }
    md_test_destroy_links(expected[k].action, fields);
  }
  md_gauge_destroy(&thin);
  md_gauge_destroy(&read);
  md_geometry_destroy(deep);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(correlators_of_another_code)};
MD_RUN_TESTS(tests)
