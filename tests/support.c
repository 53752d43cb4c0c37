#include "support.h"
#include "base/random_math.h"
#include "lattice/fields/source.h"
#include "lattice/fields/sum.h"
#include "lattice/gauge/gauge.h"
#include "lattice/gauge/su3.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) /* gcc */
#define MD_TEST_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) /* clang */
#define MD_TEST_LEAKS 1
#endif
#endif
#ifdef MD_TEST_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

/* Leaks are looked for between MPI's start and its end: what its modules lose in either is theirs,
 * and once they are unloaded it cannot be told by name. */
#ifdef MD_TEST_LEAKS
static void ignore_leaks(bool on) {
  on ? __lsan_disable() : __lsan_enable();
}
static bool found_leaks(void) {
  return __lsan_do_recoverable_leak_check() != 0;
}
#else
static void ignore_leaks(bool on) {
  (void)on;
}
static bool found_leaks(void) {
  return false;
}
#endif

/* More ranks than the tests are made for. */
enum { USUAL_RANKS = 4 };

/* What became of the lattices of this program on more ranks than usual: how many times one was cut,
 * and those that were left out, each once. */
enum { MOST_LATTICES = 16 };
static struct {
  int cut, left_out;
  int dims[MOST_LATTICES][MD_DIMS];
} lattices;

md_context *md_test_begin(int *argc, char ***argv) {
  md_context *context = calloc(1, sizeof *context);
  ignore_leaks(true);
  if (!context || md_context_open(context, argc, argv) != MD_OK) abort();
  ignore_leaks(false);
  return context;
}

int md_test_end(md_context *context, int failed) {
  if (found_leaks()) failed++;
  long long all = failed;
  md_sum_integers(context, &all, 1);
  md_context_end(context);
  free(context);
  if (all == 0 && lattices.cut == 0 && lattices.left_out > 0) return 77;
  return all > 0 ? 1 : 0;
}

void md_require(md_context *context, md_status status, const char *what) {
  if (status != MD_OK) fail_msg("%s: %s (status %d)", what, context->message, (int)status);
}

void md_require_at_most(double value, double limit, const char *what) {
  if (!(value <= limit)) fail_msg("%s: %.6g is more than %.6g", what, value, limit);
}

/* Tells it once, since tests ask for the same lattice again and again. */
static void leave_out(const md_context *context, const int n[MD_DIMS]) {
  for (int i = 0; i < lattices.left_out; i++)
    if (memcmp(lattices.dims[i], n, sizeof lattices.dims[i]) == 0) return;
  assert_true(lattices.left_out < MOST_LATTICES);
  memcpy(lattices.dims[lattices.left_out++], n, sizeof *lattices.dims);
  if (context->rank == 0)
    printf("left out: %dx%dx%dx%d cannot be cut into %d ranks\n", n[0], n[1], n[2], n[3],
           context->ranks);
}

void md_test_skip_lattice(const md_context *context, const int dims[MD_DIMS]) {
  leave_out(context, dims);
  skip();
}

static md_geometry *geometry_of(md_context *context, const md_layout_request *request) {
  md_geometry *geometry = NULL;
  const md_status status = md_geometry_create(context, request, &geometry);
  if (status == MD_INPUT && context->ranks > USUAL_RANKS && request->grid[0] == 0)
    md_test_skip_lattice(context, request->global);
  MD_REQUIRE(context, status);
  if (context->ranks > USUAL_RANKS) lattices.cut++;
  return geometry;
}

md_geometry *md_test_geometry(md_context *context, int x, int y, int z, int t, bool self_halo) {
  const md_layout_request request = {.global = {x, y, z, t}, .self_halo = self_halo};
  return geometry_of(context, &request);
}

md_geometry *md_test_deep_geometry(md_context *context, const int dims[MD_DIMS],
                                   const int grid[MD_DIMS], bool self_halo) {
  md_layout_request request = {.self_halo = self_halo, .depth = 3};
  for (int d = 0; d < MD_DIMS; d++) {
    request.global[d] = dims[d];
    request.grid[d] = grid ? grid[d] : 0;
  }
  return geometry_of(context, &request);
}

