/* The same bits on every rank grid, with and without self-halo, for every number of threads: each
 * rank also makes the links of the whole lattice alone. */
#include "smear_support.h"

#include <omp.h>
#include <string.h>

static const uint64_t seed = 11;

/* Differences in any bit between the part of this rank and the same links of the whole lattice. */
static long long differing(const md_gauge *part, const md_gauge *whole) {
  long long count = 0;
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < part->geometry->sites; i++) {
      double u[MD_LINK_REALS], v[MD_LINK_REALS];
      int x[MD_DIMS];
      md_global_coordinates(part->geometry, k % 2, i, x);
      md_gauge_get(part, k % 2, k / 2, i, u);
      md_gauge_get(whole, k % 2, k / 2, md_site(whole->geometry, x), v);
      count += memcmp(u, v, sizeof u) != 0;
    }
  return count;
}

static smear_links make(md_context *context, const md_layout_request *layout, const char *action,
                        md_geometry **geometry) {
  md_gauge thin;
  MD_REQUIRE(context, md_geometry_create(context, layout, geometry));
  md_test_random_gauge(context, *geometry, seed, &thin);
  md_smear_request request = smear_request(action);
  if (md_recipe_takes(request.recipe, "naik-epsilon")) request.naik_epsilon = 0.25;
  request.steps = 2;
  request.u0 = 0.9;
  const smear_links links = smear_make(context, &thin, &request);
  md_gauge_destroy(&thin);
  return links;
}

static void compare(md_context *context, const md_layout_request *layout, const char *action,
                    const smear_links *whole) {
  md_geometry *geometry = NULL;
  smear_links part = make(context, layout, action, &geometry);
  long long bad = differing(&part.fat, &whole->fat);
  if (part.has_long) bad += differing(&part.long_links, &whole->long_links);
  assert_int_equal(part.report.kind_count, whole->report.kind_count);
  for (int k = 0; k < part.report.kind_count; k++) { /* plaquettes of long links are NaN */
    bad += memcmp(&part.report.kinds[k].link_trace, &whole->report.kinds[k].link_trace, 16) != 0;
    if (part.report.kinds[k].name != 'L')
      bad += part.report.kinds[k].plaquette != whole->report.kinds[k].plaquette;
  }
  assert_int_equal(part.report.projection.links, whole->report.projection.links);
  assert_int_equal(part.report.projection.fallbacks, whole->report.projection.fallbacks);
  assert_int_equal(bad, 0);
  smear_free(&part);
  md_geometry_destroy(geometry);
}

/* All rank grids of `layout`, 1 or 2 or 4 ranks along each direction, whose number is returned. */
static int compare_grids(md_context *context, const md_layout_request *layout, const char *action,
                         const smear_links *whole) {
  int grids = 0;
  for (int code = 0; code < 81; code++) {
    md_layout_request now = *layout;
    int ranks = 1;
    for (int d = 0, rest = code; d < MD_DIMS; d++, rest /= 3) ranks *= now.grid[d] = 1 << rest % 3;
    bool fits = ranks == context->ranks;
    for (int d = 0; d < MD_DIMS; d++) fits = fits && now.global[d] % (2 * now.grid[d]) == 0;
    if (!fits) continue;
    grids++;
    compare(context, &now, action, whole);
  }
  return grids;
}

/* On 8 ranks or fewer the lattice itself, else with its shortest direction doubled for as long as
 * that many ranks would cut an extent to less than 2. */
static md_layout_request grown(const md_context *context, const md_layout_request *layout) {
  md_layout_request now = *layout;
  for (int most = 1;;) {
    int shortest = 0;
    for (int d = 0; d < MD_DIMS; d++) {
      most *= now.global[d] / 2;
      if (now.global[d] < now.global[shortest]) shortest = d;
    }
    if (most >= context->ranks) return now;
    now.global[shortest] *= 2;
    most = 1;
  }
}

static void run(md_context *context, const md_layout_request *given, const char *action) {
  if (context->ranks & (context->ranks - 1)) /* no grid of 1, 2 and 4 */
    md_test_skip_lattice(context, given->global);
  const md_layout_request large = grown(context, given), *layout = &large;
  md_context solo = *context;
  md_geometry *geometry = NULL;
  solo.rank = 0;
  solo.ranks = 1;
  solo.communicator = NULL;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  smear_links whole = make(&solo, layout, action, &geometry);
  omp_set_num_threads(3);
  const int grids = compare_grids(context, layout, action, &whole);
  omp_set_num_threads(threads);
  assert_true(grids > 0);
  if (context->ranks == 1) {
    md_layout_request self = *layout;
    self.self_halo = true;
    compare(context, &self, action, &whole);
  }
  smear_free(&whole);
  md_geometry_destroy(geometry);
}

/* On 8 ranks 4 x 4 x 4 x 2 leaves extents of 2 alone. */
static void hisq(void **state) {
  run(*state, &(md_layout_request){.global = {4, 4, 4, 2}}, "hisq");
}
static void asqtad(void **state) {
  run(*state, &(md_layout_request){.global = {2, 4, 4, 8}}, "asqtad");
}
static void ape_and_stout(void **state) {
  run(*state, &(md_layout_request){.global = {4, 2, 4, 4}}, "ape");
  run(*state, &(md_layout_request){.global = {4, 4, 2, 4}}, "stout");
}

int main(int argc, char **argv) {
  md_context *context = md_test_begin(&argc, &argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(hisq, context),
                                     cmocka_unit_test_prestate(asqtad, context),
                                     cmocka_unit_test_prestate(ape_and_stout, context)};
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
