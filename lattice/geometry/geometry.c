#include "lattice/geometry/geometry.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "base/text.h"

#include <stdio.h>
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

/* Sites that a rank sends in one exchange, both signs of every cut direction, each times what a
 * site costs there; costs NULL: 1. */
static int64_t surface(const int global[MD_DIMS], const int grid[MD_DIMS],
                       const md_face_costs *costs) {
  int64_t volume = 1, sites = 0;
  for (int d = 0; d < MD_DIMS; d++) volume *= global[d] / grid[d];
  for (int d = 0; d < MD_DIMS; d++)
    if (grid[d] > 1) sites += 2 * volume / (global[d] / grid[d]) * (costs ? costs->per_site[d] : 1);
  return sites;
}

/* The valid grids: how many, as many of them as the text holds, and the cheapest one. */
typedef struct valid_grids {
  int count, best[MD_DIMS];
  char list[512];
} valid_grids;

md_layout_request md_layout_of(const int global[MD_DIMS], const int grid[MD_DIMS], int depth,
                               const md_face_costs *costs) {
  md_layout_request request = {.depth = depth, .costs = costs};
  memcpy(request.global, global, sizeof request.global);
  memcpy(request.grid, grid, sizeof request.grid);
  return request;
}

/* Grids come in ascending order of the x cuts, so the first of equals cuts x least. */
static void find_grids(const md_layout_request *request, int ranks, valid_grids *found) {
  const int *global = request->global;
  int64_t best_cost = INT64_MAX;
  int g[MD_DIMS];
  for (g[0] = 1; g[0] <= ranks; g[0]++)
    for (g[1] = 1; g[0] * g[1] <= ranks; g[1]++)
      for (g[2] = 1; g[0] * g[1] * g[2] <= ranks; g[2]++) {
        g[3] = ranks / (g[0] * g[1] * g[2]);
        bool valid = g[0] * g[1] * g[2] * g[3] == ranks;
        for (int d = 0; d < MD_DIMS && valid; d++) valid = global[d] % (2 * g[d]) == 0;
        if (!valid) continue;
        const int64_t cost = surface(global, g, request->costs);
        if (cost < best_cost) {
          best_cost = cost;
          memcpy(found->best, g, sizeof g);
        }
        if (strlen(found->list) + 32 < sizeof found->list)
          md_append(found->list, sizeof found->list, "%s%dx%dx%dx%d", found->count ? ", " : "",
                    g[0], g[1], g[2], g[3]);
        found->count++;
      }
}

/* asked NULL: no grid was asked for. */
static md_status refuse(md_context *context, const int global[MD_DIMS], const int asked[MD_DIMS],
                        const char *list) {
  char what[96];
  if (!asked)
    snprintf(what, sizeof what, "%d rank%s", context->ranks, md_plural(context->ranks));
  else
    snprintf(what, sizeof what, "rank grid %dx%dx%dx%d on %d rank%s", asked[0], asked[1], asked[2],
             asked[3], context->ranks, md_plural(context->ranks));
  for (int d = 0; d < MD_DIMS && asked; d++)
    if (asked[d] > 0 && global[d] % asked[d] == 0 && (global[d] / asked[d]) % 2 != 0)
      return md_fail(context, MD_INPUT,
                     "local extent must be even, got %d in direction %c of %dx%dx%dx%d with %s; "
                     "valid rank grids: %s",
                     global[d] / asked[d], "xyzt"[d], global[0], global[1], global[2], global[3],
                     what, *list ? list : "none, use another number of ranks");
  return md_fail(context, MD_INPUT,
                 "the rank grid must have one place a rank and leave even local extents, got "
                 "%dx%dx%dx%d with %s; valid rank grids: %s",
                 global[0], global[1], global[2], global[3], what,
                 *list ? list : "none, use another number of ranks");
}

