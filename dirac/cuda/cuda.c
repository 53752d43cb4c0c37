/* The cuda backend: stencils on CUDA cores. This file lays out the links and chooses the kernel;
 * the kernels are in hop_one.cuh, hop_many.cuh and hop_spins.cuh, compiled once for each storage
 * type. */
#include "base/device.h"
#include "base/memory.h"
#include "dirac/cuda/stencil.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct cuda_state {
  md_backend_request request;
  const md_geometry *geometry;
  const md_stencil_kernels *kernels;
  md_stencil stencil[MD_PARITIES];
  bool keeps_links; /* as the GPU's facts have it: the first launch shape */
} cuda_state;

/* Columns of a site that a block of threads takes, in each shape of the hop of four spins. */
static const int shares[] = {8, 4, 16};

static const md_stencil_kernels *const kernels_of[MD_PRECISIONS] = {
    [MD_DOUBLE] = &md_stencil_double, [MD_SINGLE] = &md_stencil_single,
    [MD_HALF] = &md_stencil_half,     [MD_BF16] = &md_stencil_bf16,
    [MD_FIXED] = &md_stencil_fixed,
};

static size_t link_bytes_of(const md_stencil *s, const cuda_state *state) {
  const size_t slots = ((size_t)s->slots + 31) / 32 * 32; /* whole tiles */
  return slots * (size_t)(MD_DIRECTIONS * (s->reals[0] + s->reals[1]) * s->sites_per_slot) *
         md_precision_bytes(state->request.precision);
}

static void unload(void *state) {
  cuda_state *s = state;
  if (!s) return;
  for (int p = 0; p < MD_PARITIES; p++) md_device_free((void *)s->stencil[p].links);
  md_stencil_tables_free(s->stencil);
  free(s);
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
      md_links_phase(links, parity, md_stencil_term(pair, side, x[0] & 1), i, phase);
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
    if (s->kernels->pack(&s->stencil[p], pair, &source, (void *)s->stencil[p].links) != 0)
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
    s->keeps_links = s->stencil[p].keep_links = md_stencil_keeps_links(&context->gpu, links_bytes);
    s->stencil[p].columns_of_block = shares[0];
    s->stencil[p].few_slots = md_stencil_few_slots(&context->gpu, s->request.precision);
  }
  const md_memory_need mark = md_memory_mark(context);
  for (int p = 0; p < MD_PARITIES && status == MD_OK; p++)
    status = md_device_allocate(context, bare_bytes, "bare links", (void **)&b.bare[p]);
  if (status == MD_OK)
    status = md_device_allocate(context, index_bytes, "neighbours", (void **)&b.neighbour);
  if (status == MD_OK && phase_bytes > 0) {
    status = md_allocate(context, phase_bytes, "phases of links", (void **)&b.host_phases);
    if (status == MD_OK)
      status = md_device_allocate(context, phase_bytes, "phases of links", (void **)&b.phases);
  }
  const int pairs = md_counts(context) ? 0 : md_stencil_pairs(links->action);
  for (int pair = 0; pair < pairs && status == MD_OK; pair++)
    status = load_pair(context, s, links, pair, &b);
  free_buffers(&b);
  md_memory_return_to(context, mark);
  return status;
}

static md_status load(md_context *context, const md_links *links, const md_backend_request *request,
                      void **state) {
  *state = NULL;
  MD_TRY(md_device_open(context));
  cuda_state *s = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "cuda backend");
  *s = (cuda_state){.request = *request,
                    .geometry = links->field->geometry,
                    .kernels = kernels_of[request->precision]};
  md_status status = md_stencil_tables_load(context, links, request, s->stencil);
  if (status == MD_OK) status = load_links(context, s, links);
  if (status == MD_OK)
    *state = s;
  else
    unload(s);
  return status;
}

