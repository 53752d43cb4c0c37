/* Sweeps on the GPU against those of the host, to rounding, and the same bits for every rank grid;
 * on two ranks through the halo. */
#include "gpu_tests.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"

#include <float.h>
#include <math.h>

/* A chain and how far host and device may be apart after it, in roundings: about twenty times what
 * the host's links are apart from themselves when they are disturbed by a rounding at the start of
 * each sweep. Links of strong coupling and overrelaxation let a disturbance grow. */
typedef struct chain {
  bool hot;
  double beta;
  int sweeps, overrelax;
  double roundings;
} chain;

static const chain chains[] = {
    {false, 6.0, 3, 0, 400.0},                           /* the draw of Kennedy and Pendleton */
    {true, 5.7, 3, 0, 3e4},      {true, 0.2, 1, 0, 3e4}, /* the uniform draw */
    {false, 12.0, 1, 4, 1500.0}, {true, 5.7, 1, 1, 2e5},
};
enum { CHAINS = sizeof chains / sizeof *chains };

static void start(md_context *context, const chain *c, md_gauge *gauge) {
  MD_REQUIRE(context,
             c->hot ? md_gauge_start_hot(context, gauge, 11) : md_gauge_start_cold(context, gauge));
}

static void run(md_context *context, const chain *c, md_space space, md_gauge *gauge,
                md_plaquettes *plaquettes) {
  md_heatbath *heatbath;
  MD_REQUIRE(context, md_heatbath_create(context, gauge, space, &heatbath));
  for (int sweep = 0; sweep < c->sweeps; sweep++) {
    MD_REQUIRE(context, md_heatbath_sweep(heatbath, c->beta, 5, (uint64_t)sweep));
    for (int k = 0; k < c->overrelax; k++) MD_REQUIRE(context, md_overrelaxation_sweep(heatbath));
  }
  MD_REQUIRE(context, md_heatbath_wait(heatbath));
  MD_REQUIRE(context, md_heatbath_plaquettes(heatbath, plaquettes));
  MD_REQUIRE(context, md_heatbath_give(heatbath));
  md_heatbath_destroy(heatbath);
}

static void compare(md_context *context, const md_geometry *geometry, const chain *c) {
  md_gauge host, device;
  md_plaquettes there;
  md_gauge_observables now;
  MD_REQUIRE(context, md_gauge_create(context, geometry, &host));
  MD_REQUIRE(context, md_gauge_create(context, geometry, &device));
  start(context, c, &host);
  start(context, c, &device);
  run(context, c, MD_HOST, &host, &there);
  run(context, c, MD_DEVICE, &device, &there);
  md_require_at_most(md_test_gauge_difference(context, &host, &device), c->roundings * DBL_EPSILON,
                     "links");
  MD_REQUIRE(context, md_gauge_observe(context, &device, &now));
  md_require_at_most(now.unitarity_deviation, 32 * DBL_EPSILON, "unitarity");
  md_require_at_most(fabs(there.mean - now.plaquette), 8 * DBL_EPSILON, "plaquette");
  md_require_at_most(fabs(there.space_space - now.plaquette_ss), 8 * DBL_EPSILON, "space-space");
  md_require_at_most(fabs(there.space_time - now.plaquette_st), 8 * DBL_EPSILON, "space-time");
  md_gauge_destroy(&host);
  md_gauge_destroy(&device);
}

static void host_and_device(void **state) {
  md_context *context = *state;
  static const int extents[2][MD_DIMS] = {{8, 4, 6, 8}, {6, 10, 2, 4}};
  for (int e = 0; e < 2; e++) {
    md_geometry *geometry = md_test_geometry(context, extents[e][0], extents[e][1], extents[e][2],
                                             extents[e][3], context->ranks == 1);
    for (int k = 0; k < CHAINS; k++) compare(context, geometry, &chains[k]);
    md_geometry_destroy(geometry);
  }
}

/* Against one rank without halos, to the last bit. */
static void same_links_for_every_cut(void **state) {
  md_context *context = *state;
  md_context alone = {.ranks = 1, .threads = 1, .local_rank = context->local_rank};
  const chain c = {true, 5.7, 2, 2, 0.0};
  md_geometry *geometry[2] = {md_test_geometry(&alone, 4, 8, 4, 8, false),
                              md_test_geometry(context, 4, 8, 4, 8, true)};
  md_gauge whole, cut;
  md_plaquettes of_whole, of_cut;
  MD_REQUIRE(context, md_device_open(&alone));
  MD_REQUIRE(context, md_gauge_create(&alone, geometry[0], &whole));
  MD_REQUIRE(context, md_gauge_create(context, geometry[1], &cut));
  start(&alone, &c, &whole);
  start(context, &c, &cut);
  run(&alone, &c, MD_DEVICE, &whole, &of_whole);
  run(context, &c, MD_DEVICE, &cut, &of_cut);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t site = 0; site < cut.geometry->sites; site++) {
      int x[MD_DIMS];
      md_global_coordinates(cut.geometry, p, site, x);
      for (int mu = 0; mu < MD_DIMS; mu++) {
        double u[MD_LINK_REALS], v[MD_LINK_REALS];
        md_gauge_get(&cut, p, mu, site, u);
        md_gauge_get(&whole, p, mu, md_site(whole.geometry, x), v);
        assert_memory_equal(u, v, sizeof u);
      }
    }
  assert_memory_equal(&of_cut, &of_whole, sizeof of_cut);
  md_gauge_destroy(&whole);
  md_gauge_destroy(&cut);
  for (int k = 0; k < 2; k++) md_geometry_destroy(geometry[k]);
}

/* Links that are changed on the host count once they are taken, and none that is NaN goes unseen.
 */
static void taken_again(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 8, context->ranks == 1);
  md_gauge gauge;
  md_heatbath *heatbath;
  md_plaquettes now;
  MD_REQUIRE(context, md_gauge_create(context, geometry, &gauge));
  MD_REQUIRE(context, md_gauge_start_hot(context, &gauge, 3));
  MD_REQUIRE(context, md_heatbath_create(context, &gauge, MD_DEVICE, &heatbath));
  MD_REQUIRE(context, md_gauge_start_cold(context, &gauge));
  MD_REQUIRE(context, md_heatbath_plaquettes(heatbath, &now));
  assert_true(fabs(now.mean) < 0.5);
  MD_REQUIRE(context, md_heatbath_take(heatbath));
  MD_REQUIRE(context, md_heatbath_plaquettes(heatbath, &now));
  assert_true(now.mean == 1.0 && now.space_space == 1.0 && now.space_time == 1.0);
  double u[MD_LINK_REALS];
  md_gauge_get(&gauge, MD_ODD, MD_T, 5, u);
  u[7] = NAN;
  if (context->rank == 0) md_gauge_set(&gauge, MD_ODD, MD_T, 5, u);
  MD_REQUIRE(context, md_heatbath_take(heatbath));
  MD_REQUIRE(context, md_heatbath_plaquettes(heatbath, &now));
  assert_true(isnan(now.mean) && isnan(now.space_time));
  md_heatbath_destroy(heatbath);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(host_and_device),
                                    cmocka_unit_test(same_links_for_every_cut),
                                    cmocka_unit_test(taken_again)};

MD_RUN_GPU_TESTS(tests)
