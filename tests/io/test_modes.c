/* Files of modes: vectors and attributes come back in the stored precision, [mode][t][z][y][x/2][3]
 * of {r, i}; modes of another lattice, action or boundary are refused by name, damage too. */
#include "io/modes_file.h"
#include "io/vectors.h"
#include "io_support.h"
#include "lattice/fields/linear.h"

#include <hdf5.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X = 4, Y = 4, Z = 2, T = 8, MODES = 3 };

static const md_modes_label label = {"0123456789abcdef", "naive", "antiperiodic"};

static void make(md_context *context, const md_geometry *g, md_modes *modes) {
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true, false};
  MD_REQUIRE(context, md_modes_create(context, g, &shape, MODES, modes));
  for (int i = 0; i < MODES; i++) {
    double norm2, none = 0.0;
    md_field_destroy(&modes->vectors[i]);
    md_test_random_field(context, g, MD_DOUBLE, 1, MD_EVEN, (uint64_t)i, &modes->vectors[i]);
    MD_REQUIRE(context, md_linear_norm2(context, &modes->vectors[i], NULL, &norm2));
    const double scale = 1.0 / sqrt(norm2);
    md_linear_axpby(&scale, &modes->vectors[i], &none, &modes->vectors[i]);
    modes->values[i] = 0.01 * (i + 1);
    modes->residuals[i] = 1e-9 / (i + 1);
  }
}

static void write_file(md_context *context, const char *path, const md_modes *modes,
                       md_precision store) {
  const md_modes_info info = {
      .converged = MODES - 1, .tolerance = 1e-8, .store = store, .label = label};
  MD_REQUIRE(context,
             md_modes_write(context, path, md_vectors_format_of(path, NULL), modes, &info));
}

static void round_trip(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, X, Y, Z, T, false);
  char path[256];
  md_modes modes, found;
  md_modes_info info;
  io_test_name(context, ".h5", path, sizeof path);
  make(context, g, &modes);
  const md_precision stores[] = {MD_DOUBLE, MD_SINGLE, MD_HALF, md_modes_store_of("fixed8")};
  for (int s = 0; s < 4; s++) {
    const md_precision store = stores[s];
    write_file(context, path, &modes, store);
    MD_REQUIRE(context, md_modes_describe(context, path, &info));
    assert_int_equal(info.count, MODES);
    assert_int_equal(info.converged, MODES - 1);
    assert_int_equal(info.store, store);
    assert_memory_equal(info.dims, g->global, sizeof info.dims);
    MD_REQUIRE(context, md_modes_read(context, path, g, &label, &info, MODES, MD_HOST, &found));
    assert_memory_equal(found.values, modes.values, MODES * sizeof(double));
    assert_memory_equal(found.residuals, modes.residuals, MODES * sizeof(double));
    for (int i = 0; i < MODES; i++) {
      /* Half a step of 127 to the largest of six numbers of a site, which their norm exceeds. */
      const double fixed8 = sqrt(MD_FERMION_REALS) * 0.51 / 127.0;
      const double roundoff = s == 0 ? 0.0 : s < 3 ? md_precision_roundoff(store) : fixed8;
      assert_int_equal(found.vectors[i].precision, store);
      md_require_at_most(md_test_distance(context, &found.vectors[i], &modes.vectors[i]), roundoff,
                         md_modes_store_name(store));
    }
    md_require_at_most(fabs(found.roundoff - (s < 3 ? md_precision_roundoff(store) : 0.5 / 127.0)),
                       1e-18, "roundoff that the modes tell");
    md_modes_destroy(&found);
  }
  md_modes_destroy(&modes);
  io_test_remove(context, path);
  md_geometry_destroy(g);
}

/* A site as h5py sees it: scale * (r + i 1j) with the scale of /modes. */
typedef struct stored_site {
  float scale;
  int8_t r[3], i[3];
} stored_site;

