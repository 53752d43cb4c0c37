#include "fuzz_support.h"
#include "io/lattice_file.h"

/* The input is a lattice file of any format. */
void fuzz_one(md_context *context, const uint8_t *data, size_t bytes) {
  const int grid[MD_DIMS] = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_lattice_info info;
  const md_status status =
      md_lattice_load(context, fuzz_file(data, bytes), grid, false, &geometry, &gauge, &info);
  fuzz_require_refusal(context, status);
  if (status == MD_OK) {
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  md_lattice_info_destroy(&info);
}
