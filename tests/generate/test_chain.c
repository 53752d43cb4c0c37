/* The Markov chain: the same links for every rank grid and thread count, an action that
 * overrelaxation keeps, and plaquettes at strong coupling, weak coupling and in between. */
#include "base/statistics.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/heatbath.h"
#include "support.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

typedef struct lattice {
  md_geometry *geometry;
  md_gauge gauge;
  md_heatbath *heatbath;
} lattice;

static void make(md_context *context, const int dims[4], bool self_halo, lattice *l) {
  l->geometry = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], self_halo);
  MD_REQUIRE(context, md_gauge_create(context, l->geometry, &l->gauge));
  MD_REQUIRE(context, md_heatbath_create(context, &l->gauge, MD_HOST, &l->heatbath));
}

static void drop(lattice *l) {
  md_heatbath_destroy(l->heatbath);
  md_gauge_destroy(&l->gauge);
  md_geometry_destroy(l->geometry);
}

static double plaquette(md_context *context, const lattice *l) {
  md_gauge_observables now;
  MD_REQUIRE(context, md_gauge_observe(context, &l->gauge, &now));
  assert_true(now.unitarity_deviation <= 32 * 0x1p-53);
  return now.plaquette;
}

static void run(md_context *context, lattice *l, double beta) {
  MD_REQUIRE(context, md_gauge_start_hot(context, &l->gauge, 11));
  for (uint64_t sweep = 0; sweep < 2; sweep++) {
    MD_REQUIRE(context, md_heatbath_sweep(l->heatbath, beta, 5, sweep));
    MD_REQUIRE(context, md_overrelaxation_sweep(l->heatbath));
  }
}

/* Every link of `part` has the bits of the same link of `whole`, which one rank holds. */
static void assert_same_links(const lattice *part, const lattice *whole) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t site = 0; site < part->geometry->sites; site++) {
      int x[MD_DIMS];
      md_global_coordinates(part->geometry, p, site, x);
      for (int mu = 0; mu < MD_DIMS; mu++) {
        double u[MD_LINK_REALS], v[MD_LINK_REALS];
        md_gauge_get(&part->gauge, p, mu, site, u);
        md_gauge_get(&whole->gauge, p, mu, md_site(whole->geometry, x), v);
        assert_memory_equal(u, v, sizeof u);
      }
    }
}

static void same_links_for_every_cut(void **state) {
  md_context *context = *state;
  static const int dims[4] = {4, 8, 4, 8};
  md_context alone = {.ranks = 1, .threads = 1};
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  lattice whole, cut;
  make(&alone, dims, false, &whole);
  run(&alone, &whole, 5.7);
  omp_set_num_threads(2);
  for (int self_halo = 0; self_halo < 2; self_halo++) {
    make(context, dims, self_halo, &cut);
    run(context, &cut, 5.7);
    assert_same_links(&cut, &whole);
    assert_true(plaquette(context, &cut) == plaquette(&alone, &whole));
    drop(&cut);
  }
  drop(&whole);
  omp_set_num_threads(threads);
}

static void overrelaxation_keeps_the_action(void **state) {
  md_context *context = *state;
  lattice l;
  make(context, (int[4]){4, 4, 8, 4}, false, &l);
  run(context, &l, 5.7);
  double before[MD_LINK_REALS], after[MD_LINK_REALS], moved = 0.0;
  md_gauge_get(&l.gauge, MD_EVEN, MD_X, 0, before);
  const double start = plaquette(context, &l);
  for (int k = 0; k < 10; k++) MD_REQUIRE(context, md_overrelaxation_sweep(l.heatbath));
  assert_true(fabs(plaquette(context, &l) - start) <= 64 * 0x1p-53);
  md_gauge_get(&l.gauge, MD_EVEN, MD_X, 0, after);
  for (int c = 0; c < MD_LINK_REALS; c++) moved = fmax(moved, fabs(after[c] - before[c]));
  assert_true(moved > 0.1);
  drop(&l);
}

static void gauge_transformation_keeps_the_plaquette(void **state) {
  md_context *context = *state;
  lattice l;
  make(context, (int[4]){4, 4, 8, 4}, false, &l);
  run(context, &l, 5.7);
  const double start = plaquette(context, &l);
  md_test_transform(context, &l.gauge, 77, NULL);
  md_require_at_most(fabs(plaquette(context, &l) - start), 64 * 0x1p-53, "change of the plaquette");
  drop(&l);
}

/* The plaquette of the chain at beta, from `sweeps` after `thermalise`, within five standard
 * errors and an allowance for what is left out of `expected`. */
static void check_plaquette(md_context *context, const int dims[4], double beta, int thermalise,
                            int sweeps, int overrelax, double expected, double allowance) {
  lattice l;
  make(context, dims, false, &l);
  double values[400], mean, error;
  assert_true(sweeps <= 400);
  for (int i = -thermalise; i < sweeps; i++) {
    MD_REQUIRE(context, md_heatbath_sweep(l.heatbath, beta, 2, (uint64_t)(i + thermalise)));
    for (int k = 0; k < overrelax; k++) MD_REQUIRE(context, md_overrelaxation_sweep(l.heatbath));
    if (i >= 0) values[i] = plaquette(context, &l);
  }
  MD_REQUIRE(context, md_blocked_mean(context, values, sweeps, &mean, &error));
  if (context->rank == 0)
    printf("beta %g: plaquette %.5f +- %.5f, expected %.5f\n", beta, mean, error, expected);
  assert_true(fabs(mean - expected) <= 5.0 * error + allowance);
  drop(&l);
}

/* beta/18 + beta^2/216 + O(beta^4): one-plaquette integral. */
static void strong_coupling(void **state) {
  md_context *context = *state;
  if (context->ranks > 1) skip(); /* the links are those of one rank */
  check_plaquette(context, (int[4]){4, 4, 4, 4}, 0.0, 10, 100, 0, 0.0, 0.0);
  check_plaquette(context, (int[4]){4, 4, 4, 4}, 1.0, 20, 300, 1, 1.0 / 18 + 1.0 / 216, 1e-4);
}

/* 1 - 2 (1 - 1/V) / beta - 1.22 / beta^2: two loops. The constant modes of the torus, which have
 * no Gaussian weight, lower it by less than 2 / (beta V). */
static void weak_coupling(void **state) {
  md_context *context = *state;
  if (context->ranks > 1) skip(); /* the links are those of one rank */
  const double expected = 1.0 - 0.01 * 255 / 256 - 1.22 / 40000;
  check_plaquette(context, (int[4]){4, 4, 4, 4}, 200.0, 60, 200, 2, expected, 4e-5);
}

/* Average plaquettes of the literature at 6.0 and 5.7, 0.5937 and 0.549, at 8^4. */
static void between(void **state) {
  md_context *context = *state;
  if (context->ranks > 1) skip(); /* the links are those of one rank */
  check_plaquette(context, (int[4]){8, 8, 8, 8}, 6.0, 30, 40, 3, 0.5937, 2e-4);
  check_plaquette(context, (int[4]){8, 8, 8, 8}, 5.7, 30, 40, 3, 0.549, 1e-3);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(same_links_for_every_cut),
    cmocka_unit_test(overrelaxation_keeps_the_action),
    cmocka_unit_test(gauge_transformation_keeps_the_plaquette),
    cmocka_unit_test(strong_coupling),
    cmocka_unit_test(weak_coupling),
    cmocka_unit_test(between),
};
MD_RUN_TESTS(tests)
