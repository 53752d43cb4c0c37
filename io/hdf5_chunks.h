#ifndef MD_IO_HDF5_CHUNKS_H
#define MD_IO_HDF5_CHUNKS_H

#include "io/hdf5_file.h"

/* Site data straight from their chunks in the file: HDF5 verifies Fletcher32 in one thread at less
 * than a disk's speed and copies twice. For datasets [t][z][y][x][inner...] as miniDirac writes
 * them: numbers as this machine has them, chunks of one t with all of a site, all of them stored,
 * Fletcher32 and no other filter. */
typedef struct md_h5_chunks {
  int file; /* descriptor */
  const md_geometry *geometry;
  int extent[MD_DIMS], count[MD_DIMS]; /* sites of a chunk, chunks of the dataset; x,y,z,t */
  size_t site_bytes, bytes;            /* of a chunk, without its checksum */
  int64_t *offset;                     /* in the file, x fastest */
  unsigned char *chunk;                /* room for one */
} md_h5_chunks;

/* False, and nothing to close, when the dataset is none of these. geometry outlives it. Local. */
bool md_h5_chunks_open(const char *path, hid_t file, hid_t dataset, const md_geometry *geometry,
                       const md_h5_shape *shape, md_h5_chunks *chunks);
void md_h5_chunks_close(md_h5_chunks *chunks);
/* Assigns the slab. False, and raw without meaning, when a chunk cannot be read or its checksum
 * fails: what is wrong is then the library's to say. Local. */
bool md_h5_chunks_read(const md_h5_chunks *chunks, const md_slab *slab, void *raw);

#endif
