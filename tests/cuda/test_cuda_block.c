/* Block operations on the device against those of the host, sums that repeat; block CG on the
 * device: the solutions of independent CG in fewer iterations, dependent sources, NaN. */
#include "../precision/problem.h"
#include "gpu_tests.h"
#include "lattice/fields/block.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <string.h>

enum { REALS = 2 * MD_MAX_BLOCK * MD_MAX_BLOCK, ADDED = 11 /* more than one pass */ };

typedef struct pair {
  md_field host, device;
} pair;

static void make(md_context *context, const md_geometry *g, int n_rhs, uint64_t seed, pair *f) {
  const md_field_shape shape = {MD_DOUBLE, MD_DEVICE, MD_FERMION_REALS, n_rhs, true, false};
  md_test_random_field(context, g, MD_DOUBLE, n_rhs, MD_EVEN, seed, &f->host);
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &f->device));
  MD_REQUIRE(context, md_field_convert(context, &f->device, &f->host));
}

static void drop(pair *f) {
  md_field_destroy(&f->host);
  md_field_destroy(&f->device);
}

static void same(md_context *context, const pair *f, const char *what) {
  md_field back;
  md_test_random_field(context, f->host.geometry, MD_DOUBLE, f->host.n_rhs, MD_EVEN, 99, &back);
  MD_REQUIRE(context, md_field_convert(context, &back, &f->device));
  md_require_at_most(md_test_distance(context, &back, &f->host), 1e-14, what);
  md_field_destroy(&back);
}

static void same_gram(const double *device, const double *host, int n, double size) {
  for (int e = 0; e < 2 * n * n; e++)
    md_require_at_most(fabs(device[e] - host[e]), 1e-13 * size, "Gram matrix");
}

/* Entries of size 1/n that have no symmetry. */
static void fill(int n, double shift, double *matrix) {
  for (int e = 0; e < 2 * n * n; e++) matrix[e] = sin(1.7 * e + shift) / n;
}

static double host_gram[REALS], device_gram[REALS], again[REALS], a[REALS], b[REALS], c[REALS];

/* One step in both spaces, with the sums of the new y. */
static void check_step(md_context *context, md_block *on_host, md_block *on_device, pair *y,
                       const pair *x, pair *z, bool backwards) {
  const int n = y->host.n_rhs;
  md_block_step step = {.b = b,
                        .x = x ? &x->host : NULL,
                        .a = a,
                        .z = z ? &z->host : NULL,
                        .c = c,
                        .slot = 1,
                        .backwards = backwards};
  MD_REQUIRE(context, md_block_update(context, on_host, &y->host, &step));
  MD_REQUIRE(context, md_block_wait(context, on_host, 1, host_gram));
  step.x = x ? &x->device : NULL;
  step.z = z ? &z->device : NULL;
  MD_REQUIRE(context, md_block_update(context, on_device, &y->device, &step));
  MD_REQUIRE(context, md_block_wait(context, on_device, 1, device_gram));
  same(context, y, "y of a step");
  if (z) same(context, z, "z of a step");
  same_gram(device_gram, host_gram, n, 12.0 * (double)y->host.geometry->volume);
}

static void check(md_context *context, const md_geometry *g, int n) {
  const md_field_shape shape = {MD_DOUBLE, MD_DEVICE, MD_FERMION_REALS, n, true, false};
  const md_field_shape host = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, n, true, false};
  const double size = 12.0 * (double)g->volume;
  md_block *on_host, *on_device;
  pair x, y, z;
  make(context, g, n, 1, &x);
  make(context, g, n, 2, &y);
  make(context, g, n, 3, &z);
  fill(n, 0.1, a);
  fill(n, 0.2, b);
  fill(n, 0.3, c);
  MD_REQUIRE(context, md_block_create(context, &host, &on_host));
  MD_REQUIRE(context, md_block_create(context, &shape, &on_device));
  MD_REQUIRE(context, md_block_gram(context, on_host, &x.host, 0));
  MD_REQUIRE(context, md_block_gram(context, on_device, &x.device, 0));
  MD_REQUIRE(context, md_block_gram(context, on_device, &x.device, 1));
  MD_REQUIRE(context, md_block_wait(context, on_host, 0, host_gram));
  MD_REQUIRE(context, md_block_wait(context, on_device, 0, device_gram));
  MD_REQUIRE(context, md_block_wait(context, on_device, 1, again));
  same_gram(device_gram, host_gram, n, size);
  assert_memory_equal(again, device_gram, 2 * (size_t)n * (size_t)n * sizeof *again);
  check_step(context, on_host, on_device, &y, NULL, NULL, false);
  check_step(context, on_host, on_device, &y, &x, NULL, true);
  check_step(context, on_host, on_device, &y, NULL, &z, true);
  check_step(context, on_host, on_device, &y, &x, &z, false);
  md_block_destroy(on_host);
  md_block_destroy(on_device);
  drop(&x);
  drop(&y);
  drop(&z);
}

