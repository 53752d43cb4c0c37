/* The Polyakov loop: one on a cold lattice, small on a hot one, unchanged by a gauge
 * transformation, turned by an element of the centre, the same bits on every rank grid; zero where
 * quarks are confined, not above the transition. */
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "support.h"

#include <math.h>
#include <string.h>

static const int dims[4] = {4, 6, 4, 8};

static void make(md_context *context, md_geometry **g, md_gauge *gauge) {
  *g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], false);
  MD_REQUIRE(context, md_gauge_create(context, *g, gauge));
}

static void drop(md_geometry *g, md_gauge *gauge) {
  md_gauge_destroy(gauge);
  md_geometry_destroy(g);
}

static void cold_and_hot(void **state) {
  md_context *context = *state;
  md_geometry *g;
  md_gauge gauge;
  double loop[2];
  make(context, &g, &gauge);
  MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, loop));
  assert_true(loop[0] == 1.0 && loop[1] == 0.0);
  MD_REQUIRE(context, md_gauge_start_hot(context, &gauge, 4));
  MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, loop));
  /* |tr|^2 of a uniform SU(3) matrix has mean 1: a mean of 96 of them over 3. */
  md_require_at_most(hypot(loop[0], loop[1]), 4.0 / 3.0 / sqrt(96.0), "hot");
  md_require_at_most(1e-6, hypot(loop[0], loop[1]), "not zero");
  drop(g, &gauge);
}

static void gauge_and_centre(void **state) {
  md_context *context = *state;
  const double z[2] = {-0.5, sqrt(0.75)};
  md_geometry *g;
  md_gauge gauge;
  double before[2], after[2];
  make(context, &g, &gauge);
  MD_REQUIRE(context, md_gauge_start_hot(context, &gauge, 5));
  MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, before));
  md_test_transform(context, &gauge, 9, NULL);
  MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, after));
  md_require_at_most(hypot(after[0] - before[0], after[1] - before[1]), 1e-15, "gauge transform");
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < g->sites; i++) {
      int x[MD_DIMS];
      double u[18], turned[18];
      md_global_coordinates(g, p, i, x);
      if (x[MD_T] != 3) continue;
      md_gauge_get(&gauge, p, MD_T, i, u);
      for (int k = 0; k < 18; k += 2) {
        turned[k] = u[k] * z[0] - u[k + 1] * z[1];
        turned[k + 1] = u[k] * z[1] + u[k + 1] * z[0];
      }
      md_gauge_set(&gauge, p, MD_T, i, turned);
    }
  MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, after));
  md_require_at_most(hypot(after[0] - before[0] * z[0] + before[1] * z[1],
                           after[1] - before[0] * z[1] - before[1] * z[0]),
                     1e-15, "centre");
  drop(g, &gauge);
}

static void same_bits_on_every_grid(void **state) {
  static const int grids[][4] = {{1, 1, 1, 4}, {1, 1, 2, 2}, {2, 1, 1, 2}, {2, 1, 2, 1},
                                 {1, 1, 1, 2}, {2, 1, 1, 1}, {1, 1, 1, 1}};
  md_context *context = *state, alone = {.ranks = 1, .threads = context->threads};
  md_geometry *g, *part;
  md_gauge gauge;
  double whole[2], loop[2];
  make(&alone, &g, &gauge);
  MD_REQUIRE(&alone, md_gauge_start_hot(&alone, &gauge, 6));
  MD_REQUIRE(&alone, md_polyakov_loop(&alone, &gauge, MD_DOUBLE, whole));
  drop(g, &gauge);
  for (size_t k = 0; k < sizeof grids / sizeof *grids; k++) {
    const int *grid = grids[k];
    if (grid[0] * grid[1] * grid[2] * grid[3] != context->ranks) continue;
    part = md_test_deep_geometry(context, dims, grid, false);
    MD_REQUIRE(context, md_gauge_create(context, part, &gauge));
    MD_REQUIRE(context, md_gauge_start_hot(context, &gauge, 6));
    MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, loop));
    assert_memory_equal(loop, whole, sizeof loop);
    drop(part, &gauge);
  }
}

/* Mean of the loop and of its size over a short chain of N_t = 2, whose transition is at beta 5.1.
 */
static void chain(md_context *context, double beta, double mean[2], double *size) {
  enum { THERMAL = 15, KEPT = 40 };
  md_geometry *g = md_test_geometry(context, 8, 8, 8, 2, false);
  md_gauge gauge;
  md_heatbath *heatbath;
  mean[0] = mean[1] = *size = 0.0;
  MD_REQUIRE(context, md_gauge_create(context, g, &gauge));
  MD_REQUIRE(context, md_gauge_start_hot(context, &gauge, 2));
  MD_REQUIRE(context, md_heatbath_create(context, &gauge, MD_HOST, &heatbath));
  for (uint64_t sweep = 0; sweep < THERMAL + KEPT; sweep++) {
    double loop[2];
    MD_REQUIRE(context, md_heatbath_sweep(heatbath, beta, 1, sweep));
    if (sweep < THERMAL) continue;
    MD_REQUIRE(context, md_polyakov_loop(context, &gauge, MD_DOUBLE, loop));
    for (int part = 0; part < 2; part++) mean[part] += loop[part] / KEPT;
    *size += hypot(loop[0], loop[1]) / KEPT;
  }
  md_heatbath_destroy(heatbath);
  drop(g, &gauge);
}

/* 512 sites of independent traces would give 1 / (3 sqrt(512)) = 0.015. */
static void confined_and_not(void **state) {
  md_context *context = *state;
  double mean[2], size;
  if (context->ranks > 1) return; /* chains have the same bits on every grid */
  chain(context, 4.0, mean, &size);
  md_require_at_most(hypot(mean[0], mean[1]), 0.02, "mean below the transition");
  md_require_at_most(size, 0.05, "size below the transition");
  chain(context, 6.0, mean, &size);
  md_require_at_most(0.3, size, "size above the transition");
  md_require_at_most(0.9 * size, hypot(mean[0], mean[1]), "one of the centre's phases");
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(cold_and_hot),
    cmocka_unit_test(gauge_and_centre),
    cmocka_unit_test(same_bits_on_every_grid),
    cmocka_unit_test(confined_and_not),
};
MD_RUN_TESTS(tests)
