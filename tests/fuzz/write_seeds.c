#include "hdf5_layouts.h"
#include "io/lattice_file.h"
#include "lattice/gauge/gauge_start.h"

#include <stdio.h>
#include <stdlib.h>

/* write_seeds FOLDER: the files that fuzzing of lattices starts from: all layouts of HDF5 and each
 * other format as miniDirac writes it, of 2^4 sites. */
static md_status write_formats(md_context *context, const char *folder) {
  static const char *const names[] = {"ildg", "milc", "nersc", "hdf5"};
  const md_layout_request request = {.global = {2, 2, 2, 2}};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  MD_TRY(md_geometry_create(context, &request, &geometry));
  MD_TRY(md_gauge_create(context, geometry, &gauge));
  MD_TRY(md_gauge_start_hot(context, &gauge, 1));
  for (int i = 0; i < 4; i++) {
    const md_lattice_format *format = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/hot.%s", folder, names[i]);
    MD_TRY(md_lattice_format_find(context, path, names[i], &format));
    MD_TRY(md_lattice_save(context, path, format, MD_SINGLE, &gauge));
  }
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  return MD_OK;
}

int main(int argc, char **argv) {
  md_context context;
  char path[512];
  if (md_context_open(&context, &argc, &argv) != MD_OK || argc != 2) return 2;
  md_status status = write_formats(&context, argv[1]);
  for (int i = 0; i < hdf5_layout_count && status == MD_OK; i++) {
    snprintf(path, sizeof path, "%s/layout%02d.h5", argv[1], i);
    if (!hdf5_layout_write(i, path)) status = MD_ENVIRONMENT;
  }
  if (status != MD_OK) fprintf(stderr, "write_seeds: %s\n", context.message);
  md_context_close(&context);
  return (int)status;
}
