#include "fuzz_support.h"
#include "hdf5_damage.h"
#include "hdf5_layouts.h"
#include "io/lattice_file.h"
#include "io/propagator.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The input is a list of changes to a valid HDF5 file: its first byte chooses the file, the second
 * says whether the checksums of metadata are made right again (bit 0) and whether the file is cut
 * (bit 1, by the last two bytes). Then each four bytes are a change: block of metadata, offset in
 * it (two bytes), value. */
enum { FILES_MOST = 64 };

typedef struct file {
  unsigned char *data;
  size_t bytes;
  hdf5_blocks blocks;
} file;

static file files[FILES_MOST];
static int file_count; /* the last one is a checkpoint, the others are lattices */
static md_geometry *geometry;
static md_field field;
static int64_t iteration = 5;
static char key[32] = "mass 0.05";

static void take(const char *path) {
  struct stat there;
  file *f = &files[file_count++];
  const int from = open(path, O_RDONLY);
  fuzz_require(file_count <= FILES_MOST && from >= 0 && fstat(from, &there) == 0,
               "the files to be changed exist");
  f->bytes = (size_t)there.st_size;
  f->data = malloc(f->bytes);
  fuzz_require(f->data && read(from, f->data, f->bytes) == (ssize_t)f->bytes, "they can be read");
  close(from);
  unlink(path);
  hdf5_find_blocks(f->data, f->bytes, &f->blocks);
  fuzz_require(f->blocks.count > 0, "they have metadata");
}

static md_status checkpoint(md_context *context, const char *path, bool write) {
  const md_named_field named = {"x", &field};
  const md_attribute attributes[] = {{"belongs_to", MD_ATTRIBUTE_TEXT, sizeof key, key},
                                     {"iteration", MD_ATTRIBUTE_INTEGER, 1, &iteration}};
  return write ? md_checkpoint_write(context, path, &named, 1, attributes, 2)
               : md_checkpoint_read(context, path, &named, 1, attributes, 2);
}

static md_status load(md_context *context, const char *path) {
  const int grid[MD_DIMS] = {0};
  md_geometry *there = NULL;
  md_gauge gauge;
  md_lattice_info info;
  const md_status status = md_lattice_load(context, path, grid, false, &there, &gauge, &info);
  fuzz_require_refusal(context, status);
  if (status == MD_OK) {
    md_gauge_destroy(&gauge);
    md_geometry_destroy(there);
  }
  md_lattice_info_destroy(&info);
  return status;
}

static void prepare(md_context *context) {
  const md_layout_request request = {.global = {4, 2, 2, 2}};
  const md_field_shape shape = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 2, true};
  char path[64];
  snprintf(path, sizeof path, "/dev/shm/minidirac_fuzz_%ld.made", (long)getpid());
  for (int i = 0; i < hdf5_layout_count; i++) {
    fuzz_require(hdf5_layout_write(i, path), "layouts can be written");
    fuzz_require((load(context, path) == MD_OK) == hdf5_layout_at(i).good,
                 "what is good is read and nothing else");
    take(path);
  }
  fuzz_require(md_geometry_create(context, &request, &geometry) == MD_OK &&
                   md_field_create(context, geometry, &shape, MD_EVEN, &field) == MD_OK,
               "a field is to be had");
  fuzz_require(checkpoint(context, path, true) == MD_OK, "a checkpoint can be written");
  take(path);
}

static size_t change(unsigned char *bad, const file *f, const uint8_t *data, size_t bytes) {
  size_t left = f->bytes;
  memcpy(bad, f->data, left);
  for (size_t i = 2; i + 4 <= bytes; i += 4) {
    const int k = data[i] % f->blocks.count;
    const size_t length = f->blocks.block[k].length ? f->blocks.block[k].length : 512;
    const size_t at = f->blocks.block[k].start + (data[i + 1] | (size_t)data[i + 2] << 8) % length;
    if (at < f->bytes) bad[at] = data[i + 3];
  }
  if (data[1] & 2) left = (data[bytes - 2] | (size_t)data[bytes - 1] << 8) % (left + 1);
  if (data[1] & 1) hdf5_seal(bad, left, &f->blocks);
  return left;
}

void fuzz_one(md_context *context, const uint8_t *data, size_t bytes) {
  if (file_count == 0) prepare(context);
  if (bytes < 2) return;
  const file *f = &files[data[0] % file_count];
  unsigned char *bad = malloc(f->bytes);
  fuzz_require(bad != NULL, "memory is to be had");
  const char *path = fuzz_file(bad, change(bad, f, data, bytes));
  if (f == &files[file_count - 1])
    fuzz_require_refusal(context, checkpoint(context, path, false));
  else
    (void)load(context, path);
  free(bad);
}
