/* The backend `tensor`: link copies on the device, and which kernel serves which call. */
#include "dirac/tensor/tensor.h"

#include "base/device.h"
#include "base/memory.h"
#include "base/memory_need.h"
#include "dirac/wilson/wilson.h"
#include "lattice/fields/reals.h"

#include <stdio.h>
#include <stdlib.h>

enum { UPLOAD_SITES = 1 << 16 }; /* packed on the host at a time */

typedef struct tensor {
  md_backend_request request;
  const md_geometry *geometry;
  void *links[MD_PARITIES];
  int terms;                       /* of the action */
  int32_t *neighbour[MD_PARITIES]; /* [term][site] */
  int32_t *range[MD_PARITIES][2];  /* interior, boundary; NULL without halo */
  int64_t range_count[MD_PARITIES][2];
  /* Launch shapes: the tiles of the marching kernel of `stacked`, where the lattice takes it, and
   * last the gathering one. */
  md_march_plan plan[MARCH_TILES];
  int plans, shape;
} tensor;

static void unload(void *state) {
  tensor *s = state;
  for (int p = 0; s && p < MD_PARITIES; p++) {
    md_device_free(s->links[p]);
    md_device_free(s->neighbour[p]);
    for (int r = 0; r < 2; r++) md_device_free(s->range[p][r]);
  }
  free(s);
}

/* The 144 reals of a site's matrices of each link field, in the order that the packing's kernel
 * reads. */
static void pack_site(const md_backend_request *request, const md_links *links, int parity,
                      int64_t site, void *to, int64_t first) {
  for (int term = 0; term < md_action_terms(links->action); term++) {
    const int field = term / MD_DIRECTIONS, d = term % MD_DIRECTIONS;
    double folded[MD_LINK_REALS];
    md_links_fold(links, parity, term, site, 1, false, folded);
    for (int n = 0; n < 9; n++) {
      const int at = request->packing == MD_PACKING_STACKED
                         ? md_stacked_link_at(request->precision, d, n / 3, n % 3)
                         : 9 * d + n;
      md_store_reals(request->precision, to, first + 2 * (9 * MD_DIRECTIONS * field + at), 2,
                     folded + 2 * n);
    }
  }
}

static md_status load_links(md_context *context, tensor *s, const md_links *links, int parity) {
  const int64_t sites = s->geometry->sites, reals = s->terms * MD_LINK_REALS;
  const int64_t room = sites < UPLOAD_SITES ? sites : UPLOAD_SITES;
  const size_t site_bytes = (size_t)reals * md_precision_bytes(s->request.precision);
  void *buffer = NULL;
  md_status status =
      md_device_allocate(context, (size_t)sites * site_bytes, "links of tensor", &s->links[parity]);
  const md_memory_need mark = md_memory_mark(context);
  if (status == MD_OK)
    status = md_allocate(context, (size_t)room * site_bytes, "links on their way", &buffer);
  for (int64_t first = 0; buffer && first < sites && status == MD_OK; first += room) {
    const int64_t count = sites - first < room ? sites - first : room;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
      pack_site(&s->request, links, parity, first + i, buffer, i * reals);
    status = md_device_upload(context, (char *)s->links[parity] + (size_t)first * site_bytes,
                              buffer, (size_t)count * site_bytes);
  }
  free(buffer);
  md_memory_return_to(context, mark);
  return status;
}

static md_status load_neighbours(md_context *context, tensor *s, const md_links *links,
                                 int parity) {
  const size_t bytes = (size_t)s->geometry->sites * sizeof(int32_t);
  MD_TRY(md_device_allocate(context, (size_t)s->terms * bytes, "neighbours of tensor",
                            (void **)&s->neighbour[parity]));
  if (md_counts(context)) return MD_OK; /* no memory to point into */
  for (int term = 0; term < s->terms; term++)
    MD_TRY(md_device_upload(context, s->neighbour[parity] + term * s->geometry->sites,
                            md_links_neighbours(links, parity, term), bytes));
  return MD_OK;
}

