#ifndef MD_IO_SITE_DATA_H
#define MD_IO_SITE_DATA_H

#include "lattice/gauge.h"

/* The links of a site as every lattice format has them: sites in lexicographic order, x fastest;
 * four links mu = x,y,z,t; rows; columns; re, im. */
typedef struct md_site_format {
  int rows;       /* 3, or 2: the third row is the conjugate cross product of the others */
  int real_bytes; /* 4 or 8 */
  bool big_endian;
} md_site_format;

static inline size_t md_site_bytes(const md_site_format *format) {
  return (size_t)MD_DIMS * format->rows * 6 * format->real_bytes;
}

/* Checksums of lattice files; r is the lexicographic index of a site in the whole lattice.
 *   SciDAC (QIO): c = crc32 of the site's bytes, big-endian; a ^= rotl(c, r mod 29),
 *     b ^= rotl(c, r mod 31).
 *   MILC v5: the same with every 32-bit word (value in file byte order) for c and the number of
 *     the word for r.
 *   NERSC: a = sum of all 32-bit words modulo 2^32. */
typedef enum md_checksum_kind {
  MD_CHECKSUM_NONE,
  MD_CHECKSUM_SCIDAC,
  MD_CHECKSUM_MILC,
  MD_CHECKSUM_NERSC
} md_checksum_kind;

typedef struct md_checksum {
  md_checksum_kind kind;
  uint32_t a, b;
  long long damaged; /* parts whose own checksum failed (HDF5: Fletcher32 of a chunk) */
} md_checksum;

/* Adds another part of the same kind. */
void md_checksum_add(md_checksum *sum, const md_checksum *part);
/* Combines the parts of all ranks. Collective. */
void md_checksum_combine(const md_context *context, md_checksum *sum);
/* sum29/sum31 and the like, with the names of the kind, into text. */
void md_checksum_print(const md_checksum *sum, char *text, size_t bytes);

/* A part of the rank's sites that is held in memory at once: all x and y, and either several
 * whole time slices or some z planes of one. Extents and origin are local. */
typedef struct md_slab {
  int z, nz, t, nt;
} md_slab;

typedef struct md_slab_plan {
  int z_planes, t_slices, count;
} md_slab_plan;

/* Slabs of at most about `most_bytes` (one plane at least); z_planes is a multiple of z_multiple
 * where that divides the extent. The same on every rank. */
md_slab_plan md_slab_plan_make(const md_geometry *geometry, size_t site_bytes, size_t most_bytes,
                               int z_multiple);
md_slab md_slab_at(const md_geometry *geometry, const md_slab_plan *plan, int i);
static inline int64_t md_slab_sites(const md_geometry *geometry, const md_slab *slab) {
  return (int64_t)slab->nt * slab->nz * geometry->local[1] * geometry->local[0];
}

/* Tells the system that the sites of a slab will be read soon from a file that holds the lattice's
 * sites from `offset` on, so that the disk works while the slab before is unpacked. A hint; slab
 * numbers beyond the plan do nothing. Local. */
void md_slab_announce(const md_geometry *geometry, const md_slab_plan *plan, int i, int file,
                      int64_t offset, size_t site_bytes);

/* Adds the slab's part to *sum and stores its links; raw is used as work space. gauge NULL: only
 * the checksum. Local, threaded. */
void md_sites_unpack(const md_geometry *geometry, const md_slab *slab, const md_site_format *format,
                     void *raw, md_gauge *gauge, md_checksum *sum);
/* Assigns raw from the links and adds the slab's part to *sum. Local, threaded. */
void md_sites_pack(const md_geometry *geometry, const md_slab *slab, const md_site_format *format,
                   const md_gauge *gauge, void *raw, md_checksum *sum);

#endif
