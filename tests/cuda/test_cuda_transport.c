/* Transports of device fields: every one that these ranks can use, on every rank grid, brings the
 * halo that MPI brings to the same host field, bit for bit, again and again, recorded and not, with
 * checks and without, of half spinors too; a hop over it agrees with cpu_ref; a neighbour that
 * stays away is named. */
#include "gpu_tests.h"
#include "lattice/halo/transport.h"

#include <stdio.h>
#include <string.h>

static const int dims[MD_DIMS] = {8, 4, 4, 8};
static const md_halo_request by_mpi = {.transport = "mpi"};

/* The next rank grid that fits, from all zeros; false after the last. */
static bool next_grid(const md_context *context, int grid[MD_DIMS]) {
  int code = 0, ranks, base = 9;
  for (int d = MD_DIMS - 1; d >= 0; d--) code = code * base + grid[d];
  while (++code < base * base * base * base) {
    bool fits = true;
    int rest = code;
    ranks = 1;
    for (int d = 0; d < MD_DIMS; d++, rest /= base) {
      grid[d] = rest % base;
      ranks *= grid[d];
      fits = fits && grid[d] > 0 && dims[d] % (2 * grid[d]) == 0;
    }
    if (fits && ranks == context->ranks) return true;
  }
  return false;
}

static md_geometry *geometry_on(md_context *context, const int grid[MD_DIMS], bool self_halo,
                                int depth) {
  md_layout_request layout = {.self_halo = self_halo, .depth = depth};
  md_geometry *g = NULL;
  memcpy(layout.global, dims, sizeof dims);
  memcpy(layout.grid, grid, sizeof layout.grid);
  MD_REQUIRE(context, md_geometry_create(context, &layout, &g));
  return g;
}

static bool usable(md_context *context, const md_transport *t, const md_geometry *g) {
  const bool fit = !t->unavailable && t->spaces & 1u << MD_DEVICE &&
                   (!t->check || md_agree(context, t->check(context, g)) == MD_OK);
  return fit;
}

/* The whole field, halo included, in the bytes of its planes. */
static void compare(const md_field *got, const md_field *want, const char *what) {
  const size_t width = (size_t)md_field_entry(want) * md_precision_bytes(want->precision);
  const size_t used = (size_t)(want->sites + want->halo);
  for (int c = 0; c < md_field_planes(want); c++) {
    const size_t at = (size_t)c * (size_t)want->stride * width;
    if (memcmp((char *)got->data + at, (char *)want->data + at, used * width) != 0)
      fail_msg("%s: plane %d differs", what, c);
  }
  if (want->scale && memcmp(got->scale, want->scale, used * sizeof(float)) != 0)
    fail_msg("%s: scales differ", what);
}

/* All of a field and its scales, halo included, between host and device. */
static md_status transfer(md_context *context, md_field *out, const md_field *in) {
  md_status (*const copy)(md_context *, void *, const void *, size_t) =
      in->space == MD_HOST ? md_device_upload : md_device_download;
  const size_t entries = (size_t)md_field_planes(in) * (size_t)in->stride;
  MD_TRY(copy(context, out->data, in->data,
              entries * (size_t)md_field_entry(in) * md_precision_bytes(in->precision)));
  return in->scale ? copy(context, out->scale, in->scale, (size_t)in->stride * sizeof(float))
                   : MD_OK;
}

typedef struct exchange {
  md_halo *halo;
  md_field *field;
} exchange;

static md_status queue_one(md_context *context, void *user) {
  exchange *e = user;
  (void)context;
  MD_TRY(md_halo_begin(e->halo, e->field));
  return md_halo_end(e->halo, e->field);
}

/* Two, which a recording may hold. */
static md_status queue(md_context *context, void *user) {
  MD_TRY(queue_one(context, user));
  return queue_one(context, user);
}

/* Ways of `peer`: copy engines, a push, a few multiprocessors. */
static const md_halo_request by_copies = {.copied_bytes = 1};
static const md_halo_request pushed = {.copied_bytes = 1, .awaited = true};
static const md_halo_request pumped = {.copied_bytes = 1, .beside_s = 1e-9};
static md_halo_request plain(bool check) {
  return (md_halo_request){.check = check};
}

