/* Arrays and attributes come back bit for bit on every rank; another shape, another group, a file
 * cut short or with a changed byte is refused by name, a full disk is told, and none of them leaves
 * a rank waiting. */
#include "io/arrays.h"
#include "io_support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { A = 3, B = 4, C = 500, TEXT = 20 };

typedef struct content {
  double cube[A][B][C], line[A];
  char names[A][TEXT];
  int64_t dims[2];
  char note[16];
} content;

static void describe(content *c, md_array arrays[3], md_attribute attributes[2]) {
  arrays[0] = (md_array){.name = "cube", .rank = 3, .extent = {A, B, C}, .data = c->cube};
  arrays[1] = (md_array){.name = "line", .rank = 1, .extent = {A}, .data = c->line};
  arrays[2] =
      (md_array){.name = "names", .rank = 1, .extent = {A}, .text_bytes = TEXT, .data = c->names};
  attributes[0] = (md_attribute){"dims", MD_ATTRIBUTE_INTEGER, 2, c->dims};
  attributes[1] = (md_attribute){"note", MD_ATTRIBUTE_TEXT, sizeof c->note, c->note};
}

static void fill(content *c) {
  memset(c, 0, sizeof *c);
  for (int i = 0; i < A * B * C; i++) (&c->cube[0][0][0])[i] = sin(i);
  c->cube[1][2][3] = NAN;
  for (int i = 0; i < A; i++) {
    c->line[i] = 1.0 / (i + 1);
    snprintf(c->names[i], TEXT, "lattice %d", i);
  }
  c->dims[0] = 1LL << 40;
  strcpy(c->note, "a note");
}

static void round_trip(void **state) {
  md_context *context = *state;
  content *given = malloc(sizeof *given), *found = calloc(1, sizeof *found);
  md_array arrays[3];
  md_attribute attributes[2];
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  fill(given);
  for (int again = 0; again < 2; again++) { /* the second replaces the first */
    describe(given, arrays, attributes);
    MD_REQUIRE(context, md_arrays_write(context, path, false, "study", arrays, 3, attributes, 2));
  }
  describe(found, arrays, attributes);
  MD_REQUIRE(context, md_arrays_read(context, path, "study", arrays, 3, attributes, 2));
  assert_memory_equal(given, found, sizeof *given);
  arrays[1].optional = true; /* one that is there is read, one that is not is zeros */
  arrays[2] = (md_array){
      .name = "none", .rank = 1, .extent = {A}, .text_bytes = TEXT, .data = found->names};
  arrays[2].optional = true;
  found->line[1] = 0;
  MD_REQUIRE(context, md_arrays_read(context, path, "study", arrays, 3, attributes, 2));
  assert_memory_equal(given->line, found->line, sizeof given->line);
  for (int i = 0; i < A; i++) assert_string_equal(found->names[i], "");
  arrays[2].optional = false;
  assert_int_equal(md_arrays_read(context, path, "study", arrays, 3, attributes, 2), MD_INPUT);
  io_test_remove(context, path);
  free(given);
  free(found);
}

static void refuse(md_context *context, const char *path, const char *group, const char *word) {
  content *found = calloc(1, sizeof *found);
  md_array arrays[3];
  md_attribute attributes[2];
  describe(found, arrays, attributes);
  if (strcmp(word, "shape") == 0) arrays[1].extent[0] = A + 1;
  assert_int_equal(md_arrays_read(context, path, group, arrays, 3, attributes, 2), MD_INPUT);
  if (!strstr(context->message, path) || !strstr(context->message, word))
    fail_msg("no '%s' in: %s", word, context->message);
  free(found);
}

