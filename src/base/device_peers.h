#pragma once

#include "base/context.h"

/* Device memory of each rank that the GPUs of the other ranks of its node read and write
 * themselves (CUDA interprocess handles over NVLink or PCIe; ranks that share a GPU included). */
MD_C_BEGIN

/* A kernel that waited for another rank in vain says so here, in page-locked memory. */
typedef struct md_peer_timeout {
  int rank;       /* whom it waited for; -1: no kernel gave up */
  long long tick; /* the value that its flag did not reach */
} md_peer_timeout;

typedef struct md_device_peers {
  int ranks;                /* of the run */
  size_t bytes;             /* of each rank's memory */
  void *mine;               /* this rank's, zeroed, 256-byte aligned */
  void **of;                /* of[rank]: the memory of that rank as this GPU addresses it; NULL of
                               another node's rank */
  void **of_on_device;      /* the same array in device memory */
  md_peer_timeout *timeout; /* written by kernels */
  md_context *context;
} md_device_peers;

/* node[rank]: a number that ranks of one node share. For tests node_size of context->wishes
 * makes nodes of so many ranks, one behind the other, of any host. Collective. */
md_status md_device_nodes(md_context *context, int *node);

/* Allocates `bytes` on every rank and maps all of them. MD_ENVIRONMENT on all ranks, with the pair
 * of ranks and the reason, where ranks lie on different hosts or one GPU cannot address another's
 * memory. `within`: memory of ranks on other nodes is left out instead of refused. *peers is NULL
 * on failure. Collective. */
md_status md_device_peers_create(md_context *context, size_t bytes, const char *what, bool within,
                                 md_device_peers **peers);
/* After all ranks have finished with the memory, which this call waits for. NULL is fine.
 * Collective. */
void md_device_peers_destroy(md_device_peers *peers);
/* MD_ENVIRONMENT with who waited for whom once a kernel has given up. Local. */
md_status md_device_peers_check(md_context *context, const md_device_peers *peers);

/* One NCCL communicator of the run's ranks, made once and kept by the context; md_device_close ends
 * it. But for md_nccl_sum and md_nccl_close, only in builds with NCCL.
 *
 * MD_ENVIRONMENT on all ranks where two of them share a GPU, which NCCL refuses, or where it fails
 * to start. Returns at once when it is open. Collective. */
md_status md_nccl_open(md_context *context);

typedef struct md_nccl_message {
  void *memory; /* on the device */
  size_t bytes;
  int rank;      /* the other end */
  bool receives; /* else it is sent */
} md_nccl_message;

/* Queues the messages as one group on the cudaStream_t; what two ranks send each other is matched
 * in order. Neighbours do the same. */
md_status md_nccl_exchange(md_context *context, const md_nccl_message *messages, int count,
                           void *stream);
/* Queues the sums over ranks of doubles in device memory, in place, on the stream of all work. Only
 * where no sum is rounded do its bits not depend on NCCL's order. MD_ENVIRONMENT in builds without
 * NCCL. All ranks do the same. */
md_status md_nccl_sum(md_context *context, double *values, int count);
/* A failure that NCCL has met since. Local. */
md_status md_nccl_check(md_context *context);
/* Ends the communicator, if there is one; also in builds without NCCL. */
void md_nccl_close(md_context *context);

MD_C_END
