#pragma once

#include "base/context.h"
#include "lattice/geometry/conventions.h"
#include <stdint.h>

MD_C_BEGIN

enum {
  MD_MOST_DEPTH = 3, /* the longest hop */
  /* Two for each neighbour direction: a zone of depth 3 over local extents of 2 comes from two
   * ranks. */
  MD_MOST_MESSAGES = 2 * MD_DIRECTIONS
};

/* One message of a halo exchange. All ranks have the same list in the same order: message m goes
 * from every rank to its send_rank, and what comes from receive_rank is its message m, so m tells
 * messages between the same two ranks apart. A rank may send to itself. */
typedef struct md_halo_message {
  int direction;      /* the zone that it fills where it arrives: the sites beyond that face */
  int distance;       /* ranks between sender and receiver along the direction, at least 1 */
  int send_rank;      /* it lies `distance` ranks against the direction */
  int receive_rank;   /* it lies `distance` ranks along the direction */
  int64_t sites;      /* of one parity, the same for both */
  int64_t first_site; /* halo sites first_site .. first_site + sites - 1 receive it, in order */
  /* face[p][k]: local site of parity p that is sent as the k-th. */
  int32_t *face[MD_PARITIES];
} md_halo_message;

/* What an exchange pays for a site of a face across each dimension, in hundredths of what it pays
 * for the cheapest: the rank grid is chosen by it (docs/scaling.md). */
typedef struct md_face_costs {
  const char *where; /* the fields lie: "on a device" */
  int per_site[MD_DIMS];
} md_face_costs;

/* The part of the lattice that a rank holds, and tables built once.
 *
 * Sites of one parity are numbered by local lexicographic order, x fastest, halved:
 * site = ((t*Lz + z)*Ly + y)*(Lx/2) + x/2. Local extents are even, so local and global parity
 * agree and each pair (x, x+1) of a row holds one site of each parity.
 *
 * A direction is `split` when its neighbours come through the halo: the rank grid cuts it, or the
 * self-halo mode asks for it on one rank. Halo sites follow the local ones, one zone for each of
 * the eight neighbour directions that is split: zone d starts at halo_offset[d] (>= sites) and
 * holds `depth` slabs of face_sites[d % 4] sites each, the nearest first, every slab in the
 * lexicographic order of its sites. What fills them is the list of messages. */
typedef struct md_geometry {
  int global[MD_DIMS];   /* extents of the lattice, all even */
  int grid[MD_DIMS];     /* ranks along x,y,z,t */
  bool grid_asked;       /* by the user, else chosen */
  char grid_reason[160]; /* why it was taken, in words */
  int place[MD_DIMS];    /* this rank's coordinates in the grid; rank = x fastest */
  int local[MD_DIMS];    /* extents of this rank's part, all even, >= 2 */
  int origin[MD_DIMS];   /* global coordinates of its first site */
  int depth;             /* slabs of a halo zone: 1, or 3 for hops over three sites */
  bool split[MD_DIMS];
  int64_t volume;                     /* sites of the lattice, both parities */
  int64_t local_volume;               /* sites of this rank, both parities */
  int64_t sites;                      /* local sites of one parity = local_volume / 2 */
  int64_t halo_sites;                 /* halo sites of one parity, all zones together */
  int64_t face_sites[MD_DIMS];        /* of one parity in a slab across the direction */
  int64_t halo_offset[MD_DIRECTIONS]; /* -1 where not split */
  /* neighbour[p][d][i]: index, in fields of parity 1-p, of the neighbour in direction d of site i
   * of parity p; below `sites` it is local, else it lies in a halo zone. */
  int32_t *neighbour[MD_PARITIES][MD_DIRECTIONS];
  /* The same for the neighbour three sites away; NULL where depth is 1. */
  int32_t *third_neighbour[MD_PARITIES][MD_DIRECTIONS];
  int messages;
  md_halo_message message[MD_MOST_MESSAGES];
} md_geometry;

