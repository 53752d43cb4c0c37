#pragma once

#include "io/lattice_format.h"
#include <hdf5.h>

/* Inside of io: HDF5 files of site data.
 *
 * Writing is collective (one rank: the plain driver) and done by the library. Reading is not: the
 * library reads in a child process of each rank (io/child.h), which a damaged file may end, and
 * damage met by one rank never leaves the others waiting; the caller agrees afterwards. "In a
 * child" stands with all that looks into a file of unknown origin: io/reader calls it. */

/* A file, and for whose messages. */
typedef struct md_h5_file {
  md_context *context;
  const char *path;
  hid_t id; /* below 0: not open */
} md_h5_file;

/* Records the innermost message of HDF5's error stack: "PATH: STEP failed: ...". */
md_status md_h5_fail(const md_h5_file *file, md_status status, const char *step);

/* Closes ids of any kind; what is below zero is none. */
#define MD_H5_CLOSE(...)                                                                           \
  md_h5_close((const hid_t[]){__VA_ARGS__}, sizeof(const hid_t[]){__VA_ARGS__} / sizeof(hid_t))
void md_h5_close(const hid_t *ids, size_t count);

/* Makes file->path, which is there, an empty HDF5 file, for all ranks after reserving room for
 * about `bytes` of data; file->id is assigned. Collective. */
md_status md_h5_create(md_h5_file *file, int64_t bytes);
/* Flushes and closes a file that was created, if it was. Returns the status that was, or that of
 * closing. Collective. */
md_status md_h5_close_written(md_h5_file *file, md_status status);
/* Creates a group. All ranks call the same; local in its errors. */
md_status md_h5_group(const md_h5_file *file, const char *name);

/* Compound {r, i} of IEEE reals with 2, 4 or 8 bytes: as this machine has them, or little-endian as
 * on file. Released with MD_H5_CLOSE. */
hid_t md_h5_complex(int real_bytes, bool on_file);
/* Texts of that many bytes, the closing zero included; 0: doubles. Otherwise as md_h5_complex. */
hid_t md_h5_value(size_t text_bytes, bool on_file);

/* Opens the group or dataset "/a/b..." of this file: through hard and soft links only, and with its
 * data in the file. MD_INPUT names the link or storage that leads elsewhere. In a child. Closed by
 * H5Oclose. */
md_status md_h5_open_object(const md_h5_file *file, const char *name, bool dataset, hid_t *object);

/* All ranks call the same; local in its errors. */
md_status md_h5_put_attributes(const md_h5_file *file, hid_t object, const md_attribute *list,
                               int count);
/* Names the axes of a dataset, slowest first, in its attribute "axes": "t,z,y,x,colour". NULL: not
 * named. Otherwise as md_h5_put_attributes. */
md_status md_h5_put_axes(const md_h5_file *file, hid_t dataset, const char *axes);
/* False when it is absent or of another type or length; texts may be of fixed length or of
 * variable length. In a child. */
bool md_h5_get_attribute(hid_t object, const md_attribute *attribute);

/* What a dataset is. In a child. */
typedef struct md_h5_found {
  int rank;
  long long extent[H5S_MAX_RANK]; /* slowest first */
  long long bytes;                /* of an element */
} md_h5_found;
md_h5_found md_h5_find(hid_t dataset);
/* Planes in z that it stores together, 1 where it has no chunks: of links [t][z]... Local. */
int md_h5_planes(hid_t dataset);
/* Whether Fletcher32 checksums guard the dataset. In a child. */
bool md_h5_has_sums(hid_t dataset);
/* What a reader says where they do not. Local. */
void md_h5_warn_of_sums(const md_context *context, const char *path);

/* A dataset of complex numbers [lead][t][z][y][x][inner...], or of {scale, r[3], i[3]} (fixed8)
 * without inner; without lead where that is 0. */
