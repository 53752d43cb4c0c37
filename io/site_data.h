#ifndef MD_IO_SITE_DATA_H
#define MD_IO_SITE_DATA_H

#include "io/site_format.h"
#include "io/slabs.h"
#include "lattice/gauge/gauge.h"

/* Adds another part of the same kind. */
void md_checksum_add(md_checksum *sum, const md_checksum *part);
/* Combines the parts of all ranks. Collective. */
void md_checksum_combine(const md_context *context, md_checksum *sum);
/* sum29/sum31 and the like, with the names of the kind, into text. */
void md_checksum_print(const md_checksum *sum, char *text, size_t bytes);

/* Brings slab i of the plan from a file to raw. Called by the thread that has entered MPI. */
typedef md_status md_slab_read(md_context *context, void *file, int i, void *raw);

/* Reads the slabs of the plan in turn by `read`, adds them to *sum and stores their links; gauge
 * NULL: only the checksum. While the first thread reads a slab the others unpack the one before.
 * raw: two buffers for a slab each. Stops at the first status that is not MD_OK. Threaded;
 * collective when `read` is. */
md_status md_sites_read(md_context *context, const md_geometry *geometry, const md_slab_plan *plan,
                        const md_site_format *format, md_slab_read *read, void *file, void *raw[2],
                        md_gauge *gauge, md_checksum *sum);
/* Assigns raw from the links and adds the slab's part to *sum. Local, threaded. */
void md_sites_pack(const md_geometry *geometry, const md_slab *slab, const md_site_format *format,
                   const md_gauge *gauge, void *raw, md_checksum *sum);

#endif