typedef struct md_layout_request {
  int global[MD_DIMS];
  int grid[MD_DIMS]; /* all 0: choose the valid rank grid whose faces cost least */
  bool self_halo;    /* every direction goes through the halo, also on one rank (tests) */
  int depth;         /* of the halo zones: 1 (also for 0), or 3 for actions with three-site hops */
  const md_face_costs *costs; /* of faces; NULL: every site costs the same */
} md_layout_request;
/* No self_halo. */
md_layout_request md_layout_of(const int global[MD_DIMS], const int grid[MD_DIMS], int depth,
                               const md_face_costs *costs);

/* Chooses the rank grid for request->global: the asked one if it is valid, else the one whose faces
 * cost a rank least in an exchange (ties: fewest cuts in x, then y, z). Sets global, grid,
 * grid_asked and grid_reason. A grid is valid when it has as many places as there are ranks and
 * leaves even local extents. MD_INPUT with the valid grids when there is none or the asked one is
 * not. Local. */
md_status md_rank_grid_choose(md_context *context, const md_layout_request *request,
                              md_geometry *geometry);

/* Checks the extents (even, 2..32767, 2^40 sites at most), finds the rank grid, builds the tables.
 * Collective in the sense that all ranks pass the same and get the same; communicates only to
 * agree. MD_INPUT with the valid grids when the lattice cannot be cut as asked. */
md_status md_geometry_create(md_context *context, const md_layout_request *request,
                             md_geometry **geometry);
/* The same without the tables, which stay NULL: for estimates, before anything is allocated. There
 * is nothing to destroy. Collective. */
md_status md_geometry_plan(md_context *context, const md_layout_request *request,
                           md_geometry *geometry);
/* Bytes of the tables. */
int64_t md_geometry_bytes(const md_geometry *geometry);
void md_geometry_destroy(md_geometry *geometry);

/* Neighbours in direction d of the sites of parity p, `hop` (1 or 3, at most depth) sites away. */
static inline const int32_t *md_neighbours(const md_geometry *g, int hop, int p, int d) {
  return hop == 1 ? g->neighbour[p][d] : g->third_neighbour[p][d];
}

/* Site number of local coordinates x (its parity is md_parity(x)). */
static inline int64_t md_site(const md_geometry *g, const int x[MD_DIMS]) {
  return (((int64_t)x[3] * g->local[2] + x[2]) * g->local[1] + x[1]) * (g->local[0] / 2) + x[0] / 2;
}
static inline int md_parity(const int x[MD_DIMS]) {
  return (x[0] + x[1] + x[2] + x[3]) & 1;
}

/* Local coordinates of site `site` of parity `parity`. */
MD_HOST_DEVICE void md_coordinates(const md_geometry *g, int parity, int64_t site, int x[MD_DIMS]) {
  const int half = g->local[0] / 2;
  const int64_t row = site / half;
  x[1] = (int)(row % g->local[1]);
  x[2] = (int)(row / g->local[1] % g->local[2]);
  x[3] = (int)(row / g->local[1] / g->local[2]);
  x[0] = 2 * (int)(site - row * half) + ((x[1] + x[2] + x[3] + parity) & 1);
}
/* The same as global coordinates. */
MD_HOST_DEVICE void md_global_coordinates(const md_geometry *g, int parity, int64_t site,
                                          int x[MD_DIMS]) {
  md_coordinates(g, parity, site, x);
  for (int d = 0; d < MD_DIMS; d++) x[d] += g->origin[d];
}
/* Lexicographic index of global coordinates, x fastest: the key of random numbers and checksums. */
MD_HOST_DEVICE int64_t md_global_index(const md_geometry *g, const int x[MD_DIMS]) {
  return (((int64_t)x[3] * g->global[2] + x[2]) * g->global[1] + x[1]) * g->global[0] + x[0];
}

MD_C_END