bool md_test_fits(md_context *context, int x, int y, int z, int t) {
  const md_layout_request request = {.global = {x, y, z, t}};
  md_geometry *geometry = NULL;
  const bool fits = md_geometry_create(context, &request, &geometry) == MD_OK;
  md_geometry_destroy(geometry);
  if (context->ranks > USUAL_RANKS) {
    if (fits) lattices.cut++;
    if (!fits) leave_out(context, request.global);
  }
  return fits;
}

void md_test_random_gauge(md_context *context, const md_geometry *geometry, uint64_t seed,
                          md_gauge *gauge) {
  MD_REQUIRE(context, md_gauge_create(context, geometry, gauge));
  MD_REQUIRE(context, md_gauge_start_hot(context, gauge, seed));
}

/* to = factor (to + part * another random field) */
static void mix(md_context *context, uint64_t seed, double factor, double part, md_gauge *to) {
  md_gauge other;
  md_test_random_gauge(context, to->geometry, seed, &other);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++) {
      const md_field *f = &to->links[p][mu];
      double *u = f->data;
      const double *v = other.links[p][mu].data;
      for (int64_t i = 0; i < MD_LINK_REALS * f->stride; i++) u[i] = factor * (u[i] + part * v[i]);
    }
  md_gauge_destroy(&other);
}

void md_test_random_links(md_context *context, const md_geometry *geometry, md_action action,
                          uint64_t seed, md_gauge fields[MD_MOST_LINK_FIELDS]) {
  const md_action_data *data = md_action_get(action);
  for (int f = 0; f < data->fields; f++) {
    md_test_random_gauge(context, geometry, seed + 100 * (uint64_t)f, &fields[f]);
    if (data->special_unitary) continue;
    mix(context, seed + 100 * (uint64_t)f + 50, f == 0 ? 1.0 : 0.05, 0.4, &fields[f]);
  }
}

/* The phase follows from the link, up to all of the circle. */
void md_test_phased_links(md_context *context, const md_geometry *geometry, uint64_t seed,
                          double factor, md_gauge fields[MD_MOST_LINK_FIELDS]) {
  md_test_random_links(context, geometry, MD_ACTION_HISQ, seed, fields);
  md_gauge_destroy(&fields[1]);
  md_test_random_gauge(context, geometry, seed + 100, &fields[1]);
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < geometry->sites; i++) {
      double u[MD_LINK_REALS], turned[MD_LINK_REALS];
      md_gauge_get(&fields[1], k % 2, k / 2, i, u);
      const double re = factor * cos(9.0 * u[0]), im = factor * sin(9.0 * u[0]);
      for (int c = 0; c < MD_LINK_REALS; c += 2) {
        turned[c] = re * u[c] - im * u[c + 1];
        turned[c + 1] = re * u[c + 1] + im * u[c];
      }
      md_gauge_set(&fields[1], k % 2, k / 2, i, turned);
    }
  MD_REQUIRE(context, md_gauge_exchange(context, &fields[1]));
}

void md_test_destroy_links(md_action action, md_gauge fields[MD_MOST_LINK_FIELDS]) {
  for (int f = 0; f < md_action_get(action)->fields; f++) md_gauge_destroy(&fields[f]);
}

md_geometry *md_test_action_geometry(md_context *context, md_action action, const int dims[MD_DIMS],
                                     bool self_halo) {
  return md_action_depth(action) > 1
             ? md_test_deep_geometry(context, dims, NULL, self_halo)
             : md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], self_halo);
}

void md_test_random_field(md_context *context, const md_geometry *geometry, md_precision precision,
                          int n_rhs, int parity, uint64_t seed, md_field *field) {
  const md_field_shape shape = {precision, MD_HOST, MD_FERMION_REALS, n_rhs, true, false};
  md_test_random_shape(context, geometry, &shape, parity, seed, field);
}