/* More than 32 right-hand sides in double need two matrices of 64 KiB in shared memory. */
static void as_on_the_host(void **state) {
  md_context *context = *state;
  static const int rhs[] = {2, 3, 8, 12, 16, 17, 32, 48, 64};
  MD_REQUIRE(context, md_device_open(context));
  const int served = context->gpu.block_shared_bytes < 128 * 1024 ? 7 : 9;
  md_geometry *g = md_test_geometry(context, 4, 4, 8, 4, false);
  for (int k = 0; k < served; k++) check(context, g, rhs[k]);
  for (int k = served; k < 9; k++) {
    const md_field_shape shape = {MD_DOUBLE, MD_DEVICE, MD_FERMION_REALS, rhs[k], true, false};
    md_block *refused;
    assert_int_equal(md_block_create(context, &shape, &refused), MD_ENVIRONMENT);
    assert_non_null(strstr(context->message, "use at most 32 right-hand sides"));
    md_block_destroy(refused);
  }
  md_geometry_destroy(g);
}

/* A field of this precision on host and device, from the same numbers. */
static void make_of(md_context *context, const md_geometry *g, md_precision precision, int n_rhs,
                    uint64_t seed, pair *f) {
  const md_field_shape shape = {precision, MD_DEVICE, MD_FERMION_REALS, n_rhs, true, false};
  md_test_random_field(context, g, precision, n_rhs, MD_EVEN, seed, &f->host);
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &f->device));
  MD_REQUIRE(context, md_field_convert(context, &f->device, &f->host));
}

/* To the roundings of the results in this precision, which differ where products do in their last
 * bits, and to those of the products on a device. They are nearest to the step of fixed, where the
 * emulation of the kernels has most numbers rounded the other way. */
static void near(md_context *context, const pair *f, const char *what) {
  const md_geometry *g = f->host.geometry;
  const double share = f->host.precision == MD_FIXED ? 0.5 : 0.1;
  md_field back, host;
  md_test_random_field(context, g, MD_DOUBLE, f->host.n_rhs, MD_EVEN, 98, &back);
  md_test_random_field(context, g, MD_DOUBLE, f->host.n_rhs, MD_EVEN, 99, &host);
  MD_REQUIRE(context, md_field_convert(context, &back, &f->device));
  MD_REQUIRE(context, md_field_convert(context, &host, &f->host));
  md_require_at_most(md_test_distance(context, &back, &host),
                     fmax(share * md_precision_roundoff(f->host.precision), 0x1p-19), what);
  md_field_destroy(&back);
  md_field_destroy(&host);
}

static void near_gram(int n, double bound) {
  for (int e = 0; e < 2 * n * n; e++)
    md_require_at_most(fabs(device_gram[e] - host_gram[e]), bound, "sums of narrow fields");
}

/* Work spaces of both spaces. */
typedef struct blocks {
  md_block *host, *device;
} blocks;

/* From equal y, which stays as it is on the device where `to` takes the new one. */
static void check_narrow_step(md_context *context, const blocks *on, pair *y, const pair *x,
                              md_field *to) {
  const md_precision precision = y->host.precision;
  const double size = 12.0 * (double)y->host.geometry->volume;
  const int n = y->host.n_rhs;
  pair fresh = {.host = y->host, .device = to ? *to : y->device};
  md_block_step step = {.b = b, .a = a, .slot = 1, .backwards = !x};
  if (x) step.x = &x->host;
  MD_REQUIRE(context, md_field_convert(context, &y->device, &y->host));
  MD_REQUIRE(context, md_block_update(context, on->host, &y->host, &step));
  MD_REQUIRE(context, md_block_wait(context, on->host, 1, host_gram));
  if (x) step.x = &x->device;
  step.to = to;
  MD_REQUIRE(context, md_block_update(context, on->device, &y->device, &step));
  MD_REQUIRE(context, md_block_wait(context, on->device, 1, device_gram));
  near(context, &fresh, "narrow y of a step");
  near_gram(n, fmax(0.1 * md_precision_roundoff(precision), 0x1p-20) * size);
  MD_REQUIRE(context, md_block_gram(context, on->device, &fresh.device, 0));
  MD_REQUIRE(context, md_block_wait(context, on->device, 0, host_gram));
  near_gram(n, 0x1p-20 * size); /* of what was stored */
}

