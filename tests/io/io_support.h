#pragma once

#include "io/attribute.h"
#include "io/lattice_file.h"
#include "support.h"

/* A file name of this run under TMPDIR, the same on all ranks. */
void io_test_name(md_context *context, const char *suffix, char *name, size_t bytes);
/* Rank 0 removes the file. Collective. */
void io_test_remove(md_context *context, const char *name);
/* Rank 0 writes the file. Collective. */
void io_test_put(md_context *context, const char *name, const void *data, size_t bytes);
/* The whole file; released with free(). Every rank for itself. */
unsigned char *io_test_get(const char *name, size_t *bytes);
/* Largest difference of a link component, over all ranks; links that are NaN: NaN. */
double io_test_difference(md_context *context, const md_gauge *a, const md_gauge *b);
/* Loads `name` and compares with `expected` where that succeeds. Frees all. */
md_status io_test_load(md_context *context, const char *name, const md_gauge *expected,
                       double *difference, md_lattice_info *info);
/* md_lattice_save_as of links without a label, and md_solution_write in hdf5 without a source. */
md_status io_test_save(md_context *context, const char *path, const md_lattice_format *format,
                       md_precision precision, const md_gauge *gauge);
md_status io_test_propagator(md_context *context, const char *path,
                             const md_field solution[MD_PARITIES], const md_attribute *attributes,
                             int count);
