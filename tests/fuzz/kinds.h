#pragma once

#include "base/context.h"

/* A small valid file of every kind that miniDirac reads, on one lattice of 2^3 x 4 sites: thin, fat
 * and long links in each format that takes them, with the record of a chain; propagators and modes
 * in each of theirs, checkpoints, the results of a study. And each read as the program reads it.
 * One rank. */
extern const int fuzz_kind_count;
/* "thin.nersc", "modes.h5": the end says the format, .h5 what the HDF5 library reads. */
const char *fuzz_kind_name(int kind);
bool fuzz_kind_is_hdf5(int kind);
/* Makes the links and fields that all of them hold, once. */
md_status fuzz_kinds_prepare(md_context *context);
md_status fuzz_kind_write(md_context *context, int kind, const char *path);
/* The file as one of that kind. */
md_status fuzz_kind_read(md_context *context, int kind, const char *path);
/* A file of links in any format: what all commands do that take one. */
md_status fuzz_links_read(md_context *context, const char *path);
/* A file of colour vectors in any format but HDF5: what takes solutions, and what takes modes. Of
 * another file MD_OK. */
md_status fuzz_vectors_read(md_context *context, const char *path);
