#include "base/memory.h"
#include "dirac/cpu_simd/cpu_simd.h"

#include <stdlib.h>
#include <string.h>

/* W neighbours as lanes of two vectors that start at `first` and `second`. */
typedef struct windows {
  int32_t first, second;
  int32_t pick[MD_SIMD_MOST_LANES];
} windows;

/* The vector starts at `low`, or before it where it would run over `end`. */
static int32_t window_at(int32_t low, int lanes, int64_t end) {
  return (int32_t)(low + lanes <= end ? low : end - lanes);
}

/* False when two vectors do not hold all neighbours. No vector reaches into the halo unless a
 * neighbour lies there. */
static bool find_windows(const md_geometry *g, const int32_t *index, int lanes, windows *w) {
  int32_t low = index[0], high = index[0];
  for (int l = 1; l < lanes; l++) {
    if (index[l] < low) low = index[l];
    if (index[l] > high) high = index[l];
  }
  const int64_t all = g->sites + g->halo_sites, padded = (all + lanes - 1) / lanes * lanes;
  const int64_t end = high < g->sites && g->sites >= lanes ? g->sites : padded;
  w->first = w->second = window_at(low, lanes, end);
  int32_t low2 = high;
  for (int l = 0; l < lanes; l++)
    if (index[l] >= w->first + lanes && index[l] < low2) low2 = index[l];
  if (high >= w->first + lanes) w->second = window_at(low2, lanes, end);
  for (int l = 0; l < lanes; l++) {
    if (index[l] < w->first + lanes)
      w->pick[l] = index[l] - w->first;
    else if (index[l] < w->second + lanes)
      w->pick[l] = lanes + index[l] - w->second;
    else
      return false;
  }
  return true;
}

static int64_t more_room(int64_t room) {
  return room ? 2 * room : 64;
}

/* Makes room for one more row of `lanes` indices. */
static bool grow(int32_t **rows, int64_t count, int64_t *room, int lanes) {
  if (count < *room) return true;
  const int64_t more = more_room(*room);
  int32_t *grown = realloc(*rows, (size_t)(more * lanes) * sizeof **rows);
  if (!grown) return false;
  *rows = grown;
  *room = more;
  return true;
}

/* The row of `pick`, added when new; MD_SIMD_GATHER when there are too many; -1: no memory. */
static int pattern_of(md_simd_plan *plan, const int32_t *pick) {
  const size_t bytes = (size_t)plan->lanes * sizeof *pick;
  for (int k = plan->patterns - 1; k >= 0; k--)
    if (memcmp(plan->pick + k * plan->lanes, pick, bytes) == 0) return k;
  if (plan->patterns == MD_SIMD_GATHER) return MD_SIMD_GATHER;
  if (!grow(&plan->pick, plan->patterns, &plan->patterns_room, plan->lanes)) return -1;
  memcpy(plan->pick + plan->patterns * plan->lanes, pick, bytes);
  return plan->patterns++;
}

static bool add_entry(md_simd_plan *plan, const md_geometry *g, int64_t entry,
                      const int32_t *index) {
  if (plan->lanes == 1) {
    plan->first[entry] = index[0];
    return true;
  }
  windows w;
  int pattern = MD_SIMD_GATHER;
  if (find_windows(g, index, plan->lanes, &w)) {
    pattern = pattern_of(plan, w.pick);
    if (pattern < 0) return false;
    plan->first[entry] = w.first;
    plan->second[entry] = w.second;
  }
  if (pattern == MD_SIMD_GATHER) {
    if (!grow(&plan->gather, plan->gathers, &plan->gathers_room, plan->lanes)) return false;
    memcpy(plan->gather + plan->gathers * plan->lanes, index, (size_t)plan->lanes * sizeof *index);
    plan->first[entry] = (int32_t)plan->gathers++;
  }
  plan->pattern[entry] = (uint16_t)pattern;
  return true;
}

/* The first sites of all blocks. */
static void order_blocks(md_simd_plan *plan, const md_geometry *g, int threads, int planes) {
  const int64_t slice = g->sites / g->local[MD_T], slab = slice / g->local[MD_Z] * planes;
  int32_t *site = plan->site;
  for (int64_t b = 0; plan->lanes > 1 && b < plan->blocks; b++)
    *site++ = (int32_t)(b * plan->lanes);
  for (int k = 0; plan->lanes == 1 && k < threads; k++) {
    const int64_t begin = g->sites * k / threads, end = g->sites * (k + 1) / threads;
    for (int64_t low = 0; low < slice; low += slab)
      for (int64_t t = 0; t < g->sites; t += slice) {
        const int64_t high = t + (low + slab < slice ? low + slab : slice);
        for (int64_t i = t + low > begin ? t + low : begin; i < high && i < end; i++)
          *site++ = (int32_t)i;
      }
  }
}

