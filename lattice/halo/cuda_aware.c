/* Device fields by an MPI that takes device memory. */
#include "base/ranks_mpi.h"
#include "lattice/halo/device_message.h"

#include <stdlib.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

typedef struct aware_state {
  const md_halo_plan *plan;
  md_device_messages *messages;
  MPI_Request request[2 * MD_HALO_CHANNELS]; /* receives, then sends */
} aware_state;

static md_status check(md_context *context, const md_geometry *geometry) {
  (void)geometry;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  if (MPIX_Query_cuda_support()) return MD_OK;
#endif
  return md_fail(context, MD_ENVIRONMENT,
                 "transport cuda_aware needs an MPI that takes device memory, and this one says "
                 "that it does not; use an Open MPI that is built --with-cuda");
}

static void destroy(void *state) {
  aware_state *s = state;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++)
    if (s->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&s->request[i]);
  md_device_messages_destroy(s->messages);
  free(s);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  aware_state *s = *state = calloc(1, sizeof *s);
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->plan = plan;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++) s->request[i] = MPI_REQUEST_NULL;
  MD_TRY(md_device_messages_create(context, plan, &s->messages));
  MD_TRY(md_device_messages_buffers(context, s->messages, send, receive));
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_channel *ch = &plan->channel[c];
    const int bytes = (int)md_device_message_bytes(s->messages, c);
    MPI_Recv_init(receive[c], bytes, MPI_BYTE, ch->receive_from, c, md_mpi(context),
                  &s->request[c]);
    MPI_Send_init(send[c], bytes, MPI_BYTE, ch->send_to, c, md_mpi(context),
                  &s->request[plan->channels + c]);
  }
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  aware_state *s = state;
  return md_device_messages_pack(context, s->messages, field);
}

/* MPI knows no streams: the gather, and the scatter before it, must have ended. */
static md_status end(md_context *context, void *state, md_field *field) {
  aware_state *s = state;
  const int all = 2 * s->plan->channels;
  const md_status status = md_device_messages_wait(context, s->messages);
  MPI_Startall(all, s->request);
  MPI_Waitall(all, s->request, MPI_STATUSES_IGNORE);
  MD_TRY(status);
  return md_device_messages_unpack(context, s->messages, field);
}

static void *queue(void *state) {
  return md_device_messages_stream(((const aware_state *)state)->messages);
}
static bool leads(void *state) {
  return md_device_messages_lead(((const aware_state *)state)->messages);
}
static md_status join(md_context *context, void *state) {
  return md_device_messages_join(context, ((const aware_state *)state)->messages);
}

const md_transport md_transport_cuda_aware = {.name = "cuda_aware",
                                              .needs = "an MPI that takes device memory",
                                              .spaces = 1u << MD_DEVICE,
                                              .speed = 2,
                                              .check = check,
                                              .create = create,
                                              .begin = begin,
                                              .end = end,
                                              .queue = queue,
                                              .leads = leads,
                                              .join = join,
                                              .destroy = destroy};
