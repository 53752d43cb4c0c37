#include "io/propagator.h"
#include "io_support.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X = 4, Y = 4, Z = 2, T = 8 };

static void make_pair(md_context *context, const md_geometry *geometry, int n_rhs, uint64_t seed,
                      md_field pair[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++)
    md_test_random_field(context, geometry, MD_DOUBLE, n_rhs, p, seed, &pair[p]);
}

static void discard_pair(md_field pair[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++) md_field_destroy(&pair[p]);
}

/* Fields and attributes come back bit for bit, for both layouts of fields. */
static void propagator(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  for (int n_rhs = 1; n_rhs <= 3; n_rhs += 2) {
    md_field written[MD_PARITIES], read[MD_PARITIES];
    double mass = 0.1, residuals[3] = {1e-11, 2e-11, 3e-11}, mass_read = 0, residuals_read[3] = {0};
    char source[] = "point:0,0,0,0", source_read[32] = "";
    const md_attribute given[] = {{"mass", MD_ATTRIBUTE_REAL, 1, &mass},
                                  {"residuals", MD_ATTRIBUTE_REAL, n_rhs, residuals},
                                  {"source", MD_ATTRIBUTE_TEXT, 0, source}};
    const md_attribute wanted[] = {{"mass", MD_ATTRIBUTE_REAL, 1, &mass_read},
                                   {"residuals", MD_ATTRIBUTE_REAL, n_rhs, residuals_read},
                                   {"source", MD_ATTRIBUTE_TEXT, sizeof source_read, source_read}};
    make_pair(context, geometry, n_rhs, 5, written);
    make_pair(context, geometry, n_rhs, 6, read);
    MD_REQUIRE(context, io_test_propagator(context, path, written, given, 3));
    MD_REQUIRE(context, md_propagator_read(context, path, read, wanted, 3));
    for (int p = 0; p < MD_PARITIES; p++)
      md_require_at_most(md_test_distance(context, &read[p], &written[p]), 0, "propagator");
    assert_memory_equal(&mass, &mass_read, sizeof mass);
    assert_memory_equal(residuals, residuals_read, n_rhs * sizeof(double));
    assert_string_equal(source, source_read);
    discard_pair(read);
    discard_pair(written);
  }
  io_test_remove(context, path);
  md_geometry_destroy(geometry);
}

/* A number that only this real of this site and right-hand side has. */
static double label(const int x[MD_DIMS], int r, int c) {
  return ((((r * T + x[3]) * Z + x[2]) * Y + x[1]) * X + x[0]) * MD_FERMION_REALS + c;
}

/* The dataset is [rhs][t][z][y][x][3] of {r, i}: read by the HDF5 library alone. */
static void layout_on_file(void **state) {
  enum { N_RHS = 2, REALS = N_RHS * T * Z * Y * X * MD_FERMION_REALS };
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  md_field pair[MD_PARITIES];
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  make_pair(context, geometry, N_RHS, 5, pair);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t i = 0; i < geometry->sites; i++) {
      int x[MD_DIMS];
      double v[N_RHS * MD_FERMION_REALS];
      md_global_coordinates(geometry, p, i, x);
      for (int k = 0; k < N_RHS * MD_FERMION_REALS; k++)
        v[k] = label(x, k / MD_FERMION_REALS, k % MD_FERMION_REALS);
      md_field_set(&pair[p], i, v);
    }
  MD_REQUIRE(context, io_test_propagator(context, path, pair, NULL, 0));
  if (context->rank == 0) {
    static double reals[REALS];
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/propagator/solution", H5P_DEFAULT);
    const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * sizeof(double)), space = H5Dget_space(dataset);
    const hsize_t expected[6] = {N_RHS, T, Z, Y, X, 3};
    hsize_t extents[6] = {0};
    H5Tinsert(type, "r", 0, H5T_NATIVE_DOUBLE);
    H5Tinsert(type, "i", sizeof(double), H5T_NATIVE_DOUBLE);
    assert_int_equal(H5Sget_simple_extent_ndims(space), 6);
    H5Sget_simple_extent_dims(space, extents, NULL);
    assert_memory_equal(extents, expected, sizeof expected);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reals) >= 0);
    for (int k = 0; k < REALS; k++) assert_true(reals[k] == k);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    H5Fclose(file);
  }
  md_barrier(context);
  discard_pair(pair);
  io_test_remove(context, path);
  md_geometry_destroy(geometry);
}