static void carries_the_halo(md_context *context, const md_geometry *g, const md_transport *t,
                             md_precision precision, int n_rhs, md_halo_request request) {
  const md_field_shape host = {precision, MD_HOST, 6, n_rhs, true, false};
  const md_field_shape device = {precision, MD_DEVICE, 6, n_rhs, true, false};
  md_halo *over_mpi, *halo;
  md_field on_device, got;
  char what[160];
  request.transport = t->name;
  snprintf(what, sizeof what, "%s %s %d rhs, grid %dx%dx%dx%d%s", t->name,
           md_precision_name(precision), n_rhs, g->grid[0], g->grid[1], g->grid[2], g->grid[3],
           request.check ? ", checked" : "");
  MD_REQUIRE(context, md_halo_create(context, g, &host, &by_mpi, &over_mpi));
  MD_REQUIRE(context, md_halo_create(context, g, &device, &request, &halo));
  assert_string_equal(md_halo_transport(halo), t->name);
  for (int round = 0; round < 5; round++) {
    md_field want;
    const int parity = round % 2;
    md_test_random_field(context, g, precision, n_rhs, parity, 50 + (uint64_t)round, &want);
    MD_REQUIRE(context, md_field_create(context, g, &device, parity, &on_device));
    MD_REQUIRE(context, md_field_create(context, g, &host, parity, &got));
    MD_REQUIRE(context, transfer(context, &on_device, &want));
    MD_REQUIRE(context, md_halo_begin(over_mpi, &want));
    MD_REQUIRE(context, md_halo_end(over_mpi, &want));
    exchange e = {halo, &on_device};
    if (round < 3 || !t->queued)
      MD_REQUIRE(context, queue(context, &e));
    else {
      md_device_recording *recording;
      MD_REQUIRE(context, md_agree(context, md_device_record(context, queue, &e, &recording)));
      for (int k = 0; k < 3; k++) MD_REQUIRE(context, md_device_replay(context, recording));
      MD_REQUIRE(context, md_device_synchronise(context));
      md_device_recording_destroy(recording);
    }
    MD_REQUIRE(context, transfer(context, &got, &on_device));
    MD_REQUIRE(context, md_agree(context, md_halo_verify(halo)));
    compare(&got, &want, what);
    md_field_destroy(&want);
    md_field_destroy(&got);
    md_field_destroy(&on_device);
  }
  md_halo_destroy(halo);
  md_halo_destroy(over_mpi);
}

static void bits_arrive(void **state) {
  md_context *context = *state;
  int grid[MD_DIMS] = {0};
  context->quiet = true; /* of the cost of checks */
  while (next_grid(context, grid)) {
    md_geometry *g = geometry_on(context, grid, true, 1);
    for (const md_transport *const *t = md_transports(); *t; t++) {
      if (!usable(context, *t, g)) continue;
      for (int p = 0; p < MD_PRECISIONS; p++) {
        carries_the_halo(context, g, *t, (md_precision)p, 1, plain(p % 2 == 0));
        carries_the_halo(context, g, *t, (md_precision)p, 3, plain(p % 2 == 1));
        carries_the_halo(context, g, *t, (md_precision)p, 16, plain(p % 2 == 0));
        if (strcmp((*t)->name, "peer") != 0 || p > MD_HALF) continue;
        carries_the_halo(context, g, *t, (md_precision)p, 1, by_copies);
        carries_the_halo(context, g, *t, (md_precision)p, 16, by_copies);
        carries_the_halo(context, g, *t, (md_precision)p, 16, pushed);
      }
    }
    md_geometry_destroy(g);
  }
}

/* Surfaces in t are a few pieces of a field, out of which copy engines carry and multiprocessors
 * pump them. Four ranks hold
 * fewer slices than a deep halo has. */
static void surfaces_in_t_arrive(void **state) {
  md_context *context = *state;
  const int grid[MD_DIMS] = {1, 1, 1, context->ranks};
  if (context->ranks == 1) skip();
  for (int depth = 1; depth <= MD_MOST_DEPTH; depth += MD_MOST_DEPTH - 1) {
    md_geometry *g = geometry_on(context, grid, false, depth);
    for (int p = 0; p < MD_PRECISIONS && usable(context, &md_transport_peer, g); p++) {
      carries_the_halo(context, g, &md_transport_peer, (md_precision)p, 1, by_copies);
      carries_the_halo(context, g, &md_transport_peer, (md_precision)p, 16, by_copies);
      carries_the_halo(context, g, &md_transport_peer, (md_precision)p, 16, pumped);
    }
    md_geometry_destroy(g);
  }
}