/* Fills the rest of one block; returns false without memory. */
static bool add_block(md_simd_plan *plan, const md_links *links, int parity, int64_t block) {
  const md_geometry *g = links->field->geometry;
  const int64_t site = plan->site[block];
  bool halo = false;
  for (int term = 0; term < plan->terms; term++) {
    const int32_t *neighbour = md_links_neighbours(links, parity, term);
    int32_t index[MD_SIMD_MOST_LANES] = {0};
    unsigned sign = 0;
    for (int l = 0; l < plan->lanes; l++) { /* lanes past the end repeat the last site */
      const int64_t i = site + l < g->sites ? site + l : g->sites - 1;
      index[l] = neighbour[i];
      sign |= (unsigned)md_links_minus(links, parity, term, i) << l;
      halo = halo || index[l] >= g->sites;
    }
    plan->sign[block * plan->terms + term] = (uint16_t)sign;
    if (!add_entry(plan, g, block * plan->terms + term, index)) return false;
  }
  const md_range range = halo ? MD_RANGE_BOUNDARY : MD_RANGE_INTERIOR;
  plan->range[range][plan->in_range[range]++] = (int32_t)block;
  return true;
}

static md_status allocate(md_context *context, md_simd_plan *plan) {
  const size_t blocks = (size_t)plan->blocks, terms = (size_t)plan->terms;
  const size_t entries = blocks * terms;
  const char *what = "neighbour plan";
  MD_TRY(md_allocate(context, blocks * sizeof(int32_t), what, (void **)&plan->site));
  for (int r = MD_RANGE_INTERIOR; r <= MD_RANGE_BOUNDARY; r++)
    MD_TRY(md_allocate(context, blocks * sizeof(int32_t), what, (void **)&plan->range[r]));
  MD_TRY(md_allocate(context, (entries + terms) * sizeof(int32_t), what, (void **)&plan->first));
  MD_TRY(md_allocate(context, entries * sizeof(uint16_t), what, (void **)&plan->sign));
  if (plan->lanes == 1) return MD_OK;
  MD_TRY(md_allocate(context, entries * sizeof(uint16_t), what, (void **)&plan->pattern));
  return md_allocate(context, entries * sizeof(int32_t), what, (void **)&plan->second);
}

md_status md_simd_plan_create(md_context *context, const md_links *links, int parity, int lanes,
                              int planes, md_simd_plan *plan) {
  const int64_t sites = links->field->geometry->sites;
  *plan = (md_simd_plan){.lanes = lanes,
                         .terms = md_action_terms(links->action),
                         .blocks = (sites + lanes - 1) / lanes};
  md_status status = allocate(context, plan);
  if (status == MD_OK && md_counts(context)) return MD_OK;
  if (status == MD_OK)
    memset(plan->first + plan->blocks * plan->terms, 0, (size_t)plan->terms * sizeof(int32_t));
  if (status == MD_OK) order_blocks(plan, links->field->geometry, context->threads, planes);
  int32_t in_order[MD_SIMD_MOST_LANES];
  for (int l = 0; l < lanes; l++) in_order[l] = l;
  bool room = status == MD_OK && (lanes == 1 || pattern_of(plan, in_order) == MD_SIMD_CONTIGUOUS);
  for (int64_t b = 0; room && b < plan->blocks; b++) room = add_block(plan, links, parity, b);
  plan->in_range[MD_RANGE_ALL] = plan->blocks;
  const int64_t rows = more_room(plan->patterns_room) + more_room(plan->gathers_room);
  if (status == MD_OK && !room)
    status = md_fail_memory(context, (size_t)(rows * lanes) * sizeof(int32_t), "neighbour plan");
  if (status != MD_OK) md_simd_plan_destroy(plan);
  return status;
}

void md_simd_plan_destroy(md_simd_plan *plan) {
  MD_FREE(plan->site, plan->first, plan->second, plan->pattern, plan->sign, plan->pick,
          plan->gather);
  for (int r = MD_RANGE_INTERIOR; r <= MD_RANGE_BOUNDARY; r++) free(plan->range[r]);
  *plan = (md_simd_plan){0};
}
