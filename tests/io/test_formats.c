#include "io_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { X = 4, Y = 6, Z = 4, T = 8, SITES = X * Y * Z * T };

typedef struct lattice {
  md_geometry *geometry;
  md_gauge gauge;
} lattice;

static lattice make(md_context *context) {
  lattice l = {.geometry = md_test_geometry(context, X, Y, Z, T, false)};
  md_test_random_gauge(context, l.geometry, 7, &l.gauge);
  return l;
}

static void discard(lattice *l) {
  md_gauge_destroy(&l->gauge);
  md_geometry_destroy(l->geometry);
}

/* Written and read again, the links are those that were in memory, up to the precision. */
static void round_trip(void **state) {
  md_context *context = *state;
  static const char *const names[] = {"hdf5", "ildg", "milc", "nersc"};
  lattice l = make(context);
  for (int i = 0; i < 8; i++) {
    const md_precision precision = i & 1 ? MD_SINGLE : MD_DOUBLE;
    const md_lattice_format *format = NULL;
    char path[256];
    double difference = 1;
    md_lattice_info info;
    io_test_name(context, names[i / 2], path, sizeof path);
    MD_REQUIRE(context, md_lattice_format_find(context, path, names[i / 2], &format));
    const md_status saved = io_test_save(context, path, format, precision, &l.gauge);
    if (!md_lattice_format_holds(format, precision)) {
      assert_int_equal(saved, MD_INPUT);
      assert_non_null(strstr(context->message, "milc files hold single precision, got double"));
      continue;
    }
    md_require(context, saved, names[i / 2]);
    md_require(context, io_test_load(context, path, &l.gauge, &difference, &info), names[i / 2]);
    md_require_at_most(difference, precision == MD_DOUBLE ? 0 : 0x1p-24, names[i / 2]);
    assert_int_equal(info.checksum, MD_CHECKSUM_OK);
    assert_int_equal(info.header.precision, precision);
    assert_string_equal(md_lattice_header_format(&info.header), names[i / 2]);
    if (context->rank == 0) assert_int_equal(info.notes.departure_count, 0);
    /* The header's are those of the links on file, printed exactly enough. */
    if (info.header.has_plaquette)
      md_require_at_most(fabs(info.header.plaquette - info.observables.plaquette), 1e-14,
                         "plaquette");
    if (info.header.has_link_trace)
      md_require_at_most(fabs(info.header.link_trace - info.observables.link_trace), 1e-14,
                         "link trace");
    md_lattice_info_destroy(&info);
    io_test_remove(context, path);
  }
  discard(&l);
}

/* HDF5 and ILDG files of one field and precision carry the same SciDAC pair, on any rank grid;
 * the pair is recomputed here site by site from its definition. */
static void scidac_definition(void **state) {
  md_context *context = *state;
  lattice l = make(context);
  static const char *const names[] = {"hdf5", "ildg"};
  md_context alone = {.ranks = 1, .threads = 1};
  lattice whole = make(&alone);
  uint32_t a = 0, b = 0;
  for (uint32_t r = 0; r < SITES; r++) {
    const int x[MD_DIMS] = {(int)r % X, (int)r / X % Y, (int)r / X / Y % Z, (int)r / X / Y / Z};
    unsigned char bytes[MD_DIMS * MD_LINK_REALS * 8];
    for (int mu = 0; mu < MD_DIMS; mu++) {
      union {
        double real[MD_LINK_REALS];
        uint64_t word[MD_LINK_REALS];
      } u;
      md_gauge_get(&whole.gauge, md_parity(x), mu, md_site(whole.geometry, x), u.real);
      for (int i = 0; i < MD_LINK_REALS * 8; i++)
        bytes[mu * MD_LINK_REALS * 8 + i] = (unsigned char)(u.word[i / 8] >> (56 - i % 8 * 8));
    }
    const uint64_t c = crc32(0, bytes, sizeof bytes);
    a ^= (uint32_t)(c << r % 29 | c >> (32 - r % 29));
    b ^= (uint32_t)(c << r % 31 | c >> (32 - r % 31));
  }
  for (int i = 0; i < 2; i++) {
    char path[256];
    double difference = 1;
    const md_lattice_format *format = NULL;
    md_lattice_info info;
    io_test_name(context, ".pair", path, sizeof path);
    MD_REQUIRE(context, md_lattice_format_find(context, path, names[i], &format));
    MD_REQUIRE(context, io_test_save(context, path, format, MD_DOUBLE, &l.gauge));
    MD_REQUIRE(context, io_test_load(context, path, &l.gauge, &difference, &info));
    assert_int_equal(info.header.checksum.a, a);
    assert_int_equal(info.header.checksum.b, b);
    md_lattice_info_destroy(&info);
    io_test_remove(context, path);
  }
  discard(&whole);
  discard(&l);
}

