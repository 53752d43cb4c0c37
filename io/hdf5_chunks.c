#include "io/hdf5_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Fletcher32. Four pairs of words of 16 bits; the operators work lane by lane. */
typedef uint32_t pairs __attribute__((vector_size(16)));
enum { MODULUS = 65535, LANES = 8, ROWS = 256 }; /* 32 bits hold the sums of as many rows */

/* Sum and weighted sum of words 0 .. n-1, weights n .. 1, modulo MODULUS. */
typedef struct sums {
  uint64_t plain, weighted;
} sums;

/* Adds what `half` 0 or 1 of each pair has summed: word k LANES + l of a row has the weight
 * LANES (rows - k) - l. */
static void add_lanes(pairs plain, pairs weighted, int half, sums *all) {
  for (int i = 0; i < LANES / 2; i++) {
    const uint64_t l = (uint64_t)(2 * i + half);
    all->plain += plain[i];
    all->weighted += (uint64_t)LANES * weighted[i] - l * plain[i];
  }
}

/* Words in the order of memory, `rows` of LANES; each lane sums for itself. */
static sums add_rows(const unsigned char *data, int rows) {
  pairs low = {0}, high = {0}, low_sum = {0}, high_sum = {0}, now;
  for (int k = 0; k < rows; k++) {
    memcpy(&now, data + (size_t)k * sizeof now, sizeof now);
    low += now & 0xffff;
    high += now >> 16;
    low_sum += low;
    high_sum += high;
  }
  sums all = {0, 0};
  add_lanes(low, low_sum, MD_HOST_BIG_ENDIAN, &all);
  add_lanes(high, high_sum, !MD_HOST_BIG_ENDIAN, &all);
  return all;
}

static void append(sums *all, uint64_t words, sums next) {
  all->weighted = (all->weighted + words * all->plain + next.weighted) % MODULUS;
  all->plain = (all->plain + next.plain) % MODULUS;
}

/* A word with its bytes swapped is 256 times the word, modulo 2^16 - 1. */
static uint32_t big_endian_sum(uint64_t sum, int any) {
  const uint32_t value = (uint32_t)(sum * (MD_HOST_BIG_ENDIAN ? 1 : 256) % MODULUS);
  return value == 0 && any ? MODULUS : value;
}

uint32_t md_fletcher32(const void *data, size_t bytes) {
  enum { ROW_BYTES = 2 * LANES };
  const unsigned char *at = data, *end = at + bytes / 2 * 2;
  sums all = {0, 0};
  uint64_t any = 0; /* the sums before they are reduced: zero for zeros alone */
  while (at < end) {
    const size_t rows = (size_t)(end - at) / ROW_BYTES;
    if (rows > 0) {
      const int now = rows < ROWS ? (int)rows : ROWS;
      const sums next = add_rows(at, now);
      any |= next.plain;
      append(&all, (uint64_t)now * LANES, next);
      at += now * ROW_BYTES;
    } else {
      uint16_t word;
      memcpy(&word, at, sizeof word);
      any |= word;
      append(&all, 1, (sums){word, word});
      at += sizeof word;
    }
  }
  return big_endian_sum(all.weighted, any != 0) << 16 | big_endian_sum(all.plain, any != 0);
}

enum { SUM_BYTES = 4 };

/* Chunks of a lattice in each direction, the last ones perhaps only begun. Their product; 0 when
 * an extent is none or there are too many. */
static int64_t count_chunks(const int dims[MD_DIMS], const int extent[MD_DIMS],
                            int count[MD_DIMS]) {
  int64_t all = 1;
  for (int d = 0; d < MD_DIMS; d++) {
    if (extent[d] < 1 || extent[d] > dims[d]) return 0;
    count[d] = (dims[d] - 1) / extent[d] + 1;
    all *= count[d]; /* below 2^15 each */
    if (all > MD_H5_CHUNKS_MOST) return 0;
  }
  return all;
}

/* Below 2^63: extents below 2^15 in three directions, sites of less than 2^16 bytes. */
static size_t chunk_bytes(const md_h5_shape *shape, const int extent[MD_DIMS]) {
  size_t bytes = md_h5_site_bytes(shape);
  for (int d = 0; d < MD_T; d++) bytes *= (size_t)extent[d];
  return bytes;
}

