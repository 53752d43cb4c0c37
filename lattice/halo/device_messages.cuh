#pragma once

#include "lattice/halo/device_exchange.cuh"

extern "C" {
#include "lattice/halo/device_message.h"
}

/* What device_message.cu, whose kernels gather and scatter, and device_carry.cu, which takes
 * messages past a busy interior, share. */

enum { SPINOR_REALS = 24 }; /* of a slice */
enum {
  READY,
  DONE,
  SENT,
  FILLED,
  BROUGHT,
  FETCHED /* and a channel */,
  EVENTS = FETCHED + MD_MOST_MESSAGES
};

struct md_device_messages {
  const md_halo_plan *plan;
  exchange x;
  int blocks;
  /* To peers beside the interior, by device_carry.cu: by the copy engines, out of `buffer` where
   * some surface is not a few runs of sites behind each other (`gathers`), or by push_all
   * (`pushes`). */
  bool copied, gathers, pushes;
  int runs[MD_MOST_MESSAGES]; /* of each surface, all of one length; 0: not a few */
  int turn[MD_MOST_MESSAGES]; /* the channel whose message is copied first, and so on */
  exchange gather;            /* what the gathering kernel sees then: its messages are `buffer` */
  int push_blocks;
  int pumps;    /* multiprocessors that send in place of the copy engines, see device_pump.cu */
  char *buffer; /* own messages; with peers what is gathered for the copy engines, or NULL */
  md_device_peers *peers;
  int32_t *face[MD_PARITIES][MD_MOST_MESSAGES];
  cudaStream_t stream, in; /* in: of copies from the host, or to peers */
  cudaStream_t late;       /* where the zone is filled whose message comes last */
  cudaEvent_t event[EVENTS];
  bool bringing;
};

static inline exchange_field view_of(const md_device_messages *m, const md_field *f, size_t word) {
  const md_halo_plan *plan = m->plan;
  const int slices = plan->half_spinors ? f->components / SPINOR_REALS : 1;
  const size_t pieces = plan->half_spinors ? 2 * (size_t)slices : 1;
  const int words = (int)(md_message_entry_bytes(&plan->shape) / pieces / word);
  return {(char *)f->data,
          f->scale,
          f->stride,
          md_field_planes(f),
          words,
          md_divisor_of(words),
          md_divisor_of(slices),
          plan->turned ? 2 : 0};
}

/* Where the zone is filled whose message is the k-th. */
static inline cudaStream_t queue_of(const md_device_messages *m, int k) {
  return !m->pushes && k > 0 && k + 1 == m->plan->channels ? m->late : m->stream;
}

/* Work queued on `later` from here on waits for what is queued on `earlier`. */
md_status md_device_messages_order(md_context *context, cudaEvent_t event, cudaStream_t earlier,
                                   cudaStream_t later);

/* Bytes of the values of channel c's message, behind which its scales lie. */
size_t md_device_message_values(const md_device_messages *m, int c);
/* Bytes of the messages of all channels. */
size_t md_device_messages_bytes(const md_device_messages *m);
/* Shares at most `most_blocks` blocks out among the channels of x in proportion to their messages,
 * one to each at least, and none of them for less than `block_bytes`. Returns their number. */
int md_device_messages_divide(const md_device_messages *m, int most_blocks, double block_bytes,
                              exchange *x);

/* Decides who carries messages to peers, and makes what they need. */
md_status md_device_messages_choose(md_context *context, md_device_messages *m);
/* Where `copied`: sends the surfaces, one message behind the other, of which `buffer` holds those
 * that had to be gathered; fills the zone of channel c on the stream `queue`. */
md_status md_device_messages_send(md_context *context, md_device_messages *m,
                                  const md_field *field);
md_status md_device_messages_take(md_context *context, md_device_messages *m, md_field *field,
                                  int c, cudaStream_t queue);

/* device_pump.cu: how many multiprocessors are to send the messages, 0 where they cannot; queues
 * the message of channel c, and then its flag, on m->in. */
int md_device_messages_pumps(const md_context *context, const md_device_messages *m);
cudaError_t md_device_messages_pump(const md_device_messages *m, const md_field *field, int c);