/* Lists of the sites that do not and that do read the halo. */
static md_status load_ranges(md_context *context, tensor *s, const md_links *links, int parity) {
  const md_geometry *g = s->geometry;
  if (g->halo_sites == 0 || md_counts(context)) return MD_OK;
  int32_t *list = NULL;
  MD_TRY(md_allocate(context, (size_t)g->sites * sizeof *list, "site list", (void **)&list));
  md_status status = MD_OK;
  for (int boundary = 0; boundary < 2 && status == MD_OK; boundary++) {
    int64_t count = 0;
    for (int64_t i = 0; i < g->sites; i++)
      if (md_links_reach_halo(links, parity, i) == (boundary == 1)) list[count++] = (int32_t)i;
    const size_t bytes = (size_t)count * sizeof *list;
    s->range_count[parity][boundary] = count;
    status = md_device_allocate(context, bytes, "site list", (void **)&s->range[parity][boundary]);
    if (status == MD_OK && count > 0)
      status = md_device_upload(context, s->range[parity][boundary], list, bytes);
  }
  free(list);
  return status;
}

static md_status load(md_context *context, const md_links *links, const md_backend_request *request,
                      void **state) {
  const md_geometry *g = links->field->geometry;
  *state = NULL;
  const size_t link_bytes = (size_t)md_tensor_link_bytes(request);
  const int terms = md_action_terms(links->action);
  MD_TRY(md_device_require(
      context, MD_PARITIES * (size_t)g->sites * (link_bytes + (size_t)terms * sizeof(int32_t)),
      "the links of backend tensor"));
  tensor *s = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "tensor");
  s->request = *request;
  s->geometry = g;
  s->terms = terms;
  if (request->packing == MD_PACKING_STACKED)
    s->plans = md_march_plans(request, g->local, &context->gpu, s->plan);
  md_status status = MD_OK;
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++) {
    status = load_links(context, s, links, p);
    if (status == MD_OK) status = load_neighbours(context, s, links, p);
    if (status == MD_OK) status = load_ranges(context, s, links, p);
  }
  if (status != MD_OK) {
    unload(s);
    return status;
  }
  *state = s;
  return MD_OK;
}

static bool only_t_is_split(const md_geometry *g) {
  return !g->split[MD_X] && !g->split[MD_Y] && !g->split[MD_Z];
}

/* The interior leaves out what reads the halo; the boundary, where the march takes it, is the first
 * and the last time slices, as many as hops reach, or one of them. The geometry's halo may be
 * deeper, for another action. */
static void set_march_range(const tensor *s, md_tensor_call *call, md_range range) {
  const md_geometry *g = s->geometry;
  const int reach = md_action_depth(s->request.action);
  for (int d = 0; d < MD_DIMS; d++) {
    const bool split = g->split[d];
    const int inner = split && range == MD_RANGE_INTERIOR ? reach : 0;
    call->low[d] = inner, call->high[d] = call->local[d] - inner;
    call->stride[d] = (int)((split ? g->face_sites[d] : g->sites) / call->local[MD_T]);
  }
  call->ends = range == MD_RANGE_BOUNDARY ? reach : 0;
  if (range == MD_RANGE_AHEAD) call->low[MD_T] = call->high[MD_T] - reach;
  if (range == MD_RANGE_BEHIND) call->high[MD_T] = reach;
}

/* About: hops move their bytes at 0.7322 of what memory is said to give, 3.6 TB/s on an H200. */
static double hop_s(const tensor *s, const md_device_facts *gpu) {
  const double site_bytes = md_tensor_link_bytes(&s->request) + 2.0 * s->plan[s->shape].site_bytes;
  return (double)s->geometry->sites * site_bytes / (0.7322 * gpu->bandwidth);
}

/* How many columns of a block are done before a message arrives that takes `expected_s`. */
static int columns_before(const tensor *s, const md_device_facts *gpu, double expected_s) {
  const md_march_plan *plan = &s->plan[s->shape];
  const double columns = (double)plan->columns[0] * plan->columns[1] * plan->columns[2];
  return (int)(expected_s / hop_s(s, gpu) * columns / plan->blocks);
}

