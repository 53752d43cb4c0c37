#include "io_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whatever happens to the bytes of a file: either it is refused with one line, or the links are
 * those that were written. Nothing crashes and no rank waits for ever. */

/* More than four ranks need a longer lattice. */
static md_geometry *small_lattice(md_context *context) {
  return context->ranks > 4 ? md_test_geometry(context, 4, 4, 4, 4, false)
                            : md_test_geometry(context, 4, 4, 2, 2, false);
}

typedef struct subject {
  md_context *context;
  const char *format;
  char path[256];
  md_gauge *gauge;
  unsigned char *file; /* as written */
  size_t bytes;
} subject;

static void check(subject *s, const void *data, size_t bytes, bool must_fail, const char *what,
                  size_t where) {
  md_lattice_info info;
  double difference = 0;
  char text[128];
  io_test_put(s->context, s->path, data, bytes);
  const md_status status = io_test_load(s->context, s->path, s->gauge, &difference, &info);
  snprintf(text, sizeof text, "%s, %s at byte %zu of %zu", s->format, what, where, s->bytes);
  if (status == MD_OK) {
    if (must_fail) fail_msg("%s was accepted", text);
    md_require_at_most(difference, 0x1p-24, text);
  } else {
    if (status != MD_INPUT) fail_msg("%s: status %d: %s", text, status, s->context->message);
    assert_non_null(strstr(s->context->message, s->path));
    assert_null(strchr(s->context->message, '\n'));
  }
  md_lattice_info_destroy(&info);
}

static void flips(subject *s, unsigned char *copy) {
  /* Every part is met: the first kilobytes densely, the rest with a stride prime to all sizes. A
   * process of its own reads the structure of an HDF5 file, which takes longer than all the other
   * formats; test_hostile and the fuzz target break that structure with more cunning. */
  const bool alone = s->context->ranks == 1, slow = strcmp(s->format, "hdf5") == 0;
  const size_t dense = !alone ? 61 : slow ? 17 : 7;
  const size_t wide = s->context->ranks > 4 ? 3989 : !alone ? 997 : slow ? 193 : 97;
  for (size_t at = 0; at < s->bytes; at += at < 4096 ? dense : wide) {
    memcpy(copy, s->file, s->bytes);
    copy[at] ^= (unsigned char)(1u << at % 8);
    check(s, copy, s->bytes, false, "a flipped bit", at);
  }
}

static void truncations(subject *s) {
  for (size_t i = 0; i < 24; i++) {
    const size_t bytes = i < 12 ? i * 13 : s->bytes * (i - 11) / 13;
    check(s, s->file, bytes, true, "a file that ends", bytes);
  }
  check(s, s->file, s->bytes - 200, true, "a file that ends", s->bytes - 200);
}

static void garbage(subject *s, unsigned char *copy) {
  uint64_t word = 88172645463325252u;
  for (size_t i = 0; i < s->bytes; i++) {
    word ^= word << 13, word ^= word >> 7, word ^= word << 17;
    copy[i] = (unsigned char)word;
  }
  check(s, copy, s->bytes, true, "noise", 0);
  for (size_t keep = 8; keep < 2048; keep = keep * 5 / 2) {
    memcpy(copy, s->file, keep);
    check(s, copy, s->bytes, true, "noise from", keep);
  }
}

static void damage(md_context *context, const char *format_name) {
  subject s = {.context = context, .format = format_name};
  md_geometry *geometry = small_lattice(context);
  md_gauge gauge;
  const md_lattice_format *format = NULL;
  md_test_random_gauge(context, geometry, 3, &gauge);
  s.gauge = &gauge;
  io_test_name(context, format_name, s.path, sizeof s.path);
  MD_REQUIRE(context, md_lattice_format_find(context, s.path, format_name, &format));
  MD_REQUIRE(context, io_test_save(context, s.path, format, MD_SINGLE, &gauge));
  s.file = io_test_get(s.path, &s.bytes);
  unsigned char *copy = malloc(s.bytes);
  assert_non_null(copy);
  md_barrier(context);
  truncations(&s);
  garbage(&s, copy);
  flips(&s, copy);
  io_test_remove(context, s.path);
  free(copy);
  free(s.file);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

static void hdf5(void **state) {
  damage(*state, "hdf5");
}
static void ildg(void **state) {
  damage(*state, "ildg");
}
static void milc(void **state) {
  damage(*state, "milc");
}
static void nersc(void **state) {
  damage(*state, "nersc");
}

/* A link that is NaN is refused although the checksum is right, also when that is ignored. */
static void not_a_number(void **state) {
  md_context *context = *state;
  md_geometry *geometry = small_lattice(context);
  md_gauge gauge;
  const md_lattice_format *format = NULL;
  const int grid[MD_DIMS] = {0};
  char path[256];
  size_t bytes = 0;
  md_lattice_info info;
  md_geometry *none = NULL;
  md_gauge read;
  md_test_random_gauge(context, geometry, 3, &gauge);
  io_test_name(context, ".nan", path, sizeof path);
  MD_REQUIRE(context, md_lattice_format_find(context, path, "milc", &format));
  MD_REQUIRE(context, io_test_save(context, path, format, MD_SINGLE, &gauge));
  unsigned char *file = io_test_get(path, &bytes);
  md_barrier(context);
  memset(file + bytes - 4, 0xff, 4);
  io_test_put(context, path, file, bytes);
  assert_int_equal(md_lattice_load(context, path, grid, true, &none, &read, &info), MD_INPUT);
  assert_non_null(
      strstr(context->message, "links must be finite, NaN or infinity is in 1 of them"));
  assert_null(none);
  md_lattice_info_destroy(&info);
  /* Nor is such a field written. */
  const double bad[MD_LINK_REALS] = {NAN};
  md_gauge_set(&gauge, MD_EVEN, MD_X, 0, bad);
  MD_REQUIRE(context, md_gauge_exchange(context, &gauge));
  assert_int_equal(io_test_save(context, path, format, MD_SINGLE, &gauge), MD_INPUT);
  io_test_remove(context, path);
  free(file);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(hdf5), cmocka_unit_test(ildg),
                                    cmocka_unit_test(milc), cmocka_unit_test(nersc),
                                    cmocka_unit_test(not_a_number)};
MD_RUN_TESTS(tests)
