#include "lattice/halo/halo.h"
#include "base/device.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "base/timer.h"
#include "lattice/halo/transport.h"

#include <stdlib.h>
#include <string.h>

const md_transport *const *md_transports(void) {
  static const md_transport *const table[] = {&md_transport_mpi,
                                              &md_transport_peer,
                                              &md_transport_mixed,
                                              &md_transport_nccl,
                                              &md_transport_cuda_aware,
                                              &md_transport_staged,
                                              NULL};
  return table;
}

static const char *name_of(md_space space) {
  return space == MD_HOST ? "on the host" : "on a device";
}

/* MD_OK when the ranks can use it for the fields of this halo. Collective. */
static md_status usable(const md_halo *halo, const md_transport *t) {
  md_context *context = halo->context;
  const md_space space = halo->plan.shape.space;
  if (!(t->spaces & 1u << space))
    return md_fail(context, MD_INPUT,
                   "transport %s does not carry fields that lie %s, as this backend's do; leave "
                   "--transport out, or take another backend",
                   t->name, name_of(space));
  if (t->unavailable)
    return md_fail(context, MD_ENVIRONMENT, "transport %s is not available: %s", t->name,
                   t->unavailable);
  return t->check ? md_agree(context, t->check(context, halo->plan.geometry)) : MD_OK;
}

static md_status find_fastest(md_halo *halo) {
  const md_space space = halo->plan.shape.space;
  char *reason = halo->reason;
  for (const md_transport *const *t = md_transports(); *t; t++) {
    if (!((*t)->spaces & 1u << space) || (halo->transport && (*t)->speed <= halo->transport->speed))
      continue;
    if (usable(halo, *t) == MD_OK)
      halo->transport = *t;
    else
      md_append(reason, sizeof halo->reason, "%s%s: %s", *reason ? "; " : "not ", (*t)->name,
                halo->context->message);
  }
  if (!*reason) strcpy(reason, "the fastest");
  if (halo->transport) return MD_OK;
  return md_fail(halo->context, MD_ENVIRONMENT,
                 "no transport of this build carries fields that lie %s", name_of(space));
}

/* The row of that name; NULL: there is none, as for "auto". */
static const md_transport *named(const char *name) {
  for (const md_transport *const *t = md_transports(); *t; t++)
    if (strcmp((*t)->name, name) == 0) return *t;
  return NULL;
}

md_status md_halo_read_transport(md_context *context, const char *label, const char *text,
                                 void *target) {
  char known[256] = "auto";
  md_suggestion nearest = md_suggest(text);
  const md_transport *found = named(text);
  *(const char **)target = found ? found->name : "auto";
  if (found || strcmp(text, "auto") == 0) return MD_OK;
  for (const md_transport *const *t = md_transports(); *t; t++) {
    md_append(known, sizeof known, ", %s", (*t)->name);
    md_suggest_name(&nearest, (*t)->name, strlen((*t)->name));
  }
  return md_fail(context, MD_INPUT, "%s must be one of %s, got '%.200s'%s", label, known, text,
                 nearest.text);
}

/* By name, "auto" for the fastest that the ranks can use. MD_INPUT for an unknown name or the wrong
 * space, MD_ENVIRONMENT with the reason where it is not in this build or the ranks cannot use it.
 * Collective. */
static md_status find(md_halo *halo, const char *name) {
  MD_TRY(md_halo_read_transport(halo->context, "--transport", name, &name));
  halo->transport = named(name);
  if (!halo->transport) return find_fastest(halo);
  strcpy(halo->reason, "asked for");
  return usable(halo, halo->transport);
}

bool md_halo_request_serves(const md_halo_request *request, md_space space) {
  const md_transport *t = request ? named(request->transport) : NULL;
  return !t || t->spaces & 1u << space;
}

/* Seconds of one exchange of `field`, the longest of the ranks. Collective. */
static md_status time_exchange(const md_halo *halo, void *state, md_field *field, double *time_s) {
  enum { EXCHANGES = 20 };
  md_context *context = halo->context;
  const md_transport *t = halo->transport;
  const bool device = field->space == MD_DEVICE;
  md_status status = MD_OK;
  double start_s = 0.0;
  for (int k = -2; k < EXCHANGES; k++) { /* two before the clock starts */
    if (k == 0 && device && status == MD_OK) status = md_device_synchronise(context);
    if (k == 0) md_barrier(context);
    if (k == 0) start_s = md_time_s();
    const md_status begun = t->begin(context, state, field), ended = t->end(context, state, field);
    const md_status joined = t->join ? t->join(context, state) : MD_OK;
    if (status == MD_OK) status = begun != MD_OK ? begun : ended != MD_OK ? ended : joined;
  }
  if (device && status == MD_OK) status = md_device_synchronise(context);
  *time_s = (md_time_s() - start_s) / EXCHANGES;
  md_maximum(context, time_s, 1);
  return md_agree(context, status);
}

