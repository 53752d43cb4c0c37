#ifndef MD_IO_HDF5_LATTICE_H
#define MD_IO_HDF5_LATTICE_H

#include "io/hdf5_label.h"
#include "io/lattice_format.h"

/* Inside of io: miniDirac's own lattice files, dataset MD_H5_LINKS [t][z][y][x][mu][3][3] of
 * complex {r, i}. The SciDAC checksum pair is that of the big-endian image of the sites: the same
 * numbers as in an ILDG file of this field and precision. */
#define MD_H5_LINKS "/gauge/links"
enum { MD_H5_LATTICE_VERSION = 1 };

static inline md_h5_shape md_h5_links_shape(int real_bytes) {
  return (md_h5_shape){.inner = {MD_DIMS, 3, 3}, .real_bytes = real_bytes};
}

/* What the child tells of a file: nothing of it is to be trusted. */
enum { MD_H5_RECORDS_MOST = 1024, MD_H5_DEPARTURES_MOST = 64 };
typedef struct md_h5_described {
  md_lattice_header header; /* but for the label */
  md_h5_label_words label;
  int record_count, departure_count;
  md_record records[MD_H5_RECORDS_MOST];
  char departures[MD_H5_DEPARTURES_MOST][200];
  size_t texts_used;
  int texts_lost;
  char texts[MD_FILE_TEXTS_MOST];
} md_h5_described;

/* As md_lattice_format.describe and .read; the HDF5 library runs in a child process (io/child.h).
 */
md_status md_h5_lattice_describe(md_context *context, const md_source *source,
                                 md_lattice_header *header, md_notes *notes);
md_status md_h5_lattice_read(md_context *context, const char *path, const md_lattice_header *header,
                             const md_geometry *geometry, md_gauge *gauge, md_checksum *checksum);

#endif
