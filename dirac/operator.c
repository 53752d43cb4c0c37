#include "dirac/operator.h"
#include "base/device_peers.h"
#include "base/timer.h"
#include "dirac/backend.h"
#include "dirac/tune.h"
#include "lattice/fields/rank_sums.h"
#include "lattice/halo/halo.h"

#include <string.h>

/* The zones must hold what the longest hop reads. */
static md_status check_depth(md_context *context, const md_gauge *gauge, md_action action) {
  const md_action_data *data = md_action_get(action);
  for (int f = 0; f < data->fields; f++)
    if (gauge[f].geometry != gauge->geometry)
      return md_fail(context, MD_INPUT, "the %s and %s links must have one geometry",
                     data->field[0].name, data->field[f].name);
  if (gauge->geometry->depth >= md_action_depth(action)) return MD_OK;
  return md_fail(context, MD_INPUT, "action %s needs halos of depth %d, got a geometry of depth %d",
                 data->name, md_action_depth(action), gauge->geometry->depth);
}

md_status md_dirac_create(md_context *context, const md_gauge *gauge, const char *backend,
                          const md_backend_request *request, md_dirac *dirac) {
  return md_dirac_create_over(context, gauge, backend, request, NULL, dirac);
}

/* Ranks may lie on unlike machines, and each has chosen for its own: all take the first one's. */
static void take_first_choice(const md_context *context, md_dirac *dirac) {
  int chosen[] = {0, (int)dirac->request.packing, dirac->request.n_rhs};
  while (md_backends()[chosen[0]] != dirac->backend) chosen[0]++;
  md_broadcast(context, chosen, sizeof chosen);
  dirac->backend = md_backends()[chosen[0]];
  dirac->request.packing = (md_packing)chosen[1];
  dirac->request.n_rhs = chosen[2];
}

/* Solvers choose their loops by it, and unlike GPUs march, and so fuse, by their own facts. */
static void agree_on_fuses(const md_context *context, md_dirac *dirac) {
  const md_backend *b = dirac->backend;
  double all[MD_PRECISIONS];
  for (int p = 0; p < MD_PRECISIONS; p++)
    all[p] = b->fuses && b->fuses(dirac->state, (md_precision)p);
  md_minimum(context, all, MD_PRECISIONS);
  for (int p = 0; p < MD_PRECISIONS; p++) dirac->fuses[p] = all[p] > 0.0;
}

md_status md_dirac_create_over(md_context *context, const md_gauge *gauge, const char *backend,
                               const md_backend_request *request, const md_halo_request *how,
                               md_dirac *dirac) {
  *dirac = (md_dirac){.request = *request, .geometry = gauge->geometry, .overlap = true};
  MD_TRY(
      md_agree(context, md_backend_choose(context, backend, gauge->geometry->local, &dirac->request,
                                          &dirac->backend, &dirac->packing_reason)));
  take_first_choice(context, dirac);
  request = &dirac->request;
  MD_TRY(md_agree(context, check_depth(context, gauge, request->action)));
  md_links links;
  MD_TRY(md_request_links(context, request, gauge, &links));
  dirac->norm = md_links_norm(context, &links);
  dirac->link_error = links.unitary_error;
  const bool on_device = dirac->backend->space == MD_DEVICE;
  dirac->shape = (md_field_shape){request->precision,
                                  dirac->backend->space,
                                  md_request_reals(request),
                                  request->n_rhs,
                                  true,
                                  on_device && md_action_has_spin(request->action)};
  const double start_s = md_time_s();
  md_status status = dirac->backend->load(context, &links, request, &dirac->state);
  status = md_agree(context, status);
  dirac->load_s = md_time_s() - start_s;
  if (status == MD_OK) status = md_dirac_tune(context, dirac);
  md_halo_request halo = how ? *how : (md_halo_request){.transport = "auto"};
  const md_backend *b = dirac->backend;
  halo.half_spinors = md_action_has_spin(request->action);
  halo.rounds_half_spinors = b->rounds_half_spinors;
  halo.depth = md_action_depth(request->action); /* the lattice may serve another one too */
  if (halo.copied_bytes == 0) halo.copied_bytes = b->copied_bytes;
  halo.beside_s =
      status == MD_OK && b->interior_s ? b->interior_s(dirac->state, &context->gpu) : 0.0;
  halo.awaited = status == MD_OK && b->awaits && b->awaits(dirac->state);
  if (status == MD_OK)
    status = md_halo_create(context, gauge->geometry, &dirac->shape, &halo, &dirac->halo);
  if (status != MD_OK) {
    md_dirac_destroy(dirac);
    return status;
  }
  agree_on_fuses(context, dirac);
  /* Without shared memory sums go through the host, to the same bits. */
  if (context->ranks > 1 && dirac->backend->space == MD_DEVICE && !md_counts(context))
    (void)md_device_peers_create(context, md_rank_sums_bytes(context->ranks), "sums over ranks",
                                 false, &dirac->peers);
  return MD_OK;
}

