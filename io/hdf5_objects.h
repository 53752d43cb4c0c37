#ifndef MD_IO_HDF5_OBJECTS_H
#define MD_IO_HDF5_OBJECTS_H

#include "io/hdf5_file.h"
#include "io/lattice_format.h"

/* Notes the groups, datasets and attributes of an open file, the first few hundred of them and
 * without following links: a file may have groups without end or in a ring. In a child. */
void md_h5_list_objects(hid_t file, md_notes *notes);

#endif
