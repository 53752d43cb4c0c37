#pragma once

#include "base/context.h"

/* One NCCL communicator of the run's ranks, made once and kept by the context; md_device_close ends
 * it. But for that, only in builds with NCCL. */
#ifdef __cplusplus
extern "C" {
#endif

/* MD_ENVIRONMENT on all ranks where two of them share a GPU, which NCCL refuses, or where it fails
 * to start. Returns at once when it is open. Collective. */
md_status md_nccl_open(md_context *context);

typedef struct md_nccl_message {
  void *memory; /* on the device */
  size_t bytes;
  int rank; /* the other end */
} md_nccl_message;

/* Queues sends and receives as one group on the cudaStream_t; what two ranks send each other is
 * matched in order. Neighbours do the same. */
typedef struct md_nccl_messages {
  int count;
  const md_nccl_message *message;
} md_nccl_messages;
md_status md_nccl_exchange(md_context *context, md_nccl_messages sends, md_nccl_messages receives,
                           void *stream);
/* Queues the sums over ranks of doubles in device memory, in place, on the stream of all work. Only
 * where no sum is rounded do its bits not depend on NCCL's order. MD_ENVIRONMENT in builds without
 * NCCL. All ranks do the same. */
md_status md_nccl_sum(md_context *context, double *values, int count);
/* A failure that NCCL has met since. Local. */
md_status md_nccl_check(md_context *context);
/* Ends the communicator, if there is one; also in builds without NCCL. */
void md_nccl_close(md_context *context);

#ifdef __cplusplus
}
#endif
