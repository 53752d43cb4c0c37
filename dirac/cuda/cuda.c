/* The cuda backend: stencils on CUDA cores. This file lays out the links and chooses the kernel;
 * the kernels are in hop_one.cuh and hop_many.cuh, compiled once for each storage type. */
#include "base/device.h"
#include "base/memory.h"
#include "dirac/cuda/stencil.h"

#include <stdlib.h>

typedef struct cuda_state {
  md_backend_request request;
  const md_geometry *geometry;
  const md_stencil_kernels *kernels;
  int reals;
  md_stencil stencil[MD_PARITIES];
} cuda_state;

/* Tables of the stencils on the host, while they are loaded. */
typedef struct host_tables {
  md_row *rows[MD_PARITIES];
  md_long_row *long_rows[MD_PARITIES]; /* NULL: one link field */
  int32_t *order;                      /* of many right-hand sides, else NULL */
} host_tables;

static const md_stencil_kernels *const kernels_of[MD_PRECISIONS] = {
    [MD_DOUBLE] = &md_stencil_double, [MD_SINGLE] = &md_stencil_single,
    [MD_HALF] = &md_stencil_half,     [MD_BF16] = &md_stencil_bf16,
    [MD_FIXED] = &md_stencil_fixed,
};

static int reals_of(md_reconstruct reconstruct) {
  return reconstruct == MD_RECONSTRUCT_18 ? 18 : reconstruct == MD_RECONSTRUCT_12 ? 12 : 8;
}

/* q = (2 n * magic) >> (32 + shift), magic = ceil(2^(31 + shift) / d), 2^(shift-1) < d <= 2^shift:
 * exact for n < 2^31 (T. Granlund, P. Montgomery, PLDI 1994). */
static md_divisor divisor_of(int d) {
  uint32_t shift = 0;
  while (1u << shift < (uint32_t)d) shift++;
  const uint64_t power = (uint64_t)1 << (31 + shift);
  return (md_divisor){(uint32_t)d, (uint32_t)((power + (uint64_t)d - 1) / (uint64_t)d), shift};
}

static int pairs_of(const md_links *links) {
  return MD_DIMS * md_action_get(links->action)->fields;
}

/* The term whose link is stored at `side` of a direction pair; up: bit 0 of the row. */
static int term_of(int pair, int side, bool up) {
  const int mu = pair % MD_DIMS;
  const bool backward = mu == MD_X ? (side == 0) == up : side == 1;
  return pair / MD_DIMS * MD_DIRECTIONS + (backward ? MD_DIMS + mu : mu);
}

/* Minus signs of the links of a row in stored order, those of the long links behind the others.
 * They are those of its first site: x counts for the signs only by its parity. */
static uint32_t row_signs(const md_links *links, int parity, int64_t first) {
  int x[MD_DIMS];
  md_global_coordinates(links->field->geometry, parity, first, x);
  const bool up = x[0] & 1;
  uint32_t bits = up;
  for (int pair = 0; pair < pairs_of(links); pair++)
    for (int side = 0; side < 2; side++) {
      const bool minus = md_links_minus(links, parity, term_of(pair, side, up), first);
      bits |= (uint32_t)minus << (1 + 2 * pair + side);
    }
  return bits;
}

static void make_rows(const md_links *links, int parity, md_row *rows) {
  const md_geometry *g = links->field->geometry;
  const int64_t half = g->local[0] / 2, count = g->sites / half;
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < count; r++) {
    const int64_t first = r * half;
    for (int mu = 1; mu < MD_DIMS; mu++) {
      rows[r].base[mu - 1] = g->neighbour[parity][mu][first];
      rows[r].base[mu + 2] = g->neighbour[parity][MD_DIMS + mu][first];
    }
    rows[r].bits = row_signs(links, parity, first);
    rows[r].edge = rows[r].bits & 1u ? g->neighbour[parity][MD_X][first + half - 1]
                                     : g->neighbour[parity][MD_DIMS + MD_X][first];
  }
}

static void make_long_rows(const md_links *links, int parity, md_long_row *rows) {
  const md_geometry *g = links->field->geometry;
  const int64_t half = g->local[0] / 2, count = g->sites / half;
  const int32_t *to[MD_DIRECTIONS];
  for (int d = 0; d < MD_DIRECTIONS; d++)
    to[d] = md_links_neighbours(links, parity, MD_DIRECTIONS + d);
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < count; r++) {
    const int64_t first = r * half, last = first + half - 1;
    int x[MD_DIMS];
    md_global_coordinates(g, parity, first, x);
    const bool up = x[0] & 1;
    for (int mu = 1; mu < MD_DIMS; mu++) {
      rows[r].base[mu - 1] = to[mu][first];
      rows[r].base[mu + 2] = to[MD_DIMS + mu][first];
    }
    rows[r].beyond = up ? to[MD_X][last] : to[MD_DIMS + MD_X][first];
    rows[r].behind = up ? to[MD_DIMS + MD_X][first] : to[MD_X][last];
  }
}