/* An element as it is stored, without its scale, and back. */
static double stored(const md_field *f, int64_t i) {
  if (f->precision == MD_DOUBLE) return ((const double *)f->data)[i];
  if (f->precision == MD_SINGLE) return ((const float *)f->data)[i];
  const uint16_t bits = ((const uint16_t *)f->data)[i];
  return f->precision == MD_HALF ? md_float_of_half(bits) : md_float_of_bf16(bits);
}
static void store(md_field *f, int64_t i, double value) {
  if (f->precision == MD_DOUBLE)
    ((double *)f->data)[i] = value;
  else if (f->precision == MD_SINGLE)
    ((float *)f->data)[i] = (float)value;
  else
    ((uint16_t *)f->data)[i] =
        f->precision == MD_HALF ? md_half_of_float((float)value) : md_bf16_of_float((float)value);
}

static void exchange_once(md_context *context, md_halo *halo, md_field *field) {
  MD_REQUIRE(context, md_agree(context, md_halo_begin(halo, field)));
  MD_REQUIRE(context, md_agree(context, md_halo_end(halo, field)));
}

/* Fills the halo of a host field as an exchange of half spinors should: MPI carries those of its
 * stored numbers in double or single, to be rounded once, and the scales. */
static void fill_halves(md_context *context, const md_field_shape *host, bool adjoint,
                        md_field *field) {
  const md_halo_request by_halves = {.transport = "mpi", .half_spinors = true};
  md_field_shape wide = *host;
  md_halo *whole, *halves;
  md_field sums;
  if (wide.precision != MD_DOUBLE) wide.precision = MD_SINGLE;
  MD_REQUIRE(context, md_halo_create(context, field->geometry, host, &by_mpi, &whole));
  MD_REQUIRE(context, md_halo_create(context, field->geometry, &wide, &by_halves, &halves));
  MD_REQUIRE(context, md_field_create(context, field->geometry, &wide, field->parity, &sums));
  const int64_t own = field->sites * md_field_entry(field);
  const int64_t all = own + field->halo * md_field_entry(field);
  for (int64_t i = 0; i < own; i++) store(&sums, i, stored(field, i));
  md_halo_turn(halves, adjoint);
  exchange_once(context, halves, &sums);
  exchange_once(context, whole, field);
  for (int64_t i = own; i < all; i++) store(field, i, stored(&sums, i));
  md_field_destroy(&sums);
  md_halo_destroy(whole);
  md_halo_destroy(halves);
}

/* The upper spins of the halo are the sums, the lower ones zero, whatever was there before. */
static void carries_half_spinors(md_context *context, const md_geometry *g, const md_transport *t,
                                 md_precision precision, int n_rhs, int slices, bool check) {
  const md_field_shape host = {precision, MD_HOST, 24 * slices, n_rhs, true, true};
  const md_field_shape device = {precision, MD_DEVICE, 24 * slices, n_rhs, true, true};
  md_halo_request request = {.transport = t->name, .half_spinors = true};
  md_halo *unrounded, *halo;
  md_field on_device, got, want;
  char what[160];
  MD_REQUIRE(context, md_halo_create(context, g, &device, &request, &unrounded));
  request.rounds_half_spinors = true;
  request.check = check;
  MD_REQUIRE(context, md_halo_create(context, g, &device, &request, &halo));
  const bool wide = md_precision_bytes(precision) >= sizeof(float);
  assert_true(wide ? md_halo_bytes(unrounded) == md_halo_bytes(halo)
                   : md_halo_bytes(unrounded) > md_halo_bytes(halo));
  for (int round = 0; round < 4; round++) {
    const bool adjoint = round / 2;
    snprintf(what, sizeof what, "%s %s %d rhs, %d slices of half spinors%s, grid %dx%dx%dx%d%s",
             t->name, md_precision_name(precision), n_rhs, slices, adjoint ? " of H^dag" : "",
             g->grid[0], g->grid[1], g->grid[2], g->grid[3], check ? ", checked" : "");
    md_test_random_shape(context, g, &host, round % 2, 70 + (uint64_t)round, &want);
    MD_REQUIRE(context, md_field_create(context, g, &device, round % 2, &on_device));
    MD_REQUIRE(context, md_field_create(context, g, &host, round % 2, &got));
    const int64_t own = want.sites * md_field_entry(&want);
    for (int64_t i = 0; i < want.halo * md_field_entry(&want); i++) store(&want, own + i, 7.0);
    MD_REQUIRE(context, transfer(context, &on_device, &want));
    fill_halves(context, &host, adjoint, &want);
    md_halo_turn(halo, adjoint);
    exchange e = {halo, &on_device};
    MD_REQUIRE(context, queue(context, &e));
    MD_REQUIRE(context, transfer(context, &got, &on_device));
    MD_REQUIRE(context, md_agree(context, md_halo_verify(halo)));
    compare(&got, &want, what);
    md_field *const fields[] = {&on_device, &got, &want};
    for (int f = 0; f < 3; f++) md_field_destroy(fields[f]);
  }
  md_halo_destroy(halo);
  md_halo_destroy(unrounded);
}

