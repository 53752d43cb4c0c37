/* The bound on |D| of fat and long links: exact where one singular value of every link is the
 * largest and the two others are equal (links.h), which unitary matrices on both sides leave so.
 * The number of which long links are multiples, and the refusal of links that are none. */
#include "dirac/links/links.h"
#include "lattice/gauge/su3.h"
#include "support.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

/* What md_request_links makes of the long links once one real of one link (of the last rank) has
 * been changed by `change`. */
static md_status request_with_change(md_context *context, md_gauge field[MD_MOST_LINK_FIELDS],
                                     double change, md_links *links) {
  const md_backend_request request = {
      .reconstruct = MD_RECONSTRUCT_13, .n_rhs = 1, .action = MD_ACTION_HISQ};
  double u[MD_LINK_REALS], changed[MD_LINK_REALS];
  md_gauge_get(&field[1], MD_ODD, MD_T, 3, u);
  memcpy(changed, u, sizeof u);
  if (context->rank == context->ranks - 1) changed[4] += change;
  md_gauge_set(&field[1], MD_ODD, MD_T, 3, changed);
  const md_status status = md_request_links(context, &request, field, links);
  md_gauge_set(&field[1], MD_ODD, MD_T, 3, u);
  return status;
}

/* Long links of asqtad on a lattice without fields are -1/24: the number is negative, so that the
 * phases are 0. */
static void long_links_are_multiples_of_unitary_ones(void **state) {
  md_context *context = *state;
  const int dims[MD_DIMS] = {4, 4, 4, 8};
  md_geometry *g = md_test_deep_geometry(context, dims, NULL, true);
  md_gauge field[MD_MOST_LINK_FIELDS];
  md_links links;
  const double one[MD_LINK_REALS] = {[0] = -1.0 / 24, [8] = -1.0 / 24, [16] = -1.0 / 24};
  md_test_phased_links(context, g, 5, 1.0 / 24, field);
  MD_REQUIRE(context, request_with_change(context, field, 0.0, &links));
  md_require_at_most(fabs(fabs(links.largest[1]) - 1.0 / 24), 4 * DBL_EPSILON, "number");
  MD_REQUIRE(context, request_with_change(context, field, 5e-8 / 24, &links)); /* as a file's */
  for (int k = 0; k < 2; k++) {
    assert_int_equal(request_with_change(context, field, k ? NAN : 1e-5 / 24, &links), MD_INPUT);
    assert_non_null(strstr(context->message, "one number times matrices in U(3)"));
    assert_non_null(strstr(context->message, "use --reconstruct 18"));
  }
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < g->sites; i++) md_gauge_set(&field[1], k % 2, k / 2, i, one);
  MD_REQUIRE(context, request_with_change(context, field, 0.0, &links));
  md_require_at_most(fabs(links.largest[1] + 1.0 / 24), 4 * DBL_EPSILON, "negative number");
  md_test_destroy_links(MD_ACTION_HISQ, field);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(norm_is_that_of_the_site_with_the_longest_links),
    cmocka_unit_test(long_links_are_multiples_of_unitary_ones)};
MD_RUN_TESTS(tests)
