/* Device fields through page-locked host memory: the device gathers all surfaces into messages,
 * which leave it one after another while MPI carries those before; what arrives goes back as it
 * comes. The interior runs beside all of it. */
#include "base/device.h"
#include "base/ranks_mpi.h"
#include "lattice/halo/device_message.h"

#include <stdlib.h>

typedef struct staged_state {
  const md_halo_plan *plan;
  md_device_messages *messages;
  char *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS]; /* page-locked */
  MPI_Request request[2 * MD_HALO_CHANNELS];                /* receives, then sends */
} staged_state;

static void destroy(void *state) {
  staged_state *s = state;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++)
    if (s->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&s->request[i]);
  md_device_messages_destroy(s->messages);
  for (int c = 0; c < MD_HALO_CHANNELS; c++) {
    md_device_free_pinned(s->send[c]);
    md_device_free_pinned(s->receive[c]);
  }
  free(s);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  staged_state *s = *state = calloc(1, sizeof *s);
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->plan = plan;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++) s->request[i] = MPI_REQUEST_NULL;
  MD_TRY(md_device_messages_create(context, plan, &s->messages));
  MD_TRY(md_device_messages_buffers(context, s->messages, send, receive));
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_channel *ch = &plan->channel[c];
    const size_t bytes = md_device_message_bytes(s->messages, c);
    MD_TRY(md_device_allocate_pinned(context, bytes, "halo buffer", (void **)&s->send[c]));
    MD_TRY(md_device_allocate_pinned(context, bytes, "halo buffer", (void **)&s->receive[c]));
    MPI_Recv_init(s->receive[c], (int)bytes, MPI_BYTE, ch->receive_from, c, md_mpi(context),
                  &s->request[c]);
    MPI_Send_init(s->send[c], (int)bytes, MPI_BYTE, ch->send_to, c, md_mpi(context),
                  &s->request[plan->channels + c]);
  }
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  staged_state *s = state;
  MD_TRY(md_device_messages_pack(context, s->messages, field));
  for (int c = 0; c < s->plan->channels; c++)
    MD_TRY(md_device_message_fetch(context, s->messages, c, s->send[c]));
  return MD_OK;
}

/* Once a message of this exchange has left the device, the scatter of the one before is done, and
 * with it the last use of the receive buffers. After a failure the messages travel all the same:
 * the neighbours wait for them. */
static md_status end(md_context *context, void *state, md_field *field) {
  staged_state *s = state;
  const int channels = s->plan->channels;
  md_status status = MD_OK;
  for (int c = 0; c < channels; c++) {
    if (status == MD_OK) status = md_device_message_fetched(context, s->messages, c);
    if (c == 0) MPI_Startall(channels, s->request);
    MPI_Start(&s->request[channels + c]);
  }
  for (int k = 0; k < channels; k++) {
    int c = 0;
    MPI_Waitany(channels, s->request, &c, MPI_STATUS_IGNORE);
    if (status == MD_OK) status = md_device_message_bring(context, s->messages, c, s->receive[c]);
  }
  MPI_Waitall(channels, s->request + channels, MPI_STATUSES_IGNORE);
  MD_TRY(status);
  return md_device_messages_unpack(context, s->messages, field);
}

static void *queue(void *state) {
  return md_device_messages_stream(((const staged_state *)state)->messages);
}
static bool leads(void *state) {
  return md_device_messages_lead(((const staged_state *)state)->messages);
}
static md_status join(md_context *context, void *state) {
  return md_device_messages_join(context, ((const staged_state *)state)->messages);
}

const md_transport md_transport_staged = {.name = "staged",
                                          .needs = "CUDA GPUs and MPI",
                                          .spaces = 1u << MD_DEVICE,
                                          .speed = 1,
                                          .create = create,
                                          .begin = begin,
                                          .end = end,
                                          .queue = queue,
                                          .leads = leads,
                                          .join = join,
                                          .destroy = destroy};
