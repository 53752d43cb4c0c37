/* Device fields by NCCL: sends and receives of all surfaces in one group, queued between the gather
 * and the scatter. */
#include "base/device_nccl.h"
#include "lattice/halo/device_message.h"

#include <stdlib.h>

typedef struct nccl_state {
  const md_halo_plan *plan;
  md_device_messages *messages;
  md_nccl_message send[MD_HALO_CHANNELS], receive[MD_HALO_CHANNELS];
} nccl_state;

static md_status check(md_context *context, const md_geometry *geometry) {
  (void)geometry;
  return md_nccl_open(context);
}

static void destroy(void *state) {
  nccl_state *s = state;
  md_device_messages_destroy(s->messages);
  free(s);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  nccl_state *s = *state = calloc(1, sizeof *s);
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->plan = plan;
  MD_TRY(md_device_messages_create(context, plan, &s->messages));
  MD_TRY(md_device_messages_buffers(context, s->messages, send, receive));
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_channel *ch = &plan->channel[c];
    const size_t bytes = md_device_message_bytes(s->messages, c);
    s->send[c] = (md_nccl_message){send[c], bytes, ch->send_to};
    s->receive[c] = (md_nccl_message){receive[c], bytes, ch->receive_from};
  }
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  nccl_state *s = state;
  MD_TRY(md_device_messages_pack(context, s->messages, field));
  const int all = s->plan->channels;
  return md_nccl_exchange(context, (md_nccl_messages){all, s->send},
                          (md_nccl_messages){all, s->receive},
                          md_device_messages_stream(s->messages));
}

static md_status end(md_context *context, void *state, md_field *field) {
  nccl_state *s = state;
  return md_device_messages_unpack(context, s->messages, field);
}

static md_status verify(md_context *context, void *state) {
  nccl_state *s = state;
  MD_TRY(md_nccl_check(context));
  return md_device_messages_check(context, s->messages);
}

static void *queue(void *state) {
  return md_device_messages_stream(((const nccl_state *)state)->messages);
}
static bool leads(void *state) {
  return md_device_messages_lead(((const nccl_state *)state)->messages);
}
static md_status join(md_context *context, void *state) {
  return md_device_messages_join(context, ((const nccl_state *)state)->messages);
}

const md_transport md_transport_nccl = {.name = "nccl",
                                        .needs = "NCCL, a GPU for each rank",
                                        .spaces = 1u << MD_DEVICE,
                                        .speed = 3,
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