/* Prints what the checks cost an exchange, by exchanges of zeros with and without. Collective. */
static md_status say_cost_of_check(md_halo *halo) {
  md_context *context = halo->context;
  const md_transport *t = halo->transport;
  md_halo_plan plain = halo->plan;
  md_field field = {0};
  void *without = NULL;
  double checked_s = 0.0, plain_s = 0.0;
  plain.check = false;
  md_status status = md_field_create(context, plain.geometry, &plain.shape, MD_EVEN, &field);
  status = md_agree(context, status);
  if (status == MD_OK) status = md_agree(context, t->create(context, &plain, &without));
  if (status == MD_OK) status = time_exchange(halo, without, &field, &plain_s);
  if (status == MD_OK) status = time_exchange(halo, halo->state, &field, &checked_s);
  if (without) t->destroy(without);
  md_field_destroy(&field);
  if (status == MD_OK)
    md_say(context, "check-halo   %.1f us an exchange by %s, %.1f us without, %lld bytes a rank\n",
           1e6 * checked_s, t->name, 1e6 * plain_s, (long long)md_halo_bytes(halo));
  return status;
}

/* Rounded once more, by H itself, a half spinor of 16 bits would be another. */
static bool half_spinors_travel(const md_field_shape *shape, const md_halo_request *request,
                                const md_transport *transport) {
  const md_precision p = shape->precision;
  const bool wide = md_precision_bytes(p) >= sizeof(float);
  if (!request || !request->half_spinors) return false;
  if (shape->space == MD_HOST) return wide;
  return !transport->whole_spinors && !md_shape_planar(shape) &&
         (wide || (request->rounds_half_spinors && (p == MD_HALF || p == MD_BF16)));
}

/* The transport that a dry run counts with: that of the name, or the fastest for such fields. */
static const md_transport *presumed(md_space space, const char *name) {
  const md_transport *fastest = named(name);
  if (fastest) return fastest;
  for (const md_transport *const *t = md_transports(); *t; t++)
    if ((*t)->spaces & 1u << space && (!fastest || (*t)->speed > fastest->speed)) fastest = *t;
  return fastest;
}

/* In place of a transport in a dry run, which has no tables to make one of: what every one of them
 * sends from and receives into. */
static md_status count_messages(const md_halo *halo) {
  const int64_t bytes = 2 * md_halo_bytes(halo);
  const bool device = halo->plan.shape.space == MD_DEVICE;
  md_count_memory(halo->context, (md_memory_need){device ? 0 : bytes, device ? bytes : 0});
  return MD_OK;
}

static md_status create(md_context *context, md_halo *halo, const md_halo_request *request) {
  md_halo_plan *plan = &halo->plan;
  const char *name = request ? request->transport : "auto";
  const bool counts = md_counts(context);
  if (!counts) MD_TRY(md_agree(context, find(halo, name)));
  plan->transport = counts ? presumed(plan->shape.space, name) : halo->transport;
  plan->half_spinors = half_spinors_travel(&plan->shape, request, plan->transport);
  if (counts) return count_messages(halo);
  if (plan->channels == 0) return MD_OK;
  MD_TRY(md_agree(context, halo->transport->create(context, plan, &halo->state)));
  return plan->check ? say_cost_of_check(halo) : MD_OK;
}

/* The messages that bring sites at most `depth` away, and of each the slabs that do: a message
 * begins with the nearest. */
static void take_channels(md_halo *halo, const md_geometry *g, int depth) {
  halo->plan.channel = halo->channel;
  for (int m = 0; m < g->messages; m++) {
    md_halo_message *c = &halo->channel[halo->plan.channels];
    *c = g->message[m];
    const int d = c->direction % MD_DIMS, nearer = (c->distance - 1) * g->local[d];
    const int64_t most = (depth - nearer) * g->face_sites[d];
    if (c->sites > most) c->sites = most;
    halo->plan.channels += c->sites > 0;
  }
}

