/* Device fields by MPI. `cuda_aware`: by one that takes device memory. `staged`: through
 * page-locked host memory; the device gathers all surfaces into messages, which leave it one after
 * another while MPI carries those before, and what arrives goes back as it comes. The interior runs
 * beside all of it. */
#include "base/device.h"
#include "base/ranks_mpi.h"
#include "lattice/halo/device_message.h"

#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

typedef struct mpi_state {
  md_device_carrier carrier;                                /* first */
  char *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS]; /* staged: page-locked */
  MPI_Request request[2 * MD_HALO_CHANNELS];                /* receives, then sends */
} mpi_state;

static md_status check_aware(md_context *context, const md_geometry *geometry) {
  (void)geometry;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  if (MPIX_Query_cuda_support()) return MD_OK;
#endif
  return md_fail(context, MD_ENVIRONMENT,
                 "transport cuda_aware needs an MPI that takes device memory, and this one says "
                 "that it does not; use an Open MPI that is built --with-cuda");
}

static void destroy(void *state) {
  mpi_state *s = state;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++)
    if (s->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&s->request[i]);
  for (int c = 0; c < MD_HALO_CHANNELS; c++) {
    md_device_free_pinned(s->send[c]);
    md_device_free_pinned(s->receive[c]);
  }
  md_device_carrier_destroy(state);
}

static md_status create(md_context *context, const md_halo_plan *plan, bool staged, void **state) {
  void *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  const md_status created = md_device_carrier_create(context, plan, sizeof(mpi_state), state);
  mpi_state *s = *state;
  for (int i = 0; s && i < 2 * MD_HALO_CHANNELS; i++) s->request[i] = MPI_REQUEST_NULL;
  MD_TRY(created);
  MD_TRY(md_device_messages_buffers(context, s->carrier.messages, send, receive));
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_channel *ch = &plan->channel[c];
    const size_t bytes = md_device_message_bytes(s->carrier.messages, c);
    if (staged) {
      MD_TRY(md_device_allocate_pinned(context, bytes, "halo buffer", (void **)&s->send[c]));
      MD_TRY(md_device_allocate_pinned(context, bytes, "halo buffer", (void **)&s->receive[c]));
    }
    MPI_Recv_init(staged ? s->receive[c] : receive[c], (int)bytes, MPI_BYTE, ch->receive_from, c,
                  md_mpi(context), &s->request[c]);
    MPI_Send_init(staged ? s->send[c] : send[c], (int)bytes, MPI_BYTE, ch->send_to, c,
                  md_mpi(context), &s->request[plan->channels + c]);
  }
  return MD_OK;
}

static md_status create_aware(md_context *context, const md_halo_plan *plan, void **state) {
  return create(context, plan, false, state);
}
static md_status create_staged(md_context *context, const md_halo_plan *plan, void **state) {
  return create(context, plan, true, state);
}

/* MPI knows no streams: the gather, and the scatter before it, must have ended. */
static md_status end_aware(md_context *context, void *state, md_field *field) {
  mpi_state *s = state;
  const int all = 2 * s->carrier.plan->channels;
  const md_status status = md_device_messages_wait(context, s->carrier.messages);
  MPI_Startall(all, s->request);
  MPI_Waitall(all, s->request, MPI_STATUSES_IGNORE);
  MD_TRY(status);
  return md_device_carrier_unpack(context, state, field);
}

static md_status begin_staged(md_context *context, void *state, const md_field *field) {
  mpi_state *s = state;
  MD_TRY(md_device_carrier_pack(context, state, field));
  for (int c = 0; c < s->carrier.plan->channels; c++)
    MD_TRY(md_device_message_fetch(context, s->carrier.messages, c, s->send[c]));
  return MD_OK;
}

/* Once a message of this exchange has left the device, the scatter of the one before is done, and
 * with it the last use of the receive buffers. After a failure the messages travel all the same:
 * the neighbours wait for them. */
static md_status end_staged(md_context *context, void *state, md_field *field) {
  mpi_state *s = state;
  md_device_messages *messages = s->carrier.messages;
  const int channels = s->carrier.plan->channels;
  md_status status = MD_OK;
  for (int c = 0; c < channels; c++) {
    if (status == MD_OK) status = md_device_message_fetched(context, messages, c);
    if (c == 0) MPI_Startall(channels, s->request);
    MPI_Start(&s->request[channels + c]);
  }
  for (int k = 0; k < channels; k++) {
    int c = 0;
    MPI_Waitany(channels, s->request, &c, MPI_STATUS_IGNORE);
    if (status == MD_OK) status = md_device_message_bring(context, messages, c, s->receive[c]);
  }
  MPI_Waitall(channels, s->request + channels, MPI_STATUSES_IGNORE);
  MD_TRY(status);
  return md_device_carrier_unpack(context, state, field);
}

const md_transport md_transport_cuda_aware = {.name = "cuda_aware",
                                              .needs = "an MPI that takes device memory",
                                              MD_DEVICE_CARRIER,
                                              .speed = 2,
                                              .check = check_aware,
                                              .create = create_aware,
                                              .begin = md_device_carrier_pack,
                                              .end = end_aware,
                                              .destroy = destroy};
const md_transport md_transport_staged = {.name = "staged",
                                          .needs = "CUDA GPUs and MPI",
                                          MD_DEVICE_CARRIER,
                                          .speed = 1,
                                          .create = create_staged,
                                          .begin = begin_staged,
                                          .end = end_staged,
                                          .destroy = destroy};
