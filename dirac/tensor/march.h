#pragma once

#include "dirac/march_share.h"
#include "dirac/tensor/packing.h"

/* The plan of a march, how its blocks share the work and which rows they read: shared by host and
 * device, so that tests without a GPU see what kernels do. */
MD_C_BEGIN

/* The march: stacked for all sites, for all that read no halo, or for the first and the last time
 * slices, of a lattice that whole tiles cover. A tile is a box of sites along x, y and z; the
 * column above it in t is one block's work: it marches along t with the time slices that it reads
 * in shared memory. Some of its warps compute, others feed, that is, fetch the slices to come. */
enum {
  MARCH_REACH = 3,        /* sites of the longer hop of two link fields */
  LONG_WARPS = 8,         /* that compute with two link fields, whose links take more registers */
  LONG_PASSES = 2,        /* most, over the sites of a time slice */
  MARCH_WARPS = 16,       /* most that compute */
  MARCH_FEEDERS = 4,      /* that feed */
  MARCH_RING = 3,         /* most steps under way */
  MARCH_X = 8,            /* most sites of a tile along x */
  MARCH_TILES = 7,        /* that are asked for */
  MARCH_COLUMNS = 16,     /* most of quarks with spin: slices times right-hand sides */
  MARCH_BARRIERS = 128,   /* bytes in front of the rows */
  MARCH_WALL_BYTES = 2048 /* of the fifth dimension's matrices */
};
/* A ring of slots in shared memory, each of which holds the rows of one step: the bytes of the
 * scales of a row, of a row, of a slot and of the ring. */
typedef struct md_march_ring {
  int scale_bytes, row_bytes, slot_bytes, bytes;
} md_march_ring;
typedef struct md_march_plan {
  int fields;     /* of links */
  int x, y, z;    /* tile; x in sites of one parity */
  int steps;      /* of a time slice: 1, or with two link fields 2, one for each plane along z */
  int columns[3]; /* tiles of a time slice along x, y, z */
  int band;       /* tiles along y that are walked together, for reuse in L2 */
  int ring;       /* steps under way: the one in work and those being fetched */
  int spare;      /* slots of the centre beyond those that they need */
  int site_bytes; /* of a source site */
  /* struct stage of the kernel, for two link fields struct long_stage, says what they hold. */
  md_march_ring centre, rim, along;
  int shared_bytes, blocks; /* all; as many as there are places for */
  int warps, warp_sites;    /* that compute, and their sites in a pass */
  int passes;               /* over the sites of a time slice; one link field: 1 */
  /* Of x, y; planes along z of a step; columns[0]; columns of a band and of a layer of bands. */
  md_divisor by_x, by_y, by_depth, by_columns, by_band, by_layer;
} md_march_plan;

/* Plans with the tiles that fit, for the precision, action, slices and right-hand sides of a
 * request, and a block for each multiprocessor of the GPU; the first is the one to take unless a
 * trial finds a faster one. Their number: 0 when no tile fits, when the lattice is too small to
 * fill the GPU, for code before compute capability 9.0, whose copy engine feeds the march, or
 * unless md_march_serves the request: with 8 or 16 right-hand sides; with spin in 16 bits,
 * when slices times right-hand sides are a multiple of four and MARCH_COLUMNS at most. */
bool md_march_serves(const md_backend_request *request);
int md_march_plans(const md_backend_request *request, const int local[MD_DIMS],
                   const md_device_facts *gpu, md_march_plan plan[MARCH_TILES]);

/* How many steps back the step lies that must be done before slot i of the centre may be filled: i
 * is 0, and counts on where a step begins a segment and fills all slots that it reads. before:
 * steps of the segment before. Where these are few, the slots are those that the step in front of
 * that segment still reads. */
MD_TILE_MAP int md_march_back(const md_march_plan *plan, bool begins, int i, int before) {
  int back = plan->ring;
  if (begins && before + 1 < back) back = before + 1;
  if (begins && plan->ring + plan->spare - i < back) back = plan->ring + plan->spare - i;
  return back > 1 ? back : 1;
}

/* Which rows around a column a step of the march with two link fields reads, and in which order
 * they lie in a slot of the rim. `plane`: the plane along z that is the step, 0 where a slice has
 * one step. */

/* Rows of a step: its own, and those around it along y and z. Of two planes each reads three others
 * along z that lie outside the column. */
MD_TILE_MAP int md_own_rows(const md_march_plan *plan) {
  return plan->y * plan->z / plan->steps;
}
MD_TILE_MAP int md_rim_rows(const md_march_plan *plan) {
  return 2 * MARCH_REACH * (plan->y + plan->z) / plan->steps;
}

/* Relative to the column's corner, one of them outside the column. */
typedef struct md_rim_place {
  int y, z;
} md_rim_place;

/* Row k of those before and beyond a column, and its inverse. */
MD_TILE_MAP int md_rim_outside(int k, int extent) {
  return k < MARCH_REACH ? k - MARCH_REACH : extent + k - MARCH_REACH;
}
MD_TILE_MAP int md_rim_inward(int place, int extent) {
  return place < 0 ? place + MARCH_REACH : place - extent + MARCH_REACH;
}
/* Of two planes each has three of its four neighbours outside: both at distance three, and that at
 * distance one which is not the other plane. */
MD_TILE_MAP int md_rim_nearest(int plane) {
  return plane ? 2 : -1;
}

/* Those along y come first. */
MD_TILE_MAP md_rim_place md_rim_place_of(const md_march_plan *plan, int row, int plane) {
  const int along_y = 2 * MARCH_REACH * (int)plan->by_depth.by;
  md_rim_place p;
  if (row < along_y) {
    const int k = md_quotient(row, plan->by_depth), rest = row - k * (int)plan->by_depth.by;
    p.y = md_rim_outside(k, plan->y);
    p.z = plane + rest;
  } else {
    const int n = row - along_y, k = md_quotient(n, plan->by_y);
    p.y = n - k * (int)plan->by_y.by;
    p.z = plan->steps == 1 ? md_rim_outside(k, plan->z)
          : k == 1         ? md_rim_nearest(plane)
                           : plane + MARCH_REACH * (k - 1);
  }
  return p;
}
/* The row at that place. */
MD_TILE_MAP int md_rim_row_at(const md_march_plan *plan, int y, int z, int plane) {
  const int depth = (int)plan->by_depth.by;
  if (y < 0 || y >= plan->y) return md_rim_inward(y, plan->y) * depth + z - plane;
  const int k = plan->steps == 1             ? md_rim_inward(z, plan->z)
                : z == md_rim_nearest(plane) ? 1
                                             : (z - plane) / MARCH_REACH + 1;
  return 2 * MARCH_REACH * depth + k * plan->y + y;
}

MD_C_END