/* Chunks with Fletcher32 alone, of one t and whole sites; extent is assigned. */
static bool is_plain(hid_t file, hid_t dataset, const int dims[MD_DIMS], const md_h5_shape *shape,
                     int extent[MD_DIMS]) {
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
  for (int d = 0; d < MD_DIMS; d++) {
    plain = plain && chunk[MD_T - d] > 0 && chunk[MD_T - d] <= (hsize_t)dims[d];
    extent[d] = plain ? (int)chunk[MD_T - d] : 1;
  }
  MD_H5_CLOSE(here, there, opened, create);
  return plain;
}

/* Number of the chunk that starts at `origin` in the dataset; -1 where none does. */
static int64_t chunk_number(const hsize_t *origin, const int dims[MD_DIMS],
                            const int extent[MD_DIMS], const int count[MD_DIMS]) {
  int64_t number = 0;
  for (int d = MD_T; d >= MD_X; d--) {
    const hsize_t at = origin[MD_T - d], length = (hsize_t)extent[d];
    if (at >= (hsize_t)dims[d] || at % length != 0) return -1;
    number = number * count[d] + (int64_t)(at / length);
  }
  return number;
}

void md_h5_chunks_find(hid_t file, hid_t dataset, const int dims[MD_DIMS], const md_h5_shape *shape,
                       md_h5_chunk_table *table) {
  hsize_t stored = 0;
  int count[MD_DIMS];
  table->plain = 0;
  if (!is_plain(file, dataset, dims, shape, table->extent)) return;
  const size_t bytes = chunk_bytes(shape, table->extent) + SUM_BYTES;
  const int64_t all = count_chunks(dims, table->extent, count);
  const hid_t space = H5Dget_space(dataset);
  bool found = all > 0 && H5Dget_num_chunks(dataset, space, &stored) >= 0 && stored == (hsize_t)all;
  for (int64_t i = 0; found && i < all; i++) table->offset[i] = -1;
  for (hsize_t i = 0; found && i < stored; i++) {
    hsize_t origin[H5S_MAX_RANK] = {0}, there = 0;
    unsigned skipped = 0; /* filters */
    haddr_t address = HADDR_UNDEF;
    found = H5Dget_chunk_info(dataset, space, i, origin, &skipped, &address, &there) >= 0 &&
            skipped == 0 && address <= INT64_MAX && there == bytes;
    const int64_t at = found ? chunk_number(origin, dims, table->extent, count) : -1;
    found = at >= 0 && table->offset[at] == -1; /* each of them once, so all of them */
    if (found) table->offset[at] = (int64_t)address;
  }
  MD_H5_CLOSE(space);
  table->plain = found;
}

/* Takes what the table says, as far as it can be true. */
static bool fits(md_h5_chunks *c, const md_h5_chunk_table *table, const md_h5_shape *shape) {
  struct stat there;
  memcpy(c->extent, table->extent, sizeof c->extent);
  const int64_t all = count_chunks(c->geometry->global, c->extent, c->count);
  if (table->plain != 1 || all == 0 || c->extent[MD_T] != 1 || fstat(c->file, &there) != 0)
    return false;
  c->site_bytes = md_h5_site_bytes(shape);
  c->bytes = chunk_bytes(shape, c->extent);
  const int64_t last = (int64_t)there.st_size - (int64_t)c->bytes - SUM_BYTES;
  if (last < 0) return false; /* so a chunk's memory is no more than the file */
  c->offset = malloc((size_t)all * sizeof *c->offset);
  c->chunk = malloc(c->bytes);
  if (!c->offset || !c->chunk) return false;
  memcpy(c->offset, table->offset, (size_t)all * sizeof *c->offset);
  for (int64_t i = 0; i < all; i++)
    if (c->offset[i] < 0 || c->offset[i] > last) return false;
  return true;
}

bool md_h5_chunks_open(const char *path, const md_h5_chunk_table *table,
                       const md_geometry *geometry, const md_h5_shape *shape,
                       md_h5_chunks *chunks) {
  *chunks = (md_h5_chunks){.file = open(path, O_RDONLY | O_CLOEXEC), .geometry = geometry};
  if (chunks->file >= 0 && fits(chunks, table, shape)) return true;
  md_h5_chunks_close(chunks);
  return false;
}

void md_h5_chunks_close(md_h5_chunks *chunks) {
  if (chunks->file >= 0) close(chunks->file);
  MD_FREE(chunks->offset, chunks->chunk);
  *chunks = (md_h5_chunks){.file = -1};
}

