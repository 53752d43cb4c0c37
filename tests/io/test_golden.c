/* Known values of lattices: of those in inputs/, whose observables and checksums were computed once
 * by a script that shares no code with this library, in every format that they are written to; and,
 * where they lie beside the tree, of configurations of another code with the values that it gives.
 */
#include "io_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct golden {
  const char *name, *format;
  int dims[MD_DIMS];
  double plaquette, link_trace;
  double plaquette_ss; /* 0: not known */
} golden;

static const golden own[] = {{"beta5.7_4x4x4x8.lime",
                              "ildg",
                              {4, 4, 4, 8},
                              0.571834509795188,
                              -0.000062165003187,
                              0.569115708523969},
                             {"beta5.9_6x4x8x10.nersc",
                              "nersc",
                              {6, 4, 8, 10},
                              0.591127105356634,
                              -0.001249697568904,
                              0.591078428551903}};
static const golden shared[] = {
    {"lat.sample.l4448", "milc", {4, 4, 4, 8}, 0.569055724369011, 0.069216590060586, 0},
    {"lat.sample.l4448.scidac", "scidac", {4, 4, 4, 8}, 0.569055724369011, 0.069216590060586, 0},
    {"lat.sample.l4444.ildg", "ildg", {4, 4, 4, 4}, 0.594850158947151, 0.646758737418963, 0},
    {"lat.sample.hisq.f211b670.l6666",
     "milc",
     {6, 6, 6, 6},
     0.559339926017799,
     0.010759220045158,
     0}};

/* False where the ranks of the run do not fit. */
static bool load(md_context *context, const char *folder, const golden *g, md_geometry **geometry,
                 md_gauge *gauge, md_lattice_info *info) {
  const int *d = g->dims, grid[MD_DIMS] = {0};
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, g->name);
  if (!md_test_fits(context, d[0], d[1], d[2], d[3])) return false;
  md_require(context, md_lattice_load(context, path, grid, false, geometry, gauge, info), g->name);
  return true;
}

static void check(md_context *context, const char *folder, const golden *files, size_t count) {
  for (size_t i = 0; i < count; i++) {
    md_geometry *geometry = NULL;
    md_gauge gauge;
    md_lattice_info info;
    if (!load(context, folder, &files[i], &geometry, &gauge, &info)) continue;
    assert_memory_equal(info.header.dims, files[i].dims, sizeof info.header.dims);
    assert_int_equal(info.checksum, MD_CHECKSUM_OK);
    assert_string_equal(md_lattice_header_format(&info.header), files[i].format);
    md_require_at_most(fabs(info.observables.plaquette - files[i].plaquette), 1e-14, files[i].name);
    md_require_at_most(fabs(info.observables.link_trace - files[i].link_trace), 1e-14,
                       files[i].name);
    if (files[i].plaquette_ss != 0.0)
      md_require_at_most(fabs(info.observables.plaquette_ss - files[i].plaquette_ss), 1e-14,
                         "space-space planes");
    md_require_at_most(info.observables.unitarity_deviation, 1e-6, files[i].name);
    if (context->rank == 0) assert_int_equal(info.notes.departure_count, 0);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
    md_lattice_info_destroy(&info);
  }
}

static void lattices_of_inputs(void **state) {
  check(*state, GOLDEN_INPUTS, own, sizeof own / sizeof *own);
}

static void lattices_of_another_code(void **state) {
  const char *folder = getenv("MINIDIRAC_SHARED_LATTICES");
  if (!folder || access(folder, R_OK) != 0) skip();
  check(*state, folder, shared, sizeof shared / sizeof *shared);
}

/* Checksums of the same links in every format: CRC32 of big-endian sites (SciDAC), sums of words
 * (NERSC), words rotated by their number modulo 29 and 31 (MILC). */
static const struct {
  int lattice; /* of `own` */
  const char *format;
  md_precision precision;
  uint32_t a, b;
} sums[] = {{0, "ildg", MD_DOUBLE, 0xdc67896d, 0x044039c0},
            {0, "ildg", MD_SINGLE, 0x7af71dc7, 0x2a10fbaa},
            {0, "nersc", MD_DOUBLE, 0x533e5207, 0},
            {0, "nersc", MD_SINGLE, 0xe0f2922a, 0},
            {0, "milc", MD_SINGLE, 0x8e336d5c, 0x2635c7ec},
            {1, "ildg", MD_SINGLE, 0x102272bc, 0x618b3e6f},
            {1, "nersc", MD_SINGLE, 0xb75e66c2, 0},
            {1, "milc", MD_SINGLE, 0xf11ef6a7, 0xad602db0},
            {1, "hdf5", MD_SINGLE, 0, 0}};

static void checksums_in_every_format(void **state) {
  md_context *context = *state;
  char path[1024];
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    md_geometry *geometry = NULL;
    md_gauge gauge;
    md_lattice_info info, again;
    const md_lattice_format *format;
    double difference;
    if (!load(context, GOLDEN_INPUTS, &own[sums[i].lattice], &geometry, &gauge, &info)) continue;
    io_test_name(context, sums[i].format, path, sizeof path);
    MD_REQUIRE(context, md_lattice_format_find(context, path, sums[i].format, &format));
    md_require(context, io_test_save(context, path, format, sums[i].precision, &gauge), path);
    md_require(context, io_test_load(context, path, &gauge, &difference, &again), path);
    md_require_at_most(difference, sums[i].precision == MD_DOUBLE ? 0.0 : 0x1p-25, path);
    assert_int_equal(again.checksum, MD_CHECKSUM_OK);
    if (strcmp(sums[i].format, "hdf5") != 0) {
      assert_int_equal(again.header.checksum.a, sums[i].a);
      assert_int_equal(again.header.checksum.b, sums[i].b);
    }
    io_test_remove(context, path);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
    md_lattice_info_destroy(&info);
    md_lattice_info_destroy(&again);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(lattices_of_inputs),
                                    cmocka_unit_test(lattices_of_another_code),
                                    cmocka_unit_test(checksums_in_every_format)};
MD_RUN_TESTS(tests)
