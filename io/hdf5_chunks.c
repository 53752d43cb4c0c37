#include "io/hdf5_chunks.h"
#include "io/fletcher32.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SUM_BYTES = 4, MOST_CHUNKS = 1 << 14 }; /* finding all takes the square of their number */

/* Chunks with Fletcher32 alone, of one t and whole sites; extent and bytes are assigned. */
static bool is_plain(hid_t file, hid_t dataset, const md_h5_shape *shape, md_h5_chunks *c) {
  const int ones[MD_DIMS] = {1, 1, 1, 1};
  hsize_t chunk[H5S_MAX_RANK] = {0}, site[MD_H5_RANK_MOST], block = 0;
  unsigned flags = 0;
  size_t none = 0;
  const int rank = md_h5_extents(shape, ones, site);
  const hid_t create = H5Dget_create_plist(dataset), opened = H5Fget_create_plist(file);
  const hid_t there = H5Dget_type(dataset), here = md_h5_complex(shape->real_bytes, false);
  bool plain =
      shape->lead == 0 && !shape->one_parity && H5Tequal(there, here) > 0 &&
      H5Pget_userblock(opened, &block) >= 0 && block == 0 && H5Pget_layout(create) == H5D_CHUNKED &&
      H5Pget_nfilters(create) == 1 &&
      H5Pget_filter2(create, 0, &flags, &none, NULL, 0, NULL, NULL) == H5Z_FILTER_FLETCHER32 &&
      H5Pget_chunk(create, H5S_MAX_RANK, chunk) == rank && chunk[0] == 1;
  for (int i = MD_DIMS; i < rank; i++) plain = plain && chunk[i] == site[i];
  c->bytes = c->site_bytes = md_h5_site_bytes(shape);
  for (int d = 0; d < MD_DIMS; d++) {
    const hsize_t extent = chunk[MD_T - d];
    plain = plain && extent > 0 && extent <= (hsize_t)c->geometry->global[d];
    c->extent[d] = plain ? (int)extent : 1;
    c->count[d] = (c->geometry->global[d] + c->extent[d] - 1) / c->extent[d];
    c->bytes *= (size_t)c->extent[d];
  }
  H5Tclose(here);
  H5Tclose(there);
  H5Pclose(opened);
  H5Pclose(create);
  return plain;
}

static int64_t chunk_number(const md_h5_chunks *c, const int at[MD_DIMS]) {
  return ((at[3] * (int64_t)c->count[2] + at[2]) * c->count[1] + at[1]) * c->count[0] + at[0];
}

/* Where the chunks are. */
static bool find(hid_t dataset, md_h5_chunks *c) {
  hsize_t stored = 0, origin[H5S_MAX_RANK], bytes;
  haddr_t address;
  int64_t all = 1;
  for (int d = 0; d < MD_DIMS; d++) all *= c->count[d];
  const hid_t space = H5Dget_space(dataset);
  bool found = all <= MOST_CHUNKS && H5Dget_num_chunks(dataset, space, &stored) >= 0 &&
               stored == (hsize_t)all;
  if (found) c->offset = calloc((size_t)all, sizeof *c->offset);
  found = found && c->offset;
  for (hsize_t i = 0; found && i < stored; i++) {
    unsigned skipped = 0; /* filters */
    found = H5Dget_chunk_info(dataset, space, i, origin, &skipped, &address, &bytes) >= 0 &&
            skipped == 0 && address != HADDR_UNDEF && bytes == c->bytes + SUM_BYTES;
    int at[MD_DIMS];
    for (int d = 0; d < MD_DIMS && found; d++) at[d] = (int)origin[MD_T - d] / c->extent[d];
    if (found) c->offset[chunk_number(c, at)] = (int64_t)address;
  }
  H5Sclose(space);
  return found;
}

bool md_h5_chunks_open(const char *path, hid_t file, hid_t dataset, const md_geometry *geometry,
                       const md_h5_shape *shape, md_h5_chunks *chunks) {
  *chunks = (md_h5_chunks){.file = -1, .geometry = geometry};
  bool open_now = is_plain(file, dataset, shape, chunks) && find(dataset, chunks);
  if (open_now) {
    chunks->chunk = malloc(chunks->bytes);
    chunks->file = open(path, O_RDONLY | O_CLOEXEC);
    open_now = chunks->chunk && chunks->file >= 0;
  }
  if (!open_now) md_h5_chunks_close(chunks);
  return open_now;
}

void md_h5_chunks_close(md_h5_chunks *chunks) {
  if (chunks->file >= 0) close(chunks->file);
  free(chunks->offset);
  free(chunks->chunk);
  *chunks = (md_h5_chunks){.file = -1};
}