static void checkpoint(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  md_field fields[4];
  char path[256];
  int64_t iteration = 77, iteration_read = 0;
  double distance = 0;
  for (int i = 0; i < 4; i++) /* 0, 1 are written; 2, 3 are read into */
    md_test_random_field(context, geometry, MD_DOUBLE, 2, MD_EVEN, (uint64_t)i, &fields[i]);
  const md_named_field out[2] = {{"x", &fields[0]}, {"p", &fields[1]}};
  const md_named_field in[2] = {{"p", &fields[3]}, {"x", &fields[2]}};
  const md_attribute given = {"iteration", MD_ATTRIBUTE_INTEGER, 1, &iteration};
  const md_attribute wanted = {"iteration", MD_ATTRIBUTE_INTEGER, 1, &iteration_read};
  io_test_name(context, ".checkpoint", path, sizeof path);
  MD_REQUIRE(context, md_checkpoint_write(context, path, out, 2, &given, 1));
  MD_REQUIRE(context, md_checkpoint_read(context, path, geometry, in, 2, &wanted, 1));
  assert_int_equal(iteration, iteration_read);
  for (int i = 0; i < 2; i++) {
    distance = md_test_distance(context, &fields[i + 2], &fields[i]);
    md_require_at_most(distance, 0, "checkpoint");
  }
  const md_attribute missing = {"residual", MD_ATTRIBUTE_REAL, 1, &distance};
  assert_int_equal(md_checkpoint_read(context, path, geometry, in, 2, &missing, 1), MD_INPUT);
  assert_non_null(strstr(context->message, "attribute residual is missing"));
  const md_named_field other = {"r", &fields[2]};
  assert_int_equal(md_checkpoint_read(context, path, geometry, &other, 1, &wanted, 1), MD_INPUT);
  fields[2].parity = MD_ODD;
  assert_int_equal(md_checkpoint_read(context, path, geometry, in, 2, &wanted, 1), MD_INPUT);
  assert_non_null(strstr(context->message, "must be of parity 1, got 0"));
  for (int i = 0; i < 4; i++) md_field_destroy(&fields[i]);
  io_test_remove(context, path);
  md_geometry_destroy(geometry);
}

/* A file of another lattice or number of right-hand sides is refused, and so is a damaged one. */
static void refusals(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  md_geometry *longer = md_test_geometry(context, X, Y, Z, 2 * T, false);
  md_field written[MD_PARITIES], other[MD_PARITIES];
  char path[256];
  size_t bytes = 0;
  io_test_name(context, ".h5", path, sizeof path);
  make_pair(context, geometry, 2, 5, written);
  MD_REQUIRE(context, io_test_propagator(context, path, written, NULL, 0));
  make_pair(context, longer, 2, 5, other);
  assert_int_equal(md_propagator_read(context, path, other, NULL, 0), MD_INPUT);
  assert_non_null(strstr(context->message, "4x4x2x8 lattice, needed is one of 4x4x2x16"));
  discard_pair(other);
  make_pair(context, geometry, 3, 5, other);
  assert_int_equal(md_propagator_read(context, path, other, NULL, 0), MD_INPUT);
  discard_pair(other);
  unsigned char *file = io_test_get(path, &bytes);
  md_barrier(context);
  file[bytes / 2] ^= 4;
  io_test_put(context, path, file, bytes);
  assert_int_equal(md_propagator_read(context, path, written, NULL, 0), MD_INPUT);
  assert_non_null(strstr(context->message, "Fletcher32"));
  assert_int_equal(md_propagator_read(context, "/nonexistent/file", written, NULL, 0), MD_INPUT);
  assert_int_equal(io_test_propagator(context, "/nonexistent/file", written, NULL, 0),
                   MD_ENVIRONMENT);
  free(file);
  discard_pair(written);
  io_test_remove(context, path);
  md_geometry_destroy(longer);
  md_geometry_destroy(geometry);
}