static void give_reason(md_geometry *g, const md_face_costs *c, int grids, int ranks) {
  const long long sites = surface(g->global, g->grid, NULL);
  char *text = g->grid_reason;
  const size_t bytes = sizeof g->grid_reason;
  if (g->grid_asked)
    snprintf(text, bytes, "asked for");
  else if (ranks == 1)
    snprintf(text, bytes, "one rank");
  else if (grids == 1)
    snprintf(text, bytes, "the only valid one for %d ranks", ranks);
  else if (!c)
    snprintf(text, bytes, "fewest sites on faces of %d valid grids: %lld per rank", grids, sites);
  else
    snprintf(text, bytes,
             "cheapest faces %s of %d valid grids: %lld sites per rank, at %.2f, %.2f, %.2f, %.2f "
             "per site in x, y, z, t",
             c->where, grids, sites, c->per_site[0] / 100.0, c->per_site[1] / 100.0,
             c->per_site[2] / 100.0, c->per_site[3] / 100.0);
}

md_status md_rank_grid_choose(md_context *context, const md_layout_request *request,
                              md_geometry *geometry) {
  const int *asked = request->grid;
  valid_grids found = {0};
  int64_t places = 1;
  bool valid = true;
  find_grids(request, context->ranks, &found);
  geometry->grid_asked = asked[0] != 0 || asked[1] != 0 || asked[2] != 0 || asked[3] != 0;
  for (int d = 0; d < MD_DIMS && geometry->grid_asked; d++) {
    valid = valid && asked[d] >= 1 && request->global[d] % (2 * (int64_t)asked[d]) == 0;
    places *= asked[d] >= 1 && places <= context->ranks ? asked[d] : 0;
  }
  if (geometry->grid_asked ? !valid || places != context->ranks : found.count == 0)
    return refuse(context, request->global, geometry->grid_asked ? asked : NULL, found.list);
  memcpy(geometry->grid, geometry->grid_asked ? asked : found.best, sizeof geometry->grid);
  memcpy(geometry->global, request->global, sizeof geometry->global);
  give_reason(geometry, request->costs, found.count, context->ranks);
  return MD_OK;
}

/* Ranks are numbered with x fastest. */
static void place_rank(const md_context *context, md_geometry *geometry) {
  int rest = context->rank;
  for (int d = 0; d < MD_DIMS; d++) {
    geometry->place[d] = rest % geometry->grid[d];
    rest /= geometry->grid[d];
  }
}

/* The rank `steps` places (of any sign) from this one along dimension d, around the grid. */
static int rank_at(const md_geometry *geometry, int d, int steps) {
  const int extent = geometry->grid[d];
  int rank = 0;
  for (int e = MD_DIMS - 1; e >= 0; e--) {
    const int place =
        e == d ? ((geometry->place[d] + steps) % extent + extent) % extent : geometry->place[e];
    rank = rank * geometry->grid[e] + place;
  }
  return rank;
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
          .send_rank = rank_at(g, d, -step * distance),
          .receive_rank = rank_at(g, d, step * distance),
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
                   "a rank may hold 2^31 sites of a parity with its halo, got %lld; use more ranks",
                   (long long)(g->sites + g->halo_sites));
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
  g->depth = request->depth ? request->depth : 1;
  if (g->depth != 1 && g->depth != MD_MOST_DEPTH)
    return md_fail(context, MD_INPUT, "the halo must be 1 or %d sites deep, got %d", MD_MOST_DEPTH,
                   g->depth);
  MD_TRY(md_rank_grid_choose(context, request, g));
  place_rank(context, g);
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
  md_geometry *g = *geometry = calloc(1, sizeof *g);
  md_status status = g ? plan(context, request, g) : md_fail_memory(context, sizeof *g, "geometry");
  if (status == MD_OK) status = allocate_tables(context, g);
  status = md_agree(context, status);
  if (status != MD_OK) {
    md_geometry_destroy(g);
    *geometry = NULL;
  } else if (!md_counts(context))
    fill_tables(g);
  return status;
}

void md_geometry_destroy(md_geometry *geometry) {
  if (!geometry) return;
  for (int p = 0; p < MD_PARITIES; p++) {
    for (int direction = 0; direction < MD_DIRECTIONS; direction++)
      MD_FREE(geometry->neighbour[p][direction], geometry->third_neighbour[p][direction]);
    for (int m = 0; m < geometry->messages; m++) free(geometry->message[m].face[p]);
  }
  free(geometry);
}
