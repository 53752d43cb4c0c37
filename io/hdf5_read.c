#include "io/child.h"
#include "io/hdf5_chunks.h"
#include "io/hdf5_lattice.h"
#include "io/read_ahead.h"

#include <stdlib.h>
#include <string.h>

/* The links of a file that was described. Chunks of the usual kind are read here, straight from
 * where a child process found them; everything else is read by the library in that child. */
enum { SLAB_BYTES = 16 << 20 };

typedef struct reader {
  const char *path;
  const md_lattice_header *header;
  const md_geometry *geometry;
  md_h5_shape shape;
  md_slab_plan plan;
  size_t site_bytes;
  md_child child;
  md_read_ahead *ahead;
  md_h5_chunks chunks;
  bool straight; /* as long as all that was met was as it should be */
  long long damaged;
} reader;

static md_status read_slab(md_context *context, void *file, int i, void *raw) {
  reader *r = file;
  const md_slab slab = md_slab_at(r->geometry, &r->plan, i);
  md_read_ahead_advance(r->ahead);
  r->straight = r->straight && md_h5_chunks_read(&r->chunks, &slab, raw);
  if (r->straight) return MD_OK;
  MD_TRY(md_child_read_slab(context, &r->child, 0, r->geometry, &r->shape, 0, &slab));
  memcpy(raw, r->child.shared, (size_t)md_slab_sites(r->geometry, &slab) * r->site_bytes);
  if (r->child.number > 0) r->damaged++;
  return MD_OK;
}

/* The child opens the links and says where their chunks are. */
static md_status open_links(md_context *context, reader *r) {
  md_child_request request = {.what = MD_CHILD_CHUNKS, .shape = r->shape};
  memcpy(request.dims, r->header->dims, sizeof request.dims);
  MD_TRY(md_child_open_sites(context, &r->child, MD_H5_LINKS, r->header->dims, &r->shape));
  return md_child_ask(context, &r->child, &request);
}

/* This rank's part, with a child that has it open; no communication. */
static md_status read_part(md_context *context, reader *r, md_gauge *gauge, md_checksum *checksum) {
  void *raw[2];
  MD_TRY(open_links(context, r));
  MD_TRY(md_slab_buffers(context, r->geometry, &r->plan, r->site_bytes, raw));
  /* Chunks lie nearly in the order of their sites: good enough for a hint. */
  r->ahead = md_read_ahead_start(r->path, r->geometry, &r->plan, 0, r->site_bytes);
  r->straight = md_h5_chunks_open(r->path, r->child.shared, r->geometry, &r->shape, &r->chunks);
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
  const size_t slab = md_slab_bytes(geometry, &r.plan, site_bytes);
  const size_t shared = slab > sizeof(md_h5_chunk_table) ? slab : sizeof(md_h5_chunk_table);
  *checksum = (md_checksum){.kind = header->checksum.kind};
  md_status status = md_child_start(context, path, shared, &r.child);
  if (status == MD_OK) status = read_part(context, &r, gauge, checksum);
  md_child_stop(&r.child);
  status = md_agree(context, status);
  if (status == MD_OK) md_checksum_combine(context, checksum);
  return status;
}
