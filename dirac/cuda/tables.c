/* Tables of the cuda backend's stencils: rows, the order of sites, interior and boundary. */
#include "base/device.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "dirac/cuda/stencil.h"

#include <stdlib.h>
#include <string.h>

int md_stencil_reals(const md_backend_request *request, int field) {
  const bool there = field < md_action_get(request->action)->fields;
  const md_reconstruct stored = md_reconstruct_of_field(request->reconstruct, field);
  return there ? atoi(md_reconstruct_name(stored)) : 0; /* the table names them by their reals */
}

/* Links of a site lie together where neighbouring threads share them. */
static int tile_of(const md_backend_request *request) {
  if (md_action_has_spin(request->action))
    return request->n_rhs > 1 || md_request_slices(request) > 3 ? 1 : 32;
  return request->n_rhs < 12 || md_reconstruct_has_phase(request->reconstruct) ? 32 : 1;
}

/* Tables of the stencils on the host, while they are made. */
typedef struct host_tables {
  md_row *rows[MD_PARITIES];           /* NULL as all others in a dry run */
  md_long_row *long_rows[MD_PARITIES]; /* NULL: one link field */
  int32_t *blocks, *order; /* of many right-hand sides or four spins, else NULL; order: the blocks
                              sorted for a parity */
} host_tables;

/* Minus signs of the links of a row in stored order, those of the long links behind the others.
 * They are those of its first site: x counts for the signs only by its parity. */
static uint32_t row_signs(const md_links *links, int parity, int64_t first) {
  int x[MD_DIMS];
  md_global_coordinates(links->field->geometry, parity, first, x);
  const bool up = x[0] & 1;
  uint32_t bits = up;
  for (int pair = 0; pair < md_stencil_pairs(links->action); pair++)
    for (int side = 0; side < 2; side++) {
      const bool minus = md_links_minus(links, parity, md_stencil_term(pair, side, up), first);
      bits |= (uint32_t)minus << (1 + 2 * pair + side);
    }
  return bits;
}

/* First sites of the neighbours' rows in y, z and t of the row that begins with `first`. */
static void find_bases(int32_t *const to[MD_DIRECTIONS], int64_t first, int32_t base[6]) {
  for (int mu = 1; mu < MD_DIMS; mu++) {
    base[mu - 1] = to[mu][first];
    base[mu + 2] = to[MD_DIMS + mu][first];
  }
}

/* long_rows NULL: one link field. */
static void make_rows(const md_links *links, int parity, md_row *rows, md_long_row *long_rows) {
  const md_geometry *g = links->field->geometry;
  const int64_t half = g->local[0] / 2, count = g->sites / half;
  int32_t *const *near = g->neighbour[parity], *const *far = g->third_neighbour[parity];
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < count; r++) {
    const int64_t first = r * half, last = first + half - 1;
    find_bases(near, first, rows[r].base);
    rows[r].bits = row_signs(links, parity, first);
    const bool up = rows[r].bits & 1u;
    rows[r].edge = up ? near[MD_X][last] : near[MD_DIMS + MD_X][first];
    if (!long_rows) continue;
    find_bases(far, first, long_rows[r].base);
    long_rows[r].beyond = up ? far[MD_X][last] : far[MD_DIMS + MD_X][first];
    long_rows[r].behind = up ? far[MD_DIMS + MD_X][first] : far[MD_X][last];
  }
}

/* Neighbouring sites of a thread: the most that the storage type has a kernel for and for which
 * all rows begin at multiples. */
static int sites_per_slot(const md_geometry *g, const md_backend_request *request,
                          const host_tables *t) {
  const int64_t half = g->local[0] / 2, count = g->sites / half;
  int v = request->precision == MD_DOUBLE ? 1 : 2;
  if (request->n_rhs > 1 || md_action_has_spin(request->action)) return 1;
  int64_t all = half;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t r = 0; t->rows[p] && r < count; r++)
      for (int d = 0; d < 6; d++)
        all |= t->rows[p][r].base[d] | (t->long_rows[p] ? t->long_rows[p][r].base[d] : 0);
  while (all % v != 0) v /= 2;
  return v;
}

static bool is_boundary(const md_links *links, const md_stencil *s, const int32_t *order,
                        int64_t slot) {
  bool boundary = false;
  for (int v = 0; v < s->sites_per_slot; v++)
    boundary |=
        md_links_reach_halo(links, s->parity, order ? order[slot] : slot * s->sites_per_slot + v);
  return boundary;
}

