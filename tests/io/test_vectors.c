#include "io/modes_file.h"
#include "io/propagator.h"
#include "io/vectors.h"
#include "io_support.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Files of colour vectors: what is written is read back, in double bit by bit, from each format, on
 * any rank grid; what is damaged is refused. What the bytes mean is held by vectors.sh, whose
 * reader shares no line with ours. */

enum { X = 4, Y = 4, Z = 2, T = 8 };

static const struct {
  const char *suffix;
  int rhs;
  md_precision precision;
  bool sources;
} cases[] = {{".lime", 1, MD_DOUBLE, true},   {".lime", 4, MD_DOUBLE, false},
             {".scidac", 3, MD_SINGLE, true}, {".milc", 3, MD_SINGLE, false},
             {".ks", 3, MD_SINGLE, true},     {".fnal", 3, MD_SINGLE, false}};
enum { CASES = sizeof cases / sizeof *cases };

static void make(md_context *context, const md_geometry *geometry, int rhs, uint64_t seed,
                 md_field pair[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++)
    md_test_random_field(context, geometry, MD_DOUBLE, rhs, p, seed + (uint64_t)p, &pair[p]);
}

static void discard(md_field pair[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&pair[p]);
}

static void require_same(md_context *context, const md_field *a, const md_field *b,
                         md_precision precision, const char *what) {
  for (int p = 0; p < MD_PARITIES; p++)
    md_require_at_most(md_test_distance(context, &a[p], &b[p]),
                       precision == MD_DOUBLE ? 0 : 0x1p-24, what);
}

static void round_trips(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  for (int i = 0; i < CASES; i++) {
    md_field x[MD_PARITIES], b[MD_PARITIES], read[MD_PARITIES];
    char path[256], action[] = "naive", action_read[32] = "";
    double mass = 0.1, residuals[4] = {1e-11, 2e-11, 3e-11, 4e-11}, mass_read = 0;
    double residuals_read[4] = {0};
    const int n = cases[i].rhs;
    const bool says = strcmp(cases[i].suffix, ".lime") == 0;
    const md_attribute given[] = {{"mass", MD_ATTRIBUTE_REAL, 1, &mass},
                                  {"residuals", MD_ATTRIBUTE_REAL, n, residuals},
                                  {"action", MD_ATTRIBUTE_TEXT, 0, action}};
    const md_attribute wanted[] = {{"mass", MD_ATTRIBUTE_REAL, 1, &mass_read},
                                   {"residuals", MD_ATTRIBUTE_REAL, n, residuals_read},
                                   {"action", MD_ATTRIBUTE_TEXT, sizeof action_read, action_read}};
    md_lattice_info info;
    io_test_name(context, cases[i].suffix, path, sizeof path);
    make(context, geometry, n, 5, x);
    make(context, geometry, n, 15, b);
    make(context, geometry, n, 25, read);
    MD_REQUIRE(context, md_solution_write(context, path, md_vectors_format_of(path, NULL),
                                          cases[i].precision, false, x, cases[i].sources ? b : NULL,
                                          given, 3));
    MD_REQUIRE(context, md_propagator_read(context, path, read, wanted, says ? 3 : 0));
    require_same(context, read, x, cases[i].precision, path);
    if (says) {
      assert_memory_equal(&mass, &mass_read, sizeof mass);
      assert_memory_equal(residuals, residuals_read, (size_t)n * sizeof(double));
      assert_string_equal(action, action_read);
    }
    MD_REQUIRE(context, md_lattice_describe(context, path, &info));
    assert_string_equal(info.header.content, "vectors");
    assert_int_equal(md_vectors_count(&info, false), n);
    MD_REQUIRE(context, md_vectors_read(context, path, &info, true, read));
    const bool has_sources = cases[i].sources && info.header.scidac;
    require_same(context, read, has_sources ? b : x, cases[i].precision, "sources");
    md_lattice_info_destroy(&info);
    io_test_remove(context, path);
    discard(read);
    discard(b);
    discard(x);
  }
  md_geometry_destroy(geometry);
}

