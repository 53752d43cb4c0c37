#ifndef MD_IO_HDF5_FILE_H
#define MD_IO_HDF5_FILE_H

#include "io/attribute.h"
#include "io/site_data.h"
#include <hdf5.h>

/* Inside of io: HDF5 files of site data.
 *
 * Writing is collective (one rank: the plain driver) and done by the library. Reading is not: the
 * library reads in a child process of each rank (io/child.h), which a damaged file may end, and
 * damage met by one rank never leaves the others waiting; the caller agrees afterwards. "In a
 * child" stands with all that looks into a file of unknown origin: io/reader calls it. */

/* Records the innermost message of HDF5's error stack: "PATH: STEP failed: ...". */
md_status md_h5_fail(md_context *context, md_status status, const char *path, const char *step);

/* Makes the file `path`, which is there, an empty HDF5 file after reserving room for about `bytes`
 * of data. Collective. */
md_status md_h5_create(md_context *context, const char *path, int64_t bytes, hid_t *file);
/* Flushes and closes a file that was created. Collective; *file becomes invalid. */
md_status md_h5_close_written(md_context *context, const char *path, hid_t *file);
/* Creates a group. All ranks call the same; local in its errors. */
md_status md_h5_group(md_context *context, const char *path, hid_t file, const char *name);

/* Compound {r, i} of IEEE reals with 2, 4 or 8 bytes: as this machine has them, or little-endian as
 * on file. Released with H5Tclose. */
hid_t md_h5_complex(int real_bytes, bool on_file);
/* Compound {scale, r[3], i[3]} of a site, MD_H5_FIXED8_BYTES long: an IEEE binary16 and integers of
 * 8 bits, the real and imaginary parts of the colours over the scale. Otherwise as
 * md_h5_complex. */
enum { MD_H5_FIXED8_BYTES = 8 };
hid_t md_h5_fixed8(bool on_file);

/* Texts of that many bytes, the closing zero included. Otherwise as md_h5_complex. */
hid_t md_h5_text(size_t bytes);

/* Where a dataset has its data: in the file, or in others by one of two ways. */
typedef enum md_h5_storage {
  MD_H5_HERE,
  MD_H5_VIRTUAL,
  MD_H5_EXTERNAL,
  MD_H5_UNKNOWN
} md_h5_storage;
md_h5_storage md_h5_storage_of(hid_t dataset);
/* Opens the group or dataset "/a/b..." of this file: through hard and soft links only, and with its
 * data in the file. MD_INPUT names the link or storage that leads elsewhere. In a child. Closed by
 * H5Oclose. */
md_status md_h5_open_object(md_context *context, const char *path, hid_t file, const char *name,
                            bool dataset, hid_t *object);

/* All ranks call the same. */
md_status md_h5_put_attribute(md_context *context, const char *path, hid_t object,
                              const md_attribute *attribute);
/* False when it is absent or of another type or length. In a child. */
bool md_h5_get_attribute(hid_t object, const md_attribute *attribute);

/* Whether Fletcher32 checksums guard the dataset. In a child. */
bool md_h5_has_sums(hid_t dataset);
/* What a reader says where they do not. Local. */
void md_h5_warn_of_sums(const md_context *context, const char *path);

/* A dataset of complex numbers [lead][t][z][y][x][inner...], or of md_h5_fixed8 without inner;
 * without lead where that is 0. */
typedef struct md_h5_shape {
  int lead;
  bool one_parity; /* x counts the sites of one parity in a row: x/2 */
  int inner[3];    /* fast extents, unused ones 0 */
  int real_bytes;  /* not read for fixed8 */
  bool fixed8;
} md_h5_shape;
enum { MD_H5_RANK_MOST = 8 };

/* Extents of the dataset; returns their number. */
int md_h5_extents(const md_h5_shape *shape, const int dims[MD_DIMS],
                  hsize_t extents[MD_H5_RANK_MOST]);
/* Bytes of a site (of one lead index). */
size_t md_h5_site_bytes(const md_h5_shape *shape);
/* Creates it in chunks of at most 4 MB that no rank border cuts, with Fletcher32. All ranks call
 * the same. */
md_status md_h5_create_sites(md_context *context, const char *path, hid_t file, const char *name,
                             const md_geometry *geometry, const md_h5_shape *shape, hid_t *dataset);
/* Opens it and checks element type, extents and that all of it is stored. In a child; MD_INPUT. */
md_status md_h5_open_sites(md_context *context, const char *path, hid_t file, const char *name,
                           const int dims[MD_DIMS], const md_h5_shape *shape, hid_t *dataset);
/* Sites [origin, origin + extent) of the lattice; x,y,z,t. */
typedef struct md_h5_box {
  int origin[MD_DIMS], extent[MD_DIMS];
} md_h5_box;
md_h5_box md_h5_slab_box(const md_geometry *geometry, const md_slab *slab);
/* Writes one slab of one lead index from raw. All ranks call the same, each for its slab; local in
 * its errors. */
md_status md_h5_write_slab(md_context *context, const char *path, hid_t dataset,
                           const md_geometry *geometry, const md_h5_shape *shape, int lead,
                           const md_slab *slab, const void *raw);
/* Reads the sites of one lead index into raw; where a chunk's Fletcher32 fails, *damaged is raised
 * and the data are read all the same. In a child. */
md_status md_h5_read_box(md_context *context, const char *path, hid_t dataset,
                         const md_h5_shape *shape, int lead, const md_h5_box *box, void *raw,
                         long long *damaged);

#endif