/* A NERSC file made from its definition, one number after the other. */
static size_t compose_nersc(const lattice *whole, int rows, int real_bytes, bool big,
                            unsigned char *out) {
  unsigned char *at = out + 1024;
  uint32_t sum = 0;
  for (int r = 0; r < SITES; r++) {
    const int x[MD_DIMS] = {r % X, r / X % Y, r / X / Y % Z, r / X / Y / Z};
    for (int mu = 0; mu < MD_DIMS; mu++) {
      double u[MD_LINK_REALS];
      md_gauge_get(&whole->gauge, md_parity(x), mu, md_site(whole->geometry, x), u);
      for (int c = 0; c < rows * 6; c++, at += real_bytes) {
        union {
          double d;
          float f;
          uint64_t word;
          uint32_t half[2];
        } v = {.word = 0};
        if (real_bytes == 8)
          v.d = u[c];
        else
          v.f = (float)u[c];
        sum += v.half[0] + v.half[1];
        for (int i = 0; i < real_bytes; i++)
          at[i] = (unsigned char)(v.word >> 8 * (big ? real_bytes - 1 - i : i));
      }
    }
  }
  char head[1024];
  const int length = snprintf(
      head, sizeof head,
      "BEGIN_HEADER\nDATATYPE = %s\nDIMENSION_1 = %d\nDIMENSION_2 = %d\nDIMENSION_3 = %d\n"
      "DIMENSION_4=%d\r\nCHECKSUM =   %X  \nFLOATING_POINT = %s\nEND_HEADER\n",
      rows == 2 ? "4D_SU3_GAUGE" : "4D_SU3_GAUGE_3x3", X, Y, Z, T, sum,
      real_bytes == 8 ? (big ? "IEEE64BIG" : "IEEE64LITTLE") : (big ? "IEEE32BIG" : "IEEE32"));
  memmove(out + length, out + 1024, (size_t)(at - out) - 1024);
  memcpy(out, head, (size_t)length);
  return (size_t)(at - out) - 1024 + (size_t)length;
}

static void nersc_variants(void **state) {
  md_context *context = *state;
  lattice l = make(context);
  md_context alone = {.ranks = 1, .threads = 1};
  lattice whole = make(&alone);
  unsigned char *file = malloc(1024 + (size_t)SITES * 576);
  assert_non_null(file);
  for (int i = 0; i < 8; i++) {
    const int rows = i & 1 ? 2 : 3, real_bytes = i & 2 ? 4 : 8;
    const size_t bytes = compose_nersc(&whole, rows, real_bytes, i & 4, file);
    char path[256];
    double difference = 1;
    md_lattice_info info;
    io_test_name(context, ".nersc", path, sizeof path);
    io_test_put(context, path, file, bytes);
    MD_REQUIRE(context, io_test_load(context, path, &l.gauge, &difference, &info));
    /* Two rows: the third comes from products of rounded numbers below 1. */
    md_require_at_most(difference,
                       (rows == 2 ? 16 : 1) *
                           md_precision_roundoff(real_bytes == 8 ? MD_DOUBLE : MD_SINGLE),
                       "NERSC links");
    assert_int_equal(info.checksum, MD_CHECKSUM_OK);
    md_lattice_info_destroy(&info);
    io_test_remove(context, path);
  }
  free(file);
  discard(&whole);
  discard(&l);
}

/* MILC words in the other byte order are the same lattice with the same sums. */
static void milc_byte_order(void **state) {
  md_context *context = *state;
  lattice l = make(context);
  const md_lattice_format *format = NULL;
  char path[256];
  size_t bytes = 0;
  double difference = 1;
  md_lattice_info info;
  io_test_name(context, ".milc", path, sizeof path);
  MD_REQUIRE(context, md_lattice_format_find(context, path, "milc", &format));
  MD_REQUIRE(context, io_test_save(context, path, format, MD_SINGLE, &l.gauge));
  unsigned char *file = io_test_get(path, &bytes);
  for (size_t i = 0; i + 3 < bytes; i += 4) {
    if (i >= 20 && i < 84) continue; /* the time stamp is text */
    const unsigned char word[4] = {file[i + 3], file[i + 2], file[i + 1], file[i]};
    memcpy(file + i, word, 4);
  }
  md_barrier(context);
  io_test_put(context, path, file, bytes);
  MD_REQUIRE(context, io_test_load(context, path, &l.gauge, &difference, &info));
  md_require_at_most(difference, 0x1p-24, "links of the other byte order");
  assert_int_equal(info.checksum, MD_CHECKSUM_OK);
  md_lattice_info_destroy(&info);
  io_test_remove(context, path);
  free(file);
  discard(&l);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(round_trip), cmocka_unit_test(scidac_definition),
    cmocka_unit_test(nersc_variants), cmocka_unit_test(milc_byte_order)};
MD_RUN_TESTS(tests)