static void half_spinors_arrive(void **state) {
  md_context *context = *state;
  int grid[MD_DIMS] = {0};
  context->quiet = true; /* of the cost of checks */
  while (next_grid(context, grid)) {
    md_geometry *g = geometry_on(context, grid, true, 1);
    for (const md_transport *const *t = md_transports(); *t; t++) {
      if ((*t)->whole_spinors || !usable(context, *t, g)) continue;
      for (int k = 0; k < 4 * MD_FIXED; k++)
        carries_half_spinors(context, g, *t, (md_precision)(k / 4), k & 1 ? 3 : 1, k & 2 ? 3 : 1,
                             k / 4 % 2 == k % 2);
    }
    md_geometry_destroy(g);
  }
}

/* Three hops behind each other, so that buffers are used in turn. */
static void hop(md_context *context, md_dirac *dirac, const md_field *in, md_field *out) {
  md_field field[MD_PARITIES];
  for (int p = 0; p < MD_PARITIES; p++)
    MD_REQUIRE(context, md_dirac_field(context, dirac, p, &field[p]));
  MD_REQUIRE(context, md_field_convert(context, &field[MD_ODD], in));
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &field[MD_EVEN], &field[MD_ODD], NULL));
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &field[MD_ODD], &field[MD_EVEN], NULL));
  MD_REQUIRE(context, md_dirac_hop(context, dirac, &field[MD_EVEN], &field[MD_ODD], NULL));
  MD_REQUIRE(context, md_field_convert(context, out, &field[MD_EVEN]));
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&field[p]);
}

static void hops_agree(md_context *context, const md_geometry *g, const md_transport *t,
                       const char *backend, md_precision precision, int n_rhs,
                       size_t copied_bytes) {
  const bool tiles = strcmp(backend, "tensor") == 0;
  const md_backend_request exact = {
      .precision = MD_DOUBLE, .packing = MD_PACKING_NONE, .n_rhs = n_rhs, .antiperiodic = true};
  const md_backend_request request = {.precision = precision,
                                      .packing = tiles ? MD_PACKING_STACKED : MD_PACKING_NONE,
                                      .n_rhs = n_rhs,
                                      .antiperiodic = true};
  const md_halo_request how = {.transport = t->name, .copied_bytes = copied_bytes};
  md_gauge gauge;
  md_dirac oracle, dirac;
  md_field in, want, got;
  md_test_random_gauge(context, g, 3, &gauge);
  MD_REQUIRE(context, md_dirac_create(context, &gauge, "cpu_ref", &exact, &oracle));
  MD_REQUIRE(context, md_dirac_create_over(context, &gauge, backend, &request, &how, &dirac));
  md_test_random_field(context, g, MD_DOUBLE, n_rhs, MD_ODD, 5, &in);
  md_test_random_field(context, g, MD_DOUBLE, n_rhs, MD_EVEN, 6, &want);
  md_test_random_field(context, g, MD_DOUBLE, n_rhs, MD_EVEN, 7, &got);
  hop(context, &oracle, &in, &want);
  hop(context, &dirac, &in, &got);
  md_require_at_most(md_test_distance(context, &got, &want), 9.0 * md_precision_roundoff(precision),
                     t->name);
  md_field_destroy(&in);
  md_field_destroy(&want);
  md_field_destroy(&got);
  md_dirac_destroy(&oracle);
  md_dirac_destroy(&dirac);
  md_gauge_destroy(&gauge);
}

