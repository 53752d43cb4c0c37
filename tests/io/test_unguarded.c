/* Studies, modes and checkpoints (read as propagators are) whose datasets have no Fletcher32 are
 * read, with one line of warning that names the file; those that have them are read without a word.
 */
#include "base/memory_need.h"
#include "io/arrays.h"
#include "io/hdf5_file.h"
#include "io/modes_file.h"
#include "io/propagator.h"
#include "io/vectors.h"
#include "io_support.h"
#include "lattice/fields/linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_RHS = 2 };

/* The dataset anew, as it is but contiguous and without filters. Rank 0. */
static void strip(const char *path, const char *name) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t old = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t type = H5Dget_type(old), space = H5Dget_space(old);
  void *data = malloc((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type));
  int64_t parity;
  const md_attribute which = {"parity", MD_ATTRIBUTE_INTEGER, 1, &parity};
  assert_true(H5Dread(old, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  const bool one_parity = md_h5_get_attribute(old, &which);
  H5Dclose(old);
  assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
  const hid_t bare = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Dwrite(bare, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  if (one_parity)
    assert_int_equal(md_h5_put_attributes(&(md_h5_file){.path = path}, bare, &which, 1), MD_OK);
  H5Dclose(bare);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
  free(data);
}

typedef struct content {
  md_geometry *geometry;
  md_field field;
  md_array array;
  double numbers[3];
} content;

static md_status read_array(md_context *context, const char *path, content *c) {
  return md_arrays_read(context, path, "study", &c->array, 1, NULL, 0);
}

static md_status read_state(md_context *context, const char *path, content *c) {
  const md_named_field x = {"x", &c->field};
  return md_checkpoint_read(context, path, c->geometry, &x, 1, NULL, 0);
}

/* Lines that reading writes on stderr, on this rank; *names: one of them has the path. */
static int lines_of(md_context *context, const char *path, content *c,
                    md_status (*read)(md_context *, const char *, content *), bool *names) {
  char line[1024];
  int lines = 0;
  FILE *kept = tmpfile();
  assert_non_null(kept);
  fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(kept), STDERR_FILENO);
  const md_status status = read(context, path, c);
  fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  assert_int_equal(status, MD_OK);
  rewind(kept);
  *names = false;
  while (fgets(line, sizeof line, kept)) {
    if (!strstr(line, "Fletcher32")) continue; /* MPI has words of its own */
    lines++;
    *names = *names || strstr(line, path);
  }
  fclose(kept);
  return lines;
}

static void warns(md_context *context, const char *path, const char *dataset, content *c,
                  md_status (*read)(md_context *, const char *, content *)) {
  bool names;
  assert_int_equal(lines_of(context, path, c, read, &names), 0);
  md_barrier(context);
  if (context->rank == 0) strip(path, dataset);
  md_barrier(context);
  assert_int_equal(lines_of(context, path, c, read, &names), context->rank == 0);
  assert_int_equal(names, context->rank == 0);
  md_barrier(context);
}

static void study(void **state) {
  md_context *context = *state;
  content c = {.numbers = {1, 2, 3}};
  char path[256];
  c.array = (md_array){.name = "numbers", .rank = 1, .extent = {3}, .data = c.numbers};
  io_test_name(context, ".h5", path, sizeof path);
  MD_REQUIRE(context, md_arrays_write(context, path, false, "study", &c.array, 1, NULL, 0));
  warns(context, path, "/study/numbers", &c, read_array);
  io_test_remove(context, path);
}

static void checkpoint(void **state) {
  md_context *context = *state;
  content c = {.geometry = md_test_geometry(context, 4, 4, 2, 8, false)};
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  md_test_random_field(context, c.geometry, MD_DOUBLE, N_RHS, MD_EVEN, 1, &c.field);
  const md_named_field x = {"x", &c.field};
  MD_REQUIRE(context, md_checkpoint_write(context, path, &x, 1, NULL, 0));
  warns(context, path, "/checkpoint/x", &c, read_state);
  io_test_remove(context, path);
  md_field_destroy(&c.field);
  md_geometry_destroy(c.geometry);
}

static const md_modes_label label = {"0123456789abcdef", "naive", "antiperiodic"};

typedef struct modes_file {
  const char *path;
  const md_geometry *geometry;
} modes_file;

static md_status read_file(md_context *context, void *user) {
  const modes_file *f = user;
  md_modes_info info;
  md_modes found;
  MD_TRY(md_modes_describe(context, f->path, &info));
  MD_TRY(md_modes_read(context, f->path, f->geometry, &label, &info, 1, MD_HOST, &found));
  md_modes_destroy(&found);
  return MD_OK;
}

/* As commands do: in a dry run, and then. */
static md_status read_modes(md_context *context, const char *path, content *c) {
  modes_file file = {path, c->geometry};
  md_memory_need need;
  MD_TRY(md_memory_foresee(context, read_file, &file, &need));
  return read_file(context, &file);
}

static void modes(void **state) {
  md_context *context = *state;
  content c = {.geometry = md_test_geometry(context, 4, 4, 2, 8, false)};
  const md_modes_info info = {
      .converged = 1, .tolerance = 1e-8, .store = MD_SINGLE, .label = label};
  char path[256];
  double norm2, none = 0.0, value = 0.01, residual = 1e-9;
  io_test_name(context, ".h5", path, sizeof path);
  md_test_random_field(context, c.geometry, MD_DOUBLE, 1, MD_EVEN, 1, &c.field);
  MD_REQUIRE(context, md_linear_norm2(context, &c.field, NULL, &norm2));
  const double scale = 1.0 / sqrt(norm2);
  md_linear_axpby(&scale, &c.field, &none, &c.field);
  const md_modes one = {.count = 1, .values = &value, .residuals = &residual, .vectors = &c.field};
  MD_REQUIRE(context, md_modes_write(context, path, md_vectors_format_of(path, NULL), &one, &info));
  warns(context, path, "/modes/vectors", &c, read_modes);
  io_test_remove(context, path);
  md_field_destroy(&c.field);
  md_geometry_destroy(c.geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(study), cmocka_unit_test(checkpoint),
                                    cmocka_unit_test(modes)};
MD_RUN_TESTS(tests)
