#pragma once

#include "lattice/fields/field.h"
#include "lattice/halo/arrivals.h"

MD_C_BEGIN

/* Halo exchange for fields of one shape, by one of the transports of transport.h. */
typedef struct md_halo md_halo;

/* How the halos of a run are to travel. */
typedef struct md_halo_request {
  const char *transport; /* a name of the table, or "auto" */
  int depth;             /* sites of the zones that are filled, from the rank outward; 0: all */
  bool check;          /* every message carries a number and a hash of its bytes, which the receiver
                          verifies; what that costs an exchange is measured and printed */
  size_t copied_bytes; /* `peer`: exchanges without checks of at least so many bytes on a rank go by
                          the copy engines, others and half spinors by kernels; 0: what is faster on
                          an H200 beside kernels of small blocks */
  bool half_spinors;   /* every field is read by H, or where md_halo_turn says so by H^dag
                          (half_spinor.h): in double and single half spinors travel, 12 numbers a
                          slice, and fill spins 0 and 1 of the halo; spins 2 and 3 become zero
                          there, which H takes for the same */
  /* Likewise, and H rounds them to the field's numbers: on a device they travel in half and bf16
   * too. */
  bool rounds_half_spinors;
  bool awaited; /* what follows md_halo_begin can take the messages where md_halo_find_arrivals says
                   that they arrive; `peer` then pushes short ones instead of copying them */
  /* Seconds that a kernel takes, about, which is queued beside the exchange and leaves
   * md_halo_spares multiprocessors to it; 0: none does. Where copy engines would take longer,
   * `peer` sends by these. */
  double beside_s;
} md_halo_request;

/* As md_option.parse, into md_halo_request.transport, from the table or "auto". */
md_status md_halo_read_transport(md_context *context, const char *label, const char *text,
                                 void *target);

/* For all fields with this shape on this geometry. `request` NULL: the best transport; a name that
 * is not known, not in this build, or cannot carry these fields is refused with the reason, also
 * where nothing is split. Only split directions get buffers; a rank that is its own neighbour
 * sends to itself. context and geometry outlive the halo. Collective. */
md_status md_halo_create(md_context *context, const md_geometry *geometry,
                         const md_field_shape *shape, const md_halo_request *request,
                         md_halo **halo);
void md_halo_destroy(md_halo *halo); /* NULL is fine. Collective */

/* Whether H^dag reads the fields of exchanges from here on, not H: half spinors are others then. */
void md_halo_turn(md_halo *halo, bool adjoint);

/* Packs the surfaces of `field` and starts the transfers; the field's local sites must not change
 * until md_halo_end, which fills the halo. One exchange of a halo object at a time. Neighbours
 * call the same. With no split direction both do nothing. A failure of this rank alone is deferred
 * (md_defer), and what the neighbours wait for is sent all the same. */
md_status md_halo_begin(md_halo *halo, const md_field *field);
md_status md_halo_end(md_halo *halo, md_field *field);

/* md_halo_end in two steps, for work beside what reads the halo: arrive fills the halo for what is
 * queued on md_halo_queue from then on, a stream for md_hop_call.queue, NULL where there is no
 * other than that of all work; from join on all other work finds it filled, and comes after what
 * was queued there. */
md_status md_halo_arrive(md_halo *halo, md_field *field);
void *md_halo_queue(const md_halo *halo);
/* Multiprocessors of the GPU that send the messages, of one block each: a kernel that is queued
 * beside them and would fill the GPU is to have so many blocks less, or its last ones come late. */
int md_halo_spares(const md_halo *halo);
/* Whether two messages, for the zones ahead and behind along one dimension, come one after the
 * other and can be read where they arrive. Then md_halo_arrive_next, k = 0 and 1, may be called in
 * place of md_halo_arrive: for what is queued on *queue from then on, the message for the zone in
 * *direction lies where *arrivals says, of which no more is to be awaited. No zone is filled. */
bool md_halo_in_turn(const md_halo *halo);
md_status md_halo_arrive_next(md_halo *halo, int k, md_halo_arrivals *arrivals, int *direction,
                              void **queue);
md_status md_halo_join(md_halo *halo);
/* Between begin and join in place of arrive, for a kernel that takes the messages where they
 * arrive: says where. The zones are not filled. *found is false where arrive must be called, always
 * where the halo is not `awaited`. */
md_status md_halo_find_arrivals(md_halo *halo, md_halo_arrivals *arrivals, bool *found);
/* Whether md_halo_begin leaves a kernel behind as md_hop_call.follows says. */
bool md_halo_leads(const md_halo *halo);

/* Bytes that this rank sends in one exchange. */
int64_t md_halo_bytes(const md_halo *halo);
/* Name of the transport, "none" where nothing is split. */
const char *md_halo_transport(const md_halo *halo);
/* Why it was taken: "asked for", or what speaks against each faster one. */
const char *md_halo_reason(const md_halo *halo);
/* Whether exchanges are work on the device's stream, which may be recorded and replayed, or there
 * is nothing to exchange. */
bool md_halo_queued(const md_halo *halo);
/* MD_ENVIRONMENT with what the exchanges up to now met beside the host, as after a replay: a
 * message that never came, or with checks one that arrived damaged. Deferred (md_defer). */
md_status md_halo_verify(md_halo *halo);
/* What sites of faces cost an exchange of fields that lie there: for md_layout_request. */
const md_face_costs *md_halo_face_costs(md_space space);
/* False for a name that another space than this one needs; true for "auto" and NULL. */
bool md_halo_request_serves(const md_halo_request *request, md_space space);

MD_C_END