static void operators_agree_with_oracle(void **state) {
  md_context *context = *state;
  int grid[MD_DIMS] = {0};
  while (next_grid(context, grid)) {
    md_geometry *g = geometry_on(context, grid, true, 1);
    for (const md_transport *const *t = md_transports(); *t; t++) {
      if (!usable(context, *t, g)) continue;
      hops_agree(context, g, *t, "cuda", MD_DOUBLE, 1, 0);
      hops_agree(context, g, *t, "cuda", MD_HALF, 1, 0);
      hops_agree(context, g, *t, "cuda", MD_FIXED, 3, 0);
      hops_agree(context, g, *t, "cuda", MD_HALF, 16, 0);
      hops_agree(context, g, *t, "tensor", MD_DOUBLE, 16, 0);
      hops_agree(context, g, *t, "tensor", MD_HALF, 16, 0);
      if (strcmp((*t)->name, "peer") != 0) continue;
      hops_agree(context, g, *t, "cuda", MD_HALF, 1, 1); /* by copy engines */
      hops_agree(context, g, *t, "cuda", MD_DOUBLE, 16, 1);
      hops_agree(context, g, *t, "tensor", MD_HALF, 16, 1);
    }
    md_geometry_destroy(g);
  }
}

/* The last rank leaves one exchange out. The others learn whom they waited for. */
static void absence_is_named(void **state) {
  md_context *context = *state;
  const md_field_shape shape = {MD_SINGLE, MD_DEVICE, 6, 1, true, false};
  const md_halo_request request = {.transport = "peer"};
  md_geometry *g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], false);
  md_halo *halo = NULL;
  md_field field;
  if (context->ranks == 1 || md_halo_create(context, g, &shape, &request, &halo) != MD_OK) {
    md_geometry_destroy(g);
    skip();
  }
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &field));
  exchange e = {halo, &field};
  MD_REQUIRE(context, queue(context, &e));
  if (context->rank != context->ranks - 1) {
    MD_REQUIRE(context, queue(context, &e));
    MD_REQUIRE(context, md_device_synchronise(context));
  }
  md_barrier(context);
  const md_status status = md_agree(context, md_halo_verify(halo));
  assert_int_equal(status, MD_ENVIRONMENT);
  if (!strstr(context->message, "in vain")) fail_msg("%s", context->message);
  md_field_destroy(&field);
  md_halo_destroy(halo);
  md_geometry_destroy(g);
}

/* By copy engines, whose buffers the host chooses. */
static void odd_recordings_are_refused(void **state) {
  md_context *context = *state;
  const md_field_shape shape = {MD_SINGLE, MD_DEVICE, 6, 1, true, false};
  const md_halo_request request = {.transport = "peer", .copied_bytes = 1};
  md_geometry *g = md_test_geometry(context, dims[0], dims[1], dims[2], dims[3], false);
  md_halo *halo = NULL;
  md_field field;
  if (context->ranks == 1 || md_halo_create(context, g, &shape, &request, &halo) != MD_OK) {
    md_geometry_destroy(g);
    skip();
  }
  MD_REQUIRE(context, md_field_create(context, g, &shape, MD_EVEN, &field));
  exchange e = {halo, &field};
  md_device_recording *recording;
  MD_REQUIRE(context, md_agree(context, md_device_record(context, queue_one, &e, &recording)));
  for (int k = 0; k < 2; k++) MD_REQUIRE(context, md_device_replay(context, recording));
  MD_REQUIRE(context, md_device_synchronise(context));
  assert_int_equal(md_agree(context, md_halo_verify(halo)), MD_ENVIRONMENT);
  if (!strstr(context->message, "even number")) fail_msg("%s", context->message);
  md_device_recording_destroy(recording);
  md_field_destroy(&field);
  md_halo_destroy(halo);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(bits_arrive),
                                    cmocka_unit_test(surfaces_in_t_arrive),
                                    cmocka_unit_test(half_spinors_arrive),
                                    cmocka_unit_test(odd_recordings_are_refused),
                                    cmocka_unit_test(operators_agree_with_oracle),
                                    cmocka_unit_test(absence_is_named)};
MD_RUN_GPU_TESTS(tests)