/* The range of `count` rising slots, without its list where they can be counted. */
static md_slot_range range_of(const int32_t *slots, int32_t count) {
  md_slot_range r = {.count = count, .first = count > 0 ? slots[0] : 0, .gap_at = count};
  for (int32_t i = 1; i < count; i++) {
    if (slots[i] == slots[i - 1] + 1) continue;
    if (r.gap_at < count) return (md_slot_range){.list = slots, .count = count};
    r.gap_at = i;
    r.gap = slots[i] - slots[i - 1] - 1;
  }
  return r;
}

/* Slots whose sites read no halo, and the others. */
static md_status make_ranges(md_context *context, const md_links *links, md_stencil *s,
                             const int32_t *order) {
  static const md_range ranges[] = {MD_RANGE_INTERIOR, MD_RANGE_BOUNDARY};
  int32_t *slots = NULL;
  MD_TRY(md_allocate(context, (size_t)s->slots * sizeof *slots, "site lists", (void **)&slots));
  md_status status = MD_OK;
  for (int k = 0; k < 2 && status == MD_OK; k++) {
    md_slot_range *range = &s->range[ranges[k]];
    int32_t count = 0;
    for (int64_t i = 0; i < s->slots; i++)
      if (is_boundary(links, s, order, i) == (k == 1)) slots[count++] = (int32_t)i;
    *range = range_of(slots, count);
    if (!range->list) continue;
    const size_t bytes = (size_t)count * sizeof *slots;
    range->list = NULL;
    status = md_device_allocate(context, bytes, "site lists", (void **)&range->list);
    if (status == MD_OK) status = md_device_upload(context, (void *)range->list, slots, bytes);
  }
  free(slots);
  return status;
}

/* Sites in the order of boxes within boxes along h = x/2, y, z, t: digit k of a number counts
 * steps along its direction, up to `most`. The sites that a block of threads computes share their
 * neighbours in L1. Where neighbouring threads have a site each they take whole rows, so that a
 * load of a warp meets few lines; with slices, which make sites large, blocks that follow each
 * other march along t and share theirs in L2. */
typedef struct digit {
  int direction, most;
} digit;
enum { MOST_DIGITS = 11 };
static const digit digits_of_colours[MOST_DIGITS] = {{0, 4}, {1, 4}, {2, 4}, {3, 4}};
static const digit digits_of_slices[MOST_DIGITS] = {
    {0, 2}, {1, 2}, {2, 2}, {3, 2}, {1, 2}, {2, 2}, {3, 2}, {0, 4}, {1, 4}, {2, 4}, {3, INT32_MAX}};
static const digit digits_of_rows[MOST_DIGITS] = {
    {0, INT32_MAX}, {1, 2}, {1, 2}, {2, 2}, {2, 2}, {1, 2}, {2, 2}, {1, INT32_MAX}, {2, INT32_MAX}};

static const digit *digits_of(const md_backend_request *request) {
  if (tile_of(request) > 1) return digits_of_rows;
  return md_action_has_spin(request->action) ? digits_of_slices : digits_of_colours;
}

static void make_order(const md_geometry *g, const digit *digits, int32_t *order) {
  int left[4] = {g->local[0] / 2, g->local[1], g->local[2], g->local[3]};
  int own = 0;
  while (own < MOST_DIGITS && digits[own].most > 0) own++;
  const int all = own + 4;
  int32_t step[4] = {1, left[0], left[0] * left[1], left[0] * left[1] * left[2]};
  int32_t size[MOST_DIGITS + 4], apart[MOST_DIGITS + 4];
  for (int k = 0; k < all; k++) { /* the last ones: what is left */
    const int d = k < own ? digits[k].direction : k - own;
    size[k] = k < own && digits[k].most < left[d] ? digits[k].most : left[d];
    while (left[d] % size[k] != 0) size[k]--;
    apart[k] = step[d];
    step[d] *= size[k];
    left[d] /= size[k];
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < g->sites; i++) {
    int64_t number = i;
    order[i] = 0;
    for (int k = 0; k < all; number /= size[k++])
      order[i] += (int32_t)(number % size[k]) * apart[k];
  }
}

/* `order` with the sites that read no halo first, each part in its order. */
static void put_interior_first(const md_links *links, int parity, const int32_t *order,
                               int32_t *sorted) {
  const int64_t sites = links->field->geometry->sites;
  int64_t count = 0;
  for (int boundary = 0; boundary < 2; boundary++)
    for (int64_t i = 0; i < sites; i++)
      if (md_links_reach_halo(links, parity, order[i]) == (boundary == 1))
        sorted[count++] = order[i];
}

/* Copies `bytes` of a table, which may be 0, to new memory of the device; counts them in a dry run,
 * which has no table. */
static md_status copy_table(md_context *context, const char *what, const void *table, size_t bytes,
                            const void **on_device) {
  void *memory = NULL;
  MD_TRY(md_device_allocate(context, bytes, what, &memory));
  *on_device = memory;
  return memory ? md_device_upload(context, memory, table, bytes) : MD_OK;
}