md_status md_halo_create(md_context *context, const md_geometry *geometry,
                         const md_field_shape *shape, const md_halo_request *request,
                         md_halo **halo) {
  md_halo *h = *halo = calloc(1, sizeof *h);
  md_status status = md_agree(context, h ? MD_OK : md_fail_memory(context, sizeof *h, "halo"));
  if (status == MD_OK) {
    h->context = context;
    h->plan.check = request && request->check;
    h->plan.copied_bytes = request ? request->copied_bytes : 0;
    h->plan.awaited = request && request->awaited;
    h->plan.beside_s = request ? request->beside_s : 0.0;
    h->plan.geometry = geometry;
    h->plan.shape = *shape;
    take_channels(h, geometry, request && request->depth ? request->depth : geometry->depth);
    status = create(context, h, request);
  }
  if (status != MD_OK) {
    md_halo_destroy(h);
    *halo = NULL;
  }
  return status;
}

void md_halo_destroy(md_halo *halo) {
  if (halo && halo->state) halo->transport->destroy(halo->state);
  free(halo);
}

void md_halo_turn(md_halo *halo, bool adjoint) {
  halo->plan.turned = adjoint;
}

md_status md_halo_begin(md_halo *halo, const md_field *field) {
  if (!halo->state) return MD_OK;
  return md_defer(halo->context, halo->transport->begin(halo->context, halo->state, field));
}

md_status md_halo_arrive(md_halo *halo, md_field *field) {
  if (!halo->state) return MD_OK;
  return md_defer(halo->context, halo->transport->end(halo->context, halo->state, field));
}

int md_halo_spares(const md_halo *halo) {
  return halo->state && halo->transport->spares ? halo->transport->spares(halo->state) : 0;
}

bool md_halo_in_turn(const md_halo *halo) {
  const md_halo_plan *plan = &halo->plan;
  return halo->state && halo->transport->in_turn && halo->transport->in_turn(halo->state) &&
         plan->channels == 2 && plan->channel[0].direction + MD_DIMS == plan->channel[1].direction;
}

md_status md_halo_arrive_next(md_halo *halo, int k, md_halo_arrivals *arrivals, int *direction,
                              void **queue) {
  return md_defer(halo->context, halo->transport->end_next(halo->context, halo->state, k, arrivals,
                                                           direction, queue));
}

void *md_halo_queue(const md_halo *halo) {
  const bool apart = halo->state && halo->transport->queue;
  return apart ? halo->transport->queue(halo->state) : NULL;
}

bool md_halo_leads(const md_halo *halo) {
  return halo->state && halo->transport->leads && halo->transport->leads(halo->state);
}

md_status md_halo_find_arrivals(md_halo *halo, md_halo_arrivals *arrivals, bool *found) {
  *found = false;
  if (!halo->state || !halo->plan.awaited || !halo->transport->arrivals) return MD_OK;
  return md_defer(halo->context,
                  halo->transport->arrivals(halo->context, halo->state, arrivals, found));
}

md_status md_halo_join(md_halo *halo) {
  if (!halo->state || !halo->transport->join) return MD_OK;
  return md_defer(halo->context, halo->transport->join(halo->context, halo->state));
}

md_status md_halo_end(md_halo *halo, md_field *field) {
  MD_TRY(md_halo_arrive(halo, field));
  return md_halo_join(halo);
}

int64_t md_halo_bytes(const md_halo *halo) {
  int64_t bytes = 0;
  for (int c = 0; c < halo->plan.channels; c++) bytes += (int64_t)md_plan_bytes(&halo->plan, c);
  return bytes;
}

const char *md_halo_transport(const md_halo *halo) {
  return halo->state ? halo->transport->name : "none";
}

const char *md_halo_reason(const md_halo *halo) {
  return halo->state ? halo->reason : "nothing to exchange";
}

bool md_halo_queued(const md_halo *halo) {
  return !halo->state || halo->transport->queued;
}

md_status md_halo_verify(md_halo *halo) {
  if (!halo->state || !halo->transport->verify) return MD_OK;
  return md_defer(halo->context, halo->transport->verify(halo->context, halo->state));
}

/* How the numbers come about: docs/scaling.md. A host pays for every site the same. */
const md_face_costs *md_halo_face_costs(md_space space) {
  static const md_face_costs device = {"on a device", {480, 140, 110, 100}};
  return space == MD_DEVICE ? &device : NULL;
}
