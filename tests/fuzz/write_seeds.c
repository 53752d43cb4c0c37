#include "hdf5_damage.h"
#include "hdf5_layouts.h"
#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* write_seeds FOLDER: a file of every kind and all layouts of HDF5, small and valid, what fuzzing
 * starts from; and damaged files, on which the HDF5 library ends with a signal. */

/* Seeds of damage to a layout with which 1.10.8 does; of 250 each these are some. */
static const struct {
  int layout;
  uint64_t seed;
} damages[] = {{13, 199}, {14, 30}, {14, 96}, {14, 99}, {15, 115}};
enum { DAMAGES = sizeof damages / sizeof *damages, BYTES_MOST = 1 << 18 };

static bool damage(const char *path, uint64_t seed) {
  unsigned char *data = malloc(BYTES_MOST);
  FILE *file = fopen(path, "r+b");
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  hdf5_blocks blocks;
  if (!data || !file) return false; /* the program ends */
  size_t bytes = fread(data, 1, BYTES_MOST, file);
  hdf5_find_blocks(data, bytes, &blocks);
  bytes = hdf5_damage(data, bytes, &blocks, &state);
  rewind(file);
  const bool done =
      fwrite(data, 1, bytes, file) == bytes && ftruncate(fileno(file), (off_t)bytes) == 0;
  free(data);
  return fclose(file) == 0 && done;
}

int main(int argc, char **argv) {
  md_context context;
  char path[512];
  if (md_context_open(&context, &argc, &argv) != MD_OK || argc != 2) return 2;
  md_status status = fuzz_kinds_prepare(&context);
  for (int i = 0; i < fuzz_kind_count && status == MD_OK; i++) {
    snprintf(path, sizeof path, "%s/%s", argv[1], fuzz_kind_name(i));
    status = fuzz_kind_write(&context, i, path);
  }
  for (int i = 0; i < hdf5_layout_count && status == MD_OK; i++) {
    snprintf(path, sizeof path, "%s/layout%02d.h5", argv[1], i);
    if (!hdf5_layout_write(i, path)) status = MD_ENVIRONMENT;
  }
  for (int i = 0; i < DAMAGES && status == MD_OK; i++) {
    snprintf(path, sizeof path, "%s/damaged%02d.h5", argv[1], i);
    if (!hdf5_layout_write(damages[i].layout, path) || !damage(path, damages[i].seed))
      status = MD_ENVIRONMENT;
  }
  if (status != MD_OK) fprintf(stderr, "write_seeds: %s\n", context.message);
  md_context_end(&context);
  return (int)status;
}
