#include "lattice/geometry/geometry.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "lattice/geometry/rank_grid.h"

#include <stdlib.h>
#include <string.h>

static md_status check_extents(md_context *context, const int global[MD_DIMS]) {
  int64_t volume = 1;
  for (int d = 0; d < MD_DIMS; d++) {
    if (global[d] < 2 || global[d] > 32767 || global[d] % 2 != 0)
      return md_fail(context, MD_INPUT,
                     "lattice extents must be even, from 2 to 32766, got %d in direction %c of "
                     "%dx%dx%dx%d",
                     global[d], "xyzt"[d], global[0], global[1], global[2], global[3]);
    volume *= global[d];
  }
  if (volume > (int64_t)1 << 40)
    return md_fail(context, MD_INPUT, "a lattice may have 2^40 sites, got %dx%dx%dx%d", global[0],
                   global[1], global[2], global[3]);
  return MD_OK;
}

static md_status check_depth(md_context *context, int depth) {
  if (depth == 1 || depth == MD_MOST_DEPTH) return MD_OK;
  return md_fail(context, MD_INPUT, "the halo must be 1 or %d sites deep, got %d", MD_MOST_DEPTH,
                 depth);
}

/* Zones for the split directions, in the order of the neighbour directions. */
static void place_halo(md_geometry *g) {
  int64_t next = g->sites;
  for (int d = 0; d < MD_DIMS; d++) g->face_sites[d] = g->sites / g->local[d];
  for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
    const int d = direction % MD_DIMS;
    g->halo_offset[direction] = g->split[d] ? next : -1;
    if (g->split[d]) next += g->depth * g->face_sites[d];
  }
  g->halo_sites = next - g->sites;
}

/* Position of local coordinates x in the list of sites of their parity within the slab
 * x[d] = constant, in lexicographic order. The slab's rows along its first other direction hold
 * the parities in turn, and that extent is even, so halving the slab's own index counts them. */
static int64_t face_position(const md_geometry *g, int d, const int x[MD_DIMS]) {
  int64_t index = 0;
  for (int e = MD_DIMS - 1; e >= 0; e--)
    if (e != d) index = index * g->local[e] + x[e];
  return index / 2;
}

/* Ranks and sites of the messages: the slabs of a zone that come from one rank. Slab k along a
 * direction is `k / extent + 1` ranks away. */
static void list_messages(md_geometry *g) {
  for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
    const int d = direction % MD_DIMS, step = direction < MD_DIMS ? 1 : -1;
    for (int slab = 0; slab < g->depth && g->split[d]; slab += g->local[d]) {
      const int left = g->depth - slab, slabs = left < g->local[d] ? left : g->local[d];
      const int distance = slab / g->local[d] + 1;
      g->message[g->messages++] = (md_halo_message){
          .direction = direction,
          .distance = distance,
          .send_rank = md_rank_grid_at(g, d, -step * distance),
          .receive_rank = md_rank_grid_at(g, d, step * distance),
          .sites = slabs * g->face_sites[d],
          .first_site = g->halo_offset[direction] + slab * g->face_sites[d],
      };
    }
  }
}

/* neighbour[i] of the sites i of parity p, `hop` sites along a direction. */
static void fill_neighbours(const md_geometry *g, int p, int direction, int hop,
                            int32_t *neighbour) {
  const int d = direction % MD_DIMS, step = direction < MD_DIMS ? hop : -hop;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < g->sites; i++) {
    int x[MD_DIMS];
    md_coordinates(g, p, i, x);
    const int there = x[d] + step;
    const int beyond = there < 0 ? -1 - there : there - g->local[d]; /* slabs; < 0: not beyond */
    if (g->split[d] && beyond >= 0) {
      neighbour[i] =
          (int32_t)(g->halo_offset[direction] + beyond * g->face_sites[d] + face_position(g, d, x));
    } else {
      x[d] = (there + MD_MOST_DEPTH * g->local[d]) % g->local[d];
      neighbour[i] = (int32_t)md_site(g, x);
    }
  }
}

/* What of this rank lies in the slabs of the receiver's zone: forward of the receiver our first
 * sites, backward our last ones, the nearest to it first. */
