#include "io/child.h"
#include "io/hdf5_chunks.h"
#include "io/hdf5_lattice.h"
#include "io/read_ahead.h"

#include <stdlib.h>
#include <string.h>

/* The links of a file that was described. Chunks of the usual kind are read here, straight from
 * where a child process found them; everything else is read by the library in that child. */
enum { SLAB_BYTES = 16 << 20, OPEN = -1 }; /* requests: OPEN, then numbers of slabs */

/* What child and parent both see. */
typedef struct common {
  md_h5_chunk_table table;
  long long damaged; /* of the slab that was asked for */
  _Alignas(64) unsigned char slab[];
} common;

typedef struct reader {
  const char *path;
  const md_lattice_header *header;
  const md_geometry *geometry;
  md_h5_shape shape;
  md_slab_plan plan;
  size_t site_bytes;
  hid_t file, dataset; /* in the child */
  md_child child;
  md_read_ahead *ahead;
  md_h5_chunks chunks;
  bool straight; /* as long as all that was met was as it should be */
  long long damaged;
} reader;

static md_status open_in_child(md_context *context, reader *r, common *c) {
  MD_TRY(md_h5_open(context, r->path, &r->file));
  MD_TRY(md_h5_open_sites(context, r->path, r->file, MD_H5_LINKS, r->header->dims, &r->shape,
                          &r->dataset));
  md_h5_chunks_find(r->file, r->dataset, r->header->dims, &r->shape, &c->table);
  return MD_OK;
}

static md_status serve(md_context *context, void *state, int request, void *shared) {
  reader *r = state;
  common *c = shared;
  if (request == OPEN) return open_in_child(context, r, c);
  const md_slab slab = md_slab_at(r->geometry, &r->plan, request);
  c->damaged = 0;
  return md_h5_read_slab(context, r->path, r->dataset, r->geometry, &r->shape, 0, &slab, c->slab,
                         &c->damaged);
}

static md_status read_slab(md_context *context, void *file, int i, void *raw) {
  reader *r = file;
  const md_slab slab = md_slab_at(r->geometry, &r->plan, i);
  const common *c = r->child.shared;
  md_read_ahead_advance(r->ahead);
  r->straight = r->straight && md_h5_chunks_read(&r->chunks, &slab, raw);
  if (r->straight) return MD_OK;
  MD_TRY(md_child_ask(context, &r->child, i));
  memcpy(raw, c->slab, (size_t)md_slab_sites(r->geometry, &slab) * r->site_bytes);
  if (c->damaged > 0) r->damaged++;
  return MD_OK;
}

/* This rank's part, with a child that has it open; no communication. */
static md_status read_part(md_context *context, reader *r, md_gauge *gauge, md_checksum *checksum) {
  void *raw[2];
  MD_TRY(md_child_ask(context, &r->child, OPEN));
  const common *c = r->child.shared;
  MD_TRY(md_slab_buffers(context, r->geometry, &r->plan, r->site_bytes, raw));
  /* Chunks lie nearly in the order of their sites: good enough for a hint. */
  r->ahead = md_read_ahead_start(r->path, r->geometry, &r->plan, 0, r->site_bytes);
  r->straight = md_h5_chunks_open(r->path, &c->table, r->geometry, &r->shape, &r->chunks);
  const md_status status = md_sites_read(context, r->geometry, &r->plan, &r->header->site,
                                         read_slab, r, raw, gauge, checksum);
  checksum->damaged += r->damaged;
  md_h5_chunks_close(&r->chunks);
  md_read_ahead_stop(r->ahead);
  free(raw[0]);
  free(raw[1]);
  return status;
}

md_status md_h5_lattice_read(md_context *context, const char *path, const md_lattice_header *header,
                             const md_geometry *geometry, md_gauge *gauge, md_checksum *checksum) {
  const size_t site_bytes = md_site_bytes(&header->site);
  reader r = {.path = path,
              .header = header,
              .geometry = geometry,
              .shape = md_h5_links_shape(header->site.real_bytes),
              .plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, header->planes),
              .site_bytes = site_bytes,
              .chunks = {.file = -1}};
  const size_t shared = sizeof(common) + md_slab_bytes(geometry, &r.plan, site_bytes);
  *checksum = (md_checksum){.kind = header->checksum.kind};
  md_status status = md_child_start(context, path, serve, &r, shared, &r.child);
  if (status == MD_OK) status = read_part(context, &r, gauge, checksum);
  md_child_stop(&r.child);
  status = md_agree(context, status);
  if (status == MD_OK) md_checksum_combine(context, checksum);
  return status;
}
