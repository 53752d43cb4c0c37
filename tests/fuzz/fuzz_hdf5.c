#include "fuzz_support.h"
#include "hdf5_damage.h"
#include "hdf5_layouts.h"
#include "kinds.h"

#include <stdlib.h>
#include <string.h>

/* The input is a list of changes to the metadata of a valid HDF5 file: its first byte chooses the
 * file, the second says whether the checksums of metadata are made right again (bit 0) and whether
 * the file is cut (bit 1, by the last two bytes). Then each four bytes are a change: block of
 * metadata, offset in it (two bytes), value. The library meets them in the process that it has for
 * itself. */
enum { FILES_MOST = 64, LAYOUT = -1 };

typedef struct file {
  int kind; /* of kinds.h, or LAYOUT */
  unsigned char *data;
  size_t bytes;
  hdf5_blocks blocks;
} file;

static file files[FILES_MOST];
static int file_count;

static void add(int kind, unsigned char *data, size_t bytes) {
  fuzz_require(file_count < FILES_MOST, "there is room for all files");
  file *f = &files[file_count++];
  *f = (file){.kind = kind, .data = data, .bytes = bytes};
  hdf5_find_blocks(f->data, f->bytes, &f->blocks);
  fuzz_require(f->blocks.count > 0, "they have metadata");
}

static md_status read_file(md_context *context, const file *f, const char *path) {
  return f->kind == LAYOUT ? fuzz_links_read(context, path)
                           : fuzz_kind_read(context, f->kind, path);
}

void fuzz_prepare(md_context *context) {
  size_t bytes;
  fuzz_require(fuzz_kinds_prepare(context) == MD_OK, "what files hold is to be had");
  for (int i = 0; i < hdf5_layout_count; i++) {
    const char *path = fuzz_file("", 0);
    fuzz_require(hdf5_layout_write(i, path), "layouts can be written");
    fuzz_require((fuzz_links_read(context, path) == MD_OK) == hdf5_layout_at(i).good,
                 "what is good is read and nothing else");
    unsigned char *data = fuzz_contents(path, &bytes);
    add(LAYOUT, data, bytes);
  }
  for (int kind = 0; kind < fuzz_kind_count; kind++)
    if (fuzz_kind_is_hdf5(kind)) {
      unsigned char *data = fuzz_made(context, kind, &bytes);
      add(kind, data, bytes);
    }
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
  if (bytes < 2) return;
  const file *f = &files[data[0] % file_count];
  unsigned char *bad = malloc(f->bytes);
  fuzz_require(bad != NULL, "memory is to be had");
  const char *path = fuzz_file(bad, change(bad, f, data, bytes));
  fuzz_require_refusal(context, read_file(context, f, path));
  free(bad);
}
