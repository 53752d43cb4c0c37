/* The bound on |D| of fat and long links: exact where one singular value of every link is the
 * largest and the two others are equal (links.h), which unitary matrices on both sides leave so. */
#include "dirac/links/links.h"
#include "lattice/gauge/su3.h"
#include "support.h"

#include <float.h>
#include <math.h>

/* u diag(size, size / 2, size / 2) v at every site; u and v of two random lattices. */
static void stretch(md_gauge *links, const md_gauge *right, double size) {
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < links->geometry->sites; i++) {
      double u[MD_LINK_REALS], v[MD_LINK_REALS], product[MD_LINK_REALS];
      md_gauge_get(links, k % 2, k / 2, i, u);
      md_gauge_get(right, k % 2, k / 2, i, v);
      for (int c = 0; c < MD_LINK_REALS; c++) u[c] *= c % 6 < 2 ? size : 0.5 * size;
      md_su3_multiply(product, u, v);
      md_gauge_set(links, k % 2, k / 2, i, product);
    }
}

/* Eight hops of each field: fat links of norm 1.25, long ones of norm 0.0625, one thrice as long.
 */
static void norm_is_that_of_the_site_with_the_longest_links(void **state) {
  md_context *context = *state;
  const int dims[MD_DIMS] = {4, 4, 4, 8}, longest[MD_DIMS] = {1, 2, 3, 5};
  md_geometry *g = md_test_deep_geometry(context, dims, NULL, true);
  md_gauge field[MD_MOST_LINK_FIELDS], right;
  md_test_random_gauge(context, g, 8, &right);
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) {
    md_test_random_gauge(context, g, 5 + (uint64_t)f, &field[f]);
    stretch(&field[f], &right, f == 0 ? 1.25 : 0.0625);
  }
  for (int64_t i = 0; i < g->sites; i++) {
    double u[MD_LINK_REALS];
    int x[MD_DIMS];
    md_global_coordinates(g, MD_ODD, i, x);
    if (x[0] != longest[0] || x[1] != longest[1] || x[2] != longest[2] || x[3] != longest[3])
      continue;
    md_gauge_get(&field[1], MD_ODD, MD_Y, i, u);
    for (int c = 0; c < MD_LINK_REALS; c++) u[c] *= 3.0;
    md_gauge_set(&field[1], MD_ODD, MD_Y, i, u);
  }
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++)
    MD_REQUIRE(context, md_gauge_exchange(context, &field[f]));
  const md_links links = {.action = MD_ACTION_HISQ, .field = field};
  const double expected = 0.5 * (8 * 1.25 + 8 * 0.0625 + 2 * 0.0625);
  md_require_at_most(fabs(md_links_norm(context, &links) - expected), 100 * DBL_EPSILON, "norm");
  for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) md_gauge_destroy(&field[f]);
  md_gauge_destroy(&right);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(norm_is_that_of_the_site_with_the_longest_links)};
MD_RUN_TESTS(tests)
