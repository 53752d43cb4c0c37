/* Device fields of ranks of several nodes with several GPUs each: what stays on a node is written
 * into the neighbour's memory as by `peer`, what leaves it goes by NCCL, both in one exchange. */
#include "base/device_nccl.h"
#include "lattice/halo/device_message.h"

#include <stdlib.h>

typedef struct mixed_state {
  const md_halo_plan *plan;
  md_device_messages *messages;
  int sends, receives; /* by NCCL */
  md_nccl_message send[MD_HALO_CHANNELS], receive[MD_HALO_CHANNELS];
} mixed_state;

/* Numbers of ranks with a neighbour on their own node, themselves included, and on another one. */
static md_status count_neighbours(md_context *context, const md_geometry *g, long long count[2]) {
  int *node = calloc((size_t)context->ranks, sizeof *node);
  bool near = false, far = false;
  md_status status =
      md_agree(context, node ? MD_OK : md_fail_memory(context, sizeof *node, "nodes"));
  if (status == MD_OK) status = md_device_nodes(context, node);
  for (int m = 0; m < g->messages && status == MD_OK; m++) {
    const bool same = node[g->message[m].send_rank] == node[context->rank];
    near = near || same;
    far = far || !same;
  }
  free(node);
  MD_TRY(status);
  count[0] = near;
  count[1] = far;
  md_sum_integers(context, count, 2);
  return MD_OK;
}

static md_status check(md_context *context, const md_geometry *geometry) {
  long long count[2];
  md_device_peers *peers = NULL;
  MD_TRY(count_neighbours(context, geometry, count));
  if (count[1] == 0)
    return md_fail(context, MD_ENVIRONMENT,
                   "transport mixed needs neighbours on different nodes; use peer");
  if (count[0] == 0)
    return md_fail(context, MD_ENVIRONMENT,
                   "transport mixed needs neighbours on one node; use nccl");
  MD_TRY(md_nccl_open(context));
  MD_TRY(md_device_peers_create_within(context, 256, "a test of shared memory", &peers));
  md_device_peers_destroy(peers);
  return MD_OK;
}

static void destroy(void *state) {
  mixed_state *s = state;
  md_device_messages_destroy(s->messages);
  free(s);
}

static void list_messages(mixed_state *s, void *const *send, void *const *receive) {
  for (int c = 0; c < s->plan->channels; c++) {
    const md_halo_channel *ch = &s->plan->channel[c];
    const size_t bytes = md_device_message_bytes(s->messages, c);
    if (!md_device_message_to_peer(s->messages, c))
      s->send[s->sends++] = (md_nccl_message){send[c], bytes, ch->send_to};
    if (!md_device_message_from_peer(s->messages, c))
      s->receive[s->receives++] = (md_nccl_message){receive[c], bytes, ch->receive_from};
  }
}

static md_status create_local(md_context *context, const md_halo_plan *plan, mixed_state *s,
                              void **send, void **receive) {
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->plan = plan;
  MD_TRY(md_device_messages_create(context, plan, &s->messages));
  return md_device_messages_buffers(context, s->messages, send, receive);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  mixed_state *s = *state = calloc(1, sizeof *s);
  MD_TRY(md_agree(context, create_local(context, plan, s, send, receive)));
  MD_TRY(md_device_messages_peers_within(context, s->messages));
  list_messages(s, send, receive);
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  mixed_state *s = state;
  MD_TRY(md_device_messages_pack(context, s->messages, field));
  return md_nccl_exchange(context, (md_nccl_messages){s->sends, s->send},
                          (md_nccl_messages){s->receives, s->receive},
                          md_device_messages_stream(s->messages));
}

static md_status end(md_context *context, void *state, md_field *field) {
  return md_device_messages_unpack(context, ((mixed_state *)state)->messages, field);
}

static md_status verify(md_context *context, void *state) {
  MD_TRY(md_nccl_check(context));
  return md_device_messages_check(context, ((mixed_state *)state)->messages);
}

static void *queue(void *state) {
  return md_device_messages_stream(((const mixed_state *)state)->messages);
}
static bool leads(void *state) {
  return md_device_messages_lead(((const mixed_state *)state)->messages);
}
static md_status join(md_context *context, void *state) {
  return md_device_messages_join(context, ((const mixed_state *)state)->messages);
}

const md_transport md_transport_mixed = {.name = "mixed",
                                         .needs = "peer within nodes, NCCL between them",
                                         .spaces = 1u << MD_DEVICE,
                                         .speed = 4,
                                         .queued = true,
                                         .check = check,
                                         .create = create,
                                         .begin = begin,
                                         .end = end,
                                         .queue = queue,
                                         .leads = leads,
                                         .join = join,
                                         .verify = verify,
                                         .destroy = destroy};
