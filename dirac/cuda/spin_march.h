#pragma once

#include "dirac/backend.h"
#include "dirac/march_share.h"

MD_C_BEGIN

/* The march of quarks with four spins on CUDA cores: one right-hand side in double or single on a
 * lattice that is undivided or divided along t. A tile is a box of sites of one parity along x/2, y
 * and z; a block walks along t through the column above it (dirac/march_share.h). The source sites
 * of a time slice of the tile and around it come once into a ring of slots in shared memory, whole
 * rows along x by a copy; the links of the tile's sites come into another, one direction of all
 * sites in a slot. */
typedef struct md_spin_march {
  int x, y, z, sites;           /* of a tile; x 0: no march */
  int half, ly, lz, lt;         /* of the lattice, half its extent in x */
  int columns;                  /* slices of a site, one thread each */
  int threads, computing;       /* that compute; in whole warps */
  int slots, link_slots;        /* of the rings */
  int spinor_bytes, site_bytes; /* of a column, of a site */
  int centre_bytes, rim_bytes;  /* of a row of the tile, x + 1 sites, and of one around it, x sites:
                                   2 z of these beyond the tile along y, then 2 y along z */
  int result_bytes;             /* from the start of a slot to the results, rows as in the rim, in
                                   whose place they lie where it is large enough */
  int slot_bytes, link_bytes, shared_bytes;
  int tiles; /* of a time slice */
  md_march_share share;
  bool divided; /* along t: other ranks have the slices before the first and after the last one */
  int shift;    /* of a part of the slices: segments of the share begin so much later; */
  bool ends;    /* the first and the last slice of a tile are two columns of the share */
  md_divisor by_row, by_columns, by_y;    /* x columns, columns, y */
  int band;                               /* tiles along y that are walked together */
  md_divisor by_tiles, by_band, by_layer; /* tiles along x, of a band, of it in all of z */
} md_spin_march;

enum {
  MD_SPIN_BARRIERS = 512,  /* bytes in front of the rings */
  MD_SPIN_SLOTS = 2,       /* of sources */
  MD_SPIN_LINK_SLOTS = 16, /* most */
  MD_SPIN_FEEDERS = 64,    /* threads that feed */
  /* Threads that compute at most, in double and in single: with those that feed they leave each 255
   * and 128 registers. */
  MD_SPIN_IN_DOUBLE = 192,
  MD_SPIN_IN_SINGLE = 384
};

/* A tile: its first site along x, and the number of its first row in time slice 0. */
typedef struct md_spin_tile {
  int column, x, row;
} md_spin_tile;
MD_HOST_DEVICE md_spin_tile md_spin_tile_of(const md_spin_march *m, int column) {
  const int layer = md_quotient(column, m->by_layer);
  const int in_layer = column - layer * (int)m->by_layer.by, z = md_quotient(in_layer, m->by_band);
  const int in_band = in_layer - z * (int)m->by_band.by, y = md_quotient(in_band, m->by_tiles);
  md_spin_tile tile;
  tile.column = column;
  tile.x = (in_band - y * (int)m->by_tiles.by) * m->x;
  tile.row = z * m->z * m->ly + (layer * m->band + y) * m->y;
  return tile;
}
/* The number in the lattice of row r = z * y + y of a tile in a time slice. */
MD_HOST_DEVICE int md_spin_row(const md_spin_march *m, const md_spin_tile *tile, int r, int t) {
  const int z = md_quotient(r, m->by_y);
  return tile->row + (t * m->lz + z) * m->ly + r - z * m->y;
}

/* What the x + 1 places of a row of the tile, which begins at x, hold of the source sites of that
 * row: `count` of them from `from` on, at places `place` and on; and beyond the lattice's end the
 * row's edge at edge_place, -1: none. The near neighbour of the h-th output site is at place h, the
 * far one at h + 1, where `up` (bit 0 of md_row); else the other way. */
typedef struct md_spin_centre {
  int from, place, count, edge_place;
} md_spin_centre;
MD_HOST_DEVICE md_spin_centre md_spin_centre_of(const md_spin_march *m, int x, bool up) {
  const bool whole = up ? x + m->x < m->half : x > 0;
  md_spin_centre centre = {x, 0, m->x + whole, -1};
  if (up && !whole) centre.edge_place = m->x;
  if (!up && whole) centre.from = x - 1;
  if (!up && !whole) centre.place = 1, centre.edge_place = 0;
  return centre;
}

/* What a row of the rim holds: the neighbours, in stored direction `direction`
 * (dirac/cuda/stencil.h), of row `of` of the tile. */
typedef struct md_spin_rim {
  int of, direction;
} md_spin_rim;
MD_HOST_DEVICE md_spin_rim md_spin_rim_of(const md_spin_march *m, int r) {
  const int q = r - 2 * m->z; /* of those beyond along z */
  const bool along_y = q < 0, before = along_y ? r < m->z : q < m->y;
  const int z = along_y ? (before ? r : r - m->z) : before ? 0 : m->z - 1;
  const int y = along_y ? (before ? 0 : m->y - 1) : before ? q : q - m->y;
  const md_spin_rim rim = {z * m->y + y, (along_y ? 2 : 4) + before};
  return rim;
}
/* Its inverse, for 2 <= direction <= 5: the row of the tile that is row r's neighbour, where the
 * site h is at the place of row r's far neighbour, or m->y m->z + the row of the rim, with h at h.
 */
MD_HOST_DEVICE int md_spin_neighbour(const md_spin_march *m, int r, int direction) {
  const int z = md_quotient(r, m->by_y), y = r - z * m->y, rows = m->y * m->z;
  if (direction == 2) return y + 1 < m->y ? r + 1 : rows + m->z + z;
  if (direction == 3) return y > 0 ? r - 1 : rows + z;
  if (direction == 4) return z + 1 < m->z ? r + m->y : rows + 2 * m->z + m->y + y;
  return z > 0 ? r - m->y : rows + 2 * m->z + y;
}

/* The march for a request on a GPU, x 0 where there is none: the tile that is done first by an
 * estimate. */
md_spin_march md_spin_march_plan(const md_backend_request *request, const md_geometry *geometry,
                                 const md_device_facts *gpu);
/* The part of a march that serves a range, on an undivided lattice all of it or, share.blocks 0,
 * nothing. */
md_spin_march md_spin_march_part(const md_spin_march *m, md_range range);
/* The next segment of a block, slices t to last of a tile; false at the end. */
MD_HOST_DEVICE bool md_spin_march_next(const md_spin_march *m, int block, md_march_walk *walk,
                                       int *column, int *t, int *last) {
  if (!md_march_next(&m->share, block, walk, column, t, last)) return false;
  const bool upper = m->ends && *column >= m->tiles;
  const int shift = upper ? m->lt - 1 : m->shift;
  if (upper) *column -= m->tiles;
  *t += shift, *last += shift;
  return true;
}
/* order[slot] = site; slots are tile after tile, of each its time slices one after the other, of
 * each its rows. */
void md_spin_march_order(const md_spin_march *m, int32_t *order);

MD_C_END