static bool has_long_rows(const md_links *links) {
  return md_action_get(links->action)->fields > 1;
}

/* Whether sites are taken in an order of their own. */
static bool is_ordered(const md_backend_request *request) {
  return request->n_rhs > 1 || md_action_has_spin(request->action);
}

static md_status load_tables(md_context *context, const md_links *links,
                             const md_backend_request *request, host_tables *t,
                             md_stencil stencil[MD_PARITIES]) {
  const md_geometry *g = links->field->geometry;
  const size_t rows = (size_t)(2 * g->sites / g->local[0]);
  const size_t long_rows = has_long_rows(links) ? rows : 0;
  const size_t ordered = is_ordered(request) ? (size_t)g->sites : 0;
  for (int p = 0; p < MD_PARITIES; p++)
    if (t->rows[p]) make_rows(links, p, t->rows[p], t->long_rows[p]);
  const int v = sites_per_slot(g, request, t);
  const md_spin_march march = md_spin_march_plan(request, g, &context->gpu);
  if (t->order && march.x > 0)
    md_spin_march_order(&march, t->blocks);
  else if (t->order)
    make_order(g, digits_of(request), t->blocks);
  for (int p = 0; p < MD_PARITIES; p++) {
    md_stencil *st = &stencil[p];
    *st = (md_stencil){.parity = p,
                       .sites_per_slot = v,
                       .tile = march.x > 0 ? march.sites : tile_of(request),
                       .march = march};
    for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) {
      st->reals[f] = md_stencil_reals(request, f);
      st->largest[f] = links->largest[f];
    }
    st->slots = g->sites / v;
    st->slots_per_row = md_divisor_of(g->local[0] / 2 / v);
    MD_TRY(copy_table(context, "rows of the stencil", t->rows[p], rows * sizeof(md_row),
                      (const void **)&st->rows));
    MD_TRY(copy_table(context, "rows of the stencil", t->long_rows[p],
                      long_rows * sizeof(md_long_row), (const void **)&st->long_rows));
    if (t->order && march.x > 0)
      memcpy(t->order, t->blocks, (size_t)g->sites * sizeof *t->order);
    else if (t->order)
      put_interior_first(links, p, t->blocks, t->order);
    MD_TRY(copy_table(context, "order of sites", t->order, ordered * sizeof *t->order,
                      (const void **)&st->order));
    for (int r = 0; r < 3; r++)
      st->range[r] = (md_slot_range){.count = (int32_t)st->slots, .gap_at = (int32_t)st->slots};
    st->range[MD_RANGE_BOUNDARY].count = 0;
    if (g->halo_sites > 0 && march.x == 0 && !md_counts(context))
      MD_TRY(make_ranges(context, links, st, t->order));
  }
  return MD_OK;
}

static md_status make_tables(md_context *context, const md_links *links,
                             const md_backend_request *request, host_tables *t) {
  const md_geometry *g = links->field->geometry;
  const size_t rows = (size_t)(2 * g->sites / g->local[0]), sites = (size_t)g->sites;
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(
        md_allocate(context, rows * sizeof(md_row), "rows of the stencil", (void **)&t->rows[p]));
    if (has_long_rows(links))
      MD_TRY(md_allocate(context, rows * sizeof(md_long_row), "rows of the stencil",
                         (void **)&t->long_rows[p]));
  }
  if (!is_ordered(request)) return MD_OK;
  MD_TRY(md_allocate(context, sites * sizeof *t->blocks, "order", (void **)&t->blocks));
  return md_allocate(context, sites * sizeof *t->order, "order", (void **)&t->order);
}

md_status md_stencil_tables_load(md_context *context, const md_links *links,
                                 const md_backend_request *request,
                                 md_stencil stencil[MD_PARITIES]) {
  host_tables tables = {0};
  const int64_t host = md_memory_mark(context).host; /* that of the device stays */
  md_status status = make_tables(context, links, request, &tables);
  if (status == MD_OK) status = load_tables(context, links, request, &tables, stencil);
  for (int p = 0; p < MD_PARITIES; p++) MD_FREE(tables.rows[p], tables.long_rows[p]);
  MD_FREE(tables.blocks, tables.order);
  md_memory_return_to(context, (md_memory_need){host, md_memory_mark(context).device});
  return status;
}

void md_stencil_tables_free(md_stencil stencil[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++) {
    md_device_free((void *)stencil[p].rows);
    md_device_free((void *)stencil[p].long_rows);
    md_device_free((void *)stencil[p].order);
    for (int r = 0; r < 3; r++) md_device_free((void *)stencil[p].range[r].list);
  }
}
