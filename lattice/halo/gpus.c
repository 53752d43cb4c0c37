/* Device fields from GPU to GPU. `peer`, of ranks of one node: the kernel that gathers a surface
 * writes it into the memory of the neighbour's GPU, and that GPU waits for it; the host takes no
 * part. `nccl`: sends and receives of surfaces in one group, queued between the gather and the
 * scatter. `mixed`, for ranks of several nodes with several GPUs each: by NCCL what leaves the
 * node, and as by `peer` what stays there, both in one exchange. */
#include "lattice/halo/device_message.h"

#include <stdlib.h>

#if MINIDIRAC_HAVE_CUDA
/* Whether every GPU can address the others' memory is found out by doing it. */
static md_status try_peers(md_context *context, bool within) {
  md_device_peers *peers = NULL;
  MD_TRY(md_device_peers_create(context, 256, "a test of shared memory", within, &peers));
  md_device_peers_destroy(peers);
  return MD_OK;
}

static md_status check_peer(md_context *context, const md_geometry *geometry) {
  (void)geometry;
  return try_peers(context, false);
}

static md_status create_peer(md_context *context, const md_halo_plan *plan, void **state) {
  MD_TRY(
      md_agree(context, md_device_carrier_create(context, plan, sizeof(md_device_carrier), state)));
  return md_device_messages_peers(context, ((md_device_carrier *)*state)->messages, false);
}
#endif

const md_transport md_transport_peer = {
    .name = "peer",
    .whole_spinors = true,
    MD_DEVICE_CARRIER(.speed = 5, .queued = true, .check = check_peer, .create = create_peer,
                      .begin = md_device_carrier_pack, .end = md_device_carrier_unpack,
                      .verify = md_device_carrier_verify, .destroy = md_device_carrier_destroy)};

#ifdef MINIDIRAC_HAVE_NCCL
typedef struct nccl_state {
  md_device_carrier carrier; /* first */
  int messages;              /* by NCCL */
  md_nccl_message message[2 * MD_MOST_MESSAGES];
} nccl_state;

static md_status check_nccl(md_context *context, const md_geometry *geometry) {
  (void)geometry;
  return md_nccl_open(context);
}

/* Numbers of ranks with a neighbour on their own node, themselves included, and on another one. */
static md_status count_neighbours(md_context *context, const md_geometry *g, long long count[2]) {
  const size_t bytes = (size_t)context->ranks * sizeof(int);
  int *node = calloc(1, bytes);
  md_status status = md_agree(context, node ? MD_OK : md_fail_memory(context, bytes, "nodes"));
  if (status == MD_OK) status = md_device_nodes(context, node);
  count[0] = count[1] = 0;
  for (int m = 0; m < g->messages && status == MD_OK; m++)
    count[node[g->message[m].send_rank] != node[context->rank]] = 1;
  free(node);
  if (status == MD_OK) md_sum_integers(context, count, 2);
  return status;
}

static md_status check_mixed(md_context *context, const md_geometry *geometry) {
  long long count[2];
  MD_TRY(count_neighbours(context, geometry, count));
  if (count[1] == 0)
    return md_fail(context, MD_ENVIRONMENT,
                   "transport mixed needs neighbours on different nodes; use peer");
  if (count[0] == 0)
    return md_fail(context, MD_ENVIRONMENT,
                   "transport mixed needs neighbours on one node; use nccl");
  MD_TRY(md_nccl_open(context));
  return try_peers(context, true);
}

/* Mixed agrees before it communicates. */
static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  const bool mixed = plan->transport == &md_transport_mixed;
  void *send[MD_MOST_MESSAGES], *receive[MD_MOST_MESSAGES];
  md_status status = md_device_carrier_create(context, plan, sizeof(nccl_state), state);
  nccl_state *s = *state;
  if (status == MD_OK)
    status = md_device_messages_buffers(context, s->carrier.messages, send, receive);
  MD_TRY(mixed ? md_agree(context, status) : status);
  if (mixed) MD_TRY(md_device_messages_peers(context, s->carrier.messages, true));
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_message *ch = &plan->channel[c];
    const size_t bytes = md_device_message_bytes(s->carrier.messages, c);
    if (!md_device_message_to_peer(s->carrier.messages, c))
      s->message[s->messages++] = (md_nccl_message){send[c], bytes, ch->send_rank, false};
    if (!md_device_message_from_peer(s->carrier.messages, c))
      s->message[s->messages++] = (md_nccl_message){receive[c], bytes, ch->receive_rank, true};
  }
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  const nccl_state *s = state;
  const md_status packed = md_device_carrier_pack(context, state, field);
  const md_status sent =
      md_nccl_exchange(context, s->message, s->messages, md_device_carrier_stream(state));
  return packed == MD_OK ? sent : packed;
}

static md_status verify(md_context *context, void *state) {
  MD_TRY(md_nccl_check(context));
  return md_device_carrier_verify(context, state);
}

#define BY_NCCL(speed_, check_)                                                                    \
  MD_DEVICE_CARRIER(.speed = speed_, .queued = true, .check = check_, .create = create,            \
                    .begin = begin, .end = md_device_carrier_unpack, .verify = verify,             \
                    .destroy = md_device_carrier_destroy)
#elif MINIDIRAC_HAVE_CUDA
#define BY_NCCL(...)                                                                               \
  .spaces = 1u << MD_DEVICE,                                                                       \
  .unavailable = "this build has no NCCL; install libnccl-dev (nccl.h, libnccl.so) and configure " \
                 "with -DMINIDIRAC_CUDA=ON, -DNCCL_ROOT=FOLDER where it lies elsewhere"
#else
#define BY_NCCL(...) MD_DEVICE_CARRIER()
#endif

const md_transport md_transport_nccl = {.name = "nccl", BY_NCCL(3, check_nccl)};
const md_transport md_transport_mixed = {.name = "mixed", BY_NCCL(4, check_mixed)};