typedef struct md_h5_shape {
  int lead;
  bool one_parity; /* x counts the sites of one parity in a row: x/2 */
  int inner[3];    /* fast extents, unused ones 0 */
  int real_bytes;  /* not read for fixed8 */
  bool fixed8;
  bool or_single; /* reals of 4 bytes on file are read too, where those of 8 are asked for */
} md_h5_shape;
/* RATIO: of data to what a filter makes of them, deflate 1032 at most. */
enum { MD_H5_RANK_MOST = 8, MD_H5_RATIO_MOST = 1100 };

/* Extents of the dataset; returns their number. */
int md_h5_extents(const md_h5_shape *shape, const int dims[MD_DIMS],
                  hsize_t extents[MD_H5_RANK_MOST]);
/* Bytes of a site (of one lead index). */
size_t md_h5_site_bytes(const md_h5_shape *shape);
/* Creates it in chunks of at most 4 MB that no rank border cuts, with Fletcher32 and its axes as
 * md_h5_put_axes. All ranks call the same. */
md_status md_h5_create_sites(const md_h5_file *file, const char *name, const char *axes,
                             const md_geometry *geometry, const md_h5_shape *shape, hid_t *dataset);
/* Opens it and checks element type, extents and that all of it is stored. In a child; MD_INPUT. */
md_status md_h5_open_sites(const md_h5_file *file, const char *name, const int dims[MD_DIMS],
                           const md_h5_shape *shape, hid_t *dataset);
/* Sites [origin, origin + extent) of the lattice; x,y,z,t. */
typedef struct md_h5_box {
  int origin[MD_DIMS], extent[MD_DIMS];
} md_h5_box;
md_h5_box md_h5_slab_box(const md_geometry *geometry, const md_slab *slab);
/* Writes one slab of one lead index from raw. All ranks call the same, each for its slab; local in
 * its errors. */
md_status md_h5_write_slab(const md_h5_file *file, hid_t dataset, const md_geometry *geometry,
                           const md_h5_shape *shape, int lead, const md_slab *slab,
                           const void *raw);
/* Reads the sites of one lead index into raw; where a chunk's Fletcher32 fails, *damaged is raised
 * and the data are read all the same. In a child. */
md_status md_h5_read_box(const md_h5_file *file, hid_t dataset, const md_h5_shape *shape, int lead,
                         const md_h5_box *box, void *raw, long long *damaged);

/* Reads all datasets of the file, chunk by chunk. Of a file that a child has open. */
md_datasets_found md_h5_verify(const md_h5_file *file);

/* Notes the groups, datasets and attributes of an open file, the first few hundred of them and
 * without following links: a file may have groups without end or in a ring. Returns how many cannot
 * be opened or listed as damaged, and whether some are unseen. In a child. */
md_datasets_found md_h5_list_objects(hid_t file, md_notes *notes);

/* miniDirac's own lattice files: dataset MD_H5_LINKS [t][z][y][x][mu][3][3] of complex {r, i}. The
 * SciDAC checksum pair is that of the big-endian image of the sites: the same numbers as in an ILDG
 * file of this field and precision. The label of links is in attributes of their dataset. Files of
 * thin links have none, but for `made` where they were smeared. links: "fat" or "long"; made:
 * action and parameters; phases: "none" where they are bare. Texts are attributes of MD_H5_TEXTS.
 */
#define MD_H5_LINKS "/gauge/links"
#define MD_H5_TEXTS "/gauge/texts"
enum { MD_H5_LATTICE_VERSION = 1 };

static inline md_h5_shape md_h5_links_shape(int real_bytes) {
  return (md_h5_shape){.inner = {MD_DIMS, 3, 3}, .real_bytes = real_bytes};
}

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

/* The checksum of HDF5's filter Fletcher32 over `bytes` (even) bytes: J. Fletcher, IEEE Trans.
 * Commun. 30 (1982) 247, of big-endian 16-bit words modulo 65535, a sum of zero that is not of
 * zeros alone written as 65535. Vectorises. */
uint32_t md_fletcher32(const void *data, size_t bytes);
