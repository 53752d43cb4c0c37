#ifndef MD_IO_PAYLOAD_H
#define MD_IO_PAYLOAD_H

#include "io/lattice_format.h"

/* Links that lie in a file as one run of sites, between a head and a tail (LIME, MILC, NERSC):
 * MPI-IO with every rank's part as a subarray. */

/* As md_lattice_format.read. */
md_status md_payload_read(md_context *context, const char *path, const md_lattice_header *header,
                          const md_geometry *geometry, md_gauge *gauge, md_checksum *checksum);

/* What stands before and behind the links; the length of the head must not depend on the
 * checksum. Allocated by compose, released with free(). */
typedef struct md_payload_frame {
  char *head, *tail;
  size_t head_bytes, tail_bytes;
} md_payload_frame;
typedef md_status (*md_payload_compose)(md_context *context, const md_lattice_header *header,
                                        md_payload_frame *frame);

/* Writes head, links and tail; header->site and checksum.kind are given, offset and checksum are
 * assigned. Space for the whole file is reserved first, so that a full disk is met before
 * anything collective. Collective. */
md_status md_payload_write(md_context *context, const char *path, md_lattice_header *header,
                           const md_gauge *gauge, md_payload_compose compose);

/* Empties the file `path` and gives it `bytes` of disk: MD_ENVIRONMENT when the disk or a limit
 * does not allow them. Collective writes of MPI-IO may hang or lose the error when a disk fills up
 * under them, so that must be met before. Rank 0 acts, all agree. Collective. */
md_status md_reserve(md_context *context, const char *path, int64_t bytes);
/* The same for a file that exists, whose length stays: blocks are kept behind its end until it is
 * closed at its final length. Nothing is done on file systems that do not know this. */
md_status md_reserve_behind(md_context *context, const char *path, int64_t bytes);

#endif