md_status md_dirac_create_exact(md_context *context, const md_gauge *gauge, const char *backend,
                                const md_backend_request *request, const md_halo_request *how,
                                md_dirac *dirac) {
  const md_backend *served;
  md_backend_request exact = *request;
  exact.precision = MD_DOUBLE;
  exact.reconstruct = MD_RECONSTRUCT_18;
  for (const md_backend *const *b = md_backends(); md_action_has_spin(exact.action) && *b; b++)
    if (strcmp((*b)->name, backend) == 0 && (*b)->spins_in_double) {
      backend = (*b)->spins_in_double;
      exact.packing = MD_PACKING_NONE;
      break;
    }
  if (md_backend_find(context, backend, &exact, &served) != MD_OK) {
    exact.packing = MD_PACKING_NONE;
    if (md_backend_find(context, backend, &exact, &served) != MD_OK) backend = "auto";
  }
  MD_TRY(md_agree(context, md_backend_find(context, backend, &exact, &served)));
  return md_dirac_create_over(context, gauge, served->name, &exact,
                              md_halo_request_serves(how, served->space) ? how : NULL, dirac);
}

void md_dirac_destroy(md_dirac *dirac) {
  if (dirac->backend && dirac->state) dirac->backend->unload(dirac->state);
  md_halo_destroy(dirac->halo);
  md_device_peers_destroy(dirac->peers);
  dirac->peers = NULL;
  dirac->state = NULL;
  dirac->halo = NULL;
}

md_status md_dirac_field(md_context *context, const md_dirac *dirac, int parity, md_field *field) {
  return md_field_create(context, dirac->geometry, &dirac->shape, parity, field);
}

/* What reads the halo: on a device it follows that, not the interior, and fills the places that
 * this one leaves. Half of it may begin while what the other half reads is still on its way. */
static md_status hop_boundary(md_context *context, md_dirac *dirac, md_hop_call call,
                              md_field *in) {
  const md_backend *b = dirac->backend;
  call.follows = false;
  if (!b->halves || !b->halves(dirac->state) || !md_halo_in_turn(dirac->halo)) {
    MD_TRY(md_halo_arrive(dirac->halo, in));
    call.spares = 0;
    call.range = MD_RANGE_BOUNDARY;
    call.queue = md_halo_queue(dirac->halo);
    return b->hop(context, dirac->state, &call);
  }
  md_halo_arrivals arrivals;
  call.arrivals = &arrivals;
  for (int k = 0; k < 2; k++) {
    int direction;
    MD_TRY(md_halo_arrive_next(dirac->halo, k, &arrivals, &direction, &call.queue));
    call.range = direction < MD_DIMS ? MD_RANGE_AHEAD : MD_RANGE_BEHIND;
    /* A place at least for the thread that awaits what the other half reads. */
    if (k > 0 || call.spares == 0) call.spares = 1;
    MD_TRY(md_defer(context, b->hop(context, dirac->state, &call)));
  }
  return MD_OK;
}

/* The hop while the halo travels, which has begun. */
static md_status hop_beside(md_context *context, md_dirac *dirac, md_hop_call *call, md_field *in) {
  const md_backend *b = dirac->backend;
  md_halo_arrivals arrivals;
  bool found = false;
  if (b->awaits && b->awaits(dirac->state)) /* by the launch shape in use */
    MD_TRY(md_halo_find_arrivals(dirac->halo, &arrivals, &found));
  md_status status;
  if (found) { /* one kernel comes last to the sites that read the halo, and waits for it there */
    call->arrivals = &arrivals;
    status = b->hop(context, dirac->state, call);
  } else {
    call->range = MD_RANGE_INTERIOR;
    call->follows = md_halo_leads(dirac->halo);
    call->spares = md_halo_spares(dirac->halo);
    MD_TRY(md_defer(context, b->hop(context, dirac->state, call)));
    status = hop_boundary(context, dirac, *call, in);
  }
  MD_TRY(md_halo_join(dirac->halo));
  return md_defer(context, status);
}

md_status md_dirac_hop_step(md_context *context, md_dirac *dirac, md_field *out, md_field *in,
                            const md_hop_end *end, const md_hop_step *step) {
  md_hop_call call = {.out = out, .in = in, .range = MD_RANGE_ALL, .end = end, .step = step};
  dirac->hops++;
  if (dirac->geometry->halo_sites > 0) {
    md_halo_turn(dirac->halo, step && step->adjoint);
    MD_TRY(md_halo_begin(dirac->halo, in));
    if (dirac->overlap) return hop_beside(context, dirac, &call, in);
    MD_TRY(md_halo_end(dirac->halo, in));
  }
  return md_defer(context, dirac->backend->hop(context, dirac->state, &call));
}

md_status md_dirac_hop(md_context *context, md_dirac *dirac, md_field *out, md_field *in,
                       const md_hop_end *end) {
  return md_dirac_hop_step(context, dirac, out, in, end, NULL);
}

bool md_dirac_fuses(const md_dirac *dirac, md_precision out) {
  return dirac->fuses[out];
}

md_status md_dirac_m(md_context *context, md_dirac *dirac, double mass, double sign,
                     md_field out[MD_PARITIES], md_field in[MD_PARITIES]) {
  for (int p = 0; p < MD_PARITIES; p++) {
    const md_hop_end end = {.x = &in[p], .a = mass, .b = sign};
    MD_TRY(md_dirac_hop(context, dirac, &out[p], &in[1 - p], &end));
  }
  return MD_OK;
}

md_status md_dirac_mdag_m(md_context *context, md_dirac *dirac, double mass, md_field *out,
                          md_field *in, md_field *work) {
  const md_hop_end end = {.x = in, .a = mass * mass, .b = -1.0};
  MD_TRY(md_dirac_hop(context, dirac, work, in, NULL));
  return md_dirac_hop(context, dirac, out, work, &end);
}