/* Neighbouring sites of a thread: the most that the storage type has a kernel for and for which
 * all rows begin at multiples. */
static int sites_per_slot(const md_geometry *g, const md_backend_request *request,
                          const host_tables *t) {
  const int64_t half = g->local[0] / 2, count = g->sites / half;
  int v = request->precision == MD_DOUBLE ? 1 : 2;
  if (request->n_rhs > 1) return 1;
  int64_t all = half;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int64_t r = 0; r < count; r++)
      for (int d = 0; d < 6; d++)
        all |= t->rows[p][r].base[d] | (t->long_rows[p] ? t->long_rows[p][r].base[d] : 0);
  while (all % v != 0) v /= 2;
  return v;
}

/* Slots whose sites read no halo, then the others. */
static md_status make_ranges(md_context *context, const md_links *links, md_stencil *s,
                             const int32_t *order) {
  int32_t *slots = NULL;
  MD_TRY(md_allocate(context, (size_t)s->slots * sizeof *slots, "site lists", (void **)&slots));
  md_status status = MD_OK;
  for (int part = 0; part < 2 && status == MD_OK; part++) {
    int32_t count = 0;
    for (int64_t i = 0; i < s->slots; i++) {
      bool boundary = false;
      for (int v = 0; v < s->sites_per_slot; v++)
        boundary |=
            md_links_reach_halo(links, s->parity, order ? order[i] : i * s->sites_per_slot + v);
      if (boundary == (part == 1)) slots[count++] = (int32_t)i;
    }
    const size_t bytes = (size_t)count * sizeof *slots;
    s->range_count[part] = count;
    status = md_device_allocate(context, bytes, "site lists", (void **)&s->range[part]);
    if (status == MD_OK && count > 0)
      status = md_device_upload(context, (void *)s->range[part], slots, bytes);
  }
  free(slots);
  return status;
}

/* Sites in the order of blocks of b sites along h = x/2, y, z, t: the sites that a block of
 * threads computes share their neighbours in L1. */
static void make_order(const md_geometry *g, int32_t *order) {
  const int extent[4] = {g->local[0] / 2, g->local[1], g->local[2], g->local[3]};
  int block[4] = {4, 4, 4, 4}, blocks[4];
  for (int d = 0; d < 4; d++) {
    while (extent[d] % block[d] != 0) block[d]--;
    blocks[d] = extent[d] / block[d];
  }
  const int size = block[0] * block[1] * block[2] * block[3];
  for (int64_t i = 0; i < g->sites; i++) {
    int inside = (int)(i % size), x[4];
    int64_t outside = i / size;
    for (int d = 0; d < 4; d++) {
      x[d] = (int)(outside % blocks[d]) * block[d] + inside % block[d];
      outside /= blocks[d];
      inside /= block[d];
    }
    order[i] =
        (int32_t)((((int64_t)x[3] * extent[2] + x[2]) * extent[1] + x[1]) * extent[0] + x[0]);
  }
}

static size_t link_bytes_of(const md_stencil *s, const cuda_state *state) {
  const size_t slots = ((size_t)s->slots + 31) / 32 * 32; /* whole tiles */
  return slots * (size_t)(2 * s->pairs * state->reals * s->sites_per_slot) *
         md_precision_bytes(state->request.precision);
}

static void unload(void *state) {
  cuda_state *s = state;
  if (!s) return;
  for (int p = 0; p < MD_PARITIES; p++) {
    md_device_free((void *)s->stencil[p].links);
    md_device_free((void *)s->stencil[p].rows);
    md_device_free((void *)s->stencil[p].long_rows);
    md_device_free((void *)s->stencil[p].order);
    for (int part = 0; part < 2; part++) md_device_free((void *)s->stencil[p].range[part]);
  }
  free(s);
}

/* Copies `bytes` of a table to new memory of the device; none for NULL. */
static md_status copy_table(md_context *context, const char *what, const void *table, size_t bytes,
                            const void **on_device) {
  void *memory = NULL;
  if (!table) return MD_OK;
  MD_TRY(md_device_allocate(context, bytes, what, &memory));
  *on_device = memory;
  return md_device_upload(context, memory, table, bytes);
}

