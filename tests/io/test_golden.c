#include "io_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Configurations of another code, with the values that it gives for them. */
static const struct {
  const char *name, *format;
  int dims[MD_DIMS];
  double plaquette, link_trace;
} files[] = {
    {"lat.sample.l4448", "milc", {4, 4, 4, 8}, 0.569055724369011, 0.069216590060586},
    {"lat.sample.l4448.scidac", "scidac", {4, 4, 4, 8}, 0.569055724369011, 0.069216590060586},
    {"lat.sample.l4444.ildg", "ildg", {4, 4, 4, 4}, 0.594850158947151, 0.646758737418963},
    {"lat.sample.hisq.f211b670.l6666", "milc", {6, 6, 6, 6}, 0.559339926017799, 0.010759220045158}};

static void golden(void **state) {
  md_context *context = *state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const int *d = files[i].dims, grid[MD_DIMS] = {0};
    char path[1024];
    md_geometry *geometry = NULL;
    md_gauge gauge;
    md_lattice_info info;
    snprintf(path, sizeof path, "%s/%s", getenv("MINIDIRAC_SHARED_LATTICES"), files[i].name);
    if (!md_test_fits(context, d[0], d[1], d[2], d[3])) continue;
    md_require(context, md_lattice_load(context, path, grid, false, &geometry, &gauge, &info),
               files[i].name);
    assert_memory_equal(info.header.dims, d, sizeof info.header.dims);
    assert_int_equal(info.checksum, MD_CHECKSUM_OK);
    assert_string_equal(md_lattice_header_format(&info.header), files[i].format);
    md_require_at_most(fabs(info.observables.plaquette - files[i].plaquette), 1e-14, path);
    md_require_at_most(fabs(info.observables.link_trace - files[i].link_trace), 1e-14, path);
    md_require_at_most(info.observables.unitarity_deviation, 1e-6, path);
    if (context->rank == 0) assert_int_equal(info.notes.departure_count, 0);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
    md_lattice_info_destroy(&info);
  }
}

static struct CMUnitTest tests[] = {cmocka_unit_test(golden)};

int main(int argc, char **argv) {
  const char *folder = getenv("MINIDIRAC_SHARED_LATTICES");
  md_context *context = md_test_begin(&argc, &argv);
  if (!folder || access(folder, R_OK) != 0) {
    md_test_end(context, 0);
    return 77;
  }
  tests[0].initial_state = context;
  return md_test_end(context, cmocka_run_group_tests(tests, NULL, NULL));
}
