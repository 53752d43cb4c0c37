/* Halo transports: refusals by name, checks that meet what a network did to a message, and half
 * spinors for H^dag. */
#include "lattice/halo/transport.h"
#include "support.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* MPI's profiling interface lets the test stand between the program and the network: it may turn a
 * bit of what the first receive request brings, or bring an older message again. */
static struct {
  enum { HONEST, TURNS_A_BIT, REPEATS } network;
  char *buffer, old[4096];
  int bytes;
} network;

int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm ranks,
                  MPI_Request *request) {
  if (tag == 0 && count > network.bytes) { /* not those that are made to time what checks cost */
    network.buffer = buffer;
    network.bytes = count;
  }
  return PMPI_Recv_init(buffer, count, type, source, tag, ranks, request);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
  const int result = PMPI_Waitall(count, requests, statuses);
  if (network.network == TURNS_A_BIT) network.buffer[network.bytes / 3] ^= 4;
  if (network.network == REPEATS)
    memcpy(network.buffer, network.old, (size_t)network.bytes);
  else if (network.buffer && network.bytes <= (int)sizeof network.old)
    memcpy(network.old, network.buffer, (size_t)network.bytes);
  return result;
}

static const md_field_shape shape = {MD_HALF, MD_HOST, 6, 1, true, false};

/* Exchanges once; what all ranks agree on then. */
static md_status exchange(md_context *context, md_halo *halo, md_field *field) {
  MD_TRY(md_agree(context, md_halo_begin(halo, field)));
  return md_agree(context, md_halo_end(halo, field));
}

static void refuses(md_context *context, const char *name, md_space space, const char *says) {
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 8, false);
  const md_halo_request request = {.transport = name};
  md_field_shape where = shape;
  md_halo *halo;
  where.space = space;
  assert_true(md_halo_create(context, g, &where, &request, &halo) != MD_OK);
  assert_null(halo);
  if (!strstr(context->message, says)) fail_msg("%s: %s", name, context->message);
  md_geometry_destroy(g);
}

static void wrong_names_are_refused(void **state) {
  refuses(*state, "pigeon", MD_HOST,
          "must be one of auto, mpi, peer, mixed, nccl, cuda_aware, staged, got 'pigeon'");
  refuses(*state, "mpi", MD_DEVICE, "transport mpi does not carry fields that lie on a device");
  for (const md_transport *const *t = md_transports(); *t; t++)
    if ((*t)->unavailable)
      refuses(*state, (*t)->name, MD_DEVICE, (*t)->unavailable);
    else if ((*t)->spaces == 1u << MD_DEVICE)
      refuses(*state, (*t)->name, MD_HOST, "does not carry fields that lie on the host");
}

/* The ranks end with one message that names sender, direction and number. */
static void damage_is_met(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 8, true);
  const char *const says[] = {NULL, "its hash on rank", "must arrive in its turn"};
  for (int how = HONEST; how <= REPEATS; how++) {
    const md_halo_request request = {.transport = "auto", .check = true};
    md_halo *halo;
    md_field field;
    context->quiet = true;
    network.bytes = 0;
    MD_REQUIRE(context, md_halo_create(context, g, &shape, &request, &halo));
    md_test_random_field(context, g, MD_HALF, 1, MD_EVEN, 3, &field);
    MD_REQUIRE(context, exchange(context, halo, &field));
    network.network = context->rank == context->ranks - 1 ? how : HONEST;
    const md_status status = exchange(context, halo, &field);
    network.network = HONEST;
    assert_int_equal(status, how == HONEST ? MD_OK : MD_ENVIRONMENT);
    if (says[how] && !strstr(context->message, says[how])) fail_msg("%s", context->message);
    md_field_destroy(&field);
    md_halo_destroy(halo);
  }
  md_geometry_destroy(g);
}

/* H^dag reads of each neighbour what H reads of the opposite one. */
static void adjoint_reads_the_opposite(void **state) {
  md_context *context = *state;
  md_geometry *g = md_test_geometry(context, 4, 4, 4, 8, true);
  for (int k = 0; k < 2 * 2 * MD_DIRECTIONS; k++) {
    const md_field_shape spinors = {
        k & 1 ? MD_SINGLE : MD_DOUBLE, MD_HOST, 48, k & 2 ? 3 : 1, true, false};
    md_halo_message channel = g->message[k / 4];
    md_halo_plan plan = {
        .geometry = g, .shape = spinors, .channels = 1, .channel = &channel, .half_spinors = true};
    const size_t bytes = md_plan_bytes(&plan, 0);
    char *message[3];
    md_field field;
    assert_int_equal(2 * bytes, md_message_bytes(&spinors, channel.sites));
    md_test_random_shape(context, g, &spinors, k / 4 % 2, 9, &field);
    for (int way = 0; way < 3; way++) { /* H, H^dag, H of the opposite neighbour */
      assert_non_null(message[way] = malloc(bytes));
      plan.turned = way == 1;
      if (way == 2) channel.direction = (channel.direction + MD_DIMS) % MD_DIRECTIONS;
      md_message_pack(&plan, 0, &field, message[way]);
    }
    assert_memory_equal(message[1], message[2], bytes);
    assert_memory_not_equal(message[0], message[1], bytes);
    for (int way = 0; way < 3; way++) free(message[way]);
    md_field_destroy(&field);
  }
  md_geometry_destroy(g);
}

static struct CMUnitTest tests[] = {cmocka_unit_test(wrong_names_are_refused),
                                    cmocka_unit_test(damage_is_met),
                                    cmocka_unit_test(adjoint_reads_the_opposite)};
MD_RUN_TESTS(tests)
