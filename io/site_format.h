#ifndef MD_IO_SITE_FORMAT_H
#define MD_IO_SITE_FORMAT_H

#include "lattice/geometry/conventions.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
