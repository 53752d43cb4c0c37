#pragma once

#include "io/lattice_file.h"

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

/* Of the largest slab. */
size_t md_slab_bytes(const md_geometry *geometry, const md_slab_plan *plan, size_t site_bytes);
/* The plan for links as the header has them, in slabs of about 16 MB. */
md_slab_plan md_lattice_slabs(const md_lattice_header *header, const md_geometry *geometry);

/* Bytes of all sites on file. */
int64_t md_lattice_link_bytes(const md_lattice_header *header);
/* Combines the parts of all ranks. Collective. */
void md_checksum_combine(const md_context *context, md_checksum *sum);
/* Its one number, or the pair sum29/sum31 or suma/sumb, in hexadecimal, or "none", into text. */
void md_checksum_print(const md_checksum *sum, char *text, size_t bytes);

/* Brings a slab from a file to raw, or from raw to a file. */
typedef md_status md_slab_move(md_context *context, void *file, const md_slab *slab, void *raw);

/* The fields that lie on a site of a file, of both parities: host, MD_DOUBLE, one right-hand side.
 * Borrowed. */
typedef struct md_site_fields {
  const md_geometry *geometry;
  const md_field *part[MD_PARITIES]; /* [4], or as many as the site has vectors */
} md_site_fields;
static inline md_site_fields md_gauge_sites(const md_gauge *gauge) {
  return (md_site_fields){gauge->geometry, {gauge->links[0], gauge->links[1]}};
}

/* Reads the slabs of this rank in turn by `read`, from a file at `path` (where header->offset says
 * about where they lie, for hints to the system), adds them to *sum and stores their numbers;
 * fields NULL: only the checksum. While the first thread, which calls `read`, waits for a slab the
 * others unpack the one before. Stops at the first status that is not MD_OK. Threaded; collective
 * when `read` is, which `together` says. */
md_status md_sites_read(md_context *context, const char *path, const md_lattice_header *header,
                        const md_geometry *geometry, md_slab_move *read, void *file, bool together,
                        const md_site_fields *fields, md_checksum *sum);
/* Brings the fields into the form of header->site, slab by slab, and hands each to `write`, NULL:
 * none; header->checksum, of which the kind is given, becomes that of all sites. Threaded,
 * collective. */
md_status md_sites_write(md_context *context, md_lattice_header *header,
                         const md_site_fields *fields, md_slab_move *write, void *file);