static bool marches(const tensor *s) {
  return s->shape < s->plans;
}

static bool is_empty(const md_tensor_call *call) {
  for (int d = 0; d < MD_DIMS; d++)
    if (call->low[d] >= call->high[d]) return true;
  return false;
}

static md_tensor_walls walls_of(const md_wall_matrix *m) {
  md_tensor_walls walls = {0};
  if (!m) return walls;
  walls.slices = m->slices;
  walls.mass = (float)m->mass;
  for (int k = 0; k < m->slices; k++) walls.c[k] = (float)m->m[k];
  return walls;
}

static md_status hop(md_context *context, void *state, const md_hop_call *asked) {
  const tensor *s = state;
  const md_hop_end end = md_hop_end_of(asked);
  const md_hop_step step = md_hop_step_of(asked);
  const md_field *out = asked->out, *in = asked->in;
  const int p = out->parity;
  const bool all = asked->range == MD_RANGE_ALL || !s->range[p][1];
  const int part = asked->range >= MD_RANGE_BOUNDARY;
  if (all && part) return MD_OK; /* no halo: everything was interior */
  md_tensor_call call = {
      .packing = s->request.packing,
      .precision = s->request.precision,
      .terms = s->terms,
      .links = s->links[p],
      .neighbour = s->neighbour[p],
      .source = in->data,
      .source_scale = in->scale,
      .out = out->data,
      .out_scale = out->scale,
      .x = end.x ? end.x->data : NULL,
      .x_scale = end.x ? end.x->scale : NULL,
      .a = end.a,
      .b = end.b,
      .step = step.by,
      .before = step.before ? step.before->data : NULL,
      .narrow = step.by && out->precision == MD_HALF,
      .list = all ? NULL : s->range[p][part],
      .count = all ? out->sites : s->range_count[p][part],
      .sites = out->sites,
      .in_stride = in->stride,
      .out_stride = out->stride,
      .n_rhs = out->n_rhs,
      .slices = md_action_has_spin(s->request.action) ? md_request_slices(&s->request) : 0,
      .adjoint = step.adjoint,
      .walls = walls_of(step.matrix),
      .parity = p,
      .queue = asked->queue,
      .local = {s->geometry->local[0], s->geometry->local[1], s->geometry->local[2],
                s->geometry->local[3]}};
  if (call.packing != MD_PACKING_STACKED) return md_tensor_tiles(context, &call);
  /* With two link fields a march of all sites finds x, y and z periodic on the rank. */
  const bool beyond = part || (all && s->terms > MD_DIRECTIONS && s->geometry->halo_sites > 0);
  const bool march = marches(s) && (!beyond || only_t_is_split(s->geometry));
  if (step.norm2) call.norm2 = step.norm2->sum, call.units = step.norm2->units;
  if (!march) return (call.slices ? md_tensor_gather_spins : md_tensor_gather)(context, &call);
  set_march_range(s, &call, all ? MD_RANGE_ALL : asked->range);
  if (asked->arrivals) {
    call.arrivals = *asked->arrivals;
    call.late[0] = 1 + columns_before(s, &context->gpu, call.arrivals.of[7].expected_s);
    call.late[1] = columns_before(s, &context->gpu, call.arrivals.of[3].expected_s);
  }
  if (is_empty(&call)) return MD_OK;
  md_march_plan plan = s->plan[s->shape];
  if (plan.blocks > asked->spares) plan.blocks -= asked->spares;
  return (call.slices ? md_tensor_march_spins : md_tensor_march)(context, &call, &plan);
}

static bool awaits(const void *state) {
  const tensor *s = state;
  return marches(s) && s->plan[s->shape].fields == 1 && !md_action_has_spin(s->request.action) &&
         only_t_is_split(s->geometry);
}

static bool halves(const void *state) {
  const tensor *s = state;
  return marches(s) && s->plan[s->shape].fields == 2 && only_t_is_split(s->geometry);
}