static void fill_face(const md_geometry *g, int p, const md_halo_message *message) {
  const int direction = message->direction, d = direction % MD_DIMS;
  const int64_t face_sites = g->face_sites[d], slabs = message->sites / face_sites;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < g->sites; i++) {
    int x[MD_DIMS];
    md_coordinates(g, p, i, x);
    const int slab = direction < MD_DIMS ? x[d] : g->local[d] - 1 - x[d];
    if (slab < slabs) message->face[p][slab * face_sites + face_position(g, d, x)] = (int32_t)i;
  }
}

static void fill_tables(md_geometry *g) {
  for (int p = 0; p < MD_PARITIES; p++) {
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      fill_neighbours(g, p, direction, 1, g->neighbour[p][direction]);
      if (g->depth > 1) fill_neighbours(g, p, direction, 3, g->third_neighbour[p][direction]);
    }
    for (int m = 0; m < g->messages; m++) fill_face(g, p, &g->message[m]);
  }
}

static md_status allocate_tables(md_context *context, md_geometry *g) {
  const size_t bytes = (size_t)g->sites * sizeof(int32_t);
  if (g->sites + g->halo_sites > INT32_MAX && !md_counts(context))
    return md_fail(context, MD_INPUT,
                   "a rank may hold 2^31 sites of a parity, got %lld; use more ranks",
                   (long long)g->sites);
  for (int p = 0; p < MD_PARITIES; p++) {
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      MD_TRY(md_allocate(context, bytes, "neighbour table", (void **)&g->neighbour[p][direction]));
      if (g->depth > 1)
        MD_TRY(md_allocate(context, bytes, "neighbour table",
                           (void **)&g->third_neighbour[p][direction]));
    }
    for (int m = 0; m < g->messages; m++)
      MD_TRY(md_allocate(context, (size_t)g->message[m].sites * sizeof(int32_t), "surface table",
                         (void **)&g->message[m].face[p]));
  }
  return MD_OK;
}

int64_t md_geometry_bytes(const md_geometry *g) {
  int64_t entries = (g->depth > 1 ? 2 : 1) * MD_DIRECTIONS * g->sites;
  for (int m = 0; m < g->messages; m++) entries += g->message[m].sites;
  return MD_PARITIES * entries * (int64_t)sizeof(int32_t);
}

/* Everything but the tables; local. */
static md_status plan(md_context *context, const md_layout_request *request, md_geometry *g) {
  *g = (md_geometry){0};
  MD_TRY(check_extents(context, request->global));
  memcpy(g->global, request->global, sizeof g->global);
  g->depth = request->depth ? request->depth : 1;
  MD_TRY(check_depth(context, g->depth));
  MD_TRY(md_rank_grid_choose(context, request, g));
  md_rank_grid_place(context, g);
  g->volume = g->local_volume = 1;
  for (int d = 0; d < MD_DIMS; d++) {
    g->local[d] = g->global[d] / g->grid[d];
    g->origin[d] = g->place[d] * g->local[d];
    g->split[d] = g->grid[d] > 1 || request->self_halo;
    g->volume *= g->global[d];
    g->local_volume *= g->local[d];
  }
  g->sites = g->local_volume / 2;
  place_halo(g);
  list_messages(g);
  return MD_OK;
}

md_status md_geometry_plan(md_context *context, const md_layout_request *request,
                           md_geometry *geometry) {
  return md_agree(context, plan(context, request, geometry));
}

md_status md_geometry_create(md_context *context, const md_layout_request *request,
                             md_geometry **geometry) {
  *geometry = NULL;
  md_geometry *g = calloc(1, sizeof *g);
  md_status status = g ? plan(context, request, g) : md_fail_memory(context, sizeof *g, "geometry");
  if (status == MD_OK) status = allocate_tables(context, g);
  status = md_agree(context, status);
  if (status == MD_OK && !md_counts(context))
    fill_tables(g);
  else if (status != MD_OK) {
    md_geometry_destroy(g);
    g = NULL;
  }
  *geometry = g;
  return status;
}

void md_geometry_destroy(md_geometry *geometry) {
  if (!geometry) return;
  for (int p = 0; p < MD_PARITIES; p++) {
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      free(geometry->neighbour[p][direction]);
      free(geometry->third_neighbour[p][direction]);
    }
    for (int m = 0; m < geometry->messages; m++) free(geometry->message[m].face[p]);
  }
  free(geometry);
}
