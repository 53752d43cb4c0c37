/* Device fields by NCCL: sends and receives of surfaces in one group, queued between the gather and
 * the scatter. `nccl`: of all of them. `mixed`, for ranks of several nodes with several GPUs each:
 * of those that leave the node, and what stays there is written into the neighbour's memory as by
 * `peer`, both in one exchange. */
#include "base/device_nccl.h"
#include "lattice/halo/device_message.h"

#include <stdlib.h>

typedef struct nccl_state {
  md_device_carrier carrier; /* first */
  int sends, receives;       /* by NCCL */
  md_nccl_message send[MD_HALO_CHANNELS], receive[MD_HALO_CHANNELS];
} nccl_state;

static md_status check(md_context *context, const md_geometry *geometry) {
  (void)geometry;
  return md_nccl_open(context);
}

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

static md_status check_mixed(md_context *context, const md_geometry *geometry) {
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

static md_status create_local(md_context *context, const md_halo_plan *plan, void **send,
                              void **receive, void **state) {
  MD_TRY(md_device_carrier_create(context, plan, sizeof(nccl_state), state));
  return md_device_messages_buffers(context, ((nccl_state *)*state)->carrier.messages, send,
                                    receive);
}

static void list_messages(nccl_state *s, void *const *send, void *const *receive) {
  for (int c = 0; c < s->carrier.plan->channels; c++) {
    const md_halo_channel *ch = &s->carrier.plan->channel[c];
    const size_t bytes = md_device_message_bytes(s->carrier.messages, c);
    if (!md_device_message_to_peer(s->carrier.messages, c))
      s->send[s->sends++] = (md_nccl_message){send[c], bytes, ch->send_to};
    if (!md_device_message_from_peer(s->carrier.messages, c))
      s->receive[s->receives++] = (md_nccl_message){receive[c], bytes, ch->receive_from};
  }
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  MD_TRY(create_local(context, plan, send, receive, state));
  list_messages(*state, send, receive);
  return MD_OK;
}

static md_status create_mixed(md_context *context, const md_halo_plan *plan, void **state) {
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  MD_TRY(md_agree(context, create_local(context, plan, send, receive, state)));
  MD_TRY(md_device_messages_peers_within(context, ((nccl_state *)*state)->carrier.messages));
  list_messages(*state, send, receive);
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  nccl_state *s = state;
  MD_TRY(md_device_carrier_pack(context, state, field));
  return md_nccl_exchange(context, (md_nccl_messages){s->sends, s->send},
                          (md_nccl_messages){s->receives, s->receive},
                          md_device_carrier_stream(state));
}

static md_status verify(md_context *context, void *state) {
  MD_TRY(md_nccl_check(context));
  return md_device_carrier_verify(context, state);
}

const md_transport md_transport_nccl = {.name = "nccl",
                                        .needs = "NCCL, a GPU for each rank",
                                        MD_DEVICE_CARRIER,
                                        .speed = 3,
                                        .queued = true,
                                        .check = check,
                                        .create = create,
                                        .begin = begin,
                                        .end = md_device_carrier_unpack,
                                        .verify = verify,
                                        .destroy = md_device_carrier_destroy};
const md_transport md_transport_mixed = {.name = "mixed",
                                         .needs = "peer within nodes, NCCL between them",
                                         MD_DEVICE_CARRIER,
                                         .speed = 4,
                                         .queued = true,
                                         .check = check_mixed,
                                         .create = create_mixed,
                                         .begin = begin,
                                         .end = md_device_carrier_unpack,
                                         .verify = verify,
                                         .destroy = md_device_carrier_destroy};