static double interior_s(const void *state, const md_device_facts *gpu) {
  const tensor *s = state;
  const int slices = s->geometry->local[MD_T], reach = md_action_depth(s->request.action);
  return halves(s) ? hop_s(s, gpu) * (slices - 2 * reach) / slices : 0.0;
}

static int shapes(const void *state) {
  return ((const tensor *)state)->plans + 1;
}

static void name_shape(const void *state, int shape, char name[MD_TUNE_NAME_BYTES]) {
  const tensor *s = state;
  const md_march_plan *plan = &s->plan[shape];
  if (shape < s->plans)
    snprintf(name, MD_TUNE_NAME_BYTES, "march %dx%dx%d in %d", plan->x, plan->y, plan->z,
             plan->steps);
  else
    snprintf(name, MD_TUNE_NAME_BYTES, "gather");
}

static void take_shape(void *state, int shape) {
  ((tensor *)state)->shape = shape;
}

static bool multiplies(const void *state) {
  const md_backend_request *r = &((const tensor *)state)->request;
  const int slices = md_request_slices(r);
  return r->packing == MD_PACKING_STACKED && md_precision_bytes(r->precision) == 2 &&
         r->n_rhs == 1 && slices > 1 && slices <= MD_TENSOR_SLICES;
}

/* The same whatever the launch shape: solvers ask for other sums where it is not. In bf16 they need
 * betas that fused iterations do not give (solvers/mixed_cg.c). */
static bool fuses(const void *state, md_precision out) {
  const tensor *s = state;
  const md_precision own = s->request.precision;
  const bool served =
      own == MD_DOUBLE ? out == MD_DOUBLE : own == MD_HALF && (out == MD_HALF || out == MD_SINGLE);
  if (md_action_has_spin(s->request.action)) return own == MD_HALF && out == own && multiplies(s);
  const bool whole_tile = s->request.n_rhs == 8 || s->request.n_rhs == 16;
  const bool gathers = s->request.packing == MD_PACKING_STACKED && s->terms > MD_DIRECTIONS;
  return served && (s->plans > 0 || (gathers && whole_tile));
}

static const md_launch_shapes launch_shapes = {shapes, name_shape, take_shape};

static double sites_of(const int *local) {
  return (double)local[0] * local[1] * local[2] * local[3];
}

/* Two link fields in half whose links stay in L2: tiles that are half full are faster there. */
static bool fits_cache(const md_backend_request *request, const int *local, long long l2_bytes) {
  if (!local || request->precision != MD_HALF || request->n_rhs != MD_STACKED_LEAST ||
      md_action_terms(request->action) == MD_DIRECTIONS)
    return false;
  return sites_of(local) * md_tensor_link_bytes(request) <= (double)l2_bytes;
}

/* Whether a march takes it, on a rank's lattice where that is known. */
static bool may_march(const md_context *context, const md_backend_request *request,
                      const int *local) {
  md_march_plan plan[MARCH_TILES];
  return md_march_serves(request) &&
         (!local || md_march_plans(request, local, &context->gpu, plan) > 0);
}

/* Tiles of 8 or 16; with spin fours, where these march. */
static int columns(const md_context *context, const md_backend_request *request, const int *local) {
  const int n = request->n_rhs;
  md_backend_request filled = *request;
  if (request->packing != MD_PACKING_STACKED || n < 2 || n > MD_STACKED_MOST) return n;
  if (!md_action_has_spin(request->action))
    return n <= MD_STACKED_LEAST ? MD_STACKED_LEAST : MD_STACKED_MOST;
  filled.n_rhs = (n + MD_SPIN_FOUR - 1) / MD_SPIN_FOUR * MD_SPIN_FOUR;
  return n > MD_SPIN_FOUR && may_march(context, &filled, local) ? filled.n_rhs : n;
}

enum { FASTER = 140 };

/* Of four spins in 16 bits: by measurements on an H100 (bench/h100/spins) with one right-hand side
 * and a fifth dimension, and without it with 4 or more where they march, else 7. */