/* Unit vectors on even sites. */
static void make_modes(md_context *context, const md_geometry *geometry, int count,
                       md_modes *modes) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true, false};
  double norm2, none = 0.0;
  MD_REQUIRE(context, md_modes_create(context, geometry, &shape, count, modes));
  for (int i = 0; i < count; i++) {
    md_field_destroy(&modes->vectors[i]);
    md_test_random_field(context, geometry, MD_DOUBLE, 1, MD_EVEN, (uint64_t)i + 9,
                         &modes->vectors[i]);
    MD_REQUIRE(context, md_linear_norm2(context, &modes->vectors[i], NULL, &norm2));
    const double scale = 1.0 / sqrt(norm2);
    md_linear_axpby(&scale, &modes->vectors[i], &none, &modes->vectors[i]);
    modes->values[i] = 0.01 * (i + 1);
    modes->residuals[i] = 1e-9;
  }
}

static void require_no_solution(md_context *context, const md_geometry *geometry,
                                const char *path) {
  md_field x[MD_PARITIES];
  make(context, geometry, 1, 5, x);
  assert_int_equal(md_propagator_read(context, path, x, NULL, 0), MD_INPUT);
  assert_non_null(strstr(context->message, "holds modes of -Deo Doe, not solutions"));
  discard(x);
}

static void modes_come_back(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  const md_modes_info given = {.converged = 2,
                               .tolerance = 1e-8,
                               .store = MD_DOUBLE,
                               .label = {"0123456789abcdef", "naive", "antiperiodic"}};
  md_modes modes, read;
  md_modes_info info;
  char path[256];
  io_test_name(context, ".modes.lime", path, sizeof path);
  make_modes(context, geometry, 3, &modes);
  MD_REQUIRE(context,
             md_modes_write(context, path, md_vectors_format_of(path, NULL), &modes, &given));
  MD_REQUIRE(context, md_modes_describe(context, path, &info));
  assert_int_equal(info.count, 3);
  assert_int_equal(info.converged, 2);
  assert_string_equal(info.label.action, "naive");
  MD_REQUIRE(context,
             md_modes_read(context, path, geometry, &given.label, &info, 3, MD_HOST, &read));
  for (int i = 0; i < 3; i++) {
    assert_memory_equal(&modes.values[i], &read.values[i], sizeof(double));
    md_require_at_most(md_test_distance(context, &modes.vectors[i], &read.vectors[i]), 0, "mode");
  }
  md_modes_destroy(&read);
  const md_modes_label other = {"0123456789abcdef", "hisq", "antiperiodic"};
  assert_int_equal(md_modes_read(context, path, geometry, &other, &info, 3, MD_HOST, &read),
                   MD_INPUT);
  assert_non_null(strstr(context->message, "must have the action"));
  require_no_solution(context, geometry, path);
  /* Those of QUDA have no eigenvalues. */
  MD_REQUIRE(context,
             md_modes_write(context, path, md_vectors_format_of(path, "quda"), &modes, &given));
  require_no_solution(context, geometry, path);
  assert_int_equal(md_modes_describe(context, path, &info), MD_INPUT);
  assert_non_null(strstr(context->message, "must have <eigVal>"));
  md_modes_destroy(&modes);
  io_test_remove(context, path);
  md_geometry_destroy(geometry);
}

