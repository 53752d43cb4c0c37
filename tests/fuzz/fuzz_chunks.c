#include "fuzz_support.h"
#include "io/hdf5_file.h"
#include "kinds.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Where chunks are is what the HDF5 library says, which trusts the file, and what a child process
 * says. The input puts other numbers into the answers of the library and into the table of the
 * child, nine bytes each: which one, and its value. */
enum { CHANGE_BYTES = 9, ANSWERS = 4, NUMBERS = MD_DIMS + 6 };

typedef herr_t chunk_info(hid_t, hid_t, hsize_t, hsize_t *, unsigned *, haddr_t *, hsize_t *);

static struct {
  hid_t dataset;
  hid_t file;
  md_geometry *geometry;
  md_h5_shape shape;
  const char *path;
  chunk_info *real;
  const uint8_t *data; /* changes of this input */
  size_t changes;
} the;

static uint64_t value_of(const uint8_t *at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)at[1 + i] << 8 * i;
  return value;
}

/* Stands before that of the library. */
herr_t H5Dget_chunk_info(hid_t dataset, hid_t space, hsize_t i, hsize_t *origin, unsigned *filters,
                         haddr_t *address, hsize_t *bytes) {
  const herr_t found = the.real(dataset, space, i, origin, filters, address, bytes);
  for (size_t k = 0; k < the.changes; k++) {
    const uint8_t *c = the.data + k * CHANGE_BYTES;
    const int number = c[0] % (2 * NUMBERS);
    if (number >= NUMBERS || i % ANSWERS != c[0] / (2 * NUMBERS) % ANSWERS) continue;
    if (number < MD_DIMS + 3) origin[number] = value_of(c);
    if (number == NUMBERS - 3) *filters = c[1];
    if (number == NUMBERS - 2) *address = value_of(c);
    if (number == NUMBERS - 1) *bytes = value_of(c);
  }
  return found;
}

void fuzz_prepare(md_context *context) {
  const md_layout_request request = {.global = {2, 2, 2, 4}};
  size_t bytes;
  the.real = (chunk_info *)dlsym(RTLD_NEXT, "H5Dget_chunk_info");
  fuzz_require(the.real != NULL, "the library has a function to be stood before");
  fuzz_require(fuzz_kinds_prepare(context) == MD_OK &&
                   md_geometry_create(context, &request, &the.geometry) == MD_OK,
               "a lattice is to be had");
  unsigned char *file = fuzz_made(context, 0, &bytes);
  the.path = fuzz_file(file, bytes);
  free(file);
  the.shape = md_h5_links_shape(4);
  the.file = H5Fopen(the.path, H5F_ACC_RDONLY, H5P_DEFAULT);
  fuzz_require(the.file >= 0 &&
                   md_h5_open_sites(&(md_h5_file){context, the.path, .id = the.file}, MD_H5_LINKS,
                                    the.geometry->global, &the.shape, &the.dataset) == MD_OK,
               "the lattice can be opened");
}

static void read_all(const md_h5_chunk_table *table) {
  const md_slab_plan plan =
      md_slab_plan_make(the.geometry, md_h5_site_bytes(&the.shape), 1 << 20, 1);
  md_h5_chunks chunks;
  void *raw = malloc(md_slab_bytes(the.geometry, &plan, md_h5_site_bytes(&the.shape)));
  fuzz_require(raw != NULL, "memory is to be had");
  if (md_h5_chunks_open(the.path, table, the.geometry, &the.shape, &chunks)) {
    for (int i = 0; i < plan.count; i++) {
      const md_slab slab = md_slab_at(the.geometry, &plan, i);
      (void)md_h5_chunks_read(&chunks, &slab, raw);
    }
    md_h5_chunks_close(&chunks);
  }
  free(raw);
}

void fuzz_one(md_context *context, const uint8_t *data, size_t bytes) {
  md_h5_chunk_table *table = calloc(1, sizeof *table);
  (void)context;
  fuzz_require(table != NULL, "memory is to be had");
  the.data = data;
  the.changes = bytes / CHANGE_BYTES;
  md_h5_chunks_find(the.file, the.dataset, the.geometry->global, &the.shape, table);
  fuzz_require(the.changes > 0 || table->plain == 1, "chunks as they are are found");
  for (size_t k = 0; k < the.changes; k++) {
    const uint8_t *c = data + k * CHANGE_BYTES;
    const int number = c[0] % (2 * NUMBERS) - NUMBERS;
    if (number < 0) continue;
    if (number < MD_DIMS) table->extent[number] = (int)value_of(c);
    if (number == MD_DIMS) table->plain = (int)value_of(c);
    if (number > MD_DIMS) table->offset[c[0] / (2 * NUMBERS)] = (int64_t)value_of(c);
  }
  read_all(table);
  free(table);
}
