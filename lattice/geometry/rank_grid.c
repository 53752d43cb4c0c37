#include "lattice/geometry/rank_grid.h"
#include "base/text.h"

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

typedef struct search {
  const int *global;
  const md_face_costs *costs;
  int *best;
  int64_t best_cost;
  int grids;
  char *list; /* of valid grids, for the message */
  size_t list_bytes, list_used;
} search;

/* Grids come in ascending order of the x cuts, so the first of equals cuts x least. */
static void keep_best(void *user, const int grid[MD_DIMS]) {
  search *s = user;
  const int64_t cost = surface(s->global, grid, s->costs);
  s->grids++;
  if (s->best_cost < 0 || cost < s->best_cost) {
    s->best_cost = cost;
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
    snprintf(what, sizeof what, "%d rank%s", context->ranks, md_plural(context->ranks));
  else
    snprintf(what, sizeof what, "rank grid %dx%dx%dx%d on %d rank%s", asked[0], asked[1], asked[2],
             asked[3], context->ranks, md_plural(context->ranks));
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

static void give_reason(md_geometry *g, const search *s, int ranks) {
  const md_face_costs *c = s->costs;
  const long long sites = surface(s->global, g->grid, NULL);
  char *text = g->grid_reason;
  const size_t bytes = sizeof g->grid_reason;
  if (g->grid_asked)
    snprintf(text, bytes, "asked for");
  else if (ranks == 1)
    snprintf(text, bytes, "one rank");
  else if (s->grids == 1)
    snprintf(text, bytes, "the only valid one for %d ranks", ranks);
  else if (!c)
    snprintf(text, bytes, "fewest sites on faces of %d valid grids: %lld per rank", s->grids,
             sites);
  else
    snprintf(text, bytes,
             "cheapest faces %s of %d valid grids: %lld sites per rank, at %.2f, %.2f, %.2f, %.2f "
             "per site in x, y, z, t",
             c->where, s->grids, sites, c->per_site[0] / 100.0, c->per_site[1] / 100.0,
             c->per_site[2] / 100.0, c->per_site[3] / 100.0);
}

static md_status check_asked(md_context *context, const md_layout_request *request,
                             const char *list) {
  const int *asked = request->grid;
  int64_t places = 1;
  bool valid = true;
  for (int d = 0; d < MD_DIMS; d++) {
    valid = valid && asked[d] >= 1 && request->global[d] % (2 * (int64_t)asked[d]) == 0;
    places *= asked[d] >= 1 && places <= context->ranks ? asked[d] : 0;
  }
  if (valid && places == context->ranks) return MD_OK;
  return refuse(context, request->global, asked, list);
}

md_status md_rank_grid_choose(md_context *context, const md_layout_request *request,
                              md_geometry *geometry) {
  char list[512] = "";
  search s = {.global = request->global,
              .costs = request->costs,
              .best = geometry->grid,
              .best_cost = -1,
              .list = list,
              .list_bytes = sizeof list};
  const int *asked = request->grid;
  each_grid(request->global, context->ranks, keep_best, &s);
  geometry->grid_asked = asked[0] != 0 || asked[1] != 0 || asked[2] != 0 || asked[3] != 0;
  if (geometry->grid_asked) {
    MD_TRY(check_asked(context, request, list));
    memcpy(geometry->grid, asked, sizeof geometry->grid);
  } else if (s.grids == 0)
    return refuse(context, request->global, asked, list);
  give_reason(geometry, &s, context->ranks);
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