void md_test_random_shape(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, int parity, uint64_t seed, md_field *field) {
  const int n_rhs = shape->n_rhs;
  const md_field_shape exact = {MD_DOUBLE, MD_HOST, shape->components, n_rhs, true, false};
  md_field both[MD_PARITIES] = {{.n_rhs = n_rhs}, {.n_rhs = n_rhs}}; /* one of them without sites */
  MD_REQUIRE(context, md_field_create(context, geometry, &exact, parity, &both[parity]));
  md_source_gaussian(both, seed);
  MD_REQUIRE(context, md_field_create(context, geometry, shape, parity, field));
  MD_REQUIRE(context, md_field_convert(context, field, &both[parity]));
  md_field_destroy(&both[parity]);
}

double md_test_distance(md_context *context, const md_field *a, const md_field *b) {
  md_sum sums[2] = {0};
  for (int64_t i = 0; i < a->sites; i++)
    for (int r = 0; r < a->n_rhs; r++) {
      double u[MD_MAX_COMPONENTS], v[MD_MAX_COMPONENTS];
      md_field_get(a, i, r, u);
      md_field_get(b, i, r, v);
      for (int c = 0; c < a->components; c++) {
        md_sum_add(&sums[0], (u[c] - v[c]) * (u[c] - v[c]));
        md_sum_add(&sums[1], v[c] * v[c]);
      }
    }
  double values[2];
  MD_REQUIRE(context, md_sum_finish(context, sums, 2, values));
  return sqrt(values[0] / values[1]);
}

static double difference_at(md_context *context, const md_gauge *a, const md_gauge *b,
                            int64_t sites) {
  double most = 0.0;
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < sites; i++) {
      double u[MD_LINK_REALS], v[MD_LINK_REALS];
      md_gauge_get(a, k % 2, k / 2, i, u);
      md_gauge_get(b, k % 2, k / 2, i, v);
      for (int c = 0; c < MD_LINK_REALS; c++)
        if (!(fabs(u[c] - v[c]) <= most)) most = fabs(u[c] - v[c]);
    }
  md_maximum(context, &most, 1);
  return most;
}

double md_test_gauge_difference(md_context *context, const md_gauge *a, const md_gauge *b) {
  return difference_at(context, a, b, a->geometry->sites + a->geometry->halo_sites);
}

double md_test_local_difference(md_context *context, const md_gauge *a, const md_gauge *b) {
  return difference_at(context, a, b, a->geometry->sites);
}

enum { TRANSFORM = 0x7472616e }; /* keeps its random numbers apart */

/* g(x) at any site, also across the cut: drawn from the global coordinates alone. */
static void rotation_at(const md_geometry *geometry, uint64_t seed, const int x[MD_DIMS],
                        double g[18]) {
  md_random random = md_random_begin(seed, TRANSFORM, (uint64_t)md_global_index(geometry, x));
  md_su3_random(&random, g);
}

static void transform_site(md_gauge *gauge, uint64_t seed, int p, int64_t site) {
  const md_geometry *geometry = gauge->geometry;
  int x[MD_DIMS];
  double g[18], h[18], u[18], gu[18];
  md_global_coordinates(geometry, p, site, x);
  rotation_at(geometry, seed, x, g);
  for (int mu = 0; mu < MD_DIMS; mu++) {
    const int here = x[mu];
    x[mu] = (here + 1) % geometry->global[mu];
    rotation_at(geometry, seed, x, h);
    x[mu] = here;
    md_gauge_get(gauge, p, mu, site, u);
    md_su3_multiply(gu, g, u);
    md_su3_multiply_adjoint(u, gu, h);
    md_gauge_set(gauge, p, mu, site, u);
  }
}

void md_test_transform(md_context *context, md_gauge *gauge, uint64_t seed,
                       md_field transform[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < gauge->geometry->sites; i++) {
      transform_site(gauge, seed, p, i);
      if (transform) {
        double g[18];
        int x[MD_DIMS];
        md_global_coordinates(gauge->geometry, p, i, x);
        rotation_at(gauge->geometry, seed, x, g);
        md_field_set(&transform[p], i, g);
      }
    }
  }
  MD_REQUIRE(context, md_gauge_exchange(context, gauge));
}
