#include "hdf5_layouts.h"

#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { EXTENT = 2, SITES = 16, SITE_REALS = 72, RANK = 7, DOOR = 100 };

typedef struct details {
  const char *name;
  hsize_t chunk[RANK]; /* 0: contiguous */
  int unlimited;       /* slowest dimensions without a limit */
  bool latest, fletcher, deflate, shuffle, early, compact, wide, big_endian;
  int attributes, neighbours; /* extra ones, beside the dataset and beside /gauge */
  bool (*link)(hid_t file);   /* puts /gauge/links there in another way */
  const char *text;           /* part of the refusal; NULL: it is read */
} details;

static hid_t complex_type(const details *d) {
  const hid_t wide = d->big_endian ? H5T_IEEE_F64BE : H5T_IEEE_F64LE;
  const hid_t narrow = d->big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
  const hid_t type = H5Tcreate(H5T_COMPOUND, d->wide ? 16 : 8);
  H5Tinsert(type, "r", 0, d->wide ? wide : narrow);
  H5Tinsert(type, "i", d->wide ? 8 : 4, d->wide ? wide : narrow);
  return type;
}

static uint32_t rotated(uint32_t word, unsigned by) {
  return by ? word << by | word >> (32 - by) : word;
}

/* The SciDAC pair of unit links. */
static void checksums(bool wide, int64_t pair[2]) {
  unsigned char site[SITE_REALS * 8] = {0};
  const size_t bytes = wide ? 8 : 4;
  for (int link = 0; link < 4; link++)
    for (int i = 0; i < 3; i++) {
      unsigned char *one = site + (size_t)(18 * link + 8 * i) * bytes;
      one[0] = 0x3f; /* 1.0, big-endian */
      one[1] = wide ? 0xf0 : 0x80;
    }
  const uint32_t sum = (uint32_t)crc32(0, site, (unsigned)(SITE_REALS * bytes));
  uint32_t a = 0, b = 0;
  for (unsigned r = 0; r < SITES; r++) {
    a ^= rotated(sum, r % 29);
    b ^= rotated(sum, r % 31);
  }
  pair[0] = a;
  pair[1] = b;
}

static bool put(hid_t object, const char *name, hid_t type, hsize_t count, const void *data) {
  const hid_t space = count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
  const hid_t id = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool done = id >= 0 && H5Awrite(id, type, data) >= 0;
  H5Aclose(id);
  H5Sclose(space);
  return done;
}

static bool put_attributes(hid_t dataset, const details *d) {
  const int64_t dims[4] = {EXTENT, EXTENT, EXTENT, EXTENT}, version = 1;
  const double one = 1;
  int64_t pair[2];
  char name[32];
  checksums(d->wide, pair);
  bool done = put(dataset, "dims", H5T_NATIVE_INT64, 4, dims) &&
              put(dataset, "plaquette", H5T_NATIVE_DOUBLE, 1, &one) &&
              put(dataset, "link_trace", H5T_NATIVE_DOUBLE, 1, &one) &&
              put(dataset, "format_version", H5T_NATIVE_INT64, 1, &version) &&
              put(dataset, "scidac_checksum", H5T_NATIVE_INT64, 2, pair);
  for (int i = 0; i < d->attributes && done; i++) {
    snprintf(name, sizeof name, "note\033[31m%d\n", i);
    done = put(dataset, name, H5T_NATIVE_DOUBLE, 1, &one);
  }
  return done;
}

static hid_t creation(const details *d) {
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  if (d->chunk[0]) H5Pset_chunk(create, RANK, d->chunk);
  if (d->compact) H5Pset_layout(create, H5D_COMPACT);
  if (d->early) H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
  if (d->shuffle) H5Pset_shuffle(create);
  if (d->deflate) H5Pset_deflate(create, 6);
  if (d->fletcher) H5Pset_fletcher32(create);
  return create;
}

