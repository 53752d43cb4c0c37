#include "lattice/geometry/geometry.h"
#include "base/memory.h"
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

/* Zones for the split directions, in the order of the neighbour directions. */
static void place_halo(md_geometry *g) {
  int64_t next = g->sites;
  for (int d = 0; d < MD_DIMS; d++) g->face_sites[d] = g->sites / g->local[d];
  for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
    const int d = direction % MD_DIMS;
    g->halo_offset[direction] = g->split[d] ? next : -1;
    if (g->split[d]) next += g->face_sites[d];
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

static void fill_tables(md_geometry *g) {
  for (int p = 0; p < MD_PARITIES; p++)
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      const int d = direction % MD_DIMS, step = direction < MD_DIMS ? 1 : -1;
      int32_t *neighbour = g->neighbour[p][direction], *face = g->face[p][direction];
#pragma omp parallel for schedule(static)
      for (int64_t i = 0; i < g->sites; i++) {
        int x[MD_DIMS];
        md_coordinates(g, p, i, x);
        const int here = x[d];
        /* The slab next to the neighbour in this direction is what that rank needs from us. */
        if (face && here == (step > 0 ? g->local[d] - 1 : 0))
          face[face_position(g, d, x)] = (int32_t)i;
        x[d] = here + step;
        const bool leaves = x[d] < 0 || x[d] == g->local[d];
        x[d] = (x[d] + g->local[d]) % g->local[d];
        neighbour[i] =
            (int32_t)(leaves && g->split[d] ? g->halo_offset[direction] + face_position(g, d, x)
                                            : md_site(g, x));
      }
    }
}

static md_status allocate_tables(md_context *context, md_geometry *g) {
  if (g->sites + g->halo_sites > INT32_MAX)
    return md_fail(context, MD_INPUT,
                   "a rank may hold 2^31 sites of a parity, got %lld; use more ranks",
                   (long long)g->sites);
  for (int p = 0; p < MD_PARITIES; p++)
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      const int d = direction % MD_DIMS;
      MD_TRY(md_allocate(context, (size_t)g->sites * sizeof(int32_t), "neighbour table",
                         (void **)&g->neighbour[p][direction]));
      if (g->split[d])
        MD_TRY(md_allocate(context, (size_t)g->face_sites[d] * sizeof(int32_t), "surface table",
                           (void **)&g->face[p][direction]));
    }
  return MD_OK;
}

int64_t md_geometry_bytes(const md_geometry *g) {
  int64_t entries = MD_DIRECTIONS * g->sites;
  for (int direction = 0; direction < MD_DIRECTIONS; direction++)
    if (g->split[direction % MD_DIMS]) entries += g->face_sites[direction % MD_DIMS];
  return MD_PARITIES * entries * (int64_t)sizeof(int32_t);
}

/* Everything but the tables; local. */
static md_status plan(md_context *context, const md_layout_request *request, md_geometry *g) {
  *g = (md_geometry){0};
  MD_TRY(check_extents(context, request->global));
  memcpy(g->global, request->global, sizeof g->global);
  MD_TRY(md_rank_grid_choose(context, request, g->grid));
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
  if (status == MD_OK)
    fill_tables(g);
  else {
    md_geometry_destroy(g);
    g = NULL;
  }
  *geometry = g;
  return status;
}

void md_geometry_destroy(md_geometry *geometry) {
  if (!geometry) return;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int direction = 0; direction < MD_DIRECTIONS; direction++) {
      free(geometry->neighbour[p][direction]);
      free(geometry->face[p][direction]);
    }
  free(geometry);
}