static md_status hop(md_context *context, void *state, const md_hop_call *call) {
  const cuda_state *s = state;
  const md_stencil *stencil = &s->stencil[call->out->parity];
  int (*const kernel)(const md_stencil *, const md_hop_call *) =
      md_action_has_spin(s->request.action) ? s->kernels->hop_spins
      : s->request.n_rhs == 1               ? s->kernels->hop_one
                                            : s->kernels->hop_many;
  const int error = kernel(stencil, call);
  if (error == 0) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "a stencil of the cuda backend failed on the GPU of rank %d (CUDA error %d)",
                 context->rank, error);
}

static bool fuses(const void *state, md_precision out) {
  const cuda_state *s = state;
  if (md_action_has_spin(s->request.action)) return false;
  return out == s->request.precision ||
         (out == MD_SINGLE && md_precision_bytes(s->request.precision) == 2);
}

static bool multiplies(const void *state) {
  const cuda_state *s = state;
  const int slices = md_request_slices(&s->request), columns = slices * s->request.n_rhs;
  return slices > 1 && columns <= MD_SPIN_THREADS &&
         (slices > 3 || s->request.n_rhs > 1 || s->stencil[0].march.x > 0);
}

/* The tile of a march is the links' order, so it has one shape. */
static int shapes(const void *state) {
  const cuda_state *s = state;
  if (s->stencil[0].march.x > 0) return 1;
  return md_action_has_spin(s->request.action) ? sizeof shares / sizeof *shares : 2;
}

static bool keeps_links(const cuda_state *s, int shape) {
  return s->keeps_links == (shape == 0);
}

static void name_shape(const void *state, int shape, char name[MD_TUNE_NAME_BYTES]) {
  const md_spin_march *march = &((const cuda_state *)state)->stencil[0].march;
  if (march->x > 0)
    snprintf(name, MD_TUNE_NAME_BYTES, "march %dx%dx%d", march->x, march->y, march->z);
  else if (md_action_has_spin(((const cuda_state *)state)->request.action))
    snprintf(name, MD_TUNE_NAME_BYTES, "%d columns", shares[shape]);
  else
    snprintf(name, MD_TUNE_NAME_BYTES, "links %s L2",
             keeps_links(state, shape) ? "stay in" : "pass");
}

static void take_shape(void *state, int shape) {
  cuda_state *s = state;
  for (int p = 0; p < MD_PARITIES; p++)
    if (md_action_has_spin(s->request.action))
      s->stencil[p].columns_of_block = shares[shape];
    else
      s->stencil[p].keep_links = keeps_links(s, shape);
}

static double link_bytes(const md_backend_request *request) {
  const int reals = md_stencil_reals(request, 0) + md_stencil_reals(request, 1);
  return MD_DIRECTIONS * reals * (double)md_precision_bytes(request->precision);
}

enum {
  MOST_SCALED = 2 * MD_SPIN_THREADS
}; /* columns of a site, whose scale the threads of one block find */

static md_status check(md_context *context, const md_backend_request *request) {
  const int columns = md_request_slices(request) * request->n_rhs;
  if (!md_action_has_spin(request->action)) return MD_OK;
  if (request->precision == MD_FIXED)
    return md_fail(context, MD_INPUT,
                   "backend cuda takes quarks with four spins in double, single, half or bf16, got "
                   "fixed; take half");
  if (request->precision != MD_HALF || columns <= MOST_SCALED) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "backend cuda takes at most %d slices times right-hand sides in half, got %d; "
                 "take fewer right-hand sides, or single",
                 (int)MOST_SCALED, columns);
}

static const md_launch_shapes launch_shapes = {shapes, name_shape, take_shape};

const md_backend md_backend_cuda = {.name = "cuda",
                                    .space = MD_DEVICE,
                                    .precisions = (1u << MD_PRECISIONS) - 1,
                                    .reconstructs = (1u << MD_RECONSTRUCTS) - 1,
                                    .packings = 1u << MD_PACKING_NONE,
                                    .actions = MD_STAGGERED_ACTIONS | MD_SPIN_ACTIONS,
                                    .speed = 100,
                                    .check = check,
                                    .load = load,
                                    .unload = unload,
                                    .hop = hop,
                                    .fuses = fuses,
                                    .turns = true,
                                    .multiplies = multiplies,
                                    .shapes = &launch_shapes,
                                    .link_bytes = link_bytes};
