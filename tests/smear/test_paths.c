/* The nested staples against the definition: every path walked link by link, on one rank. */
#include "lattice/gauge/project_math.h"
#include "lattice/gauge/su3.h"
#include "smear_support.h"

#include <float.h>

enum { LINKS_MOST = 7 };

/* out = product of links along `steps` from a site: a step is a direction as in
 * md_geometry.neighbour. */
static void walk(const md_gauge *g, int p, int64_t site, const int *steps, int count,
                 double out[18]) {
  double u[18], product[18];
  md_su3_one(out);
  for (int k = 0; k < count; k++) {
    const int mu = steps[k] % MD_DIMS;
    const int64_t next = g->geometry->neighbour[p][steps[k]][site];
    if (steps[k] < MD_DIMS) {
      md_gauge_get(g, p, mu, site, u);
      md_su3_multiply(product, out, u);
    } else {
      md_gauge_get(g, 1 - p, mu, next, u);
      md_su3_multiply_adjoint(product, out, u);
    }
    for (int c = 0; c < 18; c++) out[c] = product[c];
    site = next;
    p = 1 - p;
  }
}

/* sum += weight * path (around[0 .. n-1], mu, around reversed). */
static int add_path(const md_gauge *g, int p, int64_t site, int mu, const int *around, int n,
                    double weight, double sum[18]) {
  int steps[LINKS_MOST];
  double path[18];
  for (int k = 0; k < n; k++) {
    steps[k] = around[k];
    steps[2 * n - k] = (around[k] + MD_DIMS) % MD_DIRECTIONS;
  }
  steps[n] = mu;
  walk(g, p, site, steps, 2 * n + 1, path);
  for (int c = 0; c < 18; c++) sum[c] += weight * path[c];
  return 1;
}

/* Paths whose first n transverse steps are distinct directions with all signs; their number. */
static int add_paths(const md_gauge *g, int p, int64_t site, int mu, int *around, int have, int n,
                     double weight, double sum[18]) {
  if (have == n) return add_path(g, p, site, mu, around, n, weight, sum);
  int paths = 0;
  for (int d = 0; d < MD_DIRECTIONS; d++) {
    bool free_direction = d % MD_DIMS != mu;
    for (int k = 0; k < have; k++) free_direction = free_direction && around[k] % MD_DIMS != d % 4;
    around[have] = d;
    if (free_direction) paths += add_paths(g, p, site, mu, around, have + 1, n, weight, sum);
  }
  return paths;
}

typedef struct weights {
  double one, three, five, seven, lepage;
} weights;

static void fat_link(const md_gauge *g, int p, int64_t site, int mu, const weights *w,
                     double sum[18]) {
  int around[3], paths = 0;
  md_gauge_get(g, p, mu, site, sum);
  for (int c = 0; c < 18; c++) sum[c] *= w->one;
  assert_int_equal(add_paths(g, p, site, mu, around, 0, 1, w->three, sum), 6);
  assert_int_equal(add_paths(g, p, site, mu, around, 0, 2, w->five, sum), 24);
  assert_int_equal(add_paths(g, p, site, mu, around, 0, 3, w->seven, sum), 48);
  for (int d = 0; d < MD_DIRECTIONS; d++)
    if (d % MD_DIMS != mu) paths += add_path(g, p, site, mu, (int[]){d, d}, 2, w->lepage, sum);
  assert_int_equal(paths, 6);
}

static double difference(const double a[18], const double b[18]) {
  double most = 0.0;
  for (int c = 0; c < 18; c++) most = fabs(a[c] - b[c]) <= most ? most : fabs(a[c] - b[c]);
  return most;
}

/* Largest difference of fat and long links from their definition on `thin`. */
static void hold(const md_gauge *thin, const smear_links *links, const weights *w, double naik,
                 double tolerance) {
  double worst = 0.0;
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t site = 0; site < thin->geometry->sites; site++) {
      const int p = k % 2, mu = k / 2, straight[3] = {mu, mu, mu};
      double expected[18], u[18];
      fat_link(thin, p, site, mu, w, expected);
      md_gauge_get(&links->fat, p, mu, site, u);
      worst = fmax(worst, difference(u, expected));
      if (!links->has_long) continue;
      walk(thin, p, site, straight, 3, expected);
      for (int c = 0; c < 18; c++) expected[c] *= naik;
      md_gauge_get(&links->long_links, p, mu, site, u);
      worst = fmax(worst, difference(u, expected));
    }
  md_require_at_most(worst, tolerance, "largest difference from the paths");
}

static const double u0 = 0.85, epsilon = -0.3;

/* Smears `thin` as asked and holds the links to the paths of `source`. */
static void compare(md_context *context, const md_gauge *thin, const md_smear_request *request,
                    const md_gauge *source, const weights *w, double naik, double tolerance) {
  smear_links links = smear_make(context, thin, request);
  hold(source, &links, w, naik, tolerance);
  smear_free(&links);
}

static void one_level(md_context *context, const md_gauge *thin) {
  const double u2 = u0 * u0, u4 = u2 * u2;
  const weights asqtad = {5.0 / 8, 1 / u2 / 16, 1 / u4 / 64, 1 / u4 / u2 / 384, -1 / u4 / 16};
  const weights fat7 = {1.0 / 8, 1 / u2 / 16, 1 / u4 / 64, 1 / u4 / u2 / 384, 0.0};
  md_smear_request request = smear_request("asqtad");
  request.u0 = u0;
  compare(context, thin, &request, thin, &asqtad, -1.0 / 24 / u2, 100.0 * DBL_EPSILON);
  request = smear_request("fat7");
  request.u0 = u0;
  compare(context, thin, &request, thin, &fat7, 0.0, 100.0 * DBL_EPSILON);
}

static void two_levels(md_context *context, const md_gauge *thin) {
  const weights first = {1.0 / 8, 1.0 / 16, 1.0 / 64, 1.0 / 384, 0.0};
  const weights second = {1.0 + epsilon / 8, 1.0 / 16, 1.0 / 64, 1.0 / 384, -1.0 / 8};
  md_gauge w;
  MD_REQUIRE(context, md_gauge_create(context, thin->geometry, &w));
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t site = 0; site < thin->geometry->sites; site++) {
      double v[18];
      fat_link(thin, k % 2, site, k / 2, &first, v);
      assert_true(md_project_singular_values(v, v));
      md_gauge_set(&w, k % 2, k / 2, site, v);
    }
  md_smear_request request = smear_request("hisq");
  request.naik_epsilon = epsilon;
  /* The analytic projection may lose this much. */
  const double tolerance = DBL_EPSILON / MD_PROJECT_RATIO;
  compare(context, thin, &request, &w, &second, -(1.0 + epsilon) / 24, tolerance);
  md_gauge_destroy(&w);
}

static void hot(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 2, 6, 2, false);
  md_gauge thin;
  md_test_random_gauge(context, geometry, 5, &thin);
  one_level(context, &thin);
  two_levels(context, &thin);
  md_gauge_destroy(&thin);
  md_geometry_destroy(geometry);
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(hot, context)};
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
