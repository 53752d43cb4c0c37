/* A signal at any step of a search, or an end after any restart: what says that it converged has
 * the lowest eigenvalues. Unit links have each of them many times, and copies are found by the last
 * search alone. */
#include "base/interrupt.h"
#include "dirac/eigen/eigen.h"
#include "lattice/gauge/gauge.h"
#include "support.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

enum { MODES = 4, MANY = 500 };

/* A backend has no place for the test's own numbers. */
static volatile sig_atomic_t flag;
static const md_backend *real;
static int calls, signal_at; /* 0: never */

static md_status hop(md_context *context, void *state, const md_hop_call *call) {
  if (++calls == signal_at) flag = SIGTERM;
  return real->hop(context, state, call);
}

static void search(md_context *context, md_dirac *dirac, int at, int restarts,
                   md_eigen_result *found) {
  const md_eigen_request wanted = {
      .modes = MODES, .tolerance = 1e-9, .max_restarts = restarts, .seed = 5};
  calls = 0;
  signal_at = at;
  flag = 0;
  context->interrupt = (md_interrupt){0};
  MD_REQUIRE(context, md_eigen_lowest(context, dirac, &wanted, found));
}

static void compare(md_eigen_result *cut, const md_eigen_result *whole) {
  for (int i = 0; i < MODES && cut->converged; i++)
    md_require_at_most(fabs(cut->values[i] - whole->values[i]), 1e-9, "eigenvalue");
  md_eigen_result_free(cut);
}

static void check(md_context *context, int block) {
  const md_backend_request request = {.precision = MD_DOUBLE,
                                      .reconstruct = MD_RECONSTRUCT_18,
                                      .n_rhs = block,
                                      .antiperiodic = true};
  md_geometry *g = md_test_geometry(context, 4, 4, 2, 8, false);
  md_gauge gauge;
  md_dirac dirac;
  md_eigen_result whole, cut;
  int interrupted = 0;
  MD_REQUIRE(context, md_gauge_create(context, g, &gauge));
  MD_REQUIRE(context, md_gauge_start_cold(context, &gauge));
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cpu_simd", &request, &dirac));
  real = dirac.backend;
  md_backend counting = *real;
  counting.hop = hop;
  dirac.backend = &counting;
  context->signal = &flag;
  search(context, &dirac, 0, MANY, &whole);
  assert_true(whole.converged && !whole.interrupted);
  /* The flag is looked at once a step, and steps are filters of two calls a degree. */
  const int all = calls, few = 6 * whole.filter_degree;
  for (int at = 1; at <= all; at += few) {
    search(context, &dirac, at, MANY, &cut);
    interrupted += cut.interrupted;
    compare(&cut, &whole);
  }
  for (int restarts = 1; restarts < whole.restarts; restarts++) {
    search(context, &dirac, 0, restarts, &cut);
    compare(&cut, &whole);
  }
  assert_true(interrupted > 1);
  context->signal = NULL;
  context->interrupt = (md_interrupt){0};
  dirac.backend = real;
  md_eigen_result_free(&whole);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(g);
}

static void test_one_by_one(void **state) {
  check(*state, 1);
}

static void test_in_blocks(void **state) {
  check(*state, 16);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(test_one_by_one),
                                    cmocka_unit_test(test_in_blocks)};
MD_RUN_TESTS(tests)
