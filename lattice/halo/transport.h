#pragma once

#include "lattice/halo/halo.h"

/* What a transport is made for. */
typedef struct md_halo_plan {
  const md_geometry *geometry;
  md_field_shape shape;
  int channels;
  const md_halo_message *channel; /* what is asked for of the geometry's list, in its order */
  const struct md_transport *transport;
  bool check;          /* messages carry a number and a hash, which the receiver verifies */
  size_t copied_bytes; /* as in md_halo_request */
  bool awaited;        /* likewise */
  double beside_s;     /* likewise */
  bool half_spinors;   /* they travel; on a device the fields are not planar then */
  bool turned;         /* those that H^dag reads; may change between exchanges */
} md_halo_plan;

/* A way to carry halos: a constant table of functions, and one line in halo.c. */
typedef struct md_transport {
  const char *name;
  const char *unavailable; /* NULL, or why this build lacks it and how to get it */
  unsigned spaces;         /* of the fields that it carries: bit 1u << md_space */
  int speed;               /* auto takes the highest that can be used */
  bool queued; /* exchanges are work on the device's stream: they may be recorded, and what fails
                  in one shows in `verify` */
  bool whole_spinors; /* half spinors do not travel by it where fields lie on a device: whole
                         ones take less time beside an interior, by copy engines */
  /* MD_ENVIRONMENT with the reason where these ranks cannot use it, the same on all. NULL: they
   * can wherever it is in the build. Collective. */
  md_status (*check)(md_context *context, const md_geometry *geometry);
  /* Buffers and requests for plan->channels >= 1; the plan outlives the state. *state is to be
   * destroyed after a failure too, unless NULL. Collective; agrees only where it communicates. */
  md_status (*create)(md_context *context, const md_halo_plan *plan, void **state);
  /* The exchange as in halo.h. After a failure the messages are sent and received all the same.
   * Neighbours call them in the same order; no agreement. */
  md_status (*begin)(md_context *context, void *state, const md_field *field);
  md_status (*end)(md_context *context, void *state, md_field *field);
  /* For transports of device fields: `end` only queues the filling of the zones, on the stream that
   * `queue` names; work that is queued there follows it, and all other work from `join` on. NULL:
   * the zones are filled when `end` returns. Local. */
  void *(*queue)(void *state);
  bool (*leads)(void *state); /* whether `begin` queues a kernel on the stream of all work that lets
                                 the next one start once all before it has ended */
  md_status (*join)(md_context *context, void *state);
  /* Multiprocessors that send what `begin` has queued, see md_halo_spares. NULL: none. Local. */
  int (*spares)(void *state);
  /* Whether messages come one after another, of which kernels read the entries where they arrive.
   * Then `end_next`, for k = 0 up to the number of channels, may be called in place of `end`: work
   * queued on the stream *queue from then on finds a message there, that in *direction, where
   * *arrivals says. The zones are not filled. NULL: no. Local. */
  bool (*in_turn)(void *state);
  md_status (*end_next)(md_context *context, void *state, int k, md_halo_arrivals *arrivals,
                        int *direction, void **queue);
  /* In place of `end`: says where the messages of the exchange that has begun arrive. *found is
   * false, and NULL, where they must go through `end`. Local. */
  md_status (*arrivals)(md_context *context, void *state, md_halo_arrivals *arrivals, bool *found);
  /* MD_ENVIRONMENT with what the exchanges up to now met beside the host: a message that never came
   * or arrived damaged. NULL: end has said it. Local. */
  md_status (*verify)(md_context *context, void *state);
  void (*destroy)(void *state); /* collective */
} md_transport;

extern const md_transport md_transport_mpi, md_transport_peer, md_transport_nccl;
extern const md_transport md_transport_mixed, md_transport_cuda_aware, md_transport_staged;
/* The table: NULL-terminated. Every name is there in every build. */
const md_transport *const *md_transports(void);

struct md_halo {
  md_context *context;
  const md_transport *transport;
  char reason[1024]; /* why it was taken: "asked for", or what speaks against each faster one */
  md_halo_plan plan;
  md_halo_message channel[MD_MOST_MESSAGES]; /* of the plan */
  void *state;                               /* of the transport; NULL where nothing is split */
};

/* The messages of a halo exchange: the planes of a surface one after another, or its sites, or the
 * half spinors of either; then its scales; with checks then a seal. */

/* Bytes of one site in one plane, of a message of `sites` sites. */
size_t md_message_entry_bytes(const md_field_shape *shape);
size_t md_message_bytes(const md_field_shape *shape, int64_t sites);
/* Of a channel's message. */
size_t md_plan_bytes(const md_halo_plan *plan, int channel);

/* MD_INPUT for a message of so many bytes that MPI's counts cannot hold. Local. */
md_status md_message_check(md_context *context, size_t bytes);

/* The surface of a host field that a channel sends, and the zone that it receives. Local. */
void md_message_pack(const md_halo_plan *plan, int channel, const md_field *field, char *message);
void md_message_unpack(const md_halo_plan *plan, int channel, const char *message, md_field *field);

/* With checks: writes the seal behind the `bytes` of a message on the host; MD_ENVIRONMENT when the
 * seal of a received one is not that of its bytes or of this number. Local. */
enum { MD_SEAL_BYTES = 16 };
void md_message_seal(char *message, size_t bytes, int64_t number);
md_status md_message_verify(md_context *context, const md_halo_message *channel,
                            const char *message, size_t bytes, int64_t number);
/* The failure of either: message `number` carries the number `got`, or other bytes than were sent
 * where that is the same. */
md_status md_message_damaged(md_context *context, const md_halo_message *channel, int64_t number,
                             int64_t got);