/* z of MD_SINGLE; on the device in parts. */
static void check_add(md_context *context, const blocks *on, pair *z, const pair *x, int count) {
  static double matrices[ADDED * REALS];
  md_field of_host[ADDED], of_device[ADDED];
  for (int k = 0; k < count; k++) {
    fill(x->host.n_rhs, 0.3 * k, matrices + 2 * k * x->host.n_rhs * x->host.n_rhs);
    of_host[k] = k % 2 ? x[1].host : x[0].host;
    of_device[k] = k % 2 ? x[1].device : x[0].device;
  }
  MD_REQUIRE(context, md_block_add(context, on->host, &z->host, count, of_host, matrices, NULL));
  for (md_block_part part = {0, 3}; part.index < 3; part.index++)
    MD_REQUIRE(context,
               md_block_add(context, on->device, &z->device, count, of_device, matrices, &part));
  near(context, z, "a sum of blocks");
}

/* Updates of narrow fields, their sums, products of two, sums of several. */
static void check_narrow(md_context *context, const md_geometry *g, int n, md_precision precision) {
  const md_field_shape shape = {precision, MD_DEVICE, MD_FERMION_REALS, n, true, false};
  const md_field_shape host = {precision, MD_HOST, MD_FERMION_REALS, n, true, false};
  blocks on;
  pair x[3], y, z;
  make_of(context, g, precision, n, 1, &x[0]);
  make_of(context, g, precision, n, 4, &x[1]);
  make_of(context, g, precision, n, 5, &x[2]);
  make_of(context, g, precision, n, 2, &y);
  make_of(context, g, MD_SINGLE, n, 3, &z);
  fill(n, 0.1, a);
  fill(n, 0.2, b);
  MD_REQUIRE(context, md_block_create(context, &host, &on.host));
  MD_REQUIRE(context, md_block_create(context, &shape, &on.device));
  MD_REQUIRE(context, md_block_cross(context, on.host, &x[0].host, &y.host, host_gram));
  MD_REQUIRE(context, md_block_cross(context, on.device, &x[0].device, &y.device, device_gram));
  if (precision == MD_SINGLE)
    same_gram(device_gram, host_gram, n, 12.0 * (double)g->volume);
  else
    near_gram(n, 0x1p-20 * 12.0 * (double)g->volume);
  check_narrow_step(context, &on, &y, &x[0], NULL);
  check_narrow_step(context, &on, &y, NULL, &x[2].device);
  check_narrow_step(context, &on, &y, &x[0], &x[2].device);
  check_add(context, &on, &z, x, 1);
  check_add(context, &on, &z, x, ADDED);
  md_block_destroy(on.host);
  md_block_destroy(on.device);
  for (int k = 0; k < 3; k++) drop(&x[k]);
  drop(&y);
  drop(&z);
}

static void narrow_as_on_the_host(void **state) {
  static const md_precision inner[] = {MD_SINGLE, MD_HALF, MD_BF16, MD_FIXED};
  static const int rhs[] = {2, 5, 8, 16, 17, 32};
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 8, 4, false);
  for (size_t k = 0; k < sizeof rhs / sizeof *rhs; k++)
    for (int i = 0; i < 4; i++) check_narrow(context, g, rhs[k], inner[i]);
  md_geometry_destroy(g);
}

static const md_solver_request block = {
    .mass = 0.1, .tolerance = 1e-11, .max_iterations = 2000, .solver = &md_solver_block};

static md_status solve(md_context *context, problem *p, const char *backend, md_packing packing,
                       const md_solver_request *request, md_solver_result *result) {
  md_dirac dirac;
  const md_backend_request how = {.packing = packing, .n_rhs = p->b[0].n_rhs, .antiperiodic = true};
  MD_REQUIRE(context, md_dirac_create(context, p->field, backend, &how, &dirac));
  const md_status status = md_solve_cg(context, &dirac, &dirac, request, p->x, p->b, result);
  md_dirac_destroy(&dirac);
  return status;
}

