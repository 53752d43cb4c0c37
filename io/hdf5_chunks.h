#ifndef MD_IO_HDF5_CHUNKS_H
#define MD_IO_HDF5_CHUNKS_H

#include "io/hdf5_file.h"

/* Site data straight from their chunks in the file: HDF5 verifies Fletcher32 in one thread at less
 * than a disk's speed and copies twice. For datasets [t][z][y][x][inner...] as miniDirac writes
 * them: numbers as this machine has them, chunks of one t with all of a site, all of them stored,
 * Fletcher32 and no other filter. */
enum { MD_H5_CHUNKS_MOST = 1 << 14 }; /* finding all takes the square of their number */

/* Where a file says that its chunks are: plain data, not to be trusted. */
typedef struct md_h5_chunk_table {
  int plain;                         /* 0: the dataset is none of these */
  int extent[MD_DIMS];               /* sites of a chunk; x,y,z,t */
  int64_t offset[MD_H5_CHUNKS_MOST]; /* in the file, x fastest */
} md_h5_chunk_table;

typedef struct md_h5_chunks {
  int file; /* descriptor */
  const md_geometry *geometry;
  int extent[MD_DIMS], count[MD_DIMS]; /* sites of a chunk, chunks of the dataset; x,y,z,t */
  size_t site_bytes, bytes;            /* of a chunk, without its checksum */
  int64_t *offset;                     /* in the file, x fastest; all of a chunk is within it */
  unsigned char *chunk;                /* room for one */
} md_h5_chunks;

/* Fills the table. In a child (io/child.h). */
void md_h5_chunks_find(hid_t file, hid_t dataset, const int dims[MD_DIMS], const md_h5_shape *shape,
                       md_h5_chunk_table *table);
/* Checks the table against lattice and file. False, and nothing to close, when it is not plain or
 * does not fit them. geometry outlives it. Local. */
bool md_h5_chunks_open(const char *path, const md_h5_chunk_table *table,
                       const md_geometry *geometry, const md_h5_shape *shape, md_h5_chunks *chunks);
void md_h5_chunks_close(md_h5_chunks *chunks);
/* Assigns the slab. False, and raw without meaning, when a chunk cannot be read or its checksum
 * fails: what is wrong is then the library's to say. Local. */
bool md_h5_chunks_read(const md_h5_chunks *chunks, const md_slab *slab, void *raw);

#endif
