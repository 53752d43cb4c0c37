#pragma once

#include "base/context.h"
#include "dirac/backend.h"
#include "dirac/operator.h"

/* cmocka needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Starts MPI, gives the context to the tests as their initial state (setup of the group), runs
 * them, ends MPI; returns the exit code: 1 where a test failed on a rank, 77 (skipped) where no
 * lattice of the program could be cut into the ranks of the run, else 0. */
#define MD_RUN_TESTS(tests)                                                                        \
  int main(int argc, char **argv) {                                                                \
    md_context *context = md_test_begin(&argc, &argv);                                             \
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests)[0]; i++)                                  \
      (tests)[i].initial_state = context;                                                          \
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);                                  \
    return md_test_end(context, failed);                                                           \
  }
md_context *md_test_begin(int *argc, char ***argv);
int md_test_end(md_context *context, int failed);

/* Fails the test with the context's message when the status is not MD_OK. */
void md_require(md_context *context, md_status status, const char *what);
#define MD_REQUIRE(context, call) md_require(context, call, #call)
/* `value` <= `limit`, and neither is NaN; prints both otherwise. */
void md_require_at_most(double value, double limit, const char *what);

/* Geometry on the ranks of the run (grid chosen), with or without self-halo. On more ranks than
 * four a lattice that cannot be cut into them is told ("left out") and skips the test. */
md_geometry *md_test_geometry(md_context *context, int x, int y, int z, int t, bool self_halo);
/* The same with halo zones and neighbours at distance 3, the rank grid given or NULL. */
md_geometry *md_test_deep_geometry(md_context *context, const int dims[MD_DIMS],
                                   const int grid[MD_DIMS], bool self_halo);
/* True when this number of ranks can hold the lattice; on more ranks than four, tells when not. For
 * tests with several lattices, one of which fits any number of ranks that the test is run on. */
bool md_test_fits(md_context *context, int x, int y, int z, int t);
/* Tells that the lattice is left out and skips the test. */
void md_test_skip_lattice(const md_context *context, const int dims[MD_DIMS]);
/* Uniformly random SU(3) links by seed, the same on every rank grid; halos exchanged. */
void md_test_random_gauge(md_context *context, const md_geometry *geometry, uint64_t seed,
                          md_gauge *gauge);
/* U_mu(x) -> g(x) U_mu(x) g(x+mu)^dag with random g(x) in SU(3) drawn by (seed, site); the same
 * for every rank grid. Exchanges halos. `transform`, if not NULL, receives g(x) as two fields of
 * parity even, odd with 18 components in MD_DOUBLE. Collective. */
void md_test_transform(md_context *context, md_gauge *gauge, uint64_t seed,
                       md_field transform[MD_PARITIES]);
/* The largest difference of two links over all ranks, halos included. Collective. */
double md_test_gauge_difference(md_context *context, const md_gauge *a, const md_gauge *b);
/* The same without halos, which are stale in links that a test has turned. */
double md_test_local_difference(md_context *context, const md_gauge *a, const md_gauge *b);
/* Random link fields of an action by seed, the same on every rank grid, halos exchanged: uniform
 * SU(3) for naive, else fat links of size about 1 and long ones of about 1/20 that are not unitary.
 * The geometry is as deep as the action needs. */
void md_test_random_links(md_context *context, const md_geometry *geometry, md_action action,
                          uint64_t seed, md_gauge fields[MD_MOST_LINK_FIELDS]);
/* The same with long links that are `factor` times random matrices in U(3). */
void md_test_phased_links(md_context *context, const md_geometry *geometry, uint64_t seed,
                          double factor, md_gauge fields[MD_MOST_LINK_FIELDS]);
void md_test_destroy_links(md_action action, md_gauge fields[MD_MOST_LINK_FIELDS]);
/* md_test_geometry, as deep as the action needs. */
md_geometry *md_test_action_geometry(md_context *context, md_action action, const int dims[MD_DIMS],
                                     bool self_halo);
/* Host field of the shape with normal deviates of the sites (seed, parity, site, rhs). */
void md_test_random_field(md_context *context, const md_geometry *geometry, md_precision precision,
                          int n_rhs, int parity, uint64_t seed, md_field *field);
/* The same of any shape on the host. */
void md_test_random_shape(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int parity, uint64_t seed, md_field *field);
/* Relative L2 distance |a - b| / |b| of two host fields of any precision; collective. */
double md_test_distance(md_context *context, const md_field *a, const md_field *b);