/* Rows, order and ranges of both parities on the device. */
static md_status load_tables(md_context *context, cuda_state *s, const md_links *links,
                             host_tables *t) {
  const md_geometry *g = s->geometry;
  const size_t rows = (size_t)(2 * g->sites / g->local[0]);
  for (int p = 0; p < MD_PARITIES; p++) {
    make_rows(links, p, t->rows[p]);
    if (t->long_rows[p]) make_long_rows(links, p, t->long_rows[p]);
  }
  const int v = sites_per_slot(g, &s->request, t);
  if (t->order) make_order(g, t->order);
  for (int p = 0; p < MD_PARITIES; p++) {
    md_stencil *st = &s->stencil[p];
    *st = (md_stencil){.parity = p,
                       .sites_per_slot = v,
                       .tile = s->request.n_rhs < 12 ? 32 : 1,
                       .pairs = pairs_of(links)};
    for (int f = 0; f < MD_MOST_LINK_FIELDS; f++) st->largest[f] = (float)links->largest[f];
    st->slots = g->sites / v;
    st->slots_per_row = divisor_of(g->local[0] / 2 / v);
    MD_TRY(copy_table(context, "rows of the stencil", t->rows[p], rows * sizeof(md_row),
                      (const void **)&st->rows));
    MD_TRY(copy_table(context, "rows of the stencil", t->long_rows[p], rows * sizeof(md_long_row),
                      (const void **)&st->long_rows));
    MD_TRY(copy_table(context, "order of sites", t->order, (size_t)g->sites * sizeof *t->order,
                      (const void **)&st->order));
    if (g->halo_sites > 0) MD_TRY(make_ranges(context, links, st, t->order));
  }
  return MD_OK;
}

/* What loading needs on the device beside the links: those of one field and direction as they are,
 * and what folds them. */
typedef struct load_buffers {
  double *bare[MD_PARITIES];
  int32_t *neighbour; /* x - h mu */
  double *phases;     /* of a twist, [side][re, im][site]; NULL without one */
  double *host_phases;
} load_buffers;

static void free_buffers(load_buffers *b) {
  for (int p = 0; p < MD_PARITIES; p++) md_device_free(b->bare[p]);
  md_device_free(b->neighbour);
  md_device_free(b->phases);
  free(b->host_phases);
}

/* The phases of a direction's two terms at all sites, as pack reads them. */
static md_status load_phases(md_context *context, const md_links *links, int parity, int pair,
                             load_buffers *b) {
  const md_geometry *g = links->field->geometry;
  if (!b->phases) return MD_OK;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < g->sites; i++) {
    int x[MD_DIMS];
    md_global_coordinates(g, parity, i, x);
    for (int side = 0; side < 2; side++) {
      double phase[2];
      md_links_phase(links, parity, term_of(pair, side, x[0] & 1), i, phase);
      for (int c = 0; c < 2; c++) b->host_phases[(2 * side + c) * g->sites + i] = phase[c];
    }
  }
  return md_device_upload(context, b->phases, b->host_phases,
                          4 * (size_t)g->sites * sizeof *b->host_phases);
}

/* The links of a direction pair, brought to the device as they are, folded and repacked there. */
static md_status load_pair(md_context *context, cuda_state *s, const md_links *links, int pair,
                           load_buffers *b) {
  const md_geometry *g = s->geometry;
  const int mu = pair % MD_DIMS, backward = pair / MD_DIMS * MD_DIRECTIONS + MD_DIMS + mu;
  const md_gauge *gauge = &links->field[pair / MD_DIMS];
  const int64_t stride = gauge->links[0][mu].stride;
  for (int p = 0; p < MD_PARITIES; p++)
    MD_TRY(md_device_upload(context, b->bare[p], gauge->links[p][mu].data,
                            MD_LINK_REALS * (size_t)stride * sizeof(double)));
  for (int p = 0; p < MD_PARITIES; p++) {
    const md_pack_source source = {b->bare[p], b->bare[1 - p], b->neighbour, b->phases, stride};
    MD_TRY(md_device_upload(context, b->neighbour, md_links_neighbours(links, p, backward),
                            (size_t)g->sites * sizeof *b->neighbour));
    MD_TRY(load_phases(context, links, p, pair, b));
    if (s->kernels->pack(&s->stencil[p], s->reals, pair, &source, (void *)s->stencil[p].links) != 0)
      return md_fail(context, MD_ENVIRONMENT, "packing of links failed on the GPU of rank %d",
                     context->rank);
  }
  return md_device_synchronise(context);
}

