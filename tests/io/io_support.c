#include "io_support.h"
#include "io/propagator.h"
#include "io/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void io_test_name(md_context *context, const char *suffix, char *name, size_t bytes) {
  long process = (long)getpid();
  const char *folder = getenv("TMPDIR");
  md_broadcast(context, &process, sizeof process);
  snprintf(name, bytes, "%s/minidirac_io_test_%ld%s", folder ? folder : "/tmp", process, suffix);
}

void io_test_remove(md_context *context, const char *name) {
  md_barrier(context);
  if (context->rank == 0) unlink(name);
}

void io_test_put(md_context *context, const char *name, const void *data, size_t bytes) {
  md_barrier(context); /* other ranks may still read what was there */
  if (context->rank == 0) {
    unlink(name); /* a file that is cut to nothing and filled again waits for the disk */
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
  }
  md_barrier(context);
}

unsigned char *io_test_get(const char *name, size_t *bytes) {
  FILE *file = fopen(name, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  unsigned char *data = malloc(*bytes + 1);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, *bytes, file), *bytes);
  fclose(file);
  return data;
}

double io_test_difference(md_context *context, const md_gauge *a, const md_gauge *b) {
  double most = 0;
  for (int k = 0; k < MD_PARITIES * MD_DIMS; k++)
    for (int64_t i = 0; i < a->geometry->sites; i++) {
      double u[MD_LINK_REALS], v[MD_LINK_REALS];
      md_gauge_get(a, k & 1, k >> 1, i, u);
      md_gauge_get(b, k & 1, k >> 1, i, v);
      for (int c = 0; c < MD_LINK_REALS; c++)
        if (!(fabs(u[c] - v[c]) <= most)) most = fabs(u[c] - v[c]);
    }
  md_maximum(context, &most, 1);
  return most;
}

md_status io_test_load(md_context *context, const char *name, const md_gauge *expected,
                       double *difference, md_lattice_info *info) {
  const int grid[MD_DIMS] = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  const md_status status = md_lattice_load(context, name, grid, false, &geometry, &gauge, info);
  *difference = NAN;
  if (status != MD_OK) return status;
  *difference = io_test_difference(context, &gauge, expected);
  md_gauge_destroy(&gauge);
  md_geometry_destroy(geometry);
  return MD_OK;
}

md_status io_test_save(md_context *context, const char *path, const md_lattice_format *format,
                       md_precision precision, const md_gauge *gauge) {
  const md_lattice_output output = {.format = format, .precision = precision};
  return md_lattice_save_as(context, path, &output, gauge);
}

md_status io_test_propagator(md_context *context, const char *path,
                             const md_field solution[MD_PARITIES], const md_attribute *attributes,
                             int count) {
  return md_solution_write(context, path, md_vectors_format_of(path, "hdf5"), MD_DOUBLE, false,
                           solution, NULL, attributes, count);
}