static void fixed8_on_file(void **state) {
  enum { SITES = MODES * T * Z * Y * X / 2 };
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, X, Y, Z, T, false);
  char path[256];
  md_modes modes;
  io_test_name(context, ".h5", path, sizeof path);
  make(context, g, &modes);
  double tiny[MD_FERMION_REALS] = {1e-6}, zeros[MD_FERMION_REALS] = {0.0};
  md_field_set(&modes.vectors[1], 0, tiny); /* far below the others, and a site of zeros */
  md_field_set(&modes.vectors[1], 1, zeros);
  write_file(context, path, &modes, md_modes_store_of("fixed8"));
  static stored_site sites[SITES];
  if (context->rank == 0) {
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/modes/vectors", H5P_DEFAULT);
    const hid_t group = H5Gopen2(file, "/modes", H5P_DEFAULT);
    const hid_t attribute = H5Aopen(group, "scale", H5P_DEFAULT);
    const hsize_t colours = 3;
    const hid_t steps = H5Tarray_create2(H5T_NATIVE_INT8, 1, &colours);
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(stored_site));
    double scale = 0.0;
    H5Tinsert(type, "scale", offsetof(stored_site, scale), H5T_NATIVE_FLOAT);
    H5Tinsert(type, "r", offsetof(stored_site, r), steps);
    H5Tinsert(type, "i", offsetof(stored_site, i), steps);
    assert_true(H5Aread(attribute, H5T_NATIVE_DOUBLE, &scale) >= 0);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, sites) >= 0);
    for (int64_t i = 0; i < g->sites; i++) {
      int x[MD_DIMS];
      double v[MD_FERMION_REALS];
      md_global_coordinates(g, MD_EVEN, i, x);
      md_field_get(&modes.vectors[1], i, 0, v);
      const stored_site *s =
          &sites[((((int64_t)T + x[3]) * Z + x[2]) * Y + x[1]) * (X / 2) + x[0] / 2];
      const double step = scale * (double)s->scale;
      for (int c = 0; c < MD_FERMION_REALS; c++)
        md_require_at_most(fabs(step * (c % 2 ? s->i : s->r)[c / 2] - v[c]), 0.5001 * step,
                           "a number in steps");
    }
    H5Aclose(attribute);
    H5Gclose(group);
    H5Tclose(steps);
    H5Tclose(type);
    H5Dclose(dataset);
    H5Fclose(file);
  }
  md_barrier(context);
  md_modes_destroy(&modes);
  io_test_remove(context, path);
  md_geometry_destroy(g);
}

/* The vectors as the HDF5 library alone reads them. */
static void layout_on_file(void **state) {
  enum { REALS = MODES * T * Z * Y * X / 2 * MD_FERMION_REALS };
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, X, Y, Z, T, false);
  char path[256];
  md_modes modes;
  io_test_name(context, ".h5", path, sizeof path);
  make(context, g, &modes);
  write_file(context, path, &modes, MD_SINGLE);
  static float reals[REALS];
  if (context->rank == 0) {
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/modes/vectors", H5P_DEFAULT);
    const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * sizeof(float)), space = H5Dget_space(dataset);
    const hsize_t expected[6] = {MODES, T, Z, Y, X / 2, 3};
    hsize_t extents[6] = {0};
    H5Tinsert(type, "r", 0, H5T_NATIVE_FLOAT);
    H5Tinsert(type, "i", sizeof(float), H5T_NATIVE_FLOAT);
    assert_int_equal(H5Sget_simple_extent_ndims(space), 6);
    H5Sget_simple_extent_dims(space, extents, NULL);
    assert_memory_equal(extents, expected, sizeof expected);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reals) >= 0);
    for (int64_t i = 0; i < g->sites; i++) {
      int x[MD_DIMS];
      double v[MD_FERMION_REALS];
      md_global_coordinates(g, MD_EVEN, i, x);
      md_field_get(&modes.vectors[1], i, 0, v);
      const int64_t at = ((((int64_t)T + x[3]) * Z + x[2]) * Y + x[1]) * (X / 2) + x[0] / 2;
      for (int c = 0; c < MD_FERMION_REALS; c++)
        assert_true(reals[at * MD_FERMION_REALS + c] == (float)v[c]);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    H5Fclose(file);
  }
  md_barrier(context);
  md_modes_destroy(&modes);
  io_test_remove(context, path);
  md_geometry_destroy(g);
}