/* Data of a chunk and the checksum behind them, which must be theirs. */
static bool read_chunk(const md_h5_chunks *c, int64_t offset, unsigned char *data) {
  unsigned char sum[SUM_BYTES];
  const size_t all = c->bytes + SUM_BYTES;
  for (size_t done = 0; done < all;) {
    const size_t left = done < c->bytes ? c->bytes - done : 0, in_sum = done - (c->bytes - left);
    const struct iovec parts[2] = {{data + (c->bytes - left), left},
                                   {sum + in_sum, SUM_BYTES - in_sum}};
    const ssize_t moved = preadv(c->file, parts, 2, offset + (int64_t)done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    done += (size_t)moved;
  }
  const uint32_t there =
      (uint32_t)sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16 | (uint32_t)sum[3] << 24;
  return md_fletcher32(data, c->bytes) == there;
}

/* A box of sites [begin, end) in each direction. */
typedef struct box {
  int begin[MD_DIMS], end[MD_DIMS];
} box;

static int64_t site_in(const box *b, const int x[MD_DIMS]) {
  int64_t site = 0;
  for (int d = MD_T; d >= MD_X; d--) site = site * (b->end[d] - b->begin[d]) + x[d] - b->begin[d];
  return site;
}

/* Sites of the chunk follow each other in the slab too. */
static bool is_run(const box *slab, const box *chunk) {
  for (int d = 0; d < MD_DIMS; d++)
    if (chunk->begin[d] < slab->begin[d] || chunk->end[d] > slab->end[d]) return false;
  const bool rows = chunk->end[0] - chunk->begin[0] == slab->end[0] - slab->begin[0];
  const bool planes = chunk->end[1] - chunk->begin[1] == slab->end[1] - slab->begin[1];
  return rows && (planes || chunk->end[2] - chunk->begin[2] == 1);
}

/* Copies what both have, row by row. */
static void copy_common(const md_h5_chunks *c, const box *slab, const box *chunk,
                        unsigned char *raw) {
  box both;
  for (int d = 0; d < MD_DIMS; d++) {
    both.begin[d] = chunk->begin[d] > slab->begin[d] ? chunk->begin[d] : slab->begin[d];
    both.end[d] = chunk->end[d] < slab->end[d] ? chunk->end[d] : slab->end[d];
  }
  const size_t row = (size_t)(both.end[0] - both.begin[0]) * c->site_bytes;
  for (int z = both.begin[2]; z < both.end[2]; z++)
    for (int y = both.begin[1]; y < both.end[1]; y++) {
      const int x[MD_DIMS] = {both.begin[0], y, z, both.begin[3]};
      memcpy(raw + (size_t)site_in(slab, x) * c->site_bytes,
             c->chunk + (size_t)site_in(chunk, x) * c->site_bytes, row);
    }
}

static bool read_one(const md_h5_chunks *c, const box *slab, const int at[MD_DIMS],
                     unsigned char *raw) {
  box chunk;
  for (int d = 0; d < MD_DIMS; d++) {
    chunk.begin[d] = at[d] * c->extent[d];
    chunk.end[d] = chunk.begin[d] + c->extent[d]; /* stored whole also at an edge */
  }
  const int64_t offset = c->offset[chunk_number(c, at)];
  if (is_run(slab, &chunk))
    return read_chunk(c, offset, raw + (size_t)site_in(slab, chunk.begin) * c->site_bytes);
  if (!read_chunk(c, offset, c->chunk)) return false;
  copy_common(c, slab, &chunk, raw);
  return true;
}

bool md_h5_chunks_read(const md_h5_chunks *c, const md_slab *slab, void *raw) {
  const md_geometry *g = c->geometry;
  box s;
  int first[MD_DIMS], last[MD_DIMS], at[MD_DIMS];
  const int begin[MD_DIMS] = {0, 0, slab->z, slab->t};
  const int extent[MD_DIMS] = {g->local[0], g->local[1], slab->nz, slab->nt};
  for (int d = 0; d < MD_DIMS; d++) {
    s.begin[d] = g->origin[d] + begin[d];
    s.end[d] = s.begin[d] + extent[d];
    first[d] = s.begin[d] / c->extent[d];
    last[d] = (s.end[d] - 1) / c->extent[d];
  }
  for (at[3] = first[3]; at[3] <= last[3]; at[3]++)
    for (at[2] = first[2]; at[2] <= last[2]; at[2]++)
      for (at[1] = first[1]; at[1] <= last[1]; at[1]++)
        for (at[0] = first[0]; at[0] <= last[0]; at[0]++)
          if (!read_one(c, &s, at, raw)) return false;
  return true;
}
