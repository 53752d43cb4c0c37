#pragma once

#include "base/device_peers.h"
#include "lattice/halo/transport.h"

/* The device side of message.c, shared by the transports of device fields: one kernel gathers all
 * surfaces of a field into its messages, one scatters all that arrived into the zones, both on a
 * stream of their own beside the interior. A message on a device: the planes, or the sites of one,
 * whole or half spinors, and then the scales, each filled up to 16 bytes; then the hash and the
 * number of the message, written where the plan asks for checks. Messages are numbered on the
 * device, so that recorded exchanges count on. Local unless said otherwise. */
MD_C_BEGIN

/* Tables, streams and counters; buffers come by one of the next two. */
typedef struct md_device_messages md_device_messages;
/* Sends from and receives into device memory of its own; send[c] and receive[c] of channel c. */
md_status md_device_messages_buffers(md_context *context, md_device_messages *messages, void **send,
                                     void **receive);
/* Writes straight into two buffers in turn in the memory of each receiver, by the gathering kernel
 * or beside a busy interior, unless half spinors travel, by the copy engines or a small kernel,
 * raises a flag there, and waits for its own flags on the device. A recording then holds an even
 * number of exchanges. `within`: the same for the ranks of each node alone, after
 * md_device_messages_buffers, whose buffers other nodes' messages keep; by the gathering kernel
 * only. MD_ENVIRONMENT where the GPUs cannot. Collective. */
md_status md_device_messages_peers(md_context *context, md_device_messages *messages, bool within);
/* Whether the message of channel c goes to, and comes from, a rank that shares memory. */
bool md_device_message_to_peer(const md_device_messages *messages, int c);
bool md_device_message_from_peer(const md_device_messages *messages, int c);

/* Bytes of the message of channel c, a multiple of 16. */
size_t md_device_message_bytes(const md_device_messages *messages, int c);

/* The state of a transport of device fields, or what it begins with, made by its `create`; and
 * functions of an md_transport that take any of them, by their contracts there and more. */
typedef struct md_device_carrier {
  const md_halo_plan *plan;
  md_device_messages *messages;
} md_device_carrier;

/* Makes *state of `bytes`, zeroed but for the carrier, whose messages have no buffers yet. */
md_status md_device_carrier_create(md_context *context, const md_halo_plan *plan, size_t bytes,
                                   void **state);
/* `begin`: queues the gather of all surfaces, on the stream of all work, where it gets its places
 * before the interior; what follows on the stream of the messages comes after it. */
md_status md_device_carrier_pack(md_context *context, void *state, const md_field *field);
/* `end`: queues the scatter of all that was received on the stream of the messages. MD_ENVIRONMENT
 * when an exchange up to now met a flag that never came, or a message that arrived damaged. */
md_status md_device_carrier_unpack(md_context *context, void *state, md_field *field);
/* `spares`, `in_turn`, `end_next`. */
int md_device_carrier_spares(void *state);
bool md_device_carrier_in_turn(void *state);
md_status md_device_carrier_await_next(md_context *context, void *state, int k,
                                       md_halo_arrivals *arrivals, int *direction, void **queue);
/* `queue`: the cudaStream_t of the messages, for transports that queue on it too. */
void *md_device_carrier_stream(void *state);
bool md_device_carrier_leads(void *state);
md_status md_device_carrier_join(md_context *context, void *state);
/* `arrivals` of the exchange that was packed last. MD_ENVIRONMENT as unpack. *found is false where
 * the gathering kernel carries them, they are of one right-hand side, or two fill one zone. */
md_status md_device_carrier_arrivals(md_context *context, void *state, md_halo_arrivals *arrivals,
                                     bool *found);
md_status md_device_carrier_verify(md_context *context, void *state);
void md_device_carrier_destroy(void *state);
/* What the tables of these transports have in common, and the rest of one where CUDA is. */
#if MINIDIRAC_HAVE_CUDA
#define MD_DEVICE_CARRIER(...)                                                                     \
  .spaces = 1u << MD_DEVICE, .queue = md_device_carrier_stream, .leads = md_device_carrier_leads,  \
  .join = md_device_carrier_join, .arrivals = md_device_carrier_arrivals,                          \
  .spares = md_device_carrier_spares, .in_turn = md_device_carrier_in_turn,                        \
  .end_next = md_device_carrier_await_next, __VA_ARGS__
#else
#define MD_DEVICE_CARRIER(...)                                                                     \
  .spaces = 1u << MD_DEVICE,                                                                       \
  .unavailable = "this build has no CUDA; configure with -DMINIDIRAC_CUDA=ON (needs nvcc)"
#endif

/* Waits for what is queued on the stream. */
md_status md_device_messages_wait(md_context *context, md_device_messages *messages);

/* Copies of single messages between own buffers and page-locked memory, each beside the others:
 * queued after the gather; waited for; queued for the scatter, which waits for it. */
md_status md_device_message_fetch(md_context *context, md_device_messages *messages, int c,
                                  void *host);
md_status md_device_message_fetched(md_context *context, md_device_messages *messages, int c);
md_status md_device_message_bring(md_context *context, md_device_messages *messages, int c,
                                  const void *host);

MD_C_END
