/* Host fields through MPI's own buffers: persistent requests, made once. */
#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "lattice/halo/message.h"

#include <stdlib.h>

typedef struct mpi_state {
  const md_halo_plan *plan;
  int64_t number; /* of the exchange under way, with checks */
  char *send[MD_HALO_CHANNELS], *receive[MD_HALO_CHANNELS];
  MPI_Request request[2 * MD_HALO_CHANNELS]; /* receives, then sends */
} mpi_state;

static void destroy(void *state) {
  mpi_state *s = state;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++)
    if (s->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&s->request[i]);
  for (int c = 0; c < MD_HALO_CHANNELS; c++) {
    free(s->send[c]);
    free(s->receive[c]);
  }
  free(s);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  mpi_state *s = *state = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->plan = plan;
  for (int i = 0; i < 2 * MD_HALO_CHANNELS; i++) s->request[i] = MPI_REQUEST_NULL;
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_channel *ch = &plan->channel[c];
    MD_TRY(md_message_check(context, ch));
    const size_t bytes = ch->bytes + (plan->check ? MD_SEAL_BYTES : 0);
    MD_TRY(md_allocate(context, bytes, "halo buffer", (void **)&s->send[c]));
    MD_TRY(md_allocate(context, bytes, "halo buffer", (void **)&s->receive[c]));
    MPI_Recv_init(s->receive[c], (int)bytes, MPI_BYTE, ch->receive_from, c, md_mpi(context),
                  &s->request[c]);
    MPI_Send_init(s->send[c], (int)bytes, MPI_BYTE, ch->send_to, c, md_mpi(context),
                  &s->request[plan->channels + c]);
  }
  return MD_OK;
}

static md_status begin(md_context *context, void *state, const md_field *field) {
  mpi_state *s = state;
  const int channels = s->plan->channels;
  (void)context;
  s->number++;
  MPI_Startall(channels, s->request);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < channels; c++) {
    md_message_pack(field, &s->plan->channel[c], s->send[c]);
    if (s->plan->check) md_message_seal(s->send[c], s->plan->channel[c].bytes, s->number);
  }
  MPI_Startall(channels, s->request + channels);
  return MD_OK;
}

static md_status end(md_context *context, void *state, md_field *field) {
  mpi_state *s = state;
  const int channels = s->plan->channels;
  MPI_Waitall(2 * channels, s->request, MPI_STATUSES_IGNORE);
  for (int c = 0; c < channels && s->plan->check; c++)
    MD_TRY(md_message_verify(context, &s->plan->channel[c], s->receive[c],
                             s->plan->channel[c].bytes, s->number));
#pragma omp parallel for schedule(static)
  for (int c = 0; c < channels; c++) md_message_unpack(field, &s->plan->channel[c], s->receive[c]);
  return MD_OK;
}

const md_transport md_transport_mpi = {.name = "mpi",
                                       .needs = "MPI; fields on the host",
                                       .spaces = 1u << MD_HOST,
                                       .speed = 1,
                                       .create = create,
                                       .begin = begin,
                                       .end = end,
                                       .destroy = destroy};
