#include "lattice/geometry/rank_grid.h"

#include <stdio.h>
#include <string.h>

/* Calls visit for every grid of `ranks` places that leaves even local extents. */
static void each_grid(const int global[MD_DIMS], int ranks,
                      void (*visit)(void *user, const int grid[MD_DIMS]), void *user) {
  int g[MD_DIMS];
  for (g[0] = 1; g[0] <= ranks; g[0]++)
    for (g[1] = 1; g[0] * g[1] <= ranks; g[1]++)
      for (g[2] = 1; g[0] * g[1] * g[2] <= ranks; g[2]++) {
        g[3] = ranks / (g[0] * g[1] * g[2]);
        bool valid = g[0] * g[1] * g[2] * g[3] == ranks;
        for (int d = 0; d < MD_DIMS && valid; d++) valid = global[d] % (2 * g[d]) == 0;
        if (valid) visit(user, g);
      }
}

/* Sites that a rank sends in one exchange, both signs of every cut direction. */
static int64_t surface(const int global[MD_DIMS], const int grid[MD_DIMS]) {
  int64_t volume = 1, sites = 0;
  for (int d = 0; d < MD_DIMS; d++) volume *= global[d] / grid[d];
  for (int d = 0; d < MD_DIMS; d++)
    if (grid[d] > 1) sites += 2 * volume / (global[d] / grid[d]);
  return sites;
}

typedef struct search {
  const int *global;
  int *best;
  int64_t best_surface;
  char *list; /* of valid grids, for the message */
  size_t list_bytes, list_used;
} search;

/* Grids come in ascending order of the x cuts, so the first of equals cuts x least. */
static void keep_best(void *user, const int grid[MD_DIMS]) {
  search *s = user;
  const int64_t sites = surface(s->global, grid);
  if (s->best_surface < 0 || sites < s->best_surface) {
    s->best_surface = sites;
    memcpy(s->best, grid, MD_DIMS * sizeof *grid);
  }
  if (s->list_used + 32 < s->list_bytes)
    s->list_used +=
        (size_t)snprintf(s->list + s->list_used, s->list_bytes - s->list_used, "%s%dx%dx%dx%d",
                         s->list_used ? ", " : "", grid[0], grid[1], grid[2], grid[3]);
}

static md_status refuse(md_context *context, const int global[MD_DIMS], const int asked[MD_DIMS],
                        const char *list) {
  char what[96];
  if (asked[0] == 0)
    snprintf(what, sizeof what, "%d ranks", context->ranks);
  else
    snprintf(what, sizeof what, "rank grid %dx%dx%dx%d on %d ranks", asked[0], asked[1], asked[2],
             asked[3], context->ranks);
  for (int d = 0; d < MD_DIMS && asked[0] != 0; d++)
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

md_status md_rank_grid_choose(md_context *context, const md_layout_request *request,
                              int grid[MD_DIMS]) {
  char list[512] = "";
  search s = {request->global, grid, -1, list, sizeof list, 0};
  const int *asked = request->grid;
  each_grid(request->global, context->ranks, keep_best, &s);
  if (asked[0] == 0 && asked[1] == 0 && asked[2] == 0 && asked[3] == 0)
    return s.best_surface >= 0 ? MD_OK : refuse(context, request->global, asked, list);
  int64_t places = 1;
  bool valid = true;
  for (int d = 0; d < MD_DIMS; d++) {
    valid = valid && asked[d] >= 1 && request->global[d] % (2 * (int64_t)asked[d]) == 0;
    places *= asked[d] >= 1 && places <= context->ranks ? asked[d] : 0;
  }
  if (!valid || places != context->ranks) return refuse(context, request->global, asked, list);
  memcpy(grid, asked, MD_DIMS * sizeof *grid);
  return MD_OK;
}

void md_rank_grid_place(const md_context *context, md_geometry *geometry) {
  int rest = context->rank;
  for (int d = 0; d < MD_DIMS; d++) {
    geometry->place[d] = rest % geometry->grid[d];
    rest /= geometry->grid[d];
  }
}

int md_rank_grid_at(const md_geometry *geometry, int d, int steps) {
  const int extent = geometry->grid[d];
  int rank = 0;
  for (int e = MD_DIMS - 1; e >= 0; e--) {
    const int place =
        e == d ? ((geometry->place[d] + steps) % extent + extent) % extent : geometry->place[e];
    rank = rank * geometry->grid[e] + place;
  }
  return rank;
}
