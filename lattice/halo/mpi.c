/* Halos by MPI, in persistent requests that are made once. `mpi`: host fields. `cuda_aware`: device
 * fields by an MPI that takes device memory. `staged`: device fields through page-locked host
 * memory; the device gathers all surfaces into messages, which leave it one after another while MPI
 * carries those before, and what arrives goes back as it comes. The interior runs beside all of it.
 */
#include "base/device.h"
#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "lattice/halo/device_message.h"

#include <stdlib.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

typedef struct mpi_state {
  md_device_carrier carrier;                                /* first; host fields: the plan alone */
  char *send[MD_MOST_MESSAGES], *receive[MD_MOST_MESSAGES]; /* on the host */
  int requests;
  MPI_Request request[2 * MD_MOST_MESSAGES]; /* receives, then sends */
  int64_t number;                            /* host: of the exchange under way, with checks */
} mpi_state;

/* The last step of `create`. */
static void make_requests(md_context *context, mpi_state *s, void *const *send,
                          void *const *receive, const size_t *bytes) {
  const md_halo_plan *plan = s->carrier.plan;
  for (int c = 0; c < plan->channels; c++) {
    const md_halo_message *ch = &plan->channel[c];
    MPI_Recv_init(receive[c], (int)bytes[c], MPI_BYTE, ch->receive_rank, c, md_mpi(context),
                  &s->request[c]);
    MPI_Send_init(send[c], (int)bytes[c], MPI_BYTE, ch->send_rank, c, md_mpi(context),
                  &s->request[plan->channels + c]);
  }
  s->requests = 2 * plan->channels;
}

/* Frees the requests and, by `release`, the messages. */
static void let_go(mpi_state *s, void (*release)(void *message)) {
  for (int i = 0; i < s->requests; i++) MPI_Request_free(&s->request[i]);
  for (int c = 0; c < MD_MOST_MESSAGES; c++) {
    release(s->send[c]);
    release(s->receive[c]);
  }
}

static void destroy_host(void *state) {
  let_go(state, free);
  free(state);
}

static md_status create_host(md_context *context, const md_halo_plan *plan, void **state) {
  size_t bytes[MD_MOST_MESSAGES];
  mpi_state *s = *state = calloc(1, sizeof *s);
  if (!s) return md_fail_memory(context, sizeof *s, "halo");
  s->carrier.plan = plan;
  for (int c = 0; c < plan->channels; c++) {
    MD_TRY(md_message_check(context, md_plan_bytes(plan, c)));
    bytes[c] = md_plan_bytes(plan, c) + (plan->check ? MD_SEAL_BYTES : 0);
    MD_TRY(md_allocate(context, bytes[c], "halo buffer", (void **)&s->send[c]));
    MD_TRY(md_allocate(context, bytes[c], "halo buffer", (void **)&s->receive[c]));
  }
  make_requests(context, s, (void *const *)s->send, (void *const *)s->receive, bytes);
  return MD_OK;
}

static md_status begin_host(md_context *context, void *state, const md_field *field) {
  mpi_state *s = state;
  const md_halo_plan *plan = s->carrier.plan;
  (void)context;
  s->number++;
  MPI_Startall(plan->channels, s->request);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < plan->channels; c++) {
    md_message_pack(plan, c, field, s->send[c]);
    if (plan->check) md_message_seal(s->send[c], md_plan_bytes(plan, c), s->number);
  }
  MPI_Startall(plan->channels, s->request + plan->channels);
  return MD_OK;
}

static md_status end_host(md_context *context, void *state, md_field *field) {
  mpi_state *s = state;
  const md_halo_plan *plan = s->carrier.plan;
  MPI_Waitall(s->requests, s->request, MPI_STATUSES_IGNORE);
  for (int c = 0; c < plan->channels && plan->check; c++)
    MD_TRY(md_message_verify(context, &plan->channel[c], s->receive[c], md_plan_bytes(plan, c),
                             s->number));
#pragma omp parallel for schedule(static)
  for (int c = 0; c < plan->channels; c++) md_message_unpack(plan, c, s->receive[c], field);
  return MD_OK;
}

const md_transport md_transport_mpi = {.name = "mpi",
                                       .spaces = 1u << MD_HOST,
                                       .speed = 1,
                                       .create = create_host,
                                       .begin = begin_host,
                                       .end = end_host,
                                       .destroy = destroy_host};

#if MINIDIRAC_HAVE_CUDA
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
  let_go(state, md_device_free_pinned);
  md_device_carrier_destroy(state);
}

static md_status create(md_context *context, const md_halo_plan *plan, void **state) {
  void *send[MD_MOST_MESSAGES], *receive[MD_MOST_MESSAGES];
  size_t bytes[MD_MOST_MESSAGES];
  MD_TRY(md_device_carrier_create(context, plan, sizeof(mpi_state), state));
  mpi_state *s = *state;
  MD_TRY(md_device_messages_buffers(context, s->carrier.messages, send, receive));
  for (int c = 0; c < plan->channels; c++) {
    bytes[c] = md_device_message_bytes(s->carrier.messages, c);
    if (plan->transport != &md_transport_staged) continue;
    MD_TRY(md_device_allocate_pinned(context, bytes[c], "halo buffer", (void **)&s->send[c]));
    MD_TRY(md_device_allocate_pinned(context, bytes[c], "halo buffer", (void **)&s->receive[c]));
    send[c] = s->send[c];
    receive[c] = s->receive[c];
  }
  make_requests(context, s, send, receive, bytes);
  return MD_OK;
}

/* MPI knows no streams: the gather, and the scatter before it, must have ended. */
static md_status end_aware(md_context *context, void *state, md_field *field) {
  mpi_state *s = state;
  const md_status status = md_device_messages_wait(context, s->carrier.messages);
  MPI_Startall(s->requests, s->request);
  MPI_Waitall(s->requests, s->request, MPI_STATUSES_IGNORE);
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
#endif

const md_transport md_transport_cuda_aware = {
    .name = "cuda_aware",
    MD_DEVICE_CARRIER(.speed = 2, .check = check_aware, .create = create,
                      .begin = md_device_carrier_pack, .end = end_aware,
                      .verify = md_device_carrier_verify, .destroy = destroy)};
const md_transport md_transport_staged = {
    .name = "staged",
    MD_DEVICE_CARRIER(.speed = 1, .create = create, .begin = begin_staged, .end = end_staged,
                      .verify = md_device_carrier_verify, .destroy = destroy)};