/* Rank 0 changes the byte in the middle of the cube's data. */
static void damage(const md_context *context, const char *path, bool cut) {
  struct stat there;
  if (context->rank == 0) {
    assert_int_equal(stat(path, &there), 0);
    FILE *file = fopen(path, "r+b");
    const double looked_for = sin(3000);
    for (long at = 0; at + 8 <= there.st_size && !cut; at += 8) {
      double here;
      fseek(file, at, SEEK_SET);
      assert_int_equal(fread(&here, sizeof here, 1, file), 1);
      if (here != looked_for) continue;
      fseek(file, at, SEEK_SET);
      fputc(1, file);
      break;
    }
    fclose(file);
    if (cut) assert_int_equal(truncate(path, there.st_size / 2), 0);
  }
  md_barrier(context);
}

static void others_are_refused(void **state) {
  md_context *context = *state;
  content *given = malloc(sizeof *given);
  md_array arrays[3];
  md_attribute attributes[2];
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  fill(given);
  describe(given, arrays, attributes);
  refuse(context, path, "study", "");
  MD_REQUIRE(context, md_arrays_write(context, path, false, "study", arrays, 3, attributes, 2));
  refuse(context, path, "study", "shape");
  refuse(context, path, "other", "other");
  damage(context, path, false);
  refuse(context, path, "study", "damaged");
  damage(context, path, true);
  refuse(context, path, "study", "");
  io_test_remove(context, path);
  free(given);
}

/* Above what a reader takes as one chunk: it is stored in parts and is not called damaged. */
static void large_ones_come_back(void **state) {
  md_context *context = *state;
  const int64_t rows = 3, length = 3000001, most = rows * length - 1;
  const size_t bytes = (size_t)(rows * length) * sizeof(double);
  double *values = calloc(1, bytes);
  const md_array array = {.name = "large", .rank = 2, .extent = {rows, length}, .data = values};
  md_datasets_found found = {0};
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  assert_non_null(values);
  assert_true(bytes > 64 << 20);
  for (int64_t i = 0; i < most; i += 1000000) values[i] = (double)(i + 1);
  values[most] = -1.0;
  MD_REQUIRE(context, md_arrays_write(context, path, false, "study", &array, 1, NULL, 0));
  MD_REQUIRE(context, md_datasets_verify(context, path, &found));
  assert_int_equal(found.datasets, 1);
  assert_int_equal(found.damaged, 0);
  assert_int_equal(found.unguarded, 0);
  memset(values, 0xff, bytes);
  MD_REQUIRE(context, md_arrays_read(context, path, "study", &array, 1, NULL, 0));
  for (int64_t i = 0; i <= most; i++) {
    const double here = i == most ? -1.0 : i % 1000000 == 0 ? (double)(i + 1) : 0.0;
    if (values[i] != here) fail_msg("%lld: %g, not %g", (long long)i, values[i], here);
  }
  io_test_remove(context, path);
  free(values);
}

/* A disk that takes no more, here by the limit of a file: the old file stays, and neither MPI nor
 * HDF5 stumbles when the program ends. */
static void full_disks_are_told(void **state) {
  md_context *context = *state;
  content *given = malloc(sizeof *given), *found = calloc(1, sizeof *found);
  md_array arrays[3];
  md_attribute attributes[2];
  struct rlimit whole, small;
  char path[256];
  io_test_name(context, ".h5", path, sizeof path);
  fill(given);
  describe(given, arrays, attributes);
  MD_REQUIRE(context, md_arrays_write(context, path, false, "study", arrays, 3, attributes, 2));
  given->line[0] = 7.0;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
  small = whole;
  small.rlim_cur = 1000;
  if (context->rank == 0) assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const md_status status = md_arrays_write(context, path, false, "study", arrays, 3, attributes, 2);
  if (context->rank == 0) assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
  assert_int_equal(status, MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "cannot be written: no room for "));
  describe(found, arrays, attributes);
  MD_REQUIRE(context, md_arrays_read(context, path, "study", arrays, 3, attributes, 2));
  assert_true(found->line[0] == 1.0);
  io_test_remove(context, path);
  free(given);
  free(found);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(round_trip),
    cmocka_unit_test(others_are_refused),
    cmocka_unit_test(large_ones_come_back),
    cmocka_unit_test(full_disks_are_told),
};
MD_RUN_TESTS(tests)