static void refuse(md_context *context, const char *path, const md_geometry *g,
                   const md_modes_label *wanted, const md_modes_info *info, const char *words) {
  md_modes found;
  assert_int_equal(md_modes_read(context, path, g, wanted, info, MODES, MD_HOST, &found), MD_INPUT);
  assert_non_null(strstr(context->message, words));
}

static void refusals(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, X, Y, Z, T, false);
  md_geometry *longer = md_test_geometry(context, X, Y, Z, 2 * T, false);
  md_modes_label other[3] = {label, label, label};
  char path[256];
  md_modes modes;
  md_modes_info info;
  io_test_name(context, ".h5", path, sizeof path);
  make(context, g, &modes);
  write_file(context, path, &modes, MD_DOUBLE);
  MD_REQUIRE(context, md_modes_describe(context, path, &info));
  other[0].lattice_checksum[0] = 'f';
  snprintf(other[1].action, sizeof other[1].action, "asqtad, u0 0.9");
  snprintf(other[2].boundary, sizeof other[2].boundary, "periodic");
  refuse(context, path, g, &other[0], &info, "must have the lattice checksum of this run");
  refuse(context, path, g, &other[1], &info, "must have the action of this run, 'asqtad, u0 0.9'");
  refuse(context, path, g, &other[2], &info, "must have the boundary of this run, 'periodic'");
  refuse(context, path, longer, &label, &info,
         "is of a 4x4x2x8 lattice, needed is one of 4x4x2x16");
  size_t bytes;
  unsigned char *data = io_test_get(path, &bytes);
  data[bytes / 2] ^= 1; /* within the vectors */
  io_test_put(context, path, data, bytes);
  refuse(context, path, g, &label, &info, "damaged");
  free(data);
  md_linear_axpy(&(double){1.0}, &modes.vectors[2], &modes.vectors[2]);
  write_file(context, path, &modes, MD_DOUBLE);
  refuse(context, path, g, &label, &info, "must have the norm 1, got norm^2 4 of mode 2");
  io_test_put(context, path, "not HDF5", 8);
  assert_int_equal(md_modes_describe(context, path, &info), MD_INPUT);
  md_modes_destroy(&modes);
  io_test_remove(context, path);
  md_geometry_destroy(longer);
  md_geometry_destroy(g);
}

/* The name of links is that of their numbers: one link more, another name; the same on every rank
 * grid. */
static void names_of_links(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, X, Y, Z, T, false);
  md_gauge links;
  char first[MD_MODES_TEXT], again[MD_MODES_TEXT], both[MD_MODES_TEXT];
  md_test_random_gauge(context, g, 3, &links);
  MD_REQUIRE(context, md_links_checksum(context, &links, 1, first));
  md_gauge_destroy(&links);
  md_test_random_gauge(context, g, 4, &links);
  MD_REQUIRE(context, md_links_checksum(context, &links, 1, again));
  assert_int_equal(strlen(first), 16);
  assert_string_not_equal(first, again);
  const md_gauge pair[2] = {links, links};
  MD_REQUIRE(context, md_links_checksum(context, pair, 2, both));
  assert_int_equal(strlen(both), 33);
  assert_memory_equal(both, again, 16);
  assert_memory_equal(both + 17, again, 16);
  md_gauge_destroy(&links);
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(layout_on_file),
                                    cmocka_unit_test(fixed8_on_file), cmocka_unit_test(refusals),
                                    cmocka_unit_test(names_of_links)};
MD_RUN_TESTS(tests)
