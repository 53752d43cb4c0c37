#ifndef MD_IO_IMPROVED_LINKS_H
#define MD_IO_IMPROVED_LINKS_H

#include "io/lattice_file.h"
#include "lattice/gauge/phases.h"

/* Fat and long links that were made before, by us or by another code, from files of any lattice
 * format (HDF5, ILDG and SciDAC, MILC v5; in NERSC files links are unitary). */

/* What was found in one file. */
typedef struct md_improved_info {
  md_lattice_info lattice;
  md_phases phases; /* found in the links, and taken off */
} md_improved_info;

/* Reads links of a kind. The file may name its kind (our HDF5 and SciDAC files do, and MILC's
 * records "Fat links" and "Long links"): one that differs is MD_INPUT. Finds phases and boundary
 * sign, takes them off and says so (md_say); our own files tell that there are none and are taken
 * at their word. *geometry NULL: created as by md_lattice_load; else the file must have its
 * extents, and the links come on it. Errors as md_lattice_load and md_phases_find; unitarity is
 * not looked at. *info is to be destroyed in any case. Collective. */
md_status md_improved_load(md_context *context, const char *path, md_link_kind kind,
                           const int grid[MD_DIMS], bool ignore_checksum, md_geometry **geometry,
                           md_gauge *gauge, md_improved_info *info);

#endif