/* Data of a chunk and the checksum behind them, which must be theirs. */
static bool read_chunk(const md_h5_chunks *c, int64_t offset, unsigned char *data) {
  uint32_t sum; /* little-endian */
  const size_t all = c->bytes + SUM_BYTES;
  for (size_t done = 0; done < all;) {
    const size_t left = done < c->bytes ? c->bytes - done : 0, in_sum = done - (c->bytes - left);
    const struct iovec parts[2] = {{data + (c->bytes - left), left},
                                   {(char *)&sum + in_sum, SUM_BYTES - in_sum}};
    const ssize_t moved = preadv(c->file, parts, 2, offset + (int64_t)done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    done += (size_t)moved;
  }
  return md_fletcher32(data, c->bytes) == le32toh(sum);
}

static int64_t site_in(const md_h5_box *b, const int x[MD_DIMS]) {
  int64_t site = 0;
  for (int d = MD_T; d >= MD_X; d--) site = site * b->extent[d] + x[d] - b->origin[d];
  return site;
}

static int end_of(const md_h5_box *b, int d) {
  return b->origin[d] + b->extent[d];
}

/* Sites of the chunk follow each other in the slab too. */
static bool is_run(const md_h5_box *slab, const md_h5_box *chunk) {
  for (int d = 0; d < MD_DIMS; d++)
    if (chunk->origin[d] < slab->origin[d] || end_of(chunk, d) > end_of(slab, d)) return false;
  return chunk->extent[0] == slab->extent[0] &&
         (chunk->extent[1] == slab->extent[1] || chunk->extent[2] == 1);
}

/* Copies what both have, row by row. */
static void copy_common(const md_h5_chunks *c, const md_h5_box *slab, const md_h5_box *chunk,
                        unsigned char *raw) {
  int begin[MD_DIMS], end[MD_DIMS];
  for (int d = 0; d < MD_DIMS; d++) {
    begin[d] = chunk->origin[d] > slab->origin[d] ? chunk->origin[d] : slab->origin[d];
    end[d] = end_of(chunk, d) < end_of(slab, d) ? end_of(chunk, d) : end_of(slab, d);
  }
  const size_t row = (size_t)(end[0] - begin[0]) * c->site_bytes;
  for (int z = begin[2]; z < end[2]; z++)
    for (int y = begin[1]; y < end[1]; y++) {
      const int x[MD_DIMS] = {begin[0], y, z, begin[3]};
      memcpy(raw + (size_t)site_in(slab, x) * c->site_bytes,
             c->chunk + (size_t)site_in(chunk, x) * c->site_bytes, row);
    }
}

static bool read_one(const md_h5_chunks *c, const md_h5_box *slab, const int at[MD_DIMS],
                     unsigned char *raw) {
  md_h5_box chunk;
  int64_t number = 0;
  for (int d = MD_T; d >= MD_X; d--) {
    chunk.origin[d] = at[d] * c->extent[d];
    chunk.extent[d] = c->extent[d]; /* stored whole also at an edge */
    number = number * c->count[d] + at[d];
  }
  const int64_t offset = c->offset[number];
  if (is_run(slab, &chunk))
    return read_chunk(c, offset, raw + (size_t)site_in(slab, chunk.origin) * c->site_bytes);
  if (!read_chunk(c, offset, c->chunk)) return false;
  copy_common(c, slab, &chunk, raw);
  return true;
}

bool md_h5_chunks_read(const md_h5_chunks *c, const md_slab *slab, void *raw) {
  const md_h5_box s = md_h5_slab_box(c->geometry, slab);
  int first[MD_DIMS], last[MD_DIMS], at[MD_DIMS];
  for (int d = 0; d < MD_DIMS; d++) {
    first[d] = s.origin[d] / c->extent[d];
    last[d] = (end_of(&s, d) - 1) / c->extent[d];
  }
  for (at[3] = first[3]; at[3] <= last[3]; at[3]++)
    for (at[2] = first[2]; at[2] <= last[2]; at[2]++)
      for (at[1] = first[1]; at[1] <= last[1]; at[1]++)
        for (at[0] = first[0]; at[0] <= last[0]; at[0]++)
          if (!read_one(c, &s, at, raw)) return false;
  return true;
}
