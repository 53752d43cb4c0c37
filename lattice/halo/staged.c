/* Device fields through page-locked host memory: the device gathers its surfaces there, MPI carries
 * them, copies bring what arrives back. */
#include "base/device.h"
#include "base/ranks_mpi.h"
#include "lattice/halo/device_message.h"
#include "lattice/halo/message.h"

#include <stdlib.h>

typedef struct staged_state {
  const md_halo_plan *plan;
  md_device_messages *device;
  char *send[MD_DIRECTIONS], *receive[MD_DIRECTIONS];
  MPI_Request request[2 * MD_DIRECTIONS]; /* receives, then sends */
} staged_state;

static void destroy(void *state) {
  staged_state *s = state;
  for (int i = 0; i < 2 * MD_DIRECTIONS; i++)
    if (s->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&s->request[i]);
  for (int c = 0; c < MD_DIRECTIONS; c++) {
    md_device_free_pinned(s->send[c]);
    md_device_free_pinned(s->receive[c]);
  }
  md_device_messages_destroy(s->device);
  free(s);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  staged_state *s = *state = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->plan = plan;
  for (int i = 0; i < 2 * MD_DIRECTIONS; i++) s->request[i] = MPI_REQUEST_NULL;
  MD_TRY(md_device_messages_create(context, plan, &s->device));
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_channel *ch = &plan->channel[c];
    MD_TRY(md_message_check(context, ch));
    MD_TRY(md_device_allocate_pinned(context, ch->bytes, "halo buffer", (void **)&s->send[c]));
    MD_TRY(md_device_allocate_pinned(context, ch->bytes, "halo buffer", (void **)&s->receive[c]));
    MPI_Recv_init(s->receive[c], (int)ch->bytes, MPI_BYTE, ch->receive_from, c, md_mpi(context),
                  &s->request[c]);
    MPI_Send_init(s->send[c], (int)ch->bytes, MPI_BYTE, ch->send_to, c, md_mpi(context),
                  &s->request[plan->channels + c]);
  }
  return MD_OK;
}

/* The surfaces leave the device while the caller queues the interior; they are sent when the
 * caller comes back. The receive buffers are free once the last unpacking is done. */
static md_status begin(md_context *context, void *state, const md_field *field) {
  staged_state *s = state;
  md_status status = md_device_messages_wait(context, s->device);
  MPI_Startall(s->plan->channels, s->request);
  for (int c = 0; c < s->plan->channels && status == MD_OK; c++)
    status = md_device_message_pack(context, s->device, field, c, s->send[c]);
  return status;
}

/* After a failure the messages travel all the same: the neighbours wait for them. */
static md_status end(md_context *context, void *state, md_field *field) {
  staged_state *s = state;
  const int channels = s->plan->channels;
  md_status status = md_device_messages_wait(context, s->device);
  MPI_Startall(channels, s->request + channels);
  MPI_Waitall(2 * channels, s->request, MPI_STATUSES_IGNORE);
  for (int c = 0; c < channels && status == MD_OK; c++)
    status = md_device_message_unpack(context, s->device, field, c, s->receive[c]);
  return status;
}

const md_transport md_transport_staged = {.name = "staged",
                                          .needs = "CUDA GPUs and MPI",
                                          .spaces = 1u << MD_DEVICE,
                                          .speed = 1,
                                          .create = create,
                                          .begin = begin,
                                          .end = end,
                                          .destroy = destroy};