/* A file that another program made: [1][t][z][y][x][3] of complex numbers in single
 * precision, 0, 1, 2, ..., with the attribute dims where there is one. Rank 0 writes. */
static void write_foreign(const md_context *context, const char *path, const int64_t *dims) {
  static float reals[T * Z * Y * X * MD_FERMION_REALS];
  const hsize_t extents[6] = {1, T, Z, Y, X, 3}, four = MD_DIMS;
  if (context->rank == 0) {
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) reals[k] = (float)k;
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(file, "/propagator", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * sizeof(float));
    const hid_t space = H5Screate_simple(6, extents, NULL);
    H5Tinsert(type, "r", 0, H5T_NATIVE_FLOAT);
    H5Tinsert(type, "i", sizeof(float), H5T_NATIVE_FLOAT);
    const hid_t dataset =
        H5Dcreate2(group, "solution", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reals) >= 0);
    if (dims) {
      const hid_t length = H5Screate_simple(1, &four, NULL);
      const hid_t attribute =
          H5Acreate2(dataset, "dims", H5T_NATIVE_INT64, length, H5P_DEFAULT, H5P_DEFAULT);
      assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, dims) >= 0);
      H5Aclose(attribute);
      H5Sclose(length);
    }
    H5Dclose(dataset);
    H5Sclose(space);
    H5Tclose(type);
    H5Gclose(group);
    H5Fclose(file);
  }
  md_barrier(context);
}

/* Attributes may be missing, but not tell another lattice; single precision is widened. */
static void files_of_others(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, X, Y, Z, T, false);
  md_geometry *longer = md_test_geometry(context, X, Y, Z, 2 * T, false);
  const int64_t dims[MD_DIMS] = {X, Y, Z, T}, others[MD_DIMS] = {Y, Z, X, T};
  md_field pair[MD_PARITIES], long_pair[MD_PARITIES];
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  make_pair(context, geometry, 1, 5, pair);
  make_pair(context, longer, 1, 5, long_pair);
  for (int with = 0; with < 2; with++) {
    write_foreign(context, path, with ? dims : NULL);
    MD_REQUIRE(context, md_propagator_read(context, path, pair, NULL, 0));
    for (int p = 0; p < MD_PARITIES; p++)
      for (int64_t i = 0; i < geometry->sites; i++) {
        int x[MD_DIMS];
        double v[MD_FERMION_REALS];
        md_global_coordinates(geometry, p, i, x);
        md_field_get(&pair[p], i, 0, v);
        for (int c = 0; c < MD_FERMION_REALS; c++) assert_true(v[c] == label(x, 0, c));
      }
    assert_int_equal(md_propagator_read(context, path, long_pair, NULL, 0), MD_INPUT);
    assert_non_null(strstr(context->message, "4x4x2x8 lattice, needed is one of 4x4x2x16"));
  }
  write_foreign(context, path, others);
  assert_int_equal(md_propagator_read(context, path, pair, NULL, 0), MD_INPUT);
  assert_non_null(
      strstr(context->message, "attribute dims must be the extents of /propagator/solution"));
  discard_pair(long_pair);
  discard_pair(pair);
  io_test_remove(context, path);
  md_geometry_destroy(longer);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(propagator), cmocka_unit_test(layout_on_file),
                                    cmocka_unit_test(checkpoint), cmocka_unit_test(refusals),
                                    cmocka_unit_test(files_of_others)};
MD_RUN_TESTS(tests)