/* Whatever happens to the bytes: refused with one line, or the vectors that were written. */
static void damaged(void **state) {
  md_context *context = *state;
  md_geometry *geometry = context->ranks > 1 ? md_test_geometry(context, 4, 4, 4, 4, false)
                                             : md_test_geometry(context, 2, 2, 2, 2, false);
  for (int i = 0; i < CASES; i++) {
    md_field x[MD_PARITIES], read[MD_PARITIES];
    char path[256];
    size_t bytes = 0;
    int refused = 0;
    io_test_name(context, cases[i].suffix, path, sizeof path);
    make(context, geometry, cases[i].rhs, 5, x);
    make(context, geometry, cases[i].rhs, 6, read);
    MD_REQUIRE(context, md_solution_write(context, path, md_vectors_format_of(path, NULL),
                                          cases[i].precision, false, x, NULL, NULL, 0));
    unsigned char *file = io_test_get(path, &bytes), *bad = malloc(bytes + 8);
    const bool summed = strcmp(cases[i].suffix, ".fnal") != 0;
    assert_non_null(bad);
    md_barrier(context);
    const size_t step = context->ranks > 1 ? 1009 : 23;
    for (size_t at = 0; at < bytes; at += step) {
      memcpy(bad, file, bytes);
      bad[at] ^= (unsigned char)(1u << at % 8);
      io_test_put(context, path, bad, bytes);
      const md_status status = md_propagator_read(context, path, read, NULL, 0);
      if (status == MD_OK && summed) require_same(context, read, x, cases[i].precision, path);
      if (status != MD_OK) {
        if (status != MD_INPUT) fail_msg("%s, byte %zu: %s", path, at, context->message);
        assert_null(strchr(context->message, '\n'));
        refused++;
      }
    }
    if (summed) assert_true((size_t)refused > bytes / step / 8);
    for (size_t k = 0; k < 16; k++) {
      io_test_put(context, path, file, bytes * k / 16);
      assert_int_equal(md_propagator_read(context, path, read, NULL, 0), MD_INPUT);
    }
    free(bad);
    free(file);
    discard(read);
    discard(x);
    io_test_remove(context, path);
  }
  md_geometry_destroy(geometry);
}

/* Lattices, numbers and formats that do not fit. */
static void refusals(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  md_geometry *longer = md_test_geometry(context, X, Y, Z, 2 * T, false);
  const md_lattice_format *milc = md_vectors_format_of("", "milc");
  md_field x[MD_PARITIES], other[MD_PARITIES], more[MD_PARITIES];
  char path[256];
  io_test_name(context, ".lime", path, sizeof path);
  make(context, geometry, 2, 5, x);
  make(context, longer, 2, 5, other);
  make(context, geometry, 3, 5, more);
  assert_int_equal(md_solution_write(context, path, milc, MD_SINGLE, false, x, NULL, NULL, 0),
                   MD_INPUT);
  assert_non_null(strstr(context->message, "milc files hold 3 solutions"));
  assert_int_equal(md_solution_write(context, path, milc, MD_DOUBLE, false, more, NULL, NULL, 0),
                   MD_INPUT);
  assert_non_null(strstr(context->message, "milc files hold single precision"));
  assert_int_equal(md_solution_write(context, path, md_vectors_format_of("", "quda"), MD_DOUBLE,
                                     false, x, NULL, NULL, 0),
                   MD_INPUT);
  MD_REQUIRE(context, md_solution_write(context, path, md_vectors_format_of(path, NULL), MD_DOUBLE,
                                        false, x, NULL, NULL, 0));
  assert_int_equal(md_propagator_read(context, path, other, NULL, 0), MD_INPUT);
  assert_non_null(strstr(context->message, "4x4x2x8 lattice, needed is one of 4x4x2x16"));
  assert_int_equal(md_propagator_read(context, path, more, NULL, 0), MD_INPUT);
  assert_non_null(strstr(context->message, "3 right-hand sides are needed, the file has 2"));
  if (geometry->origin[0] + geometry->origin[1] + geometry->origin[2] + geometry->origin[3] == 0)
    ((double *)x[MD_EVEN].data)[0] = NAN;
  assert_int_equal(md_solution_write(context, path, md_vectors_format_of(path, NULL), MD_DOUBLE,
                                     false, x, NULL, NULL, 0),
                   MD_INPUT);
  assert_non_null(strstr(context->message, "vectors must be finite"));
  discard(more);
  discard(other);
  discard(x);
  io_test_remove(context, path);
  md_geometry_destroy(longer);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(round_trips),
                                    cmocka_unit_test(modes_come_back), cmocka_unit_test(damaged),
                                    cmocka_unit_test(refusals)};
MD_RUN_TESTS(tests)