static bool put_links(hid_t file, const char *name, const details *d) {
  static double links[SITES][4][3][3][2];
  const hsize_t extents[RANK] = {EXTENT, EXTENT, EXTENT, EXTENT, 4, 3, 3};
  hsize_t most[RANK];
  memcpy(most, extents, sizeof most);
  for (int i = 0; i < d->unlimited; i++) most[i] = H5S_UNLIMITED;
  for (int k = 0; k < SITES * 4 * 3; k++) links[k / 12][k / 3 % 4][k % 3][k % 3][0] = 1;
  const hid_t create = creation(d), type = complex_type(d),
              space = H5Screate_simple(RANK, extents, most);
  const details here = {.wide = true};
  const hid_t memory = complex_type(&here);
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  const bool done = set >= 0 && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, links) >= 0 &&
                    put_attributes(set, d);
  H5Dclose(set);
  H5Tclose(memory);
  H5Tclose(type);
  H5Sclose(space);
  H5Pclose(create);
  return done;
}

static bool external_link(hid_t file) {
  return H5Lcreate_external("/etc/passwd", "/gauge/links", file, "/gauge/links", H5P_DEFAULT,
                            H5P_DEFAULT) >= 0;
}

static bool soft_link_outside(hid_t file) {
  return H5Lcreate_external("/etc/hostname", "/", file, "/outside", H5P_DEFAULT, H5P_DEFAULT) >=
             0 &&
         H5Lcreate_soft("/outside/links", file, "/gauge/links", H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

static bool soft_link_loop(hid_t file) {
  return H5Lcreate_soft("/gauge/back", file, "/gauge/links", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
         H5Lcreate_soft("links", file, "/gauge/back", H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

static bool soft_link_inside(hid_t file) {
  const details plain = {.chunk = {1, 2, 2, 2, 4, 3, 3}, .fletcher = true};
  const hid_t group = H5Gcreate2(file, "/store", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(group);
  return put_links(file, "/store/one", &plain) &&
         H5Lcreate_soft("../store", file, "/gauge/nowhere", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
         H5Lcreate_soft("/store/one", file, "/gauge/links", H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

/* Never called: links of this kind are not followed. */
static hid_t through_door(const char *name, hid_t group, const void *data, size_t bytes,
                          hid_t access, hid_t transfer) {
  (void)name, (void)group, (void)data, (void)bytes, (void)access, (void)transfer;
  return H5I_INVALID_HID;
}

static bool user_link(hid_t file) {
  static const H5L_class_t door = {.version = H5L_LINK_CLASS_T_VERS,
                                   .id = (H5L_type_t)DOOR,
                                   .comment = "door",
                                   .trav_func = through_door};
  const bool done =
      H5Lregister(&door) >= 0 && H5Lcreate_ud(file, "/gauge/links", (H5L_type_t)DOOR, "/etc/passwd",
                                              12, H5P_DEFAULT, H5P_DEFAULT) >= 0;
  H5Lunregister((H5L_type_t)DOOR);
  return done;
}

static bool put_elsewhere(hid_t file, hid_t create) {
  const details d = {0};
  const hsize_t extents[RANK] = {EXTENT, EXTENT, EXTENT, EXTENT, 4, 3, 3};
  const hid_t type = complex_type(&d), space = H5Screate_simple(RANK, extents, NULL);
  const hid_t set = H5Dcreate2(file, "/gauge/links", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  const bool done = set >= 0 && put_attributes(set, &d);
  H5Dclose(set);
  H5Sclose(space);
  H5Tclose(type);
  H5Pclose(create);
  return done;
}

static bool external_storage(hid_t file) {
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(create, "/etc/passwd", 0, H5F_UNLIMITED);
  return put_elsewhere(file, create);
}

static bool virtual_dataset(hid_t file) {
  const hsize_t extents[RANK] = {EXTENT, EXTENT, EXTENT, EXTENT, 4, 3, 3};
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(RANK, extents, NULL);
  H5Pset_virtual(create, space, "/etc/passwd", "/gauge/links", space);
  H5Sclose(space);
  return put_elsewhere(file, create);
}

static bool group_for_dataset(hid_t file) {
  const hid_t group = H5Gcreate2(file, "/gauge/links", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(group);
  return group >= 0;
}

static bool nothing(hid_t file) {
  return H5Lcreate_hard(file, "/", file, "/gauge/ring", H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

#define WHOLE                                                                                      \
  { 2, 2, 2, 2, 4, 3, 3 }
#define SLICES                                                                                     \
  { 1, 2, 2, 2, 4, 3, 3 }
#define PLANES                                                                                     \
  { 1, 1, 2, 2, 4, 3, 3 }
static const details layouts[] = {
    {"contiguous", .wide = true},
    {"contiguous single big-endian", .big_endian = true},
    {"compact", .compact = true},
    {"B-tree v1", SLICES, .fletcher = true, .wide = true},
    {"B-tree v1 planes", PLANES, .fletcher = true},
    {"B-tree v1 deflate", PLANES, .fletcher = true, .deflate = true, .shuffle = true},
    {"B-tree v1 no filter", SLICES, .attributes = 12, .neighbours = 12},
    {"single chunk", WHOLE, .latest = true, .fletcher = true},
    {"implicit", SLICES, .latest = true, .early = true},
    {"fixed array", SLICES, .latest = true, .fletcher = true, .wide = true},
    {"fixed array planes", PLANES, .latest = true, .fletcher = true, .neighbours = 3},
    {"fixed array deflate", PLANES, .latest = true, .fletcher = true, .deflate = true},
    {"extensible array", PLANES, .unlimited = 1, .latest = true, .fletcher = true},
    {"B-tree v2", PLANES, .unlimited = 2, .latest = true, .fletcher = true},
    {"dense", SLICES, .latest = true, .fletcher = true, .attributes = 12, .neighbours = 12},
    {"soft link inside", .link = soft_link_inside},
    {"external link", .link = external_link, .text = "external link"},
    {"external link latest", .latest = true, .link = external_link, .text = "external link"},
    {"soft link outside", .link = soft_link_outside, .text = "external link"},
    {"soft link loop", .link = soft_link_loop, .text = "soft links"},
    {"user link", .latest = true, .link = user_link, .text = "opening /gauge/links failed"},
    {"external storage", .link = external_storage, .text = "external raw storage"},
    {"virtual", .latest = true, .link = virtual_dataset, .text = "virtual dataset"},
    {"group", .link = group_for_dataset, .text = "must be a dataset"},
    {"nothing", .link = nothing, .text = "there is no"}};
const int hdf5_layout_count = sizeof layouts / sizeof *layouts;

hdf5_layout hdf5_layout_at(int i) {
  return (hdf5_layout){layouts[i].name, !layouts[i].text, layouts[i].text, &layouts[i]};
}

/* Names that write to the terminal, a ring of groups and a deep one. */
static bool put_neighbours(hid_t file, int count) {
  char name[64];
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "/\033]0;title\007\xff%d", i);
    const hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0) return false;
    H5Gclose(group);
    snprintf(name, sizeof name, "/gauge/ring%d", i);
    if (H5Lcreate_hard(file, "/", file, name, H5P_DEFAULT, H5P_DEFAULT) < 0) return false;
  }
  return true;
}

bool hdf5_layout_write(int i, const char *path) {
  const details *d = &layouts[i];
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (d->latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  H5Pset_file_locking(access, false, true);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t group = H5Gcreate2(file, "/gauge", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const bool done = file >= 0 && group >= 0 && put_neighbours(file, d->neighbours) &&
                    (d->link ? d->link(file) : put_links(file, "/gauge/links", d));
  H5Gclose(group);
  H5Pclose(access);
  return H5Fclose(file) >= 0 && done;
}
