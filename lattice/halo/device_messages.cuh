#pragma once

#include "lattice/halo/device_exchange.cuh"

extern "C" {
#include "lattice/halo/device_message.h"
}

/* What device_message.cu, whose kernels gather and scatter, and device_carry.cu, which takes
 * messages past a busy interior, share. */

enum { SPINOR_REALS = 24 }; /* of a slice */
enum { READY, DONE, BROUGHT, FETCHED /* and a channel */, EVENTS = FETCHED + MD_MOST_MESSAGES };

struct md_device_messages {
  const md_halo_plan *plan;
  exchange x;
  int blocks;
  /* To peers beside the interior, by device_carry.cu: by the copy engines, out of `buffer` where
   * some surface is not a few runs of sites behind each other (`gathers`), or by push_all
   * (`pushes`). */
  bool copied, gathers, pushes;
  int runs[MD_MOST_MESSAGES]; /* of each surface, all of one length; 0: not a few */
  exchange gather;            /* what the gathering kernel sees then: its messages are `buffer` */
  int push_blocks;
  int lanes;      /* streams that `copied` messages are dealt out to: stream, in */
  long long sent; /* exchanges of these kinds queued so far; a recording counts once */
  char *buffer;   /* own messages; with peers what is gathered for the copy engines, or NULL */
  md_device_peers *peers;
  int32_t *face[MD_PARITIES][MD_MOST_MESSAGES];
  cudaStream_t stream, in; /* in: of copies from the host, or the second lane */
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

/* Work queued on `later` from here on waits for what is queued on `earlier`. */
md_status md_device_messages_order(md_context *context, cudaEvent_t event, cudaStream_t earlier,
                                   cudaStream_t later);

/* Bytes of the messages of all channels. */
size_t md_device_messages_bytes(const md_device_messages *m);
/* Shares at most `most_blocks` blocks out among the channels of x in proportion to their messages,
 * one to each at least, and none of them for less than `block_bytes`. Returns their number. */
int md_device_messages_divide(const md_device_messages *m, int most_blocks, double block_bytes,
                              exchange *x);

/* Decides who carries messages to peers, and makes what they need. */
md_status md_device_messages_choose(md_context *context, md_device_messages *m);
/* Where `copied`, on the stream of the messages: sends the surfaces, of which `buffer` holds those
 * that had to be gathered; fills the zones. */
md_status md_device_messages_send(md_context *context, md_device_messages *m,
                                  const md_field *field);
md_status md_device_messages_take(md_context *context, md_device_messages *m, md_field *field);