static void solves(md_context *context, const char *backend, md_packing packing, int n) {
  problem p;
  md_solver_result alone, here, there;
  md_solver_request single = block;
  double residuals[MD_MAX_RHS];
  single.solver = NULL;
  problem_make(context, n, &p);
  MD_REQUIRE(context, solve(context, &p, "cpu_simd", MD_PACKING_NONE, &single, &alone));
  MD_REQUIRE(context, solve(context, &p, "cpu_simd", MD_PACKING_NONE, &block, &there));
  MD_REQUIRE(context, solve(context, &p, backend, packing, &block, &here));
  problem_residuals(context, &p, block.mass, residuals);
  for (int r = 0; r < n; r++) md_require_at_most(residuals[r], 1.1 * block.tolerance, "block CG");
  assert_true(here.converged);
  md_require_at_most(here.iterations, (n == 2 ? 1.0 : 0.6) * alone.iterations, "iterations");
  md_require_at_most(fabs((double)(here.iterations - there.iterations)), 2.0,
                     "difference to the host");
  md_solver_result_free(&alone);
  md_solver_result_free(&here);
  md_solver_result_free(&there);
  problem_drop(&p);
}

static void fewer_iterations(void **state) {
  for (int n = 2; n <= 32; n *= 4) solves(*state, "cuda", MD_PACKING_NONE, n);
  solves(*state, "tensor", MD_PACKING_STACKED, 16);
}

/* Mixed block CG on the device and on the host: about as many iterations. */
static void solves_mixed(md_context *context, const char *backend, md_packing packing,
                         md_precision inner, int n) {
  static const char *const host = "cpu_simd";
  int iterations[2];
  for (int i = 0; i < 2; i++) {
    const md_backend_request wide = {.n_rhs = n, .antiperiodic = true};
    const md_backend_request how = {.precision = inner,
                                    .packing = i ? packing : MD_PACKING_NONE,
                                    .n_rhs = n,
                                    .antiperiodic = true};
    md_solver_request request = block;
    md_dirac narrow, exact;
    double residuals[MD_MAX_RHS];
    md_solver_result result;
    problem p;
    problem_make(context, n, &p);
    MD_REQUIRE(context, md_dirac_create(context, p.field, i ? backend : host, &how, &narrow));
    MD_REQUIRE(context, md_dirac_create(context, p.field, i ? "cuda" : host, &wide, &exact));
    request.inner = &narrow;
    MD_REQUIRE(context, md_solve_cg(context, &exact, &exact, &request, p.x, p.b, &result));
    problem_residuals(context, &p, block.mass, residuals);
    for (int r = 0; r < n; r++)
      md_require_at_most(residuals[r], 1.1 * block.tolerance, "mixed block CG");
    assert_true(result.converged);
    iterations[i] = result.iterations;
    md_solver_result_free(&result);
    md_dirac_destroy(&narrow);
    md_dirac_destroy(&exact);
    problem_drop(&p);
  }
  md_require_at_most(iterations[1], 1.15 * iterations[0] + 5, "iterations beside the host's");
}

static void narrow_iterations(void **state) {
  static const md_precision inner[] = {MD_SINGLE, MD_HALF, MD_BF16, MD_FIXED};
  for (int i = 0; i < 4; i++) solves_mixed(*state, "cuda", MD_PACKING_NONE, inner[i], 4);
  solves_mixed(*state, "cuda", MD_PACKING_NONE, MD_HALF, 32);
  solves_mixed(*state, "tensor", MD_PACKING_STACKED, MD_HALF, 16);
}

static void dependent_sources(void **state) {
  md_context *context = *state;
  problem p;
  md_solver_result result;
  problem_make_dependent(context, &p);
  MD_REQUIRE(context, solve(context, &p, "cuda", MD_PACKING_NONE, &block, &result));
  assert_true(result.converged);
  problem_check_dependent(context, &p, block.mass, block.tolerance);
  md_solver_result_free(&result);
  problem_drop(&p);
}

static void not_a_number_ends_it(void **state) {
  md_context *context = *state;
  problem p;
  md_solver_result result;
  problem_make(context, 4, &p);
  if (context->rank == 0) ((double *)p.field[0].links[0][2].data)[7] = NAN;
  assert_int_equal(solve(context, &p, "cuda", MD_PACKING_NONE, &block, &result), MD_UNREACHED);
  assert_non_null(strstr(context->message, "must be finite"));
  md_solver_result_free(&result);
  problem_drop(&p);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(as_on_the_host),    cmocka_unit_test(narrow_as_on_the_host),
    cmocka_unit_test(fewer_iterations),  cmocka_unit_test(narrow_iterations),
    cmocka_unit_test(dependent_sources), cmocka_unit_test(not_a_number_ends_it)};
MD_RUN_GPU_TESTS(tests)