static md_status load_links(md_context *context, cuda_state *s, const md_links *links) {
  const md_field *bare = &links->field->links[0][0];
  const size_t bare_bytes = MD_LINK_REALS * (size_t)bare->stride * sizeof(double);
  const size_t index_bytes = (size_t)s->geometry->sites * sizeof(int32_t);
  const size_t links_bytes = link_bytes_of(&s->stencil[0], s);
  const size_t phase_bytes =
      md_links_twisted(&links->twist) ? 4 * (size_t)s->geometry->sites * sizeof(double) : 0;
  load_buffers b = {0};
  md_status status =
      md_device_require(context, 2 * (bare_bytes + links_bytes) + index_bytes + phase_bytes,
                        "loading the links into the cuda backend");
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = md_device_allocate(context, links_bytes, "links", (void **)&s->stencil[p].links);
    s->stencil[p].keep_links = links_bytes < (size_t)40 << 20;
    if (status == MD_OK)
      status = md_device_allocate(context, bare_bytes, "bare links", (void **)&b.bare[p]);
  }
  if (status == MD_OK)
    status = md_device_allocate(context, index_bytes, "neighbours", (void **)&b.neighbour);
  if (status == MD_OK && phase_bytes > 0) {
    status = md_allocate(context, phase_bytes, "phases of links", (void **)&b.host_phases);
    if (status == MD_OK)
      status = md_device_allocate(context, phase_bytes, "phases of links", (void **)&b.phases);
  }
  for (int pair = 0; pair < pairs_of(links) && status == MD_OK; pair++)
    status = load_pair(context, s, links, pair, &b);
  free_buffers(&b);
  return status;
}

static md_status make_tables(md_context *context, const md_links *links, int n_rhs,
                             host_tables *t) {
  const md_geometry *g = links->field->geometry;
  const size_t rows = (size_t)(2 * g->sites / g->local[0]), sites = (size_t)g->sites;
  for (int p = 0; p < MD_PARITIES; p++) {
    MD_TRY(
        md_allocate(context, rows * sizeof(md_row), "rows of the stencil", (void **)&t->rows[p]));
    if (md_action_get(links->action)->fields > 1)
      MD_TRY(md_allocate(context, rows * sizeof(md_long_row), "rows of the stencil",
                         (void **)&t->long_rows[p]));
  }
  return n_rhs > 1 ? md_allocate(context, sites * sizeof *t->order, "order", (void **)&t->order)
                   : MD_OK;
}

static md_status load(md_context *context, const md_links *links, const md_backend_request *request,
                      void **state) {
  *state = NULL;
  MD_TRY(md_device_open(context));
  cuda_state *s = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "cuda backend");
  *s = (cuda_state){.request = *request,
                    .geometry = links->field->geometry,
                    .kernels = kernels_of[request->precision],
                    .reals = reals_of(request->reconstruct)};
  host_tables tables = {0};
  md_status status = make_tables(context, links, request->n_rhs, &tables);
  if (status == MD_OK) status = load_tables(context, s, links, &tables);
  if (status == MD_OK) status = load_links(context, s, links);
  for (int p = 0; p < MD_PARITIES; p++) free(tables.rows[p]), free(tables.long_rows[p]);
  free(tables.order);
  if (status == MD_OK)
    *state = s;
  else
    unload(s);
  return status;
}

static md_status hop(md_context *context, void *state, md_field *out, const md_field *in,
                     md_range range, const md_epilogue *epilogue) {
  const cuda_state *s = state;
  const bool plain = !epilogue || !epilogue->x;
  const md_hop_call call = {.stencil = &s->stencil[out->parity],
                            .out = out,
                            .in = in,
                            .x = plain ? NULL : epilogue->x,
                            .a = plain ? 0.0 : epilogue->a,
                            .half_b = plain ? MD_HOP_FACTOR : MD_HOP_FACTOR * epilogue->b,
                            .step = epilogue ? epilogue->step : NULL,
                            .norm2 = epilogue ? epilogue->norm2 : NULL,
                            .backwards = epilogue && epilogue->backwards,
                            .range = range};
  const int error = s->request.n_rhs == 1 ? s->kernels->hop_one(&call, s->reals)
                                          : s->kernels->hop_many(&call, s->reals);
  if (error == 0) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "a stencil of the cuda backend failed on the GPU of rank %d (CUDA error %d)",
                 context->rank, error);
}

static bool fuses(const void *state, md_precision out) {
  const cuda_state *s = state;
  return out == s->request.precision ||
         (out == MD_SINGLE && md_precision_bytes(s->request.precision) == 2);
}

static double link_bytes(const md_backend_request *request) {
  return (double)md_action_terms(request->action) * reals_of(request->reconstruct) *
         (double)md_precision_bytes(request->precision);
}

const md_backend md_backend_cuda = {
    .name = "cuda",
    .needs = "CUDA GPU",
    .space = MD_DEVICE,
    .precisions =
        1u << MD_DOUBLE | 1u << MD_SINGLE | 1u << MD_HALF | 1u << MD_BF16 | 1u << MD_FIXED,
    .reconstructs = 1u << MD_RECONSTRUCT_18 | 1u << MD_RECONSTRUCT_12 | 1u << MD_RECONSTRUCT_8,
    .packings = 1u << MD_PACKING_NONE,
    .actions = MD_ALL_ACTIONS,
    .speed = 100,
    .load = load,
    .unload = unload,
    .hop = hop,
    .fuses = fuses,
    .link_bytes = link_bytes};
