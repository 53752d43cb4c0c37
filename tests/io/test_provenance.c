#include "io/attribute.h"
#include "io/propagator.h"
#include "io_support.h"

#include <math.h>
#include <string.h>

/* What a writer knows of a file's origin comes back from the file, the same on every rank; what it
 * does not know is no attribute. */
static void comes_back(void **state) {
  md_context *context = *state;
  md_geometry *geometry = md_test_geometry(context, 4, 4, 4, 4, false);
  md_field pair[MD_PARITIES];
  md_provenance p;
  md_attribute given[MD_PROVENANCE_ATTRIBUTES];
  char path[256], action[32] = "", checksum[32] = "", date[MD_PROVENANCE_DATE] = "";
  char version[32] = "", commit[64] = "", line[MD_PROVENANCE_COMMAND_LINE] = "", lattice[64] = "";
  double mass = 0.0, tolerance = 0.0;
  io_test_name(context, ".h5", path, sizeof path);
  for (int k = 0; k < MD_PARITIES; k++)
    md_test_random_field(context, geometry, MD_DOUBLE, 1, k, 5, &pair[k]);
  md_provenance_of_run(context, &p);
  p.lattice = "a lattice.lime";
  p.lattice_checksum = "0a000000 0b000000";
  p.action = "naive";
  p.mass = 0.05;
  const int count = md_provenance_append(&p, given, 0);
  assert_int_equal(count, MD_PROVENANCE_ATTRIBUTES - 1); /* no tolerance */
  MD_REQUIRE(context, io_test_propagator(context, path, pair, given, count));
  const md_attribute wanted[] = {{"lattice", MD_ATTRIBUTE_TEXT, sizeof lattice, lattice},
                                 {"lattice_checksum", MD_ATTRIBUTE_TEXT, sizeof checksum, checksum},
                                 {"action", MD_ATTRIBUTE_TEXT, sizeof action, action},
                                 {"mass", MD_ATTRIBUTE_REAL, 1, &mass},
                                 {"version", MD_ATTRIBUTE_TEXT, sizeof version, version},
                                 {"commit", MD_ATTRIBUTE_TEXT, sizeof commit, commit},
                                 {"date_utc", MD_ATTRIBUTE_TEXT, sizeof date, date},
                                 {"command_line", MD_ATTRIBUTE_TEXT, sizeof line, line}};
  MD_REQUIRE(context, md_propagator_read(context, path, pair, wanted, 8));
  assert_string_equal(lattice, p.lattice);
  assert_string_equal(checksum, p.lattice_checksum);
  assert_string_equal(action, p.action);
  assert_true(mass == 0.05);
  assert_string_equal(date, p.date_utc);
  assert_int_equal(strlen(date), strlen("2026-01-31T23:59:59Z"));
  assert_non_null(strstr(line, "test_io_provenance"));
  const md_attribute none = {"tolerance", MD_ATTRIBUTE_REAL, 1, &tolerance};
  assert_int_equal(md_propagator_read(context, path, pair, &none, 1), MD_INPUT);
  for (int k = 0; k < MD_PARITIES; k++) md_field_destroy(&pair[k]);
  io_test_remove(context, path);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(comes_back)};
MD_RUN_TESTS(tests)
