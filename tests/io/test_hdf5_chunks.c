#include "io/hdf5_file.h"
#include "io_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HDF5 lattices in any layout read the same, straight from the chunks or by the library, and a
 * chunk that is damaged is refused. */

enum { X = 4, Y = 6, Z = 4, T = 8, RANK = 7, REALS = X * Y * Z * T * MD_DIMS * MD_LINK_REALS };
static const char dataset_name[] = "/gauge/links";

typedef struct layout {
  const char *name;
  hsize_t chunk[RANK]; /* 0: contiguous */
  bool fletcher, deflate, shuffle, big_endian;
  bool straight; /* what md_h5_chunks_open says */
} layout;

static const layout layouts[] = {
    {"slices", {1, 4, 6, 4, 4, 3, 3}, .fletcher = true, .straight = true},
    {"planes", {1, 1, 6, 4, 4, 3, 3}, .fletcher = true, .straight = true},
    {"rows", {1, 1, 2, 4, 4, 3, 3}, .fletcher = true, .straight = true},
    {"blocks", {1, 2, 3, 4, 4, 3, 3}, .fletcher = true, .straight = true},
    {"parts", {1, 2, 3, 2, 4, 3, 3}, .fletcher = true, .straight = true},
    {"parts at edges", {1, 3, 4, 3, 4, 3, 3}, .fletcher = true, .straight = true},
    {"two slices", {2, 4, 6, 4, 4, 3, 3}, .fletcher = true},
    {"parts of sites", {1, 4, 6, 4, 2, 3, 3}, .fletcher = true},
    {"no checksum", {1, 4, 6, 4, 4, 3, 3}, .fletcher = false},
    {"deflate", {1, 4, 6, 4, 4, 3, 3}, .fletcher = true, .deflate = true},
    {"shuffle", {1, 4, 6, 4, 4, 3, 3}, .fletcher = true, .shuffle = true},
    {"big-endian", {1, 4, 6, 4, 4, 3, 3}, .fletcher = true, .big_endian = true},
    {"contiguous", {0}, .fletcher = false}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static hid_t creation(const layout *l) {
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  if (l->chunk[0]) assert_true(H5Pset_chunk(create, RANK, l->chunk) >= 0);
  if (l->shuffle) H5Pset_shuffle(create);
  if (l->deflate) H5Pset_deflate(create, 1);
  if (l->fletcher) H5Pset_fletcher32(create);
  return create;
}

static hid_t real_type(bool big_endian) {
  const hid_t real = big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE,
              type = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(type, "r", 0, real);
  H5Tinsert(type, "i", 4, real);
  return type;
}

/* The links and the checksum of `from`, in another layout; one rank. */
static void rewrite(const char *from, const char *to, const layout *l) {
  static float data[REALS];
  const hsize_t extents[RANK] = {T, Z, Y, X, 4, 3, 3};
  const hid_t in = H5Fopen(from, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t out = H5Fcreate(to, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(out, "/gauge", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t here = md_h5_complex(4, false), there = real_type(l->big_endian);
  const hid_t space = H5Screate_simple(RANK, extents, NULL), create = creation(l);
  const hid_t old = H5Dopen2(in, dataset_name, H5P_DEFAULT);
  const hid_t new = H5Dcreate2(out, dataset_name, there, space, H5P_DEFAULT, create, H5P_DEFAULT);
  int64_t pair[2], version = 1;
  const hsize_t two = 2;
  const hid_t pair_space = H5Screate_simple(1, &two, NULL), one = H5Screate(H5S_SCALAR);
  assert_true(H5Dread(old, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  assert_true(H5Dwrite(new, here, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  assert_true(
      md_h5_get_attribute(old, &(md_attribute){"scidac_checksum", MD_ATTRIBUTE_INTEGER, 2, pair}));
  const hid_t sums =
      H5Acreate2(new, "scidac_checksum", H5T_NATIVE_INT64, pair_space, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t format =
      H5Acreate2(new, "format_version", H5T_NATIVE_INT64, one, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(sums, H5T_NATIVE_INT64, pair) >= 0);
  assert_true(H5Awrite(format, H5T_NATIVE_INT64, &version) >= 0);
  const hid_t attributes[2] = {sums, format}, spaces[3] = {space, pair_space, one};
  for (int i = 0; i < 2; i++) H5Aclose(attributes[i]);
  for (int i = 0; i < 3; i++) H5Sclose(spaces[i]);
  H5Tclose(here);
  H5Tclose(there);
  H5Pclose(create);
  H5Dclose(old);
  H5Dclose(new);
  H5Gclose(group);
  H5Fclose(in);
  H5Fclose(out);
}

/* A lattice, the file that miniDirac writes of it and the name of another one. */
typedef struct fixture {
  md_geometry *geometry;
  md_gauge gauge;
  char written[256], path[256];
} fixture;

static void make(md_context *context, fixture *f) {
  const md_lattice_format *format = NULL;
  f->geometry = md_test_geometry(context, X, Y, Z, T, false);
  md_test_random_gauge(context, f->geometry, 5, &f->gauge);
  io_test_name(context, ".written.h5", f->written, sizeof f->written);
  io_test_name(context, ".other.h5", f->path, sizeof f->path);
  MD_REQUIRE(context, md_lattice_format_find(context, f->written, "hdf5", &format));
  MD_REQUIRE(context, io_test_save(context, f->written, format, MD_SINGLE, &f->gauge));
}

static void drop(md_context *context, fixture *f) {
  io_test_remove(context, f->written);
  io_test_remove(context, f->path);
  md_gauge_destroy(&f->gauge);
  md_geometry_destroy(f->geometry);
}

/* Whether the file is read straight; its chunks, of which offsets stay to be freed. */
static bool is_straight(const fixture *f, const char *path, md_h5_chunks *chunks) {
  const md_h5_shape shape = {.inner = {4, 3, 3}, .real_bytes = 4};
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, dataset_name, H5P_DEFAULT);
  md_h5_chunk_table *table = calloc(1, sizeof *table);
  assert_non_null(table);
  md_h5_chunks_find(file, dataset, f->geometry->global, &shape, table);
  const bool straight = md_h5_chunks_open(path, table, f->geometry, &shape, chunks);
  assert_int_equal(straight, table->plain);
  free(table);
  H5Dclose(dataset);
  H5Fclose(file);
  return straight;
}

static void any_layout(void **state) {
  md_context *context = *state;
  fixture f;
  md_h5_chunks chunks;
  make(context, &f);
  assert_true(is_straight(&f, f.written, &chunks));
  md_h5_chunks_close(&chunks);
  for (int i = 0; i < LAYOUTS; i++) {
    md_lattice_info info;
    double difference = 1;
    if (context->rank == 0) rewrite(f.written, f.path, &layouts[i]);
    md_barrier(context);
    const bool straight = is_straight(&f, f.path, &chunks);
    if (straight) md_h5_chunks_close(&chunks);
    if (straight != layouts[i].straight) fail_msg("%s: straight %d", layouts[i].name, straight);
    md_require(context, io_test_load(context, f.path, &f.gauge, &difference, &info),
               layouts[i].name);
    md_require_at_most(difference, 0x1p-24, layouts[i].name);
    assert_int_equal(info.checksum, MD_CHECKSUM_OK);
    md_lattice_info_destroy(&info);
    md_barrier(context);
  }
  drop(context, &f);
}

static void flip(md_context *context, const char *path, int64_t offset) {
  md_barrier(context);
  if (context->rank == 0) {
    const int file = open(path, O_RDWR);
    unsigned char byte;
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= (unsigned char)(1u << offset % 8);
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    close(file);
  }
  md_barrier(context);
}

static void refused(md_context *context, const fixture *f, int64_t offset, const char *name) {
  md_lattice_info info;
  double difference;
  flip(context, f->path, offset);
  assert_int_equal(io_test_load(context, f->path, &f->gauge, &difference, &info), MD_INPUT);
  if (!strstr(context->message, "checksum mismatch") ||
      !strstr(context->message, "Fletcher32 of a chunk fails too"))
    fail_msg("%s, flipped at %lld: %s", name, (long long)offset, context->message);
  md_lattice_info_destroy(&info);
  flip(context, f->path, offset);
}

/* One bit of each chunk's data, one of its checksum. */
static void damaged_chunks(void **state) {
  md_context *context = *state;
  fixture f;
  make(context, &f);
  for (int i = 0; i < LAYOUTS; i++) {
    md_h5_chunks chunks;
    if (!layouts[i].straight) continue;
    if (context->rank == 0) rewrite(f.written, f.path, &layouts[i]);
    md_barrier(context);
    assert_true(is_straight(&f, f.path, &chunks));
    const int count = chunks.count[0] * chunks.count[1] * chunks.count[2] * chunks.count[3];
    for (int k = 0; k<count; k += count> 8 ? 3 : 1) {
      /* the first site, which lies in the lattice also of chunks at an edge */
      refused(context, &f, chunks.offset[k] + 37 * k % (int64_t)chunks.site_bytes, layouts[i].name);
      refused(context, &f, chunks.offset[k] + (int64_t)chunks.bytes + k % 4, layouts[i].name);
    }
    md_h5_chunks_close(&chunks);
  }
  drop(context, &f);
}

/* The sum behind a chunk is the library's own. */
static void same_sum(void **state) {
  md_context *context = *state;
  char path[256];
  static const hsize_t lengths[] = {2,        30,           32,    34, 4096, 8192 * 2 - 2,
                                    8192 * 2, 8192 * 2 + 2, 300014};
  io_test_name(context, ".sum.h5", path, sizeof path);
  for (int i = 0; context->rank == 0 && i < 3 * 9; i++) {
    const hsize_t length = lengths[i % 9], at = 0;
    hsize_t stored = 0;
    uint32_t mask;
    unsigned char *data = malloc(length + 4), *back = malloc(length + 4);
    for (hsize_t k = 0; k < length; k++)
      data[k] = i < 9 ? 0 : i < 18 ? 0xff : (unsigned char)(k * 2654435761u >> 11);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(create, 1, &length);
    H5Pset_fletcher32(create);
    const hid_t space = H5Screate_simple(1, &length, NULL);
    const hid_t set =
        H5Dcreate2(file, "bytes", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, create, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    assert_true(H5Dget_chunk_storage_size(set, &at, &stored) >= 0);
    assert_int_equal(stored, length + 4);
    assert_true(H5Dread_chunk(set, H5P_DEFAULT, &at, &mask, back) >= 0);
    const unsigned char *sum = back + length;
    assert_int_equal(md_fletcher32(data, length), (uint32_t)sum[0] | (uint32_t)sum[1] << 8 |
                                                      (uint32_t)sum[2] << 16 |
                                                      (uint32_t)sum[3] << 24);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(create);
    H5Fclose(file);
    free(data);
    free(back);
  }
  io_test_remove(context, path);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(same_sum), cmocka_unit_test(any_layout),
                                    cmocka_unit_test(damaged_chunks)};
MD_RUN_TESTS(tests)
