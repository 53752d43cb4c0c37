#include "hdf5_damage.h"
#include "hdf5_layouts.h"
#include "io/propagator.h"
#include "io_support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every layout of an HDF5 lattice is read, every file whose data are elsewhere is refused by name,
 * and no damage to a file does more than to have it refused: with one line, printable. */

static int from_environment(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static bool is_one_printable_line(const char *text) {
  for (const char *at = text; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 0x7f) return false;
  return *text != 0;
}

static md_status load(md_context *context, const char *path, md_lattice_info *info) {
  const int grid[MD_DIMS] = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  context->message[0] = 0;
  const md_status status = md_lattice_load(context, path, grid, false, &geometry, &gauge, info);
  if (status == MD_OK) {
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  return status;
}

static void any_layout(void **state) {
  md_context *context = *state;
  char path[256];
  io_test_name(context, ".layout.h5", path, sizeof path);
  for (int i = 0; i < hdf5_layout_count; i++) {
    const hdf5_layout layout = hdf5_layout_at(i);
    md_lattice_info info;
    if (context->rank == 0) assert_true(hdf5_layout_write(i, path));
    md_barrier(context);
    const md_status status = load(context, path, &info);
    if (status != (layout.good ? MD_OK : MD_INPUT))
      fail_msg("%s: status %d: %s", layout.name, status, context->message);
    if (layout.good) assert_int_equal(info.checksum, MD_CHECKSUM_OK);
    if (!layout.good &&
        (!strstr(context->message, layout.text) || !is_one_printable_line(context->message)))
      fail_msg("%s: no '%s' in '%s'", layout.name, layout.text, context->message);
    md_lattice_info_destroy(&info);
    md_barrier(context);
  }
  io_test_remove(context, path);
}

/* `read` must end with MD_OK or MD_INPUT on every damaged form of the file `path`. */
typedef md_status reading(md_context *context, const char *path, void *data);

static void damage(md_context *context, const char *name, const char *path, int mutations,
                   uint64_t seed, reading *read, void *data, int counts[2]) {
  size_t bytes = 0;
  unsigned char *good = io_test_get(path, &bytes), *bad = malloc(bytes);
  hdf5_blocks blocks;
  hdf5_find_blocks(good, bytes, &blocks);
  assert_true(blocks.count > 0);
  for (int m = 0; m < mutations; m++) {
    uint64_t random = (seed + (uint64_t)m) * 0x9e3779b97f4a7c15u + 1;
    memcpy(bad, good, bytes);
    const size_t left = hdf5_damage(bad, bytes, &blocks, &random);
    io_test_put(context, path, bad, left);
    const md_status status = read(context, path, data);
    if (status != MD_OK && status != MD_INPUT)
      fail_msg("%s, damage %d of seed %llu: status %d: %s", name, m, (unsigned long long)seed,
               status, context->message);
    if (status == MD_INPUT && !is_one_printable_line(context->message))
      fail_msg("%s, damage %d: message '%s'", name, m, context->message);
    counts[status == MD_INPUT]++;
  }
  io_test_put(context, path, good, bytes);
  free(good);
  free(bad);
}

static md_status read_lattice(md_context *context, const char *path, void *data) {
  md_lattice_info info;
  (void)data;
  const md_status status = load(context, path, &info);
  md_lattice_info_destroy(&info);
  return status;
}

static void damaged_lattices(void **state) {
  md_context *context = *state;
  char path[256];
  int counts[2] = {0};
  const int mutations = from_environment("MINIDIRAC_MUTATIONS", 12);
  const uint64_t seed = (uint64_t)from_environment("MINIDIRAC_SEED", 1) << 20;
  io_test_name(context, ".damaged.h5", path, sizeof path);
  for (int i = 0; i < hdf5_layout_count; i++) {
    assert_true(hdf5_layout_write(i, path));
    damage(context, hdf5_layout_at(i).name, path, mutations, seed + (uint64_t)i * 7919,
           read_lattice, NULL, counts);
  }
  unlink(path);
  print_message("damaged lattices: %d read, %d refused\n", counts[0], counts[1]);
  assert_true(counts[0] > 0 && counts[1] > counts[0]);
}

typedef struct state_of_solver {
  md_field field[2];
  int64_t iteration;
  double norm[2];
  char key[64];
} state_of_solver;

static md_status move(md_context *context, const char *path, void *data, bool write) {
  state_of_solver *s = data;
  const md_named_field fields[2] = {{"x", &s->field[0]}, {"r", &s->field[1]}};
  const md_attribute attributes[] = {{"belongs_to", MD_ATTRIBUTE_TEXT, sizeof s->key, s->key},
                                     {"iteration", MD_ATTRIBUTE_INTEGER, 1, &s->iteration},
                                     {"norm", MD_ATTRIBUTE_REAL, 2, s->norm}};
  context->message[0] = 0;
  return write ? md_checkpoint_write(context, path, fields, 2, attributes, 3)
               : md_checkpoint_read(context, path, s->field[0].geometry, fields, 2, attributes, 3);
}

static md_status read_checkpoint(md_context *context, const char *path, void *data) {
  return move(context, path, data, false);
}

static void damaged_checkpoints(void **state) {
  md_context *context = *state;
  char path[256];
  int counts[2] = {0};
  const int mutations = 3 * from_environment("MINIDIRAC_MUTATIONS", 12);
  state_of_solver s = {.iteration = 7, .norm = {1, 2}, .key = "plaquette 1 mass 0.05"};
  md_geometry *geometry = md_test_geometry(context, 4, 2, 2, 2, false);
  for (int i = 0; i < 2; i++)
    md_test_random_field(context, geometry, MD_DOUBLE, 2, MD_EVEN, 3 + (uint64_t)i, &s.field[i]);
  io_test_name(context, ".checkpoint.h5", path, sizeof path);
  MD_REQUIRE(context, move(context, path, &s, true));
  MD_REQUIRE(context, move(context, path, &s, false));
  damage(context, "checkpoint", path, mutations,
         (uint64_t)from_environment("MINIDIRAC_SEED", 1) << 20, read_checkpoint, &s, counts);
  unlink(path);
  print_message("damaged checkpoints: %d read, %d refused\n", counts[0], counts[1]);
  assert_true(counts[1] > 0);
  for (int i = 0; i < 2; i++) md_field_destroy(&s.field[i]);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(any_layout),
                                    cmocka_unit_test(damaged_lattices),
                                    cmocka_unit_test(damaged_checkpoints)};
MD_RUN_TESTS(tests)