static int speed_of_spins(const md_context *context, const md_backend_request *request, int n_rhs,
                          const int *local, int slower, const char **reason) {
  enum { FROM = 7, FROM_MARCHING = 4 };
  const int slices = md_request_slices(request);
  const bool walls = md_action_get(request->action)->walls;
  const bool marches = slices <= MD_TENSOR_SLICES && slices % 4 == 0;
  *reason = walls ? "stacked multiplies two spins of all slices at once in 16 bits, with one "
                    "right-hand side and 8, 12 or 16 slices"
                  : "stacked is faster in 16 bits with 4 right-hand sides on, with 7 where it does "
                    "not march";
  if (md_precision_bytes(request->precision) > 2) return slower;
  if (walls) return n_rhs == 1 && slices >= MD_SPIN_TILE && marches ? FASTER : slower;
  return n_rhs >= (may_march(context, request, local) ? FROM_MARCHING : FROM) ? FASTER : slower;
}

/* Against `cuda`, whose speed is 100. By measurements on an H200 (PERFORMANCE.md) stacked is faster
 * with 8 and 16 right-hand sides, by 1.1 to 2.3, in double where it marches. With 6 of the 8 rows
 * of a tile it is about as fast, with fewer slower. */
static int speed_of(const md_context *context, const md_backend_request *request, int n_rhs,
                    const int *local, const char **reason) {
  enum { FROM = 7, FROM_IN_CACHE = 4, HARDLY = 13, LARGE = 1000000 };
  const int n = request->n_rhs;
  const int among_packings = md_tensor_speed_of(context, request, n_rhs, local, reason);
  md_march_plan plan[MARCH_TILES];
  if (request->packing != MD_PACKING_STACKED) return among_packings;
  if (md_action_has_spin(request->action))
    return speed_of_spins(context, request, n_rhs, local, among_packings, reason);
  *reason = "stacked is faster with 4 right-hand sides on, as its links stay in the GPU's cache";
  if (fits_cache(request, local, context->gpu.l2_bytes) && n_rhs >= FROM_IN_CACHE && n_rhs < FROM)
    return FASTER;
  *reason = "stacked is faster with 7 to 16 right-hand sides at once";
  if (n_rhs < FROM || (n != MD_STACKED_LEAST && n != MD_STACKED_MOST)) return among_packings;
  *reason = "in double stacked is faster where tiles divide the lattice of a rank";
  const int fields = md_action_terms(request->action) / MD_DIRECTIONS;
  const bool marches = !local || md_march_plans(request, local, &context->gpu, plan) > 0;
  if (request->precision == MD_DOUBLE && !marches) return among_packings;
  *reason =
      "in double up to 13 right-hand sides of a large lattice gain little by the tiles of 16, "
      "where memory is slow";
  if (request->precision == MD_DOUBLE && fields == 1 && n == MD_STACKED_MOST && n_rhs <= HARDLY &&
      local && sites_of(local) > LARGE && md_memory_is_slow(&context->gpu))
    return among_packings;
  *reason = "with one link field and 8 right-hand sides in half stacked is faster with tiles of 8 "
            "sites in x";
  if (request->precision == MD_HALF && fields == 1 && n == MD_STACKED_LEAST && local &&
      !(marches && plan[0].x == MARCH_X))
    return among_packings;
  *reason = "7 to 16 right-hand sides fill the tiles of stacked";
  return FASTER;
}

const md_backend md_backend_tensor = {
    .name = "tensor",
    .space = MD_DEVICE,
    MD_TENSOR_BACKEND,
    .speed_of = speed_of,
    .columns = columns,
    .load = load,
    .unload = unload,
    .hop = hop,
    .awaits = awaits,
    .halves = halves,
    .interior_s = interior_s,
    .fuses = fuses,
    .turns = true,
    .multiplies = multiplies,
    .spins_in_double = "cuda", /* tiles are slow there */
    .shapes = &launch_shapes,
    .copied_bytes = (size_t)1 << 18, /* a block of the march leaves others no place */
    .rounds_half_spinors = true};
