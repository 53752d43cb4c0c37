#pragma once

#include <stdbool.h>

/* Small HDF5 lattices (2^4 sites, unit links) in every layout that the HDF5 library can give them,
 * and files of the same kind whose data are elsewhere or cannot be reached. Written by the library
 * itself, in one process. */

typedef struct hdf5_layout {
  const char *name;
  bool good;           /* a lattice file: to be read; else to be refused with `text` */
  const char *text;    /* part of the message */
  const void *details; /* of hdf5_layouts.c */
} hdf5_layout;

extern const int hdf5_layout_count;
hdf5_layout hdf5_layout_at(int i);
/* Writes file i; false when the library cannot. */
bool hdf5_layout_write(int i, const char *path);
