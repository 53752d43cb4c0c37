/* Device fields of ranks of one node: the kernel that gathers a surface writes it into the memory
 * of the neighbour's GPU, and that GPU waits for it. The host takes no part. */
#include "lattice/halo/device_message.h"

/* Whether every GPU can address the others' memory is found out by doing it. */
static md_status check(md_context *context, const md_geometry *geometry) {
  md_device_peers *peers = NULL;
  (void)geometry;
  MD_TRY(md_device_peers_create(context, 256, "a test of shared memory", &peers));
  md_device_peers_destroy(peers);
  return MD_OK;
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  md_device_messages *messages = NULL;
  const md_status status = md_device_messages_create(context, plan, &messages);
  *state = messages;
  MD_TRY(md_agree(context, status));
  return md_device_messages_peers(context, messages);
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  return md_device_messages_pack(context, state, field);
}
static md_status end(md_context *context, void *state, md_field *field) {
  return md_device_messages_unpack(context, state, field);
}
static md_status verify(md_context *context, void *state) {
  return md_device_messages_check(context, state);
}
static void destroy(void *state) {
  md_device_messages_destroy(state);
}

static void *queue(void *state) {
  return md_device_messages_stream(state);
}
static bool leads(void *state) {
  return md_device_messages_lead(state);
}
static md_status join(md_context *context, void *state) {
  return md_device_messages_join(context, state);
}

static md_status arrivals(md_context *context, void *state, md_halo_arrivals *arrivals,
                          bool *found) {
  return md_device_messages_arrivals(context, state, arrivals, found);
}

const md_transport md_transport_peer = {.name = "peer",
                                        .needs = "GPUs of one node that address each other",
                                        .spaces = 1u << MD_DEVICE,
                                        .speed = 5,
                                        .queued = true,
                                        .check = check,
                                        .create = create,
                                        .begin = begin,
                                        .end = end,
                                        .queue = queue,
                                        .leads = leads,
                                        .join = join,
                                        .arrivals = arrivals,
                                        .verify = verify,
                                        .destroy = destroy};
